import asyncio
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from restive.errors import InputError
from restive.server.proxies import Forwarded


def pass_on(peer: str, headers: dict[str, str], named: tuple[str, ...] = ()) -> tuple[str, str]:
    """Who is taken for the caller, and by which scheme."""
    seen: dict[str, Any] = {}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.update(scope)

    async def nothing(*_: object) -> Any:
        raise AssertionError

    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "client": (peer, 5), "scheme": "http", "headers": raw}
    asyncio.run(Forwarded(app, named)(scope, nothing, nothing))
    return seen["client"][0], seen["scheme"]


@pytest.mark.parametrize("peer", ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
def test_a_proxy_on_this_machine_says_who_asks(peer: str) -> None:
    assert pass_on(peer, {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}) == ("203.0.113.9", "https")


@pytest.mark.parametrize("peer", ["203.0.113.9", "10.1.2.3", "192.168.0.7", "172.17.0.1", "fe80::7"])
def test_nobody_else_says_who_asks_unless_named(peer: str) -> None:
    said = {"X-Forwarded-For": "198.51.100.1", "X-Forwarded-Proto": "https"}
    assert pass_on(peer, said) == (peer, "http")
    assert pass_on(peer, said, (peer,)) == ("198.51.100.1", "https")


def test_what_the_caller_put_there_is_not_believed() -> None:
    assert pass_on("127.0.0.1", {"X-Forwarded-For": "10.9.9.9, 203.0.113.9"})[0] == "203.0.113.9"
    assert pass_on("127.0.0.1", {"X-Forwarded-For": "10.9.9.9, 10.0.0.5"})[0] == "10.0.0.5"


def test_named_proxies_are_passed_over_and_others_are_no_longer_trusted() -> None:
    chain = {"X-Forwarded-For": "198.51.100.1, 203.0.113.9, 203.0.113.77"}
    assert pass_on("203.0.113.70", chain, ("203.0.113.64/26",))[0] == "203.0.113.9"
    assert pass_on("127.0.0.1", chain, ("203.0.113.64/26",))[0] == "127.0.0.1"


@pytest.mark.parametrize("said", ["", "unknown", "_hidden", "203.0.113.9, nonsense", ",", "999.1.1.1"])
def test_what_is_no_address_leaves_the_proxy_as_the_caller(said: str) -> None:
    assert pass_on("127.0.0.1", {"X-Forwarded-For": said, "X-Forwarded-Proto": "ftp"}) == ("127.0.0.1", "http")


def test_a_proxy_that_is_no_address_is_one_sentence() -> None:
    with pytest.raises(InputError, match="'proxy' is no address of a proxy; write"):
        Forwarded(lambda *_: asyncio.sleep(0), ["proxy"])
