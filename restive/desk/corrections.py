"""Corrections of states and outcomes, and their effect on the rounds after them.

A correction is an event of its own; the record stays as it was. A state that a later round carried over, because nobody
reported a newer one, is corrected there too, so that the projection ends as if the record had been right from the
start.
"""

from typing import NamedTuple

import numpy as np
import polars as pl

from restive.desk.agents import RoundTotals
from restive.desk.cache import ProgramCache
from restive.desk.events import Corrected, Outcomes, States, Withdrawn
from restive.desk.explanations import capitalize
from restive.desk.ingest import agent_faults
from restive.desk.projection import Projection
from restive.desk.roster import Names
from restive.desk.rounds import DONE, UNKNOWN, Round
from restive.desk.store import Writer
from restive.desk.table_columns import TableError
from restive.errors import Conflict
from restive.types import Bools, Ints

# Later than any event.
NEVER = np.iinfo(np.int64).max


class LatestStates(NamedTuple):
    """Corrected states, with the event range [since, until) in which each was the latest known."""

    number: Ints
    state: Ints
    since: Ints
    until: Ints

    def take(self, rows: Bools) -> "LatestStates":
        """Some of the rows."""
        return LatestStates._make(column[rows] for column in self)


def correct_outcomes(
    cache: ProgramCache, writer: Writer, projection: Projection, found: Round, right: Outcomes
) -> None:
    """Record the right outcomes of a round."""
    places, _ = found.find(right.number)
    moved = (right.after >= 0) & (right.after != found.after[places])
    latest = LatestStates(right.number, right.after, found.reported_at[places], np.full(places.size, NEVER)).take(moved)
    _record(cache, writer, projection, found.round, right)
    _correct_later_rounds(cache, writer, projection, found.round, latest)


def find_wrong_states(
    table: pl.DataFrame, where: str, names: Names, found: Round, totals: RoundTotals
) -> tuple[Ints, Ints]:
    """The agents whose state in a round differs from the table, in ascending order, and their states in the table."""
    number = names.find(names.inward(table["agent"])).fill_null(-1).to_numpy().astype(np.int64)
    places, there = found.find(number)
    reported = table["state"].is_not_null().to_numpy()
    if not (there & reported).all():
        why = f"took no part in {totals.mention}, or has no state here"
        raise TableError(where, agent_faults(table, ~(there & reported), why))
    state = table["state"].cast(pl.Int64).to_numpy()
    wrong = np.flatnonzero(found.state[places] != state)
    order = wrong[np.argsort(number[wrong])]
    return number[order], state[order]


def correct_states(
    cache: ProgramCache, writer: Writer, projection: Projection, found: Round, number: Ints, state: Ints
) -> None:
    """Record the right states of a round, and the outcomes of the round before that were taken from them."""
    if number.size:
        places, _ = found.find(number)
        _correct_taken_outcomes(cache, writer, projection, found, number, state)
        latest = LatestStates(number, state, np.full(number.size, -1), _first_outcome(found, places))
        reported = np.ones(number.size, np.bool_)
        _record(cache, writer, projection, found.round, States(number, state, ~reported, reported))
        _correct_later_rounds(cache, writer, projection, found.round, latest)


def withdraw_reports(cache: ProgramCache, writer: Writer, projection: Projection, found: Round, number: Ints) -> Ints:
    """Withdraw what was reported of agents in a round, while no later round rests on it; those who had a report.

    A next state may have been carried over into a round that was decided since; then only a correction is possible.
    """
    number = number[found.find(number)[1]]
    number = number[found.done[found.find(number)[0]] != UNKNOWN]
    reported_at = found.reported_at[found.find(number)[0]]
    last, this = projection.rounds[-1], projection.totals(found.round)
    if ((reported_at >= 0) & (reported_at < last.event)).any():
        raise Conflict(
            f"{capitalize(last.mention)} was decided from this outcome of {this.mention}; it can be corrected, but not withdrawn."
        )
    if number.size:
        cache.append(writer, Withdrawn(number), found.round)
        writer.drop_snapshots(after=projection.totals(found.round).event)
        cache.mark_outdated()
    return number


def _correct_taken_outcomes(
    cache: ProgramCache, writer: Writer, projection: Projection, found: Round, number: Ints, state: Ints
) -> None:
    """Correct the outcomes of the round before that were taken from the wrong states of this one."""
    decided = [totals.round for totals in projection.rounds[: found.round - 1] if not totals.cancelled]
    if not decided or projection.config.rewards is None:
        return
    before = cache.get_round(decided[-1])
    places, there = before.find(number)
    wrong = found.state[found.find(number)[0]]
    taken = there & (before.states_of[places] == found.round) & (before.after[places] == wrong)
    if taken.any():
        done, known = before.done[places] == DONE, np.ones(number.size, np.bool_)
        reward = np.array(projection.config.rewards)[state]
        right = Outcomes(number, done, reward, state, known, before.chosen[places], before.assumed[places])
        correct_outcomes(cache, writer, projection, before, right.take(taken))


def _first_outcome(found: Round, places: Ints) -> Ints:
    """The number of the event with the first outcome; later rounds no longer depend on the state in this one."""
    return np.where(found.after[places] < 0, NEVER, found.reported_at[places])


def _correct_later_rounds(
    cache: ProgramCache, writer: Writer, projection: Projection, round_: int, latest: LatestStates
) -> None:
    """Correct the rounds after this one that carried over these states: those decided while they were the latest.

    An outcome can be late: a round may be decided before it is reported and the next one after it.
    """
    for totals in projection.rounds[round_:]:
        latest = latest.take(latest.until > totals.event)
        if latest.number.size == 0:
            return
        found = cache.get_round(totals.round)
        places, there = found.find(latest.number)
        reported_again = there & found.reported[places]
        wrong = there & ~reported_again & (latest.since < totals.event) & (found.state[places] != latest.state)
        if wrong.any():
            carried_over, nobody = found.carried_over[places[wrong]], np.zeros(int(wrong.sum()), np.bool_)
            number, state = latest.take(wrong)[:2]
            _record(cache, writer, projection, totals.round, States(number, state, carried_over, nobody))
        until = np.where(there, np.minimum(latest.until, _first_outcome(found, places)), latest.until)
        latest = latest._replace(until=until).take(~reported_again)


def _record(cache: ProgramCache, writer: Writer, projection: Projection, round_: int, right: States | Outcomes) -> None:
    """Write the correction; the projection is rebuilt from a snapshot before the round."""
    cache.append(writer, Corrected(right), round_)
    writer.drop_snapshots(after=projection.totals(round_).event)
    cache.mark_outdated()
