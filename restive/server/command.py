"""`restive serve`: the desk on the web, from one command. Nothing of the server is loaded before it is asked for."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from restive.desk.options import StoreOption
from restive.errors import InputError, check_whole

NEEDED = ("fastapi", "httptools", "jinja2", "prometheus_client", "python_multipart", "uvicorn")
TABLE_TO_JSON = 8  # a body of JSON may have this part of what a table may have


def serve(
    store: StoreOption = None,
    host: Annotated[str, typer.Option(help="Where to listen; 0.0.0.0 is on all networks of this machine.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(help="The port to listen on; 0 takes any that is free.")] = 8787,
    certificate: Annotated[Path | None, typer.Option(help="For TLS: the certificate with its chain, in PEM.")] = None,
    key: Annotated[Path | None, typer.Option(help="For TLS: the key of the certificate, in PEM.")] = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="A proxy does TLS and says who asks, in X-Forwarded-For and -Proto.")
    ] = False,
    forwarded_allow: Annotated[
        list[str] | None,
        typer.Option(
            help="The address or network of a proxy to trust; several times.", show_default="this machine alone"
        ),
    ] = None,
    plain_http: Annotated[
        bool, typer.Option("--plain-http", help="Listen beyond this machine without TLS, where nobody can listen in.")
    ] = False,
    rate: Annotated[float, typer.Option(help="Requests a second of one token or address, twice as many at once.")] = (
        300.0
    ),
    largest_body: Annotated[int, typer.Option(help="The largest table to take, in MiB; of JSON an eighth.")] = 256,
    log: Annotated[str, typer.Option(help="A line for each request: `text`, `json` or `none`.")] = "json",
    browse: Annotated[bool, typer.Option("--browse", help="Open the pages in the browser.")] = False,
) -> None:
    """Put the desk on the web: an API for platforms and pages for program teams."""
    if any(find_spec(name) is None for name in NEEDED):
        raise InputError('The server needs a few more packages: pip install "restive[server]".')
    from restive.desk.options import open_store
    from restive.server.listening import load_tls
    from restive.server.run import serve as serve_desk
    from restive.server.settings import MIB, Settings

    largest = check_whole("--largest-body", largest_body, 1, 4096) * MIB
    settings = Settings(
        host=host,
        port=port,
        behind_proxy=behind_proxy or bool(forwarded_allow),
        proxies=tuple(forwarded_allow or ()),
        plain_http=plain_http,
        rate=rate,
        burst=max(int(2 * rate), 1),
        largest_table=largest,
        largest_json=max(largest // TABLE_TO_JSON, MIB),
        log=log,
    )
    tls = load_tls(certificate, key)
    with open_store(store, make=True) as desk:
        serve_desk(desk, settings, tls, browse)
