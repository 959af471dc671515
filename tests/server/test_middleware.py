import asyncio
import re
from dataclasses import replace
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from restive.server.middleware import SECURITY_HEADERS
from restive.server.settings import LOCAL_NETWORKS
from server.running import CLOSED, OPEN, ask, ask_all, make_plain

ELSEWHERE = {"Origin": "https://elsewhere.org"}


@pytest.mark.parametrize(
    ("path", "status"),
    [("/", 200), ("/nowhere", 404), ("/fail", 500), ("/refuse", 406), ("/refuse?input=1", 422), ("/tag", 200)],
)
def test_every_answer_has_the_security_headers_and_an_id(path: str, status: int) -> None:
    answer = ask(make_plain(), path=path)
    assert answer.status_code == status
    for name, value in SECURITY_HEADERS.items():
        assert answer.headers[name] == value
    assert re.fullmatch("[0-9a-f]{16}", answer.headers["x-request-id"])
    assert "server" not in answer.headers
    assert answer.headers["cache-control"] == ("private, no-cache" if path == "/tag" else "no-store")


def test_errors_of_all_middleware_have_the_security_headers_and_the_same_shape() -> None:
    app = make_plain(replace(OPEN, rate=0.1, burst=3, max_json_bytes=5))
    answers = ask_all(
        app,
        [
            ("GET", "/", {"headers": {"Host": "elsewhere.org"}}),
            ("POST", "/", {"headers": ELSEWHERE}),
            ("POST", "/count", {"content": b"0123456789"}),
            *[("GET", "/", {})] * 3,
        ],
    )
    refused = [answer for answer in answers if answer.status_code != 200]
    assert [answer.status_code for answer in refused] == [421, 403, 413, 429]
    for answer in refused:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["content-security-policy"] == SECURITY_HEADERS["Content-Security-Policy"]
        problem = answer.json()
        assert problem["status"] == answer.status_code
        assert problem["request"] == answer.headers["x-request-id"]
        assert problem["recorded"] is False


def test_a_well_formed_request_id_of_the_client_is_used() -> None:
    given = ["abc-1.2_3", "a b", "x" * 65, "", 'a"}', "é"]
    answers = ask_all(make_plain(), [("GET", "/", {"headers": {"X-Request-ID": each.encode()}}) for each in given])
    kept = [answer.headers["x-request-id"] == each for answer, each in zip(answers, given, strict=True)]
    assert kept == [True, False, False, False, False, False]
    assert answers[0].json() == {"hello": "abc-1.2_3"}


def test_hsts_is_sent_with_https() -> None:
    name = "strict-transport-security"
    assert name not in ask(make_plain(CLOSED)).headers
    assert ask(make_plain(replace(CLOSED, https=True))).headers[name] == "max-age=31536000"


def test_an_unexpected_error_is_answered_without_details() -> None:
    answer = ask(make_plain(), path="/fail?secret=ann")
    assert answer.status_code == 500
    assert "ann" not in answer.text
    assert "Runtime" not in answer.text
    assert answer.json()["recorded"] is None


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8787", "localhost", "LOCALHOST:1", "[::1]:8787"])
def test_an_open_server_answers_to_the_names_of_this_machine(host: str) -> None:
    assert ask(make_plain(OPEN), headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["elsewhere.org", "127.0.0.1.elsewhere.org", "localhost.", "10.0.0.1:8787"])
def test_an_open_server_answers_to_no_other_name(host: str) -> None:
    assert ask(make_plain(OPEN), headers={"Host": host}).status_code == 421
    assert ask(make_plain(CLOSED), headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("name", ["X-Forwarded-For", "Forwarded", "Via", "X-Real-IP"])
def test_an_open_server_is_not_reached_by_a_proxy(name: str) -> None:
    assert ask(make_plain(OPEN), headers={name: "1"}).status_code == 421
    assert ask(make_plain(CLOSED), headers={name: "1"}).status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "http://127.0.0.1:8787"}, 200),
        (ELSEWHERE, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:9999"}, 403),
        ({"Sec-Fetch-Site": "same-origin", **ELSEWHERE}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Authorization": "Bearer rst_1_x"}, 200),
    ],
)
def test_cross_site_posts_are_rejected(headers: dict[str, str], status: int) -> None:
    for settings in (OPEN, CLOSED):
        assert ask(make_plain(settings), "POST", headers=headers).status_code == status


def test_cross_site_links_are_allowed_and_subresources_are_not() -> None:
    app, link = make_plain(), {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert ask(app, headers={**link, "Sec-Fetch-Dest": "document"}).status_code == 200
    assert ask(app, headers={**link, "Sec-Fetch-Dest": "iframe"}).status_code == 403
    assert ask(app, headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}).status_code == 403
    assert ask(app, headers=ELSEWHERE).status_code == 200


def test_too_many_requests_are_answered_with_retry_after() -> None:
    app = make_plain(replace(OPEN, rate=0.1, burst=2))
    answers = ask_all(app, [("GET", "/", {})] * 4)
    assert [answer.status_code for answer in answers] == [200, 200, 429, 429]
    assert answers[-1].headers["retry-after"] == "10"


def test_guesses_share_the_limit_of_the_address_and_a_valid_token_has_its_own() -> None:
    app = make_plain(replace(OPEN, rate=0.1, burst=2))
    app.state.rates.remember("rst_7_right", 7)
    guesses = [("GET", "/", {"headers": {"Authorization": f"Bearer rst_7_{number}"}}) for number in range(3)]
    right = ("GET", "/", {"headers": {"Authorization": "Bearer rst_7_right"}})
    answers = ask_all(app, [*guesses, right, right, right])
    assert [answer.status_code for answer in answers] == [200, 200, 429, 200, 200, 429]


def test_a_cookie_counts_for_its_token() -> None:
    app = make_plain(replace(OPEN, rate=0.1, burst=1))
    app.state.rates.remember("biscuit", 7)
    mine = ("GET", "/", {"headers": {"Cookie": "other=1; restive_session=biscuit"}})
    broken = ("GET", "/", {"headers": {"Cookie": 'restive_session="; ='}})
    statuses = [answer.status_code for answer in ask_all(app, [mine, mine, broken, broken])]
    assert statuses == [200, 429, 200, 429]


MALFORMED = (b"", b"a/b?c", b"localhost@elsewhere.org", b"a b")


@pytest.mark.parametrize(
    "headers", [[], [(b"host", b"a"), (b"host", b"b")], *([(b"host", host)] for host in MALFORMED)]
)
def test_a_missing_repeated_or_malformed_host_header_is_rejected(headers: list[tuple[bytes, bytes]]) -> None:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": headers, "client": ("a", 1)}
    asyncio.run(make_plain(CLOSED)(scope, receive, send))
    assert sent[0]["status"] == 400


def test_large_headers_are_rejected() -> None:
    app = make_plain(replace(OPEN, max_header_bytes=1000))
    assert ask(app, headers={"Cookie": "a=b; " * 200}).status_code == 431
    assert ask(app, path="/?" + "a" * 1000).status_code == 431
    assert ask(app).status_code == 200


def pass_on(peer: str, headers: dict[str, str], trusted: tuple[str, ...] = LOCAL_NETWORKS) -> tuple[str, str]:
    """The client and scheme that the app sees behind a proxy."""
    seen: dict[str, Any] = {}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.update(scope)

    async def nothing(*_: object) -> Any:
        raise AssertionError

    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    scope: Any = {"type": "http", "client": (peer, 5), "scheme": "http", "headers": raw}
    asyncio.run(ProxyHeadersMiddleware(app, list(trusted))(scope, nothing, nothing))  # type: ignore[arg-type]
    return seen["client"][0], seen["scheme"]


@pytest.mark.parametrize("peer", ["127.0.0.1", "::1"])
def test_a_proxy_on_this_machine_is_trusted(peer: str) -> None:
    assert pass_on(peer, {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}) == ("203.0.113.9", "https")


@pytest.mark.parametrize("peer", ["203.0.113.9", "10.1.2.3", "192.168.0.7", "fe80::7"])
def test_other_proxies_are_trusted_only_if_they_are_named(peer: str) -> None:
    given = {"X-Forwarded-For": "198.51.100.1", "X-Forwarded-Proto": "https"}
    assert pass_on(peer, given) == (peer, "http")
    assert pass_on(peer, given, (peer,)) == ("198.51.100.1", "https")


def test_only_what_a_trusted_proxy_added_is_believed() -> None:
    assert pass_on("127.0.0.1", {"X-Forwarded-For": "10.9.9.9, 203.0.113.9"})[0] == "203.0.113.9"
    chain = {"X-Forwarded-For": "198.51.100.1, 203.0.113.9, 203.0.113.77"}
    assert pass_on("203.0.113.70", chain, ("203.0.113.64/26",))[0] == "203.0.113.9"


def test_the_app_of_a_server_behind_a_proxy_uses_its_headers() -> None:
    app = make_plain(replace(CLOSED, behind_proxy=True, rate=0.1, burst=1))
    given = ("10.0.0.1", "10.0.0.2", "10.0.0.1")
    answers = ask_all(app, [("GET", "/", {"headers": {"X-Forwarded-For": address}}) for address in given])
    assert [answer.status_code for answer in answers] == [200, 200, 429]
