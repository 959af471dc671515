from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from restive.server.views.rounds import PEOPLE_PER_PAGE
from server.views.browsing import CROSS_SITE, Browser, Site, open_site, read_fields, read_text
from server.views.test_upload import check, decide

OUTCOMES = "/programs/coupons/outcomes"
LIST = "/programs/coupons/list"
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


def card(page: str, place: int = 0) -> str:
    return page.partition(f'id="mark-{place}"')[2].partition("</form>")[0]


def mark(browser: Browser, marks: dict[str, str], place: int = 0, query: str = "", **headers: str) -> tuple[int, str]:
    """Send the form of one person."""
    fields = read_fields(card(browser.get(LIST + query).text, place))
    answer = browser.post(LIST, fields | marks, headers=headers)
    return answer.status_code, answer.headers.get("location") or answer.text


def test_the_list_can_be_marked_without_a_file(site: Site, browser: Browser) -> None:
    first, _ = decide_for(site)
    assert mark(browser, {"done": "yes", "next_state": "high"}) == (303, f"{LIST}?round=1&page=1#mark-0")
    program = site.desk.program("coupons")
    assert (program.rounds[0].outcomes, program.rounds[0].done) == (1, 1)
    data = browser.get(f"{LIST}.json").json()
    found = {"agent": first, "list": "chosen", "done": True, "next_state": "high", "reward": 1.0, "assumed": False}
    assert found.items() <= data["people"][0].items()
    assert data["people"][1]["done"] is None
    assert (data["marked"], data["chosen"]) == (1, 2)
    page = browser.get(LIST).text
    assert "1 of 2 marked" in read_text(page)
    assert "saved" in read_text(card(page))
    assert "saved" not in read_text(card(page, 1))


def test_a_script_gets_the_card_and_the_number_of_marks(site: Site, browser: Browser) -> None:
    decide_for(site)
    status, part = mark(browser, {"done": "yes"}, place=1, **{"HX-Request": "true"})
    assert (status, part.count("<form"), "<html" in part) == (200, 1, False)
    assert 'id="mark-1"' in part
    assert 'value="yes" checked' in part
    assert "1 of 2 marked" in read_text(part)


def test_done_alone_can_be_reported(site: Site, browser: Browser) -> None:
    decide_for(site)
    assert mark(browser, {"done": "no"}, place=1)[0] == 303
    line = site.desk.program("coupons").rounds[0]
    assert (line.outcomes, line.failed) == (0, 1)


def test_a_state_needs_a_yes_or_no(site: Site, browser: Browser) -> None:
    decide_for(site)
    status, page = mark(browser, {"next_state": "high"})
    assert status == 422
    assert "Choose yes or no as well" in card(page)
    assert 'value="high" selected' in card(page)
    assert site.desk.program("coupons").rounds[0].outcomes == 0
    assert mark(browser, {})[0] == 422


def test_recorded_outcomes_fill_the_form_and_can_be_sent_again(site: Site, browser: Browser) -> None:
    decide_for(site)
    marks = {"done": "yes", "next_state": "high"}
    mark(browser, marks)
    page = card(browser.get(LIST).text)
    assert 'value="high" selected' in page
    assert 'value="yes" checked' in page
    assert mark(browser, marks)[0] == 303
    assert site.desk.program("coupons").rounds[0].outcomes == 1


def test_another_outcome_is_answered_in_the_card_and_replaced_from_there(site: Site, browser: Browser) -> None:
    decide_for(site)
    mark(browser, {"done": "yes", "next_state": "high"})
    changed = {"done": "yes", "next_state": "low"}
    status, page = mark(browser, changed)
    assert status == 422
    assert "Another outcome is recorded." in card(page)
    assert 'name="step" value="replace"' in card(page)
    assert "Replace it" not in card(page, 1)
    assert 'value="low" selected' in card(page)
    assert mark(browser, changed | {"step": "replace"})[0] == 303
    assert site.desk.program("coupons").get_round(1).after.tolist().count(0) == 1


def test_a_choice_can_be_cleared_until_the_next_round_rests_on_it(site: Site, browser: Browser) -> None:
    first, _ = decide_for(site)
    program = site.desk.program("coupons")
    assert "Clear" not in browser.get(LIST).text
    mark(browser, {"done": "yes", "next_state": "high"})
    assert "Clear" in card(browser.get(LIST).text)
    assert mark(browser, {"step": "clear"})[0] == 303
    assert (program.rounds[0].outcomes, program.rounds[0].done) == (0, 0)
    assert "done" not in program.history(first)[0]
    assert mark(browser, {"done": "no", "next_state": "low"})[0] == 303
    decide_for(site)
    status, page = mark(browser, {"step": "clear"}, query="?round=1")
    assert status == 409
    assert "was decided from this outcome of round 1 (" in card(page)


def test_people_in_reserve_can_be_marked(site: Site, browser: Browser) -> None:
    states = {f"p-{number}": "low" for number in range(4)}
    decided = site.desk.program("coupons").decide(states, budget=2)
    data = browser.get(f"{LIST}.json").json()
    assert [row["agent"] for row in data["people"]] == decided.chosen + decided.reserve
    assert [row["list"] for row in data["people"]][2:] == ["reserve"] * len(decided.reserve)
    assert mark(browser, {"done": "yes"}, place=2)[0] == 303
    assert site.desk.program("coupons").rounds[0].unlisted == 1
    assert browser.get(f"{LIST}.json").json()["marked"] == 0


def test_a_long_list_has_pages(site: Site, browser: Browser) -> None:
    decide_for(site, PEOPLE_PER_PAGE + 3)
    data = browser.get(f"{LIST}.json").json()
    assert (data["part"]["pages"], data["part"]["total"], len(data["people"])) == (
        2,
        PEOPLE_PER_PAGE + 3,
        PEOPLE_PER_PAGE,
    )
    assert mark(browser, {"done": "no"}, place=2, query="?page=2") == (303, f"{LIST}?round=1&page=2#mark-2")
    assert site.desk.program("coupons").rounds[0].failed == 1


def test_an_earlier_round_can_be_chosen(site: Site, browser: Browser) -> None:
    decide_for(site)
    decide_for(site)
    assert browser.get(f"{LIST}.json").json()["round"] == 2
    assert "counted as done, not reported" in browser.get(f"{LIST}?round=1").text
    assert mark(browser, {"done": "no"}, query="?round=1")[0] == 303  # without a correction
    assert [line.done for line in site.desk.program("coupons").rounds] == [1, 0]


def test_the_oldest_round_that_waits_comes_first_where_states_are_no_outcomes(tmp_path: Path) -> None:
    with open_site(tmp_path, states_are_outcomes=False) as site:
        browser = site.browser("operator")
        decide_for(site)
        decide_for(site)
        assert browser.get(f"{OUTCOMES}.json").json()["rounds"][0]["round"] == 1
        assert browser.get(f"{LIST}.json").json()["round"] == 2


@pytest.mark.parametrize("query", ["?round=3", "?round=x", "?page=2", "?page=0", "?round=1&page=-1"])
def test_a_missing_round_or_page_is_not_found(site: Site, browser: Browser, query: str) -> None:
    decide_for(site)
    assert browser.get(LIST + query).status_code == 404


def test_a_cancelled_round_has_no_list_to_mark(site: Site, browser: Browser) -> None:
    decide_for(site)
    fields = read_fields(card(browser.get(LIST).text)) | {"done": "yes"}
    site.desk.program("coupons").cancel(1)
    assert 'class="mark"' not in browser.get(f"{LIST}?round=1").text
    assert browser.post(LIST, fields).status_code == 422
    assert site.desk.program("coupons").rounds[0].done == 0


def test_erased_people_are_not_in_the_form(site: Site, browser: Browser) -> None:
    first, second = decide_for(site)
    site.desk.program("coupons").erase([first])
    page = browser.get(LIST).text
    assert page.count('class="mark"') == 1
    assert read_fields(card(page, 1))["agent"] == second


def test_ids_with_markup_are_shown_as_they_are(site: Site, browser: Browser) -> None:
    decide_for(site)
    assert "<i>p-" not in browser.get(LIST).text


def test_a_reason_that_all_share_is_said_once_and_names_come_first(tmp_path: Path) -> None:
    with open_site(tmp_path, display=("phone", "name")) as site:
        people = [("p1", "Ann Okafor", "+91 98200-12345"), ("p2", "Ben", None), ("+919820054321", None, None)]
        rows = [{"agent": agent, "state": "low", "name": name, "phone": phone} for agent, name, phone in people]
        site.desk.program("coupons").decide(rows)
        page = site.browser("operator").get(LIST).text
    assert page.count("was never tried in this state") == 1
    assert "Ann Okafor p1" in read_text(page)
    assert 'href="tel:+919820054321">Call</a>' in page
    assert "State after" not in page


def test_reported_rewards_have_a_field(tmp_path: Path) -> None:
    with open_site(tmp_path, rewards=None) as site:
        browser = site.browser("operator")
        decide_for(site)
        assert mark(browser, {"done": "yes", "next_state": "high"})[0] == 422
        assert mark(browser, {"done": "yes", "next_state": "high", "reward": "2,5"})[0] == 303
        assert browser.get(f"{LIST}.json").json()["people"][0]["reward"] == 2.5


def test_a_viewer_and_another_site_are_refused(site: Site, browser: Browser) -> None:
    decide_for(site)
    viewer = site.browser("viewer")
    assert 'class="mark"' not in viewer.get(LIST).text
    fields = read_fields(browser.get(LIST).text) | {"done": "yes"}
    assert viewer.post(LIST, fields).status_code == 403
    assert browser.post(LIST, fields, headers=CROSS_SITE).status_code == 403
    assert site.desk.program("coupons").rounds[0].done == 0


def test_outcomes_are_checked_and_then_recorded(site: Site, browser: Browser) -> None:
    decide(browser)
    page = browser.post(OUTCOMES, {"step": "check", "round": "1"}, ("came.csv", CAME))
    assert "round 1 New 3 Corrected 0 Recorded before 0 Still missing 0" in read_text(page.text)
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
