"""A policy in mid-run, saved: name, settings and belief in one `.npz` of plain arrays and a line of JSON, no pickle.

What is loaded goes on bit for bit as if nothing had happened. The format has a version, and so has each policy's
belief: a file of another version is refused with a sentence.
"""

import json
from collections import namedtuple
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from restive.errors import InputError
from restive.policies import find_policy
from restive.policies.base import Policy
from restive.policies.belief import flatten
from restive.problem import read_arrays
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
    if not isinstance(belief, tuple) or not hasattr(belief, "_asdict"):
        raise InputError(f"{policy.name}: its belief is a {type(belief).__name__}; it must be a NamedTuple of arrays.")
    arrays = {BELIEF + name: np.asarray(value) for name, value in flatten(belief).items()} | extra
    if objects := [name for name, value in arrays.items() if value.dtype.hasobject]:
        raise InputError(f"{policy.name}: {objects[0]} holds Python objects; it must be an array of plain numbers.")
    part = Path(path).with_name(Path(path).name + ".part")
    with part.open("wb") as file:
        np.savez(file, header=np.array(json.dumps(header)), **arrays)
    part.replace(path)


def load(path: str | PathLike[str], policy: type[Policy[Any]] | None = None) -> Snapshot:
    """Read what `save` wrote; `policy` is the class of one that is not registered."""
    arrays = read_arrays(Path(path))
    header = _header(Path(path), arrays)
    try:
        kind = policy or find_policy(header["policy"])
    except InputError as error:
        raise InputError(f"{path}: {error} If it is your own, pass its class.") from None
    if (kind.name, kind.version) != (header["policy"], header["belief"]):
        raise InputError(
            f"{path}: a belief of {header['policy']}, version {header['belief']}; "
            f"here is {kind.name}, version {kind.version}."
        )
    settled = _policy(Path(path), kind, header["settings"])
    remembered = {name.removeprefix(BELIEF): arrays.pop(name) for name in list(arrays) if name.startswith(BELIEF)}
    own = getattr(kind, "start", kind.begin).__annotations__.get("return")
    return Snapshot(settled, _unflatten(own, remembered), arrays, header)


def _header(path: Path, arrays: dict[str, Any]) -> dict[str, Any]:
    try:
        header: dict[str, Any] = json.loads(str(arrays.pop("header")))
        found, *_ = (header[key] for key in ("format", "policy", "belief", "settings"))
    except (KeyError, TypeError, json.JSONDecodeError):
        raise InputError(f"{path}: not a snapshot (it has no header, or one that is not whole).") from None
    if found != FORMAT:
        raise InputError(f"{path}: snapshot format {found!r}; this version reads {FORMAT!r}.")
    return header


def _policy(path: Path, kind: type[Policy[Any]], settings: dict[str, Any]) -> Policy[Any]:
    try:
        return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()})
    except (TypeError, InputError) as error:
        raise InputError(f"{path}: its settings do not fit {kind.name} as it is here ({error}).") from None


def _unflatten(own: Any, arrays: dict[str, Any]) -> Any:
    """The belief again, in the policy's `own` record where its `start` says which that is, else in one like it."""
    fields: dict[str, Any] = {}
    for name, array in arrays.items():
        outer, dot, inner = name.partition(".")
        if dot:
            fields.setdefault(outer, {})[inner] = array
        else:
            fields[outer] = array
    hints = getattr(own, "__annotations__", {})
    values = {
        name: _unflatten(hints.get(name), value) if isinstance(value, dict) else value for name, value in fields.items()
    }
    record = own if set(getattr(own, "_fields", ("",))) == set(values) else namedtuple("Belief", values)
    return record(**values)
