"""Slow, stalled and malformed clients on real sockets, while others are served."""

import contextlib
import resource
import socket
import threading
from collections.abc import Iterator

import httpx
import pytest

from server.running import read_all, run_plain

Place = tuple[str, int]
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
POST = b"POST /count HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    """A server with short timeouts and small limits."""
    with run_plain(
        header_seconds=0.8,
        idle_seconds=2,
        body_seconds=0.5,
        min_body_rate=1 << 30,
        stall_seconds=0.4,
        linger_seconds=1,
        max_header_bytes=4096,
        max_json_bytes=1 << 20,
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
    """All that the server sends until it closes the connection."""
    with call(place) as connection:
        connection.sendall(request)
        return read_all(connection)


def drip(connection: socket.socket, pieces: Iterator[bytes], ended: threading.Event) -> None:
    """Send pieces at intervals until the connection is closed."""
    with contextlib.suppress(OSError):
        for piece in pieces:
            if ended.wait(0.05):
                return
            connection.sendall(piece)


def drip_until_closed(place: Place, first: bytes, piece: bytes) -> bytes:
    ended = threading.Event()
    with call(place) as connection:
        connection.sendall(first)
        dripping = threading.Thread(target=drip, args=[connection, iter(lambda: piece, b""), ended])
        dripping.start()
        try:
            assert is_served(place)
            return read_all(connection)
        finally:
            ended.set()
            dripping.join()


def test_a_silent_connection_is_closed(place: Place) -> None:
    with call(place) as connection:
        assert is_served(place)
        assert read_all(connection) == b""


def test_a_slow_request_head_is_cut_off(place: Place) -> None:
    assert drip_until_closed(place, b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"X-A: b\r\n") == b""


def test_empty_lines_before_a_request_do_not_keep_a_connection_alive(place: Place) -> None:
    drip_until_closed(place, b"\r\n", b"\r\n")


def test_a_slow_head_of_a_later_request_is_cut_off_too(place: Place) -> None:
    answer = drip_until_closed(place, GET, b"\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ")
    answer = drip_until_closed(place, GET + b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"X-A: b\r\n")
    assert answer.count(b"HTTP/1.1 ") == 1


def test_a_slow_body_is_rejected(place: Place) -> None:
    answer = drip_until_closed(place, POST + b"Content-Length: 5000\r\n\r\n", b"x")
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert drip_until_closed(place, CHUNKED, b"1\r\nx\r\n").startswith(b"HTTP/1.1 408 ")


def test_a_slow_body_after_the_response_is_cut_off(place: Place) -> None:
    first = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n"
    assert drip_until_closed(place, first, b"x").startswith(b"HTTP/1.1 200 ")


def test_an_endless_body_is_rejected_at_the_size_limit() -> None:
    with run_plain(body_seconds=60, max_json_bytes=1 << 20, linger_seconds=0.2) as slow:
        answer = drip_until_closed(slow, CHUNKED, b"%x\r\n%b\r\n" % (1 << 18, b"x" * (1 << 18)))
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_a_body_that_is_declared_too_large_is_rejected_before_it_is_sent(place: Place) -> None:
    answer = ask(place, POST + b"Content-Length: 99999999\r\nExpect: 100-continue\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_a_client_that_reads_only_after_sending_gets_the_error(place: Place) -> None:
    answer = httpx.post(f"http://{place[0]}:{place[1]}/count", content=b"x" * (8 << 20), timeout=20)
    assert answer.status_code == 413
    assert answer.json()["detail"] == "The request body is larger than the limit of 1 MiB."


@pytest.mark.parametrize("head", [b"X-A: " + b"a" * 5000, b"X-A: b\r\n" * 700, b"X-A: b\r\n" * 70_000])
def test_a_large_request_head_is_rejected(place: Place, head: bytes) -> None:
    answer = ask(place, b"GET / HTTP/1.1\r\nHost: localhost\r\n" + head + b"Connection: close\r\n\r\n")
    assert answer[:13] in (b"HTTP/1.1 400 ", b"HTTP/1.1 431 ", b"")  # a reset while sending can discard the answer
    assert is_served(place)


def test_endless_headers_and_addresses_are_rejected(place: Place) -> None:
    for first in (b"GET / HTTP/1.1\r\nX-A: ", b"GET /"):
        drip_until_closed(place, first, b"a" * 3000)
    answer = ask(place, LAST.replace(b"GET /", b"GET /" + b"a" * 5000))
    assert answer.startswith(b"HTTP/1.1 431 ")


def test_endless_trailers_are_cut_off() -> None:
    with run_plain(body_seconds=60) as slow:
        drip_until_closed(slow, CHUNKED + b"1\r\nx\r\n0\r\n", b"X-A: " + b"a" * 3000 + b"\r\n")
        drip_until_closed(slow, CHUNKED + b"1\r\nx\r\n0\r\nX-A: ", b"a" * 60_000)
        drip_until_closed(slow, CHUNKED + b"1;", b"a" * 60_000)


def test_trailers_are_not_headers(place: Place) -> None:
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
        b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost/x?y\r\nConnection: close\r\n\r\n",
        b"GET / HTTP/1.0\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
        POST + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n",
        POST + b"Content-Length: -1\r\n\r\n",
        CHUNKED + b"zz\r\n",
    ],
)
def test_malformed_requests_are_rejected(place: Place, garbage: bytes) -> None:
    answer = ask(place, garbage)
    assert answer[:13] in (b"HTTP/1.1 400 ", b"")
    assert is_served(place)


def test_pipelined_requests_are_answered(place: Place) -> None:
    assert ask(place, GET * 9 + LAST).count(b"HTTP/1.1 200 ") == 10


def test_garbage_after_a_request_is_harmless(place: Place) -> None:
    assert ask(place, GET + b"\x00garbage\r\n\r\n").count(b"HTTP/1.1 200 ") <= 1
    assert is_served(place)


def test_very_many_pipelined_requests_do_not_block_the_server(place: Place) -> None:
    with call(place) as connection:
        sending = threading.Thread(target=send_quietly, args=[connection, GET * 3000 + LAST])
        sending.start()
        assert is_served(place)
        assert read_all(connection).count(b"HTTP/1.1 200 ") <= 3001
        sending.join()


def send_quietly(connection: socket.socket, data: bytes) -> None:
    with contextlib.suppress(OSError):
        connection.sendall(data)


def test_an_upgrade_of_the_protocol_is_ignored(place: Place) -> None:
    for other in (b"websocket", b"h2c"):
        answer = ask(place, LAST.replace(b"close", b"Upgrade, close\r\nUpgrade: " + other))
        assert answer.startswith(b"HTTP/1.1 200 ")


def ask_for(connection: socket.socket, size: int) -> None:
    connection.sendall(LAST.replace(b"GET / ", b"GET /fill/%d " % size))
    assert connection.recv(100).startswith(b"HTTP/1.1 200 ")


def count_received(connection: socket.socket, pause: float = 0) -> int:
    """The number of bytes until the connection is closed, read with pauses."""
    received = 0
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(64 << 10):
            received += len(piece)
            threading.Event().wait(pause)
    return received


def test_a_client_that_stops_reading_is_disconnected(place: Place) -> None:
    with call(place) as connection:
        size = 64 << 20
        ask_for(connection, size)
        threading.Event().wait(1)  # longer than `stall_seconds`
        assert count_received(connection) < size


def test_a_client_that_reads_slowly_gets_the_whole_response(place: Place) -> None:
    with call(place) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
        ask_for(connection, 8 << 20)
        assert count_received(connection, 0.001) > (8 << 20) - 1000


def open_many(place: Place, count: int, stack: contextlib.ExitStack) -> list[socket.socket]:
    return [stack.enter_context(call(place)) for _ in range(count)]


@pytest.mark.parametrize("count", [300, pytest.param(5000, marks=pytest.mark.soak)])
def test_waiting_connections_make_room_for_new_ones(count: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 2 * count + 500:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(2 * count + 500, hard), hard))
    with run_plain(max_connections=count // 3, header_seconds=60) as place, contextlib.ExitStack() as stack:
        waiting = open_many(place, count, stack)
        assert is_served(place)
        assert read_all(waiting[0]) == b""
        waiting[-1].sendall(LAST)
        assert read_all(waiting[-1]).startswith(b"HTTP/1.1 200 ")


def test_many_slow_connections_do_not_block_the_server(place: Place) -> None:
    with contextlib.ExitStack() as stack:
        waiting = open_many(place, 400, stack)
        for connection in waiting[::2]:
            connection.sendall(b"GET / HT")
        assert is_served(place)
        answers = [read_all(connection) for connection in waiting]
    assert set(answers) == {b""}


def stop(server: contextlib.AbstractContextManager[Place]) -> threading.Thread:
    stopping = threading.Thread(target=server.__exit__, args=[None, None, None])
    stopping.start()
    return stopping


def test_a_stopping_server_does_not_wait_for_a_client_that_stopped_reading() -> None:
    server = run_plain(stall_seconds=0.2)
    with call(server.__enter__()) as connection:
        ask_for(connection, 64 << 20)
        stopping = stop(server)
        stopping.join(30)
        assert not stopping.is_alive()


def test_a_stopping_server_finishes_its_responses() -> None:
    server, size = run_plain(), 8 << 20
    with call(server.__enter__()) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
        ask_for(connection, size)
        stopping = stop(server)
        assert count_received(connection, 0.001) > size - 1000
        stopping.join()
