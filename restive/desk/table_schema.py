"""Validates tables of states, of outcomes and of agents; every fault is reported at once, by row and column.

The `read_...` functions take a frame (see `table_files`) and return columns of fixed types, or raise `TableError` with
all faults. Headers are compared without case and surrounding blanks, and with blanks or hyphens as underscores. A
column may have several names (agent, agent_id, id): the first that is present is read. Unknown columns are ignored, and
`unread` lists them; a header that almost matches a missing column is a fault.

Checks run over whole columns; only wrong cells are looked at one by one, at most MAX_FAULTS of each kind.
"""

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import polars as pl

from restive.desk.roster import MAX_ID, normalize_name, normalize_names
from restive.desk.table_files import AGENT_HEADERS, MAX_QUOTE, ROW, quote
from restive.errors import Hint, InputError
from restive.types import Ints

ColumnNames = Mapping[str, Sequence[str]]  # the accepted headers of each column, best first
Features = Mapping[str, Sequence[str]]  # the categories of each feature of people; none: it is a number
AllKnown = Callable[[pl.Series], bool]  # whether all these ids belong to agents that were validated when they joined

AGENTS: ColumnNames = {"agent": AGENT_HEADERS}
STATES: ColumnNames = {**AGENTS, "state": ("state",), "group": ("group",)}
OUTCOMES: ColumnNames = {
    **AGENTS,
    "done": ("done",),
    "next_state": ("next_state", "after", "state"),
    "reward": ("reward",),
    "round": ("round",),
}
YES = {"1", "y", "yes", "t", "true", "x", "done", "j", "ja", "wahr", "o", "oui", "vrai", "s", "si", "sí", "sim"}
NO = {"0", "n", "no", "f", "false", "nein", "falsch", "nee", "non", "faux", "falso", "não", "nao"}
COMMON_YES_NO = ("yes", "no", "1", "0", "true", "false")

MAX_PRINTED, MAX_FAULTS = 20, 1000  # faults in the message, and of each kind in the list
MAX_LISTED = 12
MIN_HEADER, SIMILAR = 4, 0.8  # headers shorter than this are never called similar
CONTROL_CHARACTER = r"[\p{Cc}\p{Zl}\p{Zp}]"
PLAIN_ID = rf"^[!-~](?:[ -~]{{0,{MAX_ID - 2}}}[!-~])?$"  # printable ASCII, not too long, no surrounding blanks
COMMA = r"^([+-]?\d*),(\d+)$"
DECIMAL_COMMA = r"^[+-]?(?:0*,\d+|\d+,(?:\d{1,2}|\d{4,}))$"  # cannot be a thousands separator


class Fault(NamedTuple):
    """One error in a table: the row number and header that a person sees, where they apply."""

    row: int | None
    column: str | None
    message: str


class TableError(InputError):
    """All faults of a table in the order of rows, at most MAX_FAULTS of each kind out of `total`."""

    code = "invalid_table"

    def __init__(
        self, location: str, faults: Sequence[Fault], total: int | None = None, hint: Hint | None = None
    ) -> None:
        self.total = len(faults) if total is None else total
        self.faults = sorted(faults, key=lambda fault: fault.row or 0)
        more = [f"and {self.total - MAX_PRINTED} more"] if self.total > MAX_PRINTED else []
        lines = [_fault_line(location, fault) for fault in self.faults[:MAX_PRINTED]]
        super().__init__("\n".join([*lines, *more]), location=location, hint=hint)


def _fault_line(location: str, fault: Fault) -> str:
    row = "" if fault.row is None else f", row {fault.row}"
    column = "" if fault.column is None else f", column {quote(fault.column)[1:-1]}"
    return f"{location}{row}{column}: {fault.message}"


def read_states(
    frame: pl.DataFrame, where: str, states: Sequence[str], all_known: AllKnown | None = None,
    features: Features = MappingProxyType({}),
) -> pl.DataFrame:  # fmt: skip
    """States by agent: agent (String), state (Int16, null where the cell is empty), group (String or null).

    Then a column for each feature: a number, or the number of a category (null where the cell is empty).

    A state is given by its name, in any case if that is unambiguous, or by its number from 0; names take precedence.

    >>> from restive.desk.table_files import as_frame
    >>> read_states(as_frame({"ann": "High", "ben": 0, "cem": None}), "monday", ["low", "high"]).rows()
    [('ann', 1, None), ('ben', 0, None), ('cem', None, None)]
    """
    columns = state_columns(features)
    table = TableColumns(frame, where, columns, required=("agent", "state"), all_known=all_known)
    agent = table.ids()
    table.check_unique(agent)
    state = table.state_codes("state", states)
    group = table.texts("group")
    table.check_printable("group", group)
    known = {name: table.feature(name, categories) for name, categories in features.items()}
    table.raise_faults()
    return pl.DataFrame({"agent": agent, "state": state, "group": group, **known})


def state_columns(features: Features) -> ColumnNames:
    """The columns of a table of states with these features."""
    return {**STATES, **{name: (name,) for name in features}}


def read_outcomes(
    frame: pl.DataFrame, where: str, states: Sequence[str], rewards_by_state: Sequence[float] | None,
    all_known: AllKnown | None = None,
) -> pl.DataFrame:  # fmt: skip
    """Outcomes: agent (String), done (Boolean), reward (Float64), after (Int16), round (Int64); null: not reported.

    With rewards_by_state, reward = rewards_by_state[after], and a reward in the table must agree. Without, every row
    with a next state needs a reward. Rounds count from 1; an agent may appear once in each of them.

    >>> from restive.desk.table_files import as_frame
    >>> table = as_frame([{"agent": "ann", "done": "yes", "next_state": "high"}])
    >>> read_outcomes(table, "week 1", ["low", "high"], rewards_by_state=[0, 2.5]).rows()
    [('ann', True, 2.5, 1, None)]
    """
    table = TableColumns(frame, where, OUTCOMES, required=("agent",), all_known=all_known)
    if not any(name in table.headers for name in ("done", "next_state", "reward")):
        table.add_fault(None, None, "no column reports an outcome; one of done, next_state, reward is required")
    agent = table.ids()
    round_ = table.parsed(
        "round", pl.Int64, _parse_round, lambda text: f"{quote(text)} is not a round; rounds count from 1"
    )
    table.check_unique(agent, round_)
    done = table.parsed("done", pl.Boolean, _parse_done, lambda text: f"{quote(text)} is not yes or no", COMMON_YES_NO)
    after = table.state_codes("next_state", states)
    reward = table.numbers("reward")
    if rewards_by_state is None:
        _check_rewards_given(table, after, reward)
    else:
        reward = _rewards_of_states(table, after, reward, rewards_by_state)
    table.raise_faults()
    return pl.DataFrame({"agent": agent, "done": done, "reward": reward, "after": after, "round": round_})


def read_agents(frame: pl.DataFrame, where: str) -> pl.Series:
    """The ids in the column agent; other columns are ignored.

    >>> from restive.desk.table_files import as_frame
    >>> read_agents(as_frame(["ann", "ben"]), "never.csv").to_list()
    ['ann', 'ben']
    """
    table = TableColumns(frame, where, AGENTS, required=("agent",))
    agent = table.ids()
    table.check_unique(agent)
    table.raise_faults()
    return agent


def unread(frame: pl.DataFrame, columns: ColumnNames) -> list[str]:
    """The headers that are ignored; columns is STATES, OUTCOMES or AGENTS.

    >>> from restive.desk.table_files import as_frame
    >>> unread(as_frame([{"Agent": "ann", "State": "low", "phone": "12"}]), STATES)
    ['phone']
    """
    used = set(match_headers(frame, columns).values())
    return [name for name in frame.columns if name not in used and name != ROW]


def count_normalized(frame: pl.DataFrame, agent: pl.Series) -> int:
    """How many ids differ from the cells that they were read from by more than surrounding blanks.

    >>> from restive.desk.table_files import as_frame
    >>> table = as_frame([{"agent": "ann\\u200b"}, {"agent": " ben"}])
    >>> count_normalized(table, read_agents(table, "monday.csv"))
    1
    """
    cells = frame[match_headers(frame, AGENTS)["agent"]]
    if cells.dtype not in (pl.String, pl.Categorical, pl.Enum):
        return 0
    return int((cells.cast(pl.String).str.strip_chars() != agent).sum())


def match_headers(frame: pl.DataFrame, columns: ColumnNames) -> dict[str, str]:
    """The header in the frame of each column that is present: the first of its accepted names."""
    headers = {normalize_header(header): header for header in reversed(frame.columns) if header != ROW}
    found = {
        name: next((headers[each] for each in accepted if each in headers), None) for name, accepted in columns.items()
    }
    return {name: header for name, header in found.items() if header is not None}


def normalize_header(header: str) -> str:
    """A header as it is compared.

    >>> normalize_header(" Next State (2)")
    'next_state'
    """
    return re.sub(r"[\s\-_]+", "_", re.sub(r" \(\d+\)$", "", header.strip()).strip().lower())


def _parse_done(text: str) -> bool | None:
    word = text.lower().removesuffix(".0")
    return True if word in YES else False if word in NO else None


def _parse_round(text: str) -> int | None:
    digits = text.removesuffix(".0")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 and int(digits) >= 1 else None


def _check_rewards_given(table: "TableColumns", after: pl.Series, reward: pl.Series) -> None:
    """Note next states without a reward, where rewards are reported."""
    missing = after.is_not_null() & reward.is_null()
    if not missing.any():
        return
    if "reward" in table.headers:
        empty = table.texts("reward").is_null()
        table.add_faults("reward", missing & empty, lambda _: "empty; every row with a next state needs a reward")
    else:
        table.add_fault(None, None, "no column 'reward'; in this program every row with a next state needs a reward")


def _rewards_of_states(
    table: "TableColumns", after: pl.Series, reward: pl.Series, rewards: Sequence[float]
) -> pl.Series:
    """The reward of each next state; note given rewards that differ from it or have no next state."""
    values = pl.Series(list(map(float, rewards)), dtype=pl.Float64)
    expected = values.gather(after) if after.null_count() else values[after]
    if reward.null_count() == len(reward):
        return expected
    differs = (reward - expected).abs() > 1e-9 * (1.0 + expected.abs())
    alone = reward.is_not_null() & table.texts("next_state").is_null()
    table.add_faults(
        "reward", differs, lambda i: f"{reward[i]:g} does not match the next state's reward {expected[i]:g}"
    )
    table.add_faults(
        "reward", alone, lambda _: "a reward without a next state; here rewards follow from the next state"
    )
    return expected


class TableColumns:
    """The columns of one table by meaning, and the faults found so far; `raise_faults` raises all of them."""

    def __init__(
        self, frame: pl.DataFrame, where: str, columns: ColumnNames, required: Sequence[str],
        all_known: AllKnown | None = None,
    ) -> None:  # fmt: skip
        self.frame, self.where, self.all_known = frame, where, all_known
        self.headers = match_headers(frame, columns)
        self.faults: list[Fault] = []
        self.total = 0
        numbered = ROW in frame.columns and frame[ROW].dtype.is_integer() and not frame[ROW].null_count()
        self.row = frame[ROW] if numbered else pl.Series(ROW, range(1, len(frame) + 1), dtype=pl.Int64)
        self._check_headers(columns, required)

    def _check_headers(self, columns: ColumnNames, required: Sequence[str]) -> None:
        """Note repeated, missing and misspelt headers."""
        headers = [header for header in self.frame.columns if header != ROW]
        normalized = [normalize_header(header) for header in headers]
        for header in self.headers.values():
            if normalized.count(normalize_header(header)) > 1:
                self.add_fault(None, header, "two columns have this name; keep one of them")
        for name in required:
            if name not in self.headers:
                near = next((header for header in headers if _similar_column(header, {name: columns[name]})), None)
                present = ", ".join(quote(header) for header in headers[:MAX_LISTED]) or "none"
                guess = f"did you mean {quote(near)}?" if near else f"the columns are {present}"
                self.add_fault(None, None, f"there is no column {name!r}; {guess}")
        absent = {name: columns[name] for name in columns if name not in self.headers and name not in required}
        for header in headers:
            similar = None if header in self.headers.values() else _similar_column(header, absent)
            if similar:
                self.add_fault(None, header, f"unknown column; did you mean {similar!r}?")

    def add_fault(self, row: int | None, column: str | None, message: str) -> None:
        """Note one fault."""
        self.faults.append(Fault(row, column, message))
        self.total += 1

    def add_faults(self, name: str, wrong: pl.Series, message: Callable[[int], str]) -> None:
        """Note a fault for each wrong cell; `message` describes it, given its index."""
        if not wrong.any():
            return
        places = wrong.fill_null(False).arg_true()
        column = self.headers.get(name)
        self.faults.extend(Fault(self.row[place], column, message(place)) for place in places[:MAX_FAULTS])
        self.total += len(places)

    def raise_faults(self) -> None:
        """Raise all faults, if there are any."""
        if self.total:
            raise TableError(self.where, self.faults, self.total)

    def empty_column(self, dtype: type[pl.DataType]) -> pl.Series:
        """A column of nulls."""
        return pl.Series([None], dtype=dtype).new_from_index(0, len(self.frame))

    def texts(self, name: str) -> pl.Series:
        """The cells as normalized text, null where empty; 7.0 becomes 7, NaN is empty."""
        if name not in self.headers or _is_nested(self.frame[self.headers[name]]):
            return self.empty_column(pl.String)
        cells = self.frame[self.headers[name]]
        if cells.dtype.is_float():
            cells = cells.fill_nan(None)
            whole = cells.cast(pl.Int64, strict=False)
            same = ((whole.cast(cells.dtype) == cells) & (cells.abs() < 2**53)).fill_null(False)
            cells = whole.cast(pl.String).zip_with(same, cells.cast(pl.String))
        text = normalize_names(cells.cast(pl.String))
        return text.set(text == "", None)

    def ids(self) -> pl.Series:
        """The agents' ids, none of them empty."""
        for header in self.headers.values():
            if _is_nested(self.frame[header]):
                dtype = self.frame[header].dtype
                self.add_fault(None, header, f"it holds {dtype}; a cell must be one text or one number")
        cells = self.frame[self.headers["agent"]] if "agent" in self.headers else None
        if cells is not None and self.all_known is not None and self.all_known(cells):
            return cells
        if cells is not None and not cells.null_count() and _is_plain(cells):
            return cells.cast(pl.String)
        agent = self.texts("agent")
        if cells is not None and not _is_nested(cells):
            self.add_faults("agent", agent.is_null(), lambda _: "the id is empty; every row must name its agent")
        self.check_printable("agent", agent)
        return agent

    def check_printable(self, name: str, ids: pl.Series) -> None:
        """Note ids or groups that are too long or contain control characters."""
        if ids.null_count() == len(ids):
            return
        broken, long = ids.str.contains(CONTROL_CHARACTER), ids.str.len_chars() > MAX_ID
        self.add_faults(name, broken, lambda i: f"{quote(ids[i])} contains a line break or another control character")
        self.add_faults(
            name, long, lambda i: f"{quote(ids[i])} has {len(ids[i])} characters; at most {MAX_ID} are allowed"
        )

    def check_unique(self, agent: pl.Series, round_: pl.Series | None = None) -> None:
        """Note every row whose agent appeared before, in the same round where rounds are given."""
        if agent.n_unique() == len(agent):
            return
        if round_ is not None:  # two invalid rounds are not the same round
            agent = agent.set(round_.is_null() & self.texts("round").is_not_null(), None)
        keys = pl.DataFrame({"agent": agent, "round": self.empty_column(pl.Int64) if round_ is None else round_})
        places = keys.with_row_index("place").with_columns(first=pl.col("place").min().over("agent", "round"))
        first, repeated = places["first"], agent.is_not_null() & (places["first"] != places["place"])
        rows = self.row.gather(first)
        self.add_faults(
            "agent", repeated, lambda i: f"{quote(agent[i])} appears twice, also in row {rows[i]}; keep one"
        )

    def parsed(
        self, name: str, dtype: type[pl.DataType], parse: Callable[[str], object], explain: Callable[[str], str],
        common: Sequence[str] = (),
    ) -> pl.Series:  # fmt: skip
        """The cells parsed text by text; `explain` words the fault of a text that `parse` returns None for.

        A column in which every cell is one of a few common texts takes a fast path.
        """
        if name in self.headers and (codes := _find_codes(self.frame[self.headers[name]], common)) is not None:
            return pl.Series(np.array([parse(text) for text in common])[codes], dtype=dtype)
        text = self.texts(name)
        if text.null_count() == len(text):
            return self.empty_column(dtype)
        different = text.drop_nulls().unique()
        values = pl.Series([parse(cell) for cell in different], dtype=dtype)
        column = text.replace_strict(different, values, default=None, return_dtype=dtype)
        if column.null_count() > text.null_count():
            self.add_faults(name, text.is_not_null() & column.is_null(), lambda i: explain(text[i]))
        return column

    def state_codes(self, name: str, states: Sequence[str]) -> pl.Series:
        """The numbers of states that are given by name or by number."""
        names = [normalize_name(state) for state in states]
        exact, lower = {name: place for place, name in enumerate(names)}, [name.lower() for name in names]
        any_case = {state: place for place, state in enumerate(lower) if lower.count(state) == 1}
        numbers = {f"{place}{end}": place for place in range(len(states)) for end in ("", ".0")}

        def parse(text: str) -> int | None:
            return exact.get(text, any_case.get(text.lower(), numbers.get(text)))

        plain = [state for state in states if state == state.strip() != ""]
        common = list(dict.fromkeys([*plain, *map(str, range(len(states)))]))
        return self.parsed(name, pl.Int16, parse, lambda text: _unknown_state(text, states), common)

    def feature(self, name: str, categories: Sequence[str]) -> pl.Series:
        """The numbers of categories, given in any case; without categories numbers."""
        if not categories:
            return self.numbers(name)
        places = {category.lower(): place for place, category in enumerate(categories)}
        allowed = ", ".join(categories[:MAX_LISTED])
        return self.parsed(
            name, pl.Int16, lambda text: places.get(text.lower()), lambda text: f"{quote(text)} is not one of {allowed}"
        )

    def numbers(self, name: str) -> pl.Series:
        """Finite numbers; a comma is the decimal sign if a cell rules out thousands and none has a point.

        So 0,5 and 1,25 are read, and next to them 1,250; alone 1,250 is ambiguous and refused.
        """
        if name not in self.headers:
            return self.empty_column(pl.Float64)
        if self.frame[self.headers[name]].dtype.is_numeric():
            number = self.frame[self.headers[name]].cast(pl.Float64).fill_nan(None)
            text, given = number, number.is_not_null()
        else:
            text = self.texts(name)
            comma = text.str.contains(DECIMAL_COMMA).any() and not text.str.contains(".", literal=True).any()
            plain = text.str.replace(COMMA, "$1.$2") if comma else text
            number, given = plain.cast(pl.Float64, strict=False), text.is_not_null()
        wrong = given & ~number.is_finite().fill_null(False)
        self.add_faults(
            name, wrong, lambda i: f"{quote(str(text[i]))} is not a finite number; write it like 1250 or 2.5"
        )
        return number


def _is_nested(cells: pl.Series) -> bool:
    return cells.dtype.is_nested() or cells.dtype in (pl.Object, pl.Binary)


def _is_plain(cells: pl.Series) -> bool:
    """Whether the cells are whole numbers or plain short texts, which need no cleaning and have no faults."""
    return cells.dtype.is_integer() or (cells.dtype == pl.String and bool(cells.str.contains(PLAIN_ID).all()))


def _find_codes(cells: pl.Series, common: Sequence[str]) -> Ints | None:
    """The index of each cell among a few different texts; None if a cell is not one of them."""
    if not (cells.dtype.is_integer() or cells.dtype in (pl.String, pl.Boolean)) or len(common) > 2 * MAX_LISTED:
        return None
    texts = cells.cast(pl.String)
    if cells.null_count() or not len(cells) or texts[0] not in common:
        return None
    codes, left = np.empty(len(cells), np.int64), len(cells)
    for code, text in enumerate(common):
        here = (texts == text).to_numpy()
        codes[here], left = code, left - int(here.sum())
        if left <= 0:
            return codes
    return None


def _similar_column(header: str, columns: ColumnNames) -> str | None:
    """The column that has a name similar to this header."""
    plain = normalize_header(header)
    for name, accepted in columns.items():
        long = [each for each in accepted if len(each) >= MIN_HEADER and each != plain]
        if difflib.get_close_matches(plain, long, n=1, cutoff=SIMILAR):
            return name
    return None


def _unknown_state(text: str, states: Sequence[str]) -> str:
    """The message for a text that is not a state."""
    near = difflib.get_close_matches(text[:MAX_QUOTE].lower(), [state.lower() for state in states], 1)
    guess = next((f" (did you mean {state!r}?)" for state in states if state.lower() in near), "")
    some = ", ".join(states[:MAX_LISTED]) + (", ..." if len(states) > MAX_LISTED else "")
    return f"{quote(text)} is not a state; the states are {some}{guess}"
