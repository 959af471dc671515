"""Undo: which request can be taken back, and what it recorded, in words.

Requests are taken back one by one, the last first: a list with the people and results that came with it, a report, a
correction, people who left, a cancelled round. Settings do not depend on these and stay, also those that came with a
table and say how tables are read. Erased names cannot come back,
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
from restive.formats import enumerate_words

PAGE_SIZE = 20
INDEPENDENT = (Changed.kind, Undone.kind)  # entries that neither rest on others nor can be undone
# What a request that can be undone did, as the end of a refusal to undo an earlier one.
RESTS: Mapping[str, str] = {
    "decided": "{round} was decided from it",
    "learned": "outcomes of {round} were reported after it",
    "corrected": "states of {round} were corrected after it",
    "withdrawn": "a report of {round} was withdrawn after it",
    "left": "people left after it",
    "cancelled": "{round} was cancelled after it",
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


def find_undoable(store: Store, program: int, projection: Projection) -> Undoable | None:
    """What undo would take back, None if there is nothing."""
    entry = next(_find_standing(store, program, projection), None)
    if entry is None or entry.verb not in RESTS:
        return None
    return describe_entry(entry, count_joined(store, program, entry), projection)


def find_entry(store: Store, program: int, projection: Projection, event: int | None) -> AuditRow:
    """The audit entry of the last request, which must have recorded this event first, if one is given."""
    entry = next(_find_standing(store, program, projection), None)
    if entry is not None and entry.verb == Erased.kind:
        when = projection.show_time(entry.at)
        raise Conflict(f"Ids were erased on {when}; what was recorded before cannot be undone.")
    if entry is None or entry.verb not in RESTS:
        raise Conflict("Nothing is recorded that could be undone.")
    if event is not None and event != entry.events.start:
        raise _refuse(store, program, projection, event, entry)
    return entry


def _refuse(store: Store, program: int, projection: Projection, event: int, last: AuditRow) -> Conflict:
    """Why the request that recorded this event cannot be undone."""
    if any(entry.events.start == event for entry in _find_standing(store, program, projection)):
        why = RESTS[last.verb].format(round=last.round and projection.totals(last.round).mention)
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


def describe_entry(entry: AuditRow, joined: int, projection: Projection) -> Undoable:
    """A request that can be undone."""
    words = projection.config.words
    rounds = entry.answer.get("rounds") or [entry.round]
    mention = enumerate_words(projection.totals(number).mention for number in rounds if number) if rounds[0] else ""
    results = entry.answer.get("results") or {}
    results_of = results.get("round") if results.get("recorded") else None
    message = f"{DESCRIPTIONS[entry.verb](mention, entry.answer, words)} {projection.show_time(entry.at)}"
    if results_of is not None:
        message += f", with the results of {projection.totals(results_of).mention} that came with it"
    if joined:
        message += f", by which {count_people(joined, words)} joined"
    return Undoable(entry.events.start, entry.verb, entry.round, results_of, entry.at, entry.by, joined, message)


# By the rounds, the answer and the words of the program; the time follows.
DESCRIPTIONS: Mapping[str, Callable[[str, Mapping[str, Any], Words], str]] = {
    "decided": lambda round_, *_: f"list of {round_}, decided on",
    "learned": lambda rounds, answer, words: (
        f"results of {rounds} for {count_people(answer['new'] + answer['corrected'], words)}, reported on"
    ),
    "corrected": lambda round_, answer, _: f"{answer['corrected']:,} states of {round_}, corrected on",
    "withdrawn": lambda round_, answer, words: (
        f"reports of {count_people(answer['count'], words)} in {round_}, withdrawn on"
    ),
    "left": lambda _, answer, words: f"leaving of {count_people(answer['count'], words)} on",
    "cancelled": lambda round_, *_: f"cancelling of {round_} on",
}
