"""What the API answers about rounds and people: the models of `restive.server.answers`, continued."""

from typing import Literal

from pydantic import Field

from restive.server.answers import NEXT, RECORDED, Answer


class ShadowChoice(Answer):
    """What the shadow would have done in a round."""

    policy: str
    common: int = Field(description="How many people both would have chosen.")
    benefit: float | None = Field(description="What was expected of its list.")


class Listed(Answer):
    """Somebody on a list, or next in line."""

    round: int
    rank: int = Field(description="The place on the list, or among the spares.")
    agent: str
    group: str | None
    list: Literal["chosen", "must", "spare"]
    state_now: str
    benefit: float | None = Field(description="What acting is expected to add, in the program's unit.")
    error: float | None = Field(description="The standard error of that.")
    exploration: bool = Field(description="Whether this person was drawn by lot, to learn.")
    probability: float = Field(description="The probability that this person had of being chosen.")
    priority: float | None
    margin: float | None = Field(description="How far the priority lies above that of the first who was not chosen.")
    reason: str = Field(description="Why, in a sentence or two.")


class Decision(Answer):
    """A decided round."""

    program: str
    round: int
    decided_at: str
    budget: int
    present: int = Field(description="People with a state in this round.")
    carried_over: int = Field(description="Of these, those whose state is an older one.")
    left_out: dict[str, int] = Field(description="How many could not be chosen, by reason.")
    policy: str
    explored: int = Field(description="Of those on the list, how many were drawn by lot.")
    expected_benefit: float | None
    prices: dict[str, float | None] = Field(description="What each rule costs, in expected benefit.")
    shadow: ShadowChoice | None
    notes: list[str] = Field(description="Remarks on what was taken in, a sentence each.")


class Decided(Decision):
    """A decided round with the first rows of its list."""

    people: list[Listed] = Field(description="The list, then the spares; the first `limit` of them.")
    next: str | None = Field(description="The address of the rest of the list, null where there is none.")
    recorded: bool = Field(description=RECORDED)


class RoundLine(Answer):
    """A round in short."""

    round: int
    at: str = Field(description="When it was decided, or opened if it was not.")
    budget: int
    present: int
    kept: int
    decided: bool
    cancelled: bool
    advised: int
    explored: int
    expected_benefit: float | None
    done: int = Field(description="Of those on the list, those it was done for.")
    failed: int = Field(description="On the list, but reported as not done.")
    unasked: int = Field(description="Done, though not on the list.")
    outcomes: int = Field(description="People whose outcome is in.")
    treated_seen: int
    treated_reward: float
    control_seen: int
    control_reward: float


class RoundLines(Answer):
    """Rounds, the first first."""

    items: list[RoundLine]
    next: str | None = Field(description=NEXT)


class RoundDetail(RoundLine):
    """A round, and how it was decided."""

    decision: Decision | None = Field(description="Null as long as it is only open.")


class Listing(Answer):
    """A part of the list of a round."""

    items: list[Listed]
    next: str | None = Field(description=NEXT)


class Learned(Answer):
    """What became of a table of outcomes."""

    rounds: list[int] = Field(description="The rounds it was about.")
    new: int
    corrected: int
    repeated: int = Field(description="Rows that said what was on record already.")
    waiting: int = Field(description="People of these rounds of whom no outcome is known yet.")
    notes: list[str]
    recorded: bool = Field(description=RECORDED)


class StatesCorrected(Answer):
    """How many states were corrected."""

    corrected: int
    recorded: bool = Field(description=RECORDED)


class Counted(Answer):
    """How many people left or were erased."""

    count: int
    recorded: bool = Field(description=RECORDED)


class Cancelled(Answer):
    """A round that nobody acts by."""

    listed: int = Field(description="How many were on its list.")
    recorded: bool = Field(description=RECORDED)


class Person(Answer):
    """Somebody in a program."""

    number: int = Field(description="From 0, in the order of joining.")
    agent: str
    group: str | None
    active: bool = Field(description="False: left.")
    control: bool = Field(description="In the control group, which is never treated.")
    state: str | None = Field(description="As last known.")
    rounds_seen: int
    reward_total: float


class PersonPage(Answer):
    """People of a program, in the order of joining."""

    items: list[Person]
    next: str | None = Field(description=NEXT)


class Past(Answer):
    """What happened to somebody in a round; what is not known is left out."""

    round: int
    at: str
    state: str | None = None
    chosen: bool | None = None
    probability: float | None = None
    note: str | None = None
    done: bool | None = None
    reward: float | None = None
    after: str | None = None


class History(Answer):
    """What happened to somebody, round by round."""

    items: list[Past]
    next: str | None = Field(description=NEXT)
