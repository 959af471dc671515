"""Stores to test with: every test that asks for `address` or `store` runs on SQLite and on PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from desk.postgres import Postgres
from restive.desk.store import Store


@pytest.fixture(scope="session")
def server() -> Iterator[Postgres]:
    """The server that tests share; one that is to be stopped is made by the test itself."""
    postgres = Postgres()
    try:
        postgres.start()
        yield postgres
    finally:
        postgres.remove()


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store that is not there yet."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    postgres: Postgres = request.getfixturevalue("server")
    return postgres.new_schema()


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    with Store.open(address) as store:
        yield store
