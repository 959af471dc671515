"""A program lead on her own machine: from a new program to the list, outcomes and lift."""

from pathlib import Path

import polars as pl
import pytest
from playwright.sync_api import Page, expect

from server.browser.chromium import PHONE, choose_by_keyboard, walk_to
from server.browser.conftest import Live, Windows
from server.browser.shop import CUSTOMERS, DECIDE, at, check, make_shop, save, table_of_outcomes, table_of_states

DRAWN = """(canvas) => {
    const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height), colours = new Set();
    for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 200) colours.add(data.slice(i, i + 3).join());
    return colours.size;
}"""

WRONG = (("5", "agent", "empty"), ("7", "agent", "'C-004' appears twice"))


def test_a_lead_creates_a_program_corrects_her_table_and_gets_a_list(
    open_server: Live, windows: Windows, tmp_path: Path
) -> None:
    page = windows(open_server, refused=[422]).tab()
    set_up(page, "spring-sale")
    right = table_of_states()
    wrong = right.replace("C-003,", ",").replace("C-005,", "C-004,").replace("buying", "buyng", 1)
    found = check(page, save(tmp_path, wrong))
    expect(found).to_contain_text("The table has 2 errors. Nothing was recorded.")
    expect(page.locator("#preview")).to_contain_text("which state each of these texts means: buyng (row 3)")
    expect(page.get_by_label("buyng")).to_have_value("buying")
    for row, column, sentence in WRONG:
        line = found.get_by_role("row").filter(has=page.get_by_role("cell", name=row, exact=True))
        expect(line.get_by_role("cell", name=column, exact=True)).to_be_visible()
        expect(line).to_contain_text(sentence)
    assert open_server.desk.program("spring-sale").rounds == []

    expect(check(page, save(tmp_path, right))).to_contain_text("The table is valid")
    assert open_server.desk.program("spring-sale").rounds == []
    page.get_by_role("button", name=DECIDE).click()
    page.wait_for_url("**/list#main")
    expect(page.get_by_role("status").first).to_contain_text("(round 1) is decided: 5 customers on the list.")
    expect(page.get_by_role("heading", level=1)).to_have_text("5 customers to send a discount to")
    recommendation = open_server.desk.program("spring-sale").recommendation(1)
    expect(page.locator("td.first a")).to_have_text(recommendation.table["agent"].to_list())
    (reason,) = recommendation.table["reason"].unique()
    expect(page.get_by_text(reason)).to_have_count(1)


def set_up(page: Page, name: str) -> None:
    """Create a program from the template for shops."""
    page.get_by_role("link", name="New program").or_(page.get_by_role("link", name="Create the first")).first.click()
    page.get_by_role("link", name="E-commerce").click()
    page.get_by_label("Name of the program").fill(name)
    page.get_by_label("Budget", exact=True).fill("5")
    page.get_by_role("button", name="Create program").click()
    page.wait_for_url(f"**{at(name, 'states')}#main")


@pytest.mark.parametrize(("kind", "link"), [("csv", "all columns"), ("xlsx", "All columns")])
def test_the_downloaded_list_is_the_list_of_the_store(
    open_server: Live, windows: Windows, tmp_path: Path, kind: str, link: str
) -> None:
    name = f"saved-{kind}"
    reported = make_shop(open_server.desk, name, months=2).recommendation(2).table
    page = windows(open_server).tab(at(name, "list"))
    with page.expect_download() as saving:
        page.get_by_role("link", name=link, exact=True).click()
    file = tmp_path / saving.value.suggested_filename
    saving.value.save_as(file)
    assert file.stem == f"{name}-round-2-all"
    saved = pl.read_excel(file) if kind == "xlsx" else pl.read_csv(file)
    assert saved.columns == [*reported.columns, "done", "next_state"]
    for column in ("round", "rank", "agent", "state_now", "list", "reason"):
        assert saved[column].cast(pl.String).to_list() == reported[column].cast(pl.String).to_list()
    assert saved["probability"].to_list() == pytest.approx(reported["probability"].to_list())


def test_paper_has_the_list_with_boxes_and_no_navigation(open_server: Live, windows: Windows) -> None:
    make_shop(open_server.desk, "printed", months=1)
    page = windows(open_server).tab(at("printed", "list"))
    navigation, boxes = page.get_by_role("navigation", name="printed"), page.locator("td.paper").first
    expect(navigation).to_be_visible()
    expect(boxes).to_be_hidden()
    page.set_viewport_size({"width": 718, "height": 1000})  # A4 without margins
    page.emulate_media(media="print")
    expect(navigation).to_be_hidden()
    expect(page.get_by_role("button")).to_have_count(0)
    expect(page.get_by_role("link", name="Call list", exact=True)).to_be_hidden()
    expect(page.get_by_text("0 of 5 marked")).to_be_hidden()
    expect(page.locator("td.first").first).to_be_visible()
    expect(boxes).to_be_visible()
    expect(page.locator("thead th.paper")).to_have_text(["Done?", "Next state"])
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_outcomes_of_several_rounds_show_the_lift(open_server: Live, windows: Windows, tmp_path: Path) -> None:
    program = make_shop(open_server.desk, "followed", months=3)
    page = windows(open_server).tab(at("followed", "status"))
    page.get_by_role("link", name="Report outcomes").first.click()
    page.get_by_label("Round", exact=True).select_option("")
    found = check(page, save(tmp_path, table_of_outcomes(program)))
    expect(found).to_contain_text("1, 2, 3")
    page.get_by_role("button", name="Record for").click()
    page.wait_for_url("**/status#main")
    lines = open_server.desk.program("followed").rounds
    assert [line.outcomes for line in lines] == [CUSTOMERS] * 3
    page.get_by_role("navigation", name="followed").get_by_role("link", name="Results").click()
    works = page.locator("section", has=page.get_by_role("heading", name="Does it work?"))
    expect(works).to_contain_text("95% interval")
    expect(works.get_by_role("img")).to_be_visible()
    expect(page.locator(".plot canvas")).to_have_count(2)
    assert [canvas.evaluate(DRAWN) > 3 for canvas in page.locator(".plot canvas").all()] == [True, True]


def test_the_navigation_leads_to_rounds_people_shadow_and_audit_log(open_server: Live, windows: Windows) -> None:
    program = make_shop(open_server.desk, "looked-into", months=2)
    program.learn(pl.read_csv(table_of_outcomes(program).encode()))
    page = windows(open_server).tab()
    page.get_by_role("link", name="looked-into").click()
    sections = page.get_by_role("navigation", name="looked-into")
    sections.get_by_role("link", name="Rounds").click()
    page.get_by_role("row").filter(has_text="round 2, decided").get_by_role("link").first.click()
    heading = page.get_by_role("heading", level=1)
    expect(page.get_by_role("main")).to_contain_text("Round 2, decided")
    someone = program.recommendation(2).chosen[0]
    page.get_by_role("link", name=someone).click()
    expect(heading).to_have_text(someone)
    expect(page.locator(".timeline tbody tr")).to_have_count(2)
    sections.get_by_role("link", name="Shadow").click()
    expect(heading).to_have_text("Would another policy do better?")
    expect(page.get_by_role("definition").filter(has_text="of the list")).to_contain_text("100%")
    sections.get_by_role("link", name="Audit log").click()
    expect(page.get_by_role("row", name="library").first).to_contain_text("80 recorded")


def test_on_a_phone_four_places_are_visible_and_the_rest_is_in_a_menu(open_server: Live, windows: Windows) -> None:
    make_shop(open_server.desk, "small-screen", months=1)
    for scripts in (True, False):
        window = windows(open_server, java_script_enabled=scripts, **PHONE)
        page = window.tab(at("small-screen", "status"))
        sections = page.get_by_role("navigation", name="small-screen")
        expect(sections.get_by_role("link")).to_have_text(["Home", "This month", "Customers", "Results"])
        sections.get_by_text("More").tap()
        expect(sections.get_by_role("link", name="Settings")).to_be_visible()
        if scripts:
            page.keyboard.press("Escape")
            expect(sections.get_by_role("link", name="Settings")).to_be_hidden()
            sections.get_by_text("More").tap()
        sections.get_by_role("link", name="Settings").tap()
        page.wait_for_url("**/settings")
        sections.get_by_role("link", name="This month").tap()
        page.wait_for_url("**/list")
        expect(sections.locator("[aria-current]").filter(visible=True)).to_have_text("This month")


def test_a_definition_opens_and_closes_by_keyboard(open_server: Live, windows: Windows) -> None:
    make_shop(open_server.desk, "asked")
    page = windows(open_server).tab(at("asked", "states"))
    mark = page.get_by_role("button", name="What does “Budget” mean?")
    meaning = page.locator(".meaning:popover-open")
    walk_to(page, mark)
    page.keyboard.press("Enter")
    expect(meaning).to_contain_text("How many people the team can act on in one round")
    page.keyboard.press("Escape")
    expect(meaning).to_have_count(0)
    expect(mark).to_be_focused()
    page.keyboard.press("Space")
    expect(meaning).to_be_visible()
    page.keyboard.press("Tab")
    expect(meaning.get_by_role("link", name="Glossary")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{open_server.place}/glossary#budget")


def test_a_round_is_decided_by_keyboard_alone(open_server: Live, windows: Windows, tmp_path: Path) -> None:
    make_shop(open_server.desk, "typed", months=1)
    page = windows(open_server).tab(at("typed", "status"))
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    walk_to(page, page.get_by_role("main").get_by_role("link", name="Decide the round"))
    page.keyboard.press("Enter")
    page.wait_for_url("**/states")
    choose_by_keyboard(page, page.get_by_label("File", exact=True), save(tmp_path, table_of_states(5)))
    walk_to(page, page.get_by_label("Budget", exact=True))
    page.keyboard.type("4")
    walk_to(page, page.get_by_role("button", name="Check", exact=True))
    page.keyboard.press("Enter")
    decide = page.get_by_role("button", name=DECIDE)
    decide.wait_for()
    walk_to(page, decide)
    page.keyboard.press("Enter")
    page.wait_for_url("**/list#main")
    assert len(open_server.desk.program("typed").recommendation(2).chosen) == 4
