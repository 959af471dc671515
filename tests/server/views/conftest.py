"""A server with three programs: `demo` with simulated people, `odd` with hostile ids, and `new` without a round."""

import asyncio
from collections.abc import Iterator

import pytest

from restive.desk import Desk
from restive.desk.demo import run_demo
from restive.desk.tokens import make_token
from restive.server.app import make_app
from restive.server.settings import Settings
from server.views.browsing import ROLES, Browser, Site

HOSTILE = (
    "<script>alert(1)</script>",
    "../x",
    "quo\"te's&amp;",
    "{{7*1234567}}",
    "a b/c?d=e#f%2e",
    "<img src=x onerror=alert(1)>",
    "=1+1",
    "größe",
)


@pytest.fixture(scope="session")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The server, which tests only read."""
    folder = tmp_path_factory.mktemp("played")
    with Desk(folder / "desk.db") as desk, asyncio.Runner() as runner:
        run_demo(desk, "demo", agents=60, rounds=5, budget=6)
        odd = desk.create("odd", states=["low", "high"], rewards=[0, 1], policy="egt", budget=5, control=0.0)
        odd.decide([{"agent": agent, "state": "low", "group": agent[:6]} for agent in HOSTILE])
        odd.learn([{"agent": agent, "done": True, "next_state": "high"} for agent in HOSTILE[:4]])
        desk.create("new", states=["low", "high"], budget=5)
        tokens = {role: make_token(desk.store, f"the-{role}", {None: role}) for role in ROLES}
        tokens["limited"] = make_token(desk.store, "limited", {"new": "viewer"})
        app = make_app(desk, Settings(log="none", rate=1e6, burst=10**6, max_sign_ins_per_minute=10**6))
        yield Site(desk, app, runner, tokens)
        app.state.programs.close()


@pytest.fixture(scope="session")
def viewer(played: Site) -> Browser:
    """A viewer of all programs."""
    return played.browser("viewer")


@pytest.fixture(scope="session")
def admin(played: Site) -> Browser:
    """An admin of all programs."""
    return played.browser("admin")
