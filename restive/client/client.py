"""The client of a server.

    with Client("https://desk.example", token) as client:
        program = client.program("coupons")
        recommendation = program.decide("monday.csv")
        program.learn({"agent": recommendation.chosen, "done": [True] * len(recommendation.chosen)})

Without a token, that of the environment variable RESTIVE_TOKEN is used. Threads may share a client.
"""

import ssl
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self, Unpack

from restive.api import types
from restive.client.program import PAGE_SIZE, Program
from restive.client.transport import PREFIX, Body, Transport, make_key


class Client:
    """A server.

    address          http://HOST:PORT or https://HOST
    token            a token of the server; None: that of the environment, if there is one
    timeout_seconds  how long to wait for an answer
    retries          how often a request is sent again when its answer is lost or the server is busy
    tls              the certificates to trust; None: those of the system
    """

    def __init__(
        self,
        address: str = "http://127.0.0.1:8787",
        token: str | None = None,
        timeout_seconds: float = 120.0,
        retries: int = 4,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._transport = Transport(address, token, timeout_seconds, retries, tls)

    def __repr__(self) -> str:
        return f"Client({self._transport.address!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def health(self) -> types.Health:
        """The state and the version of the server; needs no token."""
        found: types.Health = self._transport.get("/health")
        return found

    def me(self) -> types.Me:
        """The owner and the roles of the token."""
        found: types.Me = self._transport.get(f"{PREFIX}/me")
        return found

    def templates(self) -> Iterator[types.Template]:
        """The application domains that a program can be created from."""
        return self._transport.get_pages(f"{PREFIX}/templates")

    def policies(self) -> Iterator[types.PolicyInfo]:
        """The policies that a program can use."""
        return self._transport.get_pages(f"{PREFIX}/policies")

    def programs(self) -> Iterator[types.ProgramSummary]:
        """The programs that the token gives access to, the oldest first."""
        return self._transport.get_pages(f"{PREFIX}/programs", {"limit": PAGE_SIZE})

    def program(self, name: str) -> Program:
        """The program of that name; no request is sent, so it need not exist."""
        return Program(self._transport, name)

    def create(
        self, name: str, template: str | None = None, key: str | None = None, **settings: Unpack[types.NewProgram]
    ) -> Program:
        """Create a program from a template and settings, or from settings alone."""
        program = self.program(name)
        body: dict[str, Any] = {"name": name, **({} if template is None else {"template": template}), **settings}
        self._transport.send("POST", f"{PREFIX}/programs", body=Body.of(body), key=key or make_key())
        return program

    def audit(self) -> Iterator[types.AuditEntry]:
        """The audit log of the whole store, the newest entry first."""
        return self._transport.get_pages(f"{PREFIX}/audit", {"limit": PAGE_SIZE})
