"""A lead who has a spreadsheet and no program: from the table to the page, and from the page to a program."""

from pathlib import Path

from playwright.sync_api import expect

from server.browser.chromium import PHONE
from server.browser.conftest import Live, Windows
from server.browser.shop import save
from server.views.test_history import table

WAIT_MS = 300_000  # a report takes seconds, on a busy machine minutes


def test_a_lead_corrects_her_history_sees_what_it_says_and_starts_a_program(
    open_server: Live, windows: Windows, tmp_path: Path
) -> None:
    page = windows(open_server, **PHONE).tab("/")
    page.get_by_role("link", name="Start from a history").first.tap()
    history = save(tmp_path, table().decode())
    page.get_by_label("File").set_input_files(history)
    page.get_by_label("Actions in a round").fill("3")
    page.get_by_label("Rounds", exact=True).fill("4")
    page.get_by_role("button", name="Show what it says").tap()
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("Check below which column is which", timeout=WAIT_MS)

    expect(page.get_by_label("Acted on (suggested)")).to_have_value("called")
    page.get_by_label("Id of the person").select_option("who")
    page.get_by_role("checkbox", name="yes").check()
    page.get_by_label("low", exact=True).fill("0")
    page.get_by_label("high", exact=True).fill("1")
    assert page.evaluate("document.scrollingElement.scrollWidth") <= PHONE["viewport"]["width"]
    page.get_by_role("button", name="Show what it says").tap()
    summary = page.locator("section", has=page.get_by_role("heading", name="In short"))
    expect(summary).to_contain_text("3 actions a round bring", timeout=WAIT_MS)
    picture = page.locator("img.figure").first
    assert picture.evaluate("(image) => image.naturalWidth") > 0
    assert page.evaluate("document.scrollingElement.scrollWidth") <= PHONE["viewport"]["width"]
    with page.expect_download() as saving:
        page.get_by_role("link", name="Save the page").tap()
    assert saving.value.suggested_filename == "history.html"

    page.get_by_role("link", name="Start a program from it").tap()
    expect(page.get_by_label("State 2", exact=True)).to_have_value("high")
    page.get_by_label("Name of the program").fill("from-history")
    page.get_by_role("button", name="Create program").tap()
    page.wait_for_url("**/programs/from-history/states#main")
    config = open_server.desk.program("from-history").config
    assert (config.states, config.rewards, config.budget) == (("low", "high"), (0.0, 1.0), 3)
