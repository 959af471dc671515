"""uvicorn's configuration and signals, and the timeouts and limits of connections that it has no options for.

`Connection` is an `asyncio.Protocol` that passes everything on to uvicorn's own HTTP protocol. It closes a connection

- that has not sent the head of a request after `header_seconds`;
- whose client does not take buffered response data within `stall_seconds`;
- that waits for a request while there are more than `max_connections`, the longest waiting first.

`ConnectionMiddleware` tells it when a request starts and ends, and splits large response bodies, so that only a bounded
part of a response is buffered. The size of request heads and trailers is limited here, idle connections by uvicorn.
"""

import asyncio
import multiprocessing
import os
import signal
import socket
import ssl
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from types import FrameType
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from restive.server.settings import KIB, Settings
from restive.server.workers import Worker

CHUNK_BYTES = 128 * KIB  # of responses
CHUNK_HEADER_BYTES = 32  # of request bodies, at most, on average

_current: ContextVar["Connection"] = ContextVar("connection")


class ConnectionPool:
    """The open connections of one server."""

    def __init__(self, settings: Settings, worker: Worker | None = None) -> None:
        self.settings, self.worker = settings, worker
        self._open: set[Connection] = set()
        self._waiting: dict[Connection, None] = {}  # without a request, the longest waiting first

    def add(self, connection: "Connection") -> None:
        """Add a connection; close the one that waits longest if there are too many."""
        self._open.add(connection)
        self._waiting[connection] = None
        if len(self._open) > self.settings.max_connections:
            oldest = next(iter(self._waiting))
            self.remove(oldest)
            oldest.abort()

    def remove(self, connection: "Connection") -> None:
        """Remove a closed connection."""
        self._open.discard(connection)
        self._waiting.pop(connection, None)

    def set_waiting(self, connection: "Connection", waiting: bool) -> None:
        """Record whether a connection waits for a request."""
        self._waiting.pop(connection, None)
        if waiting and connection in self._open:
            self._waiting[connection] = None


class Timer:
    """A timer that runs at most once at a time."""

    def __init__(self) -> None:
        self._handle: asyncio.TimerHandle | None = None

    def start(self, seconds: float, callback: Callable[[], None]) -> None:
        """Start the timer, unless it runs already."""
        if self._handle is None:
            self._handle = asyncio.get_running_loop().call_later(seconds, callback)

    def stop(self) -> None:
        """Stop the timer."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None


class HttpProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol without trailers; it counts what was sent of a request besides its body and chunk headers."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.overhead, self._in_head = 0, False
        self.is_between = True  # requests: no byte of the next one was received
        self._cycles: deque[RequestResponseCycle] = deque()  # requests that were not answered when the last one came

    def on_message_begin(self) -> None:
        """Begin the head."""
        self._in_head, self.is_between = True, False
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header; trailers would be added to the headers of a request that is being answered."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin the body."""
        self._in_head = False
        super().on_headers_complete()
        while self._cycles and self._cycles[0].response_complete:
            self._cycles.popleft()
        self._cycles.append(self.cycle)

    def connection_lost(self, exc: Exception | None) -> None:
        """End all requests; uvicorn ends the last one only, so that the answers to those before it would be written on."""
        for cycle in self._cycles:
            cycle.disconnected = not cycle.response_complete
            cycle.message_event.set()
        super().connection_lost(exc)

    def on_chunk_header(self) -> None:
        """Do not count the header of a chunk."""
        self.overhead -= CHUNK_HEADER_BYTES

    def on_body(self, body: bytes) -> None:
        """Do not count the body."""
        self.overhead -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Count from the end of the request on."""
        self.overhead, self.is_between = 0, True
        super().on_message_complete()


class Connection(asyncio.Protocol):
    """uvicorn's HTTP protocol with timeouts for request heads and unread responses."""

    def __init__(self, pool: ConnectionPool, handed: bytes = b"", **arguments: Any) -> None:
        self._pool, self._protocol, self._handed = pool, HttpProtocol(**arguments), handed
        self._requests = 0
        self._head_timer, self._stall_timer, self._lost = Timer(), Timer(), asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start to wait for a request."""
        self._transport = cast(asyncio.Transport, transport)
        self._protocol.connection_made(self._transport)
        self._pool.add(self)
        self._expect_head()
        if self._handed:
            self._feed(self._handed)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        self._pool.remove(self)
        self._head_timer.stop()
        self._stall_timer.stop()
        self._protocol.connection_lost(exc)
        self._lost.set()

    def data_received(self, data: bytes) -> None:
        """Pass data on; the first bytes of a request start the timer for its head, or go to another worker."""
        if not self._requests:
            worker = self._pool.worker
            if worker is not None and self._protocol.is_between and worker.hand_over(self._transport, data):
                return
            self._expect_head()
        self._feed(data)

    def _feed(self, data: bytes) -> None:
        _current.set(self)  # requests run in tasks that are created here and inherit the context
        self._protocol.overhead += len(data)
        self._protocol.data_received(data)
        if self._protocol.overhead > self._pool.settings.max_header_bytes and not self._transport.is_closing():
            self._protocol.send_400_response("The head or the trailers of the request are too large.")

    def eof_received(self) -> None:
        """Pass the end of the stream on."""
        self._protocol.eof_received()

    def pause_writing(self) -> None:
        """Start the timer for a client that does not read fast enough."""
        self._stall_timer.start(self._pool.settings.stall_seconds, self.abort)
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """Stop that timer."""
        self._stall_timer.stop()
        self._protocol.resume_writing()

    def begin_request(self) -> None:
        """Stop the timer for the head."""
        self._requests += 1
        self._head_timer.stop()
        self._pool.set_waiting(self, False)

    def end_request(self) -> None:
        """Wait for the next request."""
        self._requests -= 1
        self._pool.set_waiting(self, not self._requests)

    async def settle(self) -> None:
        """Wait until a connection that is being closed is closed: uvicorn discards the rest of a response only then."""
        if self._transport.is_closing():
            await self._lost.wait()

    def abort(self) -> None:
        """Close the connection and discard what is buffered."""
        self._transport.abort()

    def _expect_head(self) -> None:
        self._head_timer.start(self._pool.settings.header_seconds, self._transport.close)


class ConnectionMiddleware:
    """Report the start and end of each request to its connection, and split large response bodies."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        connection = _current.get()
        connection.begin_request()
        try:
            await self._app(scope, receive, partial(_send_in_chunks, connection, send))
        finally:
            connection.end_request()


async def _send_in_chunks(connection: Connection, send: Send, message: Message) -> None:
    await connection.settle()
    body = message.get("body", b"")
    for start in range(0, len(body) - CHUNK_BYTES, CHUNK_BYTES):
        await send({**message, "body": body[start : start + CHUNK_BYTES], "more_body": True})
        await connection.settle()
    await send({**message, "body": body[(len(body) - 1) // CHUNK_BYTES * CHUNK_BYTES :]} if body else message)


def make_protocol(settings: Settings, worker: Worker | None = None) -> Callable[..., asyncio.Protocol]:
    """Factory of the connections of one server, for `uvicorn.Config(http=...)`."""
    return partial(Connection, ConnectionPool(settings, worker))


def make_config(
    app: ASGIApp, settings: Settings, tls: ssl.SSLContext | None = None, worker: Worker | None = None
) -> uvicorn.Config:
    """The configuration of uvicorn."""
    return uvicorn.Config(
        ConnectionMiddleware(app),
        http=cast(Any, make_protocol(settings, worker)),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # added with the other middleware
        timeout_keep_alive=int(settings.idle_seconds),
        timeout_graceful_shutdown=int(settings.shutdown_seconds),
        ssl_context_factory=None if tls is None else (lambda *_: tls),
    )


class Server(uvicorn.Server):
    """uvicorn's server, which the first signal stops gracefully and the second one at once."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        if self.should_exit:
            os._exit(128 + sig)
        self.should_exit = True


class WorkerServer(Server):
    """The server of one of several workers: it also takes connections that others hand over, and ends with its supervisor."""

    def __init__(self, config: uvicorn.Config, worker: Worker, report: Callable[[], Awaitable[bytes]]) -> None:
        super().__init__(config)
        self._worker, self._report = worker, report
        self._tasks: set[asyncio.Task[None]] = set()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle a signal of the supervisor; Ctrl+C reaches all processes of the terminal, and is for the supervisor."""
        if sig != signal.SIGINT:
            super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to serve."""
        await super().startup(sockets)
        loop, parent = asyncio.get_running_loop(), multiprocessing.parent_process()
        loop.add_reader(self._worker.inbox, self._take_handed)
        if parent is not None:
            loop.add_reader(parent.sentinel, self._end_with_supervisor, parent.sentinel)

    def _end_with_supervisor(self, sentinel: int) -> None:
        self.should_exit = True
        asyncio.get_running_loop().remove_reader(sentinel)

    def _take_handed(self) -> None:
        while (handed := self._worker.receive()) is not None:
            task = asyncio.create_task(self._take(*handed))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _take(self, data: bytes, taken: socket.socket) -> None:
        """Serve a connection; an empty message asks for the metrics."""
        loop = asyncio.get_running_loop()
        with suppress(OSError):  # the client is gone
            if data:
                state = {"server_state": self.server_state, "app_state": self.lifespan.state}
                make = cast(Callable[..., asyncio.Protocol], self.config.http_protocol_class)
                await loop.connect_accepted_socket(partial(make, handed=data, config=self.config, **state), taken)
            else:
                with taken:
                    await loop.sock_sendall(taken, await self._report())
