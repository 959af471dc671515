"""A whole round in a browser without JavaScript."""

from pathlib import Path

from playwright.sync_api import expect

from server.browser.conftest import Live, Windows
from server.browser.shop import DECIDE, at, save, table_of_outcomes, table_of_states
from server.browser.test_lead import set_up


def test_the_whole_round_works_without_scripts(open_server: Live, windows: Windows, tmp_path: Path) -> None:
    page = windows(open_server, refused=[422], java_script_enabled=False).tab()
    set_up(page, "by-hand")
    file, right = page.get_by_label("File", exact=True), table_of_states()
    check, found = page.get_by_role("button", name="Check", exact=True), page.locator("#preview section")

    file.set_input_files(save(tmp_path, right.replace("lapsed", "lapst", 2)))
    check.click()
    expect(found).to_contain_text("which state each of these texts means: lapst")
    file.set_input_files(save(tmp_path, right))
    check.click()
    expect(found).to_contain_text("Choose table.csv again before you decide")
    file.set_input_files(save(tmp_path, right))
    page.get_by_role("button", name=DECIDE).click()
    page.wait_for_url("**/list#main")
    program = open_server.desk.program("by-hand")
    expect(page.locator("tr:not(.reserve) td.first a")).to_have_text(program.recommendation(1).chosen)
    expect(page.get_by_role("button", name="Print")).to_be_hidden()

    page.get_by_role("link", name="Report results", exact=True).click()
    page.get_by_text("Or paste rows from a spreadsheet").click()
    page.get_by_label("Rows, with the column names").fill(table_of_outcomes(program))
    check.click()
    page.get_by_role("button", name="Record for").click()
    page.wait_for_url("**/status#main")
    assert open_server.desk.program("by-hand").rounds[0].outcomes == 40
    page.get_by_role("link", name="Results", exact=True).click()
    expect(page.locator(".plot").first).to_be_hidden()
    page.get_by_text("Show the numbers as a table").first.click()
    expect(page.get_by_role("region", name="Rewards by round")).to_be_visible()
    page.goto(at("by-hand", "states"))
    page.get_by_role("button", name="What does “Budget” mean?").click()
    expect(page.locator(".meaning:popover-open")).to_be_visible()


def test_a_file_that_changed_since_the_check_is_not_decided(
    open_server: Live, windows: Windows, tmp_path: Path
) -> None:
    page = windows(open_server, refused=[409], java_script_enabled=False).tab()
    set_up(page, "swapped")
    for step, month in (("Check", 1), (DECIDE, 2)):
        page.get_by_label("File", exact=True).set_input_files(save(tmp_path, table_of_states(month)))
        page.get_by_role("button", name=step).click()
    expect(page.get_by_role("alert")).to_contain_text("has changed since the check")
    assert open_server.desk.program("swapped").rounds == []
