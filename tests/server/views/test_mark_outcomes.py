from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from restive.server.views.mark_outcomes import AT_ONCE
from server.views.browsing import Browser, Site, open_site, read_fields, read_text

LIST = "/programs/coupons/outcomes/list"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with open_site(tmp_path) as opened:
        yield opened


@pytest.fixture
def browser(site: Site) -> Browser:
    return site.browser("operator")


def decide(site: Site, agents: int = 2, **more: Any) -> list[str]:
    states = {f"<i>p-{number}</i>": "low" for number in range(agents)}
    return site.desk.program("coupons").decide(states, budget=agents, again=True, **more).chosen


def mark(browser: Browser, marks: dict[str, str], query: str = "") -> tuple[int, str]:
    fields = read_fields(browser.get(LIST + query).text)
    answer = browser.post(LIST, fields | marks)
    return answer.status_code, answer.headers.get("location") or answer.text


def test_the_list_can_be_marked_without_a_file(site: Site, browser: Browser) -> None:
    first, _ = decide(site)
    status, place = mark(browser, {"done-0": "yes", "next_state-0": "high"})
    assert (status, place) == (303, "/programs/coupons/status#main")
    program = site.desk.program("coupons")
    assert (program.rounds[0].outcomes, program.rounds[0].done) == (1, 1)
    people = browser.get(f"{LIST}.json").json()["people"]
    assert people[0] == {"agent": first, "state": "low", "done": True, "next_state": "high", "reward": 1.0}
    assert people[1]["done"] is None


def test_whether_it_was_done_alone_is_enough_for_now(site: Site, browser: Browser) -> None:
    decide(site)
    assert mark(browser, {"done-1": "no"})[0] == 303
    line = site.desk.program("coupons").rounds[0]
    assert (line.outcomes, line.failed) == (0, 1)


def test_a_state_without_a_yes_or_no_is_not_taken_for_a_yes(site: Site, browser: Browser) -> None:
    decide(site)
    status, page = mark(browser, {"next_state-0": "high"})
    assert status == 422
    assert "say yes or no as well" in read_text(page)
    assert site.desk.program("coupons").rounds[0].outcomes == 0


def test_the_page_is_filled_with_what_is_on_record_and_sending_it_again_changes_nothing(
    site: Site, browser: Browser
) -> None:
    decide(site)
    marks = {"done-0": "yes", "next_state-0": "high"}
    mark(browser, marks)
    page = browser.get(LIST).text
    assert 'value="high" selected' in page
    assert 'name="done-0" value="yes" checked' in page
    assert mark(browser, marks)[0] == 303
    assert site.desk.program("coupons").rounds[0].outcomes == 1


def test_changing_what_is_on_record_needs_the_box_for_a_correction(site: Site, browser: Browser) -> None:
    first, _ = decide(site)
    mark(browser, {"done-0": "yes", "next_state-0": "high"})
    changed = {"done-0": "yes", "next_state-0": "low"}
    status, page = mark(browser, changed)
    assert status == 422
    assert f"{first}: " in read_text(page).replace(" :", ":") or "&lt;i&gt;p-" in page
    assert 'name="correct"' in page
    assert "--correct" not in page
    assert mark(browser, changed | {"correct": "yes"})[0] == 303
    assert site.desk.program("coupons").get_round(1).after.tolist().count(0) == 1


def test_a_long_list_comes_in_pages_and_goes_on_to_the_next(site: Site, browser: Browser) -> None:
    decide(site, AT_ONCE + 3)
    data = browser.get(f"{LIST}.json").json()
    assert (data["pages"], data["listed"], len(data["people"])) == (2, AT_ONCE + 3, AT_ONCE)
    status, place = mark(browser, {f"done-{number}": "yes" for number in range(AT_ONCE)})
    assert (status, place) == (303, f"{LIST}?round=1&page=2#main")
    assert mark(browser, {}, "?page=1") == (303, f"{LIST}?round=1&page=2#main"), "a page without a mark is passed by"
    assert mark(browser, {"done-0": "no"}, "?page=2#main") == (303, "/programs/coupons/status#main")
    line = site.desk.program("coupons").rounds[0]
    assert (line.done, line.failed) == (AT_ONCE, 1)


def test_nothing_marked_on_the_last_page_is_said(site: Site, browser: Browser) -> None:
    decide(site)
    status, page = mark(browser, {})
    assert status == 422
    assert "Nothing is filled in" in read_text(page)


def test_an_earlier_round_can_be_chosen(site: Site, browser: Browser) -> None:
    decide(site)
    decide(site)
    assert browser.get(f"{LIST}.json").json()["round"] == 2
    assert mark(browser, {"done-0": "yes"}, "?round=1")[0] == 303
    assert [line.done for line in site.desk.program("coupons").rounds] == [1, 0]


@pytest.mark.parametrize("query", ["?round=3", "?round=x", "?page=2", "?page=0", "?round=1&page=-1"])
def test_what_is_not_there_is_not_found(site: Site, browser: Browser, query: str) -> None:
    assert browser.get(LIST).status_code == 404
    decide(site)
    assert browser.get(LIST + query).status_code == 404


def test_a_cancelled_round_has_no_list_to_mark(site: Site, browser: Browser) -> None:
    decide(site)
    site.desk.program("coupons").cancel(1)
    assert browser.get(f"{LIST}?round=1").status_code == 404


def test_whoever_was_erased_is_not_asked_for(site: Site, browser: Browser) -> None:
    first, second = decide(site)
    site.desk.program("coupons").erase([first])
    people = browser.get(f"{LIST}.json").json()["people"]
    assert [person["agent"] for person in people] == [second]


def test_ids_with_markup_are_shown_as_they_are(site: Site, browser: Browser) -> None:
    decide(site)
    assert "<i>p-" not in browser.get(LIST).text


def test_reported_rewards_have_a_field_of_their_own(tmp_path: Path) -> None:
    with open_site(tmp_path, rewards=None) as site:
        browser = site.browser("operator")
        decide(site)
        assert mark(browser, {"done-0": "yes", "next_state-0": "high"})[0] == 422
        assert mark(browser, {"done-0": "yes", "next_state-0": "high", "reward-0": "2,5"})[0] == 303
        assert browser.get(f"{LIST}.json").json()["people"][0]["reward"] == 2.5


def test_a_double_click_records_once(site: Site, browser: Browser) -> None:
    decide(site)
    fields = read_fields(browser.get(LIST).text) | {"done-0": "yes"}
    assert [browser.post(LIST, fields).status_code for _ in range(2)] == [303, 303]
    assert [context.verb for context in site.desk.store.audit_log(None)].count("learned") == 1


def test_whoever_may_only_look_and_whoever_has_no_token_is_refused(site: Site, browser: Browser) -> None:
    decide(site)
    viewer = site.browser("viewer")
    assert viewer.get(LIST).status_code == 403
    fields = read_fields(browser.get(LIST).text) | {"done-0": "yes"}
    assert viewer.post(LIST, fields, csrf="x").status_code == 403
    assert browser.post(LIST, fields, csrf="0" * 64).status_code == 403
    assert site.desk.program("coupons").rounds[0].done == 0
