"""The page on reliability: slices add up in it, and it can be read back."""

from collections import Counter
from pathlib import Path

from reliability import KILLS, PAGE, TABLES, add_slice, count_day, read_page, write_page

COLUMNS = next(columns for columns, parts in TABLES.items() if parts is KILLS)
ROW = f"killed: {next(iter(KILLS))}"


def test_slices_add_up_in_the_page(tmp_path: Path) -> None:
    page = tmp_path / "reliability.md"
    slice_ = Counter(kills=1200, acknowledged=7, rounds=3, events=9, undo=4)
    add_slice(page, ROW, COLUMNS, slice_)
    counts = add_slice(page, ROW, COLUMNS, slice_)
    assert counts == {"kills": 2400, "acknowledged": 14, "rounds": 6, "events": 18}
    assert read_page(page) == {ROW: counts}
    assert "2,400 times so far, of 10,000 wanted" in page.read_text()


def test_the_page_of_the_docs_is_what_its_counts_make(tmp_path: Path) -> None:
    write_page(tmp_path / "again.md", read_page(PAGE))
    assert (tmp_path / "again.md").read_text() == PAGE.read_text()


def test_a_day_has_its_memory_hour_by_hour() -> None:
    found = count_day({"requests": 86_400, "rounds": 300, "memory": [300.0] * 8 + [310.0] * 16})
    assert (found["MiB after 1 h"], found["MiB after 24 h"]) == (300, 310)
