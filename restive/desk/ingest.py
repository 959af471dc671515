"""Turns the tables that people give into arrays over agent numbers, and notes what they should know about them.

All faults of a table are found before any of it is used, and reported by row and column.
"""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import date
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from restive.desk.agents import Activity, RoundTotals
from restive.desk.cache import ProgramCache
from restive.desk.config import MAX_BUDGET, Config, Words
from restive.desk.events import DecisionInput, Grouped, Joined, States
from restive.desk.explanations import capitalize, count_people, show_amount
from restive.desk.features import encode
from restive.desk.projection import Projection
from restive.desk.roster import Names, normalize_names
from restive.desk.store import Writer
from restive.desk.table_columns import AllKnown, ColumnNames, Fault, accept, match_headers, unread
from restive.desk.table_files import TableFile, as_frame, open_table_file
from restive.desk.table_mapping import NO_MAPPING, TableMapping, days_before, normalize_header, spell_phones
from restive.desk.table_schema import count_normalized, read_agents, read_states
from restive.errors import Conflict, Hint, InputError, check_whole, did_you_mean
from restive.kernels.spending import ROUNDING
from restive.types import Bools, Floats, Ints

MAX_NAMED = 5  # people or rounds in a sentence
MIN_SAME = 20  # people whose states are all as in the last round: probably its table once more
MAX_GROUPS = 2**15  # their codes are recorded in 16 bits
MIN_KEEP = 2  # rounds for which states are carried over where a round is decided without a table


class Given(NamedTuple):
    """A table as a frame, its name for messages, and remarks on its file."""

    frame: pl.DataFrame
    where: str
    notes: list[str]


def read_given(given: object, where: str) -> Given:
    """A file or a table in Python as a frame."""
    if isinstance(given, str | PathLike):
        file = open_table_file(given)
        return Given(file.frame, Path(given).name, file.notes())
    return Given(as_frame(given), where, given.notes() if isinstance(given, TableFile) else [])


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
    cost: Floats  # of all rows, NaN where the cell is empty; empty if people have no costs


def number_states(table: pl.DataFrame, names: Names, projection: Projection) -> NumberedStates:
    """Number the agents of a validated table of states; new ones follow the last."""
    inward = names.inward(table["agent"])
    numbers = as_integers(names.find(inward)).copy()
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
    cost = table["cost"].fill_null(np.nan).to_numpy() if "cost" in table.columns else np.zeros(0)
    state = as_integers(table["state"])
    return NumberedStates(new, group[unknown], groups, numbers, state, *changed, *news, cost)


def _find_changed(features: Floats, numbers: Ints, projection: Projection) -> Ints:
    """The known agents of whom a table has other features than those recorded when they joined."""
    if not features.size:
        return numbers[:0]
    differs = ~np.isnan(features) & (features != projection.agents.features[numbers])
    changed: Ints = numbers[differs.any(axis=1)]
    return changed


def as_integers(column: pl.Series) -> Ints:
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
    return as_integers(reported.replace_strict(codes, default=-1, return_dtype=pl.Int64)), new


def find_present(projection: Projection, states: NumberedStates | None, round_: int) -> States:
    """Who takes part in a round: agents with a state, or with a recent one that is carried over."""
    agents, keep = projection.agents, projection.config.keep
    if states is None:
        return mark_present(agents, agents.active, None, max(keep, MIN_KEEP), round_)
    given = np.full(agents.count, -1)
    given[states.number] = states.state
    return mark_present(agents, agents.active, given, keep, round_)


def mark_present(agents: Activity, active: Bools, given: Ints | None, keep: int, round_: int) -> States:
    """Who takes part in a round, if these states are given, [N], −1 for none, and known ones are kept for so many rounds."""
    state = np.where(active & (round_ - agents.state_round <= keep), agents.state, -1)
    carried_over, reported = agents.state_round < round_, np.zeros(state.size, np.bool_)
    if given is not None:
        reported = given >= 0
        state[reported], carried_over[reported] = given[reported], False
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
        frame, where, notes = read_given(states, "states")
        known = all_known, config.features, config.mapping, config.display, bool(config.cost_unit)
        table = read_states(frame, where, config.states, *known)
        columns = accept(config.state_columns, config.mapping)
        notes += describe_table(frame, columns, table, config)
        absent = [name for name in config.features if name not in match_headers(frame, columns)]
        notes += [f"no column for these features: {', '.join(absent)}"] if absent else []
        kept = [name for name in config.display if name not in table.columns]
        notes += [f"no column for these display columns, which stay as they were: {', '.join(kept)}"] if kept else []
        if config.cost_unit and "cost" not in match_headers(frame, columns):
            notes.append("no column for the cost, which stays as it was")
        if table.is_empty():
            raise InputError(f"{where}: the table has no rows; without a table the last known states are used.")
    wanted = None if budget is None else check_whole("budget", budget, 0, MAX_BUDGET)
    must_list, never_list = (
        None if given is None else read_list(given, what, config.mapping)
        for what, given in (("must", must), ("never", never))
    )
    return RoundInput(table, notes, wanted, must_list, never_list, new)


def describe_table(frame: pl.DataFrame, columns: ColumnNames, table: pl.DataFrame, config: Config) -> list[str]:
    """Notes on a table: columns that are ignored, rows that were merged, and ids that were read in another spelling."""
    mapping, ignored, headers = config.mapping, unread(frame, columns), match_headers(frame, columns)
    normalized = count_normalized(frame, table, mapping)
    notes = [f"ignored columns: {name_few(ignored)}"] if ignored else []
    if len(table) < len(frame):
        notes.append(f"rows that repeat another one, merged with it: {len(frame) - len(table):,}")
    state = headers.get("state", headers.get("next_state", ""))
    if mapping.cut_points and normalize_header(state) == normalize_header(mapping.cut_points.column):
        days = ", as days before today" if days_before(frame[state], date.today()) is not None else ""
        classes = mapping.cut_points.describe(config.states).items()
        notes.append(f"states by {state}{days}: {', '.join(f'{name} {numbers}' for name, numbers in classes)}")
    if normalized and mapping.phone_country:
        notes.append(f"ids read as phone numbers, written like +{mapping.phone_country} ...: {normalized:,}")
    elif normalized:
        notes.append(f"ids with invisible or decomposed characters, read without them: {normalized:,}")
    return notes


def read_list(given: object, what: str, mapping: TableMapping = NO_MAPPING) -> pl.Series:
    """Ids, from a list or from a table."""
    if isinstance(given, list | tuple | set | frozenset):
        ids = normalize_names(pl.Series("agent", [str(name) for name in given], pl.String))
        return spell_phones(ids, mapping.phone_country)
    frame, where, _ = read_given(given, what)
    return read_agents(frame, where, mapping)


def find_listed(listed: pl.Series | None, names: Names) -> tuple[Ints, list[str]]:
    """The numbers of the agents on a list, and the ids that are unknown."""
    if listed is None:
        return np.zeros(0, np.int64), []
    number = names.find(names.inward(listed))
    unknown = listed.filter(number.is_null()).to_list()
    return np.unique(number.drop_nulls().to_numpy().astype(np.int64)), unknown


def check_lists(given: DecisionInput, projection: Projection, names: Names) -> None:
    """Refuse must and never lists that contradict each other or the round."""
    must, never, present = given.must, given.never, given.states
    if not must.size:
        return
    both, missing = np.intersect1d(must, never), must[~np.isin(must, present.number)]
    in_control = must[projection.agents.control[must] & projection.config.has_control(projection.next_round)]
    for wrong, why in (
        (both, "on the must list and on the never list"),
        (missing, "on the must list, but without a state in this round"),
        (in_control, "on the must list, but in the control group, which is never treated"),
    ):
        if wrong.size:
            raise InputError(f"{name_few(names.call(wrong))}: {why}.")
    if given.cost is not None:
        cost, unit = float(given.cost[np.isin(present.number, must)].sum()), projection.config.cost_unit
        if cost > given.budget * (1 + ROUNDING):
            wanted, there = show_amount(cost, unit), show_amount(given.budget, unit)
            raise InputError(f"The people on the must list cost {wanted}, but the budget is {there}.")
    elif must.size > given.budget:
        raise InputError(f"{must.size} people are on the must list, but the budget is {given.budget}.")


def find_costs(projection: Projection, present: States, arrivals: NumberedStates | None, names: Names) -> Floats | None:
    """What acting on each agent present costs, as reported now or before; None if people have no costs."""
    if not projection.config.cost_unit:
        return None
    cost = projection.agents.cost.copy()
    if arrivals is not None:
        given = ~np.isnan(arrivals.cost)
        cost[arrivals.number[given]] = arrivals.cost[given]
    unknown = present.number[np.isnan(cost[present.number])]
    if unknown.size:
        people = count_people(unknown.size, projection.config.words)
        raise InputError(
            f"The cost of {people} is not known ({name_few(names.call(unknown))}); give each a number above 0 in the "
            "column cost.",
            location="states",
        )
    return cost[present.number]


def check_spelling(names: Names, projection: Projection, country: int | None) -> None:
    """Refuse a calling code with which people who are known would not be found."""
    known = pl.Series(names.call(np.arange(projection.agents.count)), dtype=pl.String)
    hidden = bool(projection.config.pseudonyms) and len(known) > 0
    if hidden or (spell_phones(known, country) != known).any():
        raise InputError(
            "People are known by ids in another spelling; phone_country can only be set before they join.",
            location="phone_country",
        )


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
    notes += name_people(
        "left out, without a state in this round", names.call(np.flatnonzero(exclusions)), config.words
    )
    if config.shares:
        used = {projection.groups[code] for code in np.unique(agents.group[agents.active]) if code >= 0}
        notes += [
            f"nobody is in the group {group}, which has a share{did_you_mean(group, used).removesuffix('.')}"
            for group in config.shares
            if group not in used
        ]
    if config.horizon is not None and round_ > config.horizon:
        notes.append(f"round {round_} is beyond the horizon of {config.horizon} rounds")
    if projection.rounds and projection.rounds[-1].waiting == projection.rounds[-1].present:
        notes.append(f"{projection.rounds[-1].mention} has no outcomes yet")
    return notes


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


class AlreadyDecided(Conflict):
    """The round has its list; a second decision would act on twice as many people."""

    code = "already_decided"


def find_arrivals(
    cache: ProgramCache, writer: Writer, projection: Projection, requested: RoundInput, again: bool
) -> NumberedStates | None:
    """The table of states of the next round by agent numbers, None without a table; nothing is recorded.

    Unless `again`, a request that equals the last one is refused when nothing was recorded in between. New ids that
    look like known ones are refused, unless the request says that they are new.
    """
    names = cache.names(projection)
    arrivals = None if requested.table is None else number_states(requested.table, names, projection)
    last = projection.rounds[-1] if projection.rounds else None
    same_people = arrivals is None or not (arrivals.new.len() or arrivals.moved.size)
    if last is not None and last.event == projection.last and same_people and not again:
        used = arrivals or find_present(projection, None, projection.next_round)
        budget = projection.config.budget if requested.budget is None else requested.budget
        must, never, _ = _find_lists(requested, names)
        header = projection.last_header or projection.read(last.event).header
        if header["input"] == _digest_request(used, budget, must, never):
            raise AlreadyDecided(
                f"{capitalize(last.mention)} of {cache.name} was decided on {projection.show_time(last.at)} from the same states, "
                "and nothing was recorded since.",
                hint=Hint.AGAIN,
            )
    if arrivals is not None and not again and last is not None and _is_last_table(projection, arrivals, last):
        raise AlreadyDecided(
            f"All {len(arrivals.number):,} states are those of {last.mention}, decided on {projection.show_time(last.at)}: "
            "this looks like the same table once more.",
            hint=Hint.AGAIN,
        )
    if arrivals is not None and not requested.new:
        check_similar_ids(names.find_alike(arrivals.new))
    return arrivals


def _is_last_table(projection: Projection, arrivals: NumberedStates, last: RoundTotals) -> bool:
    """Whether states that would be outcomes are those of the last round, for so many people that this is no chance."""
    agents, number = projection.agents, arrivals.number
    if not projection.config.states_are_outcomes or last.cancelled or arrivals.new.len():
        return False
    waiting = agents.state_round[number] == last.round  # nothing newer is known of them
    before, now = agents.state[number][waiting], arrivals.state[waiting]
    return now.size >= MIN_SAME and np.unique(now).size > 1 and np.array_equal(before, now)


def prepare_round(
    cache: ProgramCache,
    writer: Writer,
    projection: Projection,
    requested: RoundInput,
    arrivals: NumberedStates | None,
) -> tuple[DecisionInput, list[str]]:
    """The input of the next round and remarks on it; joins and changes of group are recorded."""
    notes = list(requested.notes)
    budget = projection.config.budget if requested.budget is None else requested.budget
    if arrivals is not None:
        back = _find_returned(projection, arrivals)
        notes += _join(cache, writer, projection, arrivals)
        notes += name_people("returned after leaving", cache.names(projection).call(back), projection.config.words)
        assert requested.table is not None
        shown = [name for name in projection.config.display if name in requested.table.columns]
        if shown:
            writer.put_display(arrivals.number, requested.table.select(shown))
    names = cache.names(projection)
    states = find_present(projection, arrivals, projection.next_round)
    if states.number.size == 0:
        raise InputError("Nobody has a state in this round.")
    must, never, unknown = _find_lists(requested, names)
    notes += name_people("on the never list, but not in the program", unknown, projection.config.words)
    notes += describe_round(projection, states, names)
    digest = _digest_request(arrivals or states, budget, must, never)
    given = DecisionInput(states, budget, must, never, digest, find_costs(projection, states, arrivals, names))
    check_lists(given, projection, names)
    return given, notes


def _find_lists(requested: RoundInput, names: Names) -> tuple[Ints, Ints, list[str]]:
    """The agents on the must list and on the never list, and the unknown ids on the never list."""
    must, unknown = find_listed(requested.must, names)
    if unknown:
        raise InputError(f"{name_few(unknown)}: on the must list, but not in the program.", location="must")
    return must, *find_listed(requested.never, names)


def _digest_request(used: NumberedStates | States, budget: int, must: Ints, never: Ints) -> str:
    """The digest by which a repeated request is recognised."""
    digest = hashlib.sha256()
    cost = (used.cost,) if isinstance(used, NumberedStates) and used.cost.size else ()
    for part in (used.number, used.state, budget, must, never, *cost):
        digest.update(np.ascontiguousarray(part).data)
        digest.update(b"|")
    return digest.hexdigest()


def _find_returned(projection: Projection, arrivals: NumberedStates) -> Ints:
    """Agents who had left and have a state again."""
    known = arrivals.number[(arrivals.number < projection.agents.count) & (arrivals.state >= 0)]
    return known[~projection.agents.active[known] & ~projection.agents.expected[known]]


def _join(cache: ProgramCache, writer: Writer, projection: Projection, arrivals: NumberedStates) -> list[str]:
    """Record new agents, and known ones with another group."""
    new, first = arrivals.new, projection.agents.count
    names, words = cache.names(projection), projection.config.words
    notes = [f"new group: {group}" for group in arrivals.groups] if projection.rounds and projection.groups else []
    if new.len():
        projection.check_room(first + new.len())
        writer.add_names(new)
        names.add(new)
        numbers = np.arange(first, first + new.len())
        cache.append(writer, Joined(numbers, arrivals.new_group, arrivals.groups, arrivals.new_features))
        notes.append(f"{count_people(new.len(), words, 'new ')} joined")
    if arrivals.moved.size:
        cache.append(writer, Grouped(arrivals.moved, arrivals.moved_to, arrivals.groups))
        moved = arrivals.moved[~projection.agents.expected[arrivals.moved]]
        notes += name_people("moved to another group", names.call(moved), words)
    notes += name_people("other features than when they joined, ignored", names.call(arrivals.changed), words)
    return notes
