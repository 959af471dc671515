"""One server for all tests of the client; each makes a program of its own."""

from collections.abc import Iterator

import pytest

from client.served import Served, serve_desk
from restive.client import Client


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve_desk(tmp_path_factory.mktemp("served")) as served:
        yield served


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    with served.client() as client:
        yield client
