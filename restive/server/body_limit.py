"""Bodies within bounds: not larger than allowed for what they are, and not slower in coming than a least pace.

What counts is what arrives, so a body that names no length, or never ends, is refused at the same size. Only the time
spent waiting for the caller is counted. Whoever shows neither a token nor a cookie may send next to nothing, and nobody
sends more to sign in or out. All bodies together are bounded; those of strangers, whose token or cookie was not found
good, have a small bound of their own, so that they take no place from the others. A caller who is refused while still
sending is listened to for a moment, or the answer would be lost with the connection.
"""

import asyncio
from collections import Counter
from contextlib import suppress

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from restive.server.auth import CHALLENGE, find_secret
from restive.server.errors import Refusal, describe
from restive.server.rate_limit import Rates
from restive.server.refusing import make_answer
from restive.server.settings import MIB, Settings

LATER = {"Retry-After": "5"}
SIGNING = ("/login", "/logout")  # a token is all that these forms bring
STRANGERS_TO_ALL = 16  # the bodies of strangers together may have this part of what all may have


class Sizes:
    """Refuse bodies that are too large or too slow."""

    def __init__(self, app: ASGIApp, settings: Settings, rates: Rates) -> None:
        self._app, self._settings, self._rates = app, settings, rates
        self._held: Counter[bool] = Counter()  # bytes of all requests under way, of callers who are known and others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(self._settings, self._rates, self._held, scope, receive, send)
        try:
            await exchange.run(self._app)
        finally:
            self._held.subtract(exchange.held)


class _Exchange:
    """One request and its answer; `received` bytes so far, for which it was `waited` seconds."""

    def __init__(
        self, settings: Settings, rates: Rates, together: Counter[bool], scope: Scope, receive: Receive, send: Send
    ) -> None:
        self._settings, self._scope, self._receive, self._send = settings, scope, receive, send
        self._limit, self._rates, self._together = find_limit(settings, scope), rates, together
        self.held: Counter[bool] = Counter()
        self.received, self._waited = 0, 0.0
        self._whole = self._started = False
        self._refusal: Refusal | None = None

    async def run(self, app: ASGIApp) -> None:
        """Let the app answer, unless the body has to be refused."""
        length = Headers(scope=self._scope).get("content-length", "0")
        if length.isdecimal() and int(length) > self._limit:
            self._refusal = self._too_large()
        else:
            try:
                await app(self._scope, self.receive, self.send)
            except Exception:
                if self._refusal is None or self._started:
                    raise
        if self._refusal is not None and not self._started:
            await self._refuse(self._refusal)

    async def receive(self) -> Message:
        """The next piece of the body."""
        if self._whole:
            return await self._receive()
        message = await self._wait()
        size = len(message.get("body", b""))
        self.received += size
        self._whole = not message.get("more_body", False)
        if self.received > self._limit:
            self._refusal = self._too_large()
        elif self._is_too_much(size):
            self._scope["state"]["busy"] = True
            self._refusal = Refusal(503, "Too much is being sent to the server at once; try again.", LATER)
        if self._refusal is not None:
            raise self._refusal
        return message

    def _is_too_much(self, size: int) -> bool:
        """Count a piece with those of callers like this one; most are let in before their body is asked for."""
        known = self._settings.open or self._rates.knows(find_secret(self._settings, Headers(scope=self._scope)))
        self.held[known] += size
        self._together[known] += size
        most = self._settings.largest_together // (1 if known else STRANGERS_TO_ALL)
        return size > 0 and self._together[known] > most

    async def send(self, message: Message) -> None:
        """Pass an answer on; what the app makes of a refused body is not the answer."""
        if self._refusal is None or self._started:
            self._started = True
            await self._send(message)

    async def _wait(self) -> Message:
        clock = asyncio.get_running_loop().time
        began, left = clock(), self._settings.body_time(self.received) - self._waited
        try:
            async with asyncio.timeout(max(left, 0)):
                return await self._receive()
        except TimeoutError:
            self._refusal = Refusal(408, "The body of the request comes too slowly; send it again.")
            raise self._refusal from None
        finally:
            self._waited += clock() - began

    async def _refuse(self, refusal: Refusal) -> None:
        response = make_answer(refusal, describe(refusal, HTTPConnection(self._scope)), self._scope)
        response.headers["Connection"] = "close"
        await self._send({"type": "http.response.start", "status": refusal.status, "headers": response.raw_headers})
        await self._send({"type": "http.response.body", "body": response.body, "more_body": True})
        if refusal.status != 408 and "expect" not in Headers(scope=self._scope):
            with suppress(TimeoutError):
                async with asyncio.timeout(self._settings.linger_seconds):
                    await self._drain()
        await self._send({"type": "http.response.body", "body": b""})

    def _too_large(self) -> Refusal:
        if shows_something(self._settings, self._scope) or self._scope["path"] in SIGNING:
            return too_large(self._limit)
        return Refusal(401, "So much is taken only with a token, or from whoever is signed in.", CHALLENGE)

    async def _drain(self) -> None:
        while not self._whole:
            self._whole = not (await self._receive()).get("more_body", False)


def too_large(limit: int) -> Refusal:
    """The refusal of a body over the limit."""
    size = f"{limit // MIB} MiB" if limit >= MIB else f"{limit >> 10} KiB"
    return Refusal(413, f"The body of the request is larger than {size}, the most that is taken here.")


def shows_something(settings: Settings, scope: Scope) -> bool:
    """Whether the caller shows anything to be let in by, or need not; it may be made up."""
    return settings.open or bool(find_secret(settings, Headers(scope=scope)))


def find_limit(settings: Settings, scope: Scope) -> int:
    """The largest body that is taken from this caller, of this kind."""
    small = scope["method"] in ("GET", "HEAD") or scope["path"] in SIGNING
    if small or not shows_something(settings, scope):
        return settings.largest_unknown
    kind = Headers(scope=scope).get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/x-www-form-urlencoded":
        return settings.largest_form
    return settings.largest_json if kind in ("", "application/json") else settings.largest_table
