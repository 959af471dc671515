"""Corrections: what an earlier record should have said, and what that means for rounds that went on from it.

A correction is an event like any other; the record stays as it was. A state that a later round carried on, because
nobody said a newer one, is corrected there too. So what the events add up to ends as if it had been right at once.
"""

from typing import Any, NamedTuple

import numpy as np
import polars as pl

from restive.desk import events
from restive.desk.cache import ProgramCache
from restive.desk.ingest import Outcomes
from restive.desk.names import Names
from restive.desk.projection import Projection
from restive.desk.rounds import Round
from restive.desk.store import Writer
from restive.desk.table_schema import Fault, TableError
from restive.types import Bools, Ints

# Later than any event.
NEVER = np.iinfo(np.int64).max


class LastWord(NamedTuple):
    """States as they should have been, and from which event until which they were the last word on their agents."""

    number: Ints
    state: Ints
    since: Ints
    until: Ints

    def take(self, rows: Bools) -> "LastWord":
        """Some of them."""
        return LastWord._make(column[rows] for column in self)


def mend_outcomes(cache: ProgramCache, writer: Writer, projection: Projection, found: Round, reports: Outcomes) -> None:
    """Record outcomes of a round as they should have been."""
    places, _ = found.find(reports.number)
    moved = (reports.after >= 0) & (reports.after != found.after[places])
    word = LastWord(reports.number, reports.after, found.reported_at[places], np.full(places.size, NEVER)).take(moved)
    _record(cache, writer, projection, found.round, "outcomes", reports.columns())
    _carry_on(cache, writer, projection, found.round, word)


def find_corrected(table: pl.DataFrame, where: str, names: Names, found: Round) -> tuple[Ints, Ints]:
    """The agents whose state in a round is another than the table says, in ascending order, and what it says."""
    number = names.find(names.inward(table["agent"])).fill_null(-1).to_numpy().astype(np.int64)
    places, there = found.find(number)
    reported = table["state"].is_not_null().to_numpy()
    if not (there & reported).all():
        rows = table.filter(pl.Series(~(there & reported))).select("row", "agent").rows()
        why = f"took no part in round {found.round}, or has no state here"
        raise TableError(where, [Fault(row, "agent", f"{name!r} {why}") for row, name in rows])
    state = table["state"].cast(pl.Int64).to_numpy()
    wrong = np.flatnonzero(found.state[places] != state)
    order = wrong[np.argsort(number[wrong])]
    return number[order], state[order]


def mend_states(
    cache: ProgramCache, writer: Writer, projection: Projection, found: Round, number: Ints, state: Ints
) -> None:
    """Record states of a round as they should have been."""
    if number.size:
        places, _ = found.find(number)
        word = LastWord(number, state, np.full(number.size, -1), _next_word(found, places))
        said = np.ones(number.size, np.bool_)
        _record(cache, writer, projection, found.round, "states", _states(number, state, ~said, said))
        _carry_on(cache, writer, projection, found.round, word)


def _next_word(found: Round, places: Ints) -> Ints:
    """The event that says where agents went from this round, after which their states in it are news no more."""
    return np.where(found.after[places] < 0, NEVER, found.reported_at[places])


def _carry_on(cache: ProgramCache, writer: Writer, projection: Projection, round_: int, word: LastWord) -> None:
    """Correct the rounds after this one as far as they went on from these states: opened while they were the last word.

    An outcome can be late, so that a round was opened before it was reported_at of, and the one after that was not.
    """
    for line in projection.rounds[round_:]:
        word = word.take(word.until > line.opened)
        if word.number.size == 0:
            return
        found = cache.get_round(line.round)
        places, there = found.find(word.number)
        said_anew = there & found.reported[places]
        wrong = there & ~said_anew & (word.since < line.opened) & (found.state[places] != word.state)
        if wrong.any():
            kept, nobody = found.carried_over[places[wrong]], np.zeros(int(wrong.sum()), np.bool_)
            _record(cache, writer, projection, line.round, "states", _states(*word.take(wrong)[:2], kept, nobody))
        until = np.where(there, np.minimum(word.until, _next_word(found, places)), word.until)
        word = word._replace(until=until).take(~said_anew)


def _states(number: Ints, state: Ints, carried_over: Bools, reported: Bools) -> dict[str, Any]:
    return {"number": number, "state": state.astype(np.int16), "carried_over": carried_over, "reported": reported}


def _record(
    cache: ProgramCache, writer: Writer, projection: Projection, round_: int, what: str, columns: dict[str, Any]
) -> None:
    """Write it down; what the events add up to is found anew, from before the round."""
    cache.append(writer, events.CORRECTED, {"what": what}, columns=columns, round=round_)
    writer.drop_snapshots(after=projection.totals(round_).opened)
    cache.outdate()
