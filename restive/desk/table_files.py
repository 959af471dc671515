"""Files with rows and columns in and out: CSV, Excel and Parquet, reported apart by their ending.

A sheet is a frame of what the file holds: cells of CSV and Excel as text, so that 007 stays 007, those of Parquet as
they are; an empty cell is null. Rows with nothing in them are left out. The first column, `row`, is the number of the
row as a person sees it: the header is row 1, blank rows count, and a cell with line breaks is part of one row; Parquet
has no header row and counts from 1. A header that comes a second time is called `name (2)`.

A text that a spreadsheet would take for a formula (it begins with = + - @, a tab or a line break) is written to CSV
with an apostrophe in front, and read back without it. Excel has a type for text, and needs none.
"""

import csv
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO, StringIO
from itertools import islice
from os import PathLike
from pathlib import Path

import polars as pl

from restive.desk.excel import excel_bytes, guarded, read_excel
from restive.errors import InputError
from restive.files import write_whole

ROW = "row"
SPOKEN = {",": "a comma", ";": "a semicolon", "\t": "a tab"}
PIECE = 10_000  # rows
SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
ENDINGS = ".csv, .tsv, .txt, .xlsx or .parquet"
FORMULA = r"^('*[=+\-@\t\r\n])"
DEFUSED = r"^'('*[=+\-@\t\r\n])"
MAX_COLUMNS = 2_000
MAX_CELLS = 1_000_000_000  # of a Parquet file; a few bytes of it can stand for any number of rows


def read_sheet(path: str | PathLike[str]) -> pl.DataFrame:
    """What a file holds, with the number of each row first; `book.xlsx#Name` is another sheet than the first."""
    place, sheet = _split_name(path)
    ending = place.suffix.lower()
    if ending not in (*SEPARATORS, ".xlsx", ".parquet"):
        raise InputError(f"{place.name}: cannot read files that end in {ending!r}; save it as {ENDINGS}.")
    content = place.read_bytes()
    if not content:
        raise InputError(f"{place.name}: the file is empty.")
    if ending == ".parquet":
        return _read_parquet(content, place.name)
    if ending == ".xlsx":
        return _with_header(read_excel(content, place.name, sheet), place.name)
    grid = _read_csv(content, place.name, SEPARATORS[ending])
    if b"'" in content:
        grid = grid.with_columns(pl.all().str.replace(DEFUSED, "$1"))
    return _with_header(grid, place.name)


def write_sheet(frame: pl.DataFrame, path: str | PathLike[str]) -> None:
    """Write a frame of plain columns to a file that appears whole or not at all."""
    place = Path(path)
    ending = place.suffix.lower()
    _refuse_nested(frame, place.name)
    if ending in SEPARATORS:
        write_whole(place, _csv_bytes(frame, SEPARATORS[ending]))
    elif ending == ".xlsx":
        write_whole(place, excel_bytes(frame, place.name))
    elif ending == ".parquet":
        content = BytesIO()
        frame.write_parquet(content)
        write_whole(place, content.getvalue())
    else:
        raise InputError(f"{place.name}: cannot write files that end in {ending!r}; use {ENDINGS}.")


def check_place(path: str | PathLike[str], overwrite: bool = False) -> None:
    """Refuse a file that could not be written or that is there already, before any work is done; make its folder."""
    place = Path(path)
    if place.suffix.lower() not in (*SEPARATORS, ".xlsx", ".parquet"):
        raise InputError(f"{place.name}: cannot write files that end in {place.suffix!r}; use {ENDINGS}.")
    if place.is_dir():
        raise InputError(f"{place}: there is a folder of that name.")
    if place.exists() and not overwrite:
        raise InputError(f"{place}: there is such a file, perhaps with results in it; name another, or --overwrite.")
    place.parent.mkdir(parents=True, exist_ok=True)
    if not os.access(place if place.exists() else place.parent, os.W_OK):
        raise InputError(f"{place}: it may not be written; name another file.")


def _split_name(path: str | PathLike[str]) -> tuple[Path, str]:
    """The file, and the name of the sheet in it if one is given after #."""
    place = Path(path)
    book, mark, sheet = place.name.rpartition("#")
    if mark and book.lower().endswith(".xlsx") and not place.exists():
        return place.with_name(book), sheet
    return place, ""


def _refuse_nested(frame: pl.DataFrame, where: str) -> None:
    for name, kind in frame.schema.items():
        if kind.is_nested() or kind in (pl.Binary, pl.Object):
            raise InputError(f"{where}, column {name}: it holds {kind}; a cell must be one text or one number.")


def _with_header(grid: pl.DataFrame, where: str) -> pl.DataFrame:
    """Take the first row that is not blank as the header; leave out blank rows, and columns without any cell."""
    filled = pl.any_horizontal(pl.all().str.contains(r"\S").fill_null(False))
    rows = grid.select(filled.arg_true().cast(pl.Int64).alias(ROW))[ROW] if grid.width else pl.Series(dtype=pl.Int64)
    if not len(rows):
        raise InputError(f"{where}: there is nothing in it; the first row must name the columns.")
    body = grid[rows[1:]].with_columns(pl.all().replace("", None))
    heads = [(head or "").strip() for head in grid.row(rows[0])]
    _refuse_wide(len(heads), where)
    kept = [place for place, head in enumerate(heads) if head or body[:, place].null_count() < len(body)]
    return _named(body[:, kept], [heads[place] or f"column {place + 1}" for place in kept], rows[1:] + 1)


def _refuse_wide(columns: int, where: str) -> None:
    if columns > MAX_COLUMNS:
        raise InputError(f"{where}: it has {columns:,} columns; there can be {MAX_COLUMNS:,} at most.")


def _named(body: pl.DataFrame, names: list[str], rows: pl.Series) -> pl.DataFrame:
    """The columns under names that differ, behind the numbers of their rows."""
    taken, copies = {ROW}, dict.fromkeys(names, 2)
    for place, name in enumerate(names):
        while names[place] in taken:
            names[place], copies[name] = f"{name} ({copies[name]})", copies[name] + 1
        taken.add(names[place])
    return pl.DataFrame([rows.rename(ROW), *(body[:, j].alias(name) for j, name in enumerate(names))])


def _read_csv(content: bytes, where: str, usual: str) -> pl.DataFrame:
    """The grid of cells; the quick reader takes what is plain, the careful one all quotes and whatever is odd."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = content.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{where}, row {row}: not UTF-8 text; save the file as 'CSV UTF-8' (Excel) or with the character set UTF-8."
        ) from None
    separator = _separator(text, usual)
    _refuse_wide(text.lstrip().partition("\n")[0].count(separator) + 1, where)
    if b'"' not in content and content.count(b"\r") == content.count(b"\r\n") and not text.startswith(("\n", "\r")):
        with suppress(pl.exceptions.PolarsError):
            return pl.read_csv(BytesIO(text.encode()), has_header=False, infer_schema=False, separator=separator)
    return _read_carefully(text, separator, where)


def _separator(text: str, usual: str) -> str:
    """Of comma, semicolon and tab what the first line with anything in it has most of, outside of quotes.

    >>> _separator('"name, first";state', usual=",")
    ';'
    """
    line = next((line for line in text[:100_000].splitlines() if line.strip()), "")
    return max((usual, *SPOKEN), key=re.sub(r'"[^"]*"', "", line).count)


def _read_carefully(text: str, separator: str, where: str) -> pl.DataFrame:
    """The grid of cells row by row: quotes, rows of different lengths, any line ends."""
    width = next((len(row) for rows in _pieces(text, separator, where) for row in rows if any(map(str.strip, row))), 0)
    names = [f"column_{place}" for place in range(width)]
    grids, before = [pl.DataFrame(schema=dict.fromkeys(names, pl.String))], 0
    for rows in _pieces(text, separator, where):
        for number, row in enumerate(rows, before + 1):
            if len(row) > width and any(map(str.strip, row[width:])):
                raise InputError(
                    f"{where}, row {number}: {len(row)} cells, but the header has {width}; "
                    f"a text with {SPOKEN[separator]} in it must stand in quotes."
                )
        even = [row if len(row) == width else [*row, *[""] * width][:width] for row in rows]
        grids.append(pl.DataFrame(dict(zip(names, zip(*even, strict=True), strict=True)), schema=grids[0].schema))
        before += len(rows)
    return pl.concat(grids)


def _pieces(text: str, separator: str, where: str) -> Iterator[list[list[str]]]:
    """The rows, some at a time: a million lists at once keep the garbage collector busier than the reader."""
    reader = csv.reader(StringIO(text, newline=""), delimiter=separator, strict=True)
    before = 0
    while True:
        rows: list[list[str]] = []
        try:
            rows.extend(islice(reader, PIECE))
        except csv.Error as error:
            row = before + len(rows) + 1
            raise InputError(f"{where}, row {row}: a quote is not closed, or text follows it ({error}).") from None
        if not rows:
            return
        before += len(rows)
        yield rows


def _read_parquet(content: bytes, where: str) -> pl.DataFrame:
    lazy = pl.scan_parquet(BytesIO(content))
    schema = guarded(lazy.collect_schema, where, "Parquet")
    _refuse_wide(len(schema), where)
    _refuse_nested(schema.to_frame(), where)
    rows = guarded(lambda: lazy.select(pl.len()).collect().item(), where, "Parquet")
    if rows * len(schema) > MAX_CELLS:
        raise InputError(f"{where}: {rows} rows are more than can be read at once; split the file.")
    frame = guarded(lambda: pl.read_parquet(BytesIO(content)), where, "Parquet")
    return _named(frame, frame.columns, pl.Series(range(1, len(frame) + 1), dtype=pl.Int64))


def _csv_bytes(frame: pl.DataFrame, separator: str) -> bytes:
    """The frame as CSV, formulas defused; a byte order mark, which Excel needs, only where there is more than ASCII."""
    texts = pl.selectors.string() | pl.selectors.categorical() | pl.selectors.enum()
    safe = frame.with_columns(texts.cast(pl.String).str.replace(FORMULA, "'$1"))
    safe = safe.rename({name: re.sub(FORMULA, r"'\1", name) for name in frame.columns})
    content = safe.write_csv(separator=separator).encode()
    return content if content.isascii() else b"\xef\xbb\xbf" + content
