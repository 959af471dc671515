"""From what people bring to what is recorded: tables of names become arrays over agent numbers, or nothing does.

Every problem of a table is found before any of it is used, and named by row and column.
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from restive.desk.config import MAX_BUDGET, Config
from restive.desk.names import Names
from restive.desk.projection import Present, Projection
from restive.desk.rounds import UNKNOWN, Round
from restive.desk.table_files import ROW, as_frame, read_table_file
from restive.desk.table_schema import (
    OUTCOMES,
    STATES,
    AllKnown,
    Fault,
    TableColumns,
    TableError,
    read_agents,
    read_outcomes,
    read_states,
    unread,
)
from restive.errors import InputError, check_whole
from restive.types import Bools, Floats, Ints

MAX_LIST = 5
MAX_GROUPS = 2**15  # their codes are recorded in 16 bits
MAX_REWARD = 1e100  # squares of rewards are added up


def read_given(given: object, where: str) -> tuple[pl.DataFrame, str]:
    """A file or any table that people have in Python, as a frame, and what to call it."""
    if isinstance(given, str | PathLike):
        return read_table_file(Path(given)), Path(given).name
    return as_frame(given), where


class Newcomers(NamedTuple):
    """Agents that a table names for the first time."""

    names: pl.Series
    group: Ints  # [M] codes
    groups: list[str]  # names of the groups so far unknown


class Arrivals(NamedTuple):
    """A table of states, by numbers."""

    new: Newcomers
    number: Ints  # of all rows
    state: Ints  # −1 where the table says nothing
    moved: Ints  # agents that are in another group than before
    moved_to: Ints


def place_states(table: pl.DataFrame, names: Names, projection: Projection) -> Arrivals:
    """Number the agents of a checked table of states; those not known yet come after the last."""
    inward = names.inward(table["agent"])
    numbers = _whole(names.find(inward)).copy()
    unknown = numbers < 0
    group, fresh = _code_groups(table["group"], projection.groups)
    new = Newcomers(inward.filter(unknown) if unknown.any() else inward.clear(), group[unknown], fresh)
    numbers[unknown] = projection.agents.count + np.arange(np.count_nonzero(unknown))
    old = ~unknown & (group >= 0)
    other = old.copy()
    other[old] = projection.agents.group[numbers[old]] != group[old]
    state = _whole(table["state"])
    order = np.argsort(numbers[other], kind="stable")
    return Arrivals(new, numbers, state, numbers[other][order], group[other][order])


def _whole(column: pl.Series) -> Ints:
    """Whole numbers, −1 where there is none."""
    if column.null_count() == len(column):
        return np.full(len(column), -1)
    whole = column.cast(pl.Int64)
    return (whole.fill_null(-1) if whole.null_count() else whole).to_numpy()


def _code_groups(reported: pl.Series, known: list[str]) -> tuple[Ints, list[str]]:
    """The code of the group in each row, −1 for none, and the names of groups so far unknown."""
    if reported.null_count() == len(reported):
        return np.full(len(reported), -1), []
    codes = {name: code for code, name in enumerate(known)}
    fresh = [name for name in reported.drop_nulls().unique(maintain_order=True) if name not in codes]
    codes |= {name: len(codes) + place for place, name in enumerate(fresh)}
    if len(codes) > MAX_GROUPS:
        raise InputError(
            f"there would be {len(codes)} groups; a program has at most {MAX_GROUPS}, each of many people."
        )
    return _whole(reported.replace_strict(codes, default=-1, return_dtype=pl.Int64)), fresh


def find_present(projection: Projection, arrivals: Arrivals | None, round_: int) -> Present:
    """Who takes part in a round: those with a state, and those whose last one is not too old to be kept."""
    agents = projection.agents
    state = np.where(agents.active & (round_ - agents.state_round <= projection.config.keep), agents.state, -1)
    kept, reported = agents.state_round < round_, np.zeros(agents.count, np.bool_)
    if arrivals is not None:
        said = arrivals.state >= 0
        reported[arrivals.number[said]] = True
        state[arrivals.number[said]], kept[reported] = arrivals.state[said], False
    number = np.flatnonzero(state >= 0)
    return Present(number, state[number], kept[number], reported[number])


class Brought(NamedTuple):
    """What people bring to a round, read and checked, before anything is looked up."""

    table: pl.DataFrame | None  # of states
    unread: list[str]  # columns of it that mean nothing here
    budget: int | None
    must: pl.Series | None
    never: pl.Series | None
    new: bool = False  # names that look like known ones are other people all the same

    def nothing(self) -> bool:
        """Whether nothing was brought at all."""
        return self.table is None and self.budget is None and self.must is None and self.never is None


def read_brought(
    states: object, budget: int | None, must: object, never: object, config: Config, new: bool = False,
    knows: AllKnown | None = None,
) -> Brought:  # fmt: skip
    """Read the tables of a round; names that somebody knows are not checked again."""
    table, others = None, []
    if states is not None:
        frame, where = read_given(states, "states")
        table, others = read_states(frame, where, config.states, knows), unread(frame, STATES)
        if table.is_empty():
            raise InputError(f"{where}: there is nobody in it; leave it out to go on from the states last known.")
    wanted = None if budget is None else check_whole("budget", budget, 0, MAX_BUDGET)
    on_it, off_it = (
        None if given is None else read_list(given, what) for what, given in (("must", must), ("never", never))
    )
    return Brought(table, others, wanted, on_it, off_it, new)


def read_list(given: object, what: str) -> pl.Series:
    """Names, from a list of them or from a table."""
    if isinstance(given, list | tuple | set | frozenset):
        return pl.Series("agent", [str(name).strip() for name in given], pl.String)
    frame, where = read_given(given, what)
    return read_agents(frame, where)


def find_listed(listed: pl.Series | None, names: Names) -> tuple[Ints, list[str]]:
    """The numbers of the agents on a list, and those that nobody knows."""
    if listed is None:
        return np.zeros(0, np.int64), []
    number = names.find(names.inward(listed))
    unknown = listed.filter(number.is_null()).to_list()
    return np.unique(number.drop_nulls().to_numpy().astype(np.int64)), unknown


def check_lists(must: Ints, never: Ints, projection: Projection, present: Present, budget: int, names: Names) -> None:
    """Refuse lists that cannot be kept; nobody on the must list always can."""
    if not must.size:
        return
    both, missing = np.intersect1d(must, never), must[~np.isin(must, present.number)]
    refused = must[projection.agents.control[must]]
    for wrong, why in (
        (both, "on the must list and on the never list; take them from one of them"),
        (missing, "on the must list, but without a state in this round; give their states"),
        (refused, "on the must list, but in the control group, which is never treated"),
    ):
        if wrong.size:
            raise InputError(f"{name_few(names.call(wrong))}: {why}.")
    if must.size > budget:
        raise InputError(
            f"{must.size} people are on the must list, and the budget is {budget}; raise it or shorten the list."
        )


def name_few(names: list[str]) -> str:
    """Some names, as a sentence can hold."""
    more = f" and {len(names) - MAX_LIST} more" if len(names) > MAX_LIST else ""
    return ", ".join(names[:MAX_LIST]) + more


def split_rounds(
    table: pl.DataFrame, where: str, projection: Projection, round_: int | None
) -> dict[int, pl.DataFrame]:
    """The rows by the round that they are about."""
    lines = projection.rounds
    if not lines:
        raise InputError(f"{where}: no round was decided yet, so there are no outcomes.")
    if round_ is not None:
        check_whole("round", round_, 1, len(lines))
    reported = table["round"]
    if reported.null_count() == len(reported):
        return {(_usual_round(projection, where) if round_ is None else round_): table}
    usual = round_ if round_ is not None else _usual_round(projection, where) if reported.is_null().any() else 1
    wrong = (
        (reported < 1) | (reported > len(lines)) | (reported != (round_ if round_ is not None else reported))
    ).fill_null(False)
    if wrong.any():
        rows = table.filter(wrong)
        must = f"must be {round_}" if round_ is not None else f"rounds go from 1 to {len(lines)}"
        raise TableError(
            where, [Fault(row, "round", f"{value}: {must}") for row, value in rows.select("row", "round").rows()]
        )
    filled = table.with_columns(pl.col("round").fill_null(usual))
    if 0 < reported.null_count() < len(reported):
        _refuse_twice(filled, where)
    return {int(key[0]): part for key, part in sorted(filled.partition_by("round", as_dict=True).items())}


def _refuse_twice(table: pl.DataFrame, where: str) -> None:
    """A row that names its round and one that does not can be about the same."""
    rows = table.filter(~pl.struct("agent", "round").is_first_distinct()).select("row", "agent", "round").rows()
    if rows:
        raise TableError(
            where,
            [
                Fault(row, "agent", f"{name!r} appears twice for round {reported}; keep one")
                for row, name, reported in rows
            ],
        )


def _usual_round(projection: Projection, where: str) -> int:
    """The last round, if no earlier one still waits for all of its outcomes."""
    decided = [line for line in projection.rounds if line.decided >= 0 and not line.cancelled]
    if not decided:
        raise InputError(f"{where}: no round was decided yet, so there are no outcomes.")
    blank = [line.round for line in decided if line.outcomes == 0]
    if blank and blank != [decided[-1].round]:
        listed = ", ".join(map(str, blank[:10]))
        raise InputError(
            f"{where}: nothing is known yet of round {listed}; say by --round or by a column round which one is meant."
        )
    return decided[-1].round


def read_reports(given: object, config: Config, names: Names) -> tuple[pl.DataFrame, str, list[str]]:
    """A table of outcomes with its rows, what to call it, and its columns that mean nothing here."""
    frame, where = read_given(given, "outcomes")
    try:
        table = read_outcomes(frame, where, config.states, config.rewards, names.knows)
    except TableError as found:
        strangers = _find_strangers(frame, names, found.faults)
        raise TableError(where, [*found.faults, *strangers], found.total + len(strangers)) from None
    return table.hstack([frame[ROW].alias("row")]), where, unread(frame, OUTCOMES)


def _find_strangers(frame: pl.DataFrame, names: Names, faults: Sequence[Fault]) -> list[Fault]:
    """Rows about people whom nobody knows, so that these are reported together with what else is wrong, each row once."""
    cells = TableColumns(frame, "", OUTCOMES, required=())
    agent, header = cells.texts("agent"), cells.headers.get("agent", "agent")
    blamed = {fault.row for fault in faults if fault.column == header}
    table = pl.DataFrame({"row": frame[ROW], "agent": agent})
    strange = (names.find(names.inward(agent.fill_null(""))).is_null() & agent.is_not_null()).to_numpy()
    alike = names.find_alike(agent.filter(pl.Series(strange)))
    found = _unknown(table, strange, "is not in the program", header, alike)
    return [fault for fault in found if fault.row not in blamed]


class Reports(NamedTuple):
    """What a table of outcomes says of the agents of one round, by the rows that say anything new."""

    number: Ints
    done: Bools
    reward: Floats
    after: Ints  # −1: only what was done
    known: Bools  # whether what was done had been said before
    advised: Bools

    def columns(self) -> dict[str, Any]:
        """What the event holds."""
        return self._asdict() | {"after": self.after.astype(np.int16)}

    def take(self, rows: Bools) -> "Reports":
        """Some of the rows, in the order of their agents."""
        order = np.flatnonzero(rows)[np.argsort(self.number[rows], kind="stable")]
        return Reports._make(column[order] for column in self)


class Sorted(NamedTuple):
    """The rows of a table of outcomes, apart."""

    new: Reports
    corrected: Reports
    repeated: int
    aside: list[str]  # who took no part in the round


def sort_outcomes(
    table: pl.DataFrame, where: str, names: Names, found: Round, projection: Projection, correct: bool
) -> Sorted:
    """Hold a checked table of outcomes, all of one round, against what the round holds already."""
    agent, label = table["agent"], found.round
    numbers = _whole(names.find(names.inward(agent)))
    strange = numbers < 0
    alike = names.find_alike(agent.filter(strange)) if strange.any() else {}
    faults = _unknown(table, strange, "is not in the program", alike=alike)
    places, there = found.find(numbers)
    aside = [] if there.all() else agent.filter(~there & ~strange).to_list()
    if not there.any():
        faults += _unknown(table, numbers >= 0, f"took no part in round {label}; it had no state then")
    if projection.config.rewards is None:
        faults += _wrong_rewards(table)
    if faults:
        raise TableError(where, faults)
    if aside:
        table, numbers, places = table.filter(there), numbers[there], places[there]
    before = _Known(found.chosen[places], found.done[places], found.reward[places], found.after[places])
    given = _read(table, projection, before)
    reported = given.reported
    whole = given.after >= 0
    again = before.after >= 0
    clash = (reported & (before.done != UNKNOWN) & (given.done != (before.done == 1))) | (
        whole & again & ((given.after != before.after) | (given.reward != before.reward))
    )
    if clash.any() and not correct:
        raise TableError(where, _clashes(table, clash, label))
    fresh = ((whole & ~again) | (reported & (before.done == UNKNOWN))) & ~(clash & again)
    reports = Reports(numbers, *given[:3], before.done != UNKNOWN, before.chosen)
    repaired = Reports(
        numbers, given.done, np.where(again & ~whole, before.reward, np.where(again, given.reward, np.nan)),
        np.where(again & ~whole, before.after, np.where(again, given.after, -1)), reports.known, reports.advised,
    )  # fmt: skip
    return Sorted(reports.take(fresh), repaired.take(clash), int(((reported | whole) & ~fresh & ~clash).sum()), aside)


class _Known(NamedTuple):
    chosen: Bools
    done: Ints
    reward: Floats
    after: Ints


class _Given(NamedTuple):
    done: Bools
    reward: Floats
    after: Ints
    reported: Bools  # whether the row says what was done


def _read(table: pl.DataFrame, projection: Projection, before: _Known) -> _Given:
    """What the rows say; whether it was done is as said, else as known, else as advised."""
    advised = np.where(before.done == UNKNOWN, before.chosen, before.done == 1)
    said = _whole(table["done"])
    done = np.where(said < 0, advised, said > 0)
    after = _whole(table["after"])
    if projection.config.rewards is None:
        reward = table["reward"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    else:
        reward = np.where(after >= 0, np.array(projection.config.rewards)[after], np.nan)
    return _Given(done, reward, after, said >= 0)


def _unknown(
    table: pl.DataFrame, wrong: Bools, why: str, column: str = "agent", alike: Mapping[str, str] | None = None
) -> list[Fault]:
    if not wrong.any():
        return []
    rows = table.filter(pl.Series(wrong))
    hints = {name: f" (did you mean {other!r}?)" for name, other in (alike or {}).items()}
    named = zip(rows["row"], rows["agent"], strict=True)
    return [Fault(row, column, f"{name!r} {why}{hints.get(name, '')}") for row, name in named]


def _wrong_rewards(table: pl.DataFrame) -> list[Fault]:
    alone = table.filter(pl.col("reward").is_not_null() & pl.col("after").is_null())["row"]
    far = table.filter(pl.col("reward").abs() > MAX_REWARD).select("row", "reward").rows()
    return [Fault(row, "reward", "a reward without a next state; give both, or neither so far") for row in alone] + [
        Fault(row, "reward", f"{reward:g} is out of range; rewards go from -1e100 to 1e100") for row, reward in far
    ]


def _clashes(table: pl.DataFrame, wrong: Bools, label: int) -> list[Fault]:
    rows = table.filter(pl.Series(wrong))
    why = f"has another outcome on record for round {label}; to replace it, say that this is a correction (--correct)"
    return [Fault(row, "agent", f"{name!r} {why}") for row, name in zip(rows["row"], rows["agent"], strict=True)]
