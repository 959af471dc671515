"""Attackers: slow, broken and malicious clients, each a thread that runs until it is stopped.

`responses` has the first line of every response, `turns` the number of attacks.
"""

import contextlib
import io
import socket
import threading
import zipfile
from collections import Counter
from collections.abc import Callable
from functools import cache

import numpy as np
import polars as pl

HEAD = b"Host: localhost\r\nAuthorization: Bearer %b\r\n"
ROUNDS = b"POST /api/v1/programs/calls/rounds HTTP/1.1\r\n"
KINDS = {
    "parquet": b"application/vnd.apache.parquet",
    "xlsx": b"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "json": b"application/json",
}
TIMEOUT_SECONDS = 120  # seconds for an answer
BILLION = 1_000_000_000


class Attacker(threading.Thread):
    """A client that repeats one attack."""

    def __init__(self, name: str, port: int, secret: str, attack: "Attack") -> None:
        super().__init__(name=name)
        self.secret, self.ending, self.turns = secret.encode(), threading.Event(), 0
        self.responses: Counter[str] = Counter()
        self._port, self._attack = port, attack
        self.once = threading.Event()

    def run(self) -> None:
        while not self.ending.is_set():
            with contextlib.suppress(OSError):
                self._attack(self)
            self.turns += 1
            self.once.set()
            self.ending.wait(0.2)

    def call(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self._port), timeout=TIMEOUT_SECONDS)

    def read_all(self, connection: socket.socket) -> None:
        """Note how the server answers, until it hangs up."""
        said = b""
        with contextlib.suppress(OSError):
            while piece := connection.recv(65536):
                said = (said + piece)[:64]
        self.responses[said.partition(b"\r\n")[0].decode(errors="replace")] += 1

    def post(self, kind: str, body: bytes) -> None:
        """Send a whole body, and read the response."""
        with self.call() as connection:
            head = HEAD % self.secret + b"Content-Type: %b\r\nContent-Length: %d\r\n" % (KINDS[kind], len(body))
            connection.sendall(ROUNDS + head + b"Connection: close\r\n\r\n" + body)
            self.read_all(connection)


Attack = Callable[[Attacker], None]


def drip_heads(attacker: Attacker) -> None:
    """Heads that come a few bytes at a time."""
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(attacker.call()) for _ in range(20)]
        for connection in slow:
            connection.sendall(b"GET /api/v1/programs HTTP/1.1\r\n")
        for _ in range(10):
            for connection in slow:
                connection.sendall(b"X-A: b\r\n")
            attacker.ending.wait(0.1)


def send_endless_body(attacker: Attacker) -> None:
    """A body without a length and without an end."""
    with attacker.call() as connection:
        connection.sendall(ROUNDS + HEAD % attacker.secret + b"Content-Type: application/json\r\n")
        connection.sendall(b"Transfer-Encoding: chunked\r\n\r\n")
        piece = b"10000\r\n" + b"[" * 0x10000 + b"\r\n"
        with contextlib.suppress(OSError):
            for _ in range(200):
                connection.sendall(piece)
        attacker.read_all(connection)


def stop_reading(attacker: Attacker) -> None:
    """Many answers asked for, none of them taken."""
    with contextlib.ExitStack() as stack:
        for _ in range(5):
            connection = stack.enter_context(attacker.call())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 15)
        attacker.ending.wait(1)


def send_garbage(attacker: Attacker) -> None:
    """Bytes that are no request."""
    rng = np.random.default_rng(attacker.turns)
    for size in (1, 5000, 100_000):
        with attacker.call() as connection, contextlib.suppress(OSError):
            connection.sendall(rng.bytes(size) + b"\r\n\r\n")
            connection.shutdown(socket.SHUT_WR)
            attacker.read_all(connection)


def close_half(attacker: Attacker) -> None:
    """Uploads that end in the middle: the caller says no more, or is gone."""
    for kind in KINDS.values():
        for gone in (False, True):
            with attacker.call() as connection:
                head = HEAD % attacker.secret + b"Content-Type: %b\r\nContent-Length: 5000\r\n\r\n" % kind
                connection.sendall(ROUNDS + head + b"[" * 100)
                if not gone:
                    connection.shutdown(socket.SHUT_WR)
                    connection.settimeout(1)
                    attacker.read_all(connection)


def guess_tokens(attacker: Attacker) -> None:
    """Secrets that are nobody's."""
    for guess in range(10):
        with attacker.call() as connection:
            secret = b"rst_%d_%b" % (guess, b"A" * 43)
            connection.sendall(b"GET /api/v1/me HTTP/1.1\r\n" + HEAD % secret + b"Connection: close\r\n\r\n")
            attacker.read_all(connection)


def nest_deeply(attacker: Attacker) -> None:
    """Brackets in brackets in brackets."""
    for body in (b"[" * 500_000, b'{"states":' * 80_000, b'{"states":' + b"[" * 100_000 + b"]" * 100_000 + b"}"):
        attacker.post("json", body)


def send_damaged(attacker: Attacker) -> None:
    """A Parquet file some bytes of which are not what they were."""
    content, rng = bytearray(make_parquet()), np.random.default_rng(attacker.turns)
    for place in rng.integers(4, len(content), size=20).tolist():
        content[place] ^= 255
    attacker.post("parquet", bytes(content))


def send_billion(attacker: Attacker) -> None:
    """A small Parquet file that expands to a billion rows."""
    attacker.post("parquet", make_billion())


def send_archive(attacker: Attacker) -> None:
    """A small Excel file that unpacks to hundreds of megabytes."""
    attacker.post("xlsx", make_archive())


def make_parquet() -> bytes:
    table = io.BytesIO()
    pl.DataFrame({"agent": [f"{n * n}" for n in range(5000)], "state": ["low"] * 5000}).write_parquet(table)
    return table.getvalue()


@cache
def make_billion() -> bytes:
    table = io.BytesIO()
    rows = pl.repeat(value=True, n=BILLION, dtype=pl.Boolean, eager=True)
    pl.DataFrame({"agent": rows}).write_parquet(table, row_group_size=BILLION)
    return table.getvalue()


@cache
def make_archive() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("[Content_Types].xml", b"<Types/>")
        archive.writestr("xl/workbook.xml", b"<workbook/>")
        with archive.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as sheet:
            for _ in range(200):
                sheet.write(b" " * (1 << 20))
    return packed.getvalue()


ATTACKS: dict[str, Attack] = {
    "slow heads": drip_heads,
    "endless bodies": send_endless_body,
    "answers not taken": stop_reading,
    "garbage": send_garbage,
    "half-closed uploads": close_half,
    "guessed tokens": guess_tokens,
    "nested JSON": nest_deeply,
    "damaged Parquet": send_damaged,
    "a billion rows": send_billion,
    "a packed archive": send_archive,
}
