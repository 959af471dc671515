"""Excel workbooks as a grid of texts, and back: the part of `sheets` that has to be on its guard.

A workbook is an archive of XML. A few kilobytes can unpack to gigabytes, or hold one cell in the last corner of a
sheet; the reading library asks for memory for all cells before it, and ends the process when there is not enough. So
everything is unpacked once under a limit, and the extent of each sheet is found, before the library sees the file.
"""

import re
import zipfile
from collections.abc import Callable
from io import BytesIO
from typing import TypeVar

import polars as pl

from restive.errors import InputError

T = TypeVar("T")
MAX_BYTES, MAX_CELLS = 1 << 30, 30_000_000  # unpacked; of the smallest rectangle that holds a sheet
LAST_ROW, MAX_CELL, MAX_INTEGER = 1_048_576, 32_767, 2**53  # what Excel can hold
CLAIM = re.compile(rb"""\buniqueCount\s*=\s*["'](\d+)""")  # of texts; memory is taken before any is read
WORKBOOK, OTHERS = "xl/workbook.xml", {"xl/workbook.bin", "content.xml"}  # the library takes formats for one another
OLD_OR_LOCKED = bytes.fromhex("d0cf11e0a1b11ae1")

# No sheet without these is larger than 26 columns and 999,999 rows: a column of two letters, a row of seven digits, and
# a cell that does not say where it is.
FAR = re.compile(
    rb"""(?<![:\w])r\s*=\s*["'](?:[A-Za-z]{2}|[A-Za-z]?\d{7})|<(?:\w+:)?(?:c|row)(?=[\s/>])(?![^>]*\sr\s*=)"""
)
PLACE = re.compile(rb"""<(?:\w+:)?(row|c)(?=[\s/>])(?:[^>]*?\sr\s*=\s*["']([A-Za-z]*)(\d*))?""")


def read_excel(content: bytes, where: str, sheet: str = "") -> pl.DataFrame:
    """The texts of a sheet, the first or the one of that name: every row from row 1 on, from the first column used."""
    import fastexcel

    if content.startswith(OLD_OR_LOCKED):
        raise InputError(f"{where}: locked by a password, or in Excel's old format; save it without one as .xlsx.")
    guarded(lambda: _refuse_bomb(content, where), where, "Excel")
    book = guarded(lambda: fastexcel.read_excel(content), where, "Excel")
    if sheet and sheet not in book.sheet_names:
        raise InputError(f"{where}: no sheet {sheet!r}; there are {', '.join(book.sheet_names)}.")

    def load() -> pl.DataFrame:
        return book.load_sheet(sheet or 0, header_row=None, skip_rows=0, dtypes="string").to_polars()

    grid = guarded(load, where, "Excel")
    return grid.with_columns(pl.all().str.replace(r"^(\d{4}-\d\d-\d\d) 00:00:00$", "$1"))


def guarded(read: Callable[[], T], where: str, kind: str) -> T:
    """What `read` returns; whatever goes wrong inside the library, even its panic, is a damaged file."""
    try:
        return read()
    except (InputError, KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise damaged(where, kind) from None


def damaged(where: str, kind: str) -> InputError:
    """The error for a file that cannot be what its ending says."""
    return InputError(f"{where}: not a whole {kind} file; it is damaged, or something else under this ending.")


def _refuse_bomb(content: bytes, where: str) -> None:
    """Unpack everything once; refuse what is too much, and what claims to be more than it is."""
    left = MAX_BYTES
    with zipfile.ZipFile(BytesIO(content)) as archive:
        if WORKBOOK not in archive.namelist() or OTHERS & set(archive.namelist()):
            raise damaged(where, "Excel")
        for member in archive.infolist():
            part = archive.open(member).read(left + 1)
            left -= len(part)
            if left < 0 or (b"sheetData" in part and _cells(part) > MAX_CELLS):
                raise InputError(f"{where}: too much to read; delete what is far from the table, or save it as .csv.")
            if any(int(claim) > len(part) for claim in CLAIM.findall(part)):
                raise damaged(where, "Excel")


def _cells(sheet: bytes) -> int:
    """At most how many cells the rectangle of a sheet has, from A1 to the last row and column that is named.

    >>> _cells(b'<sheetData><row r="1"><c r="A1"/><c r="AB1"/></row><row r="9"><c r="A9"/></row></sheetData>')
    252
    """
    if not FAR.search(sheet):
        return min(26 * 999_999, MAX_CELLS)
    row = column = last_row = last_column = 0
    for kind, letters, digits in PLACE.findall(sheet):
        if kind == b"row":
            row, column = int(digits or row + 1), 0
        else:
            row, column = int(digits or row), _column(letters) or column + 1
        last_row, last_column = max(last_row, row), max(last_column, column)
    return last_row * last_column


def _column(letters: bytes) -> int:
    """The number of a column from 1: A is 1, Z 26, AA 27."""
    number = 0
    for letter in letters.upper():
        number = 26 * number + letter - 64
    return number


def excel_bytes(frame: pl.DataFrame, where: str) -> bytes:
    """A workbook with one sheet: texts as texts, never formulas, dates as ISO text, null and NaN as empty cells."""
    import xlsxwriter  # type: ignore[import-untyped]

    if len(frame) >= LAST_ROW or frame.width > 16_384:
        raise InputError(f"{where}: Excel holds {LAST_ROW - 1} rows and 16384 columns; write .csv or .parquet instead.")
    content = BytesIO()
    book = xlsxwriter.Workbook(content, {"in_memory": True})
    page = book.add_worksheet()
    page.freeze_panes(1, 0)
    bold = book.add_format({"bold": True})
    for place, cells in enumerate(map(_for_excel, frame)):
        page.write_string(0, place, cells.name, bold)
        if cells.dtype == pl.String and (cells.str.len_chars().max() or 0) > MAX_CELL:  # type: ignore[operator]
            raise InputError(f"{where}, column {cells.name}: Excel holds {MAX_CELL} characters a cell; write .csv.")
        write = {pl.String(): page.write_string, pl.Boolean(): page.write_boolean}.get(cells.dtype, page.write_number)
        for row, cell in enumerate(cells, 1):
            if cell is not None:
                write(row, place, cell)
    book.close()
    return content.getvalue()


def _for_excel(cells: pl.Series) -> pl.Series:
    """Numbers that Excel holds exactly stay numbers, everything else becomes text."""
    if cells.dtype.is_float():
        cells = cells.fill_nan(None)
        return cells.cast(pl.String) if cells.is_infinite().any() else cells
    if cells.dtype.is_integer():
        return cells if (cells.abs() <= MAX_INTEGER).all() else cells.cast(pl.String)
    return cells if cells.dtype == pl.Boolean else cells.cast(pl.String)
