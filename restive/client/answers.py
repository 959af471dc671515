"""What a server answers, as the client hands it on: the plain data of the API, with types.

Times are UTC in ISO 8601, rounds count from 1, a number is finite or None. The words are those of the API's own page;
a field that a newer server adds is there too, only without a type.
"""

from typing import Any, Literal, TypedDict

Role = Literal["viewer", "operator", "admin"]


class Health(TypedDict):
    """That the server is there."""

    status: str
    version: str


class Given(TypedDict):
    """A role of a token; `program` None: in all programs."""

    program: str | None
    role: Role


class Me(TypedDict):
    """Whom the token belongs to."""

    id: int | None
    name: str
    grants: list[Given]
    version: str


class Words(TypedDict):
    """How the people of a program speak of it."""

    person: str
    people: str
    action: str
    acted: str
    verb: str
    every: str
    reward_unit: str


class Template(Words):
    """An application domain that a program can start from."""

    name: str
    title: str
    about: str
    states: list[str]
    rewards: list[float]
    signs: list[str]
    problem: str
    groups: list[str]
    budget: int
    control: float
    cool_down: int
    keep: int
    horizon: int | None


class Setting(TypedDict):
    """A setting of a policy."""

    name: str
    default: str | float | int | bool | None


class Policy(TypedDict):
    """A policy that a program can decide by."""

    name: str
    about: str
    settings: list[Setting]


class ProgramLine(TypedDict):
    """A program in one line."""

    name: str
    created: str
    people: int | None
    rounds: int | None
    events: int | None
    waiting: int | None
    policy: str | None
    template: str
    title: str | None


class Config(TypedDict):
    """What a program decides by."""

    states: list[str]
    rewards: list[float] | None
    policy: str
    shadow: str | None
    budget: int
    horizon: int | None
    seed: int
    control: float
    cool_down: int
    keep: int
    shares: dict[str, float]
    reward_range: float
    pseudonyms: str | None
    template: str | None
    words: Words


class Program(TypedDict):
    """A program."""

    name: str
    created: str
    events: int
    rounds: int
    people: int
    config: Config


class ShadowChoice(TypedDict):
    """What the shadow would have done in a round."""

    policy: str
    common: int
    benefit: float | None


class Listed(TypedDict):
    """Somebody on a list, or next in line."""

    round: int
    rank: int
    agent: str
    group: str | None
    list: Literal["chosen", "must", "spare"]
    state_now: str
    benefit: float | None
    error: float | None
    exploration: bool
    probability: float
    priority: float | None
    margin: float | None
    reason: str


class Decision(TypedDict):
    """A decided round."""

    program: str
    round: int
    decided_at: str
    budget: int
    present: int
    kept: int
    left_out: dict[str, int]
    policy: str
    explored: int
    expected_benefit: float | None
    prices: dict[str, float | None]
    shadow: ShadowChoice | None
    notes: list[str]


class Decided(Decision):
    """A decided round with its list."""

    people: list[Listed]
    next: str | None
    recorded: bool


class RoundLine(TypedDict):
    """A round in short."""

    round: int
    at: str
    budget: int
    present: int
    kept: int
    decided: bool
    cancelled: bool
    advised: int
    explored: int
    expected_benefit: float | None
    done: int
    failed: int
    unasked: int
    outcomes: int
    treated_seen: int
    treated_reward: float
    control_seen: int
    control_reward: float


class RoundDetail(RoundLine):
    """A round, and how it was decided; None as long as it is only open."""

    decision: Decision | None


class Learned(TypedDict):
    """What became of a table of outcomes."""

    rounds: list[int]
    new: int
    corrected: int
    repeated: int
    waiting: int
    notes: list[str]
    recorded: bool


class Person(TypedDict):
    """Somebody in a program."""

    number: int
    agent: str
    group: str | None
    active: bool
    control: bool
    state: str | None
    rounds_seen: int
    reward_total: float


class _When(TypedDict):
    round: int
    at: str


class Past(_When, total=False):
    """What happened to somebody in a round; what is not known is left out."""

    state: str | None
    chosen: bool | None
    probability: float | None
    note: str | None
    done: bool | None
    reward: float | None
    after: str | None


class EventLine(TypedDict):
    """An event of a program's log, without its columns."""

    number: int
    kind: str
    round: int | None
    at: str
    header: dict[str, Any]
    digest: str


class AuditEntry(TypedDict):
    """Who did what; `program` None: something of the store itself, such as a token."""

    number: int
    program: str | None
    at: str
    by: str
    verb: str
    round: int | None
    answer: dict[str, Any]


class ConfigSettings(TypedDict, total=False):
    """What a new program can be given; the states are needed without a template."""

    states: list[str]
    rewards: list[float]
    policy: str
    shadow: str
    budget: int
    horizon: int
    seed: int
    control: float
    cool_down: int
    keep: int
    shares: dict[str, float]
    reward_range: float
    pseudonyms: bool
    words: dict[str, str]


class Changes(TypedDict, total=False):
    """What may be changed while a program runs."""

    budget: int
    cool_down: int
    keep: int
    shares: dict[str, float]
