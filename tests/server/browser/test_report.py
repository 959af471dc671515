"""The report for a funder on paper: exactly one A4 page."""

import re

import pytest
from playwright.sync_api import expect

from server.browser.chromium import PHONE
from server.browser.conftest import Live, Windows
from server.browser.shop import at
from server.browser.test_sessions import sign_in


@pytest.mark.parametrize("program", ["demo", "odd", "new"])
def test_the_report_prints_on_one_page(closed_server: Live, windows: Windows, program: str) -> None:
    page = windows(closed_server).tab(at(program, "report"))
    sign_in(page, closed_server.tokens["viewer"])
    page.goto(at(program, "report"))
    paper = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", paper)) == 1
    box = re.search(rb"/MediaBox\s*\[0 0 ([\d.]+) ([\d.]+)\]", paper)
    assert box is not None
    assert (round(float(box[1])), round(float(box[2]))) == (595, 842)


def test_the_report_has_the_same_tables_on_a_phone(closed_server: Live, windows: Windows) -> None:
    page = windows(closed_server, **PHONE).tab(at("demo", "report"))
    sign_in(page, closed_server.tokens["viewer"])
    page.goto(at("demo", "report"))
    expect(page.get_by_role("columnheader", name="Control, last")).to_be_visible()
    page.set_viewport_size({"width": 320, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") == 320
