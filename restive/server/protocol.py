"""The connection: uvicorn's, with bounds on what comes before a request is one, where no layer of the app can see it.

The head of a request must be there `header_seconds` after the connection was made, or after the first byte of a further
request; it may not be larger than `largest_head`. What a chunked body brings beside its content (sizes, trailers) is
bounded, trailers are not read, and few requests may come before the first is answered. A caller who takes nothing of an
answer, or takes it slower than a least pace, is let go; so is the one who waits longest when too much is not taken yet,
and when the server is to end whoever takes nothing more. When there are too many connections the one that waits longest
for a request makes room.
"""

import asyncio
from typing import Any, TypeAlias

from httptools import HttpParserError
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from restive.server.errors import PROBLEM, Refusal, describe
from restive.server.middleware import SECURITY
from restive.server.settings import Settings

MAX_WAITING = 16  # requests sent before the first is answered
BESIDE = 64 << 10  # bytes beside the content of a body, and as much again for each of its bytes as below
PER_BYTE = 16
ENDING = 10.0  # seconds that a server which is to end waits for a caller to take anything of an answer
NOT_HTTP = Refusal(400, "This is not a request by HTTP/1.1.")
TOO_SLOW = Refusal(408, "The request comes too slowly.")
LARGE_HEAD = Refusal(431, "The address and the headers of the request are too large.")

Waiting: TypeAlias = "dict[GuardedProtocol, None]"  # the one that waits longest first
Slow: TypeAlias = "dict[GuardedProtocol, int]"


class GuardedProtocol(HttpToolsProtocol):
    """One connection; `settings`, `waiting` and `slow` belong to the server and are set on a subclass of its own.

    `slow` has the connections whose callers do not keep up with their answers, and what is left to take of each. Only
    the time in which a caller does not keep up is counted, and what is taken in it.
    """

    settings: Settings
    waiting: Waiting
    slow: Slow

    def __init__(self, *args: Any, **kw: Any) -> None:
        super().__init__(*args, **kw)
        self._deadline: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._last: asyncio.TimerHandle | None = None
        self._slow_since, self._slow_for, self._taken = 0.0, 0.0, 0
        self._in_head, self._begun = True, False
        self._head = self._raw = self._content = 0
        self._why = NOT_HTTP

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self.waiting[self] = None
        self._expect_head()
        if len(self.connections) > self.settings.connections:
            longest = next(iter(self.waiting))
            del self.waiting[longest]
            longest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self.waiting.pop(self, None)
        self.slow.pop(self, None)
        for timer in (self._deadline, self._stalled, self._last):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless there is more than there should be."""
        self._raw += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._in_head and self._raw > self.settings.largest_head:
            # One endless header is seen here alone: the parser keeps it until it ends.
            self._end(LARGE_HEAD)
        elif not self._in_head and self._raw - self._content > BESIDE + PER_BYTE * self._content:
            self.transport.abort()
        if self._is_idle():
            self._expect_head()

    def on_message_begin(self) -> None:
        """A request begins."""
        self._in_head = self._begun = True
        self._head, self._raw, self._why = 0, 0, NOT_HTTP
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """A piece of the address."""
        self._grow(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; after the head it is a trailer, which is left out."""
        self._grow(len(name) + len(value) + 4)
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is there, and the request can be answered."""
        if len(self.pipeline) >= MAX_WAITING:
            raise HttpParserError("too many requests at once")
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self.waiting.pop(self, None)
        self._in_head = self._begun = False
        self._raw = self._content = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self._content += len(body)
        super().on_body(body)

    def on_response_complete(self) -> None:
        """The request is answered, and the next may come."""
        super().on_response_complete()
        if self._is_idle() and not self.transport.is_closing():
            self.waiting[self] = None

    def pause_writing(self) -> None:
        """The caller does not take the answer as quickly as it is made."""
        super().pause_writing()
        self.slow[self] = self.transport.get_write_buffer_size()
        self._slow_since = self.loop.time()
        if self._is_too_slow():
            self.transport.abort()
        elif sum(self.slow.values()) > self.settings.largest_unsent:
            longest = next(iter(self.slow))
            del self.slow[longest]
            longest.transport.abort()
        self._watch(self._count_taken())

    def resume_writing(self) -> None:
        """The caller has taken most of the answer."""
        super().resume_writing()
        self._slow_for += self.loop.time() - self._slow_since
        self._taken = self._count_taken()
        self.slow.pop(self, None)
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def shutdown(self) -> None:
        """Answer what was asked and nothing more; a caller who takes nothing of it is not waited for."""
        super().shutdown()
        self._end_soon(self._count_taken())

    def send_400_response(self, msg: str) -> None:
        """Say what is wrong with what came, unless another answer is under way; no more is read."""
        if self._is_idle() and not self.transport.is_closing():
            self.transport.write(make_refusal(self._why))
        self.transport.close()

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _grow(self, size: int) -> None:
        self._head += size
        if self._head > self.settings.largest_head:
            self._why = LARGE_HEAD
            raise HttpParserError("too large")

    def _end(self, why: Refusal) -> None:
        self._why = why
        self.send_400_response("")

    def _watch(self, before: int) -> None:
        """Look now and then whether the caller takes anything at all, and enough of it."""

        def look() -> None:
            taken = self._count_taken()
            if taken > before and not self._is_too_slow():
                self._watch(taken)
            else:
                self.transport.abort()

        self._stalled = self.loop.call_later(self.settings.stall_seconds, look)

    def _count_taken(self) -> int:
        """How much was taken in the time in which the caller did not keep up."""
        held = self.slow.get(self)
        return self._taken + (0 if held is None else held - self.transport.get_write_buffer_size())

    def _is_too_slow(self) -> bool:
        waited = self._slow_for + (self.loop.time() - self._slow_since if self in self.slow else 0.0)
        return waited > self.settings.answer_time(self._count_taken())

    def _end_soon(self, before: int) -> None:
        def look() -> None:
            taken = self._count_taken()
            if taken == before and (self._is_idle() or self in self.slow):
                self.transport.abort()
            else:  # the answer is being made, or taken
                self._end_soon(taken)

        self._last = self.loop.call_later(ENDING, look)

    def _expect_head(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.settings.header_seconds, self._give_up)

    def _give_up(self) -> None:
        if self._begun:
            self._end(TOO_SLOW)
        else:  # nothing was asked, or all that was asked is answered
            self.transport.close()


def make_refusal(refusal: Refusal) -> bytes:
    """A whole answer to what never became a request."""
    content = describe(refusal).model_dump_json().encode()
    headers = SECURITY | {
        "Content-Type": PROBLEM,
        "Content-Length": str(len(content)),
        "Cache-Control": "no-store",
        "Connection": "close",
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()
    return STATUS_LINE[refusal.status] + lines + b"\r\n" + content


def make_protocol(settings: Settings) -> type[GuardedProtocol]:
    """The connections of one server."""
    return type("Connection", (GuardedProtocol,), {"settings": settings, "waiting": {}, "slow": {}})
