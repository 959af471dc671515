"""A program at a glance as the API answers it: `restive.desk.status` as models, without what belongs to a machine."""

from pydantic import Field

from restive.server.answers import Answer, Words


class People(Answer):
    """How many people there are, and what became of the others."""

    active: int
    left: int
    erased: int
    new: int = Field(description="Joined with the last round, if it was not the first.")
    control: int = Field(description="Of the active, those who are never treated.")


class RoundRow(Answer):
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


class Waiting(Answer):
    """A round that is not closed."""

    round: int
    missing: int = Field(description="People whose outcome is missing.")
    decided: bool


class Lift(Answer):
    """What the program adds for each person and round, against the control group, with a 95% interval."""

    mean: float | None
    low: float | None
    high: float | None
    treated_mean: float | None
    control_mean: float | None
    treated: int
    control: int
    extra: float | None = Field(description="Reward added in all.")
    extra_low: float | None
    extra_high: float | None
    sentence: str


class Band(Answer):
    """A curve with its 95% band, a number for each round."""

    mean: list[float | None]
    error: list[float | None]
    low: list[float | None]
    high: list[float | None]


class LiftCurve(Answer):
    """Rewards of both sides, and their difference, by round."""

    treated: Band
    control: Band
    lift: Band
    first: int = Field(description="The number of the first round.")


class Shadow(Answer):
    """The shadow against the policy."""

    policy_mean: float | None
    shadow_mean: float | None
    mean: float | None = Field(description="Shadow minus policy.")
    low: float | None
    high: float | None
    overlap: float | None
    unsupported: float | None
    rounds: int
    effective: float | None
    sentence: str


class Known(Answer):
    """What the policy believes of acting in one state."""

    state: str
    people: int
    benefit: float | None
    spread: float | None
    helped: int


class Status(Answer):
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
    caution: str = Field(description="Why the lift is not to be relied on yet.")
    shadow_policy: str | None
    shadow: Shadow | None
    learned: list[Known]
    ahead: bool = Field(description="Whether benefits count all rounds to come, not the next one alone.")
    horizon: int | None
    steps: list[str] = Field(description="What to do next, a sentence each.")
    version: str
    actions: int
    budget_used: float | None
    extra_per_action: list[float | None] | None
