"""What a sheet means: states of a round, outcomes of a round, or a list of agents, with every fault by row and column.

Functions take a frame (`sheets.read_sheet`, or `as_frame` for what Python has) and return columns of fixed types, all
rows or none: if anything is wrong they raise `Faults`, which names every place at once. Headers are matched without
case and surrounding blanks, and with blanks or hyphens for underscores. Of several spellings of one column (agent,
agent_id, id) the first that is there is read; columns that mean nothing here are left unread, and `unread` lists them.
A header that is one letter away from a column that is not there is a fault.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain
from os import PathLike

import polars as pl

from restive.desk.cells import Cells, Fault, Faults, Knows, Spellings, match_headers, quote
from restive.desk.table_files import ROW, read_sheet
from restive.errors import InputError

__all__ = ["Fault", "Faults", "as_frame", "read_agents", "read_outcomes", "read_states", "unread"]

AGENTS = {"agent": ("agent", "agent_id", "id")}
STATES = {**AGENTS, "state": ("state",), "group": ("group",)}
OUTCOMES = {
    **AGENTS,
    "done": ("done",),
    "next_state": ("next_state", "after", "state"),
    "reward": ("reward",),
    "round": ("round",),
}
YES = {"1", "y", "yes", "t", "true", "x", "done", "j", "ja", "wahr", "o", "oui", "vrai", "s", "si", "sí", "sim"}
SAID = ("yes", "no", "1", "0", "true", "false")  # most often
NO = {"0", "n", "no", "f", "false", "nein", "falsch", "nee", "non", "faux", "falso", "não", "nao"}


def read_states(frame: pl.DataFrame, where: str, states: Sequence[str], knows: Knows | None = None) -> pl.DataFrame:
    """Who is in which state: agent (String), state (Int16, null where the cell is empty), group (String or null).

    A state is its name, also in other case where only one name fits, or its number from 0; names come first.

    >>> read_states(as_frame({"ann": "High", "ben": 0, "cem": None}), "monday", ["low", "high"]).rows()
    [('ann', 1, None), ('ben', 0, None), ('cem', None, None)]
    """
    sheet = Cells(frame, where, STATES, required=("agent", "state"), knows=knows)
    agent = sheet.ids()
    sheet.refuse_twice(agent)
    state = sheet.states("state", states)
    group = sheet.texts("group")
    sheet.refuse_unprintable("group", group)
    sheet.finish()
    return pl.DataFrame({"agent": agent, "state": state, "group": group})


def read_outcomes(
    frame: pl.DataFrame, where: str, states: Sequence[str], rewards_by_state: Sequence[float] | None,
    knows: Knows | None = None,
) -> pl.DataFrame:  # fmt: skip
    """What came of it: agent (String), done (Boolean), reward (Float64), after (Int16), round (Int64); null: not reported.

    With rewards_by_state, reward = rewards_by_state[after], and a reward that the sheet gives must agree. Without,
    every row with a next state needs its reward. Rounds count from 1; an agent may come once in each of them.

    >>> sheet = as_frame([{"agent": "ann", "done": "yes", "next_state": "high"}])
    >>> read_outcomes(sheet, "week 1", ["low", "high"], rewards_by_state=[0, 2.5]).rows()
    [('ann', True, 2.5, 1, None)]
    """
    sheet = Cells(frame, where, OUTCOMES, required=("agent",), knows=knows)
    if not any(name in sheet.headers for name in ("done", "next_state", "reward")):
        sheet.add(None, None, "no column says what came of it; there must be one of done, next_state, reward")
    agent = sheet.ids()
    number = sheet.translated("round", pl.Int64, _round, lambda text: f"{quote(text)} is no round; rounds count from 1")
    sheet.refuse_twice(agent, number)
    done = sheet.translated("done", pl.Boolean, _done, lambda text: f"{quote(text)} is not yes or no", SAID)
    after = sheet.states("next_state", states)
    reward = sheet.numbers("reward")
    if rewards_by_state is None:
        _refuse_missing(sheet, after, reward)
    else:
        reward = _settle(sheet, after, reward, rewards_by_state)
    sheet.finish()
    return pl.DataFrame({"agent": agent, "done": done, "reward": reward, "after": after, "round": number})


def _done(text: str) -> bool | None:
    word = text.lower().removesuffix(".0")
    return True if word in YES else False if word in NO else None


def _round(text: str) -> int | None:
    digits = text.removesuffix(".0")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 and int(digits) >= 1 else None


def _refuse_missing(sheet: Cells, after: pl.Series, reward: pl.Series) -> None:
    """Note next states without a reward, where rewards are reported."""
    missing = after.is_not_null() & reward.is_null()
    if not missing.any():
        return
    if "reward" in sheet.headers:
        empty = sheet.texts("reward").is_null()
        sheet.blame("reward", missing & empty, lambda _: "empty; every row with a next state needs its reward")
    else:
        sheet.add(None, None, "no column 'reward'; in this program every row with a next state needs its reward")


def _settle(sheet: Cells, after: pl.Series, reward: pl.Series, rewards: Sequence[float]) -> pl.Series:
    """The reward of each next state; note given ones that differ from it, or stand without a next state."""
    values = pl.Series(list(map(float, rewards)), dtype=pl.Float64)
    worth = values.gather(after) if after.null_count() else values[after]
    if reward.null_count() == len(reward):
        return worth
    apart = (reward - worth).abs() > 1e-9 * (1.0 + worth.abs())
    alone = reward.is_not_null() & sheet.texts("next_state").is_null()
    sheet.blame("reward", apart, lambda i: f"{reward[i]:g} is given, but the next state is worth {worth[i]:g}")
    sheet.blame("reward", alone, lambda _: "a reward without a next state; here rewards follow from the next state")
    return worth


def read_agents(frame: pl.DataFrame, where: str) -> pl.Series:
    """The ids in the column agent; other columns are left unread.

    >>> read_agents(as_frame(["ann", "ben"]), "never.csv").to_list()
    ['ann', 'ben']
    """
    sheet = Cells(frame, where, AGENTS, required=("agent",))
    agent = sheet.ids()
    sheet.refuse_twice(agent)
    sheet.finish()
    return agent


def unread(frame: pl.DataFrame, columns: Spellings) -> list[str]:
    """The headers that a reading leaves aside; columns is STATES, OUTCOMES or AGENTS.

    >>> unread(as_frame([{"Agent": "ann", "State": "low", "phone": "12"}]), STATES)
    ['phone']
    """
    used = set(match_headers(frame, columns).values())
    return [name for name in frame.columns if name not in used and name != ROW]


def as_frame(given: object) -> pl.DataFrame:
    """A frame from what people have: a file's path, a frame of polars or pandas, columns, rows, or states by agent.

    Columns are a mapping {"agent": [...], "state": [...]}; rows a list of mappings, or of ids alone; states by agent a
    mapping {agent: state}, {agent: (state, group)} or {agent: {"state": ..., ...}}. Rows count from 1.

    >>> as_frame({"ann": ("high", "north"), "ben": ("low", None)}).rows()
    [(1, 'ann', 'high', 'north'), (2, 'ben', 'low', None)]
    """
    if isinstance(given, str | PathLike):
        return read_sheet(given)
    frame = given.collect() if isinstance(given, pl.LazyFrame) else given
    if not isinstance(frame, pl.DataFrame):
        columns = _columns(given)
        if len({len(cells) for cells in columns.values()}) > 1:
            raise InputError("the columns differ in length; each must have one cell for each agent.")
        frame = pl.DataFrame([_series(name, cells) for name, cells in columns.items()])
    if ROW in frame.columns:
        if frame[ROW].dtype.is_integer() and not frame[ROW].null_count():
            return frame
        frame = frame.rename({ROW: f"{ROW} (2)"})
    return pl.DataFrame([pl.Series(ROW, range(1, len(frame) + 1), dtype=pl.Int64), *frame.get_columns()])


def _columns(given: object) -> dict[str, Sequence[object]]:
    """The cells by header, whatever they came in."""
    if isinstance(given, Mapping):
        named = [key for key in given if isinstance(key, str) and key.strip().lower() in AGENTS["agent"]]
        if any(_is_column(given[key]) for key in named):
            return {str(key): list(cells) for key, cells in given.items()}
        if any(issubclass(kind, Mapping | tuple) for kind in set(map(type, given.values()))):
            return _by_rows([_row(agent, value) for agent, value in given.items()])
        return {"agent": list(given), "state": list(given.values())}
    if hasattr(given, "columns") and hasattr(given, "__getitem__"):
        return {str(name): list(given[name]) for name in given.columns}
    if isinstance(given, str | bytes) or not hasattr(given, "__iter__"):
        raise InputError(
            f"a {type(given).__name__} is no table; give a file, a frame, rows, or a mapping from agent to state."
        )
    return _by_rows([row if type(row) is dict or isinstance(row, Mapping) else {"agent": row} for row in given])


def _is_column(cells: object) -> bool:
    return (
        hasattr(cells, "__len__")
        and hasattr(cells, "__iter__")
        and not isinstance(cells, str | bytes | tuple | Mapping)
    )


def _row(agent: object, value: object) -> Mapping[object, object]:
    if isinstance(value, Mapping):
        return {"agent": agent, **value}
    if isinstance(value, tuple):
        if len(value) != 2:
            raise InputError(f"agent {agent!r} has {value!r}; it must be a state, or (state, group).")
        return {"agent": agent, "state": value[0], "group": value[1]}
    return {"agent": agent, "state": value}


def _by_rows(rows: Sequence[Mapping[object, object]]) -> dict[str, Sequence[object]]:
    names = dict.fromkeys(chain.from_iterable(rows)) or {"agent": None}
    return {str(name): [row.get(name) for row in rows] for name in names}


def _series(name: str, cells: Sequence[object]) -> pl.Series:
    """A column of one type where the cells have one, else of texts."""
    if len(set(map(type, cells)) - {type(None)}) <= 1:
        with suppress(TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
            column = pl.Series(name, cells)
            if column.dtype != pl.Object:
                return column
    return pl.Series(name, [_plain(name, cell) for cell in cells], dtype=pl.String)


def _plain(name: str, cell: object) -> str | None:
    """The text of a cell that stands beside cells of other types; NaN and its like are nothing."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, float) and math.isnan(cell)):
        return None
    if hasattr(cell, "__iter__") and not isinstance(cell, str):
        raise InputError(f"column {name}: {quote(str(cell))} is not one text or one number.")
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
