"""The columns of a history as they are written in a table: headers, cells, and the rows as arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import polars as pl

from restive.desk.roster import normalize_name
from restive.desk.table_columns import ColumnNames, TableColumns, TableError
from restive.desk.table_files import ROW, quote
from restive.desk.table_mapping import normalize_header
from restive.desk.table_schema import AGENTS
from restive.errors import InputError, did_you_mean
from restive.logs.history import UNKNOWN
from restive.logs.options import COLUMNS, ReadOptions
from restive.types import Bools, Floats, Ints

REQUIRED = ("agent", "time", "state", "action")
HEADERS: ColumnNames = {name: (name,) for name in COLUMNS} | {**AGENTS, "time": ("time", "round")}
BINARY = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}
ARMS = BINARY | {"control": 0, "program": 1}
MAX_STATES = 50
MAX_LISTED = 5  # texts of a column in a message


class HistoryError(TableError):
    """All faults of a history."""

    code = "invalid_history"


class HistoryTable(TableColumns):
    """The columns of a history by meaning."""

    def __init__(self, frame: pl.DataFrame, where: str, options: ReadOptions) -> None:
        named = {name: (normalize_header(header),) for name, header in options.columns.items()}
        present = {normalize_header(header) for header in frame.columns if header != ROW}
        for header in options.columns.values():
            if normalize_header(header) not in present:
                raise InputError(f"{where}: there is no column {header!r}{did_you_mean(header, frame.columns)}")
        super().__init__(frame, where, {**HEADERS, **named}, REQUIRED)
        if not len(frame):
            self.add_fault(None, None, "there are no rows below the header")
        self.raise_faults()

    def raise_faults(self) -> None:
        """Raise all faults, if there are any."""
        if self.total:
            raise HistoryError(self.where, self.faults, self.total, self.hint)

    def cells(self, name: str) -> pl.Series:
        """The cells of a column as texts, exactly as written; null where empty."""
        cells = self.frame[self.headers[name]]
        text = self.texts(name) if cells.dtype.is_float() else cells.cast(pl.String)
        return text.set(text.str.strip_chars() == "", None)

    def binary(self, name: str, known: Mapping[str, int], means: Sequence[str] = (), empty: str = "") -> Ints | None:
        """The cells as 0 and 1, −1 where empty; None without the column. A fault says what else `empty` needs."""
        if name not in self.headers:
            return None
        texts = self.texts(name)
        different = texts.drop_nulls().unique().to_list()
        yes = {normalize_name(each) for each in means}
        if yes:
            known = {text: int(text in yes) for text in different}
            if not yes & set(different) and name == "action":
                seen = ", ".join(map(quote, sorted(different)[:MAX_LISTED]))
                self.add_fault(None, self.headers[name], f"no cell is {quote(min(yes))}; there are {seen}")
        codes = [known.get(text.lower(), known.get(text, UNKNOWN)) for text in different]
        wrong = [text for text, code in zip(different, codes, strict=True) if code == UNKNOWN]
        allowed = "0 or 1" if known is BINARY else "control (0) or program (1)"
        if not empty and len(wrong) == len(different) > 1:
            seen = ", ".join(map(quote, sorted(different)[:MAX_LISTED]))
            self.add_fault(
                None, self.headers[name], f"no cell is {allowed}; set action-is to those that mean acting: {seen}"
            )
            wrong = []
        self.add_faults(
            name, texts.is_in(wrong), lambda i: f"{quote(texts[i])} is not {allowed}" + "; set action-is" * (not empty)
        )
        if empty:
            self.add_faults(name, texts.is_null(), lambda _: f"empty; {empty}")
        return texts.replace_strict(different, codes, default=UNKNOWN, return_dtype=pl.Int64).to_numpy()


@dataclass
class Rows:
    """The rows of a table as arrays, in the order of agents and rounds once sorted; −1 or NaN: not known."""

    row: Ints  # the number that a person sees
    agent: Ints
    round: Ints
    state: Ints
    action: Ints
    next_state: Ints
    reward: Floats | None
    propensity: Floats | None
    advised: Ints | None
    arm: Ints | None
    group: Ints | None
    available: Bools | None

    def take(self, places: Ints | Bools) -> "Rows":
        """Some of the rows, in that order."""
        parts: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        taken: dict[str, Any] = {name: part if part is None else part[places] for name, part in parts.items()}
        return Rows(**taken)

    @property
    def follows(self) -> Bools:
        """Whether the next row is of the same agent and of the next round."""
        return np.append((np.diff(self.agent) == 0) & (np.diff(self.round) == 1), False)
