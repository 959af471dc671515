"""Turns the tables that people give into arrays over agent numbers, and notes what they should know about them.

All faults of a table are found before any of it is used, and reported by row and column.
"""

import hashlib
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from restive.desk.cache import ProgramCache
from restive.desk.config import MAX_BUDGET, Config, Words
from restive.desk.events import DecisionInput, Grouped, Joined, Outcomes, States
from restive.desk.explanations import count_people
from restive.desk.features import encode
from restive.desk.projection import Projection
from restive.desk.roster import Names, normalize_names
from restive.desk.rounds import DONE, UNKNOWN, Round
from restive.desk.store import Writer
from restive.desk.table_files import ROW, as_frame, read_table_file
from restive.desk.table_schema import (
    OUTCOMES,
    AllKnown,
    ColumnNames,
    Fault,
    TableColumns,
    TableError,
    count_normalized,
    match_headers,
    read_agents,
    read_outcomes,
    read_states,
    state_columns,
    unread,
)
from restive.errors import Conflict, Hint, InputError, check_whole
from restive.formats import show_minute
from restive.types import Bools, Floats, Ints

MAX_NAMED = 5  # people or rounds in a sentence
MAX_GROUPS = 2**15  # their codes are recorded in 16 bits
MAX_REWARD = 1e100  # squares of rewards are summed


def read_given(given: object, where: str) -> tuple[pl.DataFrame, str]:
    """A file or a table in Python as a frame, and its name for messages."""
    if isinstance(given, str | PathLike):
        return read_table_file(Path(given)), Path(given).name
    return as_frame(given), where


class NumberedStates(NamedTuple):
    """A table of states, by agent numbers."""

    new: pl.Series  # the names of agents that the table names for the first time
    new_group: Ints  # the codes of their groups
    groups: list[str]  # the names of new groups
    number: Ints  # of all rows
    state: Ints  # −1 where the cell is empty
    moved: Ints  # agents in another group than before
    moved_to: Ints
    new_features: Floats  # of new agents, [M, F]
    changed: Ints  # known agents with other features than when they joined


def number_states(table: pl.DataFrame, names: Names, projection: Projection) -> NumberedStates:
    """Number the agents of a validated table of states; new ones follow the last."""
    inward = names.inward(table["agent"])
    numbers = _as_integers(names.find(inward)).copy()
    unknown = numbers < 0
    group, groups = _code_groups(table["group"], projection.groups)
    new = inward.filter(unknown) if unknown.any() else inward.clear()
    numbers[unknown] = projection.agents.count + np.arange(np.count_nonzero(unknown))
    known = ~unknown & (group >= 0)
    moved = known.copy()
    moved[known] = projection.agents.group[numbers[known]] != group[known]
    order = np.argsort(numbers[moved], kind="stable")
    changed = numbers[moved][order], group[moved][order]
    features = encode(table, projection.config.features)
    news = features[unknown], _find_changed(features[~unknown], numbers[~unknown], projection)
    return NumberedStates(new, group[unknown], groups, numbers, _as_integers(table["state"]), *changed, *news)


def _find_changed(features: Floats, numbers: Ints, projection: Projection) -> Ints:
    """The known agents of whom a table has other features than those recorded when they joined."""
    if not features.size:
        return numbers[:0]
    differs = ~np.isnan(features) & (features != projection.agents.features[numbers])
    changed: Ints = numbers[differs.any(axis=1)]
    return changed


def _as_integers(column: pl.Series) -> Ints:
    """Integers, −1 for null."""
    if column.null_count() == len(column):
        return np.full(len(column), -1)
    whole = column.cast(pl.Int64)
    return (whole.fill_null(-1) if whole.null_count() else whole).to_numpy()


def _code_groups(reported: pl.Series, known: list[str]) -> tuple[Ints, list[str]]:
    """The code of the group in each row, −1 for none, and the names of new groups."""
    if reported.null_count() == len(reported):
        return np.full(len(reported), -1), []
    codes = {name: code for code, name in enumerate(known)}
    new = [name for name in reported.drop_nulls().unique(maintain_order=True) if name not in codes]
    codes |= {name: len(codes) + place for place, name in enumerate(new)}
    if len(codes) > MAX_GROUPS:
        raise InputError(f"There would be {len(codes)} groups; a program has at most {MAX_GROUPS}.")
    return _as_integers(reported.replace_strict(codes, default=-1, return_dtype=pl.Int64)), new


def find_present(projection: Projection, states: NumberedStates | None, round_: int) -> States:
    """Who takes part in a round: agents with a state, or with a recent one that is carried over."""
    agents = projection.agents
    state = np.where(agents.active & (round_ - agents.state_round <= projection.config.keep), agents.state, -1)
    carried_over, reported = agents.state_round < round_, np.zeros(agents.count, np.bool_)
    if states is not None:
        given = states.state >= 0
        reported[states.number[given]] = True
        state[states.number[given]], carried_over[reported] = states.state[given], False
    number = np.flatnonzero(state >= 0)
    return States(number, state[number], carried_over[number], reported[number])


class RoundInput(NamedTuple):
    """The input of a round, read and validated, before agents are looked up."""

    table: pl.DataFrame | None  # of states
    notes: list[str]  # on the table
    budget: int | None
    must: pl.Series | None
    never: pl.Series | None
    new: bool = False  # ids that look like known ones belong to new agents


def read_round_input(
    states: object, budget: int | None, must: object, never: object, config: Config, new: bool = False,
    all_known: AllKnown | None = None,
) -> RoundInput:  # fmt: skip
    """Read the tables of a round; ids of known agents are not validated again."""
    table, notes = None, list[str]()
    if states is not None:
        frame, where = read_given(states, "states")
        table = read_states(frame, where, config.states, all_known, config.features)
        columns = state_columns(config.features)
        notes = describe_table(frame, columns, table["agent"])
        absent = [name for name in config.features if name not in match_headers(frame, columns)]
        notes += [f"no column for these features: {', '.join(absent)}"] if absent else []
        if table.is_empty():
            raise InputError(f"{where}: the table has no rows; without a table the last known states are used.")
    wanted = None if budget is None else check_whole("budget", budget, 0, MAX_BUDGET)
    must_list, never_list = (
        None if given is None else read_list(given, what) for what, given in (("must", must), ("never", never))
    )
    return RoundInput(table, notes, wanted, must_list, never_list, new)


def describe_table(frame: pl.DataFrame, columns: ColumnNames, agent: pl.Series) -> list[str]:
    """Notes on a table: columns that are ignored, and ids that were read in another spelling."""
    ignored, normalized = unread(frame, columns), count_normalized(frame, agent)
    notes = [f"ignored columns: {name_few(ignored)}"] if ignored else []
    if normalized:
        notes.append(f"ids with invisible or decomposed characters, read without them: {normalized:,}")
    return notes


def read_list(given: object, what: str) -> pl.Series:
    """Ids, from a list or from a table."""
    if isinstance(given, list | tuple | set | frozenset):
        return normalize_names(pl.Series("agent", [str(name) for name in given], pl.String))
    frame, where = read_given(given, what)
    return read_agents(frame, where)


def find_listed(listed: pl.Series | None, names: Names) -> tuple[Ints, list[str]]:
    """The numbers of the agents on a list, and the ids that are unknown."""
    if listed is None:
        return np.zeros(0, np.int64), []
    number = names.find(names.inward(listed))
    unknown = listed.filter(number.is_null()).to_list()
    return np.unique(number.drop_nulls().to_numpy().astype(np.int64)), unknown


def check_lists(must: Ints, never: Ints, projection: Projection, present: States, budget: int, names: Names) -> None:
    """Refuse must and never lists that contradict each other or the round."""
    if not must.size:
        return
    both, missing = np.intersect1d(must, never), must[~np.isin(must, present.number)]
    in_control = must[projection.agents.control[must]]
    for wrong, why in (
        (both, "on the must list and on the never list"),
        (missing, "on the must list, but without a state in this round"),
        (in_control, "on the must list, but in the control group, which is never treated"),
    ):
        if wrong.size:
            raise InputError(f"{name_few(names.call(wrong))}: {why}.")
    if must.size > budget:
        raise InputError(f"{must.size} people are on the must list, but the budget is {budget}.")


def check_similar_ids(similar: Mapping[str, str]) -> None:
    """Refuse new ids that are probably known ones written in another way, as spreadsheets do."""
    if similar:
        shown = ", ".join(f"{new} for {known}" for new, known in list(similar.items())[:MAX_NAMED])
        raise InputError(
            f"{len(similar):,} new ids differ from known ones only by leading zeros or capitals ({shown}). Nothing was "
            "recorded. Write known ids as before (in a spreadsheet, as text).",
            code="similar_ids",
            hint=Hint.NEW,
        )


def name_few(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more


def name_people(what: str, names: Sequence[str], words: Words) -> list[str]:
    """A note about people, if there are any.

    >>> name_people("returned after leaving", ["ann", "ben"], Words())
    ['returned after leaving: 2 people (ann, ben)']
    """
    return [f"{what}: {count_people(len(names), words)} ({name_few(names)})"] if names else []


def describe_round(projection: Projection, present: States, names: Names) -> list[str]:
    """Notes on a new round: states carried over, people left out, empty groups, a round beyond the horizon."""
    agents, config, round_ = projection.agents, projection.config, projection.next_round
    exclusions = agents.active.copy()
    exclusions[present.number] = False
    carried_over = int(present.carried_over.sum())
    notes = []
    if carried_over:
        notes.append(f"state carried over from an earlier round: {count_people(carried_over, config.words)}")
    notes += name_people("left out, without a recent state", names.call(np.flatnonzero(exclusions)), config.words)
    if config.shares:
        used = {projection.groups[code] for code in np.unique(agents.group[agents.active]) if code >= 0}
        notes += [f"nobody is in the group {group}, which has a share" for group in config.shares if group not in used]
    if config.horizon is not None and round_ > config.horizon:
        notes.append(f"round {round_} is beyond the horizon of {config.horizon} rounds")
    if projection.rounds and projection.rounds[-1].waiting == projection.rounds[-1].present:
        notes.append(f"round {len(projection.rounds)} has no outcomes yet")
    return notes


def split_rounds(
    table: pl.DataFrame, where: str, projection: Projection, round_: int | None
) -> dict[int, pl.DataFrame]:
    """The rows of a table of outcomes by round."""
    last = len(projection.rounds)
    if not last:
        raise InputError(f"{where}: no round is decided yet, so there are no outcomes.")
    if round_ is not None:
        check_whole("round", round_, 1, last)
    given = table["round"]
    if given.null_count() == len(given):
        return {(_default_round(projection, where) if round_ is None else round_): table}
    default = round_ if round_ is not None else _default_round(projection, where) if given.is_null().any() else 1
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


def _default_round(projection: Projection, where: str) -> int:
    """The last round, if no earlier one has no outcomes at all."""
    decided = [totals for totals in projection.rounds if not totals.cancelled]
    if not decided:
        raise InputError(f"{where}: no round is decided yet, so there are no outcomes.")
    empty = [totals.round for totals in decided if totals.outcomes == 0]
    if empty and empty != [decided[-1].round]:
        rounds = name_few([str(number) for number in empty])
        raise InputError(
            f"{where}: the table does not say which round it is about, and these have no outcomes yet: {rounds}.",
            code="round_unclear",
            hint=Hint.ROUND,
        )
    return decided[-1].round


def read_outcome_table(given: object, config: Config, names: Names) -> tuple[pl.DataFrame, str, list[str]]:
    """A validated table of outcomes with its row numbers, its name, and notes on it."""
    frame, where = read_given(given, "outcomes")
    try:
        table = read_outcomes(frame, where, config.states, config.rewards, names.knows)
    except TableError as error:
        unknown = _find_unknown(frame, names, error.faults)
        raise TableError(where, [*error.faults, *unknown], error.total + len(unknown)) from None
    notes = describe_table(frame, OUTCOMES, table["agent"])
    return table.hstack([frame[ROW].alias("row")]), where, notes


def _find_unknown(frame: pl.DataFrame, names: Names, faults: Sequence[Fault]) -> list[Fault]:
    """Rows about unknown agents, so that they are reported together with the other faults, each row once."""
    columns = TableColumns(frame, "", OUTCOMES, required=())
    agent, header = columns.texts("agent"), columns.headers.get("agent", "agent")
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
    repeated: int
    not_in_round: list[str]  # ids of agents who took no part in the round


def sort_outcomes(
    table: pl.DataFrame, where: str, names: Names, found: Round, projection: Projection, correct: bool
) -> SortedOutcomes:
    """Compare a validated table of outcomes of one round with the record of the round."""
    agent = table["agent"]
    numbers = _as_integers(names.find(names.inward(agent)))
    unknown = numbers < 0
    places, present = found.find(numbers)
    similar = names.find_alike(agent.filter(unknown)) if unknown.any() else {}
    faults = agent_faults(table, unknown, "is not in the program", similar=similar)
    if not present.any():
        faults += agent_faults(table, ~unknown, f"took no part in round {found.round}")
    if projection.config.rewards is None:
        faults += _reward_faults(table)
    if faults:
        raise TableError(where, faults)
    not_in_round = [] if present.all() else agent.filter(~present).to_list()
    if not_in_round:
        table, numbers, places = table.filter(present), numbers[present], places[present]
    chosen, old_done = found.chosen[places], found.done[places]
    old_reward, old_after = found.reward[places], found.after[places]
    given, after = _as_integers(table["done"]), _as_integers(table["after"])
    reward = table["reward"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    done = np.where(given >= 0, given > 0, np.where(old_done == UNKNOWN, chosen, old_done == DONE))
    has_done, had_done, has_state, had_state = given >= 0, old_done != UNKNOWN, after >= 0, old_after >= 0
    differs = (has_done & had_done & (done != (old_done == DONE))) | (
        has_state & had_state & ((after != old_after) | (reward != old_reward))
    )
    if differs.any() and not correct:
        why = f"already has another outcome in round {found.round}"
        raise TableError(where, agent_faults(table, differs, why), hint=Hint.CORRECT)
    new = ((has_state & ~had_state) | (has_done & ~had_done)) & ~(differs & had_state)
    outcomes = Outcomes(numbers, done, reward, after, had_done, chosen)
    keep = had_state & ~has_state  # only `done` is corrected
    corrected = outcomes._replace(
        reward=np.where(keep, old_reward, np.where(had_state, reward, np.nan)),
        after=np.where(keep, old_after, np.where(had_state, after, -1)),
    )
    repeated = int(((has_done | has_state) & ~new & ~differs).sum())
    return SortedOutcomes(outcomes.take(new), corrected.take(differs), repeated, not_in_round)


def agent_faults(
    table: pl.DataFrame, wrong: Bools, why: str, column: str = "agent", similar: Mapping[str, str] | None = None
) -> list[Fault]:
    """A fault for each wrong row about its agent, with the known id that looks like it."""
    if not wrong.any():
        return []
    rows = table.filter(pl.Series(wrong))
    guesses = {name: f" (did you mean {other!r}?)" for name, other in (similar or {}).items()}
    named = zip(rows["row"], rows["agent"], strict=True)
    return [Fault(row, column, f"{name!r} {why}{guesses.get(name, '')}") for row, name in named]


def _reward_faults(table: pl.DataFrame) -> list[Fault]:
    alone = table.filter(pl.col("reward").is_not_null() & pl.col("after").is_null())["row"]
    far = table.filter(pl.col("reward").abs() > MAX_REWARD).select("row", "reward").rows()
    return [Fault(row, "reward", "a reward without a next state; give both or neither") for row in alone] + [
        Fault(row, "reward", f"{reward:g} is out of range; rewards go from -1e100 to 1e100") for row, reward in far
    ]


class AlreadyDecided(Conflict):
    """The round has its list; a second decision would act on twice as many people."""

    code = "already_decided"


def prepare_round(
    cache: ProgramCache, writer: Writer, projection: Projection, requested: RoundInput, again: bool
) -> tuple[DecisionInput, list[str]]:
    """The input of the next round and remarks on it; joins and changes of group are recorded.

    Unless `again`, a request that equals the last one is refused when nothing was recorded in between.
    """
    before, last = writer.length, projection.rounds[-1] if projection.rounds else None
    given, notes = _read_input(cache, writer, projection, requested)
    unchanged = last is not None and last.event == before - 1 == writer.length - 1
    if last is not None and unchanged and not again and projection.read(last.event).header["input"] == given.digest:
        raise AlreadyDecided(
            f"Round {last.round} of {cache.name} was decided at {show_minute(last.at)} UTC from the same states, and nothing was "
            "recorded since.",
            hint=Hint.AGAIN,
        )
    return given, notes


def _read_input(
    cache: ProgramCache, writer: Writer, projection: Projection, requested: RoundInput
) -> tuple[DecisionInput, list[str]]:
    notes = list(requested.notes)
    budget = projection.config.budget if requested.budget is None else requested.budget
    arrivals = None
    if requested.table is not None:
        arrivals = number_states(requested.table, cache.names(projection), projection)
        back = _find_returned(projection, arrivals)
        notes += _join(cache, writer, projection, arrivals, requested.new)
        notes += name_people("returned after leaving", cache.names(projection).call(back), projection.config.words)
    names = cache.names(projection)
    states = find_present(projection, arrivals, projection.next_round)
    if states.number.size == 0:
        raise InputError("Nobody has a state in this round.")
    must, unknown = find_listed(requested.must, names)
    if unknown:
        raise InputError(f"{name_few(unknown)}: on the must list, but not in the program.", location="must")
    never, unknown = find_listed(requested.never, names)
    notes += name_people("on the never list, but not in the program", unknown, projection.config.words)
    notes += describe_round(projection, states, names)
    check_lists(must, never, projection, states, budget, names)
    used = states if arrivals is None else arrivals
    digest = _digest(used.number, used.state, budget, must, never)
    return DecisionInput(states, budget, must, never, digest), notes


def _find_returned(projection: Projection, arrivals: NumberedStates) -> Ints:
    """Agents who had left and have a state again."""
    known = arrivals.number[(arrivals.number < projection.agents.count) & (arrivals.state >= 0)]
    return known[~projection.agents.active[known]]


def _join(
    cache: ProgramCache, writer: Writer, projection: Projection, arrivals: NumberedStates, surely: bool
) -> list[str]:
    """Record new agents, and known ones with another group."""
    new, first = arrivals.new, projection.agents.count
    names, words = cache.names(projection), projection.config.words
    notes = [f"new group: {group}" for group in arrivals.groups] if projection.rounds and projection.groups else []
    if new.len():
        if not surely:
            check_similar_ids(names.find_alike(new))
        projection.check_room(first + new.len())
        writer.add_names(new)
        names.add(new)
        numbers = np.arange(first, first + new.len())
        cache.append(writer, Joined(numbers, arrivals.new_group, arrivals.groups, arrivals.new_features))
        notes.append(f"{count_people(new.len(), words, 'new ')} joined")
    if arrivals.moved.size:
        cache.append(writer, Grouped(arrivals.moved, arrivals.moved_to, arrivals.groups))
        notes += name_people("moved to another group", names.call(arrivals.moved), words)
    notes += name_people("other features than when they joined, ignored", names.call(arrivals.changed), words)
    return notes


def _digest(*parts: Any) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(np.ascontiguousarray(part).data)
        digest.update(b"|")
    return digest.hexdigest()
