"""Reads and writes tables as CSV, Excel and Parquet files by extension; `as_frame` also takes Python data.

A table is a data frame. Cells of CSV and Excel are read as text, so that 007 stays 007; Parquet keeps its types. An
empty cell is null and blank rows are left out. The first column, `row`, is the row number that a person sees: the
header is row 1, blank rows count, and a quoted cell with line breaks is part of one row; Parquet has no header row and
counts from 1. A repeated header becomes `name (2)`.

Text that a spreadsheet would run as a formula (it begins with = + - @, also full-width, a tab or a line break) is
written to CSV with an apostrophe in front and read back without it. The same holds behind a comma, semicolon, tab or
line break inside a text, where a spreadsheet with another delimiter would begin a cell, even in quotes. Excel stores
texts as texts.
"""

import csv
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from io import BytesIO, StringIO
from itertools import chain
from os import PathLike
from pathlib import Path
from tempfile import SpooledTemporaryFile, TemporaryDirectory
from typing import NamedTuple

import polars as pl

from restive.desk.excel import NO_CHOICES, Choices, excel_bytes, read_excel, refuse_damaged
from restive.errors import Hint, InputError
from restive.files import write_atomic

ROW = "row"
AGENT_HEADERS = ("agent", "agent_id", "id")
MAX_QUOTE = 40
DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab"}
DEFAULT_DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
EXTENSIONS = (*DEFAULT_DELIMITERS, ".xlsx", ".parquet")
EXTENSION_LIST = ".csv, .tsv, .txt, .xlsx or .parquet"
FORMULA_SIGN = r"=+\-@＝＋－＠"
# Where a cell or a part of it begins, and what follows there: quotes, blanks and apostrophes before the sign.
FORMULAS = (rf"([,;\t\r\n])([ '\"]*[{FORMULA_SIGN}])", rf"(^)([ '\"]*[{FORMULA_SIGN}\t\r\n])")
ESCAPED_FORMULAS = tuple(pattern.replace(")(", ")'(", 1) for pattern in reversed(FORMULAS))
UTF_8 = "UTF-8"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
PART_ROWS = 20_000  # of a long table that is written in parts
PIECE, MAX_SPOOLED = 1 << 20, 1 << 23  # bytes read at once; bytes of a file that are held in memory
OTHER_ENCODING = re.compile(rb"[\x80-\xff]{4}|[\x00-\x08\x0e-\x1f]")  # words of another script, or no text at all
MAX_COLUMNS, MAX_HEADER = 2_000, 200  # characters of a header
MAX_CELLS = 1_000_000_000  # of a Parquet file, a few bytes of which can stand for any number of rows


class TableFile(NamedTuple):
    """A table and how its file was read; an empty text where that does not apply."""

    frame: pl.DataFrame
    encoding: str = ""
    delimiter: str = ""
    sheet: str = ""
    sheets: tuple[str, ...] = ()

    def notes(self) -> list[str]:
        """Remarks on the file: what a person would not expect."""
        read = [f"read as {self.encoding}"] if self.encoding not in ("", UTF_8) else []
        return read + ([f"read the sheet {self.sheet} of {', '.join(self.sheets)}"] if len(self.sheets) > 1 else [])


def read_table_file(path: str | PathLike[str]) -> pl.DataFrame:
    """The table of a file, as `open_table_file` reads it."""
    return open_table_file(path).frame


def open_table_file(path: str | PathLike[str], sheet: str = "") -> TableFile:
    """Read a file as a table, row numbers first; `book.xlsx#Name` or `sheet` names another sheet than the first."""
    file, named = split_sheet(path)
    extension = file.suffix.lower()
    if extension not in EXTENSIONS:
        raise InputError(f"{file.name}: cannot read files that end in {extension!r}; save it as {EXTENSION_LIST}.")
    content = file.read_bytes()
    if not content:
        raise InputError(f"{file.name}: the file is empty.")
    if extension == ".parquet":
        return TableFile(read_parquet(content, file.name))
    if extension == ".xlsx":
        book = read_excel(content, file.name, sheet or named)
        return TableFile(_with_header(book.grid, file.name), sheet=book.name, sheets=book.names)
    text, encoding = decode_text(content, file.name)
    delimiter = _find_delimiter(text, DEFAULT_DELIMITERS[extension])
    grid = _read_csv(text, file.name, delimiter)
    if "'" in text:
        grid = grid.with_columns(unescape_formulas(pl.all()))
    return TableFile(_with_header(grid, file.name), encoding, DELIMITERS[delimiter])


def write_table_file(
    frame: pl.DataFrame | Iterable[pl.DataFrame],
    path: str | PathLike[str],
    choices: Choices = NO_CHOICES,
    sheet: str = "",
) -> None:
    """Write a frame of plain columns atomically; its extension selects the format, `choices` are drop-downs of Excel.

    A long table may come in parts; as CSV and Parquet it is then never in memory as a whole. `sheet` is the name of the
    sheet in Excel.
    """
    file = Path(path)
    extension = _check_extension(file)
    parts = iter([frame] if isinstance(frame, pl.DataFrame) else frame)
    first = next(parts)
    _check_plain(first, file.name)
    parts = chain([first], parts)
    if extension == ".parquet":
        write_atomic(file, _parquet_pieces(parts))
    elif extension == ".xlsx":
        write_atomic(file, excel_bytes(pl.concat(parts), file.name, choices, sheet))
    else:
        write_atomic(file, _csv_pieces(parts, DEFAULT_DELIMITERS[extension]))


def _csv_pieces(parts: Iterable[pl.DataFrame], delimiter: str) -> Iterator[bytes]:
    """The bytes of a CSV file, as `csv_bytes` writes it, in pieces."""
    with SpooledTemporaryFile(MAX_SPOOLED) as file:
        ascii_only = True
        for number, part in enumerate(parts):
            content = _csv_text(part, delimiter, header=number == 0).encode()
            ascii_only &= content.isascii()
            file.write(content)
        file.seek(0)
        yield b"" if ascii_only else BYTE_ORDER_MARK
        while piece := file.read(PIECE):
            yield piece


def _parquet_pieces(parts: Iterable[pl.DataFrame]) -> Iterator[bytes]:
    """The bytes of a Parquet file in pieces."""
    with TemporaryDirectory(prefix="restive-") as folder:
        files = []
        for number, part in enumerate(parts):
            files.append(Path(folder) / f"{number}.parquet")
            part.write_parquet(files[-1])
        whole = files[0]
        if len(files) > 1:
            whole = Path(folder) / "whole.parquet"
            pl.scan_parquet(files).sink_parquet(whole)
        with whole.open("rb") as file:
            while piece := file.read(PIECE):
                yield piece


def _check_extension(file: Path) -> str:
    """The extension of a file to write."""
    if file.suffix.lower() not in EXTENSIONS:
        raise InputError(f"{file.name}: cannot write files that end in {file.suffix!r}; use {EXTENSION_LIST}.")
    return file.suffix.lower()


def check_output_file(path: str | PathLike[str], overwrite: bool = False) -> None:
    """Check that a file can be written, before any work is done, and make its folder."""
    file = Path(path)
    _check_extension(file)
    if file.is_dir():
        raise InputError(f"{file} is a folder.")
    if file.exists() and not overwrite:
        raise InputError(f"{file} already exists.", code="file_exists", hint=Hint.OVERWRITE)
    file.parent.mkdir(parents=True, exist_ok=True)
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise InputError(f"{file} is not writable.")


def split_sheet(path: str | PathLike[str]) -> tuple[Path, str]:
    """The file, and the name of the sheet if one is given after #."""
    file = Path(path)
    book, mark, sheet = file.name.rpartition("#")
    if mark and book.lower().endswith(".xlsx") and not file.exists():
        return file.with_name(book), sheet
    return file, ""


def _check_plain(frame: pl.DataFrame, where: str) -> None:
    for name, dtype in frame.schema.items():
        if dtype.is_nested() or dtype in (pl.Binary, pl.Object):
            raise InputError(f"{where}, column {name}: it holds {dtype}; a cell must be one text or one number.")


def _check_width(columns: int, where: str) -> None:
    if columns > MAX_COLUMNS:
        raise InputError(f"{where}: it has {columns:,} columns; at most {MAX_COLUMNS:,} are allowed.")


def _check_headers(headers: Sequence[str], where: str) -> None:
    for header in headers:
        if len(header) > MAX_HEADER:
            raise InputError(f"{where}: the header {quote(header)} is longer than {MAX_HEADER} characters.")


def _with_header(grid: pl.DataFrame, where: str) -> pl.DataFrame:
    """Use the first row that is not blank as the header; drop blank rows, and columns without header and cells."""
    filled = pl.any_horizontal(pl.all().str.contains(r"\S").fill_null(False))
    rows = grid.select(filled.arg_true().cast(pl.Int64).alias(ROW))[ROW] if grid.width else pl.Series(dtype=pl.Int64)
    if not len(rows):
        raise InputError(f"{where}: the file has no rows; the first row must name the columns.")
    body = grid[rows[1:]].with_columns(pl.all().replace("", None))
    headers = [(header or "").strip() for header in grid.row(rows[0])]
    _check_width(len(headers), where)
    _check_headers(headers, where)
    used = [place for place, header in enumerate(headers) if header or body[:, place].null_count() < len(body)]
    return _with_rows(body[:, used], [headers[place] or f"column {place + 1}" for place in used], rows[1:] + 1)


def _with_rows(body: pl.DataFrame, names: list[str], rows: pl.Series) -> pl.DataFrame:
    """The columns under unique names, after the row numbers."""
    taken, copies = {ROW}, dict.fromkeys(names, 2)
    for place, name in enumerate(names):
        while names[place] in taken:
            names[place], copies[name] = f"{name} ({copies[name]})", copies[name] + 1
        taken.add(names[place])
    return pl.DataFrame([rows.rename(ROW), *(body[:, j].alias(name) for j, name in enumerate(names))])


def decode_text(content: bytes, where: str) -> tuple[str, str]:
    """The text of a CSV file and its encoding: UTF-8, UTF-16 or Windows-1252, which are told apart by their bytes.

    >>> decode_text("José".encode("cp1252"), "monday.csv"), decode_text("José".encode("utf-16"), "monday.csv")
    (('José', 'Windows-1252'), ('José', 'UTF-16'))
    """
    head, codec = content[:4096], "utf-8-sig"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        codec = "utf-16"
    elif head.count(0) > len(head) // 10:  # without a byte order mark, the zero bytes of ASCII show the order
        codec = "utf-16-le" if head[1::2].count(0) > head[::2].count(0) else "utf-16-be"
    try:
        return content.decode(codec), UTF_8 if codec == "utf-8-sig" else "UTF-16"
    except UnicodeDecodeError as error:
        if codec == "utf-8-sig" and (text := _decode_windows(content)) is not None:
            return text, "Windows-1252"
        row = content.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{where}, row {row}: the text is neither UTF-8 nor Windows-1252; save the file as 'CSV UTF-8' (Excel) or "
            "with the character set UTF-8."
        ) from None


def _decode_windows(content: bytes) -> str | None:
    """The text if it can be Windows-1252: single letters beyond ASCII, not words of them, and no broken UTF-8."""
    readable = content.decode("utf-8", "ignore")
    if not readable.isascii() or OTHER_ENCODING.search(content):
        return None
    with suppress(UnicodeDecodeError):
        return content.decode("cp1252")
    return None


def _read_csv(text: str, where: str, delimiter: str) -> pl.DataFrame:
    """The grid of cells; polars reads files without quotes, the standard library everything else."""
    _check_width(text.lstrip().partition("\n")[0].count(delimiter) + 1, where)
    if '"' not in text and text.count("\r") == text.count("\r\n") and not text.startswith(("\n", "\r")):
        with suppress(pl.exceptions.PolarsError):  # rows of different lengths
            return pl.read_csv(BytesIO(text.encode()), has_header=False, infer_schema=False, separator=delimiter)
    return _read_csv_rows(text, delimiter, where)


def _find_delimiter(text: str, default: str) -> str:
    """The most frequent of comma, semicolon and tab outside quotes in the first line that is not blank.

    >>> _find_delimiter('"name, first";state', default=",")
    ';'
    """
    line = next((line for line in text[:100_000].splitlines() if line.strip()), "")
    return max((default, *DELIMITERS), key=re.sub(r'"[^"]*"', "", line).count)


def _read_csv_rows(text: str, delimiter: str, where: str) -> pl.DataFrame:
    """The grid of cells with quotes, rows of different lengths and any line ends."""
    rows: list[list[str]] = []
    try:
        rows.extend(csv.reader(StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise InputError(
            f"{where}, row {len(rows) + 1}: a quote is not closed, or text follows it ({error})."
        ) from None
    width = next((len(row) for row in rows if any(map(str.strip, row))), 0)
    for place, row in enumerate(rows):
        if len(row) > width and any(map(str.strip, row[width:])):
            raise InputError(
                f"{where}, row {place + 1}: {len(row)} cells, but the header has {width}; "
                f"a text that contains {DELIMITERS[delimiter]} must be in quotes."
            )
        if len(row) != width:
            rows[place] = [*row, *[""] * width][:width]
    names = [f"column_{place}" for place in range(width)]
    columns = zip(*rows, strict=True) if rows else ()
    return pl.DataFrame(dict(zip(names, columns, strict=False)), schema=dict.fromkeys(names, pl.String))


def escape_formulas(texts: pl.Expr) -> pl.Expr:
    """Texts with an apostrophe wherever a spreadsheet could begin a cell with a formula."""
    for pattern in FORMULAS:
        texts = texts.str.replace_all(pattern, "$1'$2")
    return texts


def unescape_formulas(texts: pl.Expr) -> pl.Expr:
    """Texts without the apostrophes of `escape_formulas`."""
    for pattern in ESCAPED_FORMULAS:
        texts = texts.str.replace_all(pattern, "$1$2")
    return texts


def csv_bytes(frame: pl.DataFrame, delimiter: str) -> bytes:
    """The frame as CSV, formulas escaped; a byte order mark, which Excel needs, only if there is more than ASCII."""
    return b"".join(_csv_pieces([frame], delimiter))


def _csv_text(frame: pl.DataFrame, delimiter: str, header: bool) -> str:
    texts = pl.selectors.string() | pl.selectors.categorical() | pl.selectors.enum()
    safe = frame.with_columns(escape_formulas(texts.cast(pl.String)))
    headers = pl.Series("header", frame.columns, pl.String).to_frame().select(escape_formulas(pl.col("header")))
    safe.columns = headers["header"].to_list()
    return safe.write_csv(separator=delimiter, include_header=header)


def read_parquet(content: bytes, where: str) -> pl.DataFrame:
    """The table of a Parquet file, row numbers first."""
    with refuse_damaged(where, "a Parquet"):
        lazy = pl.scan_parquet(BytesIO(content))
        schema = lazy.collect_schema()
        _check_width(len(schema), where)
        _check_headers(schema.names(), where)
        _check_plain(schema.to_frame(), where)
        rows = lazy.select(pl.len()).collect().item()
        if rows * len(schema) > MAX_CELLS:
            raise InputError(f"{where}: {rows:,} rows are more than can be read at once; split the file.")
        frame = pl.read_parquet(BytesIO(content))
    return _with_rows(frame, frame.columns, pl.Series(range(1, len(frame) + 1), dtype=pl.Int64))


def as_frame(given: object) -> pl.DataFrame:
    """A frame from a file's path, a polars or pandas frame, columns, rows, or states by agent.

    Columns are a mapping {"agent": [...], "state": [...]}; rows a list of mappings, or of ids alone; states by agent a
    mapping {agent: state}, {agent: (state, group)} or {agent: {"state": ..., ...}}. Rows count from 1.

    >>> as_frame({"ann": ("high", "north"), "ben": ("low", None)}).rows()
    [(1, 'ann', 'high', 'north'), (2, 'ben', 'low', None)]
    """
    if isinstance(given, str | PathLike):
        return read_table_file(given)
    if isinstance(given, TableFile):
        return given.frame
    frame = given.collect() if isinstance(given, pl.LazyFrame) else given
    if not isinstance(frame, pl.DataFrame):
        columns = _as_columns(given)
        if len({len(cells) for cells in columns.values()}) > 1:
            raise InputError("The columns differ in length; each must have one cell for each agent.")
        frame = pl.DataFrame([_as_series(name, cells) for name, cells in columns.items()])
    if ROW in frame.columns:
        if frame[ROW].dtype.is_integer() and not frame[ROW].null_count():
            return frame
        frame = frame.rename({ROW: f"{ROW} (2)"})
    return pl.DataFrame([pl.Series(ROW, range(1, len(frame) + 1), dtype=pl.Int64), *frame.get_columns()])


def _as_columns(given: object) -> dict[str, Sequence[object]]:
    """The cells by header."""
    if isinstance(given, Mapping):
        named = [key for key in given if isinstance(key, str) and key.strip().lower() in AGENT_HEADERS]
        if any(_is_column(given[key]) for key in named):
            return {str(key): list(cells) for key, cells in given.items()}
        if any(issubclass(kind, Mapping | tuple) for kind in set(map(type, given.values()))):
            return _from_rows([_as_row(agent, value) for agent, value in given.items()])
        return {"agent": list(given), "state": list(given.values())}
    if hasattr(given, "columns") and hasattr(given, "__getitem__"):
        return {str(name): list(given[name]) for name in given.columns}
    if isinstance(given, str | bytes) or not hasattr(given, "__iter__"):
        raise InputError(
            f"{type(given).__name__} is not a table; give a file, a frame, rows, or a mapping from agent to state."
        )
    return _from_rows([row if type(row) is dict or isinstance(row, Mapping) else {"agent": row} for row in given])


def _is_column(cells: object) -> bool:
    plain = hasattr(cells, "__len__") and hasattr(cells, "__iter__")
    return plain and not isinstance(cells, str | bytes | tuple | Mapping)


def _as_row(agent: object, value: object) -> Mapping[object, object]:
    if isinstance(value, Mapping):
        return {"agent": agent, **value}
    if isinstance(value, tuple):
        if len(value) != 2:
            raise InputError(f"Agent {agent!r} has {value!r}; it must be a state, or (state, group).")
        return {"agent": agent, "state": value[0], "group": value[1]}
    return {"agent": agent, "state": value}


def _from_rows(rows: Sequence[Mapping[object, object]]) -> dict[str, Sequence[object]]:
    names = dict.fromkeys(chain.from_iterable(rows)) or {"agent": None}
    return {str(name): [row.get(name) for row in rows] for name in names}


def _as_series(name: str, cells: Sequence[object]) -> pl.Series:
    """A column of one type where the cells have one, else of texts."""
    if len(set(map(type, cells)) - {type(None)}) <= 1:
        with suppress(TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
            column = pl.Series(name, cells)
            if column.dtype != pl.Object:
                return column
    return pl.Series(name, [_as_text(name, cell) for cell in cells], dtype=pl.String)


def _as_text(name: str, cell: object) -> str | None:
    """The text of a cell in a column of mixed types; NaN and other missing values are null."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, float) and math.isnan(cell)):
        return None
    if hasattr(cell, "__iter__") and not isinstance(cell, str):
        raise InputError(f"column {name}: {quote(str(cell))} is not one text or one number.")
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def quote(text: str) -> str:
    """A cell as a message shows it: on one line, long ones cut."""
    return repr(text if len(text) <= MAX_QUOTE else f"{text[:MAX_QUOTE]}…")
