"""A program at a glance, as the client hands it on: people, rounds, what it adds, what was learned, what to do."""

from typing import TypedDict

from restive.client.answers import Words


class People(TypedDict):
    """How many people there are, and what became of the others."""

    active: int
    left: int
    erased: int
    new: int
    control: int


class RoundRow(TypedDict):
    """One round in a line; means are for each person."""

    round: int
    at: str
    present: int
    budget: int
    advised: int
    done: int
    failed: int
    outcomes_in: int
    unasked: int
    explored: int
    reward_mean: float | None
    control_mean: float | None
    expected_each: float | None


class Waiting(TypedDict):
    """A round that is not closed, and how many people it waits to hear of."""

    round: int
    missing: int
    decided: bool


class Lift(TypedDict):
    """What the program adds for each person and round, against the control group, with a 95% interval."""

    mean: float | None
    low: float | None
    high: float | None
    treated_mean: float | None
    control_mean: float | None
    treated: int
    control: int
    extra: float | None
    extra_low: float | None
    extra_high: float | None
    sentence: str


class Band(TypedDict):
    """A curve with its 95% band, a number for each round."""

    mean: list[float | None]
    error: list[float | None]
    low: list[float | None]
    high: list[float | None]


class LiftCurve(TypedDict):
    """Rewards of both sides, and their difference, from round `first` on."""

    treated: Band
    control: Band
    lift: Band
    first: int


class Shadow(TypedDict):
    """The shadow against the policy."""

    policy_mean: float | None
    shadow_mean: float | None
    mean: float | None
    low: float | None
    high: float | None
    overlap: float | None
    unsupported: float | None
    rounds: int
    effective: float | None
    sentence: str


class Known(TypedDict):
    """What the policy believes of acting in one state."""

    state: str
    people: int
    benefit: float | None
    spread: float | None
    helped: int


class Status(TypedDict):
    """A program at a glance."""

    name: str
    title: str
    policy: str
    seed: int
    people: People
    words: Words
    rounds: list[RoundRow]
    waiting: list[Waiting]
    lift: Lift | None
    curve: LiftCurve | None
    caution: str
    shadow_policy: str | None
    shadow: Shadow | None
    learned: list[Known]
    ahead: bool
    horizon: int | None
    steps: list[str]
    version: str
    actions: int
    budget_used: float | None
    extra_per_action: list[float | None] | None
