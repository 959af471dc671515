"""Prepare a round: let new agents join, find who is present in which state, and check the lists."""

import hashlib
from typing import Any

import numpy as np

from restive.desk.cache import ProgramCache
from restive.desk.events import DecisionInput, Grouped, Joined, States
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
from restive.desk.projection import Projection
from restive.desk.store import Writer
from restive.errors import Conflict, Hint, InputError
from restive.types import Ints


class AlreadyDecided(Conflict):
    """The round has its list; a second decision would act on twice as many people."""

    code = "already_decided"


def prepare_round(
    cache: ProgramCache, writer: Writer, projection: Projection, brought: RoundInput, again: bool
) -> tuple[DecisionInput, list[str]]:
    """The input of the next round and remarks on it; joins and changes of group are recorded.

    Unless `again`, a request that equals the last one is refused when nothing was recorded in between.
    """
    before, last = writer.length, projection.rounds[-1] if projection.rounds else None
    given, notes = _read_input(cache, writer, projection, brought)
    unchanged = last is not None and last.event == before - 1 == writer.length - 1
    if last is not None and unchanged and not again and projection.read(last.event).header["input"] == given.digest:
        raise AlreadyDecided(
            f"Round {last.round} of {cache.name} was decided at {last.at} from the same states, and nothing was "
            "recorded since.",
            hint=Hint.AGAIN,
        )
    return given, notes


def _read_input(
    cache: ProgramCache, writer: Writer, projection: Projection, brought: RoundInput
) -> tuple[DecisionInput, list[str]]:
    notes = [f"ignored columns: {', '.join(brought.unread)}"] if brought.unread else []
    budget = projection.config.budget if brought.budget is None else brought.budget
    arrivals = None
    if brought.table is not None:
        arrivals = number_states(brought.table, cache.names(projection), projection)
        back = _find_returned(projection, arrivals)
        notes += _join(cache, writer, projection, arrivals, brought.new)
        notes += name_people("returned after leaving", cache.names(projection).call(back), projection.config.words)
    names = cache.names(projection)
    states = find_present(projection, arrivals, projection.next_round)
    if states.number.size == 0:
        raise InputError("Nobody has a state in this round.")
    must, strangers = find_listed(brought.must, names)
    never, unknown = find_listed(brought.never, names)
    if strangers:
        raise InputError(f"{name_few(strangers)}: on the must list, but not in the program.", location="must")
    notes += name_people("on the never list, but not in the program", unknown, projection.config.words)
    notes += describe_round(projection, states, names)
    check_lists(must, never, projection, states, budget, names)
    digest = _digest(*_requested(states, arrivals), budget, must, never)
    return DecisionInput(states, budget, must, never, digest), notes


def _find_returned(projection: Projection, arrivals: NumberedStates) -> Ints:
    """Agents who had left and have a state again."""
    known = arrivals.number[(arrivals.number < projection.agents.count) & (arrivals.state >= 0)]
    return known[~projection.agents.active[known]]


def _join(
    cache: ProgramCache, writer: Writer, projection: Projection, arrivals: NumberedStates, surely: bool
) -> list[str]:
    """Record new agents, and known ones with another group."""
    notes, new, first = describe_groups(projection, arrivals.new.groups), arrivals.new, projection.agents.count
    names, words = cache.names(projection), projection.config.words
    if new.names.len():
        if not surely:
            check_similar_ids(names.find_alike(new.names))
        writer.add_names(new.names)
        names.add(new.names)
        cache.append(writer, Joined(np.arange(first, first + new.names.len()), new.group, new.groups))
        notes.append(f"{count_people(new.names.len(), words, 'new ')} joined")
    if arrivals.moved.size:
        cache.append(writer, Grouped(arrivals.moved, arrivals.moved_to, new.groups))
        notes += name_people("moved to another group", names.call(arrivals.moved), words)
    return notes


def _requested(states: States, arrivals: NumberedStates | None) -> tuple[Ints, Ints]:
    """The table that was given, or all that was known."""
    return (states.number, states.state) if arrivals is None else (arrivals.number, arrivals.state)


def _digest(*parts: Any) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(np.ascontiguousarray(part).data)
        digest.update(b"|")
    return digest.hexdigest()
