"""A real browser: how to find it, and windows that collect problems.

A problem is a request to another host, an error on the console, a violation of the content security policy, an error in
a script, or a dialog. Host names other than the server's do not resolve.
"""

import os
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Locator, Page, Request, TimeoutError, WebError

NAMES = ("chromium", "chromium-browser", "google-chrome")
MISSING = "no browser found: `make browser` installs one; RESTIVE_NO_BROWSER=1 leaves these tests out"
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
TIMEOUT_MS = 90_000  # a busy machine is slow; nothing waits longer than it must
LISTEN = """addEventListener("securitypolicyviolation", (event) =>
    console.error(`forbidden by ${event.effectiveDirective}: ${event.blockedURI}`))"""
REFUSED = re.compile(r"Failed to load resource: the server responded with a status of (\d+)")
PHONE: dict[str, Any] = {
    "viewport": {"width": 360, "height": 740},
    "has_touch": True,
    "is_mobile": True,
    "device_scale_factor": 2,
}


def find_browser() -> str | None:
    """The path of the browser, None if there is none."""
    return os.environ.get("RESTIVE_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)


def need_browser() -> str:
    """The path of the browser; without one the test fails, unless RESTIVE_NO_BROWSER is set."""
    if os.environ.get("RESTIVE_NO_BROWSER"):
        pytest.skip("RESTIVE_NO_BROWSER is set")
    found = find_browser()
    if found is None:
        pytest.fail(MISSING, pytrace=False)
    return found


class Window:
    """The browser of one person: tabs share their cookies. `refused` are the error statuses that the test expects."""

    def __init__(self, chromium: Browser, place: str, refused: Sequence[int] = (), **given: Any) -> None:
        self.context = chromium.new_context(base_url=place, **{"viewport": {"width": 1280, "height": 900}, **given})
        self.context.set_default_timeout(TIMEOUT_MS)
        self.context.add_init_script(LISTEN)
        self.problems: list[str] = []
        self._place, self._refused = place, refused
        self.context.on("request", self._on_request)
        self.context.on("console", self._on_console)
        self.context.on("weberror", self._on_error)
        self.context.on("dialog", self._on_dialog)

    def tab(self, path: str = "/") -> Page:
        """A new tab that shows a page."""
        page = self.context.new_page()
        page.goto(path)
        return page

    def _on_request(self, request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme != "data" and f"{address.scheme}://{address.netloc}" != self._place:
            self.problems.append(f"asked for {request.url}")

    def _on_console(self, message: ConsoleMessage) -> None:
        refused = REFUSED.match(message.text)
        if message.type in ("error", "warning") and not (refused and int(refused[1]) in self._refused):
            self.problems.append(f"{urlsplit(message.location['url']).path}: {message.text}")

    def _on_error(self, error: WebError) -> None:
        self.problems.append(str(error.error))

    def _on_dialog(self, dialog: Dialog) -> None:
        self.problems.append(f"a dialog: {dialog.message}")
        dialog.dismiss()


def walk_to(page: Page, wanted: Locator, steps: int = 60) -> None:
    """Press Tab until the focus is on `wanted`; every stop on the way is visible and shows its focus."""
    for _ in range(steps):
        page.keyboard.press("Tab")
        seen = page.evaluate(
            """() => { const at = document.activeElement, style = getComputedStyle(at);
            return at === document.body || (at.checkVisibility() && style.outlineStyle !== "none") }"""
        )
        assert seen, page.evaluate("document.activeElement.outerHTML")
        if wanted.evaluate("(element) => element === document.activeElement"):
            return
    raise AssertionError(f"the keyboard does not lead to {wanted}")


def choose_by_keyboard(page: Page, field: Locator, file: Path) -> None:
    """Choose a file without a mouse."""
    walk_to(page, field)
    for key in ("Enter", "Space", "Enter"):  # a busy machine sometimes ignores the first press
        with suppress(TimeoutError):
            with page.expect_file_chooser(timeout=TIMEOUT_MS / 9) as choosing:
                page.keyboard.press(key)
            choosing.value.set_files(file)
            return
    raise AssertionError("no key opens the file chooser")
