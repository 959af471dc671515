"""Every answer of the HTTP API as a typed dictionary: built by the desk, published in OpenAPI, returned by the client.

Times are UTC in ISO 8601, rounds count from 1, and a number is finite or null. The text below a field is its
description in the OpenAPI document. Nothing is validated at run time; the tests check every answer against its type.
"""

from typing import Generic, Literal, NotRequired, TypeVar

from typing_extensions import TypedDict

Role = Literal["viewer", "operator", "admin"]
T = TypeVar("T")


class Answer(TypedDict):
    """Base of all answers: exactly the declared fields, of exactly the declared types."""


# Read by pydantic, which this module does not import: the client works without it.
Answer.__pydantic_config__ = {  # type: ignore[attr-defined]
    "extra": "forbid",
    "strict": True,
    "use_attribute_docstrings": True,
}


class Page(Answer, Generic[T]):
    """A part of a list."""

    items: list[T]
    next: str | None
    """The address of the next page; null on the last one."""


class Result(Answer):
    """The result of a request that records something."""

    recorded: bool
    """False after a dry run."""


class Fault(Answer):
    """One fault of a table or a request."""

    row: int | None
    """The row number; rows of JSON count from 1, rows of a file include the header."""
    column: str | None
    """The column, field or parameter."""
    message: str


class Problem(Answer):
    """Why a request was refused: a problem as in RFC 9457."""

    type: str
    title: str
    """The name of the status."""
    status: int
    code: str
    """A stable identifier of the kind of problem."""
    detail: str
    """What is wrong, and what is allowed."""
    hint: str | None
    """The setting that lets the same request pass: again, new, correct or columns; or cancel."""
    advice: str | None
    """What the hint means, as a sentence."""
    location: str | None
    """The table, setting or parameter that is wrong."""
    faults: list[Fault]
    """All faults of a table or a request; at most 1000."""
    recorded: bool | None
    """Whether anything was recorded; null if it is not known."""
    request: str
    """The id of the request, as in X-Request-ID and in the log."""


class Health(Answer):
    """The state of the server."""

    status: Literal["ok"]
    version: str


class Grant(Answer):
    """A role of a token."""

    program: str | None
    """The program that the role applies to; null: all programs."""
    role: Role


class Me(Answer):
    """The owner of the token."""

    id: int | None
    """The number of the token; null on an open server, which has no tokens."""
    name: str
    grants: list[Grant]
    version: str
    """The version of the server."""


class Words(Answer):
    """The vocabulary of a program, used in its sentences."""

    person: str
    people: str
    action: str
    acted: str
    verb: str
    every: str
    reward_unit: str


class Template(Words):
    """An application domain with the defaults of a new program."""

    name: str
    title: str
    about: str
    states: list[str]
    """From worst to best."""
    rewards: list[float]
    """The reward of a round in each state."""
    signs: list[str]
    """How a team recognises each state."""
    problem: str
    """The problem family that simulates this domain."""
    groups: list[str]
    budget: int
    control: float
    cool_down: int
    keep: int
    horizon: int | None


class PolicySetting(Answer):
    """A setting of a policy."""

    name: str
    default: str | float | int | bool | None


class PolicyInfo(Answer):
    """A policy that a program can use."""

    name: str
    about: str
    settings: list[PolicySetting]


class DueRound(Answer):
    """The next round and when it is due, in the time zone of the program."""

    round: int
    due: str
    """The date, in ISO 8601."""
    label: str
    """The name of the round, such as Week of 23 Nov 2026."""
    days: int
    """From today to the due date; negative: so many days late."""
    when: str
    """`due today`, `due tomorrow`, `due in 3 days`, `2 days late`."""
    sentence: str


class ProgramSummary(Answer):
    """A program in a list of programs; if it cannot be read, `error` says why and the counts are null."""

    name: str
    created: str
    archived: bool
    """Whether the program can only be read, until it is restored."""
    people: int | None
    rounds: int | None
    events: int | None
    waiting: int | None
    """Missing outcomes."""
    due: DueRound | None
    """The next round; null without a rhythm, before the first round of a program without a first date, and after the end."""
    policy: str | None
    template: str | None
    """The template that the program was created from."""
    title: str | None
    """The title of the program or of its template; empty if it has none, and its own states or words."""
    error: str | None
    """Why the program cannot be read; null if it can."""


class CutPoints(Answer):
    """States by classes of a number."""

    column: str
    """The header of the column with the number, or with dates, which count as days before today."""
    at: list[float]
    """The ascending limits of the classes, one fewer than states; a number at a limit is in the class above it."""
    more_is: Literal["worse", "better"]
    """Whether the highest class is the worst state or the best."""


class Config(Answer):
    """The settings of a program."""

    states: list[str]
    """From worst to best."""
    rewards: list[float] | None
    """The reward of each state; null: rewards are reported with the outcomes."""
    policy: str
    shadow: str | None
    """The second policy, which is only compared with the first."""
    budget: int
    """People who can be acted on in a round, or what may be spent on them, in `cost_unit`."""
    spend: Literal["exactly", "at most"]
    """Whether the budget is spent in any case, or only on people who are expected to gain."""
    cost_unit: str
    """The unit of what acting on a person costs, and of the budget; empty: everybody costs 1."""
    horizon: int | None
    """The number of rounds in all, if it is known."""
    seed: int
    control: float
    """The share of people who are never treated."""
    control_until: int | None
    """The last round with a control group, which then joins the program."""
    cool_down: int
    """Rounds in which a person is not chosen again."""
    keep: int
    """Rounds for which a state that is missing from a table is carried over."""
    shares: dict[str, float]
    """The minimum share of the list of each group."""
    features: dict[str, list[str]]
    """The columns that are known of people with their categories, none for a number."""
    display: list[str]
    """The columns that only lists and pages show, such as name and phone."""
    reward_range: float
    """The largest difference between two reported rewards."""
    pseudonyms: str | None
    """The fingerprint of the pseudonym key; null: names are stored as they are."""
    template: str | None
    states_are_outcomes: bool
    """Whether the states of a round are also recorded as the outcomes of the round before."""
    title: str
    """What people call the program; empty: its name."""
    timezone: str
    """The time zone of dates and times that people see, such as Asia/Kolkata."""
    rhythm: str
    """How often a round is due: `day`, `week`, `two weeks`, `month`, a number of days such as `10 days`, or `none`."""
    first_due: str | None
    """The first due date, in ISO 8601; null: the day of the first decision."""
    columns: dict[str, str]
    """The header of each column that has another name in the team's tables; empty: it is not read."""
    values: dict[str, str]
    """The state that each of some texts means."""
    cut_points: CutPoints | None
    """States by classes of a number."""
    phone_country: int | None
    """The calling code of the country of ids that are phone numbers; null: ids stay as they are written."""
    words: Words


class Program(Answer):
    """A program."""

    name: str
    created: str
    events: int
    """Events in its log."""
    rounds: int
    people: int
    """People who have neither left nor been erased."""
    config: Config


class ProgramConfig(Answer):
    """The settings of a program that was created or changed."""

    name: str
    config: Config
    notes: list[str]
    """How large an effect the control group can show, and settings that are probably not meant."""


class ShadowChoice(Answer):
    """The choice of the shadow policy in a round."""

    policy: str
    common: int
    """People whom both policies choose."""


class ListedPerson(Answer):
    """A person on the list of a round or on its reserve list."""

    round: int
    rank: int
    """The position on the list, or on the reserve list."""
    agent: str
    group: str | None
    list: Literal["chosen", "must", "reserve"]
    state_now: str
    exploration: bool
    """Whether the person was chosen at random, to learn."""
    probability: float
    """The probability with which the person was chosen."""
    priority: float | None
    """The number by which the policy ranks, in units of its own; it is not an expected gain."""
    margin: float | None
    """The distance of the priority from that of the first person who was not chosen."""
    cost: float | None
    """What acting on the person costs; null if people have no costs."""
    reason: str
    """Whether a rule or a random draw decided, and what followed in this state so far, with the action and without."""
    display: dict[str, str | None]
    """The display columns of the program; null where nothing is known."""


class Decision(Answer):
    """A decided round without its list."""

    program: str
    round: int
    label: str
    """The name of the round, by its due date: Week of 16 Nov 2026."""
    due: str
    """The date when the round was due, in ISO 8601; without a rhythm, the day of the decision."""
    decided_at: str
    budget: int
    planned: float | None
    """The costs of the people on the list, added up; null if people have no costs."""
    present: int
    """People with a state in this round."""
    carried_over: int
    """People whose state is from an earlier round."""
    exclusions: dict[str, int]
    """People who could not be chosen, by reason."""
    policy: str
    explored: int
    """People on the list who were chosen at random, to learn."""
    left_out: int
    """People left out because the policy ranks no action above one, although the budget allowed it."""
    displaced: dict[str, int]
    """For each rule, how many places of the list would go to other people without it."""
    shadow: ShadowChoice | None
    notes: list[str]
    """Remarks on the input, a sentence each."""


class PreviousResults(Answer):
    """The outcomes of the round before, as far as they follow from the states of a new round."""

    round: int
    label: str
    decided_at: str
    recorded: int
    """People whose outcome is recorded with the decision."""
    present: int
    """People of that round."""
    as_planned: int
    """Of its list: people of whom nothing was reported and who are taken as acted on."""
    reported: int
    """Of its list: people of whom it was reported before whether they were acted on."""
    unknown: int
    """Of its list: people whose outcome is still missing."""


class ListedDecision(Decision):
    """A decided round with the first rows of its list."""

    results: PreviousResults | None
    """The outcomes of the round before that are recorded with the decision; null if there are none."""
    people: list[ListedPerson]
    """The list, then the reserve list."""


class DecidedRound(ListedDecision, Result):
    """A decided round with the first rows of its list."""

    next: str | None
    """The address of the remaining rows; null if there are none."""


class RoundSummary(Answer):
    """The totals of a round."""

    round: int
    label: str
    """The name of the round, by its due date: Week of 16 Nov 2026."""
    due: str
    """The date when the round was due, in ISO 8601; without a rhythm, the day of the decision."""
    at: str
    """When it was decided."""
    budget: int
    present: int
    """People with a state in this round."""
    carried_over: int
    """People whose state is from an earlier round."""
    cancelled: bool
    advised: int
    """People on the list."""
    planned: float | None
    """The costs of the people on the list, added up; null if people have no costs."""
    spent: float | None
    """The costs of those of the list for whom the action was done; null if people have no costs."""
    explored: int
    """People on the list who were chosen at random, to learn."""
    done: int
    """People on the list for whom the action was done."""
    failed: int
    """People on the list for whom it was reported as not done."""
    unlisted: int
    """People not on the list for whom it was done."""
    outcomes: int
    """People with a recorded outcome."""
    treated_outcomes: int
    treated_reward: float
    control_outcomes: int
    control_reward: float


class RoundDetail(RoundSummary):
    """The totals of a round and its decision."""

    decision: Decision


class OutcomeCounts(Result):
    """The result of recording outcomes."""

    rounds: list[int]
    """The rounds that the outcomes belong to."""
    labels: list[str]
    """The names of these rounds, by their due dates."""
    new: int
    corrected: int
    repeated: int
    """Rows that equal what is recorded."""
    waiting: int
    """People of these rounds whose outcome is still missing."""
    notes: list[str]
    """Remarks on the input, a sentence each."""


class CorrectedStates(Result):
    """The result of correcting states."""

    corrected: int


class PeopleCount(Result):
    """The number of people who left or were erased."""

    count: int


class CancelledRound(Result):
    """The result of cancelling a round."""

    listed: int
    """People on the list of the round."""


class Person(Answer):
    """A person in a program."""

    number: int
    """From 0, in the order of joining."""
    agent: str
    group: str | None
    active: bool
    """False: the person has left."""
    control: bool
    """Whether the person is in the control group, which is never treated."""
    state: str | None
    """The last known state."""
    rounds_seen: int
    """Rounds with a recorded outcome."""
    reward_total: float
    cost: float | None
    """What acting on the person costs, as last known; null if it is not known or people have no costs."""
    display: dict[str, str | None]
    """The display columns of the program; null where nothing is known."""


class HistoryEntry(Answer):
    """One round of a person's history; unknown fields are left out."""

    round: int
    label: str
    """The name of the round, by its due date: Week of 16 Nov 2026."""
    due: str
    """The date when the round was due, in ISO 8601."""
    at: str
    state: NotRequired[str]
    chosen: NotRequired[bool]
    probability: NotRequired[float]
    cost: NotRequired[float]
    note: NotRequired[str]
    done: NotRequired[bool]
    reward: NotRequired[float]
    next_state: NotRequired[str]
