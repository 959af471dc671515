"""The shadow: the comparison of the desk, in words and numbers."""

from restive.desk.overview import compare_shadow
from server.views.browsing import Browser, Site, read_text


def test_the_comparison_is_that_of_the_desk(viewer: Browser, played: Site) -> None:
    found = compare_shadow(played.desk.program("demo"))
    assert found is not None
    reported = viewer.get("/programs/demo/shadow.json").json()["comparison"]
    assert reported["sentence"] == found.sentence
    assert (reported["low"], reported["high"], reported["overlap"]) == (found.low, found.high, found.overlap)
    page = read_text(viewer.get("/programs/demo/shadow").text)
    assert found.sentence in page
    assert "The interval contains 0" in page or "The whole interval lies" in page


def test_a_program_without_a_shadow_says_so_and_does_not_offer_the_page(viewer: Browser) -> None:
    page = viewer.get("/programs/odd/shadow").text
    assert "This program has no shadow." in page
    assert 'href="/programs/odd/shadow"' not in page
