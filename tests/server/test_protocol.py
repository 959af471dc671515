"""Callers who do not keep to the rules, on real sockets; all the while others are served."""

import contextlib
import resource
import socket
import threading
from collections.abc import Iterator

import httpx
import pytest

from restive.server import protocol
from restive.server.protocol import MAX_WAITING
from server.running import hear, run_plain

Place = tuple[str, int]
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
POST = b"POST /count HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    """A server with little patience and little room."""
    with run_plain(
        header_seconds=0.8,
        idle_seconds=2,
        body_seconds=0.5,
        body_pace=1 << 30,
        stall_seconds=0.4,
        linger_seconds=1,
        largest_head=4096,
        largest_json=1 << 20,
        rate=1e6,
        burst=1_000_000,
    ) as place:
        yield place


@contextlib.contextmanager
def call(place: Place) -> Iterator[socket.socket]:
    with socket.create_connection(place, timeout=20) as connection:
        yield connection


def is_served(place: Place) -> bool:
    return httpx.get(f"http://{place[0]}:{place[1]}/", timeout=20).status_code == 200


def ask(place: Place, request: bytes) -> bytes:
    """All that is answered, until the server hangs up."""
    with call(place) as connection:
        connection.sendall(request)
        return hear(connection)


def drip(connection: socket.socket, pieces: Iterator[bytes], ended: threading.Event) -> None:
    """Send a piece now and then until the other side has had enough."""
    with contextlib.suppress(OSError):
        for piece in pieces:
            if ended.wait(0.05):
                return
            connection.sendall(piece)


def drip_until_hung_up(place: Place, first: bytes, piece: bytes) -> bytes:
    ended = threading.Event()
    with call(place) as connection:
        connection.sendall(first)
        dripping = threading.Thread(target=drip, args=[connection, iter(lambda: piece, b""), ended])
        dripping.start()
        try:
            assert is_served(place)
            return hear(connection)
        finally:
            ended.set()
            dripping.join()


def test_a_connection_that_asks_nothing_is_closed_without_a_word(place: Place) -> None:
    with call(place) as connection:
        assert is_served(place)
        assert hear(connection) == b""


def test_a_head_that_drips_in_is_ended(place: Place) -> None:
    answer = drip_until_hung_up(place, b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"X-A: b\r\n")
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"content-security-policy" in answer.lower()


def test_empty_lines_before_a_request_do_not_keep_a_connection_alive(place: Place) -> None:
    drip_until_hung_up(place, b"\r\n", b"\r\n")


def test_a_further_request_that_drips_in_is_ended_too(place: Place) -> None:
    answer = drip_until_hung_up(place, GET, b"\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ")
    answer = drip_until_hung_up(place, GET + b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"X-A: b\r\n")
    assert answer.count(b"HTTP/1.1 ") == 2
    assert b"HTTP/1.1 408 " in answer


def test_a_body_that_drips_in_is_ended(place: Place) -> None:
    answer = drip_until_hung_up(place, POST + b"Content-Length: 5000\r\n\r\n", b"x")
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert drip_until_hung_up(place, CHUNKED, b"1\r\nx\r\n").startswith(b"HTTP/1.1 408 ")


def test_a_body_that_drips_in_after_its_answer_is_ended(place: Place) -> None:
    first = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n"
    assert drip_until_hung_up(place, first, b"x").startswith(b"HTTP/1.1 200 ")


def test_an_endless_body_is_refused_at_the_largest_size() -> None:
    with run_plain(body_seconds=60, largest_json=1 << 20, linger_seconds=0.2) as patient:
        answer = drip_until_hung_up(patient, CHUNKED, b"%x\r\n%b\r\n" % (1 << 18, b"x" * (1 << 18)))
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_a_body_that_says_it_is_too_large_is_refused_before_it_is_sent(place: Place) -> None:
    answer = ask(place, POST + b"Content-Length: 99999999\r\nExpect: 100-continue\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_whoever_sends_too_much_hears_why_even_if_they_listen_only_afterwards(place: Place) -> None:
    answer = httpx.post(f"http://{place[0]}:{place[1]}/count", content=b"x" * (8 << 20), timeout=20)
    assert answer.status_code == 413
    assert answer.json()["detail"] == "The body of the request is larger than 1 MiB, the most that is taken here."


@pytest.mark.parametrize("head", [b"X-A: " + b"a" * 5000, b"X-A: b\r\n" * 700, b"X-A: b\r\n" * 70_000])
def test_a_head_that_is_too_large_is_refused(place: Place, head: bytes) -> None:
    answer = ask(place, b"GET / HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n\r\n")
    assert answer[:13] in (b"HTTP/1.1 431 ", b"")  # what is still being sent can take the answer with it
    assert is_served(place)


def test_one_endless_header_and_one_endless_address_are_refused(place: Place) -> None:
    for first in (b"GET / HTTP/1.1\r\nX-A: ", b"GET /"):
        drip_until_hung_up(place, first, b"a" * 3000)
    assert ask(place, b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 431 ")


def test_endless_trailers_are_cut_off_however_quickly_they_come() -> None:
    with run_plain(body_seconds=60) as patient:
        drip_until_hung_up(patient, CHUNKED + b"1\r\nx\r\n0\r\n", b"X-A: " + b"a" * 3000 + b"\r\n")
        drip_until_hung_up(patient, CHUNKED + b"1\r\nx\r\n0\r\nX-A: ", b"a" * 60_000)
        drip_until_hung_up(patient, CHUNKED + b"1;", b"a" * 60_000)


def test_trailers_are_no_headers(place: Place) -> None:
    answer = ask(
        place,
        CHUNKED.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") + b"1\r\nx\r\n0\r\nX-Request-ID: late\r\n\r\n",
    )
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"late" not in answer


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),  # TLS to a plain port
        b"\x00" * 100,
        b"GET\r\n\r\n",
        b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET http:// HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
        POST + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST + b"Content-Length: -1\r\n\r\n",
        CHUNKED + b"zz\r\n",
    ],
)
def test_what_is_no_request_is_refused_and_hung_up_on(place: Place, garbage: bytes) -> None:
    answer = ask(place, garbage)
    assert answer[:13] in (b"HTTP/1.1 400 ", b"")
    assert is_served(place)


def test_a_refusal_without_a_request_has_the_one_shape_too(place: Place) -> None:
    head, _, body = ask(place, b"\x00\x00\r\n\r\n").partition(b"\r\n\r\n")
    assert b"Content-Type: application/problem+json" in head
    assert b"X-Content-Type-Options: nosniff" in head
    assert b'"detail":"This is not a request by HTTP/1.1."' in body


def test_requests_sent_before_the_first_is_answered_are_answered_in_order(place: Place) -> None:
    assert ask(place, GET * 9 + LAST).count(b"HTTP/1.1 200 ") == 10


def test_garbage_behind_a_request_harms_nobody(place: Place) -> None:
    assert ask(place, GET + b"\x00garbage\r\n\r\n").count(b"HTTP/1.1 200 ") <= 1
    assert is_served(place)


def test_far_too_many_requests_at_once_are_not_even_kept(place: Place) -> None:
    answer = ask(place, GET * 20_000)
    assert answer.count(b"HTTP/1.1 200 ") <= MAX_WAITING + 1
    assert is_served(place)


def test_an_offer_to_change_the_protocol_is_not_taken_up(place: Place) -> None:
    for other in (b"websocket", b"h2c"):
        answer = ask(place, LAST.replace(b"close", b"Upgrade, close\r\nUpgrade: " + other))
        assert answer.startswith(b"HTTP/1.1 200 ")


def test_a_caller_who_takes_nothing_of_an_answer_is_let_go(place: Place) -> None:
    with call(place) as connection:
        size = 64 << 20
        connection.sendall(LAST.replace(b"GET / ", b"GET /fill/%d " % size))
        first = connection.recv(100)
        assert first.startswith(b"HTTP/1.1 200 ")
        threading.Event().wait(1)  # let go after 0.4 s in which nothing was taken
        assert len(hear(connection)) < size


def test_a_caller_who_takes_an_answer_slowly_gets_all_of_it(place: Place) -> None:
    with call(place) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        connection.sendall(LAST.replace(b"GET / ", b"GET /fill/%d " % (16 << 20)))
        taken = 0
        while piece := connection.recv(1 << 20):
            taken += len(piece)
            threading.Event().wait(0.02)
    assert taken > 16 << 20


def open_many(place: Place, count: int, stack: contextlib.ExitStack) -> list[socket.socket]:
    return [stack.enter_context(call(place)) for _ in range(count)]


@pytest.mark.parametrize("count", [300, pytest.param(5000, marks=pytest.mark.soak)])
def test_connections_that_wait_make_room_for_one_that_asks(count: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 2 * count + 500:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(2 * count + 500, hard), hard))
    with run_plain(connections=count // 3, header_seconds=60) as place, contextlib.ExitStack() as stack:
        waiting = open_many(place, count, stack)
        assert is_served(place)
        assert hear(waiting[0]) == b""
        waiting[-1].sendall(LAST)
        assert hear(waiting[-1]).startswith(b"HTTP/1.1 200 ")


def test_many_connections_that_ask_nothing_keep_nobody_from_being_served(place: Place) -> None:
    with contextlib.ExitStack() as stack:
        waiting = open_many(place, 400, stack)
        for connection in waiting[::2]:
            connection.sendall(b"GET / HT")
        assert is_served(place)
        answers = [hear(connection) for connection in waiting]
    assert {answer[:13] for answer in answers} == {b"", b"HTTP/1.1 408 "}


def take_slowly(connection: socket.socket, seconds: float) -> int:
    """Take a little now and then, until there is no more; how much it was."""
    taken = 0
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(64 << 10):
            taken += len(piece)
            threading.Event().wait(seconds)
    return taken


def ask_for(connection: socket.socket, size: int) -> None:
    connection.sendall(LAST.replace(b"GET / ", b"GET /fill/%d " % size))
    assert connection.recv(100).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(("pace", "whole"), [(1 << 30, False), (1 << 10, True)])
def test_a_caller_who_takes_an_answer_too_slowly_is_let_go(pace: int, whole: bool) -> None:
    size = 24 << 20
    with run_plain(stall_seconds=0.4, answer_pace=pace) as place, call(place) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
        ask_for(connection, size)
        assert (take_slowly(connection, 0.005) > size - 1000) == whole


def test_what_waits_for_slow_callers_is_bounded() -> None:
    size = 48 << 20
    with run_plain(largest_unsent=size + (size >> 1)) as place, contextlib.ExitStack() as stack:
        first, last = open_many(place, 2, stack)
        for connection in (first, last):
            ask_for(connection, size)
        assert take_slowly(first, 0) < size - 1000
        assert take_slowly(last, 0) > size - 1000


def test_a_server_that_is_to_end_does_not_wait_for_who_takes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "ENDING", 0.2)
    running = run_plain()
    place = running.__enter__()
    with call(place) as connection:
        ask_for(connection, 64 << 20)
        ending = threading.Thread(target=running.__exit__, args=[None, None, None])
        ending.start()
        ending.join(20)
        assert not ending.is_alive()


def test_a_server_that_is_to_end_lets_callers_take_their_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "ENDING", 0.2)
    running, size = run_plain(), 24 << 20
    place = running.__enter__()
    with call(place) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
        ask_for(connection, size)
        ending = threading.Thread(target=running.__exit__, args=[None, None, None])
        ending.start()
        assert take_slowly(connection, 0.002) > size - 1000
        ending.join()
