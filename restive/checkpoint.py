"""Checkpoints: a policy's name, settings and belief with other arrays in one `.npz` file, without pickle.

A policy that is loaded continues bit for bit. The format has a version, and so has each policy's belief
(`Policy.version`): files of other versions are refused.
"""

import json
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from restive.errors import InputError
from restive.files import read_npz, write_npz
from restive.policies import find_policy
from restive.policies.base import Policy
from restive.policies.belief import flatten, unflatten
from restive.version import __version__

FORMAT = "restive-checkpoint-1"
BELIEF = "belief."


class Checkpoint(NamedTuple):
    """The content of a checkpoint file."""

    policy: Policy[Any]
    belief: dict[str, Any]
    """The belief's arrays by flattened name; `restive.policies.belief.unflatten` makes a belief of them."""
    extra: dict[str, Any]
    header: dict[str, Any]

    def restore(self, path: str | PathLike[str], like: Any, place: str, **extra: Any) -> Any:
        """The saved belief; it and the extra arrays must have the names, shapes and types of `like` and `extra`."""
        if _layouts(self.belief) != _layouts(flatten(like)) or _layouts(self.extra) != _layouts(extra):
            raise InputError(f"{path}: a damaged checkpoint; its arrays are not those of {self.policy.name} {place}.")
        return unflatten(like, self.belief)


def save(path: str | PathLike[str], policy: Policy[Any], belief: Any, extra: dict[str, Any], **facts: Any) -> None:
    """Write a policy and its belief, with `extra` arrays and plain `facts` for the header, atomically."""
    header = {
        "format": FORMAT,
        "version": __version__,
        "policy": policy.name,
        "belief": policy.version,
        "settings": policy.settings(),
        **facts,
    }
    if not isinstance(belief, tuple) or not hasattr(belief, "_asdict"):
        raise InputError(f"{policy.name}: its belief is a {type(belief).__name__}; it must be a NamedTuple of arrays.")
    arrays = {BELIEF + name: np.asarray(value) for name, value in flatten(belief).items()} | extra
    if objects := [name for name, value in arrays.items() if value.dtype.hasobject]:
        raise InputError(f"{policy.name}: {objects[0]} holds Python objects; it must be an array of plain numbers.")
    write_npz(path, {"header": np.array(json.dumps(header)), **arrays})


def load(path: str | PathLike[str], policy: type[Policy[Any]] | None = None) -> Checkpoint:
    """Read a file written by `save`; `policy` is the class of a policy that is not registered."""
    arrays = read_npz(path)
    header = _read_header(path, arrays)
    try:
        kind = policy or find_policy(header["policy"])
    except InputError as error:
        raise InputError(f"{path}: {error} Pass the class of a policy that is not registered.") from None
    if (kind.name, kind.version) != (header["policy"], header["belief"]):
        raise InputError(
            f"{path}: a belief of {header['policy']}, version {header['belief']}; "
            f"{kind.name} here has version {kind.version}."
        )
    belief = {name.removeprefix(BELIEF): arrays.pop(name) for name in list(arrays) if name.startswith(BELIEF)}
    return Checkpoint(_make_policy(path, kind, header["settings"]), belief, arrays, header)


def _layouts(arrays: dict[str, Any]) -> dict[str, Any]:
    return {name: (np.shape(array), np.asarray(array).dtype) for name, array in arrays.items()}


def _read_header(path: str | PathLike[str], arrays: dict[str, Any]) -> dict[str, Any]:
    try:
        header: dict[str, Any] = json.loads(str(arrays.pop("header")))
        found, *_ = (header[key] for key in ("format", "policy", "belief", "settings"))
    except (KeyError, TypeError, json.JSONDecodeError):
        raise InputError(f"{path}: not a checkpoint (its header is missing or incomplete).") from None
    if found != FORMAT:
        raise InputError(f"{path}: checkpoint format {found!r}; this version reads {FORMAT!r}.")
    return header


def _make_policy(path: str | PathLike[str], kind: type[Policy[Any]], settings: dict[str, Any]) -> Policy[Any]:
    try:
        return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()})
    except (TypeError, InputError) as error:
        raise InputError(f"{path}: its settings do not fit this version of {kind.name} ({error}).") from None
