"""How often one may ask: a bucket for each caller that fills by `rate` a second up to `burst`, one drop a request.

The bucket is that of the token once its secret was found good, and that of the address before: nobody can empty the
bucket of a token by guessing at it, and a new guess is no new bucket. Memory is bounded: of too many buckets the one
not used for longest is forgotten. An address of IPv6 counts by its network of 64 bits, which one caller has whole.
"""

import hashlib
import ipaddress
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

MAX_BUCKETS, MAX_SECRETS = 50_000, 50_000
Clock = Callable[[], float]


class Buckets:
    """A bucket for each name."""

    def __init__(self, rate: float, burst: int, most: int = MAX_BUCKETS, clock: Clock = time.monotonic) -> None:
        self._rate, self._burst, self._most, self._clock = rate, burst, most, clock
        self._level: OrderedDict[str, tuple[float, float]] = OrderedDict()  # what was in it, and when

    def take(self, name: str) -> float:
        """Take a drop; 0, or in how many seconds there will be one.

        >>> tap = Buckets(rate=2, burst=1, clock=lambda: 0.0)
        >>> tap.take("a"), tap.take("a")
        (0.0, 0.5)
        """
        now = self._clock()
        level, then = self._level.pop(name, (float(self._burst), now))
        level = min(level + (now - then) * self._rate, self._burst)
        missing = max(1 - level, 0.0)
        self._level[name] = (level if missing else level - 1, now)
        if len(self._level) > self._most:
            self._level.popitem(last=False)
        return missing / self._rate

    def __len__(self) -> int:
        return len(self._level)


class Rates:
    """The buckets of one server, and which secrets were found good; of those only a keyed digest is kept."""

    def __init__(self, rate: float, burst: int, sign_ins: int, clock: Clock = time.monotonic) -> None:
        self.requests = Buckets(rate, burst, clock=clock)
        self.sign_ins = Buckets(sign_ins / 60, sign_ins, clock=clock)
        self._known: OrderedDict[bytes, int | None] = OrderedDict()
        self._key = os.urandom(32)

    def remember(self, secret: str, principal: int | None) -> None:
        """Count this secret against its principal from now on."""
        self._known[self._digest(secret)] = principal
        if len(self._known) > MAX_SECRETS:
            self._known.popitem(last=False)

    def forget(self, secret: str) -> None:
        """Count this secret against the address again."""
        self._known.pop(self._digest(secret), None)

    def knows(self, secret: str) -> bool:
        """Whether this secret was found good when it was last looked up."""
        return bool(secret) and self._digest(secret) in self._known

    def name_caller(self, secret: str, scope: Mapping[str, Any]) -> str:
        """Whose bucket a request is taken from."""
        principal = self._known.get(self._digest(secret)) if secret else None
        return name_address(scope) if principal is None else f"token {principal}"

    def _digest(self, secret: str) -> bytes:
        return hashlib.blake2b(secret.encode(errors="replace"), key=self._key, digest_size=16).digest()


def name_address(scope: Mapping[str, Any]) -> str:
    """The caller's address as far as it tells callers apart.

    >>> name_address({"client": ("2001:db8::7", 5)}), name_address({"client": ("10.1.2.3", 5)})
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
