"""What the API answers, as its document says it. Most answers are plain data of the desk, sent as they are: these
models are what they promise to be, and tests hold them to it. Times are UTC in ISO 8601, rounds count from 1, and a
number is finite or null.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Role = Literal["viewer", "operator", "admin"]
RECORDED = "False after a dry run, true otherwise."
NEXT = "The address of what follows, null at the end."


class Answer(BaseModel):
    """An answer, or a part of one: exactly these fields."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Health(Answer):
    """That the server is there."""

    status: Literal["ok"]
    version: str


class Given(Answer):
    """A role that a token has."""

    program: str | None = Field(description="The program, or null: all of them.")
    role: Role


class Me(Answer):
    """Whom the token belongs to."""

    id: int | None = Field(description="The number of the token; null at an open server, where nobody has one.")
    name: str
    grants: list[Given]
    version: str = Field(description="The version of the server.")


class Words(Answer):
    """How the people of a program speak of it."""

    person: str
    people: str
    action: str
    acted: str
    verb: str
    every: str
    reward_unit: str


class Template(Answer):
    """An application domain that a program can start from."""

    name: str
    title: str
    about: str
    states: list[str] = Field(description="The worst first.")
    rewards: list[float] = Field(description="What each state is worth in a round.")
    signs: list[str] = Field(description="By what a team recognises each state.")
    reward_unit: str
    action: str
    acted: str
    verb: str
    person: str
    people: str
    every: str
    problem: str = Field(description="The family of simulated people that goes with it.")
    groups: list[str]
    budget: int
    control: float
    cool_down: int
    keep: int
    horizon: int | None


class Templates(Answer):
    """All templates."""

    items: list[Template]
    next: str | None = Field(description=NEXT)


class Setting(Answer):
    """A setting of a policy."""

    name: str
    default: str | float | int | bool | None


class Policy(Answer):
    """A policy that a program can decide by."""

    name: str
    about: str
    settings: list[Setting]


class Policies(Answer):
    """All policies."""

    items: list[Policy]
    next: str | None = Field(description=NEXT)


class ProgramLine(Answer):
    """A program in one line; what cannot be read now, as when the file of its policy is gone, is null."""

    name: str
    created: str
    people: int | None
    rounds: int | None
    events: int | None
    waiting: int | None = Field(description="Outcomes still to come.")
    policy: str | None
    template: str = Field(description="The template it was made by, or why the program cannot be read.")
    title: str | None = Field(description="What it is about, by its template; empty where its words are its own.")


class ProgramLines(Answer):
    """The programs that the token may see, the oldest first."""

    items: list[ProgramLine]
    next: str | None = Field(description=NEXT)


class Config(Answer):
    """What a program decides by."""

    states: list[str] = Field(description="The worst first.")
    rewards: list[float] | None = Field(description="What each state is worth; null: reported with outcomes.")
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
    pseudonyms: str | None = Field(description="The fingerprint of the key of its pseudonyms, where it has them.")
    template: str | None
    words: Words


class Program(Answer):
    """A program."""

    name: str
    created: str
    events: int = Field(description="How many events its log has.")
    rounds: int
    people: int = Field(description="Who has neither left nor been erased.")
    config: Config


class Planned(Answer):
    """A program that was made or changed."""

    name: str
    config: Config


class EventLine(Answer):
    """An event of a program's log, without its columns. People are in it by number, never by id."""

    number: int = Field(description="From 0, without gaps.")
    kind: str
    round: int | None
    at: str
    header: dict[str, Any]
    digest: str = Field(description="SHA-256 over the event and the digest before it.")


class EventPage(Answer):
    """Events, the first first."""

    items: list[EventLine]
    next: str | None = Field(description=NEXT)


class AuditEntry(Answer):
    """Who did what."""

    number: int
    program: str | None = Field(description="Null: something of the store itself, such as a token.")
    at: str
    by: str
    verb: str
    round: int | None
    answer: dict[str, Any] = Field(description="What was answered then, in short.")


class Audit(Answer):
    """Deeds, the newest first."""

    items: list[AuditEntry]
    next: str | None = Field(description=NEXT)
