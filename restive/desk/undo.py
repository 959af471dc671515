"""Undo: which request can be taken back, and what it recorded, in words.

Requests are taken back one by one, the last first: a list with the people and results that came with it, a report, a
correction, people who left, a cancelled round. Settings do not depend on these and stay. Erased names cannot come back,
so nothing that was recorded before an erasure can be undone.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from restive.desk.audit import AuditRow
from restive.desk.config import Words
from restive.desk.events import Changed, Erased, Joined, Undone
from restive.desk.explanations import count_people
from restive.desk.projection import Projection
from restive.desk.store import Store
from restive.errors import Conflict
from restive.formats import show_minute

PAGE_SIZE = 20
INDEPENDENT = (Changed.kind, Undone.kind)  # entries that neither rest on others nor can be undone
# What a request that can be undone did, as the end of a refusal to undo an earlier one.
RESTS: Mapping[str, str] = {
    "decided": "round {round} was decided from it",
    "learned": "outcomes of round {round} were reported after it",
    "corrected": "states of round {round} were corrected after it",
    "withdrawn": "a report of round {round} was withdrawn after it",
    "left": "people left after it",
    "cancelled": "round {round} was cancelled after it",
}


class Undoable(NamedTuple):
    """The last request, which can be taken back."""

    event: int  # the first that it recorded
    what: str  # the verb by which it was recorded
    round: int | None
    results_of: int | None  # the round whose results came with a list
    at: str
    by: str
    people: int  # who joined by it
    message: str


def find_undoable(store: Store, program: int, projection: Projection, show: Callable[[str], str]) -> Undoable | None:
    """What undo would take back, None if there is nothing; `show` writes a time."""
    entry = next(_find_standing(store, program, projection), None)
    if entry is None or entry.verb not in RESTS:
        return None
    return describe_entry(entry, count_joined(store, program, entry), projection.config.words, show)


def find_entry(store: Store, program: int, projection: Projection, event: int | None) -> AuditRow:
    """The audit entry of the last request, which must have recorded this event first, if one is given."""
    entry = next(_find_standing(store, program, projection), None)
    if entry is not None and entry.verb == Erased.kind:
        raise Conflict(f"Ids were erased at {show_minute(entry.at)} UTC; what was recorded before cannot be undone.")
    if entry is None or entry.verb not in RESTS:
        raise Conflict("Nothing is recorded that could be undone.")
    if event is not None and event != entry.events.start:
        raise _refuse(store, program, projection, event, entry)
    return entry


def _refuse(store: Store, program: int, projection: Projection, event: int, last: AuditRow) -> Conflict:
    """Why the request that recorded this event cannot be undone."""
    if any(entry.events.start == event for entry in _find_standing(store, program, projection)):
        why = RESTS[last.verb].format(round=last.round)
        return Conflict(f"This cannot be undone yet, because {why}. Undo that first.", location="event")
    return Conflict(f"Event {event} does not begin a request that can be undone.", location="event")


def _find_standing(store: Store, program: int, projection: Projection) -> Iterator[AuditRow]:
    """The audit entries of requests whose events have an effect, the newest first, without settings."""
    before = None
    while rows := store.audit_log(program, before, PAGE_SIZE):
        for row in rows:
            undone = any(row.events.start in taken_back for taken_back in projection.undone)
            if row.events and not undone and row.verb not in INDEPENDENT:
                yield row
        before = rows[-1].number


def count_joined(store: Store, program: int, entry: AuditRow) -> int:
    """The number of people who joined by a request."""
    joined = store.events(program, entry.events.start, entry.events.stop, kinds=[Joined.kind])
    return sum(event.columns["number"].size for event in joined)


def describe_entry(entry: AuditRow, joined: int, words: Words, show: Callable[[str], str]) -> Undoable:
    """A request that can be undone."""
    results = entry.answer.get("results") or {}
    results_of = results.get("round") if results.get("recorded") else None
    message = DESCRIPTIONS[entry.verb](entry.round, entry.answer, words).format(day=show(entry.at))
    if results_of is not None:
        message += f", with the results of round {results_of} that came with it"
    if joined:
        message += f", by which {count_people(joined, words)} joined"
    return Undoable(entry.events.start, entry.verb, entry.round, results_of, entry.at, entry.by, joined, message)


def _describe_report(_: int | None, answer: Mapping[str, Any], words: Words) -> str:
    rounds = answer["rounds"]
    people = count_people(answer["new"] + answer["corrected"], words)
    return f"results of round{'s' * (len(rounds) > 1)} {', '.join(map(str, rounds))} for {people}, reported {{day}}"


DESCRIPTIONS: Mapping[str, Callable[[int | None, Mapping[str, Any], Words], str]] = {
    "decided": lambda round_, *_: f"list of round {round_} of {{day}}",
    "learned": _describe_report,
    "corrected": lambda round_, answer, _: f"{answer['corrected']:,} corrected states of round {round_} of {{day}}",
    "withdrawn": lambda round_, answer, words: (
        f"withdrawal of the reports of {count_people(answer['count'], words)} in round {round_} of {{day}}"
    ),
    "left": lambda _, answer, words: f"leaving of {count_people(answer['count'], words)} of {{day}}",
    "cancelled": lambda round_, *_: f"cancelling of round {round_} of {{day}}",
}
