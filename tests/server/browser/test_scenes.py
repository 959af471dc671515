"""Every scene: no violation that axe finds, nothing wider than the screen, no target too small for a finger."""

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Page

from restive.desk.tokens import open_session
from restive.server.app import make_app
from restive.server.settings import Settings
from server.browser.chromium import PHONE, Window
from server.browser.conftest import Live, Windows
from server.browser.scenes import SCENES, Scene, find_pages, name_scene

WIDTHS = (320, 375, 768, 900, 1400)
DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 900}}
TABLET: dict[str, Any] = {"viewport": {"width": 768, "height": 1024}, "has_touch": True}
# Swagger UI at /api is vendored: its markup and its layout are not ours to change.
OURS = [scene for scene in SCENES if scene.route != "/api"]
FIRST = {scene.route: scene for scene in reversed(OURS)}  # the first of each page
REFUSED = (401, 404, 422)  # expected in scenes
# WCAG 2.2 AA (2.5.8): 24 px, except for links within a sentence; 44 px for buttons.
SMALL = """() => {
    const small = [];
    for (const each of document.querySelectorAll("a[href], button, input, select, textarea, summary")) {
        const target = each.closest("label") ?? each, style = getComputedStyle(target);
        if (!target.checkVisibility({visibilityProperty: true}) || target.matches(".skip, [type=hidden]")) continue;
        if (document.querySelector(":popover-open") && !target.closest(":popover-open")) continue;
        const around = target.parentElement.textContent.trim() !== target.textContent.trim();
        if (style.display === "inline" && around && !target.closest("td, th, li")) continue;
        target.scrollIntoView({block: "center", inline: "center"});
        const box = target.getBoundingClientRect(), x = box.x + box.width / 2, y = box.y + box.height / 2;
        const hit = (right, down) => target.contains(document.elementFromPoint(x + right, y + down));
        const wide = box.width >= 24 || (hit(-11.5, 0) && hit(11.5, 0));
        const high = box.height >= 24 || (hit(0, -11.5) && hit(0, 11.5));
        const button = target.matches(".button, button:not(.why)");
        const fits = wide && high && (!button || box.height >= 44);
        if (!fits) small.push(`${target.outerHTML.slice(0, 120)} ${box.width}x${box.height}`);
    }
    return small;
}"""

# Tables whose header has another number of columns than a row: a cell is hidden in one of them only.
SHIFTED = """() => {
    const visible = (cell) => !["none", "block"].includes(getComputedStyle(cell).display);
    const columns = (row) => [...row.cells].filter(visible).reduce((sum, cell) => sum + cell.colSpan, 0);
    const shifted = [];
    for (const table of document.querySelectorAll("table")) {
        if (!table.tHead || !table.checkVisibility() || getComputedStyle(table.tHead).position === "absolute") continue;
        const heads = columns(table.tHead.rows[0]);
        for (const row of table.tBodies[0].rows) {
            const divides = row.cells.length === 1 && row.cells[0].colSpan >= heads;
            if (columns(row) !== heads && !divides) {
                shifted.push(`${heads} heads, ${columns(row)} cells: ${row.textContent.slice(0, 80)}`);
                break;
            }
        }
    }
    return shifted;
}"""

# Charts are redrawn in the frame after a change of the width.
SETTLED = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"

BROKEN = """() => {
    const broken = document.querySelector("main");
    broken.innerHTML = `<h1>Broken</h1><div></div><button>x</button><img src="http://example.org/x.png">
        <table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table>`;
    Object.assign(broken.querySelector("div").style, {width: "600px", height: "1px"});
    Object.assign(broken.querySelector("button").style, {minHeight: "0", height: "20px", padding: "0"});
}"""


def play(window: Window, live: Live, scenes: Iterable[Scene]) -> Iterator[tuple[Scene, Page]]:
    """Show scenes one after the other, to an admin or without a session."""
    page = window.context.new_page()
    cookie: Any = {
        "name": "restive_session",
        "value": open_session(live.desk.store, live.tokens["admin"]),
        "url": live.place,
    }
    for scene in scenes:
        window.context.clear_cookies()
        if scene.signed_in:
            window.context.add_cookies([cookie])
        scene.show(page)
        yield scene, page


def find_faults(page: Page) -> list[str]:
    """The violations that axe finds."""
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [f"{fault['id']}: {node['html'][:200]}" for fault in found for node in fault["nodes"]]


def find_overflow(page: Page, widths: Iterable[int]) -> list[int | str]:
    """The widths at which a page scrolls sideways, and the tables whose header is shifted."""
    over: list[int | str] = []
    for width in widths:
        page.set_viewport_size({"width": width, "height": 740})
        page.evaluate(SETTLED)
        if page.evaluate("document.scrollingElement.scrollWidth") > width:
            over.append(width)
        over += [f"{width}: {table}" for table in page.evaluate(SHIFTED)]
    return over


def test_every_page_of_the_server_has_a_scene(closed_server: Live) -> None:
    app = make_app(closed_server.desk, Settings(log="none"))
    assert set(find_pages(app.routes)) == {scene.route for scene in SCENES}
    app.state.programs.close()


def check_fit(window: Window, live: Live, scenes: Iterable[Scene]) -> None:
    """Check scenes at several widths."""
    found: dict[str, list[Any]] = {}
    for scene, page in play(window, live, scenes):
        if faults := [*page.evaluate(SMALL), *find_overflow(page, WIDTHS)]:
            found[name_scene(scene)] = faults
        page.set_viewport_size(PHONE["viewport"])
    assert found == {}


def check_access(window: Window, live: Live, scenes: Iterable[Scene]) -> None:
    """Check scenes with axe."""
    found = {name_scene(scene): find_faults(page) for scene, page in play(window, live, scenes)}
    assert {name: faults for name, faults in found.items() if faults} == {}


def test_pages_fit_their_screen_and_fingers(closed_server: Live, windows: Windows) -> None:
    check_fit(windows(closed_server, REFUSED, **PHONE), closed_server, FIRST.values())


@pytest.mark.soak
def test_pages_fit_their_screen_and_fingers_whatever_is_done_on_them(closed_server: Live, windows: Windows) -> None:
    check_fit(windows(closed_server, REFUSED, **PHONE), closed_server, OURS)


SAMPLES = {  # always checked, on two screens; the rest is for `make soak`
    "phone": (
        PHONE,
        "dark",
        ("/programs/odd/list", "/programs/demo/list", "/programs/demo/states wrong", "/programs/demo/status asked"),
    ),
    "desktop": (
        DESKTOP,
        "light",
        ("/programs/new/status", "/programs/demo/results", "/programs/odd/states right", "/login refused"),
    ),
}


@pytest.mark.parametrize("screen", SAMPLES)
def test_axe_finds_no_violation_on_sample_pages(closed_server: Live, windows: Windows, screen: str) -> None:
    shape, scheme, names = SAMPLES[screen]
    scenes = [scene for scene in OURS if name_scene(scene) in names]
    assert len(scenes) == len(names)
    check_access(windows(closed_server, REFUSED, color_scheme=scheme, **shape), closed_server, scenes)


@pytest.mark.soak
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", [PHONE, TABLET, DESKTOP], ids=["phone", "tablet", "desktop"])
def test_axe_finds_no_violation_on_any_page(
    closed_server: Live, windows: Windows, screen: dict[str, Any], scheme: str
) -> None:
    check_access(windows(closed_server, REFUSED, color_scheme=scheme, **screen), closed_server, OURS)


def test_the_checks_notice_a_broken_page(closed_server: Live, windows: Windows) -> None:
    window = windows(closed_server)
    ((_, page),) = play(window, closed_server, [FIRST["/glossary"]])
    page.evaluate(BROKEN)
    assert [fault.partition(":")[0] for fault in find_faults(page)] == ["image-alt"]
    assert "<button" in page.evaluate(SMALL)[0]
    shifted = [f"{width}: 2 heads, 1 cells: 1" for width in WIDTHS]
    assert find_overflow(page, WIDTHS) == [320, shifted[0], 375, *shifted[1:]]
    page.evaluate("console.error('a fault')")
    problems = "\n".join(window.problems)
    window.problems.clear()
    for said in ("asked for http://example.org/x.png", "forbidden by img-src", "a fault"):
        assert said in problems
