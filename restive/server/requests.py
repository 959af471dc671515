"""Bodies of JSON that a request may bring, as the API's document says it.

Models are strict: what they do not know they refuse, so that a slip of the pen (`dryrun`) never records anything. Rows
are described here and nowhere built: a table of many rows goes to the desk as columns, see `restive.server.uploads`.
"""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SkipValidation

from restive.desk.config import MAX_BUDGET, MAX_HORIZON, MAX_STATES
from restive.desk.table_schema import MAX_ID
from restive.kernels.rng import MAX_SEED

MAX_ROUND = 10**9
MAX_ENTRIES = 1000  # of what is listed in settings
MAX_REFUSED = 100  # ids that are reported one by one


class Strict(BaseModel):
    """A body: exactly these fields, of exactly these types."""

    model_config = ConfigDict(extra="forbid", strict=True)


Text = Annotated[str, Field(min_length=1, max_length=MAX_ID)]
Id = Annotated[Text | int, Field(description="The id of a person, a text or a whole number.", examples=["ann"])]


def _bound_ids(given: object) -> object:
    """Refuse many wrong ids at once; the checker makes two errors of each, which is for a few."""
    if isinstance(given, list):
        wrong = [place for place, each in enumerate(given, 1) if not _is_id(each)]
        if len(wrong) > MAX_REFUSED:
            text = f"a text of 1 to {MAX_ID} characters or a whole number"
            raise ValueError(f"{len(wrong)} of its entries, the first at place {wrong[0]}, are no ids; an id is {text}")
    return given


def _is_id(given: object) -> bool:
    return type(given) is int or (isinstance(given, str) and 0 < len(given) <= MAX_ID)


def _bound_entries(given: object) -> object:
    """Refuse what is too long before each entry is looked at."""
    if isinstance(given, list | dict) and len(given) > MAX_ENTRIES:
        raise ValueError(f"it has {len(given)} entries; at most {MAX_ENTRIES} may be")
    return given


Ids = Annotated[list[Id], BeforeValidator(_bound_ids)]
FEW = BeforeValidator(_bound_entries)
State = Annotated[
    str | int | None,
    Field(description="The name of a state, or its number from 0; null: not known now.", examples=["low"]),
]
Group = Annotated[Text | None, Field(description="The group that shares go by, such as a region.", examples=["north"])]
Done = Annotated[bool | None, Field(description="Whether it was done; null or left out: as the list advised.")]
Reward = Annotated[float | None, Field(description="What came of it, where rewards are reported with outcomes.")]
OfRound = Annotated[int | None, Field(ge=1, le=MAX_ROUND, description="The round that this row is about.")]


class StateRow(Strict):
    """A person and the state that they are in now."""

    agent: Id
    state: State
    group: Group = None


class StateColumns(Strict):
    """The same as rows of agent, state and group, a list for each column; the quicker form for many people."""

    agent: list[Id]
    state: list[State]
    group: list[Group] = Field(default_factory=list)


class OutcomeRow(Strict):
    """What was done for a person in a round, and what came of it; done, next_state or reward is there."""

    agent: Id
    done: Done = None
    next_state: State = None
    reward: Reward = None
    round: OfRound = None


class OutcomeColumns(Strict):
    """The same as rows of outcomes, a list for each column; the quicker form for many people."""

    agent: list[Id]
    done: list[Done] = Field(default_factory=list)
    next_state: list[State] = Field(default_factory=list)
    reward: list[Reward] = Field(default_factory=list)
    round: list[OfRound] = Field(default_factory=list)


Budget = Annotated[int, Field(ge=0, le=MAX_BUDGET, description="How many people can be acted on in a round.")]
Round = Annotated[int, Field(ge=1, le=MAX_ROUND, description="The number of a round, from 1.")]
DRY = "Only say what would come of it; nothing is recorded, and an Idempotency-Key is not looked at."
AGAIN = "Decide another round though nothing came in since the last, which had the same states."
NEW = "Let in people whose ids differ from known ones only by zeros in front or by capitals."
NUMBER = "The number that the round must have; one that is decided already is refused."
CORRECT = "Let rows replace what is on record."


class Decide(Strict):
    """What a round is decided by; all of it may be left out."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"states": [{"agent": "ann", "state": "low"}, {"agent": "ben", "state": "high"}], "budget": 1}]
        }
    )

    states: SkipValidation[list[StateRow] | StateColumns | None] = Field(
        None, description="Who is in which state now; left out: as last known."
    )
    budget: Budget | None = Field(None, description="How many can be acted on; left out: as the program has it.")
    must: Ids | None = Field(None, description="People who are on the list in any case.")
    never: Ids | None = Field(None, description="People who are not on it in this round.")
    round: Round | None = Field(None, description=NUMBER)
    again: bool = Field(False, description=AGAIN)
    new: bool = Field(False, description=NEW)
    dry_run: bool = Field(False, description=DRY)


class Learn(Strict):
    """What happened in a round."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"outcomes": [{"agent": "ann", "done": True, "next_state": "high"}], "round": 1}]
        }
    )

    outcomes: SkipValidation[list[OutcomeRow] | OutcomeColumns] = Field(
        description="A row for each person reported_at of."
    )
    round: Round | None = Field(None, description="The round that the outcomes are of; left out: the last one.")
    correct: bool = Field(False, description=CORRECT)
    dry_run: bool = Field(False, description=DRY)


class Mend(Strict):
    """States of a round as they should have been recorded."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"states": [{"agent": "ann", "state": "high"}]}]})

    states: SkipValidation[list[StateRow] | StateColumns] = Field(description="The people whose state was wrong.")
    dry_run: bool = Field(False, description=DRY)


class Leave(Strict):
    """People who are gone; who appears again in a table of states is back."""

    agents: Ids = Field(min_length=1, description="Whom.", examples=[["ann"]])
    dry_run: bool = Field(False, description=DRY)


class Erase(Strict):
    """People whose names are to be forgotten for good."""

    agents: Ids = Field(
        description="Whom. An empty list takes out of the store's files what earlier erasures may have left there.",
        examples=[["ann"]],
    )
    dry_run: bool = Field(False, description=DRY)


class GivenWords(Strict):
    """How a team speaks of its program, as far as it is not as the template has it."""

    person: Text | None = Field(None, examples=["patient"])
    people: Text | None = Field(None, examples=["patients"])
    action: Text | None = Field(None, examples=["a call"])
    acted: Text | None = Field(None, examples=["was called"])
    verb: Text | None = Field(None, examples=["call"])
    every: Text | None = Field(None, examples=["week"])
    reward_unit: Text | None = Field(None, examples=["visits a week"])


Share = Annotated[float, Field(ge=0, le=1)]
Shares = Annotated[
    dict[Annotated[str, Field(max_length=MAX_ID)], Share],
    FEW,
    Field(description="The least share of the list that each group gets; they add up to 1 at most."),
]
Rounds = Annotated[int, Field(ge=0, le=10**6)]
COOL_DOWN = "Nobody is acted on twice in so many rounds."
KEEP = "For how many rounds a state that was not reported is carried on."


class Create(Strict):
    """A new program: a template and what is to be other than there, or states and settings of its own."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "shops", "template": "pharmacy", "budget": 20}]})

    name: str = Field(
        min_length=1, max_length=60, pattern=r"^\w[\w.\-]*$", description="Letters, digits, dots, dashes, underscores."
    )
    template: str | None = Field(None, max_length=60, description="One of those at /api/v1/templates.")
    states: Annotated[list[str], FEW] | None = Field(
        None, min_length=2, max_length=MAX_STATES, description="The worst first."
    )
    rewards: Annotated[list[float], FEW] | None = Field(
        None, description="What each state is worth; null or left out: rewards are reported with outcomes."
    )
    policy: str | None = Field(None, max_length=500, description="One of those at /api/v1/policies, with settings.")
    shadow: str | None = Field(None, max_length=500, description="A second policy, only to compare with.")
    budget: Budget | None = None
    horizon: int | None = Field(None, ge=1, le=MAX_HORIZON, description="How many rounds there will be in all.")
    seed: int | None = Field(None, ge=0, le=MAX_SEED, description="Of all luck; left out: made of the name.")
    control: float | None = Field(None, ge=0, le=0.999, description="The share of people who are never treated.")
    cool_down: Rounds | None = Field(None, description=COOL_DOWN)
    keep: Rounds | None = Field(None, description=KEEP)
    shares: Shares | None = None
    reward_range: float | None = Field(
        None, ge=1e-12, le=1e12, description="How far apart two reported rewards can be."
    )
    pseudonyms: bool = Field(False, description="Keep names as codes, under a key that stays on the server's machine.")
    words: Annotated[GivenWords, FEW] | None = None


def _describe_change(schema: dict[str, Any]) -> None:
    schema |= {"minProperties": 1, "examples": [{"budget": 25}]}
    for each in schema["properties"].values():
        each.pop("default", None)  # what is left out stays as it is


class Change(Strict):
    """Settings that hold from now on; at least one."""

    model_config = ConfigDict(json_schema_extra=_describe_change)

    budget: Budget = 0
    cool_down: Rounds = Field(0, description=COOL_DOWN)
    keep: Rounds = Field(0, description=KEEP)
    shares: Shares = Field(default_factory=dict)
