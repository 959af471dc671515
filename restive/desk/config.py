"""The configuration of a program: states and rewards, policy, budget, rules and words, frozen and validated.

The config is the first event of a program's log. `rewards` are those of arriving in each state, or None if a reward is
reported with each outcome; `reward_range` is then the largest difference of two rewards, which some policies need.
`timezone`, `rhythm` and `first_due` name rounds and say when they are due, see `schedule`; decisions do not depend on them.
`states_are_outcomes`: the states of a round are also the next states of the round before. `columns`, `values`,
`cut_points` and `phone_country` say how tables are read, see `table_mapping`. With a `cost_unit`, such as km, acting on a
person costs an amount of its own, and the budget is an amount too.
A template has the words and defaults of a new program for an application domain, read from templates.toml.
"""

import math
import os
import re
import reprlib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import date
from importlib.resources import files
from pathlib import Path, PureWindowsPath
from typing import Any, cast

import numpy as np

from restive.api import types
from restive.contract import Shape
from restive.desk.display import check_display
from restive.desk.features import check_features, count_columns
from restive.desk.roster import JOINERS, MAX_ID, normalize_name
from restive.desk.schedule import Schedule, check_first_due, check_rhythm, check_timezone, word_for
from restive.desk.table_columns import ColumnNames
from restive.desk.table_mapping import (
    CutPoints,
    TableMapping,
    check_columns,
    check_cut_points,
    check_phone_country,
    check_values,
)
from restive.desk.table_schema import OUTCOMES, state_columns
from restive.errors import InputError, check_number, check_whole, did_you_mean
from restive.kernels.rng import MAX_SEED
from restive.policies import make_policy
from restive.policies.base import Learner
from restive.policies.belief import require_axes
from restive.problem import AT_MOST, EXACTLY
from restive.types import Floats

MAX_TITLE = 80
MAX_UNIT = 30
MAX_BUDGET, MAX_HORIZON, MAX_STATES = 10**9, 10**9, 1000
WHOLE = (("budget", 0, MAX_BUDGET), ("seed", 0, MAX_SEED), ("cool_down", 0, 10**6), ("keep", 0, 10**6))
NUMBERS = (
    ("control", 0.0, 0.999, "it must be the share of people in the control group, from 0 to below 1"),
    ("reward_range", 1e-12, 1e12, "it must be the largest difference of two rewards, above 0"),
)
NAME = "a name has 1 to 60 letters, digits, dots, dashes or underscores, the first a letter or digit"


@dataclass(frozen=True)
class Words:
    """The vocabulary of a program."""

    person: str = "person"
    people: str = "people"
    action: str = "an action"
    acted: str = "was acted on"
    verb: str = "act on"
    every: str = "round"
    reward_unit: str = "reward"


WORDS = tuple(each.name for each in fields(Words))


@dataclass(frozen=True)
class Config:
    """The settings of a program."""

    states: tuple[str, ...]
    rewards: tuple[float, ...] | None = None
    policy: str = "lagrange"
    shadow: str | None = None
    budget: int = 10
    spend: str = EXACTLY
    cost_unit: str = ""  # of what acting on a person costs; empty: everybody costs 1
    horizon: int | None = None
    seed: int = 0
    control: float = 0.1
    control_until: int | None = None  # the last round with a control group, which then joins the program
    cool_down: int = 0
    keep: int = 0
    shares: Mapping[str, float] = field(default_factory=dict)
    features: Mapping[str, Sequence[str]] = field(default_factory=dict)
    display: Sequence[str] = ()
    reward_range: float = 1.0
    pseudonyms: str | None = None
    template: str | None = None
    states_are_outcomes: bool = True
    title: str = ""  # shown instead of the technical name
    timezone: str = "UTC"
    rhythm: str | None = None  # None: by the word for the length of a round
    first_due: str | None = None  # None: the day of the first decision
    columns: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    cut_points: CutPoints | None = None
    phone_country: int | None = None
    words: Words = field(default_factory=Words)

    def __post_init__(self) -> None:
        object.__setattr__(self, "states", _states(self.states))
        object.__setattr__(self, "rewards", _rewards(self.rewards, self.states))
        object.__setattr__(self, "shares", _shares(self.shares))
        object.__setattr__(self, "features", check_features(self.features))
        object.__setattr__(self, "display", check_display(self.display))
        object.__setattr__(self, "cost_unit", _line("cost_unit", self.cost_unit, MAX_UNIT))
        self._check_personal_data()
        known = tuple(dict.fromkeys((*self.state_columns, *OUTCOMES)))
        object.__setattr__(self, "columns", check_columns(self.columns, known))
        object.__setattr__(self, "values", check_values(self.values, self.states))
        object.__setattr__(self, "cut_points", check_cut_points(self.cut_points, self.states))
        object.__setattr__(self, "phone_country", check_phone_country(self.phone_country))
        if self.spend not in (EXACTLY, AT_MOST):
            raise InputError(f"spend is {self.spend!r}; it must be {EXACTLY!r} or {AT_MOST!r}.", location="spend")
        for name, low, high in WHOLE:
            object.__setattr__(self, name, check_whole(name, getattr(self, name), low, high))
        object.__setattr__(self, "title", _line("title", self.title, MAX_TITLE))
        object.__setattr__(self, "timezone", check_timezone(self.timezone))
        object.__setattr__(self, "rhythm", check_rhythm(self.rhythm, self.words.every))
        object.__setattr__(self, "words", replace(self.words, every=word_for(str(self.rhythm), self.words.every)))
        object.__setattr__(self, "first_due", check_first_due(self.first_due))
        if not isinstance(self.states_are_outcomes, bool):
            given = reprlib.repr(self.states_are_outcomes)
            raise InputError(
                f"states_are_outcomes is {given}; it must be true or false.", location="states_are_outcomes"
            )
        if self.horizon is not None:
            object.__setattr__(self, "horizon", check_whole("horizon", self.horizon, 1, MAX_HORIZON))
        self._check_waiting_list()
        for name, least, most, must in NUMBERS:
            object.__setattr__(self, name, check_number(name, getattr(self, name), must, least, most))
        for spec in (self.policy,) if self.shadow is None else (self.policy, self.shadow):
            check_belief(make_learner(spec), self.shape(1, 1))

    def _check_waiting_list(self) -> None:
        """Refuse a last round of the control group that is no round, or without a control group."""
        if self.control_until is None:
            return
        object.__setattr__(self, "control_until", check_whole("control_until", self.control_until, 1, MAX_HORIZON))
        if not self.control:
            raise InputError("control_until needs a control group; control is 0.", location="control_until")

    def has_control(self, round_: int) -> bool:
        """Whether the control group is kept off the list of a round; later it can be on it like everybody."""
        return self.control_until is None or round_ <= self.control_until

    def _check_personal_data(self) -> None:
        """Refuse display columns that are features as well, or that a store of pseudonyms would hold."""
        both = [name for name in self.display if name in self.features]
        if both:
            raise InputError(f"{both[0]} is a feature; a display column needs a name of its own.", location="display")
        if self.display and self.pseudonyms is not None:
            raise InputError(
                "A program with pseudonyms has no display columns: they would store who the people are.",
                location="display",
            )

    @property
    def state_columns(self) -> ColumnNames:
        """The columns of a table of states."""
        return state_columns(self.features, self.display, bool(self.cost_unit))

    @property
    def mapping(self) -> TableMapping:
        """How tables are read."""
        return TableMapping(self.columns, self.values, self.cut_points, self.phone_country)

    def schedule(self, first_round: str | None = None) -> Schedule:
        """When rounds are due; `first_round` is the due date of the first one, if it is decided."""
        first = self.first_due or first_round
        return Schedule(self.timezone, str(self.rhythm), None if first is None else date.fromisoformat(first))

    def read_as(self, given: Mapping[str, Any]) -> "Config":
        """The config with some settings of the mapping; headers and texts are added to those that are known."""
        settings = {name: value for name, value in given.items() if value is not None or name not in ADDED}
        for name in ADDED:
            if isinstance(settings.get(name), Mapping):
                settings[name] = {**getattr(self, name), **settings[name]}
        return self.changed(settings) if settings else self

    def shape(self, agents: int, budget: int | None = None, features: Floats | None = None) -> Shape:
        """The shape that a policy gets: one run of so many agents; features [N, F] are unknown unless given."""
        columns = count_columns(self.features)
        known = np.full((agents, columns), np.nan) if features is None else features
        span = self.reward_range if self.rewards is None else max(self.rewards) - min(self.rewards)
        budget = self.budget if budget is None else budget
        wanted = budget if self.cost_unit else min(budget, agents)
        sizes, given = (1, agents, len(self.states), wanted), known[None] if columns else None
        return Shape(*sizes, self.horizon, np.array([float(span)]), features=given, spend=self.spend)

    def as_json(self) -> types.Config:
        """The config as plain data, which `from_json` reads."""
        rewards = None if self.rewards is None else list(self.rewards)
        features = {name: list(categories) for name, categories in self.features.items()}
        plain = asdict(self) | {"states": list(self.states), "rewards": rewards, "shares": dict(self.shares)}
        plain |= {"features": features, "display": list(self.display)}
        if self.cut_points is not None:
            plain["cut_points"]["at"] = list(self.cut_points.at)
        return cast("types.Config", plain)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "Config":
        """A config from plain data; missing settings get their defaults, unknown ones are refused."""
        known = {each.name for each in fields(cls)}
        if unknown := set(record) - known:
            raise InputError(f"A config has no {min(unknown)!r}; it has {', '.join(sorted(known))}.")
        given = dict(record)
        if "words" in given:
            given["words"] = _words(given["words"])
        if "states" not in given:
            raise InputError("A config needs states: their names, the worst first.")
        return cls(**given)

    def changed(self, settings: Mapping[str, Any]) -> "Config":
        """The config with some settings changed; the others must stay as they were in past rounds."""
        for name in settings:
            if name not in CHANGEABLE:
                raise InputError(f"{name!r} cannot be changed in a running program; {', '.join(CHANGEABLE)} can.")
        config = replace(self, **settings)
        if bool(config.cost_unit) != bool(self.cost_unit):
            raise InputError(
                "Whether people have costs cannot be changed in a running program; the word for the unit can.",
                location="cost_unit",
            )
        return config


POLICY_FILE = re.compile(r"((?:[A-Za-z]:(?=[/\\]))?[^:]*\.py)(:.*)?", re.DOTALL)
ADDED = ("columns", "values")  # a table adds entries to these
MAPPING = (*ADDED, "cut_points", "phone_country")
CALENDAR = ("timezone", "rhythm", "first_due")
CHANGEABLE = (
    *("budget", "spend", "cost_unit", "cool_down", "keep", "shares", "display", "states_are_outcomes", "title"),
    *CALENDAR,
    *MAPPING,
)


def _line(name: str, given: object, longest: int) -> str:
    """A setting that is one line of text, validated, without surrounding blanks."""
    text = given.strip() if isinstance(given, str) else None
    if text is None or len(text) > longest or not text.isprintable():
        raise InputError(
            f"{name} is {reprlib.repr(given)}; it must be one line of at most {longest} characters.", location=name
        )
    return text


def policy_label(spec: str) -> str:
    """The policy as it is shown: a policy file without its folder.

    >>> policy_label("lagrange:explore=0.1"), policy_label("/home/ann/mine.py:depth=2")
    ('lagrange:explore=0.1', 'mine.py:depth=2')
    """
    found = POLICY_FILE.fullmatch(spec)
    return spec if found is None else PureWindowsPath(found[1]).name + (found[2] or "")  # splits at both slashes


def make_learner(spec: str) -> Learner[Any]:
    """The policy of that name and settings; oracles are refused, because the model of a real program is unknown."""
    try:
        policy = make_policy(spec)
    except InputError as error:
        file = Path(str(spec).partition(":")[0])
        if file.suffix != ".py" or os.sep not in error.message:
            raise
        # Pages show the message, so it must not contain a path of the server's machine.
        reason = type(error.__cause__).__name__ if error.__cause__ else "its settings are not valid"
        raise InputError(f"{file.name}: the policy cannot be loaded ({reason}).", location=file) from error
    if not isinstance(policy, Learner):
        raise InputError(f"{policy.name} is an oracle, which needs the true model; use a learner.")
    return policy


def check_name(name: str) -> str:
    """Validate the name of a program."""
    plain = name.replace(".", "").replace("-", "").replace("_", "")
    if not (0 < len(name) <= 60 and plain.isalnum() and name[0].isalnum()):
        raise InputError(f"The program's name is {name!r}; {NAME}.")
    return name


def check_belief(policy: Learner[Any], shape: Shape) -> None:
    """Refuse a policy whose belief cannot be stored."""
    try:
        require_axes(policy, shape)
        policy.start(shape)
    except InputError:
        raise
    except Exception as error:  # a user's own policy may raise anything
        raise InputError(f"{policy.name}: its belief cannot be stored ({type(error).__name__}: {error}).") from None


def parse_rewards(text: str) -> list[float] | None:
    """The reward of each state from a text such as 0,1; None from `reported`.

    >>> parse_rewards("0, 2.5"), parse_rewards("reported")
    ([0.0, 2.5], None)
    """
    if text == "reported":
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"rewards is {text!r}; give a number for each state, such as 0,1, or `reported`.") from None


def parse_shares(texts: Sequence[str]) -> dict[str, float]:
    """The minimum share of each group from texts such as north=0.3.

    >>> parse_shares(["north=0.3", "south=0.2"])
    {'north': 0.3, 'south': 0.2}
    """
    shares = {}
    for text in texts:
        group, _, share = text.rpartition("=")
        try:
            shares[group] = float(share)
        except ValueError:
            group = ""
        if not group:
            raise InputError(f"share is {text!r}; write GROUP=SHARE, such as north=0.3, with a decimal point.")
    return shares


def parse_words(texts: Sequence[str]) -> dict[str, str]:
    """The words of a program from texts such as person=patient.

    >>> parse_words(["person=patient", "action=a call"])
    {'person': 'patient', 'action': 'a call'}
    """
    words = {}
    for text in texts:
        name, equals, word = text.partition("=")
        if not equals or not word or name not in WORDS:
            raise InputError(f"word is {text!r}; write person=patient, or similar for {', '.join(WORDS[1:])}.")
        words[name] = word
    return words


def _words(given: object) -> Words:
    if isinstance(given, Words):
        return given
    if not isinstance(given, Mapping) or set(given) - set(WORDS) or not all(isinstance(v, str) for v in given.values()):
        raise InputError(f"words is {reprlib.repr(given)}; it must give texts for {', '.join(WORDS)}.")
    return Words(**given)


def _states(given: object) -> tuple[str, ...]:
    texts = given if isinstance(given, list | tuple) else ()
    sound = all(isinstance(text, str) and text.strip() == text for text in texts)
    names = tuple(map(normalize_name, texts)) if sound else ()
    different = len({name.lower() for name in names}) == len(names)
    if not 2 <= len(names) <= MAX_STATES or not different or not all(map(_is_name, names)):
        raise InputError(
            f"states is {reprlib.repr(given)}; give 2 to {MAX_STATES} different names, the worst first, each of 1 to "
            f"{MAX_ID} characters."
        )
    return names


def _is_name(name: str) -> bool:
    """Whether a normalized name is short and has no control characters."""
    return 0 < len(name) <= MAX_ID and all(letter.isprintable() or letter in JOINERS for letter in name)


def _rewards(given: object, states: tuple[str, ...]) -> tuple[float, ...] | None:
    if given is None:
        return None
    values = tuple(given) if isinstance(given, list | tuple | np.ndarray) else ()
    if len(values) != len(states):
        raise InputError(
            f"rewards is {reprlib.repr(given)}; give {len(states)} numbers, one for each state, or none at all."
        )
    must = "it must be a finite number"
    return tuple(
        check_number(f"the reward of {state}", value, must, -1e100, 1e100)
        for state, value in zip(states, values, strict=True)
    )


def _shares(given: object) -> dict[str, float]:
    if not isinstance(given, Mapping):
        raise InputError(f"shares is {reprlib.repr(given)}; it must give the minimum share of each group.")
    must = "it must lie between 0 and 1"
    shares = {
        normalize_name(str(group)): check_number(f"the share of {group}", value, must, 0, 1)
        for group, value in given.items()
    }
    if math.fsum(shares.values()) > 1 + 1e-9:
        raise InputError(f"The shares of groups add up to {math.fsum(shares.values()):g}; at most 1 is allowed.")
    return shares


def _read_templates() -> dict[str, types.Template]:
    tables = tomllib.loads(files("restive.desk").joinpath("templates.toml").read_text(encoding="utf-8"))
    usual = {"groups": [], "budget": 20, "control": 0.1, "cool_down": 2, "keep": 0, "horizon": None}
    return {name: cast("types.Template", {"name": name, **usual, **table}) for name, table in tables.items()}


TEMPLATES: Mapping[str, types.Template] = _read_templates()


def find_template(name: str) -> types.Template:
    """The template of that name; an unknown name is refused with the most similar one.

    >>> find_template("pharmacy")["states"]
    ['silent', 'occasional', 'regular', 'frequent']
    """
    if name not in TEMPLATES:
        guess = did_you_mean(name.lower(), TEMPLATES)
        raise InputError(f"There is no template {name!r}; there are {', '.join(TEMPLATES)}{guess}")
    return TEMPLATES[name]
