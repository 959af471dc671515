"""Request models of the API: JSON bodies and query strings.

All models forbid unknown fields, so that a typo such as `dryrun` is refused instead of recorded. Bodies are strict
about types. The rows of tables are described here but read as columns, see `restive.server.uploads`.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SkipValidation

from restive.desk.config import MAX_BUDGET, MAX_HORIZON, MAX_STATES, MAX_TITLE, MAX_UNIT
from restive.desk.roster import MAX_ID
from restive.desk.table_files import MAX_HEADER
from restive.desk.table_mapping import MAX_COUNTRY
from restive.kernels.rng import MAX_SEED

MAX_ROUND = 10**9
MAX_ENTRIES = 1000  # in lists and mappings of settings
MAX_PAGE = 1000  # items of a page
MAX_POSITION = 10**15


class Body(BaseModel):
    """A JSON body: exactly the declared fields, of exactly the declared types."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Query(BaseModel):
    """The parameters of a query string."""

    model_config = ConfigDict(extra="forbid")


def _check_ids(value: object) -> object:
    """Refuse a list with an invalid id; one error for the list, however many are invalid."""
    if isinstance(value, list):
        for position, each in enumerate(value, 1):
            if not (type(each) is int or (isinstance(each, str) and 0 < len(each) <= MAX_ID)):
                raise ValueError(f"item {position} must be a string of 1 to {MAX_ID} characters or an integer")
    return value


def _check_length(value: object) -> object:
    """Refuse a long list or mapping before its entries are validated."""
    if isinstance(value, list | dict) and len(value) > MAX_ENTRIES:
        raise ValueError(f"it has {len(value)} entries; the maximum is {MAX_ENTRIES}")
    return value


def _check_integer(value: object) -> object:
    """Accept only digits in a query string, not 1.0 or 1_000."""
    if isinstance(value, str) and not re.fullmatch(r"-?[0-9]{1,18}", value):
        raise ValueError("Input should be a valid integer")
    return value


def _check_boolean(value: object) -> object:
    """Accept only true and false in a query string, not yes or 1."""
    if isinstance(value, str) and value not in ("true", "false"):
        raise ValueError("Input should be true or false")
    return value


Text = Annotated[str, Field(min_length=1, max_length=MAX_ID)]
Id = Annotated[Text | int, Field(description="The id of a person, a string or an integer.", examples=["ann"])]
Ids = Annotated[list[str | int], BeforeValidator(_check_ids)]
SHORT = BeforeValidator(_check_length)
State = Annotated[
    str | int | None,
    Field(description="The name of a state or its number from 0; null: not known now.", examples=["low"]),
]
Group = Annotated[Text | None, Field(description="The group of the person, such as a region.", examples=["north"])]
Cost = Annotated[
    float | None, Field(gt=0, description="What acting on the person costs; null or absent: as last known.")
]
FeatureCells = Annotated[
    dict[str, str | float | None] | None,
    Field(description="The features of the program, by name; those of known people stay.", examples=[{"age": 40}]),
]
DisplayCells = Annotated[
    dict[str, str | float | None] | None,
    Field(
        description="The display columns of the program, by name; the latest cell counts.", examples=[{"name": "Ann"}]
    ),
]
Done = Annotated[bool | None, Field(description="Whether the action was done; null or absent: as on the list.")]
Reward = Annotated[float | None, Field(description="The reward, if rewards are reported with outcomes.")]
RowRound = Annotated[int | None, Field(ge=1, le=MAX_ROUND, description="The round that this row belongs to.")]


class StateRow(Body):
    """A person and their current state."""

    agent: Id
    state: State
    group: Group = None
    cost: Cost = None
    features: FeatureCells = None
    display: DisplayCells = None


class StateColumns(Body):
    """The rows of agent, state, group, cost, features and display as columns, which is faster for many people."""

    agent: list[Id]
    state: list[State]
    group: list[Group] = Field(default_factory=list)
    cost: list[Cost] = Field(default_factory=list)
    features: list[FeatureCells] = Field(default_factory=list)
    display: list[DisplayCells] = Field(default_factory=list)


class OutcomeRow(Body):
    """The outcome of a person in a round; one of done, next_state and reward is required."""

    agent: Id
    done: Done = None
    next_state: State = None
    reward: Reward = None
    round: RowRound = None


class OutcomeColumns(Body):
    """The rows of outcomes as columns, which is faster for many people."""

    agent: list[Id]
    done: list[Done] = Field(default_factory=list)
    next_state: list[State] = Field(default_factory=list)
    reward: list[Reward] = Field(default_factory=list)
    round: list[RowRound] = Field(default_factory=list)


INTEGER, BOOLEAN = BeforeValidator(_check_integer), BeforeValidator(_check_boolean)
Columns = Annotated[
    dict[str, Annotated[str, Field(max_length=MAX_HEADER)]],
    SHORT,
    Field(
        description="The header of each column that has another name in the table; empty: it is not read.",
        examples=[{"agent": "customer_id"}],
    ),
]
Values = Annotated[
    dict[Annotated[str, Field(max_length=MAX_ID)], Text],
    SHORT,
    Field(description="The state that each of some texts means.", examples=[{"aktiv": "high"}]),
]


class CutPointsBody(Body):
    """States by classes of a number: below the first limit, from one to below the next, from the last on."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"column": "days_since_order", "at": [30], "more_is": "worse"}]}
    )

    column: Annotated[str, Field(min_length=1, max_length=MAX_HEADER)]
    at: Annotated[list[float], SHORT] = Field(min_length=1, description="Ascending, one fewer than states.")
    more_is: Literal["worse", "better"]


PHONE_COUNTRY = "Ids are phone numbers of this calling code, if they look like it."
PhoneCountry = Annotated[int, Field(ge=1, le=MAX_COUNTRY, description=PHONE_COUNTRY)]


class ReadingBody(Body):
    """How the table is read; what is given is remembered."""

    columns: Columns | None = None
    values: Values | None = None
    cut_points: CutPointsBody | None = None
    phone_country: PhoneCountry | None = None


Pairs = Annotated[list[Annotated[str, Field(max_length=MAX_HEADER + MAX_ID)]], SHORT]


class ReadingQuery(Query):
    """How a table file is read; what is given is remembered."""

    sheet: str = Field("", max_length=MAX_ID, description="The sheet of a workbook; absent: the first.")
    columns: Pairs = Field(default_factory=list, description="Headers of columns, such as agent=customer_id.")
    values: Pairs = Field(default_factory=list, description="Texts that mean states, such as aktiv=high.")
    cut_points: str | None = Field(
        None, max_length=1000, description="States by a number, such as `days_since_order: 30, more is worse`."
    )
    phone_country: Annotated[PhoneCountry, INTEGER] | None = Field(None, description=PHONE_COUNTRY)


# Limits come before the validator: the OpenAPI document does not have them otherwise.
Budget = Annotated[
    int,
    Field(ge=0, le=MAX_BUDGET, description="The number of people who can be acted on in a round, or an amount."),
    INTEGER,
]
Round = Annotated[int, Field(ge=1, le=MAX_ROUND), INTEGER]
Limit = Annotated[int, Field(ge=1, le=MAX_PAGE, description="The maximum number of items."), INTEGER]
Position = Annotated[int, Field(ge=0, le=MAX_POSITION), INTEGER]
Flag = Annotated[bool, BOOLEAN]
COOL_DOWN = "The number of rounds in which a person is not chosen again."
STATES_ARE_OUTCOMES = "Whether the states of a round are also recorded as the outcomes of the round before."
TITLE = "What people call the program, on one line; empty: its name."
KEEP = "Rounds for which a state that is missing from a table is carried over; 0: these people are left out."


def make_example(**fields: Any) -> ConfigDict:
    """The config of a model whose documentation shows these fields as an example."""
    return ConfigDict(json_schema_extra={"examples": [fields]})


class DryRun(Query):
    """Whether to record."""

    dry_run: Flag = Field(
        False, description="Return the result without recording anything; an Idempotency-Key is ignored."
    )


class UndoQuery(DryRun):
    """What to undo."""

    event: Position | None = Field(
        None, description="The first event of the last request; refused if another request was the last."
    )


class DeleteQuery(DryRun):
    """The confirmation of a deletion."""

    confirm: str = Field(max_length=60, description="The name of the program again.", examples=["shops"])


class DryRunBody(Body, DryRun):
    """Whether to record."""


class UndoBody(Body, UndoQuery):
    """What to undo."""


class DecideSettings(DryRun):
    """The settings of a decision, in the query string or in a JSON body."""

    budget: Budget | None = Field(None, description="The budget of this round; absent: the program's.")
    must: Ids | None = Field(None, description="People who must be on the list.")
    never: Ids | None = Field(None, description="People who must not be on the list of this round.")
    round: Round | None = Field(
        None, description="The number that the round must have; a round that is already decided is refused."
    )
    again: Flag = Field(
        False,
        description="Decide another round although nothing was recorded since the last one, which had the same states.",
    )
    new: Flag = Field(
        False, description="Accept new people whose ids differ from known ones only in leading zeros or in case."
    )
    states_are_outcomes: Flag | None = Field(None, description=f"{STATES_ARE_OUTCOMES} Absent: as configured.")
    limit: Annotated[int, Field(ge=1, le=100_000), INTEGER] = Field(
        1000, description="The maximum number of rows of the list in the answer."
    )


class OutcomeSettings(DryRun):
    """The settings of outcomes, in the query string or in a JSON body."""

    round: Round | None = Field(
        None, description="The round that rows without one belong to; absent: the oldest that waits."
    )
    correct: Flag = Field(False, description="Replace recorded values by the given ones.")


class DecideBody(ReadingBody, DecideSettings):
    """The input of a decision; every field may be left out."""

    model_config = make_example(states=[{"agent": "ann", "state": "low"}, {"agent": "ben", "state": "high"}], budget=1)

    states: SkipValidation[list[StateRow] | StateColumns | None] = Field(
        None, description="The current states; absent: the last known ones."
    )


class OutcomesBody(ReadingBody, OutcomeSettings):
    """Outcomes to record."""

    model_config = make_example(outcomes=[{"agent": "ann", "done": True, "next_state": "high"}], round=1)

    outcomes: SkipValidation[list[OutcomeRow] | OutcomeColumns] = Field(description="One row per person.")


class CorrectStatesBody(Body, DryRun):
    """Corrected states of a round."""

    model_config = make_example(states=[{"agent": "ann", "state": "high"}])

    states: SkipValidation[list[StateRow] | StateColumns] = Field(description="The people whose state was wrong.")


class LeaveBody(Body, DryRun):
    """The people of a request."""

    agents: Ids = Field(min_length=1, description="The ids of the people.", examples=[["ann"]])


class EraseBody(Body, DryRun):
    """People whose names are erased for good."""

    agents: Ids = Field(
        description="The ids of the people. An empty list removes what earlier erasures left in the store's files.",
        examples=[["ann"]],
    )


class WordsBody(Body):
    """The vocabulary of a program, where it differs from the template's."""

    person: Text | None = Field(None, examples=["patient"])
    people: Text | None = Field(None, examples=["patients"])
    action: Text | None = Field(None, examples=["a call"])
    acted: Text | None = Field(None, examples=["was called"])
    verb: Text | None = Field(None, examples=["call"])
    every: Text | None = Field(None, examples=["week"])
    reward_unit: Text | None = Field(None, examples=["visits a week"])


Shares = Annotated[
    dict[Annotated[str, Field(max_length=MAX_ID)], Annotated[float, Field(ge=0, le=1)]],
    SHORT,
    Field(description="The minimum share of the list of each group; the sum is at most 1."),
]
Display = Annotated[
    list[Text],
    SHORT,
    Field(description="Columns of the states for lists and pages only, such as name and phone.", examples=[["name"]]),
]
Rounds = Annotated[int, Field(ge=0, le=10**6)]


Spend = Literal["exactly", "at most"]
COST_UNIT = "The unit of the costs of people and of the budget, such as km; empty: everybody costs 1."
SPEND = "Whether the budget is spent in any case, or only on people who are expected to gain."


TIMEZONE = "The time zone of dates and times that people see, such as Asia/Kolkata."
RHYTHM = "How often a round is due: day, week, two weeks, month, a number of days such as '10 days', or none."
FIRST_DUE = "The first due date, such as 2026-11-23; null: the day of the first decision."


class CreateBody(Body):
    """A new program: a template and the settings that differ from it, or states and settings of its own."""

    model_config = make_example(name="shops", template="pharmacy", budget=20)

    name: str = Field(
        min_length=1,
        max_length=60,
        pattern=r"^\w[\w.\-]*$",
        description="Letters, digits, dots, dashes and underscores; the first is a letter or digit.",
    )
    template: str | None = Field(None, max_length=60, description="A name from /api/v1/templates.")
    states: Annotated[list[str], SHORT] | None = Field(
        None, min_length=2, max_length=MAX_STATES, description="From worst to best."
    )
    rewards: Annotated[list[float], SHORT] | None = Field(
        None, description="The reward of each state; null or absent: rewards are reported with outcomes."
    )
    policy: str | None = Field(None, max_length=500, description="A name from /api/v1/policies, with settings.")
    shadow: str | None = Field(None, max_length=500, description="A second policy, which is only compared.")
    budget: Budget | None = None
    spend: Spend | None = Field(None, description=SPEND)
    cost_unit: str | None = Field(None, max_length=MAX_UNIT, description=COST_UNIT)
    horizon: int | None = Field(None, ge=1, le=MAX_HORIZON, description="The number of rounds in all.")
    seed: int | None = Field(
        None, ge=0, le=MAX_SEED, description="The seed of all random numbers; absent: derived from the name."
    )
    control: float | None = Field(None, ge=0, le=0.999, description="The share of people who are never treated.")
    control_until: int | None = Field(
        None, ge=1, le=MAX_HORIZON, description="The last round with a control group, which then joins the program."
    )
    cool_down: Rounds | None = Field(None, description=COOL_DOWN)
    keep: Rounds | None = Field(None, description=KEEP)
    shares: Shares | None = None
    features: Annotated[dict[str, list[str]], SHORT] | None = Field(
        None, description="Columns of the states that are known of people, with their categories, none for a number."
    )
    display: Display | None = None
    reward_range: float | None = Field(
        None, ge=1e-12, le=1e12, description="The largest difference between two reported rewards."
    )
    pseudonyms: bool = Field(
        False, description="Store pseudonyms instead of names; their key stays on the server's machine."
    )
    states_are_outcomes: bool | None = Field(None, description=STATES_ARE_OUTCOMES)
    title: str | None = Field(None, max_length=MAX_TITLE, description=TITLE)
    timezone: str | None = Field(None, max_length=60, description=TIMEZONE)
    rhythm: str | None = Field(None, max_length=60, description=f"{RHYTHM} Absent: by the word `every`.")
    first_due: str | None = Field(None, max_length=10, description=FIRST_DUE)
    columns: Columns | None = None
    values: Values | None = None
    cut_points: CutPointsBody | None = None
    phone_country: PhoneCountry | None = None
    words: Annotated[WordsBody, SHORT] | None = None


def _describe_change(schema: dict[str, Any]) -> None:
    schema |= {"minProperties": 1, "examples": [{"budget": 25}]}
    for each in schema["properties"].values():
        each.pop("default", None)  # an absent field stays as it is


class ChangeBody(Body):
    """Settings that apply from the next round on; at least one."""

    model_config = ConfigDict(json_schema_extra=_describe_change)

    budget: Budget = 0
    spend: Spend = Field("exactly", description=SPEND)
    cost_unit: str = Field("", max_length=MAX_UNIT, description=COST_UNIT)
    cool_down: Rounds = Field(0, description=COOL_DOWN)
    keep: Rounds = Field(0, description=KEEP)
    shares: Shares = Field(default_factory=dict)
    display: Display = Field(default_factory=list)
    states_are_outcomes: bool = Field(True, description=STATES_ARE_OUTCOMES)
    title: str = Field("", max_length=MAX_TITLE, description=TITLE)
    timezone: str = Field("UTC", max_length=60, description=TIMEZONE)
    rhythm: str = Field("none", max_length=60, description=RHYTHM)
    first_due: str | None = Field(None, max_length=10, description=FIRST_DUE)
    columns: Columns = Field(default_factory=dict)
    values: Values = Field(default_factory=dict)
    cut_points: CutPointsBody | None = None
    phone_country: PhoneCountry | None = None


class PageQuery(Query):
    """A page of a list."""

    after: Position = Field(0, description="The position after which the page begins, as in `next` of an answer.")
    limit: Limit = 100


class AuditQuery(Query):
    """A page of a list that begins with the newest item."""

    before: Annotated[int, Field(ge=1, le=MAX_POSITION), INTEGER] | None = Field(
        None, description="The number before which the page begins."
    )
    limit: Limit = 100


class PeopleQuery(PageQuery):
    """A page of people, all or some."""

    find: str = Field("", max_length=MAX_ID, description="A part of the id, ignoring case; empty: all people.")


class ListFileQuery(Query):
    """The columns of a list that is downloaded."""

    columns: Literal["call", "all"] = Field(
        "call", description="The columns that a caller needs, with those to fill in, or all columns, for analysis."
    )


class HistoryQuery(Query):
    """The person of a history."""

    agent: str = Field(min_length=1, max_length=MAX_ID, description="The id of the person.", examples=["ann"])


class OutcomesQuery(OutcomeSettings, ReadingQuery):
    """The settings of outcomes, and how their table is read."""


class DecideQuery(DecideSettings, ReadingQuery):
    """The settings of a decision, and how its table is read."""
