"""A receiver of webhooks on a real socket, which verifies signatures by the library of the specification."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from standardwebhooks.webhooks import Webhook

LOOPBACK = ("127.0.0.1",)
TIMEOUT_SECONDS = 60


class Receiver:
    """What was received; `answer` gives the status for each message, by default 204."""

    def __init__(self) -> None:
        self.secret = ""
        self.answer: Callable[[dict[str, Any]], int] = lambda _: 204
        self.attempts: list[dict[str, Any]] = []  # all, with their ids
        self.accepted: list[dict[str, Any]] = []
        self.failures: list[str] = []
        self.news = threading.Condition()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    def take(self, headers: dict[str, str], body: bytes) -> int:
        """Verify and note a message; the status of the answer."""
        try:
            Webhook(self.secret).verify(body, headers)
        except Exception as error:
            self.failures.append(repr(error))
            return 401
        message = json.loads(body) | {"id": headers["webhook-id"]}
        status = self.answer(message)
        with self.news:
            self.attempts.append(message)
            if status < 300:
                self.accepted.append(message)
            self.news.notify_all()
        return status

    def wait(self, accepted: int = 0, attempts: int = 0) -> None:
        """Wait until so many messages have come."""
        with self.news:
            came = self.news.wait_for(
                lambda: len(self.accepted) >= accepted and len(self.attempts) >= attempts, TIMEOUT_SECONDS
            )
        assert came, (self.accepted, self.attempts, self.failures)

    def kinds(self) -> list[tuple[str, int | None]]:
        """Type and round of the accepted messages."""
        return [(message["type"], message["data"].get("round")) for message in self.accepted]


@contextmanager
def run_receiver(port: int = 0) -> Iterator[Receiver]:
    """A receiver, while the block runs."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = receiver.take({name.lower(): value for name, value in self.headers.items()}, body)
            self.send_response(status)
            if status // 100 == 3:
                self.send_header("Location", receiver.url)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        receiver.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=[0.05])
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()
