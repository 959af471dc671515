"""Middleware of the server, in plain ASGI; `add_middleware` adds it in this order, the outermost first:

    RootPathMiddleware        removes the path prefix of a proxy (`restive.server.addresses`)
    IdentityMiddleware        removes the identity header of requests that do not come from a trusted proxy
    ProxyHeadersMiddleware    client address and scheme from a trusted proxy (uvicorn's own)
    RequestMiddleware         request id, security headers, log and metrics; errors become responses without details
    CheckMiddleware           header size, Host, cross-site requests, requests to an open server from elsewhere, and
                              requests a second; removes the cookies of other applications
    BodyLimitMiddleware       size and duration of bodies (`restive.server.limits`)

Errors have the same shape as all others; a browser that asked for a page gets a page.
"""

import ipaddress
import math
import re
import secrets
import time
from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from restive.server.addresses import RootPathMiddleware
from restive.server.errors import error_response
from restive.server.limits import BodyLimitMiddleware, RateLimits, find_secret
from restive.server.monitoring import Metrics, log_error, log_request
from restive.server.settings import FLASH_COOKIE, LOCAL_NAMES, LOCAL_NETWORKS, Settings
from restive.server.tracing import Tracing, make_tracing
from restive.server.workers import Worker

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
HOST = re.compile(r"([\w.-]+|\[[0-9a-f:.]+\])(:\d*)?", re.ASCII | re.IGNORECASE)
COOKIE = re.compile(r"([\w-]+)=([\w.~%/-]*)", re.ASCII)
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
PROXY_HEADERS = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip")
SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
YEAR_SECONDS = 31_536_000
CLIENT_CLOSED_REQUEST = 499


def add_middleware(app: Starlette, settings: Settings, worker: Worker | None = None) -> None:
    """Add all middleware to the app; `app.state` gets `rates`, `metrics` and `tracing`."""
    app.state.rates = RateLimits(settings.rate, settings.burst, settings.max_sign_ins_per_minute, worker=worker)
    app.state.metrics, app.state.tracing = Metrics(), make_tracing()
    app.add_middleware(BodyLimitMiddleware, settings=settings, rates=app.state.rates)  # the innermost first
    app.add_middleware(CheckMiddleware, settings=settings, rates=app.state.rates)
    app.add_middleware(RequestMiddleware, settings=settings, metrics=app.state.metrics, tracing=app.state.tracing)
    if settings.behind_proxy:
        trusted = list(settings.trusted_proxies or LOCAL_NETWORKS)
        app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=trusted)
    if settings.identity_header:
        app.add_middleware(IdentityMiddleware, settings=settings)
    if settings.root_path:
        app.add_middleware(RootPathMiddleware, root_path=settings.root_path)


class IdentityMiddleware:
    """Remove the identity header unless a trusted proxy sent the request and gave it once."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._name = app, settings.identity_header.lower().encode()
        self._trusted = [ipaddress.ip_network(proxy, strict=False) for proxy in settings.trusted_proxies]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] == "http":
            given = [value for name, value in scope["headers"] if name.lower() == self._name]
            if given and not (len(given) == 1 and self._is_trusted(scope)):
                scope["headers"] = [each for each in scope["headers"] if each[0].lower() != self._name]
        await self._app(scope, receive, send)

    def _is_trusted(self, scope: Scope) -> bool:
        """Whether the connection comes from a trusted proxy; a forwarded address does not count."""
        try:
            peer = ipaddress.ip_address((scope.get("client") or ("",))[0])
        except ValueError:
            return False
        peer = getattr(peer, "ipv4_mapped", None) or peer
        return any(peer in network for network in self._trusted)


class RequestMiddleware:
    """Give each request an id, log, count and trace it, add headers to its response, and turn errors into responses."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics, tracing: Tracing) -> None:
        self._app, self._metrics, self._tracing = app, metrics, tracing
        hsts = {"Strict-Transport-Security": f"max-age={YEAR_SECONDS}"} if settings.secure else {}
        self._headers = SECURITY_HEADERS | hsts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        scope.setdefault("state", {})["id"] = request_id
        with self._tracing.request(scope) as trace_end:
            trace_end(await self._handle(scope, receive, send, request_id))

    async def _handle(self, scope: Scope, receive: Receive, send: Send, request_id: str) -> int:
        """Handle one request; the status of its response."""
        status, size, began = 0, 0, time.perf_counter()

        async def send_noted(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
                self._add_headers(MutableHeaders(scope=message), request_id)
            size += len(message.get("body", b""))
            await send(message)

        try:
            with self._metrics.running.track_inprogress():
                await self._app(scope, receive, send_noted)
        except ClientDisconnect:
            pass
        except Exception as error:
            if status:  # the response stays incomplete, so that the client does not mistake it for a complete one
                log_error(error, scope)
                raise
            response = error_response(error, scope)
            await response(scope, receive, send_noted)
            if response.status_code == 500:
                log_error(error, scope)
        finally:
            log_request(self._metrics, scope, status or CLIENT_CLOSED_REQUEST, size, time.perf_counter() - began)
        return status or CLIENT_CLOSED_REQUEST

    def _add_headers(self, headers: MutableHeaders, request_id: str) -> None:
        headers["X-Request-ID"] = request_id
        for name, value in self._headers.items():
            headers.setdefault(name, value)
        headers.setdefault("Cache-Control", "private, no-cache" if "etag" in headers else "no-store")
        if "server" in headers:
            del headers["server"]


class CheckMiddleware:
    """Reject malformed, cross-site and too many requests, and requests to an open server from other machines or sites."""

    def __init__(self, app: ASGIApp, settings: Settings, rates: RateLimits) -> None:
        self._app, self._settings, self._rates = app, settings, rates
        self._names = {*LOCAL_NAMES, f"[{settings.host}]" if ":" in settings.host else settings.host}
        self._cookies = (settings.cookie_name, FLASH_COOKIE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        error = None
        if scope["type"] == "http":
            error = self._find_error(scope)
            keep_cookies(scope, self._cookies)
            error = error or self._check_rate(scope)
        if error is None:
            await self._app(scope, receive, send)
        else:
            await error_response(error, scope)(scope, receive, send)

    def _check_rate(self, scope: Scope) -> HTTPException | None:
        secret = find_secret(self._settings, Headers(scope=scope))
        wait = self._rates.requests.take(self._rates.bucket_key(secret, scope))
        if not wait:
            return None
        return HTTPException(429, "Too many requests; wait and send fewer.", {"Retry-After": str(math.ceil(wait))})

    def _find_error(self, scope: Scope) -> HTTPException | None:
        headers = Headers(scope=scope)
        size = (
            len(scope["path"])
            + len(scope["query_string"])
            + sum(len(name) + len(value) + 4 for name, value in headers.raw)
        )
        if size > self._settings.max_header_bytes:
            return HTTPException(431, "The address and headers of the request are too large.")
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not HOST.fullmatch(hosts[0]):
            return HTTPException(400, "The request must have one Host header, with a name or address.")
        if "content-length" in headers and "transfer-encoding" in headers:
            return HTTPException(400, "The request must have one way to give the length of its body.")
        if self._settings.open and _host(headers) not in self._names:
            return HTTPException(421, "This server has no tokens yet, so it only answers to localhost and 127.0.0.1.")
        if self._settings.open and any(name in headers for name in PROXY_HEADERS):
            return HTTPException(421, "This server has no tokens yet, so it cannot be used behind a proxy.")
        if "authorization" not in headers and _is_cross_site(scope["method"], headers):
            return HTTPException(403, "Cross-site requests are not allowed.")
        return None


def keep_cookies(scope: Scope, names: Sequence[str]) -> None:
    """Remove all cookies but these, and malformed ones: `http.cookies` takes quadratic time for quotes (CVE-2024-7592).

    >>> scope = {"type": "http", "headers": [(b"cookie", b'a="\\\\"; b=1; c=2'), (b"host", b"x")]}
    >>> keep_cookies(scope, ["a", "b"])
    >>> scope["headers"]
    [(b'host', b'x'), (b'cookie', b'b=1')]
    """
    headers = MutableHeaders(scope=scope)
    found = [COOKIE.fullmatch(part.strip()) for given in headers.getlist("cookie") for part in given.split(";")]
    del headers["cookie"]
    if kept := "; ".join(match[0] for match in found if match is not None and match[1] in names):
        headers["cookie"] = kept
    scope["headers"] = headers.raw


def _host(headers: Headers) -> str:
    """The requested host without its port."""
    return re.sub(r":\d*$", "", headers["host"].lower())


def _is_cross_site(method: str, headers: Headers) -> bool:
    """Whether a page of another site made the browser send this; following a link from there is allowed."""
    site, safe = headers.get("sec-fetch-site"), method in SAFE_METHODS
    if site is not None:
        follows = safe and headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        return site not in ("same-origin", "none") and not follows
    origin = headers.get("origin")
    return origin is not None and not safe and urlsplit(origin).netloc.lower() != headers["host"].lower()
