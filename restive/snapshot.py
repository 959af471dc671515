"""A policy in mid-run, saved: name, settings and belief in one `.npz` of plain arrays and a line of JSON, no pickle.

What is loaded goes on bit for bit as if nothing had happened. The format has a version, and so has each policy's
belief: a file of another version is refused with a sentence.
"""

import json
import zipfile
from collections import namedtuple
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from restive.errors import InputError
from restive.policies import find_policy
from restive.policies.base import Policy
from restive.version import __version__

FORMAT = "restive-snapshot-1"
BELIEF = "belief."


class Snapshot(NamedTuple):
    """What a file holds."""

    policy: Policy[Any]
    belief: Any
    extra: dict[str, Any]
    header: dict[str, Any]


def save(path: str | PathLike[str], policy: Policy[Any], belief: Any, extra: dict[str, Any], **about: Any) -> None:
    """Write a policy and its belief, with `extra` arrays and plain facts `about` them; whole or not at all."""
    header = {
        "format": FORMAT,
        "version": __version__,
        "policy": policy.name,
        "belief": policy.version,
        "settings": policy.settings(),
        **about,
    }
    arrays = {BELIEF + name: value for name, value in belief._asdict().items()} | extra
    part = Path(path).with_name(Path(path).name + ".part")
    with part.open("wb") as file:
        np.savez(file, allow_pickle=False, header=np.array(json.dumps(header)), **arrays)
    part.replace(path)


def load(path: str | PathLike[str], policy: type[Policy[Any]] | None = None) -> Snapshot:
    """Read what `save` wrote; `policy` is the class of one that is not registered."""
    arrays = _read(Path(path))
    header = json.loads(str(arrays.pop("header")))
    if header.get("format") != FORMAT:
        raise InputError(f"{path}: snapshot format {header.get('format')!r}; this version reads {FORMAT!r}.")
    kind = policy or find_policy(header["policy"])
    if (kind.name, kind.version) != (header["policy"], header["belief"]):
        raise InputError(
            f"{path}: a belief of {header['policy']}, version {header['belief']}; "
            f"here is {kind.name}, version {kind.version}."
        )
    settings = {key: tuple(value) if isinstance(value, list) else value for key, value in header["settings"].items()}
    remembered = {name.removeprefix(BELIEF): arrays.pop(name) for name in list(arrays) if name.startswith(BELIEF)}
    belief = namedtuple("Belief", remembered)(**remembered)
    return Snapshot(kind(**settings), belief, arrays, header)


def _read(path: Path) -> dict[str, Any]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: not a snapshot ({error}).") from None
    if "header" not in arrays:
        raise InputError(f"{path}: not a snapshot (it has no header).")
    return arrays
