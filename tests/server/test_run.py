"""The server as a process: how it begins, how it ends, and what becomes of it when its store goes away."""

import asyncio
import signal
import socket
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from desk.postgres import Postgres
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from restive.desk import Desk
from restive.desk.tokens import make_token
from restive.errors import InputError
from restive.server.run import introduce, settle
from restive.server.settings import Settings
from server.running import CLOSED, Command, hear, make_certificate, run_server

BEYOND = Settings(host="0.0.0.0")


def test_a_server_on_this_machine_is_open_until_there_is_a_token() -> None:
    assert settle(Settings(), tokens=False, tls=False).open
    assert not settle(Settings(), tokens=True, tls=False).open


@pytest.mark.parametrize("settings", [BEYOND, replace(BEYOND, plain_http=True), Settings(behind_proxy=True)])
@pytest.mark.parametrize("tls", [False, True])
def test_nobody_beyond_this_machine_is_served_without_tokens(settings: Settings, tls: bool) -> None:
    with pytest.raises(InputError, match="its store has no token yet; make one with `restive desk token`"):
        settle(settings, tokens=False, tls=tls)


def test_beyond_this_machine_there_is_tls_or_somebody_said_otherwise() -> None:
    with pytest.raises(InputError, match="would cross the network in the clear; give --certificate"):
        settle(BEYOND, tokens=True, tls=False)
    assert settle(BEYOND, tokens=True, tls=True).https
    for said in (replace(BEYOND, plain_http=True), replace(BEYOND, behind_proxy=True)):
        assert not settle(said, tokens=True, tls=False).open


def test_a_proxy_that_is_no_address_is_refused_at_the_start() -> None:
    with pytest.raises(InputError, match="is no address of a proxy"):
        settle(replace(BEYOND, behind_proxy=True, proxies=("proxy",)), tokens=True, tls=False)


def test_the_introduction_says_where_to_whom_and_over_what() -> None:
    opened = [*introduce(Settings(open=True), "a.db", "http://127.0.0.1:1")]
    assert opened[0] == "no token yet, so it listens on this machine only: http://127.0.0.1:1"
    assert opened[-1] == "the store is a.db; Ctrl+C ends"
    closed = [*introduce(replace(BEYOND, plain_http=True), "a.db", "http://0.0.0.0:1")]
    assert closed[0] == "listening on http://0.0.0.0:1; whoever asks needs a token"
    assert closed[1].startswith("without TLS")


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


def test_it_makes_its_store_is_closed_by_the_first_token_and_ends_in_order_when_reported_to(store: str) -> None:
    with Command("--store", store) as command, httpx.Client(base_url=command.address()) as client:
        assert client.get("/health").status_code == 200
        assert client.get("/api/v1/me").json()["name"] == "local"
        with Desk(store) as desk:
            secret = make_token(desk.store, "ann", {None: "admin"})
        assert client.get("/api/v1/me").status_code == 401
        assert client.get("/api/v1/me", headers={"Authorization": f"Bearer {secret}"}).json()["name"] == "ann"
        lines = [command.record() for _ in range(4)]
        command.tell(signal.SIGTERM)
        assert command.wait() == 0
    assert [(line["route"], line["status"]) for line in lines[1:]] == [
        ("/api/v1/me", 200 + each) for each in (0, 201, 0)
    ]
    assert secret not in "".join(command.said)


def test_it_answers_by_tls_and_is_ended_from_the_keyboard(store: str, tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    with Desk(store) as desk:
        secret = make_token(desk.store, "ann", {None: "admin"})
    arguments = ("--store", store, "--certificate", str(certificate), "--key", str(key), "--log", "none")
    with Command(*arguments) as command:
        address = command.address()
        assert address.startswith("https://")
        context = ssl.create_default_context(cafile=str(certificate))
        with httpx.Client(base_url=address, verify=context) as client:
            answer = client.get("/api/v1/me", headers={"Authorization": f"Bearer {secret}"})
        assert answer.status_code == 200
        assert "strict-transport-security" in answer.headers
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.get(address.replace("https", "http"))
        command.tell(signal.SIGINT)
        assert command.wait() == 0


class Slow:
    """An app whose work in a thread goes on until it is let go."""

    def __init__(self) -> None:
        self.begun, self.go_on, self.done = threading.Event(), threading.Event(), threading.Event()
        self.threads = ThreadPoolExecutor(1)
        self.app = Starlette(routes=[Route("/", self.answer)])

    def work(self) -> None:
        self.begun.set()
        self.go_on.wait(30)
        self.done.set()

    async def answer(self, request: Request) -> Response:
        await asyncio.get_running_loop().run_in_executor(self.threads, self.work)
        return Response("done")


def test_what_is_under_way_is_finished_and_answered_while_nobody_new_is_let_in() -> None:
    slow, answers = Slow(), []
    running = run_server(slow.app, CLOSED)
    place = running.__enter__()
    caller = threading.Thread(
        target=lambda: answers.append(httpx.get(f"http://{place[0]}:{place[1]}/", timeout=60).text)
    )
    ending = threading.Thread(target=running.__exit__, args=[None, None, None])
    with socket.create_connection(place, timeout=30) as idle:
        caller.start()
        assert slow.begun.wait(30)
        ending.start()
        assert hear(idle) == b""  # it is on its way out, and the work still goes on
    assert not slow.done.is_set()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(place, timeout=30)
    slow.go_on.set()
    ending.join()
    caller.join()
    assert slow.done.is_set()
    assert answers == ["done"]
    slow.threads.shutdown()


def is_listening(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=30):
            return True
    except ConnectionRefusedError:
        return False
    except ConnectionError:  # just in between
        return True


def test_a_second_signal_ends_at_once(store: str) -> None:
    with Command("--store", store) as command:
        host, port = command.address().removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=30) as caller:
            head = b"POST /api/v1/programs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            caller.sendall(head + b"Content-Length: 9\r\nExpect: 100-continue\r\n\r\n")
            assert caller.recv(100).startswith(b"HTTP/1.1 100 ")  # the request is under way, and waits for its body
            command.tell(signal.SIGTERM)
            while is_listening(host, int(port)):
                pass
            command.tell(signal.SIGTERM)
            assert command.wait() == 128 + signal.SIGTERM


def ask_until(client: httpx.Client, path: str, status: int) -> httpx.Response:
    deadline = time.monotonic() + 60
    while (answer := client.get(path)).status_code != status and time.monotonic() < deadline:
        pass
    return answer


def test_a_store_that_goes_away_is_said_so_until_it_is_back() -> None:
    postgres = Postgres()
    try:
        postgres.start()
        arguments: tuple[str, ...] = ("--store", postgres.new_schema(), "--log", "none")
        with Command(*arguments) as command, httpx.Client(base_url=command.address(), timeout=60) as client:
            assert client.get("/ready").status_code == 200
            postgres.stop("immediate")
            gone: Any = client.get("/api/v1/programs")
            assert gone.status_code == 503
            assert int(gone.headers["retry-after"]) > 0
            assert gone.json()["type"] == "/api#store"
            assert client.get("/health").status_code == 200
            postgres.start()
            assert ask_until(client, "/api/v1/programs", 200).status_code == 200
            command.tell(signal.SIGTERM)
            assert command.wait() == 0
    finally:
        postgres.remove()
