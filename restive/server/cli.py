"""The command `restive serve`; the server is imported when the command runs, so that other commands start fast."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from restive.desk.cli import StoreOption
from restive.errors import InputError, check_whole

REQUIRED_PACKAGES = ("fastapi", "jinja2", "prometheus_client", "python_multipart", "uvicorn")
TABLE_TO_JSON = 8  # a JSON body may have this fraction of the size of a table


def serve(
    store: StoreOption = None,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 is all networks of this machine.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(help="Port to listen on; 0 chooses a free one.")] = 8787,
    certificate: Annotated[Path | None, typer.Option(help="Certificate for TLS with its chain, in PEM.")] = None,
    key: Annotated[Path | None, typer.Option(help="Key of the certificate, in PEM.")] = None,
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
    rate: Annotated[float, typer.Option(help="Requests a second per token or address; bursts of twice as many.")] = (
        300.0
    ),
    max_body: Annotated[int, typer.Option(help="Largest table, in MiB; JSON bodies may have an eighth of it.")] = 256,
    log: Annotated[str, typer.Option(help="Log format: `text`, `json` or `none`.")] = "json",
    browse: Annotated[bool, typer.Option("--browse", help="Open the pages in the browser.")] = False,
) -> None:
    """Serve the desk: an API for platforms and pages for program teams."""
    if any(find_spec(name) is None for name in REQUIRED_PACKAGES):
        raise InputError('The server needs more packages: pip install "restive[server]".')
    from restive.desk.cli import open_store
    from restive.server.run import load_tls
    from restive.server.run import serve as serve_desk
    from restive.server.settings import MIB, Settings

    max_bytes = check_whole("--max-body", max_body, 1, 4096) * MIB
    settings = Settings(
        host=host,
        port=port,
        behind_proxy=behind_proxy or bool(trusted_proxy),
        trusted_proxies=tuple(trusted_proxy or ()),
        plain_http=plain_http,
        rate=rate,
        burst=max(int(min(2 * rate, 1e9)), 1) if rate == rate else 1,
        max_table_bytes=max_bytes,
        max_json_bytes=max(max_bytes // TABLE_TO_JSON, MIB),
        log=log,
    )
    tls = load_tls(certificate, key)
    with open_store(store, make=True) as desk:
        serve_desk(desk, settings, tls, browse)
