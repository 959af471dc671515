"""The columns of a history as they are written in a table: options, headers, cells, and the rows as arrays."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np
import polars as pl

from restive.desk.roster import normalize_name
from restive.desk.table_files import ROW, quote
from restive.desk.table_schema import AGENTS, ColumnNames, TableColumns, TableError, normalize_header
from restive.errors import InputError, did_you_mean
from restive.logs.history import UNKNOWN
from restive.types import Bools, Floats, Ints

REQUIRED = ("agent", "time", "state", "action")
COLUMNS: ColumnNames = {
    **AGENTS,
    "time": ("time", "round"),
    **{
        name: (name,)
        for name in ("state", "action", "reward", "next_state", "propensity", "advised", "arm", "group", "available")
    },
}
BINARY = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}
ARMS = BINARY | {"control": 0, "program": 1}
MAX_STATES = 50
PERIOD = re.compile(r"([1-9]\d{0,5})(h|d|w|mo|y|)")


@dataclass(frozen=True)
class ReadOptions:
    """How a table is read.

    Attributes
    ----------
    columns
        The header of a column that is called differently: {"agent": "customer_id"}.
    states
        The names of the states, the worst first; by default those of the table, in the order of their rewards.
    rewards
        The reward of arriving in each state; by default the column reward.
    action_is
        The texts that mean acting; every other text means not acting. By default cells are 0 or 1, false or true.
    every
        The length of a round, such as 12h, 7d, 2w, 1mo or, for whole numbers, 7; by default each time is a round.
    reward_on
        Whether the reward of a row belongs to the state that follows ("arrival") or to its own ("departure").
    propensity_of
        Whether propensities are those of acting, or of what was done.
    features
        The columns to use as features: their first value of each agent. By default all that never change.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    states: Sequence[str] = ()
    rewards: Mapping[str, float] = field(default_factory=dict)
    action_is: Sequence[str] = ()
    every: str | None = None
    reward_on: Literal["arrival", "departure"] | None = None
    propensity_of: Literal["acting", "done"] | None = None
    features: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if wrong := next((name for name in self.columns if name not in COLUMNS), None):
            raise InputError(f"{wrong!r} is not a column of a history{did_you_mean(wrong, COLUMNS)}", location="column")
        for name in ("reward_on", "propensity_of"):
            allowed = ReadOptions.__annotations__[name].__args__[0].__args__
            if getattr(self, name) not in (None, *allowed):
                raise InputError(
                    f"{name} is {getattr(self, name)!r}; it must be {' or '.join(allowed)}.", location=name
                )
        if self.every is not None and not PERIOD.fullmatch(self.every):
            raise InputError(f"{self.every!r} is not a period; write it like 7d, 2w, 1mo, 12h or 7.", location="every")


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
        super().__init__(frame, where, {**COLUMNS, **named}, REQUIRED)
        if not len(frame):
            self.add_fault(None, None, "there are no rows below the header")
        self.raise_faults()

    def raise_faults(self) -> None:
        """Raise all faults, if there are any."""
        if self.total:
            raise HistoryError(self.where, self.faults, self.total)

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
                seen = ", ".join(map(quote, sorted(different)[:5]))
                self.add_fault(None, self.headers[name], f"no cell is {quote(min(yes))}; there are {seen}")
        codes = [known.get(text.lower(), known.get(text, UNKNOWN)) for text in different]
        wrong = [text for text, code in zip(different, codes, strict=True) if code == UNKNOWN]
        allowed = "0 or 1" if known is BINARY else "control (0) or program (1)"
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
