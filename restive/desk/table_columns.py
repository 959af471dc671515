"""The columns of one table by meaning: headers, cells of fixed types, and every fault at once, by row and column.

Headers are compared without case and surrounding blanks, and with blanks or hyphens as underscores. A column may have
several names (agent, agent_id, id): the first that is present is read, the one of the program's mapping before all
others. Unknown columns are ignored, and `unread` lists them; a header that almost matches a missing column is a fault.

Checks run over whole columns; only wrong cells are looked at one by one, at most MAX_FAULTS of each kind.
"""

import difflib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np
import polars as pl

from restive.desk.roster import MAX_DICT_LOOKUPS, MAX_ID, normalize_name, normalize_names
from restive.desk.table_files import MAX_QUOTE, ROW, quote
from restive.desk.table_mapping import NO_MAPPING, TableMapping, days_before, fold, normalize_header, spell_phones
from restive.desk.table_suggestions import suggest_column
from restive.errors import Hint, InputError
from restive.types import Ints

ColumnNames = Mapping[str, Sequence[str]]  # the accepted headers of each column, best first
AllKnown = Callable[[pl.Series], bool]  # whether all these ids belong to agents that were validated when they joined

MAX_PRINTED, MAX_FAULTS = 20, 1000  # faults in the message, and of each kind in the list
MAX_LISTED = 12
MAX_TEXT = 500  # characters of a display cell
MIN_HEADER, SIMILAR = 4, 0.8  # headers shorter than this are never called similar
CONTROL_CHARACTER = r"[\p{Cc}\p{Zl}\p{Zp}]"
PLAIN_ID = rf"^[!-~](?:[ -~]{{0,{MAX_ID - 2}}}[!-~])?$"  # printable ASCII, not too long, no surrounding blanks
COMMA = r"^([+-]?\d*),(\d+)$"
DECIMAL_COMMA = r"^[+-]?(?:0*,\d+|\d+,(?:\d{1,2}|\d{4,}))$"  # cannot be a thousands separator


TEXTS = "texts"  # the choice of the state that each text means


class Fault(NamedTuple):
    """One error in a table: the row number and header that a person sees, where they apply."""

    row: int | None
    column: str | None
    message: str
    choice: str = ""  # what to say about the table so that this is no error: the header of a column, or TEXTS


class TableError(InputError):
    """All faults of a table in the order of rows, at most MAX_FAULTS of each kind out of `total`."""

    code = "invalid_table"

    def __init__(
        self,
        location: str,
        faults: Sequence[Fault],
        total: int | None = None,
        hint: Hint | None = None,
        unclear: int = 0,
    ) -> None:
        self.total = len(faults) if total is None else total
        self.unclear = unclear  # of the total, faults that a choice resolves
        self.faults = sorted(faults, key=lambda fault: fault.row or 0)
        more = [f"and {self.total - MAX_PRINTED} more"] if self.total > MAX_PRINTED else []
        lines = [_fault_line(location, fault) for fault in self.faults[:MAX_PRINTED]]
        super().__init__("\n".join([*lines, *more]), location=location, hint=hint)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.location, self.faults, self.total, self.hint, self.unclear)


def _fault_line(location: str, fault: Fault) -> str:
    row = "" if fault.row is None else f", row {fault.row}"
    column = "" if fault.column is None else f", column {quote(fault.column)[1:-1]}"
    return f"{location}{row}{column}: {fault.message}"


def unread(frame: pl.DataFrame, columns: ColumnNames) -> list[str]:
    """The headers that are ignored.

    >>> from restive.desk.table_files import as_frame
    >>> unread(as_frame([{"Agent": "ann", "State": "low", "phone": "12"}]), {"agent": ["agent"], "state": ["state"]})
    ['phone']
    """
    used = set(match_headers(frame, columns).values())
    return [name for name in frame.columns if name not in used and name != ROW]


def accept(columns: ColumnNames, mapping: TableMapping) -> ColumnNames:
    """The accepted headers of each column in a program with this mapping.

    A column with a header of its own keeps its usual name, as in the files of the desk, but no other.

    >>> accept({"agent": ("agent", "id"), "group": ("group",)}, TableMapping({"agent": "Customer ID", "group": ""}))
    {'agent': ('customer_id', 'agent'), 'group': ()}
    """
    own = {name: normalize_header(header) for name, header in mapping.columns.items()}
    claimed, accepted = set(own.values()), dict[str, Sequence[str]]()
    for name, headers in columns.items():
        usual = [header for header in headers if header not in claimed]
        if name in own:
            accepted[name] = (own[name], *usual[:1]) if own[name] else ()
        else:
            accepted[name] = tuple(usual)
    cut = () if mapping.cut_points is None else (normalize_header(mapping.cut_points.column),)
    if "state" in accepted:
        accepted["state"] = (*cut, *accepted["state"])
    if "next_state" in accepted:
        accepted["next_state"] = (*accepted["next_state"], *cut, *filter(None, [own.get("state")]))
    return accepted


def match_headers(frame: pl.DataFrame, columns: ColumnNames) -> dict[str, str]:
    """The header in the frame of each column that is present: the first of its accepted names."""
    headers = {normalize_header(header): header for header in reversed(frame.columns) if header != ROW}
    found = {
        name: next((headers[each] for each in accepted if each in headers), None) for name, accepted in columns.items()
    }
    return {name: header for name, header in found.items() if header is not None}


class TableColumns:
    """The columns of one table by meaning, and the faults found so far; `raise_faults` raises all of them."""

    def __init__(
        self, frame: pl.DataFrame, where: str, columns: ColumnNames, required: Sequence[str],
        all_known: AllKnown | None = None, mapping: TableMapping = NO_MAPPING, states: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.frame, self.where, self.all_known, self.mapping, self.states = frame, where, all_known, mapping, states
        columns = accept(columns, mapping)
        self.headers = match_headers(frame, columns)
        self.hint: Hint | None = None
        self.faults: list[Fault] = []
        self.total = self.unclear = 0
        self.distinct = False  # whether the ids are known to be distinct: those of the whole roster, each once
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
                self._add_missing(name, headers, columns[name])
        absent = {name: columns[name] for name in columns if name not in self.headers and name not in required}
        for header in headers:
            similar = None if header in self.headers.values() else _similar_column(header, absent)
            if similar:
                self.add_fault(None, header, f"unknown column; did you mean {similar!r}?", similar)

    def _add_missing(self, name: str, headers: Sequence[str], accepted: Sequence[str]) -> None:
        """Note a missing column, with the header that may be meant."""
        near = next((header for header in headers if _similar_column(header, {name: accepted})), None)
        near = near or suggest_column(name, self.frame.drop(ROW, strict=False), set(self.headers.values()), self.states)
        present = ", ".join(quote(header) for header in headers[:MAX_LISTED]) or "none"
        guess = f"did you mean {quote(near)}?" if near else f"the columns are {present}"
        self.add_fault(None, None, f"there is no column {(self.mapping.columns.get(name) or name)!r}; {guess}", name)
        self.hint = Hint.COLUMNS

    def add_fault(self, row: int | None, column: str | None, message: str, choice: str = "") -> None:
        """Note one fault."""
        self.faults.append(Fault(row, column, message, choice))
        self.total += 1
        self.unclear += bool(choice)

    def add_faults(self, name: str, wrong: pl.Series, message: Callable[[int], str], choice: str = "") -> None:
        """Note a fault for each wrong cell; `message` describes it, given its index."""
        if not wrong.any():
            return
        places = wrong.fill_null(False).arg_true()
        column = self.headers.get(name)
        self.faults.extend(Fault(self.row[place], column, message(place), choice) for place in places[:MAX_FAULTS])
        self.total += len(places)
        self.unclear += len(places) * bool(choice)

    def raise_faults(self) -> None:
        """Raise all faults, if there are any."""
        if self.total:
            raise TableError(self.where, self.faults, self.total, self.hint, self.unclear)

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
        """The agents' ids, none of them empty, phone numbers in one spelling if the program says so."""
        return spell_phones(self._ids(), self.mapping.phone_country)

    def _ids(self) -> pl.Series:
        for header in self.headers.values():
            if _is_nested(self.frame[header]):
                dtype = self.frame[header].dtype
                self.add_fault(None, header, f"it holds {dtype}; a cell must be one text or one number")
        cells = self.frame[self.headers["agent"]] if "agent" in self.headers else None
        if cells is not None and self.all_known is not None and self.all_known(cells):
            self.distinct = len(cells) > MAX_DICT_LOOKUPS and not self.mapping.phone_country
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

    def merge(self, table: pl.DataFrame, keys: Sequence[str] = ("agent",)) -> pl.DataFrame:
        """The rows that were read, with their numbers and without repetitions, if there are no faults.

        A row that says something else than an earlier one with the same keys is a fault.
        """
        numbered = table.hstack([self.row.alias(ROW)])
        agent = table["agent"]
        if not self.distinct and agent.n_unique() < len(table):
            for key in keys[1:]:  # two invalid rounds are not the same round
                agent = agent.set(table[key].is_null() & self.texts(key).is_not_null(), None)
            placed = table.with_columns(agent).with_row_index("place")
            first = placed.select(pl.when(agent.is_null()).then("place").otherwise(pl.col("place").min().over(keys)))
            place = first.to_series()
            same = pl.Series([True]).new_from_index(0, len(table))
            for column in table:
                same &= column.eq_missing(column.gather(place))
            rows = self.row.gather(place)
            self.add_faults(
                "agent", ~same, lambda i: f"{quote(agent[i])} appears twice, also in row {rows[i]}; keep one"
            )
            numbered = numbered.filter(place == placed["place"])
        self.raise_faults()
        return numbered

    def parsed(
        self, name: str, dtype: type[pl.DataType], parse: Callable[[str], object], explain: Callable[[str], str],
        common: Sequence[str] = (), choice: str = "", empty: Sequence[str] = (),
    ) -> pl.Series:  # fmt: skip
        """The cells parsed text by text; `explain` words the fault of a text that `parse` returns None for.

        A column in which every cell is one of a few common texts takes a fast path. Texts in `empty` count as empty cells.
        """
        if name in self.headers and (codes := _find_codes(self.frame[self.headers[name]], common)) is not None:
            return pl.Series(np.array([parse(text) for text in common])[codes], dtype=dtype)
        text = self.texts(name)
        if empty:
            text = text.set(text.str.to_lowercase().is_in(empty).fill_null(False), None)
        if text.null_count() == len(text):
            return self.empty_column(dtype)
        different = text.drop_nulls().unique()
        values = pl.Series([parse(cell) for cell in different], dtype=dtype)
        column = text.replace_strict(different, values, default=None, return_dtype=dtype)
        if column.null_count() > text.null_count():
            self.add_faults(name, text.is_not_null() & column.is_null(), lambda i: explain(text[i]), choice)
        return column

    def state_codes(self, name: str, states: Sequence[str]) -> pl.Series:
        """The numbers of states that are given by name, by a text that means one, by number, or by cut points."""
        cut, values = self.mapping.cut_points, self.mapping.values
        if cut is not None and normalize_header(self.headers.get(name, "")) == normalize_header(cut.column):
            return cut.codes(self.numbers(name, dates=True))
        names = [normalize_name(state) for state in states]
        exact, lower = {name: place for place, name in enumerate(names)}, [name.lower() for name in names]
        any_case = {state: place for place, state in enumerate(lower) if lower.count(state) == 1}
        numbers = {f"{place}{end}": place for place in range(len(states)) for end in ("", ".0")}

        def parse(text: str) -> int | None:
            means = values.get(fold(text)) if values else None
            return exact.get(text if means is None else means, any_case.get(text.lower(), numbers.get(text)))

        plain = [state for state in states if state == state.strip() != ""]
        common = list(dict.fromkeys([*plain, *map(str, range(len(states)))]))
        empty = [text for text, state in values.items() if not state]
        return self.parsed(name, pl.Int16, parse, lambda text: _unknown_state(text, states), common, TEXTS, empty)

    def feature(self, name: str, categories: Sequence[str]) -> pl.Series:
        """The numbers of categories, given in any case; without categories numbers."""
        if not categories:
            return self.numbers(name)
        places = {category.lower(): place for place, category in enumerate(categories)}
        allowed = ", ".join(categories[:MAX_LISTED])
        return self.parsed(
            name, pl.Int16, lambda text: places.get(text.lower()), lambda text: f"{quote(text)} is not one of {allowed}"
        )

    def display(self, name: str) -> pl.Series:
        """Texts on one line; line breaks and other control characters become blanks."""
        text = self.texts(name).str.replace_all(f"{CONTROL_CHARACTER}+", " ").str.strip_chars()
        long = text.str.len_chars() > MAX_TEXT
        self.add_faults(name, long, lambda i: f"{quote(text[i])} is longer than {MAX_TEXT} characters")
        return text.set(text == "", None)

    def numbers(self, name: str, dates: bool = False) -> pl.Series:
        """Finite numbers; a comma is the decimal sign if a cell rules out thousands and none has a point.

        So 0,5 and 1,25 are read, and next to them 1,250; alone 1,250 is ambiguous and refused. 10% is 0.1.
        With `dates`, a column of dates is read as days before today.
        """
        if name not in self.headers:
            return self.empty_column(pl.Float64)
        cells = self.frame[self.headers[name]]
        if dates and (days := days_before(cells, datetime.now(UTC).date())) is not None:
            return days
        if self.frame[self.headers[name]].dtype.is_numeric():
            number = self.frame[self.headers[name]].cast(pl.Float64).fill_nan(None)
            text, given = number, number.is_not_null()
        else:
            text = self.texts(name)
            plain = text.str.replace(r" ?%$", "")
            comma = plain.str.contains(DECIMAL_COMMA).any() and not plain.str.contains(".", literal=True).any()
            plain = plain.str.replace(COMMA, "$1.$2") if comma else plain
            number, given = plain.cast(pl.Float64, strict=False), text.is_not_null()
            number = (number / 100).zip_with(text.str.ends_with("%").fill_null(False), number)
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
