"""Features of agents: the columns of a history that have no meaning of their own and never change for an agent."""

import numpy as np
import polars as pl

from restive.desk.table_files import ROW
from restive.errors import InputError, did_you_mean
from restive.logs.columns import HistoryTable
from restive.types import Floats, Ints

MAX_CATEGORIES = 20
MIN_IDS = 20  # a whole number or text that differs between this many agents, all of them, is an id


class Features:
    """The features of N agents, the columns that change over time, and sentences about columns left out."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.columns: list[Floats] = []  # each [N], NaN where unknown
        self.by_row: dict[str, Floats] = {}  # numbers that change, in the order of agents and rounds
        self.left_out: dict[str, list[str]] = {}

    def add(self, name: str, values: Floats, categories: list[str] | None) -> None:
        """Add a number, or a column for each category."""
        for code, category in enumerate(categories or [""]):
            one = np.where(np.isnan(values), np.nan, values == code) if categories else values
            self.names.append(f"{name}={category}" if categories else name)
            self.columns.append(np.asarray(one, np.float64))

    def leave_out(self, name: str, reason: str) -> None:
        """Note a column that is not a feature."""
        self.left_out.setdefault(reason, []).append(name)

    def array(self) -> Floats | None:
        """The features, [N, F]; None if there are none."""
        return np.column_stack(self.columns) if self.columns else None

    def notes(self) -> list[str]:
        """What was left out, a sentence for each reason."""
        return [f"Not used as features: {', '.join(names)} ({reason})." for reason, names in self.left_out.items()]


def read_features(table: HistoryTable, agent: Ints, order: Ints, named: "tuple[str, ...] | None") -> Features:
    """The features in a table.

    `agent` are positions in the order of rows by agent and round, which is `order`. Only named columns are used if any
    are named, with the first value of each agent; otherwise all that never change.
    """
    used = {ROW, *table.headers.values()}
    others = [header for header in table.frame.columns if header not in used]
    for name in named or ():
        if name not in others:
            raise InputError(f"{table.where}: there is no other column {name!r}{did_you_mean(name, others)}")
    starts = np.append(0, np.flatnonzero(np.diff(agent)) + 1)
    found = Features()
    for name in others:
        values, categories = _read_column(table.frame[name])
        if values is None:
            found.leave_out(name, f"more than {MAX_CATEGORIES} different texts")
            continue
        values = values[order]
        low, high = np.fmin.reduceat(values, starts), np.fmax.reduceat(values, starts)
        fixed = bool(((low == high) | np.isnan(low)).all())
        if not fixed and categories is None:
            found.by_row[name] = values
        if named is not None:
            if name in named:
                found.add(name, _first(values, starts), categories)
        elif not fixed:
            found.leave_out(name, "changes over time")
        elif np.nanmin(low, initial=np.inf) >= np.nanmax(low, initial=-np.inf):
            found.leave_out(name, "the same for everybody")
        elif categories is None and _is_id(low):
            found.leave_out(name, "different whole numbers for everybody, as an id")
        else:
            found.add(name, low, categories)
    return found


def _read_column(cells: pl.Series) -> tuple[Floats | None, list[str] | None]:
    """The cells as numbers; or as positions of categories, and these; no values if there are too many of them."""
    if cells.dtype.is_numeric() or cells.dtype == pl.Boolean:
        return cells.cast(pl.Float64).fill_null(np.nan).to_numpy(), None
    texts = cells.cast(pl.String).str.strip_chars()
    texts = texts.set(texts == "", None)
    numbers = texts.cast(pl.Float64, strict=False)
    if numbers.null_count() == texts.null_count():
        return numbers.fill_null(np.nan).to_numpy(), None
    categories = texts.drop_nulls().unique().sort()
    if len(categories) > MAX_CATEGORIES:
        return None, None
    codes = texts.cast(pl.Enum(categories)).to_physical().cast(pl.Float64)
    return codes.fill_null(np.nan).to_numpy(), categories.to_list()


def _first(values: Floats, starts: Ints) -> Floats:
    """The first known value of each agent."""
    place = np.where(np.isnan(values), values.size, np.arange(values.size))
    return np.append(values, np.nan)[np.minimum.reduceat(place, starts)]


def _is_id(values: Floats) -> bool:
    known = values[~np.isnan(values)]
    return known.size >= MIN_IDS and np.unique(known).size == known.size and bool((known == np.round(known)).all())
