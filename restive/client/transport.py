"""Requests to a server: sent again when the answer is lost or the server is busy, and never done twice.

A request that records something carries an idempotency key. The server knows the key when it comes again and answers as
it did the first time, so that a request may be repeated whenever it is not known what became of it. Pauses grow from
half a second on, or are as long as the server asks for. What a server refuses is one exception with its sentence.
"""

import base64
import json
import os
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from restive.errors import InputError, check_number, check_whole
from restive.version import __version__

if TYPE_CHECKING:
    import httpx

PREFIX = "/api/v1"
FROM_OUTSIDE = "RESTIVE_TOKEN"
PASSING = (408, 425, 429, 502, 503, 504)  # statuses that another try may not meet
FIRST_PAUSE, MAX_PAUSE = 0.5, 60.0
LOCAL = ("localhost", "127.0.0.1", "::1")
Query = Mapping[str, str | int | bool | list[str] | None]


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with a table or a request, and where; a row counts as a person sees it."""

    row: int | None
    column: str | None
    sentence: str


class Refused(InputError):  # noqa: N818 - said to people, not only to programmers
    """The server did not do what it was asked; `status` is None where it did not answer at all.

    `recorded`: False, nothing was; True, it was all the same; None, that is not known: ask again with the same `key`.
    `request` is the id under which the server's log has it.
    """

    def __init__(
        self,
        sentence: str,
        status: int | None = None,
        faults: tuple[Fault, ...] = (),
        recorded: bool | None = None,
        request: str = "",
        key: str | None = None,
    ) -> None:
        super().__init__(sentence)
        self.sentence, self.status, self.faults = sentence, status, faults
        self.recorded, self.request, self.key = recorded, request, key


@dataclass(frozen=True)
class Body:
    """What is sent: bytes of a media type."""

    content: bytes
    kind: str = "application/json"

    @classmethod
    def of(cls, data: object) -> "Body":
        """Plain data as JSON."""
        return cls(json.dumps(data, allow_nan=False).encode())


@dataclass
class Sender:
    """A connection to one server; threads may share it."""

    address: str
    token: str | None = field(default=None, repr=False)
    timeout: float = 120.0
    retries: int = 4
    tls: ssl.SSLContext | None = None
    pause: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        check_whole("retries", self.retries, 0, 100)
        check_number("timeout", self.timeout, "it must be a number of seconds above 0", 1e-3)
        self.address = _check_address(self.address)
        self._client = self._connect()

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()

    def ask(self, path: str, query: Query | None = None) -> Any:
        """What the server answers to a question."""
        return self.send("GET", path, query)

    def send(
        self, method: str, path: str, query: Query | None = None, body: Body | None = None, key: str | None = None
    ) -> Any:
        """What the server answers to a request, as plain data."""
        response = self.request(method, path, query, body, key)
        try:
            return response.json()
        except ValueError:
            raise self._refuse(response, key) from None

    def pages(self, path: str, query: Query | None = None) -> Iterator[Any]:
        """All items of a list, a page at a time."""
        asked: Query | None = query or {}
        while asked is not None:
            page = self.ask(path, asked)
            yield from page["items"]
            # Of the address only the question is used: whatever stands before it, the token goes to this server.
            asked = parse_qs(urlsplit(page["next"]).query) if page["next"] else None

    def request(
        self, method: str, path: str, query: Query | None = None, body: Body | None = None, key: str | None = None
    ) -> "httpx.Response":
        """The answer to a request, tried again as long as that may help."""
        import httpx

        head = {
            name: value for name, value in (("Idempotency-Key", key), ("Content-Type", body and body.kind)) if value
        }
        asked = self._client.build_request(
            method, path, params=_write_query(query), content=body.content if body else None, headers=head
        )
        for attempt in range(self.retries + 1):
            last = attempt == self.retries
            try:
                response = self._client.send(asked)
            except httpx.TransportError as error:
                if last or isinstance(error, httpx.UnsupportedProtocol) or "CERTIFICATE" in str(error):
                    raise self._not_reached(error, key, method) from None
                self.pause(_grow(attempt))
                continue
            if response.is_success:
                return response
            wait = _find_pause(response, attempt)
            if last or wait is None:
                raise self._refuse(response, key)
            self.pause(wait)
        raise AssertionError("there is a last attempt")

    def _connect(self) -> "httpx.Client":
        try:
            import httpx
        except ImportError:
            raise InputError('The client needs one more package: pip install "restive[client]".') from None
        head = {"User-Agent": f"restive/{__version__}"}
        secret = _check_token(os.environ.get(FROM_OUTSIDE) if self.token is None else self.token)
        if secret:
            head["Authorization"] = f"Bearer {secret}"
        # What is on this machine is not asked for by way of a proxy, which would see the token.
        outside = urlsplit(self.address).hostname not in LOCAL
        patience = httpx.Timeout(self.timeout, connect=min(10.0, self.timeout))
        verify = True if self.tls is None else self.tls
        return httpx.Client(base_url=self.address, headers=head, timeout=patience, verify=verify, trust_env=outside)

    def _not_reached(self, error: Exception, key: str | None, method: str) -> Refused:
        why = " ".join(str(error).split()) or type(error).__name__
        doubt = "" if method == "GET" else " Whether it was recorded is not known: ask again with the same key."
        return Refused(f"{self.address} does not answer: {why}.{doubt}", key=key)

    def _refuse(self, response: "httpx.Response", key: str | None) -> Refused:
        """The exception for an answer that is none, or for one that does not come from a desk."""
        try:
            said = response.json()
            faults = tuple(Fault(each["row"], each["column"], each["sentence"]) for each in said["faults"])
            return Refused(said["detail"], response.status_code, faults, said["recorded"], said["request"], key)
        except (ValueError, KeyError, TypeError):
            went = f", which leads to {response.headers['location']}" if response.is_redirect else ""
            sentence = f"{self.address} answers with status {response.status_code}{went}; no desk answers like that."
            return Refused(sentence, response.status_code, request=response.headers.get("x-request-id", ""), key=key)


def make_key() -> str:
    """An idempotency key that nobody else has."""
    return base64.urlsafe_b64encode(os.urandom(18)).decode()


def _grow(attempt: int) -> float:
    """The pause after an attempt; a little of it is left to luck, so that many who wait do not come back at once."""
    return float(min(MAX_PAUSE, FIRST_PAUSE * 2**attempt) * (1 - os.urandom(1)[0] / 1024))


def _find_pause(response: "httpx.Response", attempt: int) -> float | None:
    """How long to wait until another try; None if none is worth it."""
    if response.status_code not in PASSING or _was_recorded(response):
        return None
    try:
        asked = float(response.headers["retry-after"])
    except (KeyError, ValueError):
        return _grow(attempt)
    return max(0.0, asked) if asked <= MAX_PAUSE else None


def _was_recorded(response: "httpx.Response") -> bool:
    try:
        said = response.json()
    except ValueError:
        return False
    return isinstance(said, dict) and said.get("recorded") is True


def _write_query(query: Query | None) -> dict[str, Any]:
    """The parameters as they stand in an address; what is None or off is left out."""
    return {name: value for name, value in (query or {}).items() if value is not None and value is not False}


def _check_address(address: str) -> str:
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query or parts.fragment:
        raise InputError(
            "The address of a server is http://HOST:PORT or https://HOST, without a password or a question."
        )
    return address.rstrip("/")


def _check_token(token: str | None) -> str:
    """The token without blanks around it; one that cannot be one is not repeated, it may be another secret."""
    secret = (token or "").strip()
    if not (secret.isascii() and secret.isprintable() and " " not in secret):
        raise InputError("The token has characters that no token has: it is rst_, a number and 43 letters or digits.")
    return secret
