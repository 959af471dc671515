"""An export with columns of its own: the check page asks once which column is which, with and without JavaScript."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from server.browser.conftest import Live, Windows
from server.browser.shop import DECIDE, at, save
from server.browser.test_lead import set_up

EXPORT = "\n".join(["Customer;Zone;Days since order", *(f"+91 98200-{n:05};north;{n * 7 % 120}" for n in range(30))])


def upload(page: Page, file: Path, button: str | re.Pattern[str]) -> None:
    page.get_by_label("File", exact=True).set_input_files(file)
    page.get_by_role("button", name=button, exact=True).click()


@pytest.mark.parametrize("scripts", [True, False])
def test_an_export_is_read_after_its_columns_are_confirmed_once(
    open_server: Live, windows: Windows, tmp_path: Path, scripts: bool
) -> None:
    name = f"exports-{scripts}".lower()
    page = windows(open_server, refused=[422], java_script_enabled=scripts).tab()
    set_up(page, name)
    file = save(tmp_path, EXPORT, "export.csv")
    upload(page, file, "Check")
    expect(page.get_by_role("alert")).to_contain_text("which column has the id")
    expect(page.get_by_label("Id (suggested)")).to_have_value("Customer")
    expect(page.get_by_role("img", name="Histogram of Days since order, from 0 to 119")).to_be_visible()
    page.get_by_label("Group (suggested)").select_option("None")
    page.get_by_label("Cut point 1").fill("30")
    page.get_by_label("Cut point 2").fill("90")
    page.get_by_label("Calling code of their country").fill("91")
    upload(page, file, "Check with these columns")
    expect(page.get_by_text("The table is valid")).to_be_visible()
    assert open_server.desk.program(name).config.columns == {}
    upload(page, file, DECIDE)
    page.wait_for_url("**/list#main")
    config = open_server.desk.program(name).config
    assert config.columns == {"agent": "Customer"}
    assert str(config.cut_points) == "Days since order: 30, 90, more is worse"
    assert open_server.desk.program(name).names.call([0]) == ["+919820000000"]

    page.goto(at(name, "states"))
    upload(page, save(tmp_path, EXPORT.replace(";7\n", ";100\n"), "export.csv"), "Check")
    expect(page.get_by_text("The table is valid")).to_be_visible()
    upload(page, tmp_path / "export.csv", DECIDE)
    page.wait_for_url("**/list#main")
    page.goto(at(name, "settings"))
    expect(page.get_by_label("Columns with another name")).to_have_value("agent=Customer\n")
