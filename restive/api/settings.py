"""The settings that a caller gives, as typed dictionaries: of a new program, of a change, and of how a table is read."""

from collections.abc import Mapping
from typing import TypedDict

from restive.api.types import CutPoints


class TableReading(TypedDict, total=False):
    """How the table of a request is read; what is given is remembered, and added to what is known."""

    columns: Mapping[str, str]
    values: Mapping[str, str]
    cut_points: CutPoints | None
    phone_country: int | None


class NewProgram(TableReading, total=False):
    """The settings of a new program; without a template, `states` is required."""

    states: list[str]
    rewards: list[float]
    policy: str
    shadow: str
    budget: int
    spend: str
    cost_unit: str
    horizon: int
    seed: int
    control: float
    control_until: int | None
    cool_down: int
    keep: int
    shares: dict[str, float]
    features: dict[str, list[str]]
    display: list[str]
    reward_range: float
    pseudonyms: bool
    states_are_outcomes: bool
    title: str
    timezone: str
    rhythm: str
    first_due: str
    words: dict[str, str]


class Changes(TableReading, total=False):
    """The settings that can be changed in a running program."""

    budget: int
    spend: str
    cost_unit: str
    cool_down: int
    keep: int
    shares: dict[str, float]
    display: list[str]
    states_are_outcomes: bool
    title: str
    timezone: str
    rhythm: str
    first_due: str | None
