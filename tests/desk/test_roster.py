"""Names come back at their places, erased ones as null, and what would break a line is refused."""

import polars as pl
import pytest

from restive.desk.roster import as_names, join_names, split_names
from restive.errors import InputError


@pytest.mark.parametrize("names", [["ann"], [None], ["ann", None], [None, "Zoë 🦉", None], ["a\u2028b", "c\x85d", " "]])
def test_names_come_back_at_their_places(names: list[str | None]) -> None:
    series = pl.Series("name", names, dtype=pl.String)
    assert split_names([join_names(series)]).to_list() == names
    assert split_names([join_names(series), join_names(series)]).to_list() == names * 2


def test_no_chunks_are_no_names() -> None:
    assert split_names([]).to_list() == []
    assert split_names([]).dtype == pl.String


@pytest.mark.parametrize("name", ["", "two\nlines", "nul\0", "tab\t", "del\x7f", None])
def test_names_that_a_roster_cannot_hold_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="Name 1 of those that join is empty or has a control character"):
        as_names(["fine", name, "fine"])
    assert as_names(["fine"]).to_list() == ["fine"]
    assert as_names([]).to_list() == []
