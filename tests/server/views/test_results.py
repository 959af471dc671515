"""The results of a program, and the comparison with its shadow."""

import re

from restive.desk.status import compare_shadow, get_status
from server.views.browsing import Browser, Site, read_text


def test_the_page_says_what_the_desk_says(viewer: Browser, played: Site) -> None:
    seen, page = get_status(played.desk.program("demo")), read_text(viewer.get("/programs/demo/results").text)
    assert seen["lift"] is not None
    assert seen["lift"]["sentence"] in page
    assert seen["shadow"] is not None
    assert seen["shadow"]["sentence"] in page
    assert all(each["state"] in page for each in seen["effects"])


def test_the_json_endpoint_has_the_numbers_of_the_desk(viewer: Browser, played: Site) -> None:
    reported, seen = viewer.get("/programs/demo/results.json").json(), get_status(played.desk.program("demo"))
    for part in ("lift", "curve", "effects", "shadow", "total", "caution"):
        assert reported[part] == seen[part]


def test_a_program_before_its_first_round_says_that_there_are_no_results(viewer: Browser) -> None:
    assert "There are no results before the first round." in viewer.get("/programs/new/results").text


def test_charts_have_a_description_and_a_table(viewer: Browser) -> None:
    page = viewer.get("/programs/demo/results").text
    assert page.count("data-plot=") == page.count("<figcaption") == 2
    assert "In the program: From " in page
    table = page.partition("Show the numbers as a table")[2].partition("</details>")[0]
    assert table.count('<th scope="row">') == 5


def test_all_means_come_with_their_intervals(viewer: Browser) -> None:
    table = viewer.get("/programs/demo/results").text.partition("Show the numbers as a table")[2]
    assert len(re.findall(r"\d \S*<span class=\"soft small nowrap\">\(", table)) >= 5


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
