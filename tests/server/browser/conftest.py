"""One browser and two servers in their own processes: `open_server` without sign-in, `closed_server` with tokens."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from restive.desk import Desk
from restive.desk.demo import run_demo
from restive.desk.tokens import make_token
from server.browser.chromium import QUIET, TIMEOUT_MS, Window, need_browser
from server.browser.scenes import HOSTILE
from server.running import Command

ROLES = ("viewer", "operator", "admin")
Windows = Callable[..., Window]


@dataclass(frozen=True)
class Live:
    """A running server and its store."""

    place: str
    desk: Desk
    tokens: dict[str, str] = field(default_factory=dict)


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """The browser; it ends with this folder, because other tests run their own event loops."""
    program = need_browser()
    expect.set_options(timeout=TIMEOUT_MS)
    with sync_playwright() as playing:
        browser = playing.chromium.launch(executable_path=program, args=[*QUIET])
        yield browser
        browser.close()


@contextmanager
def run_server(place: Path, desk: Desk, **tokens: str) -> Iterator[Live]:
    with Command("--store", str(place), "--log", "none", "--rate", "100000") as command:
        yield Live(command.address(), desk, tokens)


@pytest.fixture(scope="package")
def open_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """An open server over an empty store; each test creates its own program."""
    place = tmp_path_factory.mktemp("open") / "desk.db"
    with Desk(place) as desk, run_server(place, desk) as live:
        yield live


@pytest.fixture(scope="package")
def closed_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A server with tokens and three programs: `demo`, `odd` with hostile ids, and `new` without a round."""
    place = tmp_path_factory.mktemp("closed") / "desk.db"
    with Desk(place) as desk:
        run_demo(desk, "demo", agents=60, rounds=5, budget=6)
        odd = desk.create("odd", states=["low", "high"], rewards=[0, 1], policy="egt", budget=4, control=0.0)
        odd.decide([{"agent": agent, "state": "low", "group": agent[:44]} for agent in HOSTILE])
        odd.learn([{"agent": agent, "done": True, "next_state": "high"} for agent in HOSTILE[:2]])
        desk.create("new", template="e-learning")
        tokens = {role: make_token(desk.store, f"the-{role}", {None: role}) for role in ROLES}
        with run_server(place, desk, **tokens) as live:
            yield live


@pytest.fixture
def windows(chromium: Browser) -> Iterator[Windows]:
    """Opens windows and closes them; the test fails if any of them has a problem."""
    opened: list[Window] = []

    def open_window(live: Live, refused: Sequence[int] = (), **given: Any) -> Window:
        opened.append(Window(chromium, live.place, refused, **given))
        return opened[-1]

    yield open_window
    for window in opened:
        window.context.close()
    assert [said for window in opened for said in window.problems] == []
