"""Pages in a real browser: no violation that axe finds, nothing wider than the screen, charts, print."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Page, sync_playwright

from restive.desk.tokens import open_session
from restive.server.app import make_app
from restive.server.settings import Settings
from server.browser.chromium import QUIET, need_browser
from server.running import run_server
from server.views.browsing import Site

PAGES = (
    "/",
    "/programs/demo/status",
    "/programs/demo/list",
    "/programs/demo/rounds",
    "/programs/demo/rounds/5",
    "/programs/demo/people",
    "/programs/demo/person?agent=pharmacist-03",
    "/programs/demo/shadow",
    "/programs/new/status",
    "/programs/odd/people",
    "/glossary",
)
MAIN = ("/programs/demo/status", "/programs/demo/list")


@pytest.fixture(scope="module")
def place(played: Site) -> Iterator[str]:
    """The URL of another server over the same store, on a real socket."""
    app = make_app(played.desk, Settings(log="none", rate=1e6, burst=10**6))
    with run_server(app, app.state.settings) as (host, port):
        yield f"http://{host}:{port}"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chromium]:
    with sync_playwright() as playing:
        browser = playing.chromium.launch(executable_path=need_browser(), args=[*QUIET])
        yield browser
        browser.close()


def open_page(chromium: Chromium, played: Site, place: str, width: int = 1280, **given: object) -> Page:
    """A tab of an admin."""
    context = chromium.new_context(viewport={"width": width, "height": 800}, **given)  # type: ignore[arg-type]
    cookie = open_session(played.desk.store, played.tokens["admin"]) or ""
    context.add_cookies(
        [{"name": "restive_session", "value": cookie, "domain": urlsplit(place).hostname or "", "path": "/"}]
    )
    return context.new_page()


def check_looks(chromium: Chromium, played: Site, place: str, paths: tuple[str, ...], width: int, scheme: str) -> None:
    page = open_page(chromium, played, place, width, color_scheme=scheme)
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    for path in paths:
        page.goto(place + path, wait_until="networkidle")
        faults = Axe().run(page).response["violations"]
        assert [(fault["id"], fault["nodes"][0]["html"]) for fault in faults] == [], path
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path
    assert said == []
    page.context.close()


def test_the_main_pages_have_no_faults_on_a_phone(chromium: Chromium, played: Site, place: str) -> None:
    check_looks(chromium, played, place, MAIN, 360, "dark")


@pytest.mark.soak
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 768, 1280])
def test_no_page_has_faults_on_any_screen(
    chromium: Chromium, played: Site, place: str, width: int, scheme: str
) -> None:
    check_looks(chromium, played, place, PAGES, width, scheme)


def test_charts_are_drawn_and_a_definition_opens_in_place(chromium: Chromium, played: Site, place: str) -> None:
    page = open_page(chromium, played, place)
    page.goto(f"{place}/programs/demo/status", wait_until="networkidle")
    assert page.locator(".plot canvas").count() == 2
    page.get_by_role("button", name="What does “Lift” mean?").first.click()
    opened = page.locator(".meaning:popover-open")
    assert opened.is_visible()
    assert page.url.endswith("/status")
    page.keyboard.press("Escape")
    assert opened.count() == 0
    page.context.close()


def test_pages_work_without_scripts(chromium: Chromium, played: Site, place: str) -> None:
    page = open_page(chromium, played, place, java_script_enabled=False)
    page.goto(f"{place}/programs/demo/status")
    assert not page.locator(".plot").first.is_visible()
    page.get_by_text("Show the numbers as a table").click()
    assert page.get_by_role("cell").first.is_visible()
    page.goto(f"{place}/programs/demo/list")
    assert not page.get_by_role("button", name="Print").is_visible()
    page.context.close()


def test_paper_has_the_list_and_boxes_and_no_buttons(chromium: Chromium, played: Site, place: str) -> None:
    page = open_page(chromium, played, place)
    page.goto(f"{place}/programs/demo/list")
    assert not page.locator("td.paper").first.is_visible()
    page.set_viewport_size({"width": 718, "height": 1000})  # A4 without margins
    page.emulate_media(media="print")
    assert page.locator("thead th.paper").all_inner_texts() == ["Done?", "Next state"]
    assert page.locator("thead th.paper").first.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.locator("td.paper").first.is_visible()
    assert not page.locator("header.top").is_visible()
    assert not page.get_by_role("link", name="CSV").is_visible()
    page.context.close()
