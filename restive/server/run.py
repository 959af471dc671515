"""A server that runs: the app on its sockets, in one process, until it is reported to end.

It never listens beyond this machine without tokens, nor without TLS unless that is said. Told to end once, it takes no
further requests and finishes those under way; reported twice, it ends at once, and what was acknowledged is recorded.
"""

import asyncio
import os
import signal
import socket
import ssl
import sys
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from restive.desk.desk import Desk
from restive.desk.tokens import has_tokens
from restive.errors import InputError
from restive.server.app import make_app
from restive.server.listening import bind, make_room
from restive.server.logging import capture_libraries
from restive.server.protocol import make_protocol
from restive.server.proxies import read_network
from restive.server.settings import Settings, is_local
from restive.server.temporary import own_folder
from restive.server.warming import warm

HANDSHAKE = 10.0  # seconds
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def serve(desk: Desk, settings: Settings, tls: ssl.SSLContext | None = None, browse: bool = False) -> None:
    """Answer requests about a desk until the process is reported to end."""
    settled = settle(settings, tokens=has_tokens(desk.store), tls=tls is not None)
    sockets = bind(settled.host, settled.port)
    settled = replace(settled, port=sockets[0].getsockname()[1], connections=make_room(settled.connections))
    where = name_place(settled)
    server = Server(make_config(make_app(desk, settled), settled, tls), where if browse else None)
    capture_libraries(settled.log)
    for line in introduce(settled, desk.store.address, where):
        print(f"restive: {line}", file=sys.stderr, flush=True)
    with own_folder():
        threading.Thread(target=warm, args=[desk], daemon=True).start()
        server.run(sockets)
    if not server.started:
        raise InputError("the server could not begin; the lines above say why.")


def settle(settings: Settings, tokens: bool, tls: bool) -> Settings:
    """The settings with what follows from the store; refuse to listen where it would not be safe."""
    local = is_local(settings.host)
    for proxy in settings.proxies:
        read_network(proxy)
    if not tokens and not (local and not settings.behind_proxy):
        raise InputError(
            f"{'Behind a proxy' if settings.behind_proxy else settings.host}: others could reach the server, and its "
            "store has no token yet; make one with `restive desk token`, or listen on 127.0.0.1 without a proxy."
        )
    if not local and not (tls or settings.behind_proxy or settings.plain_http):
        raise InputError(
            f"{settings.host}: tokens and names would cross the network in the clear; give --certificate and --key, "
            "or say --behind-proxy where a proxy does that, or --plain-http where nobody can listen in."
        )
    return replace(settings, open=not tokens, https=tls)


def introduce(settings: Settings, store: str, where: str) -> Iterator[str]:
    """What to say at the start: where it listens, to whom, and over which store."""
    if settings.open:
        yield f"no token yet, so it listens on this machine only: {where}"
    else:
        yield f"listening on {where}; whoever asks needs a token"
    if not is_local(settings.host) and not settings.secure:
        yield "without TLS: tokens and names cross the network in the clear"
    yield f"the store is {store}; Ctrl+C ends"


def name_place(settings: Settings) -> str:
    """The address to open.

    >>> name_place(Settings(host="::1", port=80, https=True))
    'https://[::1]:80'
    """
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http{'s' if settings.https else ''}://{host}:{settings.port}"


def make_config(app: ASGIApp, settings: Settings, tls: ssl.SSLContext | None = None) -> uvicorn.Config:
    """How uvicorn is to run the app."""
    return uvicorn.Config(
        app,
        http=make_protocol(settings),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # see restive.server.proxies
        forwarded_allow_ips=[],
        timeout_keep_alive=int(settings.idle_seconds),
        timeout_graceful_shutdown=int(settings.shutdown_seconds),
        ssl_context_factory=None if tls is None else (lambda *_: tls),
    )


class Server(uvicorn.Server):
    """One that ends in its own way, and shows itself in a browser if asked to."""

    def __init__(self, config: uvicorn.Config, browse: str | None = None) -> None:
        super().__init__(config)
        self._browse = browse

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer until reported to end."""
        with asyncio.Runner(loop_factory=make_loop) as runner:
            runner.run(self.serve(sockets))

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup(sockets)
        if self._browse is not None:
            threading.Thread(target=webbrowser.open, args=[self._browse], daemon=True).start()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End by the first signal; uvicorn would pass it on afterwards, as if the end had not been in order."""
        if threading.current_thread() is not threading.main_thread():  # where no signal ever comes
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Finish what is under way; at the second signal nothing more."""
        if self.should_exit:
            os._exit(128 + sig)
        self.should_exit = True


def make_loop() -> asyncio.AbstractEventLoop:
    """The quicker event loop, where there is one, which does not wait long for a caller to agree on TLS."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()

    class Loop(uvloop.Loop):
        async def create_server(self, *args: Any, ssl: Any = None, **kw: Any) -> asyncio.Server:
            patience = {} if ssl is None else {"ssl_handshake_timeout": HANDSHAKE}
            made: asyncio.Server = await super().create_server(*args, ssl=ssl, **kw, **patience)  # type: ignore[call-overload]
            return made

    return Loop()
