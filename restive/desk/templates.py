"""Templates: the words and defaults of a new program for an application domain, read from templates.toml.

A template names the states from worst to best with their rewards, the action, the people and the length of a round.
`problem` is the family of simulated people with the same states and rewards.
"""

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from restive.errors import InputError


@dataclass(frozen=True)
class Template:
    """The words and defaults of one domain; `states`, `rewards` and `signs` go together, worst first."""

    name: str
    title: str
    about: str
    states: tuple[str, ...]
    rewards: tuple[float, ...]
    signs: tuple[str, ...]  # how a team recognises each state
    reward_unit: str  # "orders a week": follows a number
    action: str  # "a coupon"
    acted: str  # "got a coupon": follows a person
    verb: str  # "give a coupon to": is followed by people
    person: str
    people: str
    every: str  # the length of a round: "week", "month"
    problem: str
    groups: tuple[str, ...] = ()
    budget: int = 20  # actions per round
    control: float = 0.1  # the share of people in the control group
    cool_down: int = 2  # nobody is chosen twice in so many rounds
    keep: int = 2  # rounds for which a missing state is carried over
    horizon: int | None = None  # the number of rounds in all, if it is known


def _read_templates() -> dict[str, Template]:
    tables = tomllib.loads(files("restive.desk").joinpath("templates.toml").read_text(encoding="utf-8"))
    return {name: _make_template(name, table) for name, table in tables.items()}


def _make_template(name: str, table: Mapping[str, Any]) -> Template:
    settings: dict[str, Any] = {}
    for key, value in table.items():
        settings[key] = tuple(value) if isinstance(value, list) else value
    return Template(name=name, **settings)


TEMPLATES: Mapping[str, Template] = _read_templates()


def find_template(name: str) -> Template:
    """The template of that name; an unknown name is refused with the most similar one.

    >>> find_template("pharmacy").states
    ('silent', 'occasional', 'regular', 'frequent')
    """
    if name not in TEMPLATES:
        near = difflib.get_close_matches(name.lower(), TEMPLATES, n=1)
        guess = f"; did you mean {near[0]!r}?" if near else "."
        raise InputError(f"There is no template {name!r}; there are {', '.join(TEMPLATES)}{guess}")
    return TEMPLATES[name]
