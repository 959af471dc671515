"""What stands before every route: small layers of plain ASGI, put around an app in one order by `protect`.

    Forwarded who asks, where a proxy passes requests on (`restive.server.proxies`)
    Mark      a request id, and the security headers of every answer
    Observe   one line in the log and the metrics of each request (`restive.server.logging`)
    Catch     an error that nobody expected becomes an answer that says nothing of the code
    Places    an open server is there for this machine's own pages and programs alone; no site sends another's forms
    Turns     not more than so many requests a second
    Sizes     bodies that are too large, or too slow in coming (`restive.server.body_limit`)

A refusal has the shape of every other failure; a browser that asked for a page gets a sentence to read.
"""

import math
import os
import re
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from restive.server.auth import find_secret
from restive.server.body_limit import Sizes
from restive.server.errors import Refusal
from restive.server.logging import Observe, log_error
from restive.server.metrics import Metrics
from restive.server.proxies import Forwarded
from restive.server.rate_limit import Rates
from restive.server.refusing import refuse
from restive.server.settings import LOCAL_NAMES, Settings

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
RELAYED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
PERMISSIONS = "camera=(), geolocation=(), microphone=(), payment=(), usb=()"
SECURITY = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": PERMISSIONS,
}
YEAR = 31_536_000  # seconds


def protect(app: Starlette, settings: Settings) -> None:
    """Put all layers around the app; its state gets `rates`, which `identity` needs, and `metrics`."""
    app.state.rates = Rates(settings.rate, settings.burst, settings.sign_ins)
    app.state.metrics = Metrics()
    app.add_middleware(Sizes, settings=settings, rates=app.state.rates)  # the innermost first
    app.add_middleware(Turns, settings=settings, rates=app.state.rates)
    app.add_middleware(Places, settings=settings)
    app.add_middleware(Catch)
    app.add_middleware(Observe, metrics=app.state.metrics, log=settings.log)
    app.add_middleware(Mark, settings=settings)
    if settings.behind_proxy:
        app.add_middleware(Forwarded, named=settings.proxies)


class Mark:
    """Give each request an id, its own if that is a plain one, and each answer the security headers."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._always = SECURITY | ({"Strict-Transport-Security": f"max-age={YEAR}"} if settings.secure else {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        mark = given if REQUEST_ID.fullmatch(given) else os.urandom(8).hex()
        scope.setdefault("state", {})["id"] = mark

        async def send_marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._add(MutableHeaders(scope=message), mark)
            await send(message)

        await self._app(scope, receive, send_marked)

    def _add(self, headers: MutableHeaders, mark: str) -> None:
        headers["X-Request-ID"] = mark
        for name, value in self._always.items():
            headers.setdefault(name, value)
        headers.setdefault("Cache-Control", "private, no-cache" if "etag" in headers else "no-store")
        if "server" in headers:
            del headers["server"]


class Catch:
    """Answer every error that comes as far as this; keep a record of those that nobody expected."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def send_noted(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, send_noted)
        except ClientDisconnect:
            pass
        except Exception as error:
            # Where the answer has begun it ends in the middle, so that nobody takes it for whole.
            if started:
                log_error(error, scope)
                raise
            if await refuse(error, scope, receive, send) == 500:
                log_error(error, scope)


class Places:
    """Refuse what another site made a browser send, and whatever comes to an open server from beyond this machine."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._open = app, settings.open
        self._names = {*LOCAL_NAMES, f"[{settings.host}]" if ":" in settings.host else settings.host}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        wrong = self._fault(scope["method"], Headers(scope=scope)) if scope["type"] == "http" else None
        if wrong is None:
            await self._app(scope, receive, send)
        else:
            await refuse(Refusal(*wrong), scope, receive, send)

    def _fault(self, method: str, headers: Headers) -> tuple[int, str] | None:
        if self._open and _host(headers) not in self._names:
            return 421, "This server has no tokens yet, so it answers to localhost and 127.0.0.1 alone."
        if self._open and any(name in headers for name in RELAYED):
            return 421, "This server has no tokens yet, so it is not to be reached by a proxy; see --behind-proxy."
        if "authorization" not in headers and _from_elsewhere(method, headers):
            return 403, "Another site asked for this, which is not allowed."
        return None


class Turns:
    """Refuse whoever asks too often."""

    def __init__(self, app: ASGIApp, settings: Settings, rates: Rates) -> None:
        self._app, self._settings, self._rates = app, settings, rates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        wait = 0.0
        if scope["type"] == "http":
            secret = find_secret(self._settings, Headers(scope=scope))
            wait = self._rates.requests.take(self._rates.name_caller(secret, scope))
        if wait:
            after = {"Retry-After": str(math.ceil(wait))}
            await refuse(Refusal(429, "Too many requests; wait and ask less often.", after), scope, receive, send)
        else:
            await self._app(scope, receive, send)


def _host(headers: Headers) -> str:
    """The host that was asked for, without its port."""
    return re.sub(r":\d*$", "", headers.get("host", "").lower())


def _from_elsewhere(method: str, headers: Headers) -> bool:
    """Whether a page of another site had the browser ask; following a link from there is all it may do."""
    site, safe = headers.get("sec-fetch-site"), method in SAFE_METHODS
    if site is not None:
        follows = safe and headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        return site not in ("same-origin", "none") and not follows
    origin = headers.get("origin")
    return origin is not None and not safe and urlsplit(origin).netloc.lower() != headers.get("host", "").lower()
