"""Excel workbooks: cells as a person would write them, sheets by name, and damaged or oversized files refused."""

import io
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from functools import cache
from pathlib import Path

import polars as pl
import pytest
import xlsxwriter  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st

from restive.desk import excel
from restive.desk.excel import excel_bytes, read_excel
from restive.desk.table_files import ROW, open_table_file, read_table_file
from restive.errors import InputError

QUICK = settings(max_examples=80, derandomize=True, deadline=None, database=None)
SHEET = "xl/worksheets/sheet1.xml"


@cache
def book(*cells: tuple[int, int, object], second: str = "") -> bytes:
    """A workbook with these cells, (row, column) from 0, and a second sheet if it has a name."""
    content = io.BytesIO()
    with xlsxwriter.Workbook(content, {"in_memory": True}) as made:
        days = made.add_format({"num_format": "yyyy-mm-dd"})
        page = made.add_worksheet("Monday")
        for row, column, cell in cells:
            page.write(row, column, cell, *([days] if isinstance(cell, datetime) else []))
        if second:
            made.add_worksheet(second).write_row(0, 0, ["agent", second])
    return content.getvalue()


PLAIN_BOOK = ((0, 0, "agent"), (0, 1, "state"), (1, 0, "ann"), (1, 1, "high"), (2, 0, 7), (2, 1, 0.5))


def parts_of(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(parts: Mapping[str, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return content.getvalue()


def changed(name: str, old: bytes, new: bytes) -> bytes:
    """The plain workbook with something else in one of its parts."""
    parts = parts_of(book(*PLAIN_BOOK))
    assert old in parts[name]
    return packed({**parts, name: parts[name].replace(old, new)})


def excel_refusal(content: bytes, sheet: str = "") -> str:
    with pytest.raises(InputError) as refused:
        read_excel(content, "book.xlsx", sheet)
    return str(refused.value)


def test_cells_become_text_as_a_person_would_write_them() -> None:
    cells = ((0, 0, 7.0), (0, 1, "007"), (0, 2, 0.1), (0, 3, True), (0, 4, datetime(2026, 1, 2)), (0, 5, -3))
    more = ((1, 0, 12345678901), (1, 1, datetime(2026, 1, 2, 3, 4, 5)))
    grid = read_excel(book(*cells, *more), "book.xlsx").grid
    assert grid.row(0) == ("7", "007", "0.1", "true", "2026-01-02", "-3")
    assert grid.row(1)[:2] == ("12345678901", "2026-01-02 03:04:05")


def test_rows_are_numbered_as_excel_numbers_them(tmp_path: Path) -> None:
    path = tmp_path / "book.xlsx"
    path.write_bytes(book((3, 2, "agent"), (3, 3, "state"), (5, 2, "ann"), (9, 2, "ben"), (9, 3, "high")))
    assert read_table_file(path).rows() == [(6, "ann", None), (10, "ben", "high")]


def test_another_sheet_is_named_behind_a_hash(tmp_path: Path) -> None:
    (tmp_path / "book.xlsx").write_bytes(book(*PLAIN_BOOK, second="Tuesday"))
    assert read_table_file(tmp_path / "book.xlsx").columns == [ROW, "agent", "state"]
    assert read_table_file(tmp_path / "book.xlsx#Tuesday").columns == [ROW, "agent", "Tuesday"]
    with pytest.raises(InputError, match=r"book\.xlsx: no sheet 'Friday'; there are Monday, Tuesday\."):
        read_table_file(tmp_path / "book.xlsx#Friday")


def test_a_workbook_with_several_sheets_says_which_one_was_read(tmp_path: Path) -> None:
    (tmp_path / "book.xlsx").write_bytes(book(*PLAIN_BOOK, second="Tuesday"))
    read = open_table_file(tmp_path / "book.xlsx", "Tuesday")
    assert (read.sheet, read.sheets) == ("Tuesday", ("Monday", "Tuesday"))
    assert read.notes() == ["read the sheet Tuesday of Monday, Tuesday"]


def test_texts_that_look_like_formulas_stay_texts() -> None:
    content = excel_bytes(pl.DataFrame({"=head": ["=1+1", "http://example.org", "@x"]}), "a.xlsx")
    assert b"<f>" not in parts_of(content)[SHEET]
    assert read_excel(content, "a.xlsx").grid.rows() == [("=head",), ("=1+1",), ("http://example.org",), ("@x",)]


def test_numbers_that_excel_cannot_store_are_written_as_text() -> None:
    frame = pl.DataFrame({"whole": [2**60 + 1, -(2**63)], "real": [float("inf"), float("nan")]})
    rows = read_excel(excel_bytes(frame, "a.xlsx"), "a.xlsx").grid.rows()
    assert rows == [("whole", "real"), (str(2**60 + 1), "inf"), (str(-(2**63)), None)]


def test_more_rows_than_excel_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(excel, "EXCEL_ROWS", 4)
    assert excel_bytes(pl.DataFrame({"agent": range(3)}), "a.xlsx")
    with pytest.raises(InputError, match=r"a\.xlsx: Excel holds 3 rows"):
        excel_bytes(pl.DataFrame({"agent": range(4)}), "a.xlsx")


@pytest.mark.parametrize(
    "content",
    [
        b"agent,state\n",
        b"PK\x03\x04" + bytes(100),
        book(*PLAIN_BOOK)[:-40],
        book(*PLAIN_BOOK)[40:],
        packed({"content.xml": b"<x/>"}),
        packed({name: part for name, part in parts_of(book(*PLAIN_BOOK)).items() if name != SHEET}),
        changed(SHEET, b"<v>3</v>", b"<v>99</v>"),
    ],
)
def test_a_damaged_workbook_is_refused(content: bytes) -> None:
    assert excel_refusal(content) == "book.xlsx: the file is damaged or is not an Excel file."


def test_a_locked_workbook_is_refused() -> None:
    assert "locked by a password" in excel_refusal(bytes.fromhex("d0cf11e0a1b11ae1") + bytes(1000))


def test_an_empty_workbook_is_refused(tmp_path: Path) -> None:
    (tmp_path / "book.xlsx").write_bytes(book())
    with pytest.raises(InputError, match=r"book\.xlsx: the file has no rows"):
        read_table_file(tmp_path / "book.xlsx")


def test_wide_and_long_sheets_are_read_as_long_as_they_fit() -> None:
    assert read_excel(book((0, 0, "agent"), (0, 701, "last"), (20, 0, "ann")), "book.xlsx").grid.shape == (21, 702)
    unplaced = changed(SHEET, b'<c r="B3"', b"<c")
    assert read_excel(unplaced, "book.xlsx").grid.rows() == [("agent", "state"), ("ann", "high"), ("7", "0.5")]


def test_a_workbook_that_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = packed({**parts_of(book(*PLAIN_BOOK)), "xl/media/image1.png": bytes(5_000_000)})
    assert len(bomb) < 20_000
    assert read_excel(bomb, "book.xlsx").grid.height == 3
    monkeypatch.setattr(excel, "MAX_EXCEL_BYTES", 4_000_000)
    assert excel_refusal(bomb).startswith("book.xlsx: too much to read")


class PanicException(BaseException):
    pass


def test_a_panic_of_the_library_is_an_input_error_and_an_interruption_is_not() -> None:
    with (
        pytest.raises(InputError, match="the file is damaged or is not an Excel file"),
        excel.refuse_damaged("book.xlsx", "an Excel"),
    ):
        raise PanicException("index out of bounds")
    with pytest.raises(KeyboardInterrupt), excel.refuse_damaged("book.xlsx", "an Excel"):
        raise KeyboardInterrupt


@QUICK
@given(st.data())
def test_a_workbook_with_changed_bytes_is_read_or_refused(data: st.DataObject) -> None:
    content = bytearray(book(*PLAIN_BOOK))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with suppress(InputError):
        assert isinstance(read_excel(bytes(content), "book.xlsx").grid, pl.DataFrame)


@pytest.mark.parametrize("last", [b"XFD1048576", b"AB9999999"])
def test_a_sheet_that_says_it_is_too_large_is_refused_before_it_costs_memory(last: bytes) -> None:
    said = excel_refusal(changed(SHEET, b'<dimension ref="A1:B3"', b'<dimension ref="A1:' + last + b'"'))
    assert said == "book.xlsx: too much to read; delete cells far from the table, or save it as .csv."
