"""Settings of the server: addresses, limits and timeouts.

Sizes are in bytes, durations in seconds. An open server asks for no token; it is only allowed on a loopback address,
and only until the store has its first token (see `restive.server.auth`).
"""

import ipaddress
import re
from dataclasses import dataclass, field, fields

from restive.errors import InputError, check_number, check_whole

KIB, MIB = 1 << 10, 1 << 20
LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
LOCAL_NETWORKS = ("127.0.0.0/8", "::1")
HEADER_NAME = re.compile(r"(?i)(?!(authorization|cookie|host)$)[a-z0-9-]{1,60}")
ROOT_PATH = re.compile(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+")
LOG_FORMATS = ("text", "json", "none")
FLASH_COOKIE = "restive_flash"  # a message that a form leaves for the next page


@dataclass(frozen=True)
class UploadLimits:
    """Limits of the process that reads one uploaded table."""

    max_memory_bytes: int = 2048 * MIB
    max_result_bytes: int = 512 * MIB
    cpu_seconds: int = 120
    timeout_seconds: float = 120.0
    max_in_process_bytes: int = 64 * MIB  # plain CSV files up to this size are read in a thread of the server
    max_concurrent: int = 2


@dataclass(frozen=True)
class Settings:
    """All settings of one server."""

    host: str = "127.0.0.1"
    port: int = 8787
    open: bool = False  # no token is asked for, as long as the store has none
    https: bool = False  # the server terminates TLS itself
    root_path: str = ""  # the path prefix below which a proxy serves the app, such as /desk
    behind_proxy: bool = False  # X-Forwarded-For and X-Forwarded-Proto of trusted proxies are used
    trusted_proxies: tuple[str, ...] = ()  # addresses or networks; empty: this machine only
    identity_header: str = ""  # in which a trusted proxy names the user whom it has authenticated
    session_days: float = 30.0  # how long a sign-in lasts
    plain_http: bool = False  # unencrypted HTTP is allowed beyond this machine
    max_table_bytes: int = 256 * MIB
    max_json_bytes: int = 32 * MIB
    max_form_bytes: int = 1 * MIB  # a form without a file
    max_anonymous_bytes: int = 64 * KIB  # a body without a token or cookie, and a sign-in form
    max_total_bytes: int = 1024 * MIB  # all bodies in progress together
    max_header_bytes: int = 32 * KIB
    rate: float = 300.0  # requests a second, for each token or address
    burst: int = 600
    max_sign_ins_per_minute: int = 10  # for each address
    max_concurrent_requests: int = 32  # for each token or address, at one program
    max_connections: int = 1000
    queue_seconds: float = 60.0  # wait for a program that is in use
    program_idle_seconds: float = 600.0  # a program that nobody uses for so long is closed
    header_seconds: float = 10.0
    idle_seconds: float = 30.0  # between two requests on one connection
    body_seconds: float = 60.0
    min_body_rate: int = 256 * KIB  # bytes a second, beyond `body_seconds`
    linger_seconds: float = 5.0  # the rest of a rejected body is discarded this long, so that the client sees the error
    stall_seconds: float = 30.0  # a client must take what is buffered for it within this time
    shutdown_seconds: float = 60.0
    log: str = "json"
    uploads: UploadLimits = field(default_factory=UploadLimits)
    webhook_networks: tuple[str, ...] = ()  # addresses or networks that webhooks may reach beside public ones
    webhook_timeout_seconds: float = 15.0  # for one attempt; a server has leased the message for twice as long
    webhook_retry_seconds: float = 5.0  # until the second attempt
    webhook_poll_seconds: float = 1.0
    reports: UploadLimits = UploadLimits(cpu_seconds=900, timeout_seconds=900.0, max_concurrent=1)  # on histories

    def __post_init__(self) -> None:
        check_whole("port", self.port, 0, 65_535)
        check_number("rate", self.rate, "it must be a number of requests a second, from 0.1 to 1000000", 0.1, 1e6)
        for limit in fields(self):
            if limit.type is int and limit.name != "port":
                check_whole(limit.name, getattr(self, limit.name), 1)
            elif limit.name.endswith("_seconds"):
                check_number(
                    limit.name, getattr(self, limit.name), "it must be a number of seconds, above 0", 1e-3, 1e6
                )
        check_number("session_days", self.session_days, "it must be a number of days, from 0.01 to 365", 0.01, 365)
        if self.identity_header and not HEADER_NAME.fullmatch(self.identity_header):
            raise InputError(
                f"identity_header is {self.identity_header!r}; it must be a name such as X-Forwarded-User."
            )
        if self.identity_header and not self.trusted_proxies:
            raise InputError(
                "An identity header is only believed from a trusted proxy: name its address with --trusted-proxy."
            )
        if self.log not in LOG_FORMATS:
            raise InputError(f"log is {self.log!r}; it must be one of {', '.join(LOG_FORMATS)}.")
        if self.open and (self.behind_proxy or not is_local(self.host)):
            raise InputError(f"A server on {self.host} can be reached from other machines, so it needs tokens.")
        if self.root_path and not ROOT_PATH.fullmatch(self.root_path):
            raise InputError(
                f"root_path is {self.root_path!r}; it must be a path such as /desk, without a slash at its end."
            )
        for network in (*self.trusted_proxies, *self.webhook_networks):
            check_network(network)

    @property
    def secure(self) -> bool:
        """Whether browsers reach the server by HTTPS, so that cookies can be marked Secure."""
        return self.https or (self.behind_proxy and not self.plain_http)

    @property
    def cookie_name(self) -> str:
        """Name of the session cookie; with HTTPS it has the prefix that binds it to this host, or to a path of it.

        >>> Settings().cookie_name, Settings(https=True).cookie_name, Settings(https=True, root_path="/desk").cookie_name
        ('restive_session', '__Host-restive_session', '__Secure-restive_session')
        """
        if not self.secure:
            return "restive_session"
        return "__Secure-restive_session" if self.root_path else "__Host-restive_session"


def is_local(host: str) -> bool:
    """Whether an address can only be reached from this machine.

    >>> [is_local(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def check_network(text: str) -> None:
    """Raise an error unless the text is an IP address or network."""
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise InputError(f"{text!r} is not an address or network; write 10.0.0.7 or 10.0.0.0/24.") from None
