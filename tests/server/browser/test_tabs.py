"""Two tabs or a double click decide a round once."""

from pathlib import Path

from playwright.sync_api import expect

from server.browser.conftest import Live, Windows
from server.browser.shop import DECIDE, at, check, make_shop, save, table_of_states


def test_the_second_of_two_tabs_cannot_decide_the_same_round(
    open_server: Live, windows: Windows, tmp_path: Path
) -> None:
    make_shop(open_server.desk, "twice")
    window = windows(open_server, refused=[409])
    tabs = [window.tab(at("twice", "states")) for _ in range(2)]
    for month, tab in enumerate(tabs):
        check(tab, save(tmp_path, table_of_states(month), f"{month}.csv"))
    for tab in tabs:
        tab.get_by_role("button", name=DECIDE).click()
    tabs[0].wait_for_url("**/list#main")
    expect(tabs[1].get_by_role("alert")).to_contain_text("(round 1) was decided")
    program = open_server.desk.program("twice")
    assert len(program.rounds) == 1
    expect(tabs[0].locator("tr:not(.reserve) td.first a")).to_have_text(program.recommendation(1).chosen)


def test_a_double_click_decides_one_round(open_server: Live, windows: Windows, tmp_path: Path) -> None:
    make_shop(open_server.desk, "quick")
    page = windows(open_server).tab(at("quick", "states"))
    check(page, save(tmp_path, table_of_states()))
    page.get_by_role("button", name=DECIDE).dblclick()
    page.wait_for_url("**/list#main")
    assert len(open_server.desk.program("quick").rounds) == 1


def test_going_back_and_checking_again_decides_nothing(open_server: Live, windows: Windows, tmp_path: Path) -> None:
    make_shop(open_server.desk, "back")
    page = windows(open_server, refused=[409]).tab(at("back", "states"))
    check(page, save(tmp_path, table_of_states()))
    page.get_by_role("button", name=DECIDE).click()
    page.wait_for_url("**/list#main")
    page.go_back()
    found = check(page, save(tmp_path, table_of_states()))
    expect(found).to_contain_text("was decided")
    expect(page.get_by_label("This is another round")).to_be_visible()
    assert len(open_server.desk.program("back").rounds) == 1
