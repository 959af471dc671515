"""What nobody at the other end of a wire needs to know: in which folder of the server's machine something lies.

A program may decide by a policy in a file of its own, which the plan names with its whole path.
"""

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

FOLDER = re.compile(r"(?:[A-Za-z]:)?[/\\](?:[^\s/\\:'\"]+[/\\])+(?=[^\s/\\:'\"]+\.py\b)")
SPECS = ("policy", "shadow", "shadow_policy")


def name_policy(spec: str) -> str:
    """A policy without the folder of its file.

    >>> name_policy("lagrange:explore=0.1"), name_policy("/home/ann/mine.py:depth=2")
    ('lagrange:explore=0.1', 'mine.py:depth=2')
    """
    file, colon, settings = spec.partition(":")
    return f"{PurePath(file).name}{colon}{settings}" if file.endswith(".py") else spec


def hide_folders(sentence: str) -> str:
    """A sentence without the folders of files of policies.

    >>> hide_folders("/home/ann/mine.py: there is no such file.")
    'mine.py: there is no such file.'
    """
    return FOLDER.sub("", sentence)


def hide_plans(record: Mapping[str, Any]) -> dict[str, Any]:
    """Plain data in which every policy stands without its folder, however deep.

    >>> hide_plans({"header": {"policy": "/home/ann/mine.py"}})
    {'header': {'policy': 'mine.py'}}
    """
    return {name: _hide(name, value) for name, value in record.items()}


def _hide(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return hide_plans(value)
    return name_policy(value) if name in SPECS and isinstance(value, str) else value
