"""A real server for the tests of the client: uvicorn on a free port, in a thread, over a store of its own."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from restive.client import Client
from restive.desk import Desk
from restive.desk.tokens import make_token
from restive.server.app import make_app
from restive.server.connections import make_config
from restive.server.settings import Settings


@dataclass
class Served:
    """Where the server is, the desk it serves, and the secret of one who may do everything."""

    address: str
    desk: Desk
    secret: str

    def client(self, secret: str | None = None) -> Client:
        return Client(self.address, secret or self.secret, retries=0)


@contextmanager
def serve_desk(folder: Path) -> Iterator[Served]:
    """A server over a new store."""
    with Desk(folder / "store.db") as desk, socket.create_server(("127.0.0.1", 0)) as listening:
        secret = make_token(desk.store, "boss", {None: "admin"})
        port = listening.getsockname()[1]
        settings = Settings(port=port, log="none")
        server = uvicorn.Server(make_config(make_app(desk, settings), settings))
        thread = threading.Thread(target=server.run, args=[[listening]])
        thread.start()
        try:
            deadline = time.monotonic() + 30
            while not server.started and thread.is_alive() and time.monotonic() < deadline:
                time.sleep(0.01)
            assert server.started
            yield Served(f"http://127.0.0.1:{port}", desk, secret)
        finally:
            server.should_exit = True
            thread.join()
