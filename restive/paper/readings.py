"""Readings of the paper: the policies, families and noise that are simulated where it leaves a choice.

`readings.toml` has the two that every claim is judged under; `make_reading` makes one from a user's own settings.
"""

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from restive.errors import InputError, did_you_mean
from restive.policies import make_policy
from restive.problems import PROBLEMS

PAPER_POLICIES = (
    "egt", "wiql", "ucwhittle", "rma2b", "thompson-whittle", "random",
    "whittle-oracle", "omr-oracle", "greedy-oracle", "threshold-oracle",
)  # fmt: skip
FAMILIES = ("two-state", "ten-state", "wireless")
NONE: Mapping[str, Any] = {}
OWN = "own settings"
MEANING = {"policies": "settings", "families": "the id of a family", "noise": "a variance"}
ALLOWED: Mapping[str, Callable[[Any], bool]] = {
    "policies": lambda value: isinstance(value, str),
    "families": lambda value: isinstance(value, str),
    "noise": lambda value: isinstance(value, int | float) and value >= 0,
}


class Reading(NamedTuple):
    """One way to read the paper; the empty one has the defaults of all policies."""

    name: str = ""
    title: str = ""
    about: str = ""
    policies: Mapping[str, str] = NONE  # settings by policy
    families: Mapping[str, str] = NONE  # generators by family
    noise: Mapping[str, float] = NONE  # variances by family

    def specify(self, policy: str) -> str:
        """A policy with the settings of this reading, which its own settings may change.

        >>> Reading(policies={"egt": "authors"}).specify("egt:eta=0.5")
        'egt:eta=0.5,D=theory,p=3.5,unseen=first'
        """
        name, _, own = policy.partition(":")
        settings = self.policies.get(name)
        return policy if settings is None else _shorten(f"{name}:{settings},{own}")

    def suffix(self) -> str:
        """The end of the name of a folder for a user's own settings; nothing for a reading of `readings.toml`.

        >>> make_reading(["egt:p=2"]).suffix(), READINGS[0].suffix()
        ('-egt-p=2', '')
        """
        return re.sub(r"[^A-Za-z0-9.=]+", "-", f"-{self.about}") if self.name == OWN else ""

    def as_json(self) -> dict[str, Any]:
        """The reading as plain data."""
        return {key: dict(value) if isinstance(value, Mapping) else value for key, value in self._asdict().items()}


@cache
def _shorten(spec: str) -> str:
    """The text of a policy with those settings alone that differ from the defaults: equal policies have equal texts."""
    policy = make_policy(spec)
    defaults = type(policy)().settings()
    settings = [f"{name}={value}" for name, value in policy.settings().items() if value != defaults[name]]
    return ":".join([policy.name, ",".join(settings)][: 1 + bool(settings)])


def make_reading(settings: Sequence[str], file: Path | None = None) -> Reading:
    """A user's own reading, from a TOML file in the form of a table of `readings.toml` and from texts such as "egt:p=2".

    >>> make_reading(["egt:p=2", "egt:eta=0.5", "rma2b:authors"]).policies
    {'egt': 'p=2,eta=0.5', 'rma2b': 'authors'}
    """
    table = _read_file(file) if file else {}
    policies: dict[str, str] = dict(table.get("policies", {}))
    for text in settings:
        name, _, changed = text.partition(":")
        policies[name] = ",".join(filter(None, [policies.get(name), changed]))
    for name, changed in policies.items():
        _require(name, PAPER_POLICIES, "policy of the paper's experiments")
        make_policy(f"{name}:{changed}")
    words = [f"{name}:{changed}" for name, changed in policies.items()]
    words += [f"{where}:{value}" for key in ("families", "noise") for where, value in table.get(key, {}).items()]
    return Reading(OWN, OWN, " ".join(words), policies, table.get("families", NONE), table.get("noise", NONE))


def _read_file(path: Path) -> dict[str, Any]:
    """The settings of a file, checked."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: cannot be read as TOML ({error}).") from None
    for key, values in table.items():
        _require(key, MEANING, "setting of a reading")
        if not isinstance(values, dict) or not all(map(ALLOWED[key], values.values())):
            raise InputError(f"{path}: {key} must be a table with {MEANING[key]} for each name.")
        for name, value in values.items():
            if key != "policies":
                _require(name, FAMILIES, "family of the paper's experiments")
            if key == "families":
                _require(value, PROBLEMS, "family of problems")
    return table


def _require(name: str, known: Sequence[str] | Mapping[str, Any], what: str) -> None:
    if name not in known:
        raise InputError(f"{name!r} is not a {what}; there are {', '.join(known)}{did_you_mean(name, known)}")


def _load_readings() -> tuple[Reading, ...]:
    tables = tomllib.loads(files("restive.paper").joinpath("readings.toml").read_text(encoding="utf-8"))
    return tuple(Reading(name, **table) for name, table in tables.items())


READINGS = _load_readings()
