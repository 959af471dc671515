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
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import BytesIO, StringIO
from itertools import chain
from os import PathLike
from pathlib import Path

import polars as pl

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
MAX_COLUMNS, MAX_HEADER = 2_000, 200  # characters of a header
MAX_CELLS = 1_000_000_000  # of a Parquet file, a few bytes of which can stand for any number of rows
MAX_EXCEL_CELLS = 30_000_000  # of the rectangle from A1 to the last cell
MAX_EXCEL_BYTES = 1 << 30  # unpacked
EXCEL_ROWS, EXCEL_COLUMNS, EXCEL_CELL_CHARACTERS, EXCEL_INTEGER = 1_048_576, 16_384, 32_767, 2**53  # Excel's own limits
OLD_OR_LOCKED = bytes.fromhex("d0cf11e0a1b11ae1")
DIMENSION = re.compile(rb"""<(?:\w+:)?dimension\s[^>]*ref\s*=\s*["'](?:\w+:)?([A-Za-z]+)(\d+)["']""")


def read_table_file(path: str | PathLike[str]) -> pl.DataFrame:
    """Read a file as a table, row numbers first; `book.xlsx#Name` reads another sheet than the first."""
    file, sheet = _split_sheet(path)
    extension = file.suffix.lower()
    if extension not in EXTENSIONS:
        raise InputError(f"{file.name}: cannot read files that end in {extension!r}; save it as {EXTENSION_LIST}.")
    content = file.read_bytes()
    if not content:
        raise InputError(f"{file.name}: the file is empty.")
    if extension == ".parquet":
        return _read_parquet(content, file.name)
    if extension == ".xlsx":
        return _with_header(read_excel(content, file.name, sheet), file.name)
    grid = _read_csv(content, file.name, DEFAULT_DELIMITERS[extension])
    if b"'" in content:
        grid = grid.with_columns(unescape_formulas(pl.all()))
    return _with_header(grid, file.name)


def write_table_file(frame: pl.DataFrame, path: str | PathLike[str]) -> None:
    """Write a frame of plain columns atomically; its extension selects the format."""
    file = Path(path)
    extension = _check_extension(file)
    _check_plain(frame, file.name)
    if extension == ".parquet":
        content = BytesIO()
        frame.write_parquet(content)
        write_atomic(file, content.getvalue())
    elif extension == ".xlsx":
        write_atomic(file, excel_bytes(frame, file.name))
    else:
        write_atomic(file, _csv_bytes(frame, DEFAULT_DELIMITERS[extension]))


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


def _split_sheet(path: str | PathLike[str]) -> tuple[Path, str]:
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


def _read_csv(content: bytes, where: str, default: str) -> pl.DataFrame:
    """The grid of cells; polars reads files without quotes, the standard library everything else."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = content.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{where}, row {row}: not UTF-8 text; save the file as 'CSV UTF-8' (Excel) or with the character set UTF-8."
        ) from None
    delimiter = _find_delimiter(text, default)
    _check_width(text.lstrip().partition("\n")[0].count(delimiter) + 1, where)
    if b'"' not in content and content.count(b"\r") == content.count(b"\r\n") and not text.startswith(("\n", "\r")):
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


def _csv_bytes(frame: pl.DataFrame, delimiter: str) -> bytes:
    """The frame as CSV, formulas escaped; a byte order mark, which Excel needs, only if there is more than ASCII."""
    texts = pl.selectors.string() | pl.selectors.categorical() | pl.selectors.enum()
    safe = frame.with_columns(escape_formulas(texts.cast(pl.String)))
    headers = pl.Series("header", frame.columns, pl.String).to_frame().select(escape_formulas(pl.col("header")))
    safe.columns = headers["header"].to_list()
    content = safe.write_csv(separator=delimiter).encode()
    return content if content.isascii() else b"\xef\xbb\xbf" + content


def _read_parquet(content: bytes, where: str) -> pl.DataFrame:
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


@contextmanager
def refuse_damaged(where: str, kind: str) -> Iterator[None]:
    """Any failure inside the library that reads a file, even a panic, means that the file is damaged."""
    try:
        yield
    except (InputError, KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise InputError(f"{where}: the file is damaged or is not {kind} file.") from None


def read_excel(content: bytes, where: str, sheet: str = "") -> pl.DataFrame:
    """The texts of the named sheet, or the first: every row from row 1 on, from the first column used."""
    import fastexcel

    if content.startswith(OLD_OR_LOCKED):
        raise InputError(f"{where}: locked by a password, or in Excel's old format; save it without one as .xlsx.")
    with refuse_damaged(where, "an Excel"):
        _check_excel_size(content, where)
        book = fastexcel.read_excel(content)
        if sheet and sheet not in book.sheet_names:
            raise InputError(f"{where}: no sheet {sheet!r}; there are {', '.join(book.sheet_names)}.")
        grid = book.load_sheet(sheet or 0, header_row=None, skip_rows=0, dtypes="string").to_polars()
    return grid.with_columns(pl.all().str.replace(r"^(\d{4}-\d\d-\d\d) 00:00:00$", "$1"))


def _check_excel_size(content: bytes, where: str) -> None:
    """Refuse a workbook that says it is too large; the library allocates the whole rectangle of a sheet at once.

    A workbook can lie about its size, so uploaded files are read in a process with limited memory.
    """
    with zipfile.ZipFile(BytesIO(content)) as archive:
        archive.getinfo("xl/workbook.xml")  # every workbook has it
        size = sum(member.file_size for member in archive.infolist())
        for name in archive.namelist():
            if name.startswith("xl/worksheets/") and size <= MAX_EXCEL_BYTES:
                with archive.open(name) as part:
                    found = DIMENSION.search(part.read(4096))
                cells = int(found[2]) * _column_number(found[1]) if found else 0
                size = size if cells <= MAX_EXCEL_CELLS else MAX_EXCEL_BYTES + 1
    if size > MAX_EXCEL_BYTES:
        raise InputError(f"{where}: too much to read; delete cells far from the table, or save it as .csv.")


def _column_number(letters: bytes) -> int:
    """The number of a column from 1: A is 1, Z 26, AA 27."""
    number = 0
    for letter in letters.upper():
        number = 26 * number + letter - 64
    return number


def excel_bytes(frame: pl.DataFrame, where: str) -> bytes:
    """A workbook with one sheet: texts as texts, never formulas, dates as ISO text, null and NaN as empty cells."""
    import xlsxwriter  # type: ignore[import-untyped]

    if len(frame) >= EXCEL_ROWS or frame.width > EXCEL_COLUMNS:
        raise InputError(
            f"{where}: Excel holds {EXCEL_ROWS - 1} rows and {EXCEL_COLUMNS} columns; write .csv or .parquet instead."
        )
    content = BytesIO()
    book = xlsxwriter.Workbook(content, {"in_memory": True})
    page = book.add_worksheet()
    page.freeze_panes(1, 0)
    bold = book.add_format({"bold": True})
    for place, cells in enumerate(map(_for_excel, frame)):
        page.write_string(0, place, cells.name, bold)
        if cells.dtype == pl.String and (cells.str.len_chars().max() or 0) > EXCEL_CELL_CHARACTERS:  # type: ignore[operator]
            raise InputError(
                f"{where}, column {cells.name}: Excel holds {EXCEL_CELL_CHARACTERS} characters a cell; write .csv."
            )
        write = {pl.String(): page.write_string, pl.Boolean(): page.write_boolean}.get(cells.dtype, page.write_number)
        for row, cell in enumerate(cells, 1):
            if cell is not None:
                write(row, place, cell)
    book.close()
    return content.getvalue()


def _for_excel(cells: pl.Series) -> pl.Series:
    """Numbers that Excel stores exactly stay numbers, everything else becomes text."""
    if cells.dtype.is_float():
        cells = cells.fill_nan(None)
        return cells.cast(pl.String) if cells.is_infinite().any() else cells
    if cells.dtype.is_integer():
        return cells if (cells.abs() <= EXCEL_INTEGER).all() else cells.cast(pl.String)
    return cells if cells.dtype == pl.Boolean else cells.cast(pl.String)


def as_frame(given: object) -> pl.DataFrame:
    """A frame from a file's path, a polars or pandas frame, columns, rows, or states by agent.

    Columns are a mapping {"agent": [...], "state": [...]}; rows a list of mappings, or of ids alone; states by agent a
    mapping {agent: state}, {agent: (state, group)} or {agent: {"state": ..., ...}}. Rows count from 1.

    >>> as_frame({"ann": ("high", "north"), "ben": ("low", None)}).rows()
    [(1, 'ann', 'high', 'north'), (2, 'ben', 'low', None)]
    """
    if isinstance(given, str | PathLike):
        return read_table_file(given)
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
