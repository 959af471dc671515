"""Scenes: each page of the server, and what it shows after a user has done something on it.

A scene is a URL and what to do there. `find_pages` reads the pages from the server, so that a page without a scene is
noticed.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

from playwright.sync_api import Page, expect
from starlette.routing import BaseRoute

from server.browser.shop import at, check

FILES = (
    "/programs/{name}/list.{kind}",
    "/programs/{name}/missing.{kind}",
    "/history.{kind}",
    "/help/pictures/{file}",
    "/audit.{kind}",
    "/programs/{name}/calendar.ics",
    "/programs/{name}/export.zip",
    "/programs/{name}/tables/",
)
OTHERS = ("/api/v1/", "/static/", "/health", "/ready", "/metrics", "/openapi.json", *FILES)
IMAGE = "<img src=x onerror=alert(1)>"
LONG = "anidwithoutanyplacetobreak" * 7
HOSTILE = (IMAGE, "<script>alert(1)</script>", "quo\"te's&amp;", "a b/c?d=e#f%2e", LONG)


class Scene(NamedTuple):
    """A route, a URL of it, and what to do there."""

    route: str
    path: str
    act: Callable[[Page], Any] = lambda page: None
    signed_in: bool = True
    called: str = ""

    def show(self, page: Page) -> None:
        """Go there and do it."""
        page.goto(self.path)
        self.act(page)


def find_pages(routes: Iterable[BaseRoute]) -> Iterator[str]:
    """The paths of all pages."""
    for route in routes:
        path = getattr(route, "path", None)
        if path and "GET" in getattr(route, "methods", ()) and not path.startswith(OTHERS) and ".json" not in path:
            yield path


def open_definition(page: Page) -> None:
    """Open the first definition."""
    page.locator("main .why").first.click()
    expect(page.locator(".meaning:popover-open")).to_be_visible()


def check_invalid(page: Page) -> None:
    """Check a table with many errors."""
    table = f"agent,state\n{IMAGE},low\n,silent\n{IMAGE},silent\n{LONG},{LONG}\n"
    expect(check(page, table)).to_contain_text("Nothing was recorded")


def check_columns(page: Page) -> None:
    """Check a table whose columns are not understood."""
    rows = "\n".join(f"{IMAGE}{n},{LONG},{n * n}" for n in range(20))
    expect(check(page, f"Customer,{LONG},days since order\n{rows}\n")).to_contain_text("did you mean 'Customer'?")
    expect(page.get_by_role("button", name="Check with these columns")).to_be_visible()


def check_valid(page: Page) -> None:
    """Check a valid table."""
    expect(check(page, f"agent,state\n{IMAGE},low\n{LONG},high\n")).to_contain_text("The table is valid")


def report(page: Page) -> None:
    """Check valid outcomes."""
    expect(check(page, f"agent,done,next_state\n{LONG},yes,high\n")).to_contain_text("The table is valid")


def press(button: str, **fields: str) -> Callable[[Page], None]:
    """Fill in fields, folded ones too, and press a button that reloads the page."""

    def act(page: Page) -> None:
        open_all(page)
        for label, value in fields.items():
            page.locator(f"#{label}").fill(value)
        page.get_by_role("button", name=button).click()
        expect(page.get_by_role("alert").or_(page.locator(".notice.warn")).first).to_be_visible()

    return act


def open_all(page: Page) -> None:
    """Open all details."""
    page.evaluate("document.querySelectorAll('main details').forEach((each) => each.open = true)")


def open_menu(page: Page) -> None:
    """Open the menu of further pages, where it is not visible already."""
    more = page.get_by_text("More", exact=True)
    if more.is_visible():
        more.click()
    expect(page.get_by_role("link", name="Settings")).to_be_visible()


def show_link(page: Page) -> None:
    """Make a new link for a user."""
    page.get_by_role("button", name="Make a new link").click()
    expect(page.locator(".qr svg")).to_be_visible()


PROGRAM = "/programs/{name}"
SCENES = (
    Scene("/", "/"),
    Scene("/login", "/login", signed_in=False),
    Scene("/login", "/login", press("Sign in", token="rst_0_wrong"), signed_in=False, called="refused"),
    Scene("/new", "/new"),
    Scene("/new", "/new?template=e-commerce", open_all),
    Scene("/new", "/new?template=own", press("Create program", name="no / name", budget="-3"), called="refused"),
    Scene("/history", "/history", open_all),
    Scene("/history", "/history", press("Show what it says", budgets="many"), called="refused"),
    Scene("/glossary", "/glossary#lift"),
    Scene("/help", "/help"),
    Scene("/help/{topic}", "/help/pages#settings"),
    Scene("/help/{topic}", "/help/api"),
    Scene("/api", "/api"),
    Scene("/audit", "/audit"),
    Scene("/users", "/users"),
    Scene("/users", "/users", press("Invite", name="no / name"), called="refused"),
    Scene("/users/{user}", "/users/the-viewer"),
    Scene("/users/{user}", "/users/the-viewer", show_link, called="link"),
    Scene("/join", "/join", signed_in=False),
    Scene("/join", f"/join?code=rsi_1_{'a' * 43}", signed_in=False),
    Scene(f"{PROGRAM}/webhooks", at("demo", "webhooks"), open_all),
    Scene(f"{PROGRAM}/webhooks", at("demo", "webhooks"), press("Add", url="https://10.0.0.1/hook"), called="refused"),
    Scene(PROGRAM, "/programs/demo"),
    Scene(f"{PROGRAM}/week", at("new", "week")),
    Scene(f"{PROGRAM}/status", at("demo", "status")),
    Scene(f"{PROGRAM}/status", at("demo", "status"), open_definition, called="asked"),
    Scene(f"{PROGRAM}/status", at("demo", "status"), open_menu, called="menu"),
    Scene(f"{PROGRAM}/status", at("new", "status")),
    Scene(f"{PROGRAM}/status", at("odd", "status")),
    Scene(f"{PROGRAM}/list", at("demo", "list")),
    Scene(f"{PROGRAM}/list", at("demo", "list?round=2"), open_definition, called="asked"),
    Scene(f"{PROGRAM}/list", at("new", "list")),
    Scene(f"{PROGRAM}/list", at("odd", "list")),
    Scene(f"{PROGRAM}/rounds", at("demo", "rounds")),
    Scene(f"{PROGRAM}/rounds", at("new", "rounds")),
    Scene(f"{PROGRAM}/rounds/{{round}}", at("demo", "rounds/5")),
    Scene(f"{PROGRAM}/rounds/{{round}}", at("odd", "rounds/1")),
    Scene(f"{PROGRAM}/rounds/{{round}}", at("odd", "rounds/99"), called="missing"),
    Scene(f"{PROGRAM}/people", at("demo", "people")),
    Scene(f"{PROGRAM}/people", at("new", "people")),
    Scene(f"{PROGRAM}/people", at("odd", f"people?find={quote('<img src=x>')}"), called="nobody"),
    Scene(f"{PROGRAM}/people", at("odd", "people")),
    Scene(f"{PROGRAM}/person", at("demo", "person?agent=pharmacist-03")),
    Scene(f"{PROGRAM}/person", at("odd", f"person?agent={quote(IMAGE, safe='')}")),
    Scene(f"{PROGRAM}/person", at("odd", f"person?agent={LONG}")),
    Scene(f"{PROGRAM}/results", at("demo", "results"), open_all),
    Scene(f"{PROGRAM}/results", at("new", "results")),
    Scene(f"{PROGRAM}/results", at("odd", "results")),
    Scene(f"{PROGRAM}/unreached", at("demo", "unreached")),
    Scene(f"{PROGRAM}/unreached", at("odd", "unreached")),
    Scene(f"{PROGRAM}/report", at("demo", "report")),
    Scene(f"{PROGRAM}/report", at("new", "report")),
    Scene(f"{PROGRAM}/shadow", at("demo", "shadow")),
    Scene(f"{PROGRAM}/shadow", at("new", "shadow")),
    Scene(f"{PROGRAM}/states", at("demo", "states"), open_all),
    Scene(f"{PROGRAM}/states", at("demo", "states"), open_definition, called="asked"),
    Scene(f"{PROGRAM}/states", at("demo", "states"), check_invalid, called="wrong"),
    Scene(f"{PROGRAM}/states", at("odd", "states"), check_valid, called="right"),
    Scene(f"{PROGRAM}/states", at("odd", "states"), check_columns, called="columns"),
    Scene(f"{PROGRAM}/outcomes", at("demo", "outcomes?round=5")),
    Scene(f"{PROGRAM}/outcomes", at("new", "outcomes")),
    Scene(f"{PROGRAM}/outcomes", at("odd", "outcomes"), report, called="right"),
    Scene(f"{PROGRAM}/settings", at("demo", "settings")),
    Scene(f"{PROGRAM}/settings", at("odd", "settings"), press("Erase …", agent=LONG), called="sure"),
    Scene(f"{PROGRAM}/settings", at("new", "settings"), press("Remove", agents="nobody"), called="refused"),
    Scene(f"{PROGRAM}/audit", at("demo", "audit")),
)  # fmt: skip


def name_scene(scene: Scene) -> str:
    return f"{scene.path[:60]} {scene.called}".strip()
