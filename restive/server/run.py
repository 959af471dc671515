"""The command `restive serve`: check the settings, open the socket, serve until a signal.

The server does not listen beyond this machine without tokens, nor without TLS unless the settings allow it. The desk
and the web framework are imported when the command runs, so that other commands start fast and do not need them.

Every option can be given on the command line, by an environment variable (RESTIVE_SERVE_HOST, ...) or in a file
(`--config`), in this order of precedence. The prefix is not RESTIVE_ alone: Kubernetes sets RESTIVE_PORT in every
container beside a service called restive.
"""

import errno
import math
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import tomllib
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from restive.console import print_notices
from restive.desk.cli import open_store
from restive.desk.cli_options import StoreOption
from restive.errors import InputError, check_whole, did_you_mean
from restive.server.settings import MIB, Settings, is_local
from restive.server.workers import Supervisor, Worker, check_workers, share_limits

if TYPE_CHECKING:
    from restive.desk.desk import Desk

REQUIRED_PACKAGES = ("fastapi", "httptools", "httpx", "jinja2", "prometheus_client", "python_multipart", "uvicorn")
TABLE_TO_JSON = 8  # a JSON body may have this fraction of the size of a table
BACKLOG = 1024
MAX_WORKERS = 64
SPARE_FILES = 256  # open files beside connections
ENVIRONMENT = {"auto_envvar_prefix": "RESTIVE_SERVE"}
LIMITS = tuple(
    each.name for each in fields(Settings) if each.name.startswith(("max_", "min_")) or each.name.endswith("_seconds")
)


def read_config(context: typer.Context, file: Path | None) -> Path | None:
    """Make the options of a TOML file the defaults of the command, and keep its table `limits` for the settings."""
    if file is None:
        return None
    try:
        given: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: it is not a TOML file: {error}.", location=file) from None
    limits = given.pop("limits", {})
    if not isinstance(limits, dict):
        raise InputError(f"{file}: limits is {limits!r}; it must be a table, [limits].", location=file)
    options = [str(option.name).replace("_", "-") for option in context.command.params]
    for known, names, what in ((options, given, "option"), (LIMITS, limits, "limit")):
        for name in names:
            if name not in known:
                raise InputError(f"{file}: there is no {what} {name!r}{did_you_mean(name, known)}", location=file)
    context.default_map = {name.replace("-", "_"): value for name, value in given.items()}
    context.obj = limits
    return file


def serve(
    context: typer.Context,
    store: StoreOption = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="TOML file with any of these options, and a table `limits`.", callback=read_config, is_eager=True
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 is all networks of this machine.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(help="Port to listen on; 0 chooses a free one.")] = 8787,
    certificate: Annotated[Path | None, typer.Option(help="Certificate for TLS with its chain, in PEM.")] = None,
    key: Annotated[Path | None, typer.Option(help="Key of the certificate, in PEM.")] = None,
    root_path: Annotated[
        str, typer.Option(help="Path prefix below which a proxy serves the pages, such as /desk.", show_default="none")
    ] = "",
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="A proxy does TLS and sets X-Forwarded-For and -Proto.")
    ] = False,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(help="Address or network of a trusted proxy; can be repeated.", show_default="this machine only"),
    ] = None,
    plain_http: Annotated[
        bool, typer.Option("--plain-http", help="Allow unencrypted HTTP beyond this machine, on a trusted network.")
    ] = False,
    identity_header: Annotated[
        str,
        typer.Option(
            help="Header in which a trusted proxy names the user; the proxy must remove it from requests.",
            show_default="none",
        ),
    ] = "",
    session_days: Annotated[
        float, typer.Option(help="Days until a browser has to sign in again.")
    ] = Settings.session_days,
    webhook_network: Annotated[
        list[str] | None,
        typer.Option(
            help="Address or network that webhooks may reach beside public ones; can be repeated.", show_default="none"
        ),
    ] = None,
    rate: Annotated[float, typer.Option(help="Requests a second per token or address; bursts of twice as many.")] = (
        300.0
    ),
    max_body: Annotated[int, typer.Option(help="Largest table, in MiB; JSON bodies may have an eighth of it.")] = 256,
    workers: Annotated[
        int, typer.Option(help="Worker processes; each program is kept in the memory of one of them.")
    ] = 1,
    log: Annotated[str, typer.Option(help="Log format: `text`, `json` or `none`.")] = "json",
    browse: Annotated[bool, typer.Option("--browse", help="Open the pages in the browser.")] = False,
) -> None:
    """Serve the desk: an API for platforms and pages for program teams."""
    require_packages()
    max_bytes = check_whole("--max-body", max_body, 1, 4096) * MIB
    settings = Settings(
        host=host,
        port=port,
        root_path=root_path,
        behind_proxy=behind_proxy or bool(trusted_proxy),
        trusted_proxies=tuple(trusted_proxy or ()),
        identity_header=identity_header,
        session_days=session_days,
        plain_http=plain_http,
        webhook_networks=tuple(webhook_network or ()),
        rate=rate,
        burst=max(int(2 * rate), 1) if math.isfinite(rate) else 1,
        log=log,
        **{"max_table_bytes": max_bytes, "max_json_bytes": max(max_bytes // TABLE_TO_JSON, MIB), **(context.obj or {})},
    )
    tls = load_tls(certificate, key)
    check_workers(check_whole("--workers", workers, 1, MAX_WORKERS), tls)
    with open_store(store, make=True) as desk, own_temporary_folder():
        serve_desk(desk, settings, tls, browse, workers, store)


def demo(
    folder: Annotated[
        Path | None, typer.Option(help="Keep the program in this folder.", show_default="a temporary one")
    ] = None,
    agents: Annotated[int, typer.Option(help="The number of simulated people.")] = 200,
    rounds: Annotated[int, typer.Option(help="The number of rounds.")] = 30,
    port: Annotated[int, typer.Option(help="Port to listen on; 0 chooses a free one.")] = 8787,
    browse: Annotated[bool, typer.Option(help="Open the pages in the browser.")] = True,
) -> None:
    """Simulate a program of a pharmacy and show its pages in your browser, until you press Ctrl-C."""
    require_packages()
    from restive.console import progress_bar
    from restive.desk.demo import run_demo

    with own_temporary_folder() as temporary:
        place = folder or temporary
        place.mkdir(parents=True, exist_ok=True)
        with open_store(str(place / "demo.db"), make=True) as desk:
            if not desk.programs():
                with progress_bar("simulating") as progress:
                    run_demo(desk, "pharmacists", agents=agents, rounds=rounds, progress=progress)
            left = f"the program stays in {place}" if folder else "the program is then removed; --folder keeps it"
            print_notices(f"Ctrl-C ends the demo; {left}")
            serve_desk(desk, Settings(port=port, log="none"), browse=browse)


def require_packages() -> None:
    """Refuse to serve without the packages of the server."""
    if any(find_spec(name) is None for name in REQUIRED_PACKAGES):
        raise InputError('The server needs more packages: pip install "restive[server]".')


def serve_desk(
    desk: "Desk",
    settings: Settings,
    tls: ssl.SSLContext | None = None,
    browse: bool = False,
    workers: int = 1,
    store: str | None = None,
) -> None:
    """Serve a desk, which workers open by the address of its store, until the process gets a signal."""
    from restive.desk.tokens import has_tokens

    checked = check_exposure(settings, tokens=has_tokens(desk.store), tls=tls is not None)
    with listen(checked.host, checked.port) as listener:
        port = listener.getsockname()[1]
        checked = replace(checked, port=port, max_connections=reserve_files(checked.max_connections))
        address = make_address(checked)
        for line in start_messages(checked, desk.store.address, address):
            print_notices(line)
        if browse:
            threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()
        if workers == 1:
            run_server(desk, checked, listener, tls)
        else:
            given = store, share_limits(checked, workers), listener
            Supervisor(workers, Path(tempfile.gettempdir()), run_worker, given, print_notices).run()


def run_worker(worker: Worker, store: str | None, settings: Settings, listener: socket.socket) -> None:
    """Serve in one of several worker processes until the supervisor stops it."""
    with open_store(store) as desk, listener:
        if desk.store.write_lock is not None:
            desk.store.write_lock = worker.open_lock()
        run_server(desk, settings, listener, worker=worker)


def run_server(
    desk: "Desk",
    settings: Settings,
    listener: socket.socket,
    tls: ssl.SSLContext | None = None,
    worker: Worker | None = None,
) -> None:
    """Serve a desk until the process gets a signal."""
    from restive.server.app import make_app
    from restive.server.connections import Server, WorkerServer, make_config
    from restive.server.monitoring import configure_logging
    from restive.server.routes.system import render_metrics

    app = make_app(desk, settings, worker)
    config = make_config(app, settings, tls, worker)
    server = Server(config) if worker is None else WorkerServer(config, worker, partial(render_metrics, app.state))
    configure_logging(settings.log, None if worker is None else worker.index)
    app.state.programs.warm_up.start(desk, *([] if worker is None else [worker.mark_ready]))
    server.run([listener])
    if not server.started:
        raise InputError("The server could not start; see the messages above.")


@contextmanager
def own_temporary_folder() -> Iterator[Path]:
    """A folder for all temporary files of this process and its children, which is removed even if they are killed.

    Uploaded tables are in there. A shell waits for the end of a pipe that only this process holds, and removes it then.
    """
    before = tempfile.tempdir, os.environ.get("TMPDIR")
    with tempfile.TemporaryDirectory(prefix="restive-", ignore_cleanup_errors=True) as folder:
        remove = ("sh", "-c", 'cat > /dev/null; rm -rf -- "$0"', folder)
        remover = None if sys.platform == "win32" else subprocess.Popen(
            remove, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )  # fmt: skip
        tempfile.tempdir = os.environ["TMPDIR"] = folder
        try:
            yield Path(folder)
        finally:
            tempfile.tempdir = before[0]
            if before[1] is None:
                del os.environ["TMPDIR"]
            else:
                os.environ["TMPDIR"] = before[1]
            if remover is not None:
                remover.communicate()


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
