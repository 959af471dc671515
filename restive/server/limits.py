"""Rate limits and body limits.

Requests are counted in token buckets, keyed by the token once its secret has been verified and by the client's address
before that: invalid tokens cannot exhaust a valid token's quota or create new buckets. Memory is bounded; the least
recently used bucket is dropped first. IPv6 addresses are counted by their /64 network.

Bodies are limited by size and by duration, counted as they arrive. Anonymous bodies and sign-in forms are limited to
`max_anonymous_bytes`. All bodies in progress share `max_total_bytes`; one that does not fit is rejected at once and
makes room for the others. Those without a verified credential share a sixteenth of it, which is counted apart.
"""

import asyncio
import hashlib
import ipaddress
import re
import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from restive.server.errors import error_response
from restive.server.settings import KIB, MIB, Settings
from restive.server.workers import SharedLevels, Worker

MAX_BUCKETS, MAX_SECRETS = 50_000, 50_000
MAX_SECRET_CHARACTERS = 500
ANONYMOUS_SHARE = 16  # bodies without a verified credential may use 1/16 of `max_total_bytes`
SIGN_IN_PATHS = ("/login", "/logout")
BUSY_HEADERS = {"Retry-After": "5"}
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="restive"'}
Clock = Callable[[], float]


def find_secret(settings: Settings, headers: Headers) -> str:
    """The token, name or session cookie that a request presents, verified or not; an empty text without one."""
    identity = headers.get(settings.identity_header, "") if settings.identity_header else ""
    if identity and "authorization" not in headers:
        secret = name_identity(identity)
    elif "authorization" in headers:
        secret = headers["authorization"].partition(" ")[2].strip()
    else:
        secret = find_cookie(settings.cookie_name, headers)
    return secret if len(secret) <= MAX_SECRET_CHARACTERS else ""


def name_identity(name: str) -> str:
    """The name that a trusted proxy gives, distinct from any token or cookie."""
    return f"identity {name}"


def find_cookie(name: str, headers: Headers) -> str:
    """The value of one cookie; the others are not parsed, because `http.cookies` can take quadratic time.

    >>> find_cookie("b", Headers({"cookie": "a=1; b=2"}))
    '2'
    """
    found = re.search(rf"(?:^|;)\s*{re.escape(name)}=([\w.~-]*)\s*(?:;|$)", headers.get("cookie", ""), re.ASCII)
    return found[1] if found else ""


def client_address(scope: Mapping[str, Any]) -> str:
    """The client's address, an IPv6 address as its /64 network.

    >>> client_address({"client": ("2001:db8::7", 5)}), client_address({"client": ("10.1.2.3", 5)})
    ('2001:db8::/64', '10.1.2.3')
    """
    host = str((scope.get("client") or ("", 0))[0])[:64]
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    mapped = getattr(address, "ipv4_mapped", None)
    if mapped is not None or address.version == 4:
        return str(mapped or address)
    return str(ipaddress.ip_network((int(address) >> 64 << 64, 64)))


class TokenBuckets:
    """Token-bucket rate limiter: `rate` requests a second with bursts of `burst`, for each key."""

    def __init__(
        self,
        rate: float,
        burst: int,
        max_buckets: int = MAX_BUCKETS,
        clock: Clock = time.monotonic,
        levels: SharedLevels | None = None,
    ) -> None:
        self._rate, self._burst, self._max_buckets, self._clock = rate, burst, max_buckets, clock
        # level and time of the last request
        self._levels: OrderedDict[str, tuple[float, float]] | SharedLevels = OrderedDict() if levels is None else levels

    def take(self, key: str) -> float:
        """Count a request; return 0 if it is allowed, else the seconds to wait.

        >>> buckets = TokenBuckets(rate=2, burst=1, clock=lambda: 0.0)
        >>> buckets.take("a"), buckets.take("a")
        (0.0, 0.5)
        """
        now = self._clock()
        level, then = self._levels.pop(key, (float(self._burst), now))
        level = min(level + (now - then) * self._rate, self._burst)
        missing = max(1 - level, 0.0)
        self._levels[key] = (level if missing else level - 1, now)
        if isinstance(self._levels, OrderedDict) and len(self._levels) > self._max_buckets:
            self._levels.popitem(last=False)
        return missing / self._rate

    def __len__(self) -> int:
        return len(self._levels)


class RateLimits:
    """The rate limiters of one server, and the secrets that have been verified, as keyed digests."""

    def __init__(
        self,
        rate: float,
        burst: int,
        sign_ins_per_minute: int,
        clock: Clock = time.monotonic,
        worker: Worker | None = None,
    ) -> None:
        shared = {} if worker is None else {name: worker.open_levels(name) for name in ("requests", "sign_ins")}
        self.requests = TokenBuckets(rate, burst, clock=clock, levels=shared.get("requests"))
        self.sign_ins = TokenBuckets(
            sign_ins_per_minute / 60, sign_ins_per_minute, clock=clock, levels=shared.get("sign_ins")
        )
        self._verified: OrderedDict[bytes, int | None] = OrderedDict()
        self._key = secrets.token_bytes(32)

    def remember(self, secret: str, principal: int | None) -> None:
        """Count requests with this secret for its principal from now on."""
        self._verified[self._digest(secret)] = principal
        if len(self._verified) > MAX_SECRETS:
            self._verified.popitem(last=False)

    def forget(self, secret: str) -> None:
        """Count requests with this secret for the client's address again."""
        self._verified.pop(self._digest(secret), None)

    def is_verified(self, secret: str) -> bool:
        """Whether this secret was valid when it was last looked up."""
        return bool(secret) and self._digest(secret) in self._verified

    def bucket_key(self, secret: str, scope: Mapping[str, Any]) -> str:
        """The bucket that a request is counted in."""
        principal = self._verified.get(self._digest(secret)) if secret else None
        return client_address(scope) if principal is None else f"token {principal}"

    def _digest(self, secret: str) -> bytes:
        return hashlib.blake2b(secret.encode(errors="replace"), key=self._key, digest_size=16).digest()


class BodyLimitMiddleware:
    """Answer 413, 408 or 503 to request bodies that are too large, too slow or too many."""

    def __init__(self, app: ASGIApp, settings: Settings, rates: RateLimits) -> None:
        self._app, self._settings, self._rates = app, settings, rates
        self._total: Counter[bool] = Counter()  # bytes of all requests in progress, by whether they are verified

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = _LimitedBody(self._settings, self._rates, self._total, scope, receive, send)
        try:
            await body.run(self._app)
        finally:
            body.release()


class _LimitedBody:
    """The body of one request: `_received` bytes so far, for which the server waited `_waited` seconds."""

    def __init__(
        self, settings: Settings, rates: RateLimits, total: Counter[bool], scope: Scope, receive: Receive, send: Send
    ) -> None:
        self._settings, self._scope, self._receive, self._send = settings, scope, receive, send
        self._headers = Headers(scope=scope)
        self._limit, self._rates, self._total = find_limit(settings, scope), rates, total
        self.counted: Counter[bool] = Counter()  # bytes in `total`
        self._received, self._waited = 0, 0.0
        self._complete = self._response_started = False
        self._error: HTTPException | None = None

    async def run(self, app: ASGIApp) -> None:
        """Run the app, unless the body is rejected; then answer with the error."""
        length = self._headers.get("content-length", "0")
        if length.isdecimal() and int(length) > self._limit:
            self._error = self._too_large()
        else:
            try:
                await app(self._scope, self.receive, self.send)
            except Exception:
                if self._error is None or self._response_started:
                    raise
        if self._error is not None and not self._response_started:
            await self._reject(self._error)

    async def receive(self) -> Message:
        """Receive the next part of the body."""
        if self._complete:
            return await self._receive()
        message = await self._receive_in_time()
        size = len(message.get("body", b""))
        self._received += size
        self._complete = not message.get("more_body", False)
        if self._received > self._limit:
            self._error = self._too_large()
        elif self._exceeds_total(size):
            self._scope["state"]["busy"] = True
            self._error = HTTPException(503, "The server is receiving too much data; try again.", BUSY_HEADERS)
        if self._error is not None:
            self.release()  # now, not after the rest is discarded: the others may need the room
            raise self._error
        return message

    def release(self) -> None:
        """Count the bytes of this body no longer."""
        self._total.subtract(self.counted)
        self.counted.clear()

    async def send(self, message: Message) -> None:
        """Send a response message, unless the body has been rejected."""
        if self._error is None or self._response_started:
            self._response_started = True
            await self._send(message)

    async def _receive_in_time(self) -> Message:
        clock = asyncio.get_running_loop().time
        allowed = self._settings.body_seconds + self._received / self._settings.min_body_rate
        began = clock()
        try:
            async with asyncio.timeout(max(allowed - self._waited, 0)):
                return await self._receive()
        except TimeoutError:
            self._error = HTTPException(408, "The request body arrived too slowly; send it again.")
            raise self._error from None
        finally:
            self._waited += clock() - began

    def _exceeds_total(self, size: int) -> bool:
        verified = self._settings.open or self._rates.is_verified(find_secret(self._settings, self._headers))
        self.counted[verified] += size
        self._total[verified] += size
        limit = self._settings.max_total_bytes // (1 if verified else ANONYMOUS_SHARE)
        return size > 0 and self._total[verified] > limit

    async def _reject(self, error: HTTPException) -> None:
        response = error_response(error, self._scope)
        response.headers["Connection"] = "close"
        await self._send({"type": "http.response.start", "status": error.status_code, "headers": response.raw_headers})
        await self._send({"type": "http.response.body", "body": response.body, "more_body": True})
        if error.status_code != 408 and "expect" not in self._headers:
            with suppress(TimeoutError):  # closing the connection while the client sends would lose the response
                async with asyncio.timeout(self._settings.linger_seconds):
                    while not self._complete:
                        self._complete = not (await self._receive()).get("more_body", False)
        await self._send({"type": "http.response.body", "body": b""})

    def _too_large(self) -> HTTPException:
        if not has_credential(self._settings, self._scope) and self._scope["path"] not in SIGN_IN_PATHS:
            return HTTPException(401, "A request body of this size needs a token or a session.", CHALLENGE)
        size = f"{self._limit // MIB} MiB" if self._limit >= MIB else f"{self._limit // KIB} KiB"
        return HTTPException(413, f"The request body is larger than the limit of {size}.")


def has_credential(settings: Settings, scope: Scope) -> bool:
    """Whether a request presents a token or cookie, verified or not, or needs none."""
    return settings.open or bool(find_secret(settings, Headers(scope=scope)))


def find_limit(settings: Settings, scope: Scope) -> int:
    """The size limit for the body of a request, by media type."""
    if scope["method"] in ("GET", "HEAD") or scope["path"] in SIGN_IN_PATHS or not has_credential(settings, scope):
        return settings.max_anonymous_bytes
    media_type = Headers(scope=scope).get("content-type", "").partition(";")[0].strip().lower()
    if media_type == "application/x-www-form-urlencoded":
        return settings.max_form_bytes
    return settings.max_json_bytes if media_type in ("", "application/json") else settings.max_table_bytes
