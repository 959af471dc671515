"""Delivery of webhooks: a task of the server that sends the messages of the outbox, see `restive.desk.outbox`.

An address is looked up for each attempt, and the connection goes to the address that was checked: a name cannot point
elsewhere in between. Only public addresses are reached, and those of the networks in the settings; plain HTTP only on
loopback addresses among these. Redirects are not followed, proxies of the environment not used, the body of the answer
not read. A status 2xx is a delivery; 410 disables the webhook; everything else is tried again.
"""

import asyncio
import contextlib
import ipaddress
import logging
import socket
import ssl
import time
from functools import cache

import httpx

from restive.api.webhooks import Delivery
from restive.desk.outbox import MAX_ATTEMPTS, PING, Message, claim, find_delay, finish, is_success, sign
from restive.desk.store import StoreError
from restive.desk.webhooks import check_url, find_delivery, is_loopback
from restive.errors import InputError
from restive.server.monitoring import LOGGER, Metrics, describe_error
from restive.server.program_pool import Programs
from restive.server.settings import Settings
from restive.version import __version__

MAX_CONCURRENT = 8  # deliveries
MAX_ADDRESSES = 3  # of a name that are tried
STORE_RETRY_SECONDS = 5.0
GONE = "410"
NAT64 = ipaddress.ip_network("64:ff9b::/96")
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Refused(Exception):  # noqa: N818 - a result, not a failure
    """An address that the settings do not allow."""


def check_reachable(url: str, settings: Settings) -> None:
    """Refuse an address that is written as a number, or is this machine, if the settings do not allow it.

    Names are looked up when a message is sent.
    """
    host = check_url(url).hostname or ""
    try:
        address = ipaddress.ip_address("127.0.0.1" if host.lower() == "localhost" else host)
    except ValueError:
        return
    if not is_allowed(address, settings):
        raise InputError(
            "The url is not a public address; the server must allow its network with --webhook-network.",
            location="url",
        )


def is_allowed(address: Address, settings: Settings) -> bool:
    """Whether webhooks may reach an address: it is public, or in one of the networks of the settings.

    >>> networks = Settings(webhook_networks=("10.0.0.0/8",))
    >>> [is_allowed(ipaddress.ip_address(text), networks) for text in ("9.9.9.9", "10.1.2.3", "::ffff:192.168.0.1")]
    [True, True, False]
    """
    inner = unwrap(address)
    networks = (ipaddress.ip_network(text, strict=False) for text in settings.webhook_networks)
    return (inner.is_global and not inner.is_multicast) or any(inner in network for network in networks)


def unwrap(address: Address) -> Address:
    """The IPv4 address that an IPv6 address stands for, otherwise the address itself.

    >>> [str(unwrap(ipaddress.ip_address(text))) for text in ("64:ff9b::a00:1", "2002:a00:1::", "::1")]
    ['10.0.0.1', '10.0.0.1', '::1']
    """
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else address)


@cache
def tls() -> ssl.SSLContext:
    """The TLS settings of all deliveries: certificates are verified by the authorities of the system."""
    return ssl.create_default_context()


class Sender:
    """Sends the messages of one store."""

    def __init__(self, programs: Programs, settings: Settings, metrics: Metrics) -> None:
        self._programs, self._store, self._settings = programs, programs.desk.store, settings
        self._metrics, self._wake = metrics, asyncio.Event()

    @property
    def lease_seconds(self) -> float:
        """How long a message is reserved for one server: an attempt must have ended by then."""
        return 2 * self._settings.webhook_timeout_seconds

    def wake(self) -> None:
        """Look for messages at once."""
        self._wake.set()

    async def run(self) -> None:
        """Send messages as they become due, until the task is cancelled; attempts that have begun are finished."""
        running: set[asyncio.Task[Delivery]] = set()
        try:
            while True:
                self._wake.clear()
                delay = self._settings.webhook_poll_seconds
                try:
                    while len(running) < MAX_CONCURRENT:
                        message = await self._programs.record(claim, self._store, self.lease_seconds)
                        if message is None:
                            break
                        task = asyncio.create_task(self.send(message))
                        running.add(task)
                        task.add_done_callback(running.discard)
                        task.add_done_callback(self._note_end)
                except Exception as error:
                    delay = max(delay, STORE_RETRY_SECONDS)
                    _log_failure(error)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), delay)
        finally:
            await asyncio.gather(*running, return_exceptions=True)

    def _note_end(self, task: "asyncio.Task[Delivery]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            _log_failure(error)
        else:
            self._wake.set()  # the next message of the webhook may be due

    async def send(self, message: Message) -> Delivery:
        """Send a leased message once and record the result."""
        began = time.perf_counter()
        result = await self._attempt(message)
        final = is_success(result) or result == GONE or message.type == PING or message.attempt >= MAX_ATTEMPTS
        delay = None if final else find_delay(message.attempt, self._settings.webhook_retry_seconds)
        disable = result == GONE and message.type != PING
        await self._programs.record(finish, self._store, message, result, delay, disable)
        outcome = "delivered" if is_success(result) else "failed" if final else "retried"
        self._metrics.webhooks.labels(message.type, outcome).inc()
        fields = {
            "webhook": message.webhook,
            "program": message.program,
            "message": message.message,
            "type": message.type,
            "attempt": message.attempt,
            "result": result,
            "outcome": outcome,
            "ms": round((time.perf_counter() - began) * 1000, 1),
        }
        level = logging.INFO if outcome == "delivered" else logging.WARNING
        LOGGER.log(level, "webhook", extra={"fields": fields})
        return await self._programs.run(find_delivery, self._store, message.id)

    async def _attempt(self, message: Message) -> str:
        """The status of the answer, or what prevented one."""
        try:
            async with asyncio.timeout(self._settings.webhook_timeout_seconds):
                return await self._post(message)
        except Refused:
            return "address not allowed"
        except (TimeoutError, httpx.TimeoutException):
            return "timeout"
        except OSError:
            return "unknown host"
        except httpx.ConnectError as error:
            failed = isinstance(error.__cause__ and error.__cause__.__cause__, ssl.SSLError) or "SSL" in str(error)
            return "invalid certificate" if failed else "no connection"
        except (httpx.HTTPError, httpx.InvalidURL, ValueError):
            return "no valid answer"

    async def _post(self, message: Message) -> str:
        url = httpx.URL(message.url)
        timestamp = int(time.time())
        headers = {
            "Host": url.netloc.decode("ascii"),
            "Content-Type": "application/json",
            "User-Agent": f"restive/{__version__}",
            "webhook-id": message.message,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": " ".join(
                sign(secret, message.message, timestamp, message.body) for secret in message.secrets
            ),
        }
        server_name = {"sni_hostname": url.raw_host.decode("ascii")}
        addresses = await self._look_up(url)
        limit = self._settings.webhook_timeout_seconds
        async with httpx.AsyncClient(verify=tls(), trust_env=False, follow_redirects=False, timeout=limit) as client:
            for place, address in enumerate(addresses, 1):
                request = client.build_request(
                    "POST", url.copy_with(host=address), content=message.body, headers=headers, extensions=server_name
                )
                try:
                    answer = await client.send(request, stream=True)
                except httpx.ConnectError:
                    if place == len(addresses):
                        raise
                    continue
                await answer.aclose()
                return str(answer.status_code)
        raise Refused

    async def _look_up(self, url: httpx.URL) -> list[str]:
        """The addresses of a host that may be reached."""
        port = url.port or (443 if url.scheme == "https" else 80)
        found = await asyncio.get_running_loop().getaddrinfo(url.host, port, type=socket.SOCK_STREAM)
        texts = list(dict.fromkeys(str(each[4][0]) for each in found))
        allowed = [
            text
            for text in texts
            if is_allowed(address := ipaddress.ip_address(text), self._settings)
            and (url.scheme == "https" or is_loopback(str(address)))
        ]
        return allowed[:MAX_ADDRESSES]


def _log_failure(error: BaseException) -> None:
    level = logging.WARNING if isinstance(error, StoreError) else logging.ERROR
    LOGGER.log(level, "unexpected error", extra={"fields": {"task": "webhooks", "error": describe_error(error)}})
