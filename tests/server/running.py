"""Servers to test: a small app with all middleware, one on real sockets, and the command in its own process."""

import asyncio
import contextlib
import json
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from restive.desk import StoreError
from restive.errors import InputError
from restive.server.connections import Server, make_config
from restive.server.errors import error_response
from restive.server.middleware import add_middleware
from restive.server.run import listen
from restive.server.settings import Settings

OPEN = Settings(open=True, log="none")
CLOSED = Settings(log="none")


async def say_hello(request: Request) -> Response:
    return JSONResponse({"hello": request.state.id})


async def count(request: Request) -> Response:
    return JSONResponse({"size": len(await request.body())})


async def swallow(request: Request) -> Response:
    with contextlib.suppress(Exception):
        await request.body()
    return JSONResponse({"all": "well"})


async def fail(request: Request) -> Response:
    secret = request.query_params.get("secret", "")
    raise RuntimeError(f"agent {secret}")


async def refuse(request: Request) -> Response:
    raise InputError("this does not fit.") if "input" in request.query_params else HTTPException(406, "not that.")


async def show_error(request: Request, error: Exception) -> Response:
    return error_response(error, request.scope)


async def lose(request: Request) -> Response:
    raise StoreError("Reading from the store failed.")


async def tag(request: Request) -> Response:
    return Response("x", headers={"ETag": '"1"', "Server": "mine"})


async def fill(request: Request) -> Response:
    return Response(b"x" * int(request.path_params["size"]))


def make_plain(settings: Settings = OPEN) -> Starlette:
    """A small app with all middleware."""
    every = ["GET", "POST", "PUT"]
    app = Starlette(
        routes=[
            Route("/", say_hello, methods=every),
            Route("/count", count, methods=every),
            Route("/swallow", swallow, methods=["POST"]),
            Route("/fail", fail),
            Route("/refuse", refuse),
            Route("/store", lose),
            Route("/tag", tag),
            Route("/fill/{size}", fill),
            Route("/programs/{name}/list", say_hello),
        ],
        exception_handlers={HTTPException: show_error},
    )
    app.state.settings = settings
    add_middleware(app, settings)
    return app


def ask(app: ASGIApp, method: str = "GET", path: str = "/", **given: Any) -> httpx.Response:
    """The answer of an app to one request."""
    return ask_all(app, [(method, path, given)])[0]


def ask_all(app: ASGIApp, requests: list[tuple[str, str, dict[str, Any]]]) -> list[httpx.Response]:
    """The answers of an app to requests, one after the other."""

    async def run() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8787") as client:
            return [await client.request(method, path, **given) for method, path, given in requests]

    return asyncio.run(run())


@contextmanager
def run_server(app: ASGIApp, settings: Settings) -> Iterator[tuple[str, int]]:
    """Serve on a real socket while the block runs; yields the address."""
    if isinstance(app, FastAPI):
        app.openapi()  # here: Python 3.11 cannot parse in two threads at once (SystemError: recursion depth mismatch)
    listener = listen("127.0.0.1", 0)
    server = Server(make_config(app, settings))
    thread = threading.Thread(target=server.run, args=[[listener]])
    thread.start()
    try:
        yield "127.0.0.1", listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


@contextmanager
def run_plain(**changes: Any) -> Iterator[tuple[str, int]]:
    """The small app on a real socket, with changed settings."""
    settings = replace(OPEN, **changes)
    with run_server(make_plain(settings), settings) as place:
        yield place


def read_all(connection: socket.socket) -> bytes:
    """All that the server sends until it closes the connection."""
    said = b""
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(65536):
            said += piece
    return said


class Command:
    """`restive serve` in a process of its own."""

    def __init__(
        self,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        start: Sequence[str] = ("-m", "restive", "serve", "--port", "0"),
    ) -> None:
        self.lines: queue.Queue[str | None] = queue.Queue()
        self.said: list[str] = []
        self._process = subprocess.Popen(
            [sys.executable, *start, *arguments],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        self._listener = threading.Thread(target=self._listen)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def line(self) -> str | None:
        """The next line on standard error; None when there are no more."""
        line = self.lines.get(timeout=60)
        if line is not None:
            self.said.append(line)
        return line

    def record(self) -> dict[str, Any]:
        """The next line of the log."""
        while (line := self.line()) is not None and not line.startswith("{"):
            pass
        found: dict[str, Any] = json.loads(line or "{}")
        return found

    def address(self) -> str:
        """Where it listens, once it does."""
        while (line := self.line()) is not None:
            if (found := re.search(r"https?://\S+?(?=[;,]|$)", line)) is not None:
                self.line()
                return found[0]
        raise AssertionError(f"it ended: {self.said}")

    def tell(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def wait(self) -> int:
        """How it ended, once it has."""
        code = self._process.wait(60)
        self._listener.join()
        while self.lines.qsize():
            self.line()
        return code

    def __enter__(self) -> "Command":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self.wait()
        assert self._process.stderr is not None
        self._process.stderr.close()


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate for localhost, and its key."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return certificate, key
