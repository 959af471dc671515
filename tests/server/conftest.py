"""Servers to call: `caller` at an open one over SQLite, `anywhere` also over PostgreSQL, `live` on a real socket."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from desk.postgres import Postgres
from fastapi import FastAPI

from restive.desk import Desk
from restive.desk.tokens import make_token
from restive.server.app import make_app
from restive.server.settings import Settings
from server.calling import Caller
from server.running import run_server

SHOPS: dict[str, Any] = {
    "states": ["low", "high"],
    "rewards": [0, 1],
    "policy": "egt",
    "budget": 2,
    "control": 0,
    "seed": 3,
}


@pytest.fixture(scope="session", autouse=True)
def keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keys of pseudonyms that a test makes lie in a folder of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RESTIVE_KEYS", str(tmp_path_factory.mktemp("keys")))
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """The server that tests share."""
    server = Postgres()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store that is not there yet."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    server: Postgres = request.getfixturevalue("postgres")
    return server.new_schema()


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A desk with one program, `shops`, that nothing happened in."""
    with Desk(tmp_path / "store.db") as desk:
        desk.create("shops", **SHOPS)
        yield desk


@pytest.fixture
def app(desk: Desk) -> Iterator[FastAPI]:
    """An open server."""
    app = make_app(desk, Settings(open=True, log="none", rate=1e6, burst=10**6))
    yield app
    app.state.programs.close()


@pytest.fixture
def caller(app: FastAPI, desk: Desk, runner: asyncio.Runner) -> Iterator[Caller]:
    """Anybody at the open server."""
    made = Caller(app, desk, runner)
    yield made
    made.run(made.client.aclose())


@pytest.fixture
def anywhere(address: str, runner: asyncio.Runner) -> Iterator[Caller]:
    """The same, over each kind of store."""
    with Desk(address) as desk:
        desk.create("shops", **SHOPS)
        app = make_app(desk, Settings(open=True, log="none"))
        made = Caller(app, desk, runner)
        yield made
        made.run(made.client.aclose())
        app.state.programs.close()


@pytest.fixture
def principals(desk: Desk, runner: asyncio.Runner) -> Iterator[Callable[..., Caller]]:
    """Makes callers at a server that is not open: a role, in a program or (None) in all; no role, no token."""
    app = make_app(desk, Settings(log="none", rate=1e6, burst=10**6))
    made: list[Caller] = []

    def make(role: str | None, program: str | None = None) -> Caller:
        token = None if role is None else make_token(desk.store, f"principal{len(made)}", {program: role})
        made.append(Caller(app, desk, runner, token))
        return made[-1]

    yield make
    for each in made:
        runner.run(each.client.aclose())
    app.state.programs.close()


@pytest.fixture
def live(app: FastAPI) -> Iterator[str]:
    """The address of the open server on a real socket."""
    with run_server(app, app.state.settings) as (host, port):
        yield f"http://{host}:{port}"
