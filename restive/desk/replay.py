"""Replay: check that a program's log is complete and that every decision in it can be reproduced from its events alone.

The log is applied from the first event, without snapshots. Each round is decided again from what was known then, so a
correction or an undo counts from where it was recorded; at the end the desk's projection is compared with this one.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from restive.desk.decision import decide
from restive.desk.events import REVISIONS, Decided, Event, Head, Record, interpret
from restive.desk.program import Program
from restive.desk.projection import Projection
from restive.policies.belief import flatten


@dataclass
class Replay:
    """The result of a replay."""

    program: str
    events: int
    rounds: int = 0
    same: int = 0
    differing: list[str] = field(default_factory=list)  # a sentence for each decision that differs
    end: str = ""  # the digest of the last event: noted elsewhere, it shows that none was cut off later
    belief: str = ""  # a digest of the replayed projection
    believed: str = ""  # a digest of the desk's projection

    @property
    def proven(self) -> bool:
        """Whether nothing differs."""
        return not self.differing and self.same == self.rounds and self.belief == self.believed

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {**self.__dict__, "proven": self.proven}


def replay(program: Program, progress: Callable[[int, int], None] = lambda done, total: None) -> Replay:
    """Apply the log of a program from the start, decide every round again, and compare."""
    length = program.store.verify(program.id)
    found = Replay(program.name, length)
    projection = program.cache.fresh_projection(0)
    for event in program.store.events(program.id, end=length):
        if event.kind == Decided.kind:
            _decide_again(projection, event, found)
        if event.kind in REVISIONS:
            projection = _project(program, event.number + 1)
        else:
            projection.apply(event)
        found.end = event.digest
        progress(event.number + 1, length)
    found.belief = digest(projection)
    found.believed = digest(program.cache.projection(Head(program.id, length, found.end)))
    return found


def _project(program: Program, length: int) -> Projection:
    """The projection of the first `length` events, from the log alone."""
    projection = program.cache.fresh_projection(length)
    for event in program.store.events(program.id, end=length):
        projection.apply(event)
    return projection


def _decide_again(projection: Projection, event: Event, found: Replay) -> None:
    recorded = interpret(event)
    assert isinstance(recorded, Decided)
    assert event.round is not None
    again = decide(projection, event.round, recorded.given)
    found.rounds += 1
    differs = list(_differences(again.record(), event))
    if differs:
        found.differing.append(f"Round {event.round} differs in {', '.join(differs)}.")
    else:
        found.same += 1


def _differences(made: Record, event: Event) -> Iterator[str]:
    """The names of what is not the same bit for bit; the version that decided may differ."""
    for name in sorted(set(made.header) | set(event.header)):
        if name != "version" and made.header.get(name) != event.header.get(name):
            yield name
    extra = (made.extra.get("list", {}), event.extra.get("list", {}))
    for mine, theirs in ((made.columns, event.columns), extra):
        for name in sorted(set(mine) | set(theirs)):
            if name not in mine or name not in theirs or not _equal(mine[name], theirs[name]):
                yield name


def _equal(one: Any, two: Any) -> bool:
    return np.array_equal(one, two, equal_nan=one.dtype.kind == "f" == two.dtype.kind)


def digest(projection: Projection) -> str:
    """A digest of the beliefs, agents and rounds of a projection, to the last bit."""
    total = hashlib.sha256(repr((projection.length, projection.groups, projection.rounds)).encode())
    beliefs = [state.belief for state in projection.policy_states.values() if state.belief is not None]
    for named in (projection.agents.arrays(), projection.tallies.arrays(), *map(flatten, beliefs)):
        for name, array in sorted(named.items()):
            total.update(name.encode())
            total.update(np.ascontiguousarray(array).data)
    return total.hexdigest()[:16]
