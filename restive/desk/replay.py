"""Proof that a program's log is whole and that every decision in it comes out the same, from its events alone.

The log is folded from the first event on, without snapshots. Each round is decided again from what was known then, so a
correction counts from where it stands; and in the end what the desk believes is held against this projection.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from restive.desk import events
from restive.desk.decision import decide
from restive.desk.program import Program
from restive.desk.projection import Projection
from restive.desk.store import Event
from restive.policies.belief import flatten


@dataclass
class Replay:
    """What a replay found."""

    program: str
    events: int
    rounds: int = 0
    same: int = 0
    differing: list[str] = field(default_factory=list)  # a sentence for each decision that came out otherwise
    end: str = ""  # the digest of the last event: written down elsewhere, it shows that none was cut off later
    belief: str = ""  # a digest of what the events add up to
    believed: str = ""  # the same of what the desk works with

    @property
    def proven(self) -> bool:
        """Whether all is as it was."""
        return not self.differing and self.same == self.rounds and self.belief == self.believed

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {**self.__dict__, "proven": self.proven}


def replay(program: Program, progress: Callable[[int, int], None] = lambda done, total: None) -> Replay:
    """Projection the log of a program anew, decide every round again, and compare."""
    length = program.store.verify(program.id)
    found = Replay(program.name, length)
    projection = program.cache.fresh_projection(0)
    for event in program.log():
        if event.number >= length:
            break
        if event.kind == events.DECIDED:
            _decide_again(program, projection, event, found)
        if event.kind == events.CORRECTED:
            projection = _projection_until(program, event.number + 1)
        else:
            projection.apply(event)
        found.end = event.digest
        progress(event.number + 1, length)
    found.belief = digest(projection)
    found.believed = digest(program.cache.projection(length))
    return found


def _projection_until(program: Program, length: int) -> Projection:
    """What so many events add up to, by the log alone."""
    projection = program.cache.fresh_projection(length)
    for event in program.log():
        if event.number >= length:
            break
        projection.apply(event)
    return projection


def _decide_again(program: Program, projection: Projection, event: Event, found: Replay) -> None:
    assert event.round is not None
    opened = program.store.event(program.id, projection.totals(event.round).opened)
    made = decide(projection, opened)
    found.rounds += 1
    differs = list(_differences(made.header, made.columns, made.list, event))
    if differs:
        found.differing.append(f"round {event.round} came out otherwise in {', '.join(differs)}")
    else:
        found.same += 1


def _differences(
    header: dict[str, Any], columns: dict[str, Any], listed: dict[str, Any], event: Event
) -> Iterator[str]:
    """The names of what is not the same bit for bit; which version decided may differ."""
    for name in sorted(set(header) | set(event.header)):
        if name != "version" and header.get(name) != event.header.get(name):
            yield name
    for mine, theirs in ((columns, event.columns), (listed, event.extra.get("list", {}))):
        for name in sorted(set(mine) | set(theirs)):
            if name not in mine or name not in theirs or not _equal(mine[name], theirs[name]):
                yield name


def _equal(one: Any, two: Any) -> bool:
    return np.array_equal(one, two, equal_nan=one.dtype.kind == "f" == two.dtype.kind)


def digest(projection: Projection) -> str:
    """What sets a projection apart: its beliefs, agents and rounds, to the last bit."""
    reported = hashlib.sha256(repr((projection.length, projection.groups, projection.rounds)).encode())
    arrays = [
        projection.agents.arrays(),
        *(
            flatten(policy_state.belief)
            for policy_state in projection.policy_states.values()
            if policy_state.belief is not None
        ),
    ]
    for named in arrays:
        for name, array in sorted(named.items()):
            reported.update(name.encode())
            reported.update(np.ascontiguousarray(array).data)
    return reported.hexdigest()[:16]
