"""Outcomes: tables of them, compared with the record of their rounds, and those that follow from the next states.

A table of states says where everybody is now, which is also what came of the round before. Who was acted on is then
taken as advised, unless it was reported; such an assumption is replaced by a later report without a correction.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from restive.desk.agents import RoundTotals
from restive.desk.cache import ProgramCache
from restive.desk.config import Config, Words
from restive.desk.corrections import correct_outcomes
from restive.desk.events import Outcomes, Reported
from restive.desk.explanations import count_people
from restive.desk.ingest import NumberedStates, agent_faults, as_integers, describe_table, name_people, read_given
from restive.desk.projection import Projection
from restive.desk.roster import Names
from restive.desk.rounds import DONE, UNKNOWN, Round
from restive.desk.schedule import mention_round
from restive.desk.store import Writer
from restive.desk.table_columns import Fault, TableColumns, TableError, accept
from restive.desk.table_files import ROW
from restive.desk.table_mapping import TableMapping, spell_phones
from restive.desk.table_schema import OUTCOMES, read_outcomes
from restive.errors import Hint, InputError, check_whole

MAX_REWARD = 1e100  # squares of rewards are summed


def split_rounds(
    table: pl.DataFrame, where: str, cache: ProgramCache, projection: Projection, round_: int | None
) -> dict[int, pl.DataFrame]:
    """The rows of a table of outcomes by round; those without one are about the oldest that waits for these people."""
    last = len(projection.rounds)
    if not last:
        raise InputError(f"{where}: no round is decided yet, so there are no outcomes.")
    if round_ is not None:
        check_whole("round", round_, 1, last)
    given = table["round"]
    default = round_
    unnamed = given.null_count()
    if default is None and unnamed:
        without = table if unnamed == len(table) else table.filter(given.is_null())
        default = _default_round(without, where, cache, projection)
    if default is None:
        default = 1
    if unnamed == len(table):
        return {default: table}
    wrong = ((given < 1) | (given > last) | (given != (round_ if round_ is not None else given))).fill_null(False)
    if wrong.any():
        must = f"it must be {round_}" if round_ is not None else f"rounds go from 1 to {last}"
        rows = table.filter(wrong).select("row", "round").rows()
        raise TableError(where, [Fault(row, "round", f"{value}: {must}") for row, value in rows])
    filled = table.with_columns(pl.col("round").fill_null(default))
    if 0 < given.null_count() < len(given):
        _check_unique(filled, where)
    return {int(key[0]): part for key, part in sorted(filled.partition_by("round", as_dict=True).items())}


def _check_unique(table: pl.DataFrame, where: str) -> None:
    """Refuse two rows about one agent and round, of which one names the round and the other does not."""
    rows = table.filter(~pl.struct("agent", "round").is_first_distinct()).select("row", "agent", "round").rows()
    if rows:
        faults = [
            Fault(row, "agent", f"{name!r} appears twice for round {round_}; keep one") for row, name, round_ in rows
        ]
        raise TableError(where, faults)


def _default_round(table: pl.DataFrame, where: str, cache: ProgramCache, projection: Projection) -> int:
    """The oldest round that waits for the outcomes of all these people, otherwise the last one."""
    decided = [totals for totals in projection.rounds if not totals.cancelled]
    if not decided:
        raise InputError(f"{where}: no round is decided yet, so there are no outcomes.")
    names = cache.names(projection)
    numbers = as_integers(names.find(names.inward(table["agent"])))
    for totals in decided[:-1]:
        if totals.waiting >= numbers.size:
            found = cache.get_round(totals.round)
            places, there = found.find(numbers)
            if (there & (found.after[places] < 0)).all():
                return totals.round
    return decided[-1].round


def read_outcome_table(given: object, config: Config, names: Names) -> tuple[pl.DataFrame, str, list[str]]:
    """A validated table of outcomes with its row numbers, its name, and notes on it."""
    frame, where, notes = read_given(given, "outcomes")
    try:
        table = read_outcomes(frame, where, config.states, config.rewards, names.knows, config.mapping)
    except TableError as error:
        unknown = _find_unknown(frame, names, error.faults, config.mapping)
        raise TableError(where, [*error.faults, *unknown], error.total + len(unknown), error.hint) from None
    return table, where, notes + describe_table(frame, accept(OUTCOMES, config.mapping), table, config)


def _find_unknown(frame: pl.DataFrame, names: Names, faults: Sequence[Fault], mapping: TableMapping) -> list[Fault]:
    """Rows about unknown agents, so that they are reported together with the other faults, each row once."""
    columns = TableColumns(frame, "", OUTCOMES, required=(), mapping=mapping)
    agent, header = spell_phones(columns.texts("agent"), mapping.phone_country), columns.headers.get("agent", "agent")
    faulty = {fault.row for fault in faults if fault.column == header}
    table = pl.DataFrame({"row": frame[ROW], "agent": agent})
    unknown = (names.find(names.inward(agent.fill_null(""))).is_null() & agent.is_not_null()).to_numpy()
    similar = names.find_alike(agent.filter(pl.Series(unknown)))
    found = agent_faults(table, unknown, "is not in the program", header, similar)
    return [fault for fault in found if fault.row not in faulty]


class SortedOutcomes(NamedTuple):
    """The rows of a table of outcomes by what they mean for the record."""

    new: Outcomes
    corrected: Outcomes
    replaced: int  # of the corrected: only whether the action was done is new, which was assumed before
    repeated: int
    not_in_round: list[str]  # ids of agents who took no part in the round


def sort_outcomes(
    table: pl.DataFrame, where: str, names: Names, found: Round, projection: Projection, correct: bool
) -> SortedOutcomes:
    """Compare a validated table of outcomes of one round with the record of the round."""
    agent = table["agent"]
    numbers = as_integers(names.find(names.inward(agent)))
    unknown = numbers < 0
    places, present = found.find(numbers)
    similar = names.find_alike(agent.filter(unknown)) if unknown.any() else {}
    faults = agent_faults(table, unknown, "is not in the program", similar=similar)
    if not present.any():
        faults += agent_faults(table, ~unknown, f"took no part in {projection.totals(found.round).mention}")
    if projection.config.rewards is None:
        faults += _reward_faults(table)
    if faults:
        raise TableError(where, faults)
    not_in_round = [] if present.all() else agent.filter(~present).to_list()
    if not_in_round:
        table, numbers, places = table.filter(present), numbers[present], places[present]
    chosen, old_done, assumed = found.chosen[places], found.done[places], found.assumed[places]
    old_reward, old_after = found.reward[places], found.after[places]
    given, after = as_integers(table["done"]), as_integers(table["after"])
    reward = table["reward"].cast(pl.Float64).to_numpy()  # NaN for null
    done = np.where(given >= 0, given > 0, np.where(old_done == UNKNOWN, chosen, old_done == DONE))
    known, has_state, had_state = old_done != UNKNOWN, after >= 0, old_after >= 0
    has_done, had_done, other = given >= 0, known & ~assumed, done != (old_done == DONE)
    differs = (has_done & had_done & other) | (has_state & had_state & ((after != old_after) | (reward != old_reward)))
    if differs.any() and not correct:
        why = f"already has another outcome in {projection.totals(found.round).mention}"
        raise TableError(where, agent_faults(table, differs, why), hint=Hint.CORRECT)
    replaced = has_done & assumed & other & ~differs
    new = ((has_state & ~had_state) | (has_done & ~had_done)) & ~replaced & ~(differs & had_state)
    outcomes = Outcomes(numbers, done, reward, after, known, chosen, ~has_done & (assumed | ~known))
    fresh = outcomes._replace(reward=np.where(had_state, np.nan, reward), after=np.where(had_state, -1, after))
    keep = had_state & ~has_state  # only `done` is corrected
    corrected = outcomes._replace(
        reward=np.where(keep, old_reward, np.where(had_state, reward, np.nan)),
        after=np.where(keep, old_after, np.where(had_state, after, -1)),
    )
    repeated = int(((has_done | has_state) & ~new & ~differs & ~replaced).sum())
    changed = corrected.take(differs | replaced)
    return SortedOutcomes(fresh.take(new), changed, int(replaced.sum()), repeated, not_in_round)


def _reward_faults(table: pl.DataFrame) -> list[Fault]:
    alone = table.filter(pl.col("reward").is_not_null() & pl.col("after").is_null())["row"]
    far = table.filter(pl.col("reward").abs() > MAX_REWARD).select("row", "reward").rows()
    return [Fault(row, "reward", "a reward without a next state; give both or neither") for row in alone] + [
        Fault(row, "reward", f"{reward:g} is out of range; rewards go from -1e100 to 1e100") for row, reward in far
    ]


class LearnedRound(NamedTuple):
    """What was recorded of one round."""

    rows: SortedOutcomes
    waiting: int
    treated_controls: int  # of the control group, those who were acted on


def learn_rounds(
    cache: ProgramCache,
    writer: Writer,
    projection: Projection,
    where: str,
    by_round: dict[int, pl.DataFrame],
    correct: bool,
) -> list[LearnedRound]:
    """Record the outcomes of each round; the faults of all rounds are reported together."""
    counts: list[LearnedRound] = []
    faults: list[Fault] = []
    hint = None
    for number, part in by_round.items():
        try:
            counts.append(_learn_round(cache, writer, projection, where, part, number, correct))
        except TableError as error:
            faults, hint = faults + error.faults, error.hint
    if faults:
        raise TableError(where, faults, hint=hint)
    return counts


def _learn_round(
    cache: ProgramCache,
    writer: Writer,
    projection: Projection,
    where: str,
    table: pl.DataFrame,
    number: int,
    correct: bool,
) -> LearnedRound:
    found = cache.get_round(number)
    if found.cancelled:
        cancelled = projection.totals(number).mention
        raise InputError(f"{where}: {cancelled} was cancelled, so it has no outcomes.", location=where)
    rows = sort_outcomes(table, where, cache.names(projection), found, projection, correct)
    waiting = found.missing - projection.totals(number).gone - int((rows.new.after >= 0).sum())
    if rows.corrected.number.size:
        correct_outcomes(cache, writer, projection, found, rows.corrected)
    if rows.new.number.size:
        cache.append(writer, Reported(rows.new), number)
    acted = rows.new.number[rows.new.done & ~rows.new.known], rows.corrected.number[rows.corrected.done]
    treated_controls = projection.agents.control[np.concatenate(acted)] & projection.config.has_control(number)
    return LearnedRound(rows, waiting, int(treated_controls.sum()))


def describe_learned(learned: list[LearnedRound], projection: Projection) -> list[str]:
    """Remarks on recorded outcomes."""
    words, notes = projection.config.words, []
    if treated := sum(each.treated_controls for each in learned):
        notes.append(
            f"treated although in the control group: {count_people(treated, words)}; this makes the lift less reliable"
        )
    not_in_round = [name for each in learned for name in each.rows.not_in_round]
    return notes + name_people("ignored, not in the round", not_in_round, words)


class PreviousResults(NamedTuple):
    """The outcomes of the round before, as far as they follow from the states of a new one."""

    round: int
    label: str
    decided_at: str
    recorded: int  # people whose outcome is recorded now
    present: int
    as_planned: int  # of the list: nothing was reported, taken as acted on
    reported: int  # of the list: whether they were acted on was reported before
    unknown: int  # of the list: the outcome is still missing


def find_previous(projection: Projection) -> RoundTotals | None:
    """The last round that is not cancelled, if outcomes of it are missing."""
    decided = [totals for totals in projection.rounds if not totals.cancelled]
    return decided[-1] if decided and decided[-1].waiting else None


def take_states_as_outcomes(
    cache: ProgramCache, writer: Writer, projection: Projection, arrivals: NumberedStates
) -> tuple[PreviousResults | None, list[str]]:
    """Record the states of a new round as outcomes of the round before, for everybody in both without an outcome.

    The round before is the last one that is not cancelled; there are no results if it has all its outcomes, and none
    but a note if rewards do not follow from states.
    """
    waiting, rewards = find_previous(projection), projection.config.rewards
    if waiting is None:
        return None, []
    previous = waiting.round
    if rewards is None:
        why = "because rewards are reported with each outcome"
        return None, [f"the states are not recorded as outcomes of {waiting.mention}, {why}"]
    found = cache.get_round(previous)
    given = arrivals.state >= 0
    number, state = arrivals.number[given], arrivals.state[given]
    places, there = found.find(number)
    chosen, known = found.chosen[places], found.done[places] != UNKNOWN
    done = np.where(known, found.done[places] == DONE, chosen)
    outcomes = Outcomes(number, done, np.array(rewards)[state], state, known, chosen, ~known)
    outcomes = outcomes.take(there & (found.after[places] < 0))
    if outcomes.number.size:
        cache.append(writer, Reported(outcomes, states_of=projection.next_round), previous)
    listed = found.chosen
    unknown, planned = int((listed & (found.after < 0)).sum()), int((outcomes.assumed & outcomes.advised).sum())
    counts = planned, int(listed.sum()) - planned - unknown, unknown
    return PreviousResults(previous, waiting.label, found.at, outcomes.number.size, found.number.size, *counts), []


def describe_previous(results: PreviousResults, words: Words) -> str:
    """What is recorded of the round before, in a sentence.

    >>> describe_previous(PreviousResults(3, "November 2026", "2026-11-02T09:30:00", 282, 300, 16, 0, 4), Words())
    'also records the results of November 2026 (round 3) for 282 of 300 people; on its list: 16 as planned, 4 unknown'
    """
    parts = ((results.as_planned, "as planned"), (results.reported, "reported"), (results.unknown, "unknown"))
    listed = ", ".join(f"{number:,} {what}" for number, what in parts if number)
    people = count_people(results.present, words)
    whole = f"also records the results of {mention_round(results.label, results.round)} for {results.recorded:,} of {people}"
    return f"{whole}; on its list: {listed}" if listed else whole
