import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest
from starlette.datastructures import Headers
from starlette.types import Message, Scope

from restive.server import limits
from restive.server.limits import (
    BodyLimitMiddleware,
    RateLimits,
    TokenBuckets,
    client_address,
    find_cookie,
    find_limit,
)
from restive.server.settings import Settings
from server.running import CLOSED, OPEN, ask, make_plain

SMALL = replace(OPEN, max_json_bytes=100, max_table_bytes=1000, max_form_bytes=50, max_anonymous_bytes=10)
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
def test_the_size_of_a_body_is_limited_by_its_media_type(headers: dict[str, str], limit: int) -> None:
    app = make_plain(SMALL)
    assert ask(app, "POST", "/count", content=b"x" * limit, headers=headers).json() == {"size": limit}
    refused = ask(app, "POST", "/count", content=b"x" * (limit + 1), headers=headers)
    assert refused.status_code == 413
    assert refused.headers["connection"] == "close"


def test_a_body_without_a_length_has_the_same_limit() -> None:
    app = make_plain(SMALL)
    assert ask(app, "POST", "/count", content=pieces(40, 60)).json() == {"size": 100}
    assert ask(app, "POST", "/count", content=pieces(40, 61)).status_code == 413


def test_the_app_cannot_answer_a_rejected_body() -> None:
    assert ask(make_plain(SMALL), "POST", "/swallow", content=pieces(101)).status_code == 413
    assert ask(make_plain(SMALL), "POST", "/swallow", content=pieces(1)).json() == {"all": "well"}


def test_anonymous_bodies_have_a_small_limit() -> None:
    closed = replace(CLOSED, max_anonymous_bytes=10)
    app = make_plain(closed)
    refused = ask(app, "POST", "/count", content=b"x" * 11)
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"].startswith("Bearer")
    assert ask(app, "POST", "/count", content=b"x" * 10).json() == {"size": 10}
    for shown in ({"Authorization": "Bearer x"}, {"Cookie": "restive_session=x"}):
        assert ask(app, "POST", "/count", content=b"x" * 11, headers=shown).json() == {"size": 11}


def test_bodies_of_get_requests_have_a_small_limit() -> None:
    scope: dict[str, Any] = {"type": "http", "method": "GET", "path": "/", "headers": []}
    assert find_limit(SMALL, scope) == 10


@pytest.mark.parametrize("path", ["/login", "/logout"])
@pytest.mark.parametrize("shown", [{}, {"Cookie": "restive_session=x"}, {"Authorization": "Bearer x"}])
def test_sign_in_forms_have_a_small_limit_with_any_credential(path: str, shown: dict[str, str]) -> None:
    form = {"Content-Type": "multipart/form-data; boundary=x", **shown}
    answer = ask(make_plain(replace(CLOSED, max_anonymous_bytes=10)), "POST", path, content=b"x" * 11, headers=form)
    assert answer.status_code == 413


def test_unverified_bodies_share_a_small_part_of_the_total() -> None:
    app = make_plain(replace(CLOSED, max_total_bytes=1600))  # of which unverified bodies have a sixteenth
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


def test_unverified_bodies_do_not_count_for_verified_callers() -> None:
    held, free = asyncio.Event(), asyncio.Event()

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        if scope["path"] == "/held":
            held.set()
            await free.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def post(middleware: BodyLimitMiddleware, path: str, secret: str) -> int:
        caller = Caller([{"type": "http.request", "body": b"x" * 100, "more_body": False}])
        headers = [(b"authorization", f"Bearer {secret}".encode())]
        scope: Scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "state": {}}
        await middleware(scope, caller.receive, caller.send)
        return int(caller.sent[0]["status"])

    async def play() -> list[int]:
        rates = RateLimits(1, 1, 1)
        rates.remember("right", 7)
        middleware = BodyLimitMiddleware(app, replace(CLOSED, max_total_bytes=1600), rates)
        first = asyncio.create_task(post(middleware, "/held", "made-up"))
        await held.wait()
        others = [await post(middleware, "/", secret) for secret in ("another", "right")]
        free.set()
        return [await first, *others, await post(middleware, "/", "another")]

    assert asyncio.run(play()) == [200, 503, 200, 200]


def test_all_bodies_together_are_limited() -> None:
    settings = replace(OPEN, max_total_bytes=100)
    app = make_plain(settings)
    for _ in range(3):  # what one request held is free for the next
        assert ask(app, "POST", "/count", content=b"x" * 100).json() == {"size": 100}
        refused = ask(app, "POST", "/count", content=b"x" * 101)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")


def test_of_many_large_bodies_at_once_only_those_that_do_not_fit_are_rejected() -> None:
    rejected = asyncio.Event()

    class Uploader(Caller):
        """A client that sends 170 bytes, waits for its turn, and sends 30 more."""

        def __init__(self, turn: asyncio.Event, finishes: bool = True) -> None:
            super().__init__([])
            self._turn, self._finishes, self._sizes = turn, finishes, iter([170, 30])

        async def receive(self) -> Message:
            size = next(self._sizes, None)
            if size is None:
                await asyncio.Event().wait()
            if size == 30:
                await self._turn.wait()
            return {"type": "http.request", "body": b"x" * (size or 0), "more_body": size == 170 or not self._finishes}

        async def send(self, message: Message) -> None:
            await super().send(message)
            if message.get("status") == 503:
                rejected.set()

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        while (await receive())["more_body"]:
            pass
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def play() -> list[int]:
        middleware = BodyLimitMiddleware(app, replace(OPEN, max_total_bytes=1024), RateLimits(1, 1, 1))
        first, others = asyncio.Event(), asyncio.Event()
        uploaders = [Uploader(first, finishes=False), *(Uploader(others) for _ in range(5))]
        scope: Scope = {"type": "http", "method": "POST", "path": "/", "headers": []}
        tasks = [asyncio.create_task(middleware({**scope, "state": {}}, each.receive, each.send)) for each in uploaders]
        for _ in range(20):
            await asyncio.sleep(0)  # all of them have sent their first part
        first.set()
        await rejected.wait()
        others.set()
        await asyncio.gather(*tasks[1:])
        tasks[0].cancel()
        return [each.sent[0]["status"] for each in uploaders]

    assert asyncio.run(play()) == [503, 200, 200, 200, 200, 200]


def test_the_error_states_the_limit() -> None:
    for limit, said in ((32 << 20, "32 MiB"), (64 << 10, "64 KiB")):
        answer = ask(make_plain(replace(OPEN, max_json_bytes=limit)), "POST", "/count", content=b"x" * (limit + 1))
        assert said in answer.json()["detail"]


class Caller:
    """A client that sends the given messages and then nothing."""

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
    asyncio.run(BodyLimitMiddleware(app, settings, RateLimits(1, 1, 1))(scope, caller.receive, caller.send))
    return caller.sent


def test_a_body_that_stalls_is_rejected_and_the_connection_closed() -> None:
    async def app(scope: Scope, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass

    slow = replace(OPEN, body_seconds=0.01, min_body_rate=1 << 30)
    sent = exchange(slow, [{"type": "http.request", "body": b"x", "more_body": True}], app)
    assert sent[0]["status"] == 408
    assert (b"connection", b"close") in sent[0]["headers"]


def test_only_time_spent_waiting_for_the_client_counts() -> None:
    async def app(scope: Scope, receive: Any, send: Any) -> None:
        await receive()
        await asyncio.sleep(0.05)
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})

    whole: list[Message] = [
        {"type": "http.request", "body": b"x", "more_body": True},
        {"type": "http.request", "body": b"x", "more_body": False},
    ]
    assert exchange(replace(OPEN, body_seconds=0.04, min_body_rate=1 << 30), whole, app)[0]["status"] == 200


def test_waiting_for_a_disconnect_has_no_timeout() -> None:
    async def app(scope: Scope, receive: Any, send: Any) -> None:
        await receive()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})

    whole: list[Message] = [{"type": "http.request", "body": b"", "more_body": False}]
    assert exchange(replace(OPEN, body_seconds=0.001), whole, app)[0]["status"] == 200


HERE = {"client": ("10.0.0.1", 5000)}


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_bucket_allows_a_burst_and_then_its_rate() -> None:
    clock = Clock()
    buckets = TokenBuckets(rate=8, burst=3, clock=clock)
    assert [buckets.take("a") for _ in range(3)] == [0, 0, 0]
    assert buckets.take("a") == 0.125
    clock.now += 0.0625
    assert buckets.take("a") == 0.0625
    clock.now += 0.0625
    assert buckets.take("a") == 0
    clock.now += 1000
    assert [buckets.take("a") > 0 for _ in range(4)] == [False, False, False, True]


def test_rejected_requests_do_not_delay_the_next_allowed_one() -> None:
    clock = Clock()
    buckets = TokenBuckets(rate=1, burst=1, clock=clock)
    buckets.take("a")
    for _ in range(9):
        clock.now += 0.1
        assert buckets.take("a") > 0
    clock.now += 0.11
    assert buckets.take("a") == 0


def test_each_key_has_its_own_bucket() -> None:
    buckets = TokenBuckets(rate=1, burst=1, clock=Clock())
    assert [buckets.take(name) for name in "abc"] == [0, 0, 0]
    assert buckets.take("b") > 0


def test_the_least_recently_used_bucket_is_dropped() -> None:
    buckets = TokenBuckets(rate=1, burst=1, max_buckets=3, clock=Clock())
    for name in ("a", "b", "c", "a", "d"):
        buckets.take(name)
    assert len(buckets) == 3
    assert buckets.take("a") > 0
    assert buckets.take("b") == 0


def test_a_verified_secret_counts_for_its_token_and_a_guess_for_the_address() -> None:
    known = RateLimits(rate=1, burst=1, sign_ins_per_minute=1)
    known.remember("rst_7_right", 7)
    assert known.bucket_key("rst_7_right", HERE) == "token 7"
    assert known.bucket_key("rst_7_wrong", HERE) == "10.0.0.1"
    assert known.bucket_key("", HERE) == "10.0.0.1"
    known.forget("rst_7_right")
    assert known.bucket_key("rst_7_right", HERE) == "10.0.0.1"


def test_secrets_are_stored_as_digests_and_their_number_is_bounded() -> None:
    known = RateLimits(rate=1, burst=1, sign_ins_per_minute=1)
    for number in range(limits.MAX_SECRETS + 10):
        known.remember(f"secret {number}", number)
    assert len(known._verified) == limits.MAX_SECRETS
    assert not any(b"secret" in digest for digest in known._verified)


def test_addresses_are_grouped_by_network() -> None:
    names = [client_address({"client": (host, 1)}) for host in ("::ffff:10.0.0.1", "fe80::1%eth0", "unix")]
    assert names == ["10.0.0.1", "fe80::/64", "unix"]
    assert client_address({}) == client_address({"client": None}) == ""
    assert client_address({"client": ("2001:db8::1", 1)}) == client_address({"client": ("2001:db8::ffff", 9)})
    assert client_address({"client": ("2001:db8::1", 1)}) != client_address({"client": ("2001:db8:0:1::1", 1)})


def test_a_secret_is_verified_until_it_is_forgotten() -> None:
    known = RateLimits(rate=1, burst=1, sign_ins_per_minute=1)
    known.remember("right", None)
    assert [known.is_verified(secret) for secret in ("right", "wrong", "")] == [True, False, False]
    known.forget("right")
    assert not known.is_verified("right")


def test_only_the_session_cookie_is_parsed() -> None:
    slow = 'a="' + "\\" * 10_000 + '"; '
    headers = Headers({"cookie": f"{slow}x-restive_session=1; restive_session=abc-_1 ;b=2"})
    assert find_cookie("restive_session", headers) == "abc-_1"
    assert find_cookie("session", headers) == ""
    assert find_cookie("restive_session", Headers({"cookie": 'restive_session="a b"'})) == ""
