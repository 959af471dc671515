"""Requests through every kind of trouble, over real sockets: what is tried again, what is not, and what is said."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from client.scripted import LOST, Answer, Scripted, problem, serve
from restive.client.transport import APIError, Body, Transport, make_key
from restive.errors import InputError

FINE = Answer(200, {"fine": True})
TOKEN = "rst_1_" + "a" * 43


@contextmanager
def talking(*script: Answer | str, retries: int = 4) -> Iterator[tuple[Transport, Scripted]]:
    """A sender whose pauses are written down instead of made."""
    with serve(*script) as server:
        sender = Transport(server.address, TOKEN, retries=retries, sleep=server.pauses.append)
        try:
            yield sender, server
        finally:
            sender.close()


@pytest.mark.parametrize("trouble", [LOST, problem(503), problem(429), problem(502), Answer(504, text="<html>")])
def test_what_may_pass_is_tried_again_with_the_same_key(trouble: Answer | str) -> None:
    with talking(trouble, trouble, FINE) as (sender, server):
        assert sender.send("POST", "/api/v1/x", body=Body.of({"a": 1}), key="k1") == {"fine": True}
    assert server.keys() == ["k1"] * 3
    assert [each.data for each in server.requests] == [{"a": 1}] * 3
    assert len(server.pauses) == 2
    assert 0.35 < server.pauses[0] <= 0.5 < 0.7 < server.pauses[1] <= 1


def test_the_pause_is_what_the_server_asks_for() -> None:
    with talking(problem(503, retry_after="7"), problem(429, retry_after="0"), FINE) as (sender, server):
        sender.get("/x")
    assert server.pauses == [7.0, 0.0]


def test_nobody_waits_for_longer_than_a_minute() -> None:
    with (
        talking(problem(429, "too many", retry_after="3600")) as (sender, server),
        pytest.raises(APIError, match="too many"),
    ):
        sender.get("/x")
    assert (len(server.requests), server.pauses) == (1, [])


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422, 500])
def test_what_will_not_pass_is_not_tried_again(status: int) -> None:
    with (
        talking(problem(status, "a sentence", recorded=None if status == 500 else False)) as (sender, server),
        pytest.raises(APIError) as caught,
    ):
        sender.send("POST", "/x", key="k1")
    assert len(server.requests) == 1
    error = caught.value
    assert (error.status, str(error), error.request, error.key) == (status, "a sentence", "r1", "k1")
    assert error.recorded is (None if status == 500 else False)


def test_what_was_recorded_all_the_same_is_not_tried_again() -> None:
    with (
        talking(problem(503, "it is recorded, but", recorded=True)) as (sender, server),
        pytest.raises(APIError) as caught,
    ):
        sender.send("POST", "/x", key="k1")
    assert (len(server.requests), caught.value.recorded) == (1, True)


def test_the_last_try_ends_in_what_the_server_said() -> None:
    with (
        talking(problem(503, "the store is locked"), retries=2) as (sender, server),
        pytest.raises(APIError, match="the store is locked") as caught,
    ):
        sender.get("/x")
    assert (len(server.requests), len(server.pauses), caught.value.status) == (3, 2, 503)


def test_an_answer_that_never_comes_is_a_doubt_with_the_key_to_ask_again() -> None:
    with (
        talking(LOST, retries=1) as (sender, server),
        pytest.raises(APIError, match=r"does not answer.*send it again with the same key") as caught,
    ):
        sender.send("POST", "/x", key="k1")
    assert (caught.value.status, caught.value.recorded, caught.value.key) == (None, None, "k1")
    assert len(server.requests) == 2


def test_where_nobody_listens_is_said() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{probe.getsockname()[1]}"
        pauses: list[float] = []
        sender = Transport(address, retries=1, sleep=pauses.append)
        with pytest.raises(APIError, match=f"{address} does not answer") as caught:
            sender.get("/x")
        sender.close()
    assert "recorded" not in str(caught.value)
    assert len(pauses) == 1


def test_faults_are_reported_by_row_and_column() -> None:
    said = problem(422, "states, row 2: no")
    assert isinstance(said.data, dict)
    said.data["faults"] = [{"row": 2, "column": "state", "message": "'hihg' is not a state"}]
    with talking(said) as (sender, _), pytest.raises(APIError) as caught:
        sender.get("/x")
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
def test_another_server_is_not_mistaken_for_a_desk(answer: Answer, said: str) -> None:
    with talking(answer) as (sender, server), pytest.raises(APIError, match=said):
        sender.get("/x")
    assert len(server.requests) == 1


def test_the_token_goes_along_and_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    with talking(FINE) as (sender, server):
        sender.get("/x")
        assert TOKEN not in repr(sender)
        monkeypatch.setenv("RESTIVE_TOKEN", "rst_2_other")
        other = Transport(server.address)
        other.get("/x")
        other.close()
    assert [each.headers["authorization"] for each in server.requests] == [f"Bearer {TOKEN}", "Bearer rst_2_other"]


def test_without_a_token_none_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RESTIVE_TOKEN", raising=False)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # which must not be asked about this machine
    with serve(FINE) as server:
        sender = Transport(server.address)
        assert sender.get("/x") == {"fine": True}
        sender.close()
    assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize("token", ["rst_1_secret\nX: y", "rst secret", "rst_ﬁ"])
def test_a_token_that_cannot_be_one_is_refused_and_not_repeated(token: str) -> None:
    with pytest.raises(InputError, match="The token is invalid") as caught:
        Transport("http://127.0.0.1:8787", token)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "address", ["", "desk.example", "ftp://desk", "http://", "http://me:secret@desk", "http://a/?b=1"]
)
def test_an_address_that_cannot_be_one_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(InputError, match="The address of a server is") as caught:
        Transport(address)
    assert "secret" not in str(caught.value)


def test_pages_follow_the_question_and_never_another_host() -> None:
    first = Answer(200, {"items": [1, 2], "next": "https://elsewhere.example/api/v1/x?after=2&limit=2&find=a%26b"})
    with talking(first, Answer(200, {"items": [3], "next": None})) as (sender, server):
        assert list(sender.get_pages("/api/v1/x", {"limit": 2})) == [1, 2, 3]
    assert [each.path for each in server.requests] == ["/api/v1/x?limit=2", "/api/v1/x?after=2&limit=2&find=a%26b"]


def test_what_is_off_or_not_given_is_left_out_of_the_address() -> None:
    with talking(FINE) as (sender, server):
        sender.get("/x", {"dry_run": True, "again": False, "round": None, "must": ["a b", "c"], "budget": 0})
    assert server.requests[0].path == "/x?dry_run=true&must=a+b&must=c&budget=0"


def test_a_path_before_the_api_stays() -> None:
    with serve(FINE) as server:
        sender = Transport(f"{server.address}/desk/")
        sender.get("/api/v1/me")
        sender.close()
    assert server.requests[0].path == "/desk/api/v1/me"


def test_keys_differ_and_a_certificate_may_be_ones_own() -> None:
    keys = {make_key() for _ in range(100)}
    assert len(keys) == 100
    assert all(len(key) == 24 and key.isascii() for key in keys)
    Transport("https://127.0.0.1:1", tls=ssl.create_default_context()).close()
