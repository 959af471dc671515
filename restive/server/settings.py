"""Settings of a server: where it listens, whom it lets in, and how much of anything one caller may ask of it.

A server is open when it asks nobody for a token. It may be so only where nobody but this machine can reach it, and only
as long as its store has no token: see `restive.server.auth`. Sizes are bytes, times are seconds.
"""

import ipaddress
import math
from dataclasses import dataclass, field

from restive.errors import InputError, check_number, check_whole

MIB = 1 << 20
LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
LOGS = ("text", "json", "none")


@dataclass(frozen=True)
class Limits:
    """What reading one uploaded table may cost; `at_once` tables are read at a time, others wait for their turn."""

    memory: int = 2048 * MIB
    processor_seconds: int = 120
    seconds: float = 120.0
    result: int = 512 * MIB
    in_process: int = 64 * MIB  # a plain CSV file up to this size needs no process of its own
    at_once: int = 2


@dataclass(frozen=True)
class Settings:
    """All limits and switches of one server."""

    host: str = "127.0.0.1"
    port: int = 8787
    open: bool = False  # nobody is asked for a token, as long as there is none
    https: bool = False  # it answers by TLS itself
    behind_proxy: bool = False  # others come by a proxy, which says who they are
    proxies: tuple[str, ...] = ()  # addresses of trusted proxies; none: those on this machine
    plain_http: bool = False  # callers beyond this machine may come without TLS
    largest_table: int = 256 * MIB
    largest_json: int = 32 * MIB
    largest_form: int = 1 * MIB  # a form without a file
    largest_unknown: int = 64 << 10  # of whoever was not let in before
    largest_together: int = 1024 * MIB  # of all requests under way
    largest_head: int = 32 << 10  # request line and headers
    rate: float = 300.0  # requests a second of one token or address, for long
    burst: int = 600  # and at once
    sign_ins: int = 10  # a minute and address
    at_once: int = 32  # requests under way of one token or address at one program
    queue_seconds: float = 60.0  # in line for a program
    header_seconds: float = 10.0
    idle_seconds: float = 30.0  # between two requests of one connection
    body_seconds: float = 60.0
    body_pace: int = 256 << 10  # bytes a second that a body must bring beyond `body_seconds`
    linger_seconds: float = 5.0  # for the rest of a body that is too large, so that the refusal is reported_at
    stall_seconds: float = 120.0  # for a caller who takes nothing of an answer
    answer_pace: int = 32 << 10  # bytes a second that a caller must take beyond `stall_seconds`
    largest_unsent: int = 256 * MIB  # of all answers that wait for callers to take them
    shutdown_seconds: float = 60.0  # for what is under way when the server is to end
    connections: int = 10_000
    log: str = "json"
    reading: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        check_whole("port", self.port, 0, 65_535)
        check_number("rate", self.rate, "it must be a number of requests a second, from 0.1 to 1000000", 0.1, 1e6)
        check_whole("burst", self.burst, 1)
        for size in ("largest_table", "largest_json", "largest_form", "largest_unknown", "connections", "sign_ins"):
            check_whole(size, getattr(self, size), 1)
        check_whole("at_once", self.at_once, 1)
        if self.log not in LOGS:
            raise InputError(f"log is {self.log!r}; it must be one of {', '.join(LOGS)}.")
        if self.open and (self.behind_proxy or not is_local(self.host)):
            raise InputError(f"a server on {self.host} can be reached from elsewhere, so it cannot go without tokens.")

    @property
    def secure(self) -> bool:
        """Whether browsers reach it by https, so that cookies may insist on that."""
        return self.https or (self.behind_proxy and not self.plain_http)

    def body_time(self, received: int) -> float:
        """How long a body may keep the server waiting in all, once so much of it is there.

        >>> Settings(body_seconds=60, body_pace=1000).body_time(5000)
        65.0
        """
        return math.inf if self.body_pace == 0 else self.body_seconds + received / self.body_pace

    def answer_time(self, taken: int) -> float:
        """How long a caller may keep the server waiting in all, having taken so much of what it waited with.

        >>> Settings(stall_seconds=60, answer_pace=1000).answer_time(5000)
        65.0
        """
        return math.inf if self.answer_pace == 0 else self.stall_seconds + taken / self.answer_pace


def is_local(host: str) -> bool:
    """Whether only this machine can reach the address.

    >>> [is_local(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"
