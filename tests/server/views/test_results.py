"""The results of a program, and the comparison with its shadow."""

import re

from restive.desk.results import get_results
from restive.desk.status import compare_shadow, get_status
from restive.server.views.filters import MAX_BARS, plot_states
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
    assert (page.count("data-plot="), page.count("<figcaption"), page.count('<svg viewBox="0 0 50 100"')) == (2, 4, 2)
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


def test_bars_of_states_are_shares_of_everybody_with_the_best_state_below() -> None:
    counts = {"reported": [2, 4], "carried_over": [1, 1], "unknown": 2}
    (bar,) = plot_states([{"round": 7, "label": "Week of 16 Nov 2026", "program": counts}], "program", ["low", "high"])
    assert [(part["kind"], part["height"], part["y"]) for part in bar["parts"]] == [
        ("reported", 40.0, 60.0),
        ("carried_over", 10.0, 50.0),
        ("reported", 20.0, 30.0),
        ("carried_over", 10.0, 20.0),
        ("unknown", 20.0, 0.0),
    ]
    assert bar["parts"][1]["title"] == "Week of 16 Nov 2026 (round 7): 1 of 10 high, carried over (10%)"
    assert bar["tick"] == "16 Nov 2026"
    many = [{"round": n, "label": "June 2026", "program": counts} for n in range(1, 501)]
    shown = plot_states(many, "program", ["low", "high"])
    assert len(shown) <= MAX_BARS
    assert shown[-1]["round"] == 500


def test_states_groups_and_reach_are_those_of_the_desk(viewer: Browser, played: Site) -> None:
    seen, page = get_results(played.desk.program("demo")), viewer.get("/programs/demo/results")
    reported = viewer.get("/programs/demo/results.json").json()
    assert reported["round_states"] == seen["rounds"]
    assert (reported["groups"], reported["reach"]) == (seen["groups"], seen["reach"])
    assert page.text.count('class="reported" x=') > 2 * len(seen["rounds"])
    assert 'href="/programs/demo/tables/states.xlsx"' in page.text
    assert 'href="/programs/demo/unreached"' in page.text


def test_the_page_of_people_never_reached_has_everybody_with_the_reason(viewer: Browser) -> None:
    reported = viewer.get("/programs/demo/unreached.json").json()
    page = read_text(viewer.get("/programs/demo/unreached").text)
    assert reported["people"]
    assert all(row["agent"] in page and row["why"] in page for row in reported["people"])


def test_the_report_names_nobody(viewer: Browser, played: Site) -> None:
    page = viewer.get("/programs/demo/report").text
    assert "Did it work?" in page
    assert not [name for name in played.desk.program("demo").names.roster.to_list() if name in page]


def test_tables_are_downloads_and_the_audit_log_only_for_admins(viewer: Browser, admin: Browser) -> None:
    answer = viewer.get("/programs/demo/tables/rounds.xlsx")
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "private, no-store"
    assert viewer.get("/programs/demo/tables/nothing.csv").status_code == 404
    assert viewer.get("/programs/demo/tables/rounds.doc").status_code == 404
    assert viewer.get("/programs/demo/tables/audit.csv").status_code == 403
    assert admin.get("/programs/demo/tables/audit.csv").status_code == 200
