"""Pages of a long table: every row on one of them, and on one only."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from restive.errors import NotFound
from restive.server.views.paging import turn_to


@given(total=st.integers(0, 2000), size=st.integers(1, 300))
def test_every_row_is_on_one_page(total: int, size: int) -> None:
    rows = list(range(total))
    pages = turn_to(1, total, size).pages
    shown = [row for page in range(1, pages + 1) for row in rows[turn_to(page, total, size).rows]]
    assert shown == rows


@pytest.mark.parametrize(("total", "said"), [(0, "there is one"), (10, "there is one"), (11, "there are 2")])
def test_a_page_beyond_the_last_is_not_there(total: int, said: str) -> None:
    with pytest.raises(NotFound, match=said):
        turn_to(9, total, 10)
