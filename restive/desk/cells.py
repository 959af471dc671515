"""The columns of a sheet under check: each becomes a series of one type, and every cell that does not fit a fault.

`Cells` finds the columns by their headers and gathers faults; `finish` raises all of them at once as `Faults`. Checks
run over whole columns; only cells that are wrong are looked at one by one, a thousand of each kind at most.
"""

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from unicodedata import normalize

import numpy as np
import polars as pl

from restive.desk.table_files import ROW
from restive.errors import InputError
from restive.types import Ints

Spellings = Mapping[str, Sequence[str]]  # of each column, the best first
Knows = Callable[[pl.Series], bool]  # whether texts are names of agents who were checked when they joined
SHOWN, KEPT = 20, 1000  # faults in the message, and of each kind in the list
MAX_ID, MAX_QUOTE, MANY_STATES = 200, 40, 12
CONTROL = r"[\p{Cc}\p{Zl}\p{Zp}]"
PLAIN = rf"^[!-~](?:[ -~]{{0,{MAX_ID - 2}}}[!-~])?$"  # ASCII on one line, not too long, no blanks around it
COMMA = r"^([+-]?\d*),(\d+)$"
DECIMAL = r"^[+-]?(?:0*,\d+|\d+,(?:\d{1,2}|\d{4,}))$"  # a comma for thousands has three digits behind and no 0 in front


class Fault(NamedTuple):
    """One thing that is wrong, and where: the row as a person sees it and the header, where they are known."""

    row: int | None
    column: str | None
    sentence: str


class Faults(InputError):  # noqa: N818, it is a list of them
    """All that is wrong with a sheet: `faults` in the order of rows, a thousand of each kind at most, of `total`."""

    code = "invalid_table"

    def __init__(self, where: str, faults: Sequence[Fault], total: int | None = None) -> None:
        self.where = where
        self.total = len(faults) if total is None else total
        self.faults = sorted(faults, key=lambda fault: fault.row or 0)
        more = [f"and {self.total - SHOWN} more"] if self.total > SHOWN else []
        super().__init__("\n".join([*map(self._line, self.faults[:SHOWN]), *more]))

    def _line(self, fault: Fault) -> str:
        row = "" if fault.row is None else f", row {fault.row}"
        column = "" if fault.column is None else f", column {quote(fault.column)[1:-1]}"
        return f"{self.where}{row}{column}: {fault.sentence}"


def plain_header(header: str) -> str:
    """A header as it is compared.

    >>> plain_header(" Next State (2)")
    'next_state'
    """
    return re.sub(r"[\s\-_]+", "_", re.sub(r" \(\d+\)$", "", header.strip()).strip().lower())


def match_headers(frame: pl.DataFrame, columns: Spellings) -> dict[str, str]:
    """The header in the frame of each column that is there: of its spellings the first that is found."""
    headers = {plain_header(header): header for header in reversed(frame.columns) if header != ROW}
    found = {name: next((headers[s] for s in spellings if s in headers), None) for name, spellings in columns.items()}
    return {name: header for name, header in found.items() if header is not None}


class Cells:
    """The columns of one sheet by what they mean, and the faults found so far."""

    def __init__(
        self, frame: pl.DataFrame, where: str, columns: Spellings, required: Sequence[str], knows: Knows | None = None
    ) -> None:
        self.frame, self.where, self.knows = frame, where, knows
        self.headers = match_headers(frame, columns)
        self.faults: list[Fault] = []
        self.total = 0
        numbered = ROW in frame.columns and frame[ROW].dtype.is_integer() and not frame[ROW].null_count()
        self.row = frame[ROW] if numbered else pl.Series(ROW, range(1, len(frame) + 1), dtype=pl.Int64)
        self._refuse_doubled_headers()
        self._refuse_absent(columns, required)
        self._refuse_misspelt(columns, required)

    def _refuse_doubled_headers(self) -> None:
        plain = [plain_header(header) for header in self._others()]
        for header in self.headers.values():
            if plain.count(plain_header(header)) > 1:
                self.add(None, header, "there are two columns of this name; keep one of them")

    def _refuse_absent(self, columns: Spellings, required: Sequence[str]) -> None:
        for name in required:
            if name not in self.headers:
                near = next((header for header in self._others() if _nearest(header, {name: columns[name]})), None)
                there = ", ".join(quote(header) for header in self._others()[:MANY_STATES]) or "none"
                hint = f"did you mean {quote(near)}?" if near else f"the columns are {there}"
                self.add(None, None, f"there is no column {name!r}; {hint}")

    def _refuse_misspelt(self, columns: Spellings, required: Sequence[str]) -> None:
        absent = {name: columns[name] for name in columns if name not in self.headers and name not in required}
        for header in self._others():
            near = None if header in self.headers.values() else _nearest(header, absent)
            if near:
                self.add(None, header, f"this column is not known; did you mean {near!r}?")

    def _others(self) -> list[str]:
        return [header for header in self.frame.columns if header != ROW]

    def add(self, row: int | None, column: str | None, sentence: str) -> None:
        """Note one fault."""
        self.faults.append(Fault(row, column, sentence))
        self.total += 1

    def blame(self, name: str, wrong: pl.Series, sentence: Callable[[int], str]) -> None:
        """Note a fault for each place that is wrong; `sentence` says what, given the place."""
        if not wrong.any():
            return
        places = wrong.fill_null(False).arg_true()
        column = self.headers.get(name)
        self.faults.extend(Fault(self.row[place], column, sentence(place)) for place in places[:KEPT])
        self.total += len(places)

    def finish(self) -> None:
        """Raise everything that was found."""
        if self.total:
            raise Faults(self.where, self.faults, self.total)

    def nothing(self, kind: type[pl.DataType]) -> pl.Series:
        """A column without any cell filled in."""
        return pl.Series([None], dtype=kind).new_from_index(0, len(self.frame))

    def texts(self, name: str) -> pl.Series:
        """The cells as text without surrounding blanks, null where there is none: 7.0 is 7, NaN is nothing."""
        if name not in self.headers or _is_nested(self.frame[self.headers[name]]):
            return self.nothing(pl.String)
        cells = self.frame[self.headers[name]]
        if cells.dtype.is_float():
            cells = cells.fill_nan(None)
            whole = cells.cast(pl.Int64, strict=False)
            same = ((whole.cast(cells.dtype) == cells) & (cells.abs() < 2**53)).fill_null(False)
            cells = whole.cast(pl.String).zip_with(same, cells.cast(pl.String))
        text = cells.cast(pl.String).str.strip_chars()
        return text.set(text == "", None)

    def refuse_nested(self) -> None:
        """Note columns that hold lists or records."""
        for header in self.headers.values():
            if _is_nested(self.frame[header]):
                self.add(None, header, f"it holds {self.frame[header].dtype}; a cell must be one text or one number")

    def ids(self) -> pl.Series:
        """The ids of agents, none of them empty."""
        self.refuse_nested()
        cells = self.frame[self.headers["agent"]] if "agent" in self.headers else None
        if cells is not None and self.knows is not None and self.knows(cells):
            return cells
        if cells is not None and not cells.null_count() and _is_plain(cells):
            return cells.cast(pl.String)
        agent = self.texts("agent")
        if cells is not None and not _is_nested(cells):
            self.blame("agent", agent.is_null(), lambda _: "the id is empty; every row must name its agent")
        self.refuse_unprintable("agent", agent)
        return agent

    def refuse_unprintable(self, name: str, ids: pl.Series) -> None:
        """Note names of agents or groups that are too long, or do not fit on one line."""
        if ids.null_count() == len(ids):
            return
        broken, long = ids.str.contains(CONTROL), ids.str.len_chars() > MAX_ID
        self.blame(name, broken, lambda i: f"{quote(ids[i])} has a line break or another control character in it")
        self.blame(name, long, lambda i: f"{quote(ids[i])} has {len(ids[i])} characters; at most {MAX_ID} may be")

    def refuse_twice(self, agent: pl.Series, number: pl.Series | None = None) -> None:
        """Note every row whose agent came before, in the same round where rounds are given."""
        if agent.n_unique() == len(agent):
            return
        if number is not None:  # two cells that are no rounds are not the same round
            agent = agent.set(number.is_null() & self.texts("round").is_not_null(), None)
        keys = pl.DataFrame({"agent": agent, "round": self.nothing(pl.Int64) if number is None else number})
        places = keys.with_row_index("place").with_columns(first=pl.col("place").min().over("agent", "round"))
        first, again = places["first"], agent.is_not_null() & (places["first"] != places["place"])
        rows = self.row.gather(first)
        self.blame("agent", again, lambda i: f"{quote(agent[i])} is here twice, also in row {rows[i]}; keep one")

    def translated(
        self, name: str, kind: type[pl.DataType], read: Callable[[str], object], explain: Callable[[str], str],
        usual: Sequence[str] = (),
    ) -> pl.Series:  # fmt: skip
        """The cells by what each different text means; `explain` is the sentence about one that means nothing.

        Where all cells are among a few usual texts, none of them empty or with blanks around it, this is soon done.
        """
        if name in self.headers and (codes := _find_codes(self.frame[self.headers[name]], usual)) is not None:
            return pl.Series(np.array([read(text) for text in usual])[codes], dtype=kind)
        text = self.texts(name)
        if text.null_count() == len(text):
            return self.nothing(kind)
        different = text.drop_nulls().unique()
        meanings = pl.Series([read(cell) for cell in different], dtype=kind)
        meant = text.replace_strict(different, meanings, default=None, return_dtype=kind)
        if meant.null_count() > text.null_count():
            self.blame(name, text.is_not_null() & meant.is_null(), lambda i: explain(text[i]))
        return meant

    def states(self, name: str, states: Sequence[str]) -> pl.Series:
        """The numbers of states that are given by name, or by number."""
        names = [normalize("NFC", state.strip()) for state in states]
        exact, lower = {name: place for place, name in enumerate(names)}, [name.lower() for name in names]
        loose = {state: place for place, state in enumerate(lower) if lower.count(state) == 1}
        numbers = {f"{place}{end}": place for place in range(len(states)) for end in ("", ".0")}

        def read(text: str) -> int | None:
            text = normalize("NFC", text)
            return exact.get(text, loose.get(text.lower(), numbers.get(text)))

        plain = [state for state in states if state == state.strip() != ""]
        usual = list(dict.fromkeys([*plain, *map(str, range(len(states)))]))
        return self.translated(name, pl.Int16, read, lambda text: _no_state(text, states), usual)

    def numbers(self, name: str) -> pl.Series:
        """Finite numbers; a comma is the decimal sign if a cell shows it is not for thousands, and none has a point.

        So 0,5 and 1,25 are read, and beside them 1,250 is; alone it could be either, and is refused.
        """
        if name not in self.headers:
            return self.nothing(pl.Float64)
        if self.frame[self.headers[name]].dtype.is_numeric():
            number = self.frame[self.headers[name]].cast(pl.Float64).fill_nan(None)
            text, given = number, number.is_not_null()
        else:
            text = self.texts(name)
            comma = text.str.contains(DECIMAL).any() and not text.str.contains(".", literal=True).any()
            plain = text.str.replace(COMMA, "$1.$2") if comma else text
            number, given = plain.cast(pl.Float64, strict=False), text.is_not_null()
        wrong = given & ~number.is_finite().fill_null(False)
        self.blame(name, wrong, lambda i: f"{quote(str(text[i]))} is not a finite number; write it like 1250 or 2.5")
        return number


def _is_nested(cells: pl.Series) -> bool:
    return cells.dtype.is_nested() or cells.dtype in (pl.Object, pl.Binary)


def _is_plain(cells: pl.Series) -> bool:
    """Whether the cells are whole numbers or plain short texts, in which nothing is to be corrected or refused."""
    return cells.dtype.is_integer() or (cells.dtype == pl.String and bool(cells.str.contains(PLAIN).all()))


def _find_codes(cells: pl.Series, usual: Sequence[str]) -> Ints | None:
    """The place of each cell among a few usual texts, all different; None where one is not there."""
    if not (cells.dtype.is_integer() or cells.dtype in (pl.String, pl.Boolean)) or len(usual) > 2 * MANY_STATES:
        return None
    texts = cells.cast(pl.String)
    if cells.null_count() or not len(cells) or texts[0] not in usual:
        return None
    codes, left = np.empty(len(cells), np.int64), len(cells)
    for code, text in enumerate(usual):
        here = (texts == text).to_numpy()
        codes[here], left = code, left - int(here.sum())
        if left <= 0:
            return codes
    return None


def _nearest(header: str, columns: Spellings) -> str | None:
    """The column one of whose spellings the header is, but for one letter."""
    plain = plain_header(header)
    return next((name for name, many in columns.items() if any(_is_near(plain, known) for known in many)), None)


def _is_near(header: str, known: str) -> bool:
    """Whether one letter is missing, too many or another one, or two are swapped; short words are near to too much.

    >>> _is_near("stat", "state"), _is_near("gruop", "group"), _is_near("age", "agent"), _is_near("in", "id")
    (True, True, False, False)
    """
    if len(known) < 4 or header == known:
        return False
    pairs = enumerate(zip(header, known, strict=False))
    same = next((i for i, (a, b) in pairs if a != b), min(len(header), len(known)))
    a, b = header[same:], known[same:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[2:] == b[2:] and a[:2] == b[1::-1])


def _no_state(text: str, states: Sequence[str]) -> str:
    """The sentence about a text that is no state."""
    near = difflib.get_close_matches(text[:MAX_QUOTE].lower(), [state.lower() for state in states], 1)
    hint = next((f" (did you mean {state!r}?)" for state in states if state.lower() in near), "")
    some = ", ".join(states[:MANY_STATES]) + (", ..." if len(states) > MANY_STATES else "")
    return f"{quote(text)} is not a state; states are {some}{hint}"


def quote(text: str) -> str:
    """A cell as a sentence shows it: on one line, and not all of a long one."""
    return repr(text if len(text) <= MAX_QUOTE else f"{text[:MAX_QUOTE]}…")
