"""Opening a round: who joins, who is there in which state, what was asked for, and remarks on it."""

import hashlib
from typing import Any

import numpy as np

from restive.desk import events
from restive.desk.cache import ProgramCache
from restive.desk.explanations import count_people
from restive.desk.ingest import (
    NumberedStates,
    RoundInput,
    check_lists,
    check_similar_ids,
    describe_groups,
    describe_round,
    find_listed,
    find_present,
    name_few,
    name_people,
    number_states,
)
from restive.desk.projection import Present, Projection
from restive.desk.store import Event, Writer
from restive.errors import Conflict, Hint, InputError
from restive.types import Ints


class AlreadyDecided(Conflict):
    """The round has its list; a second decision would act on twice as many people."""

    code = "already_decided"


def open_round(
    cache: ProgramCache, writer: Writer, projection: Projection, brought: RoundInput, again: bool
) -> tuple[Event, list[str]]:
    """Open a round, unless it is the last one asked for twice: the same table, and nothing came in since."""
    before, lines = writer.length, projection.rounds
    last = lines[-1] if lines and max(lines[-1].opened, lines[-1].decided) == before - 1 else None
    opened, notes = _open(cache, writer, projection, brought)
    if last is None or again or opened.number != before:
        return opened, notes
    if projection.read(last.opened).header["input"] == opened.header["input"]:
        done, number = "decided" if last.decided >= 0 else "opened", last.round
        raise AlreadyDecided(
            f"Round {number} of {cache.name} was {done} at {last.at} from the same states, and nothing was recorded "
            "since then. Nothing was recorded now.",
            hint=Hint.AGAIN,
        )
    return opened, notes


def _open(cache: ProgramCache, writer: Writer, projection: Projection, brought: RoundInput) -> tuple[Event, list[str]]:
    notes = [f"ignored columns: {', '.join(brought.unread)}"] if brought.unread else []
    budget = projection.config.budget if brought.budget is None else brought.budget
    arrivals = None
    if brought.table is not None:
        arrivals = number_states(brought.table, cache.names(projection), projection)
        back = _find_returned(projection, arrivals)
        notes += _join(cache, writer, projection, arrivals, brought.new)
        notes += name_people("returned after leaving", cache.names(projection).call(back), projection.config.words)
    names, round_ = cache.names(projection), projection.next_round
    present = find_present(projection, arrivals, round_)
    if present.number.size == 0:
        raise InputError("Nobody has a state in this round.")
    must, strangers = find_listed(brought.must, names)
    never, unknown = find_listed(brought.never, names)
    if strangers:
        raise InputError(f"{name_few(strangers)}: on the must list, but not in the program.")
    notes += name_people("on the never list, but not in the program", unknown, projection.config.words)
    notes += describe_round(projection, present, names)
    check_lists(must, never, projection, present, budget, names)
    columns = present._asdict() | {"state": present.state.astype(np.int16)}
    extra = {what: {"number": listed} for what, listed in (("must", must), ("never", never)) if listed.size}
    header = {"budget": budget, "input": _digest(*_asked(present, arrivals), budget, must, never)}
    return cache.append(writer, events.OPENED, header, columns=columns, round=round_, extra=extra), notes


def _find_returned(projection: Projection, arrivals: NumberedStates) -> Ints:
    """Who had left, and has a state again."""
    known = arrivals.number[(arrivals.number < projection.agents.count) & (arrivals.state >= 0)]
    return known[~projection.agents.active[known]]


def _join(
    cache: ProgramCache, writer: Writer, projection: Projection, arrivals: NumberedStates, surely: bool
) -> list[str]:
    """Let in those who are new, and move those who changed their group."""
    notes, new, first = describe_groups(projection, arrivals.new.groups), arrivals.new, projection.agents.count
    names, words = cache.names(projection), projection.config.words
    groups: dict[str, Any] = {"groups": new.groups}
    if new.names.len():
        if not surely:
            check_similar_ids(names.find_alike(new.names))
        columns = {"number": np.arange(first, first + new.names.len()), "group": new.group.astype(np.int16)}
        writer.add_names(new.names)
        names.add(new.names)
        cache.append(writer, events.JOINED, groups | {"first": first}, columns=columns)
        notes.append(f"{count_people(new.names.len(), words, 'new ')} joined")
    if arrivals.moved.size:
        columns = {"number": arrivals.moved, "group": arrivals.moved_to.astype(np.int16)}
        cache.append(writer, events.GROUPED, groups, columns=columns)
        notes += name_people("moved to another group", names.call(arrivals.moved), words)
    return notes


def _asked(present: Present, arrivals: NumberedStates | None) -> tuple[Ints, Ints]:
    """What a round was asked for with: the table that was given, or all that was known."""
    return (present.number, present.state) if arrivals is None else (arrivals.number, arrivals.state)


def _digest(*parts: Any) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(np.ascontiguousarray(part).data)
        digest.update(b"|")
    return digest.hexdigest()
