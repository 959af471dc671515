"""HTTP transport with retries: exponential backoff with jitter, and idempotency keys that make a retry safe.

A request that records something carries an idempotency key. The server executes the request with a key once and repeats
its answer, so a request can be sent again whenever its answer is lost or the server is busy.
"""

import asyncio
import itertools
import json
import os
import secrets
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from restive.api import types
from restive.errors import InputError, check_number, check_whole
from restive.version import __version__

try:
    import httpx
except ImportError:
    raise ImportError('The client needs httpx: pip install "restive[client]".') from None

PREFIX = "/api/v1"
TOKEN_VARIABLE = "RESTIVE_TOKEN"
RETRIED_STATUSES = (408, 425, 429, 502, 503, 504)
FIRST_DELAY_SECONDS, MAX_DELAY_SECONDS = 0.5, 60.0
CONNECT_TIMEOUT_SECONDS = 10.0
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
Query = Mapping[str, str | int | bool | list[str] | None]


class APIError(InputError):
    """The server refused a request, or did not answer.

    status     the HTTP status; None if there was no answer
    code       a stable identifier, such as not_found; no_answer and unexpected_answer are the client's own
    faults     the faults of a table or of the request, each with row, column and message
    recorded   whether anything was recorded; None if it is not known: send the request again with the same `key`
    request    the id of the request in the server's log
    key        the idempotency key of the request
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str = "unexpected_answer",
        faults: list[types.Fault] | None = None,
        recorded: bool | None = None,
        request: str = "",
        key: str | None = None,
    ) -> None:
        super().__init__(message, code=code)
        self.status, self.faults, self.recorded = status, faults or [], recorded
        self.request, self.key = request, key


@dataclass(frozen=True)
class Body:
    """The body of a request."""

    content: bytes
    media_type: str = "application/json"

    @classmethod
    def of(cls, data: object) -> "Body":
        """Plain data as JSON."""
        return cls(json.dumps(data, allow_nan=False).encode())


@dataclass
class Connection:
    """What both transports share: the settings, requests, and when a request is sent again."""

    address: str
    token: str | None = field(default=None, repr=False)
    timeout_seconds: float = 120.0
    retries: int = 4
    tls: ssl.SSLContext | None = None

    def __post_init__(self) -> None:
        check_whole("retries", self.retries, 0, 100)
        check_number("timeout_seconds", self.timeout_seconds, "it must be a number of seconds above 0", 1e-3)
        self.address = _check_address(self.address)

    def _settings(self) -> dict[str, Any]:
        """The settings of an HTTP client."""
        headers = {"User-Agent": f"restive/{__version__}"}
        token = _check_token(os.environ.get(TOKEN_VARIABLE) if self.token is None else self.token)
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return {
            "base_url": self.address,
            "headers": headers,
            "timeout": httpx.Timeout(self.timeout_seconds, connect=min(CONNECT_TIMEOUT_SECONDS, self.timeout_seconds)),
            "verify": True if self.tls is None else self.tls,
            # A proxy would see the token; it is never needed for this machine.
            "trust_env": urlsplit(self.address).hostname not in LOCAL_NAMES,
        }

    def _arguments(self, query: Query | None, body: Body | None, key: str | None) -> dict[str, Any]:
        """The arguments of a request."""
        headers = ({"Idempotency-Key": key} if key else {}) | ({"Content-Type": body.media_type} if body else {})
        # None and False are the defaults of all parameters.
        params = {name: value for name, value in (query or {}).items() if value is not None and value is not False}
        return {"params": params, "content": body.content if body else None, "headers": headers}

    def _assess(self, answer: httpx.Response | httpx.TransportError, attempt: int, key: str | None) -> float | None:
        """How long to wait before a request is sent again; None if it succeeded. Otherwise an error is raised."""
        if isinstance(answer, httpx.TransportError):
            if attempt == self.retries or not _is_retried(answer):
                raise self._transport_error(answer, key) from None
            return _backoff(attempt)
        if answer.is_success:
            return None
        delay = _retry_delay(answer, attempt)
        if attempt == self.retries or delay is None:
            raise self._response_error(answer, key)
        return delay

    def _decode(self, response: httpx.Response, key: str | None, form: str) -> Any:
        if form != "json":
            return response.text if form == "text" else response.content
        try:
            return response.json()
        except ValueError:
            raise self._response_error(response, key) from None

    def _transport_error(self, error: httpx.TransportError, key: str | None) -> APIError:
        reason = " ".join(str(error).split()) or type(error).__name__
        doubt = (
            ""
            if error.request.method == "GET"
            else " It is not known whether it was recorded: send it again with the same key."
        )
        return APIError(f"{self.address} does not answer: {reason}.{doubt}", code="no_answer", key=key)

    def _response_error(self, response: httpx.Response, key: str | None) -> APIError:
        """The problem of a response, or an error that says that the response is not from a restive server."""
        status = response.status_code
        try:
            problem: types.Problem = response.json()
            return APIError(
                " ".join(filter(None, (problem["detail"], problem["advice"]))),
                status=status,
                code=problem["code"],
                faults=problem["faults"],
                recorded=problem["recorded"],
                request=problem["request"],
                key=key,
            )
        except (ValueError, KeyError, TypeError):
            target = f" and redirects to {response.headers['location']}" if response.is_redirect else ""
            message = f"{self.address} answers with status {status}{target}; it is not a restive server."
            return APIError(message, status=status, request=response.headers.get("x-request-id", ""), key=key)


@dataclass
class Transport(Connection):
    """Connections to one server; threads may share it."""

    sleep: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        super().__post_init__()
        self._client = httpx.Client(**self._settings())

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def fetch(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: Body | None = None,
        key: str | None = None,
        form: str = "json",
    ) -> Any:
        """The content of the answer to a request, which is sent again while that can help."""
        request = self._client.build_request(method, path, **self._arguments(query, body, key))
        for attempt in itertools.count():
            answer: httpx.Response | httpx.TransportError
            try:
                answer = self._client.send(request)
            except httpx.TransportError as error:
                answer = error
            delay = self._assess(answer, attempt, key)
            if delay is None and isinstance(answer, httpx.Response):
                return self._decode(answer, key, form)
            self.sleep(delay or 0.0)


@dataclass
class AsyncTransport(Connection):
    """Connections to one server from one event loop."""

    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def __post_init__(self) -> None:
        super().__post_init__()
        self._client = httpx.AsyncClient(**self._settings())

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def fetch(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: Body | None = None,
        key: str | None = None,
        form: str = "json",
    ) -> Any:
        """The content of the answer to a request, which is sent again while that can help."""
        request = self._client.build_request(method, path, **self._arguments(query, body, key))
        for attempt in itertools.count():
            answer: httpx.Response | httpx.TransportError
            try:
                answer = await self._client.send(request)
            except httpx.TransportError as error:
                answer = error
            delay = self._assess(answer, attempt, key)
            if delay is None and isinstance(answer, httpx.Response):
                return self._decode(answer, key, form)
            await self.sleep(delay or 0.0)


def make_key() -> str:
    """A random idempotency key."""
    return secrets.token_urlsafe(18)


def _backoff(attempt: int) -> float:
    """The delay after an attempt in seconds: exponential, with up to a quarter of jitter."""
    delay = min(MAX_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2**attempt)
    return float(delay * (1 - secrets.randbelow(256) / 1024))


def _is_retried(error: httpx.TransportError) -> bool:
    """Whether a retry can help: not with an invalid certificate."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
        cause = cause.__cause__ or cause.__context__
    return cause is None and not isinstance(error, httpx.UnsupportedProtocol)


def _retry_delay(response: httpx.Response, attempt: int) -> float | None:
    """The delay before a retry in seconds; None if a retry cannot help or the server asks for too long a delay."""
    if response.status_code not in RETRIED_STATUSES or _is_recorded(response):
        return None
    try:
        asked = float(response.headers["retry-after"])
    except (KeyError, ValueError):
        return _backoff(attempt)
    return max(0.0, asked) if asked <= MAX_DELAY_SECONDS else None


def _is_recorded(response: httpx.Response) -> bool:
    try:
        content = response.json()
    except ValueError:
        return False
    return isinstance(content, dict) and content.get("recorded") is True


def _check_address(address: str) -> str:
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query or parts.fragment:
        raise InputError("The address of a server is http://HOST:PORT or https://HOST, without password and query.")
    return address.rstrip("/")


def _check_token(token: str | None) -> str:
    """The token without surrounding blanks; an invalid one is not repeated, because it may be another secret."""
    secret = (token or "").strip()
    if not (secret.isascii() and secret.isprintable() and " " not in secret):
        raise InputError("The token is invalid: a token is rst_, a number, _ and 43 letters, digits, - or _.")
    return secret
