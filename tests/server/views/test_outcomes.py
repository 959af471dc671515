from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from restive.server.views.outcomes import PEOPLE_PER_PAGE
from server.views.browsing import CROSS_SITE, Browser, Site, open_site, read_fields, read_text
from server.views.test_upload import check, decide

OUTCOMES = "/programs/coupons/outcomes"
LIST = "/programs/coupons/outcomes/list"
CAME = b"agent,done,next_state\nann,yes,high\nben,no,low\ncem,yes,high\n"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with open_site(tmp_path) as opened:
        yield opened


@pytest.fixture
def browser(site: Site) -> Browser:
    return site.browser("operator")


def decide_for(site: Site, agents: int = 2, **more: Any) -> list[str]:
    states = {f"<i>p-{number}</i>": "low" for number in range(agents)}
    return site.desk.program("coupons").decide(states, budget=agents, again=True, **more).chosen


def mark(browser: Browser, marks: dict[str, str], query: str = "") -> tuple[int, str]:
    fields = read_fields(browser.get(LIST + query).text)
    answer = browser.post(LIST, fields | marks)
    return answer.status_code, answer.headers.get("location") or answer.text


def test_the_list_can_be_marked_without_a_file(site: Site, browser: Browser) -> None:
    first, _ = decide_for(site)
    status, place = mark(browser, {"done-0": "yes", "next_state-0": "high"})
    assert (status, place) == (303, "/programs/coupons/status#main")
    program = site.desk.program("coupons")
    assert (program.rounds[0].outcomes, program.rounds[0].done) == (1, 1)
    people = browser.get(f"{LIST}.json").json()["people"]
    assert people[0] == {
        "agent": first, "list": "chosen", "state": "low", "done": True, "next_state": "high", "reward": 1.0,
        "assumed": False,
    }  # fmt: skip
    assert people[1]["done"] is None


def test_done_alone_can_be_reported(site: Site, browser: Browser) -> None:
    decide_for(site)
    assert mark(browser, {"done-1": "no"})[0] == 303
    line = site.desk.program("coupons").rounds[0]
    assert (line.outcomes, line.failed) == (0, 1)


def test_a_state_needs_a_yes_or_no(site: Site, browser: Browser) -> None:
    decide_for(site)
    status, page = mark(browser, {"next_state-0": "high"})
    assert status == 422
    assert "choose yes or no as well" in read_text(page)
    assert site.desk.program("coupons").rounds[0].outcomes == 0


def test_recorded_outcomes_fill_the_form_and_can_be_sent_again(site: Site, browser: Browser) -> None:
    decide_for(site)
    marks = {"done-0": "yes", "next_state-0": "high"}
    mark(browser, marks)
    page = browser.get(LIST).text
    assert 'value="high" selected' in page
    assert 'name="done-0" value="yes" checked' in page
    assert mark(browser, marks)[0] == 303
    assert site.desk.program("coupons").rounds[0].outcomes == 1


def test_changing_a_recorded_outcome_needs_the_check_box(site: Site, browser: Browser) -> None:
    first, _ = decide_for(site)
    mark(browser, {"done-0": "yes", "next_state-0": "high"})
    changed = {"done-0": "yes", "next_state-0": "low"}
    status, page = mark(browser, changed)
    assert status == 422
    assert f"{first}: " in read_text(page).replace(" :", ":") or "&lt;i&gt;p-" in page
    assert 'name="correct"' in page
    assert "--correct" not in page
    assert mark(browser, changed | {"correct": "yes"})[0] == 303
    assert site.desk.program("coupons").get_round(1).after.tolist().count(0) == 1


def test_a_long_list_has_pages(site: Site, browser: Browser) -> None:
    decide_for(site, PEOPLE_PER_PAGE + 3)
    data = browser.get(f"{LIST}.json").json()
    assert (data["part"]["pages"], data["part"]["total"], len(data["people"])) == (
        2,
        PEOPLE_PER_PAGE + 3,
        PEOPLE_PER_PAGE,
    )
    status, place = mark(browser, {f"done-{number}": "yes" for number in range(PEOPLE_PER_PAGE)})
    assert (status, place) == (303, f"{LIST}?round=1&page=2#main")
    assert mark(browser, {}, "?page=1") == (303, f"{LIST}?round=1&page=2#main"), "an empty page is skipped"
    assert mark(browser, {"done-0": "no"}, "?page=2#main") == (303, "/programs/coupons/status#main")
    line = site.desk.program("coupons").rounds[0]
    assert (line.done, line.failed) == (PEOPLE_PER_PAGE, 1)


def test_an_empty_last_page_is_refused(site: Site, browser: Browser) -> None:
    decide_for(site)
    status, page = mark(browser, {})
    assert status == 422
    assert "The form is empty" in read_text(page)


def test_an_earlier_round_can_be_chosen(site: Site, browser: Browser) -> None:
    decide_for(site)
    decide_for(site)
    assert browser.get(f"{LIST}.json").json()["round"] == 2
    assert "as planned, not reported" in browser.get(f"{LIST}?round=1").text
    assert mark(browser, {"done-0": "no"}, "?round=1")[0] == 303  # without a correction
    assert [line.done for line in site.desk.program("coupons").rounds] == [1, 0]


@pytest.mark.parametrize("query", ["?round=3", "?round=x", "?page=2", "?page=0", "?round=1&page=-1"])
def test_a_missing_round_or_page_is_not_found(site: Site, browser: Browser, query: str) -> None:
    assert browser.get(LIST).status_code == 404
    decide_for(site)
    assert browser.get(LIST + query).status_code == 404


def test_a_cancelled_round_has_no_list_to_mark(site: Site, browser: Browser) -> None:
    decide_for(site)
    site.desk.program("coupons").cancel(1)
    assert browser.get(f"{LIST}?round=1").status_code == 404


def test_erased_people_are_not_in_the_form(site: Site, browser: Browser) -> None:
    first, second = decide_for(site)
    site.desk.program("coupons").erase([first])
    people = browser.get(f"{LIST}.json").json()["people"]
    assert [person["agent"] for person in people] == [second]


def test_ids_with_markup_are_shown_as_they_are(site: Site, browser: Browser) -> None:
    decide_for(site)
    assert "<i>p-" not in browser.get(LIST).text


def test_reported_rewards_have_a_field(tmp_path: Path) -> None:
    with open_site(tmp_path, rewards=None) as site:
        browser = site.browser("operator")
        decide_for(site)
        assert mark(browser, {"done-0": "yes", "next_state-0": "high"})[0] == 422
        assert mark(browser, {"done-0": "yes", "next_state-0": "high", "reward-0": "2,5"})[0] == 303
        assert browser.get(f"{LIST}.json").json()["people"][0]["reward"] == 2.5


def test_a_double_click_records_once(site: Site, browser: Browser) -> None:
    decide_for(site)
    fields = read_fields(browser.get(LIST).text) | {"done-0": "yes"}
    assert [browser.post(LIST, fields).status_code for _ in range(2)] == [303, 303]
    assert [context.verb for context in site.desk.store.audit_log(None)].count("learned") == 1


def test_a_viewer_and_another_site_are_refused(site: Site, browser: Browser) -> None:
    decide_for(site)
    viewer = site.browser("viewer")
    assert viewer.get(LIST).status_code == 403
    fields = read_fields(browser.get(LIST).text) | {"done-0": "yes"}
    assert viewer.post(LIST, fields).status_code == 403
    assert browser.post(LIST, fields, headers=CROSS_SITE).status_code == 403
    assert site.desk.program("coupons").rounds[0].done == 0


def test_outcomes_are_checked_and_then_recorded(site: Site, browser: Browser) -> None:
    decide(browser)
    page = browser.post(OUTCOMES, {"step": "check", "round": "1"}, ("came.csv", CAME))
    assert "Round 1 New 3 Corrected 0 Recorded before 0 Still missing 0" in read_text(page.text)
    assert site.desk.program("coupons").rounds[0].outcomes == 0
    confirmation = check(browser, CAME, OUTCOMES, round="1")
    for _ in range(2):
        answer = browser.post(OUTCOMES, {"step": "record", **confirmation}, ("came.csv", CAME))
        assert (answer.status_code, answer.headers["location"]) == (303, "/programs/coupons/status#main")
        assert "3%20outcomes%20recorded" in answer.headers["set-cookie"]
    assert site.desk.program("coupons").rounds[0].outcomes == 3
    assert [context.verb for context in site.desk.store.audit_log(None)].count("learned") == 1


def test_a_table_with_another_outcome_needs_the_check_box(site: Site, browser: Browser) -> None:
    decide(browser)
    confirmation = check(browser, CAME, OUTCOMES)
    browser.post(OUTCOMES, {"step": "record", **confirmation}, ("came.csv", CAME))
    other = CAME.replace(b"ben,no,low", b"ben,no,high")
    refused = browser.post(OUTCOMES, {"step": "check"}, ("came.csv", other))
    assert refused.status_code == 422
    assert "already has another outcome in round 1" in read_text(refused.text)
    assert "--correct" not in refused.text
    confirmation = check(browser, other, OUTCOMES, correct="yes")
    assert browser.post(OUTCOMES, {"step": "record", **confirmation}, ("came.csv", other)).status_code == 303
