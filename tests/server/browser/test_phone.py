"""A round on a phone: pasted rows, and outcomes person by person."""

from playwright.sync_api import expect

from server.browser.chromium import PHONE
from server.browser.conftest import Live, Windows
from server.browser.shop import at, check, make_shop, table_of_states


def test_a_round_goes_from_states_to_outcomes_on_a_phone(open_server: Live, windows: Windows) -> None:
    make_shop(open_server.desk, "phoned")
    page = windows(open_server, **PHONE).tab(at("phoned", "status"))
    page.get_by_role("main").get_by_role("link", name="Decide").first.tap()
    check(page, table_of_states().replace(",", "\t"))
    page.get_by_role("button", name="Decide round 1 now").tap()
    page.wait_for_url("**/list#main")
    chosen = open_server.desk.program("phoned").recommendation(1).chosen
    expect(page.locator("tr:not(.reserve) td.first a")).to_have_text(chosen)

    page.get_by_role("link", name="Report outcomes").tap()
    for place, agent in enumerate(chosen[:-1]):
        person = page.get_by_role("group", name=agent)
        person.get_by_text("No" if place == 0 else "Yes", exact=True).tap()
        person.get_by_label("State now").select_option("lapsed" if place == 0 else "buying")
    page.get_by_role("button", name="Record").tap()
    page.wait_for_url("**/status#main")
    expect(page.get_by_role("status")).to_contain_text("4 outcomes recorded")
    line = open_server.desk.program("phoned").rounds[0]
    assert (line.outcomes, line.done, line.failed) == (4, 3, 1)

    page.get_by_role("link", name="Rounds", exact=True).tap()
    page.get_by_role("link", name="1", exact=True).tap()
    for place, agent in enumerate(chosen):
        said = ("no", "lapsed") if place == 0 else ("yes", "buying") if place < 4 else ("not reported", "missing")
        for words in said:
            expect(page.get_by_role("row", name=agent)).to_contain_text(words)
