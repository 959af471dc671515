import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest
from starlette.types import Message, Scope

from restive.server.body_limit import Sizes, find_limit
from restive.server.rate_limit import Rates
from restive.server.settings import Settings
from server.running import CLOSED, OPEN, ask, make_plain

SMALL = replace(OPEN, largest_json=100, largest_table=1000, largest_form=50, largest_unknown=10)
TABLE = {"Content-Type": "text/csv"}


async def pieces(*sizes: int) -> AsyncIterator[bytes]:
    for size in sizes:
        yield b"x" * size


@pytest.mark.parametrize(
    ("headers", "limit"),
    [
        ({}, 100),
        ({"Content-Type": "application/json"}, 100),
        ({"Content-Type": "text/csv; charset=utf-8"}, 1000),
        ({"Content-Type": "multipart/form-data; boundary=x"}, 1000),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 50),
    ],
)
def test_a_body_may_be_as_large_as_its_kind_may_be(headers: dict[str, str], limit: int) -> None:
    app = make_plain(SMALL)
    assert ask(app, "POST", "/count", content=b"x" * limit, headers=headers).json() == {"size": limit}
    refused = ask(app, "POST", "/count", content=b"x" * (limit + 1), headers=headers)
    assert refused.status_code == 413
    assert refused.headers["connection"] == "close"


def test_a_body_without_a_length_is_refused_at_the_same_size() -> None:
    app = make_plain(SMALL)
    assert ask(app, "POST", "/count", content=pieces(40, 60)).json() == {"size": 100}
    assert ask(app, "POST", "/count", content=pieces(40, 61)).status_code == 413


def test_what_an_app_makes_of_a_refused_body_is_not_the_answer() -> None:
    assert ask(make_plain(SMALL), "POST", "/swallow", content=pieces(101)).status_code == 413
    assert ask(make_plain(SMALL), "POST", "/swallow", content=pieces(1)).json() == {"all": "well"}


def test_whoever_shows_nothing_may_send_next_to_nothing() -> None:
    closed = replace(CLOSED, largest_unknown=10)
    app = make_plain(closed)
    refused = ask(app, "POST", "/count", content=b"x" * 11)
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"].startswith("Bearer")
    assert ask(app, "POST", "/count", content=b"x" * 10).json() == {"size": 10}
    for shown in ({"Authorization": "Bearer x"}, {"Cookie": "restive_session=x"}):
        assert ask(app, "POST", "/count", content=b"x" * 11, headers=shown).json() == {"size": 11}


def test_whoever_only_looks_may_send_next_to_nothing() -> None:
    scope: dict[str, Any] = {"type": "http", "method": "GET", "path": "/", "headers": []}
    assert find_limit(SMALL, scope) == 10


@pytest.mark.parametrize("path", ["/login", "/logout"])
@pytest.mark.parametrize("shown", [{}, {"Cookie": "restive_session=x"}, {"Authorization": "Bearer x"}])
def test_signing_in_or_out_takes_next_to_nothing_whatever_is_shown(path: str, shown: dict[str, str]) -> None:
    form = {"Content-Type": "multipart/form-data; boundary=x", **shown}
    answer = ask(make_plain(replace(CLOSED, largest_unknown=10)), "POST", path, content=b"x" * 11, headers=form)
    assert answer.status_code == 413


def test_strangers_use_up_no_place_but_their_own() -> None:
    app = make_plain(replace(CLOSED, largest_together=1600))  # of which strangers have a sixteenth
    app.state.rates.remember("rst_7_right", 7)
    headers = [
        {"Authorization": "Bearer made-up"},
        {"Cookie": "restive_session=made-up"},
        {"Authorization": "Bearer rst_7_right"},
    ]
    for _ in range(2):
        sizes = [
            [ask(app, "POST", "/count", content=b"x" * size, headers=each).status_code for size in (100, 101)]
            for each in headers
        ]
        assert sizes == [[200, 503], [200, 503], [200, 200]]


def test_what_strangers_hold_is_not_counted_against_those_who_are_known() -> None:
    held, free = asyncio.Event(), asyncio.Event()

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        if scope["path"] == "/held":
            held.set()
            await free.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def post(sizes: Sizes, path: str, secret: str) -> int:
        caller = Caller([{"type": "http.request", "body": b"x" * 100, "more_body": False}])
        headers = [(b"authorization", f"Bearer {secret}".encode())]
        scope: Scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "state": {}}
        await sizes(scope, caller.receive, caller.send)
        return int(caller.sent[0]["status"])

    async def play() -> list[int]:
        rates = Rates(1, 1, 1)
        rates.remember("right", 7)
        sizes = Sizes(app, replace(CLOSED, largest_together=1600), rates)
        first = asyncio.create_task(post(sizes, "/held", "made-up"))
        await held.wait()
        others = [await post(sizes, "/", secret) for secret in ("another", "right")]
        free.set()
        return [await first, *others, await post(sizes, "/", "another")]

    assert asyncio.run(play()) == [200, 503, 200, 200]


def test_bodies_that_are_too_much_together_are_put_off() -> None:
    settings = replace(OPEN, largest_together=100)
    app = make_plain(settings)
    for _ in range(3):  # what one request held is free for the next
        assert ask(app, "POST", "/count", content=b"x" * 100).json() == {"size": 100}
        refused = ask(app, "POST", "/count", content=b"x" * 101)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")


def test_the_size_is_said_in_words() -> None:
    for limit, said in ((32 << 20, "32 MiB"), (64 << 10, "64 KiB")):
        answer = ask(make_plain(replace(OPEN, largest_json=limit)), "POST", "/count", content=b"x" * (limit + 1))
        assert said in answer.json()["detail"]


class Caller:
    """A caller whose pieces come when they are let."""

    def __init__(self, answers: list[Message]) -> None:
        self.sent: list[Message] = []
        self._answers: Iterator[Message] = iter(answers)

    async def receive(self) -> Message:
        message = next(self._answers, None)
        if message is None:
            await asyncio.Event().wait()
        assert message is not None
        return message

    async def send(self, message: Message) -> None:
        self.sent.append(message)


def exchange(settings: Settings, answers: list[Message], app: Any) -> list[Message]:
    caller = Caller(answers)
    scope: Scope = {"type": "http", "method": "POST", "path": "/", "headers": [], "state": {}}
    asyncio.run(Sizes(app, settings, Rates(1, 1, 1))(scope, caller.receive, caller.send))
    return caller.sent


def test_a_body_that_stops_coming_is_refused_and_the_next_caller_is_not_kept_waiting() -> None:
    async def app(scope: Scope, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass

    slow = replace(OPEN, body_seconds=0.01, body_pace=1 << 30)
    sent = exchange(slow, [{"type": "http.request", "body": b"x", "more_body": True}], app)
    assert sent[0]["status"] == 408
    assert (b"connection", b"close") in sent[0]["headers"]


def test_only_time_spent_waiting_for_the_caller_counts() -> None:
    async def app(scope: Scope, receive: Any, send: Any) -> None:
        await receive()
        await asyncio.sleep(0.05)
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})

    whole: list[Message] = [
        {"type": "http.request", "body": b"x", "more_body": True},
        {"type": "http.request", "body": b"x", "more_body": False},
    ]
    assert exchange(replace(OPEN, body_seconds=0.04, body_pace=1 << 30), whole, app)[0]["status"] == 200


def test_waiting_for_the_caller_to_leave_takes_as_long_as_it_takes() -> None:
    async def app(scope: Scope, receive: Any, send: Any) -> None:
        await receive()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})

    whole: list[Message] = [{"type": "http.request", "body": b"", "more_body": False}]
    assert exchange(replace(OPEN, body_seconds=0.001), whole, app)[0]["status"] == 200
