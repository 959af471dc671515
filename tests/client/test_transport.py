"""Requests over real sockets: what is retried, what is not, and the errors."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from client.scripted import LOST, Answer, Scripted, problem, serve
from restive.client import Client
from restive.client.transport import APIError, Body, Transport, make_key
from restive.errors import InputError

FINE = Answer(200, {"fine": True})
TOKEN = "rst_1_" + "a" * 43


@contextmanager
def talking(*script: Answer | str, retries: int = 4) -> Iterator[tuple[Transport, Scripted]]:
    """A transport whose pauses are written down instead of made."""
    with serve(*script) as server:
        transport = Transport(server.address, TOKEN, retries=retries, sleep=server.pauses.append)
        try:
            yield transport, server
        finally:
            transport.close()


@pytest.mark.parametrize("trouble", [LOST, problem(503), problem(429), problem(502), Answer(504, text="<html>")])
def test_temporary_errors_are_retried_with_the_same_key(trouble: Answer | str) -> None:
    with talking(trouble, trouble, FINE) as (transport, server):
        assert transport.fetch("POST", "/api/v1/x", body=Body.of({"a": 1}), key="k1") == {"fine": True}
    assert server.keys() == ["k1"] * 3
    assert [each.data for each in server.requests] == [{"a": 1}] * 3
    assert len(server.pauses) == 2
    assert 0.35 < server.pauses[0] <= 0.5 < 0.7 < server.pauses[1] <= 1


def test_the_delay_is_that_of_retry_after() -> None:
    with talking(problem(503, retry_after="7"), problem(429, retry_after="0"), FINE) as (transport, server):
        transport.fetch("GET", "/x")
    assert server.pauses == [7.0, 0.0]


def test_a_delay_above_a_minute_is_not_waited_for() -> None:
    with (
        talking(problem(429, "too many", retry_after="3600")) as (transport, server),
        pytest.raises(APIError, match="too many"),
    ):
        transport.fetch("GET", "/x")
    assert (len(server.requests), server.pauses) == (1, [])


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422, 500])
def test_permanent_errors_are_not_retried(status: int) -> None:
    with (
        talking(problem(status, "a message", recorded=None if status == 500 else False)) as (transport, server),
        pytest.raises(APIError) as caught,
    ):
        transport.fetch("POST", "/x", key="k1")
    assert len(server.requests) == 1
    error = caught.value
    assert (error.status, str(error), error.request, error.key) == (status, "a message", "r1", "k1")
    assert error.recorded is (None if status == 500 else False)


def test_a_recorded_request_is_not_retried() -> None:
    with (
        talking(problem(503, "it is recorded, but", recorded=True)) as (transport, server),
        pytest.raises(APIError) as caught,
    ):
        transport.fetch("POST", "/x", key="k1")
    assert (len(server.requests), caught.value.recorded) == (1, True)


def test_the_last_retry_raises_the_servers_problem() -> None:
    with (
        talking(problem(503, "the store is locked"), retries=2) as (transport, server),
        pytest.raises(APIError, match="the store is locked") as caught,
    ):
        transport.fetch("GET", "/x")
    assert (len(server.requests), len(server.pauses), caught.value.status) == (3, 2, 503)


def test_without_an_answer_the_error_has_the_key_to_retry_with() -> None:
    with (
        talking(LOST, retries=1) as (transport, server),
        pytest.raises(APIError, match=r"does not answer.*send it again with the same key") as caught,
    ):
        transport.fetch("POST", "/x", key="k1")
    assert (caught.value.status, caught.value.recorded, caught.value.key) == (None, None, "k1")
    assert len(server.requests) == 2


def test_a_refused_connection_is_an_error() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{probe.getsockname()[1]}"
        pauses: list[float] = []
        transport = Transport(address, retries=1, sleep=pauses.append)
        with pytest.raises(APIError, match=f"{address} does not answer") as caught:
            transport.fetch("GET", "/x")
        transport.close()
    assert "recorded" not in str(caught.value)
    assert len(pauses) == 1


def test_faults_are_reported_by_row_and_column() -> None:
    said = problem(422, "states, row 2: no")
    assert isinstance(said.data, dict)
    said.data["faults"] = [{"row": 2, "column": "state", "message": "'hihg' is not a state"}]
    with talking(said) as (transport, _), pytest.raises(APIError) as caught:
        transport.fetch("GET", "/x")
    assert caught.value.faults == said.data["faults"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(404, text="<html>not here</html>"), "status 404; it is not a restive server"),
        (Answer(200, text="<html>hello</html>"), "status 200; it is not a restive server"),
        (Answer(404, {"error": "no"}), "status 404; it is not a restive server"),
        (Answer(301, text="", headers={"Location": "https://desk.example"}), "redirects to https://desk.example"),
    ],
)
def test_another_kind_of_server_is_recognised(answer: Answer, said: str) -> None:
    with talking(answer) as (transport, server), pytest.raises(APIError, match=said):
        transport.fetch("GET", "/x")
    assert len(server.requests) == 1


def test_the_token_is_sent_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    with talking(FINE) as (transport, server):
        transport.fetch("GET", "/x")
        assert TOKEN not in repr(transport)
        monkeypatch.setenv("RESTIVE_TOKEN", "rst_2_other")
        other = Transport(server.address)
        other.fetch("GET", "/x")
        other.close()
    assert [each.headers["authorization"] for each in server.requests] == [f"Bearer {TOKEN}", "Bearer rst_2_other"]


def test_without_a_token_none_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RESTIVE_TOKEN", raising=False)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # which must not be asked about this machine
    with serve(FINE) as server:
        transport = Transport(server.address)
        assert transport.fetch("GET", "/x") == {"fine": True}
        transport.close()
    assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize("token", ["rst_1_secret\nX: y", "rst secret", "rst_ﬁ"])
def test_an_invalid_token_is_refused_and_not_repeated(token: str) -> None:
    with pytest.raises(InputError, match="The token is invalid") as caught:
        Transport("http://127.0.0.1:8787", token)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "address", ["", "desk.example", "ftp://desk", "http://", "http://me:secret@desk", "http://a/?b=1"]
)
def test_an_invalid_address_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(InputError, match="The address of a server is") as caught:
        Transport(address)
    assert "secret" not in str(caught.value)


def test_pages_use_only_the_query_of_the_next_address() -> None:
    first = Answer(
        200, {"items": [{"number": 2}], "next": "https://elsewhere.example/api/v1/x?after=2&limit=2&find=a%26b"}
    )
    with (
        serve(first, Answer(200, {"items": [{"number": 1}], "next": None})) as server,
        Client(server.address, TOKEN) as client,
    ):
        assert [entry["number"] for entry in client.audit()] == [2, 1]
    paths = ["/api/v1/audit?limit=1000", "/api/v1/audit?after=2&limit=2&find=a%26b"]
    assert [each.path for each in server.requests] == paths


def test_defaults_are_left_out_of_the_query() -> None:
    with talking(FINE) as (transport, server):
        transport.fetch(
            "GET", "/x", {"dry_run": True, "again": False, "round": None, "must": ["a b", "c"], "budget": 0}
        )
    assert server.requests[0].path == "/x?dry_run=true&must=a+b&must=c&budget=0"


def test_a_path_before_the_api_is_kept() -> None:
    with serve(FINE) as server:
        transport = Transport(f"{server.address}/desk/")
        transport.fetch("GET", "/api/v1/me")
        transport.close()
    assert server.requests[0].path == "/desk/api/v1/me"


def test_keys_are_unique_and_a_certificate_can_be_given() -> None:
    keys = {make_key() for _ in range(100)}
    assert len(keys) == 100
    assert all(len(key) == 24 and key.isascii() for key in keys)
    Transport("https://127.0.0.1:1", tls=ssl.create_default_context()).close()
