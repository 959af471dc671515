"""The events of a program's log: one class per kind, and their form in the store.

    created    the config                         changed    settings that hold from now on
    history    moves of people before the program, from which its policies start
    joined     agents that appear for the first time, their groups and features
    grouped    agents that change their group
    left       agents that are no longer in the program
    erased     agents whose names are deleted
    decided    a round: who is present in which state and at what cost, the budget, the choice and the list
    outcomes   what was done in a round, the rewards and the next states
    corrected  states or outcomes of a round that were recorded wrong
    withdrawn  reports of outcomes of a round that no longer count
    cancelled  a round that was decided by mistake
    undone     events that are taken back, as if they had not been recorded

`interpret(event)` is the only place that gives stored columns a meaning; agents appear by their numbers only. An event
is stored in parts (name, chunk, body). Columns with `number` (ascending) are cut into chunks of CHUNK agent numbers,
with the name ""; columns without it, and each extra under its own name, are one part with the chunk WHOLE. Events are
chained:

    digest = sha256(previous digest, kind, round, at, header, parts in order of name and chunk)
"""

import hashlib
import itertools
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np

from restive.desk.codec import Column, pack, unpack
from restive.errors import InputError
from restive.types import Bools, Floats, Ints

CHUNK = 8192
WHOLE = -1  # the chunk of a part that is not divided by agents
NOBODY = np.zeros(0, np.int64)
FEATURE = "feature."  # and a number from 0, a column of new agents
MOVES = "moves."  # and a number from 0, a column of a history
# Why an agent could not be chosen by priority, as stored in the column `exclusion`.
FREE, IN_CONTROL, ON_NEVER, COOLING, ON_MUST = range(5)
EXCLUSIONS = ("", "control group", "never list", "cooling down", "must list")
ELIGIBLE = (FREE, ON_MUST)
NARROW = ("state", "after", "group")  # columns that are stored in 16 bits

Header: TypeAlias = dict[str, Any]
Columns: TypeAlias = Mapping[str, Column]


class Event(NamedTuple):
    """One entry of a program's log; `at` is UTC, ISO 8601 with microseconds."""

    number: int
    kind: str
    round: int | None
    at: str
    header: Header
    columns: dict[str, Column]
    extra: dict[str, dict[str, Column]]
    digest: str


class Head(NamedTuple):
    """The end of a program's log: the number of its events and the digest of the last one, which covers all of them."""

    program: int
    length: int
    digest: str


class Record(NamedTuple):
    """The content of an event: what the store writes."""

    header: Header
    columns: dict[str, Column]
    extra: dict[str, dict[str, Column]]


class States(NamedTuple):
    """Agents of a round and their states, all [M], by ascending number."""

    number: Ints
    state: Ints
    carried_over: Bools  # whether the state is from an earlier round
    reported: Bools  # whether it was reported for this round; otherwise it follows from what was known

    def columns(self) -> dict[str, Column]:
        """The stored columns."""
        return _narrow(self._asdict())

    @classmethod
    def read(cls, columns: Columns) -> Self:
        """The states in stored columns."""
        number, state = (columns[name].astype(np.int64) for name in ("number", "state"))
        return cls(number, state, columns["carried_over"].copy(), columns["reported"].copy())

    def correct(self, later: "States") -> None:
        """Overwrite the states of those agents that `later` has, in place."""
        here, there = match(self.number, later.number)
        for mine, theirs in zip(self[1:], later[1:], strict=True):
            mine[here] = theirs[there]


class Outcomes(NamedTuple):
    """What happened to agents of a round, all [M], by ascending number."""

    number: Ints
    done: Bools
    reward: Floats
    after: Ints  # the next state; −1: only whether the action was done is known
    known: Bools  # whether that was known before
    advised: Bools  # whether the agent was on the list
    assumed: Bools  # whether `done` was not reported, but is taken as advised

    def columns(self) -> dict[str, Column]:
        """The stored columns."""
        return _narrow(self._asdict())

    @classmethod
    def read(cls, columns: Columns) -> Self:
        """The outcomes in stored columns."""
        number, after = (columns[name].astype(np.int64) for name in ("number", "after"))
        rest = (columns[name].copy() for name in ("done", "reward", "known", "advised", "assumed"))
        done, reward, known, advised, assumed = rest
        return cls(number, done, reward, after, known, advised, assumed)

    def take(self, rows: Bools) -> "Outcomes":
        """Some of the rows, in the order of their agents."""
        order = np.flatnonzero(rows)[np.argsort(self.number[rows], kind="stable")]
        return Outcomes._make(column[order] for column in self)

    def correct(self, later: "Outcomes") -> None:
        """Overwrite the outcomes of those agents that `later` has, in place."""
        here, there = match(self.number, later.number)
        write_outcomes(self.done, self.reward, self.after, here, later, there)
        self.assumed[here] = later.assumed[there]


def match(number: Ints, other: Ints) -> tuple[Ints, Ints]:
    """The places of the common agents in both arrays of numbers."""
    _, here, there = np.intersect1d(number, other, assume_unique=True, return_indices=True)
    return here, there


def write_outcomes(
    done: Bools | Ints, reward: Floats, after: Ints, places: Ints, news: Outcomes, rows: Ints | slice = slice(None)
) -> None:
    """Write rows of outcomes at these places; a row without a next state leaves reward and next state as they are."""
    done[places] = news.done[rows]
    whole = news.after[rows] >= 0
    reward[places[whole]], after[places[whole]] = news.reward[rows][whole], news.after[rows][whole]


@dataclass(frozen=True)
class Change:
    """What an event means. By default its arrays are the stored columns, and its other fields are the header."""

    kind: ClassVar[str]

    def record(self) -> Record:
        """The content of the event."""
        columns = {name: value for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        header = {name: value for name, value in vars(self).items() if name not in columns}
        return Record(header, _narrow(columns), {})

    @classmethod
    def read(cls, event: Event) -> Self:
        """The meaning of the event."""
        columns = {name: column.astype(np.int64) for name, column in event.columns.items()}
        return cls(**columns, **event.header)


def _narrow(columns: Columns) -> dict[str, Column]:
    """The columns with codes of states and groups in 16 bits."""
    return {name: column.astype(np.int16) if name in NARROW else column for name, column in columns.items()}


def _feature_columns(features: Floats) -> dict[str, Column]:
    """A column for each feature of [M, F]."""
    return {f"{FEATURE}{place}": column.copy() for place, column in enumerate(features.T)}


def _read_features(event: Event) -> Floats:
    """The features of the agents of an event, [M, F]."""
    features = np.zeros((event.columns["number"].size, sum(name.startswith(FEATURE) for name in event.columns)))
    for place, column in enumerate(features.T):
        column[:] = event.columns[f"{FEATURE}{place}"]
    return features


@dataclass(frozen=True)
class Created(Change):
    """A program is created with a config."""

    kind: ClassVar[str] = "created"
    config: Header

    def record(self) -> Record:
        """The content of the event."""
        return Record(self.config, {}, {})

    @classmethod
    def read(cls, event: Event) -> Self:
        """The meaning of the event."""
        return cls(event.header)


@dataclass(frozen=True)
class Changed(Created):
    """Settings change; `config` holds those that do."""

    kind: ClassVar[str] = "changed"


@dataclass(frozen=True)
class WarmStarted(Change):
    """The policies start from a history of people who may join later; `about` has value, power and rounds."""

    kind: ClassVar[str] = "history"
    number: Ints
    moves: Ints  # [M, A, S, S] how often each of them moved under an action from a state to another
    features: Floats  # [M, F], NaN where unknown
    about: Header

    def record(self) -> Record:
        """The content of the event: a column for each action, state and next state, and for each feature."""
        cells = self.moves.reshape(self.number.size, -1)
        moves = {f"{MOVES}{k}": cells[:, k] for k in range(cells.shape[1])}
        return Record(self.about, {"number": self.number} | moves | _feature_columns(self.features), {})

    @classmethod
    def read(cls, event: Event) -> Self:
        """The meaning of the event."""
        states, number = len(event.header["value"]), event.columns["number"].astype(np.int64)
        cells = [event.columns[f"{MOVES}{k}"].astype(np.int64) for k in range(2 * states * states)]
        moves = np.stack(cells, axis=1).reshape(-1, 2, states, states)
        return cls(number, moves, _read_features(event), event.header)


@dataclass(frozen=True)
class Joined(Change):
    """Agents join, each with the code of a group (−1: none) and features; `groups` are the names of new groups."""

    kind: ClassVar[str] = "joined"
    number: Ints
    group: Ints
    groups: list[str]
    features: Floats  # [M, F], NaN where unknown

    def record(self) -> Record:
        """The content of the event: a column for each feature."""
        known = _narrow({"number": self.number, "group": self.group})
        return Record({"groups": self.groups}, known | _feature_columns(self.features), {})

    @classmethod
    def read(cls, event: Event) -> Self:
        """The meaning of the event."""
        number, group = (event.columns[name].astype(np.int64) for name in ("number", "group"))
        return cls(number, group, event.header["groups"], _read_features(event))


@dataclass(frozen=True)
class Grouped(Change):
    """Agents change their group."""

    kind: ClassVar[str] = "grouped"
    number: Ints
    group: Ints
    groups: list[str]


@dataclass(frozen=True)
class Left(Change):
    """Agents leave; one who has a state again later is back."""

    kind: ClassVar[str] = "left"
    number: Ints


@dataclass(frozen=True)
class Erased(Change):
    """The names of agents are deleted; `missing` counts by round the outcomes that can no longer be reported."""

    kind: ClassVar[str] = "erased"
    number: Ints
    missing: dict[int, int]

    @classmethod
    def read(cls, event: Event) -> Self:
        """The meaning of the event."""
        missing = {int(round_): count for round_, count in event.header["missing"].items()}
        return cls(event.columns["number"].astype(np.int64), missing)


@dataclass(frozen=True)
class DecisionInput:
    """What a round is decided from."""

    states: States
    budget: int
    must: Ints = field(default_factory=NOBODY.copy)  # agents on the list in any case
    never: Ints = field(default_factory=NOBODY.copy)  # agents not on the list
    digest: str = ""  # of the request, to recognise a repeated one
    cost: Floats | None = None  # [M] of acting on each agent present; None: everybody costs 1


@dataclass(frozen=True)
class Decided(Change):
    """A round is decided."""

    kind: ClassVar[str] = "decided"
    given: DecisionInput
    about: Header  # policy, version, what rules displace, what followed in each state so far, ...
    choice: dict[str, Column]  # chosen, probability, exclusion and those of the shadow, over the agents present
    listed: dict[str, Column]  # the list, best first, then the spares

    def record(self) -> Record:
        """The content of the event."""
        given = self.given
        lists = {"must": given.must, "never": given.never}
        extra = {name: {"number": number} for name, number in lists.items() if number.size}
        header = {"budget": given.budget, "input": given.digest, **self.about}
        cost = {} if given.cost is None else {"cost": given.cost}
        return Record(header, given.states.columns() | cost | self.choice, {**extra, "list": self.listed})

    @classmethod
    def read(cls, event: Event) -> Self:
        """The meaning of the event."""
        must, never = (event.extra.get(name, {}).get("number", NOBODY) for name in ("must", "never"))
        about = {name: value for name, value in event.header.items() if name not in ("budget", "input")}
        known, cost = (must, never, event.header["input"]), event.columns.get("cost")
        given = DecisionInput(States.read(event.columns), event.header["budget"], *known, cost)
        choice = {name: column for name, column in event.columns.items() if name not in (*States._fields, "cost")}
        return cls(given, about, choice, event.extra.get("list", {}))


@dataclass(frozen=True)
class Reported(Change):
    """Outcomes of a round are reported, or follow from the states of a later round."""

    kind: ClassVar[str] = "outcomes"
    outcomes: Outcomes
    states_of: int | None = None  # the round whose states are the next states here

    def record(self) -> Record:
        """The content of the event."""
        header = {} if self.states_of is None else {"states_of": self.states_of}
        return Record(header, self.outcomes.columns(), {})

    @classmethod
    def read(cls, event: Event) -> Self:
        """The meaning of the event."""
        return cls(Outcomes.read(event.columns), event.header.get("states_of"))


@dataclass(frozen=True)
class Corrected(Change):
    """States or outcomes of a round are corrected."""

    kind: ClassVar[str] = "corrected"
    right: States | Outcomes

    def record(self) -> Record:
        """The content of the event."""
        what = "states" if isinstance(self.right, States) else "outcomes"
        return Record({"what": what}, self.right.columns(), {})

    @classmethod
    def read(cls, event: Event) -> Self:
        """The meaning of the event."""
        return cls((States if event.header["what"] == "states" else Outcomes).read(event.columns))


@dataclass(frozen=True)
class Withdrawn(Change):
    """Reports of agents in a round are withdrawn, as if nothing had been reported of them so far."""

    kind: ClassVar[str] = "withdrawn"
    number: Ints


@dataclass(frozen=True)
class Cancelled(Change):
    """A round is cancelled: nobody acts by its list."""

    kind: ClassVar[str] = "cancelled"


@dataclass(frozen=True)
class Undone(Change):
    """The events from number `first` to before `end` are taken back: they have no effect, as if not recorded."""

    kind: ClassVar[str] = "undone"
    first: int
    end: int

    @property
    def events(self) -> range:
        """The numbers of these events."""
        return range(self.first, self.end)


KINDS: dict[str, type[Change]] = {
    each.kind: each
    for each in (
        Created, Changed, WarmStarted, Joined, Grouped, Left, Erased, Decided, Reported, Corrected, Withdrawn,
        Cancelled, Undone,
    )
}  # fmt: skip
REVISIONS = (Corrected.kind, Withdrawn.kind, Undone.kind)  # these change what earlier events mean


def interpret(event: Event) -> Change:
    """The meaning of an event."""
    return KINDS[event.kind].read(event)


def standing(log: Iterable[Event], undone: Collection[range]) -> Iterator[Event]:
    """The events that have an effect, because they are in none of the ranges that were taken back."""
    return (event for event in log if not any(event.number in taken_back for taken_back in undone))


class Part(NamedTuple):
    """A piece of an event as it is stored."""

    name: str
    chunk: int
    body: bytes


def divide(columns: Columns, extra: Mapping[str, Columns]) -> list[Part]:
    """The parts of an event, in order."""
    if "" in extra:
        raise InputError("An extra of an event needs a name.")
    named = [Part(name, WHOLE, pack(extra[name])) for name in sorted(extra)]
    return [*_divide_by_agent(columns), *named]


def _divide_by_agent(columns: Columns) -> Iterator[Part]:
    number = columns.get("number")
    if number is None or not len(number):
        # Without agents there is no chunk, and the types of empty columns are kept too.
        if columns:
            yield Part("", WHOLE, pack(columns))
        return
    _check_agents(number, columns)
    chunks = number.astype(np.int64, copy=False) // CHUNK
    borders = [0, *(np.flatnonzero(np.diff(chunks)) + 1).tolist(), len(chunks)]
    for low, high in itertools.pairwise(borders):
        yield Part("", int(chunks[low]), pack({name: column[low:high] for name, column in columns.items()}))


def _check_agents(number: Column, columns: Columns) -> None:
    """Refuse numbers that do not ascend, and columns of another length."""
    if number.dtype.kind not in "iu" or int(number[0]) < 0 or not (number[1:] > number[:-1]).all():
        raise InputError("The column 'number' of an event must hold agent numbers from 0 on, ascending.")
    if odd := [name for name, column in columns.items() if len(column) != len(number)]:
        raise InputError(f"Column {odd[0]!r} of an event has another length than its column 'number'.")


def assemble(parts: Iterable[Part]) -> tuple[dict[str, Column], dict[str, dict[str, Column]]]:
    """Columns and extras of an event, from all its parts."""
    chunks: list[dict[str, Column]] = []
    extra = {}
    for part in sorted(parts):
        if part.name:
            extra[part.name] = unpack(part.body)
        else:
            chunks.append(unpack(part.body))
    if len(chunks) < 2:
        return chunks[0] if chunks else {}, extra
    return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}, extra


def pick(body: bytes, agent: int) -> dict[str, Column] | None:
    """The columns of one agent, each with one row, from its chunk; None if the agent is not in it."""
    columns = unpack(body)
    number = columns["number"]
    place = int(np.searchsorted(number, agent))
    if place == len(number) or number[place] != agent:
        return None
    return {name: column[place : place + 1] for name, column in columns.items()}


def link(previous: str, kind: str, round_: int | None, at: str, header: str, parts: Iterable[Part]) -> str:
    """The digest of an event, which covers that of the event before it."""
    chain = hashlib.sha256(json.dumps([previous, kind, round_, at, header]).encode())
    for part in sorted(parts):
        chain.update(json.dumps([part.name, part.chunk, len(part.body)]).encode())
        chain.update(part.body)
    return chain.hexdigest()
