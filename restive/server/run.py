"""Run the server: check the settings, open the socket, serve until a signal.

The server does not listen beyond this machine without tokens, nor without TLS unless the settings allow it. The first
signal stops accepting connections and finishes the requests in progress; the second ends the process at once.
"""

import errno
import os
import socket
import ssl
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp

from restive.desk.config import Config
from restive.desk.desk import Desk
from restive.desk.events import Created
from restive.desk.store import Store
from restive.desk.tokens import has_tokens
from restive.errors import InputError
from restive.server.app import make_app
from restive.server.connections import ConnectionMiddleware, make_protocol
from restive.server.logging import configure_logging
from restive.server.settings import Settings, is_local

BACKLOG = 1024
SPARE_FILES = 256  # open files beside connections
MAX_WARM_POLICIES, WARM_AGENTS, WARM_ROUNDS = 5, 40, 2


def serve(desk: Desk, settings: Settings, tls: ssl.SSLContext | None = None, browse: bool = False) -> None:
    """Serve a desk until the process gets a signal."""
    checked = check_exposure(settings, tokens=has_tokens(desk.store), tls=tls is not None)
    listener = listen(checked.host, checked.port)
    with listener:
        port = listener.getsockname()[1]
        checked = replace(checked, port=port, max_connections=reserve_files(checked.max_connections))
        server = Server(make_config(make_app(desk, checked), checked, tls))
        configure_logging(checked.log)
        address = make_address(checked)
        for line in start_messages(checked, desk.store.address, address):
            print(f"restive: {line}", file=sys.stderr, flush=True)
        threading.Thread(target=warm_up, args=[desk], daemon=True).start()
        if browse:
            threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()
        server.run([listener])
    if not server.started:
        raise InputError("The server could not start; see the messages above.")


def check_exposure(settings: Settings, tokens: bool, tls: bool) -> Settings:
    """The settings with `open` and `https` filled in; an error if the server would be exposed without protection."""
    local = is_local(settings.host)
    if not tokens and (settings.behind_proxy or not local):
        where = "Behind a proxy" if settings.behind_proxy else f"On {settings.host}"
        raise InputError(
            f"{where} the server can be reached from other machines, but its store has no token yet. Make one with "
            "`restive desk token`, or listen on 127.0.0.1 without a proxy."
        )
    if not local and not (tls or settings.behind_proxy or settings.plain_http):
        raise InputError(
            f"On {settings.host} tokens and names would be sent unencrypted. Use --certificate and --key, or "
            "--behind-proxy if a proxy encrypts, or --plain-http on a trusted network."
        )
    return replace(settings, open=not tokens, https=tls)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, UnicodeError) as error:
        code = getattr(error, "errno", None) or -1
        if code < 0:  # an error of the name lookup
            raise InputError(f"{host} is not an address to listen on; use 127.0.0.1 or 0.0.0.0.") from None
        reasons = {
            errno.EADDRINUSE: "is in use, perhaps by another `restive serve`; choose another one with --port",
            errno.EACCES: "is reserved for privileged users; choose one from 1024 on with --port",
        }
        reason = reasons.get(code, f"cannot be listened on: {os.strerror(code)}")
        raise InputError(f"Port {port} of {host} {reason}.") from None


def load_tls(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """TLS context from a certificate and its key, None without both."""
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise InputError("TLS needs both --certificate and --key.")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key, password=lambda: b"")  # never ask for a password at the terminal
    except (ssl.SSLError, ValueError):
        raise InputError(f"{certificate} and {key} are not a certificate and its unencrypted key, in PEM.") from None
    except OSError:
        raise InputError(f"Cannot read {certificate} and {key}.") from None
    return context


def reserve_files(max_connections: int) -> int:
    """Raise the limit on open files to fit the connections; return how many fit."""
    try:
        import resource
    except ImportError:  # Windows
        return min(max_connections, 512)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max_connections + SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max_connections if soft == resource.RLIM_INFINITY else max(min(max_connections, soft - SPARE_FILES), 16)


def make_address(settings: Settings) -> str:
    """The address of the start page.

    >>> make_address(Settings(host="::1", port=80, https=True))
    'https://[::1]:80'
    """
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http{'s' if settings.https else ''}://{host}:{settings.port}"


def start_messages(settings: Settings, store: str, address: str) -> Iterator[str]:
    """What the command prints when the server starts."""
    if settings.open:
        yield f"listening on {address}, for this machine only: the store has no token yet"
    else:
        yield f"listening on {address}; a token is required"
    if not is_local(settings.host) and not settings.secure:
        yield "without TLS: tokens and names are sent unencrypted"
    yield f"the store is {store}; press Ctrl+C to stop"


def make_config(app: ASGIApp, settings: Settings, tls: ssl.SSLContext | None = None) -> uvicorn.Config:
    """The configuration of uvicorn."""
    return uvicorn.Config(
        ConnectionMiddleware(app),
        http=cast(Any, make_protocol(settings)),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # added with the other middleware
        h11_max_incomplete_event_size=settings.max_header_bytes,
        timeout_keep_alive=int(settings.idle_seconds),
        timeout_graceful_shutdown=int(settings.shutdown_seconds),
        ssl_context_factory=None if tls is None else (lambda *_: tls),
    )


class Server(uvicorn.Server):
    """uvicorn's server, which a first signal stops gracefully and a second one at once."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        if self.should_exit:
            os._exit(128 + sig)
        self.should_exit = True


def warm_up(desk: Desk) -> None:
    """Compile the kernels of the policies in use, by deciding rounds in a temporary store."""
    with suppress(Exception), tempfile.TemporaryDirectory() as folder, Desk(Path(folder) / "warm.db") as scratch:
        for number, (policy, shadow) in enumerate(find_policies(desk.store)):
            name = f"warm-{number}"
            program = scratch.create(name, states=["low", "high"], rewards=[0, 1], policy=policy, shadow=shadow)
            for _ in range(WARM_ROUNDS):
                program.decide([{"agent": f"a{agent}", "state": agent % 2} for agent in range(WARM_AGENTS)], again=True)
                program.learn([{"agent": f"a{agent}", "next_state": agent % 2} for agent in range(WARM_AGENTS)])


def find_policies(store: Store) -> list[tuple[str, str | None]]:
    """The policies and shadow policies of the newest programs, without duplicates."""
    found: dict[tuple[str, str | None], None] = {}
    for row in reversed(store.programs()[-MAX_WARM_POLICIES * 10 :]):
        created = next(store.events(row.id, kinds=[Created.kind], columns=False), None)
        if created is not None:
            found[(created.header["policy"], created.header["shadow"])] = None
    return list(found)[:MAX_WARM_POLICIES] or [(Config.policy, None)]
