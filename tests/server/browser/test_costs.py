"""A program whose visits cost kilometres: the form, the table with costs, the list and what was spent."""

from pathlib import Path

from playwright.sync_api import expect

from server.browser.chromium import PHONE
from server.browser.conftest import Live, Windows
from server.browser.shop import DECIDE, at, check

VISITS = "\n".join(["agent;state;km", *(f"house-{n};partial;{2 + n % 5 * 4},5" for n in range(20))])


def test_a_lead_plans_visits_by_distance(open_server: Live, windows: Windows, tmp_path: Path) -> None:
    page = windows(open_server, refused=[422]).tab()
    page.goto("/new")
    page.get_by_role("link", name="Maternal and community health calls").click()
    page.get_by_label("Name of the program").fill("visits")
    page.get_by_label("Budget", exact=True).fill("40")
    page.get_by_text("More settings").click()
    page.get_by_label("Unit of costs").fill("km")
    page.get_by_role("button", name="Create program").click()
    page.wait_for_url(f"**{at('visits', 'states')}#main")

    file = tmp_path / "visits.csv"
    file.write_text(VISITS, encoding="utf-8")
    check(page, file)
    expect(page.get_by_role("alert")).to_contain_text("The cost of 20 mothers is not known")
    expect(page.get_by_label("Cost (suggested)")).to_have_value("km")
    for button in ("Check with these columns", DECIDE):
        page.get_by_label("File", exact=True).set_input_files(file)
        page.get_by_role("button", name=button).click()
        if button != DECIDE:
            expect(page.get_by_text("The table is valid")).to_be_visible()
    page.wait_for_url("**/list#main")

    program = open_server.desk.program("visits")
    planned = program.recommendation(1).planned
    assert planned is not None
    assert 0 < planned <= 40
    listed = sorted(program.recommendation(1).chosen)
    costs = {f"house-{n}": 2.5 + n % 5 * 4 for n in range(20)}
    assert sum(costs[name] for name in listed) == planned
    phone = windows(open_server, **PHONE).tab(at("visits", "list"))
    for tab in (page, phone):
        expect(tab.get_by_text(f"the list costs {planned:g} km")).to_be_visible()
        for name in listed:
            row = tab.get_by_role("row").filter(has=tab.get_by_role("link", name=name, exact=True))
            expect(row).to_contain_text(f"{costs[name]:g} km")

    first = phone.get_by_role("row").filter(has=phone.get_by_role("link", name=listed[0], exact=True))
    first.get_by_label("Yes").check()
    expect(phone.get_by_text(f"1 of {len(listed)} marked")).to_be_visible()
    page.goto(at("visits", "status"))
    expect(page.get_by_text(f"1 done, {costs[listed[0]]:g} km spent; budget 40 km a round")).to_be_visible()
