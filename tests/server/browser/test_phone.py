"""A round on a phone: pasted rows, and outcomes person by person."""

from typing import Any

from playwright.sync_api import expect

from server.browser.chromium import PHONE
from server.browser.conftest import Live, Windows
from server.browser.shop import DECIDE, at, check, make_shop, table_of_states


def test_a_round_goes_from_states_to_outcomes_on_a_phone(open_server: Live, windows: Windows) -> None:
    make_shop(open_server.desk, "phoned")
    page = windows(open_server, **PHONE).tab(at("phoned", "status"))
    page.get_by_role("main").get_by_role("link", name="Decide").first.tap()
    check(page, table_of_states().replace(",", "\t"))
    page.get_by_role("button", name=DECIDE).tap()
    page.wait_for_url("**/list#main")
    chosen = open_server.desk.program("phoned").recommendation(1).chosen
    expect(page.locator("tr:not(.reserve) td.first a")).to_have_text(chosen)

    for place, agent in enumerate(chosen[:-1]):
        person = page.get_by_role("group", name=agent)
        person.get_by_text("No, or not reached" if place == 0 else "Yes", exact=True).tap()
        expect(person).to_contain_text("saved")
        person.get_by_label("State after").select_option("lapsed" if place == 0 else "buying")
        expect(page.get_by_text(f"{place + 1} of 5 marked")).to_be_in_viewport()
    expect(page.get_by_role("button", name="Save")).to_have_count(0)
    page.wait_for_load_state("networkidle")
    page.get_by_role("link", name="Home").tap()
    page.wait_for_url("**/status")
    line = open_server.desk.program("phoned").rounds[0]
    assert (line.outcomes, line.done, line.failed) == (4, 3, 1)

    page.get_by_text("More", exact=True).tap()
    page.get_by_role("link", name="Rounds", exact=True).tap()
    page.get_by_role("row").filter(has_text="round 1, decided").get_by_role("link").first.tap()
    for place, agent in enumerate(chosen):
        said = ("no", "lapsed") if place == 0 else ("yes", "buying") if place < 4 else ("not reported", "missing")
        for words in said:
            expect(page.get_by_role("row", name=agent)).to_contain_text(words)


def test_what_another_tab_recorded_is_replaced_from_the_card_or_cleared(open_server: Live, windows: Windows) -> None:
    program = make_shop(open_server.desk, "two-tabs", months=1)
    agent = program.recommendation(1).chosen[0]
    window = windows(open_server, refused=[422], **PHONE)
    first, second = (window.tab(at("two-tabs", "list")) for _ in range(2))
    mine, theirs = (page.get_by_role("group", name=agent) for page in (first, second))
    theirs.get_by_text("Yes", exact=True).tap()
    expect(theirs).to_contain_text("saved")
    mine.get_by_text("No, or not reached", exact=True).tap()
    expect(mine.get_by_role("alert")).to_contain_text("Another outcome is recorded.")
    assert program.rounds[0].done == 1
    mine.get_by_role("button", name="Replace it").tap()
    expect(mine).to_contain_text("saved")
    assert (program.rounds[0].done, program.rounds[0].failed) == (0, 1)
    mine.get_by_role("button", name="Clear").tap()
    expect(mine.get_by_label("No, or not reached", exact=True)).not_to_be_checked()
    expect(first.get_by_text("0 of 5 marked")).to_be_visible()
    assert (program.rounds[0].done, program.rounds[0].failed) == (0, 0)


def test_a_list_is_marked_card_by_card_without_scripts(open_server: Live, windows: Windows) -> None:
    program = make_shop(open_server.desk, "plain-marks", months=1)
    agent = program.recommendation(1).chosen[1]
    page = windows(open_server, refused=[422], java_script_enabled=False, **PHONE).tab(at("plain-marks", "list"))
    person = page.get_by_role("group", name=agent)
    person.get_by_label("Yes", exact=True).check()
    person.get_by_role("button", name="Save").tap()
    page.wait_for_url("**#mark-1")
    expect(person).to_contain_text("saved")
    expect(page.get_by_text("1 of 5 marked")).to_be_visible()
    assert program.rounds[0].done == 1
    person.get_by_label("No, or not reached", exact=True).check()
    person.get_by_role("button", name="Save").tap()
    person.get_by_role("button", name="Replace it").tap()
    page.wait_for_url("**#mark-1")
    assert program.rounds[0].failed == 1


def test_names_are_on_the_phone_and_numbers_call(open_server: Live, windows: Windows) -> None:
    settings: dict[str, Any] = {
        "states": ["low", "high"],
        "rewards": [0, 1],
        "control": 0.0,
        "display": ["name", "phone"],
    }
    row = {"agent": "PAT-2026-00001", "state": "low", "name": "Ann Okafor", "phone": "+234 803 555 0101"}
    unlisted = {"agent": "b", "state": "low", "name": "<b>Ben</b>", "phone": "ask at the shop"}
    open_server.desk.create("named", **settings).decide([row, unlisted])
    page = windows(open_server, **PHONE | {"viewport": {"width": 375, "height": 740}}).tab(at("named", "list"))
    for part in ("list", "people", "rounds/1", "person?agent=PAT-2026-00001"):
        page.goto(f"{open_server.place}{at('named', part)}")
        call = page.get_by_role("link", name="+234 803 555 0101")
        expect(call).to_have_attribute("href", "tel:+2348035550101")
        assert call.evaluate("element => element.getBoundingClientRect().height") >= 24
        expect(page.get_by_role("main")).to_contain_text("Ann Okafor")
        assert page.evaluate("document.documentElement.scrollWidth") == 375
    page.goto(f"{open_server.place}{at('named', 'list')}")
    expect(page.get_by_text("<b>Ben</b>")).to_be_visible()
    expect(page.get_by_role("link", name="ask at the shop")).to_have_count(0)
    page.set_viewport_size({"width": 718, "height": 1000})
    page.emulate_media(media="print")
    expect(page.get_by_text("was never tried in this state").first).to_be_visible()
    assert page.locator("td.first .id").first.evaluate("element => element.getClientRects().length") == 1
