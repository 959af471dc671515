"""Reads a history from a table: a file, a frame, the folder of an export, or a program of the desk.

One row for each agent and round: agent, time, state, action and, where known, reward, next_state, propensity, advised,
arm, group, available. Any other column that is the same in all rows of each agent is a feature. Nothing is guessed:
what is ambiguous is refused with row and column, all faults at once, and what is left out is counted in `notes`.

Without a column next_state, the next state is that of the agent's row in the next round, if there is one. Rounds are the
distinct times, or periods of a stated length.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from restive.desk.roster import normalize_name
from restive.desk.table_files import quote
from restive.errors import InputError
from restive.logs.columns import ARMS, BINARY, MAX_STATES, HistoryTable, Rows
from restive.logs.features import Features, read_features
from restive.logs.gaps import Gaps, find_gaps
from restive.logs.history import BY_ROW, UNKNOWN, History
from restive.logs.options import ReadOptions
from restive.logs.plausibility import check_plausible, check_propensity, describe_history
from restive.logs.round_times import describe_times, read_rounds
from restive.logs.sources import open_source
from restive.types import Floats, Ints

STATE_COLUMNS = ("state", "next_state")


def read_history(
    source: object, *, store: str | None = None, options: ReadOptions | None = None, **given: Any
) -> History:
    """The history in a source; other arguments are those of `ReadOptions`.

    Parameters
    ----------
    source
        A .csv, .tsv, .xlsx or .parquet file, a polars or pandas frame, columns, rows, the folder of an export, a
        program of the desk, or "program:NAME" for the program of that name in `store`.

    >>> table = {"agent": ["ann", "ann", "ben", "ben"], "time": [1, 2, 1, 2], "state": ["low", "high", "low", "low"]}
    >>> history = read_history(table | {"action": [1, 0, 0, 0]}, rewards={"low": 0, "high": 1})
    >>> history.next_state.tolist(), history.reward.tolist()
    ([1, -1, 0, -1], [1.0, nan, 0.0, nan])
    """
    return read_table(*open_source(source, options or ReadOptions(**given), store))


def read_table(frame: pl.DataFrame, where: str, options: ReadOptions) -> History:
    """The history in a frame whose first column holds the row numbers."""
    table = HistoryTable(frame, where, options)
    agents, agent = _read_agents(table)
    rounds, round_ = read_rounds(table, options.every)
    states, state, after = _read_states(table, options)
    rows = _read_rows(table, options, agent, round_, state, after)
    order = _sort(table, rows, agents, rounds)
    table.raise_faults()
    rows = rows.take(order)
    notes = _link(table, rows, options)
    check_plausible(table, rows, options, len(states))
    table.raise_faults()
    states, value = _find_values(rows, states, options, notes)
    features = read_features(table, rows.agent, order, options.features)
    notes += [*describe_times(rounds, options.every), *_describe_left_out(rows), *features.notes()]
    history = _make(table, rows, agents, states, rounds, value, features, tuple(notes))
    return describe_history(history)


def _read_agents(table: HistoryTable) -> tuple[pl.Series, Ints]:
    """The ids in the order of their first rows, and the position of each row's."""
    ids = table.ids()
    names = ids.drop_nulls().unique(maintain_order=True)
    return names, _encode(ids, names)


def _encode(texts: pl.Series, names: pl.Series) -> Ints:
    """The position of each text among names, −1 where it is null."""
    codes = texts.cast(pl.Enum(names)).to_physical().cast(pl.Int64)
    return codes.fill_null(UNKNOWN).to_numpy()


def _read_states(table: HistoryTable, options: ReadOptions) -> tuple[list[str], Ints, Ints | None]:
    """The names of states, and the codes of states and next states."""
    cells: dict[str, pl.Series] = {name: table.cells(name) for name in STATE_COLUMNS if name in table.headers}
    counted = pl.concat(list(cells.values())).drop_nulls().value_counts(sort=True, name="rows")
    spelt = dict(counted.rows())
    if len(spelt) > MAX_STATES:
        example = quote(next(iter(spelt)))
        table.add_fault(
            None, table.headers["state"],
            f"{len(spelt):,} different states, such as {example}; at most {MAX_STATES} are allowed: put them into classes",
        )  # fmt: skip
        return [], np.full(len(table.frame), UNKNOWN), None
    names = list(map(normalize_name, options.states or sorted(spelt, key=_natural)))
    _check_spellings(table, cells, spelt)
    known = list(dict.fromkeys(names))
    codes = {name: _encode_states(table, name, texts, list(spelt), known) for name, texts in cells.items()}
    return known, codes["state"], codes.get("next_state")


def _encode_states(
    table: HistoryTable, name: str, texts: pl.Series, spelt: Sequence[str], states: Sequence[str]
) -> Ints:
    """The position of each cell among the states; others are faults."""
    places = {state: place for place, state in enumerate(states)}
    codes = [places.get(normalize_name(text), UNKNOWN) for text in spelt]
    wrong = [text for text, code in zip(spelt, codes, strict=True) if code == UNKNOWN]
    table.add_faults(
        name, texts.is_in(wrong), lambda i: f"{quote(texts[i])} is not a state; they are {', '.join(states)}"
    )
    return texts.replace_strict(list(spelt), codes, default=UNKNOWN, return_dtype=pl.Int64).to_numpy()


def _natural(text: str) -> tuple[float, str]:
    """Sorts numbers by size, and before texts."""
    number = re.fullmatch(r"[+-]?\d+(\.\d+)?", text.strip())
    return (float(text), "") if number else (np.inf, text)


def _check_spellings(table: HistoryTable, cells: Mapping[str, pl.Series], spelt: Mapping[str, int]) -> None:
    """Note states that differ from a more frequent one only by case, blanks, hyphens or underscores."""
    first: dict[str, str] = {}
    for text in spelt:
        main = first.setdefault(re.sub(r"[\s\-_]+", "", normalize_name(text).casefold()), text)
        if main == text:
            continue
        for name, texts in cells.items():
            here = (texts == text).fill_null(False)
            if here.any():
                many = f" in {spelt[text]:,} rows" if spelt[text] > 1 else ""
                table.add_fault(
                    table.row[int(here.arg_true()[0])], table.headers[name],
                    f"{text!r}{many} differs from {main!r} only by case or blanks; write a state in one way",
                )  # fmt: skip


def _read_rows(
    table: HistoryTable, options: ReadOptions, agent: Ints, round_: Ints, state: Ints, after: Ints | None
) -> Rows:
    """The columns as arrays, each checked for itself and against the others of its row."""
    action = table.binary("action", BINARY, options.action_is)
    assert action is not None
    advised = table.binary("advised", BINARY, empty="whether acting was advised must be known")
    if options.action_is and advised is not None and (advised < 0).any():
        advised = table.binary("advised", BINARY, options.action_is)
    available = table.binary("available", BINARY, empty="whether acting was possible must be known")
    rows = Rows(
        row=table.row.to_numpy(),
        agent=agent,
        round=round_,
        state=state,
        action=action,
        next_state=np.full(agent.size, UNKNOWN) if after is None else after,
        reward=_numbers(table, "reward"),
        propensity=_numbers(table, "propensity"),
        advised=advised,
        arm=table.binary("arm", ARMS),
        group=_encode(table.texts("group"), pl.Series(_groups(table))) if "group" in table.headers else None,
        available=None if available is None else available != 0,
    )
    if available is not None:
        acted = pl.Series((available == 0) & (action == 1))
        table.add_faults("action", acted, lambda _: "acted on, although acting was not possible (available is 0)")
    check_propensity(table, rows, options)
    return rows


def _numbers(table: HistoryTable, name: str) -> Floats | None:
    if name not in table.headers:
        return None
    return table.numbers(name).fill_null(np.nan).to_numpy().copy()


def _groups(table: HistoryTable) -> list[str]:
    return table.texts("group").drop_nulls().unique(maintain_order=True).to_list()


def _sort(table: HistoryTable, rows: Rows, agents: pl.Series, rounds: pl.Series) -> Ints:
    """The order of rows by agent and round; rows of the same agent and round are faults."""
    key = rows.agent * (len(rounds) + 1) + rows.round
    order = np.arange(key.size) if (np.diff(key) >= 0).all() else np.argsort(key, kind="stable")
    same = np.flatnonzero((np.diff(key[order]) == 0) & (rows.agent[order][1:] >= 0) & (rows.round[order][1:] > 0)) + 1
    first = np.zeros(key.size, np.int64)
    first[order[same]] = rows.row[order[same - 1]]
    table.add_faults(
        "agent", pl.Series(first > 0),
        lambda i: f"{quote(agents[int(rows.agent[i])])} appears twice at {rounds[int(rows.round[i]) - 1]}, "
        f"also in row {first[i]}; keep one",
    )  # fmt: skip
    return order


def _link(table: HistoryTable, rows: Rows, options: ReadOptions) -> list[str]:
    """Set next states from the rows of the next round, and rewards as the options say; what there is to note."""
    notes = []
    follows, same_agent = rows.follows, np.append(np.diff(rows.agent) == 0, False)
    following = np.where(follows, np.roll(rows.state, -1), UNKNOWN)
    if "next_state" not in table.headers:
        rows.next_state = np.where(rows.state >= 0, following, UNKNOWN)
    else:
        both = (rows.next_state >= 0) & (following >= 0)
        differ = int((rows.next_state != following)[both].sum())
        if differ:
            notes.append(
                f"In {differ:,} of {int(both.sum()):,} rows next_state is not the state of the next round; "
                "moves are taken from next_state."
            )
    lost = same_agent & (rows.next_state < 0) & (rows.state >= 0)
    if lost.any():
        people = np.unique(rows.agent[lost]).size
        notes.append(
            f"{int(lost.sum()):,} moves of {people:,} people are lost in gaps: the state in the next round is not known."
        )
    if options.rewards:
        if rows.reward is not None:
            notes.append("The column reward is not read, because the reward of each state is given.")
        rows.reward = None
    elif rows.reward is None:
        table.add_fault(None, None, "no column 'reward'; set the reward of each state (rewards)")
    elif options.reward_on == "departure":
        rows.reward = np.where(follows, np.roll(rows.reward, -1), np.nan)
    return notes


def _find_values(rows: Rows, states: list[str], options: ReadOptions, notes: list[str]) -> tuple[list[str], Floats]:
    """The states in the order in which they are shown, and the reward of arriving in each; recodes the rows."""
    value = np.zeros(len(states))
    known = rows.next_state >= 0
    if options.rewards:
        given = {normalize_name(name): float(reward) for name, reward in options.rewards.items()}
        if set(given) != set(states):
            wrong = sorted(set(given) ^ set(states))
            what = "is not a state" if wrong[0] in given else "has no reward"
            raise InputError(f"{wrong[0]!r} {what}; rewards are needed for {', '.join(states)}.", location="rewards")
        value = np.array([given[name] for name in states])
        rows.reward = np.where(known, value[rows.next_state], np.nan)
    else:
        assert rows.reward is not None
        rows.reward = np.where(known, rows.reward, np.nan)
        seen = known & ~np.isnan(rows.reward)
        number = np.bincount(rows.next_state[seen], minlength=len(states))
        total = np.bincount(rows.next_state[seen], rows.reward[seen], minlength=len(states))
        mean = total.sum() / max(1, number.sum())
        value = np.where(number > 0, total / np.maximum(number, 1), mean)
        if never := [name for name, count in zip(states, number, strict=True) if not count]:
            notes.append(f"No reward was seen on arriving in {', '.join(never)}; the mean of all is used.")
    order = list(range(len(states))) if options.states else sorted(range(len(states)), key=value.__getitem__)
    place = np.append(np.argsort(order), UNKNOWN)
    rows.state, rows.next_state = place[rows.state], place[rows.next_state]
    return [states[code] for code in order], value[order]


def _describe_left_out(rows: Rows) -> list[str]:
    notes = []
    stateless, idle = rows.state < 0, (rows.state >= 0) & (rows.action < 0)
    if stateless.any():
        notes.append(f"{int(stateless.sum()):,} rows without a state are left out.")
    if idle.any():
        notes.append(f"{int(idle.sum()):,} rows without an action count only as the state that followed.")
    return notes


def _make(
    table: HistoryTable, rows: Rows, agents: pl.Series, states: Sequence[str], rounds: pl.Series, value: Floats,
    features: Features, notes: tuple[str, ...],
) -> History:  # fmt: skip
    """The history of the complete rows; agents without one are left out."""
    kept = (rows.state >= 0) & (rows.action >= 0)
    whole = rows.take(kept)
    present, agent = np.unique(whole.agent, return_inverse=True)
    known = features.array()
    parts: dict[str, Any] = {name: getattr(whole, name) for name in BY_ROW if name != "agent"}
    return History(
        agents=agents.gather(present),
        states=tuple(states),
        rounds=rounds,
        agent=agent,
        value=value,
        groups=tuple(_groups(table)),
        features=None if known is None else known[present],
        feature_names=tuple(features.names),
        by_row={name: values[kept] for name, values in features.by_row.items()},
        notes=notes,
        gaps=_find_gaps(table, rows, present),
        **parts,
    )


def _find_gaps(table: HistoryTable, rows: Rows, present: Ints) -> Gaps | None:
    """The gaps between known states, with the positions of agents who are present; None if next states are given."""
    if "next_state" in table.headers:
        return None
    gaps = find_gaps(rows.agent, rows.round, rows.state, rows.action)
    return gaps._replace(agent=np.searchsorted(present, gaps.agent)) if gaps.agent.size else None
