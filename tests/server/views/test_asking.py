"""Numbers in addresses, and the head of every page about a program."""

import pytest

from restive.errors import NotFound
from restive.server.views.asking import head, read_number
from server.views.browsing import Site


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "x", " 1", "１", "9" * 10, "9" * 5000])
def test_what_is_no_number_leads_nowhere(text: str) -> None:
    with pytest.raises(NotFound, match="There is no such round"):
        read_number(text, "round")


def test_the_head_has_what_every_page_needs(played: Site) -> None:
    reported = head(played.desk.program("demo"))
    assert (reported["name"], reported["rounds"], reported["shadow"]) == ("demo", 5, "egt")
    assert reported["words"]["people"] == "pharmacists"
    assert head(played.desk.program("new"))["shadow"] is None
