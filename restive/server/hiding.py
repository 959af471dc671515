"""What nobody at the other end of a wire needs to know: in which folder of the server's machine something lies.

A program may decide by a policy in a file of its own, which the config names with its whole path, and the desk says of a
key or a sheet where it looked for it. Of such a path only the last name is reported.
"""

import os
import re
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path, PureWindowsPath
from typing import Any

from restive.desk.pseudonyms import keys_folder

USUAL_ROOTS = (
    "Applications", "Library", "Users", "Volumes", "app", "data", "etc", "home", "media", "mnt", "opt", "private",
    "proc", "root", "run", "srv", "tmp", "usr", "var",
)  # fmt: skip
SEPARATOR = r"[/\\]+"
INSIDE = r"(?:[^/\\:;,'\"()\n]|(?<=\w)'(?=\w)|\([^()/\\\n]*\))+"  # the name of a folder
FILE = re.compile(r"((?:[A-Za-z]:(?=[/\\]))?[^:]*\.py)(:.*)?", re.DOTALL)
SPECS = ("policy", "shadow", "shadow_policy")


def name_policy(spec: str) -> str:
    """A policy without the folder of its file.

    >>> name_policy("lagrange:explore=0.1"), name_policy("/home/ann/mine.py:depth=2")
    ('lagrange:explore=0.1', 'mine.py:depth=2')
    """
    found = FILE.fullmatch(spec)
    return spec if found is None else PureWindowsPath(found[1]).name + (found[2] or "")  # which knows both slashes


def hide_folders(sentence: str) -> str:
    """A sentence in which files stand without their folders, also where these have blanks in their names.

    >>> hide_folders("/home/ann/my rules/mine.py: there is no such file.")
    'mine.py: there is no such file.'
    """
    if "/" not in sentence and "\\" not in sentence:
        return sentence
    return _make_pattern(_list_folders()).sub("", sentence)


def _list_folders() -> tuple[str, ...]:
    """Folders that the server has to do with, whatever letters are in their names; the longest first."""
    given = [keys_folder(), Path.home(), Path.cwd(), Path(tempfile.gettempdir())]
    reported = {str(path) for each in given for path in (each, each.resolve()) if len(path.parts) > 1}
    return tuple(sorted(reported | {repr(each)[1:-1] for each in reported}, key=len, reverse=True))


@cache
def _make_pattern(folders: tuple[str, ...]) -> re.Pattern[str]:
    """All that comes before the last name of a path, if the path begins as one of a machine does."""
    roots = sorted({*USUAL_ROOTS, *(os.listdir("/") if os.path.isdir("/") else ())})
    begins = [*map(re.escape, folders), "/(?:" + "|".join(map(re.escape, roots)) + ")", "[A-Za-z]:", r"\\\\"]
    return re.compile(rf"(?<![\w./\\])(?:{'|'.join(begins)})(?:(?<=\\)|{SEPARATOR})(?:{INSIDE}{SEPARATOR})*")


def hide_configs(record: Mapping[str, Any]) -> dict[str, Any]:
    """Plain data in which every policy stands without its folder, however deep.

    >>> hide_configs({"header": {"policy": "/home/ann/mine.py"}})
    {'header': {'policy': 'mine.py'}}
    """
    return {name: _hide(name, value) for name, value in record.items()}


def _hide(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return hide_configs(value)
    return name_policy(value) if name in SPECS and isinstance(value, str) else value
