"""Who asks when a proxy passes requests on: as X-Forwarded-For and -Proto say, but only if the proxy is trusted.

Trusted are those on this machine, or instead those that are named: in a private network anybody could say they were
anybody. Every proxy adds whom it reported_at from at the end, and only what a trusted one added is believed: from the end,
the first address that is no named proxy.
"""

import ipaddress
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from restive.errors import InputError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
HERE = ("127.0.0.0/8", "::1/128")


class Forwarded:
    """Take the caller's address and scheme from what a trusted proxy says."""

    def __init__(self, app: ASGIApp, named: Sequence[str] = ()) -> None:
        self._app = app
        self._named = [read_network(text) for text in named]
        self._trusted = self._named or [ipaddress.ip_network(text) for text in HERE]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http" and _is_in(str((scope.get("client") or ("",))[0]), self._trusted):
            headers = Headers(scope=scope)
            scheme = headers.get("x-forwarded-proto", "").strip().lower()
            scope["scheme"] = scheme if scheme in ("http", "https") else scope["scheme"]
            if (caller := self._find_caller(headers.getlist("x-forwarded-for"))) is not None:
                scope["client"] = (caller, 0)
        await self._app(scope, receive, send)

    def _find_caller(self, said: Sequence[str]) -> str | None:
        """The last address that is not itself a named proxy; what is no address ends the search."""
        found = None
        for text in reversed([part.strip() for line in said for part in line.split(",")]):
            address = _as_address(text)
            if address is None:
                return found
            found = address
            if not _is_in(found, self._named):
                return found
        return found


def read_network(text: str) -> Network:
    """An address or a network, as it is named in the settings."""
    try:
        return ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        raise InputError(f"{text!r} is no address of a proxy; write 10.0.0.7 or 10.0.0.0/24.") from None


def _as_address(text: str) -> str | None:
    """The address without a port.

    >>> _as_address("10.0.0.7:4711"), _as_address("[2001:db8::7]:4711"), _as_address("unknown")
    ('10.0.0.7', '2001:db8::7', None)
    """
    bare = text[1:].partition("]")[0] if text.startswith("[") else text
    bare = bare.partition(":")[0] if bare.count(":") == 1 else bare
    try:
        return str(ipaddress.ip_address(bare))
    except ValueError:
        return None


def _is_in(host: str, networks: Sequence[Network]) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return any(mapped in network for network in networks)
