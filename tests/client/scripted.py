"""An HTTP server that answers by a script."""

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LOST = "lost"  # the connection ends without an answer


@dataclass
class Answer:
    """What to answer with."""

    status: int = 200
    data: object = None
    headers: dict[str, str] = field(default_factory=dict)
    text: str | None = None

    def content(self) -> bytes:
        return (json.dumps(self.data) if self.text is None else self.text).encode()


@dataclass
class Received:
    """A received request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        return json.loads(self.body)


@dataclass
class Scripted:
    """The address, the requests so far, and the delays of the client."""

    address: str
    requests: list[Received]
    pauses: list[float] = field(default_factory=list)

    def keys(self) -> list[str | None]:
        return [each.headers.get("idempotency-key") for each in self.requests]


def problem(status: int, sentence: str = "no", recorded: bool | None = False, **headers: str) -> Answer:
    """A problem."""
    said = {"type": "/api#x", "title": "x", "status": status, "code": "x", "detail": sentence, "hint": None}
    said |= {"advice": None, "location": None, "faults": [], "recorded": recorded, "request": "r1"}
    return Answer(status, said, {name.replace("_", "-"): value for name, value in headers.items()})


@contextmanager
def serve(*script: Answer | str) -> Iterator[Scripted]:
    """Answer by the script, one after the other; the last for good."""
    requests: list[Received] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            named = {name.lower(): value for name, value in self.headers.items()}
            requests.append(Received(self.command, self.path, named, body))
            answer = script[min(len(requests), len(script)) - 1]
            if isinstance(answer, str):
                self.close_connection = True
                with contextlib.suppress(OSError):
                    self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.content())))
            self.end_headers()
            self.wfile.write(answer.content())

        do_GET = do_POST = do_PUT = do_PATCH = answer  # noqa: N815 - the library's names

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.01))
    thread.start()
    try:
        yield Scripted(f"http://127.0.0.1:{server.server_port}", requests)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
