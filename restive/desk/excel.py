"""Excel workbooks: the cells of a sheet as texts, and a frame as a workbook with one sheet and drop-downs."""

import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from types import MappingProxyType
from typing import Any, NamedTuple

import polars as pl

from restive.errors import InputError

MAX_EXCEL_CELLS = 30_000_000  # of the rectangle from A1 to the last cell
MAX_EXCEL_BYTES = 1 << 30  # unpacked
EXCEL_ROWS, EXCEL_COLUMNS, EXCEL_CELL_CHARACTERS, EXCEL_INTEGER = 1_048_576, 16_384, 32_767, 2**53  # Excel's own limits
MIN_WIDTH, MAX_WIDTH = 6, 50  # characters of a column of a workbook
WIDTH_ROWS = 1000  # the rows that its width depends on
CHOICE_SHEET = "choices"
TEXT_FORMAT = 49  # the number of the format @ of Excel
OLD_OR_LOCKED = bytes.fromhex("d0cf11e0a1b11ae1")
DIMENSION = re.compile(rb"""<(?:\w+:)?dimension\s[^>]*ref\s*=\s*["'](?:\w+:)?([A-Za-z]+)(\d+)["']""")

Choices = Mapping[str, Sequence[str]]  # the values that can be chosen in a column
NO_CHOICES: Choices = MappingProxyType({})


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


class Sheet(NamedTuple):
    """The texts of a sheet, every row from row 1 on, from the first column used; its name, and those of all sheets."""

    grid: pl.DataFrame
    name: str
    names: tuple[str, ...]


def read_excel(content: bytes, where: str, sheet: str = "") -> Sheet:
    """The named sheet, or the first."""
    import fastexcel

    if content.startswith(OLD_OR_LOCKED):
        raise InputError(f"{where}: locked by a password, or in Excel's old format; save it without one as .xlsx.")
    with refuse_damaged(where, "an Excel"):
        _check_excel_size(content, where)
        book = fastexcel.read_excel(content)
        if sheet and sheet not in book.sheet_names:
            raise InputError(f"{where}: no sheet {sheet!r}; there are {', '.join(book.sheet_names)}.", location="sheet")
        grid = book.load_sheet(sheet or 0, header_row=None, skip_rows=0, dtypes="string").to_polars()
    texts = grid.with_columns(pl.all().str.replace(r"^(\d{4}-\d\d-\d\d) 00:00:00$", "$1"))
    return Sheet(texts, sheet or book.sheet_names[0], tuple(book.sheet_names))


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


def excel_bytes(frame: pl.DataFrame, where: str, choices: Choices = NO_CHOICES, sheet: str = "") -> bytes:
    """A workbook with one sheet: texts as texts, never formulas, dates as ISO text, null and NaN as empty cells.

    The header stays in view, columns are as wide as their texts, and those with choices have drop-downs.
    """
    import xlsxwriter  # type: ignore[import-untyped]
    from xlsxwriter.utility import xl_range  # type: ignore[import-untyped]

    if len(frame) >= EXCEL_ROWS or frame.width > EXCEL_COLUMNS:
        raise InputError(
            f"{where}: Excel holds {EXCEL_ROWS - 1} rows and {EXCEL_COLUMNS} columns; write .csv or .parquet instead."
        )
    content = BytesIO()
    book = xlsxwriter.Workbook(content, {"in_memory": True})
    page = book.add_worksheet(sheet or None)
    page.freeze_panes(1, 0)
    bold, text = book.add_format({"bold": True}), book.add_format({"num_format": TEXT_FORMAT})
    for place, cells in enumerate(map(_for_excel, frame)):
        page.set_column(place, place, _width(cells), text if cells.dtype == pl.String else None)
        page.write_string(0, place, cells.name, bold)
        if cells.dtype == pl.String and (cells.str.len_chars().max() or 0) > EXCEL_CELL_CHARACTERS:  # type: ignore[operator]
            raise InputError(
                f"{where}, column {cells.name}: Excel holds {EXCEL_CELL_CHARACTERS} characters a cell; write .csv."
            )
        write = {pl.String(): page.write_string, pl.Boolean(): page.write_boolean}.get(cells.dtype, page.write_number)
        formats = (text,) if cells.dtype == pl.String else ()
        for row, cell in enumerate(cells, 1):
            if cell is not None:
                write(row, place, cell, *formats)
    if len(frame):
        page.ignore_errors({"number_stored_as_text": xl_range(0, 0, len(frame), frame.width - 1)})
        _add_choices(book, page, frame, choices)
    book.close()
    return content.getvalue()


def _add_choices(book: Any, page: Any, frame: pl.DataFrame, choices: Choices) -> None:
    """Drop-downs in the columns with choices; their values are on a hidden sheet, which allows commas in them."""
    from xlsxwriter.utility import xl_range_abs

    used = {name: values for name, values in choices.items() if name in frame.columns}
    if not used:
        return
    hidden = book.add_worksheet(CHOICE_SHEET)
    hidden.hide()
    for place, (name, values) in enumerate(used.items()):
        hidden.write_column(0, place, values)
        source = f"={CHOICE_SHEET}!{xl_range_abs(0, place, len(values) - 1, place)}"
        column = frame.columns.index(name)
        page.data_validation(1, column, len(frame), column, {"validate": "list", "source": source})


def _width(cells: pl.Series) -> int:
    """The width of a column: that of its longest text among the first rows, within limits."""
    longest = cells.head(WIDTH_ROWS).cast(pl.String).str.len_chars().max() or 0
    return max(MIN_WIDTH, min(MAX_WIDTH, max(len(cells.name), int(longest)) + 2))  # type: ignore[arg-type]


def _for_excel(cells: pl.Series) -> pl.Series:
    """Numbers that Excel stores exactly stay numbers, everything else becomes text."""
    if cells.dtype.is_float():
        cells = cells.fill_nan(None)
        return cells.cast(pl.String) if cells.is_infinite().any() else cells
    if cells.dtype.is_integer():
        return cells if (cells.abs() <= EXCEL_INTEGER).all() else cells.cast(pl.String)
    return cells if cells.dtype == pl.Boolean else cells.cast(pl.String)
