"""A client: the desk of a server, as another program uses it.

    with Client("https://desk.example", token) as client:
        program = client.program("coupons")
        recommendation = program.decide("monday.csv")
        program.learn({"agent": recommendation.chosen, "done": [True] * len(recommendation.chosen)})

Without a token the environment's RESTIVE_TOKEN is taken. Threads may share a client.
"""

import ssl
from collections.abc import Iterator
from types import TracebackType
from typing import Self, Unpack

from restive.api import types
from restive.client.program import PAGE, Program
from restive.client.transport import PREFIX, Body, Sender, make_key


class Client:
    """A server, and whom one is there.

    address  where it is, http://HOST:PORT or https://HOST
    token    the secret of a token; None: that of the environment, if there is one
    timeout  seconds until an answer is taken for lost
    retries  how often a request is sent again when its answer is lost or the server is busy
    tls      which certificates to trust, if not the usual ones
    """

    def __init__(
        self,
        address: str = "http://127.0.0.1:8787",
        token: str | None = None,
        timeout: float = 120.0,
        retries: int = 4,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._sender = Sender(address, token, timeout, retries, tls)

    def __repr__(self) -> str:
        return f"Client({self._sender.address!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the connections back."""
        self._sender.close()

    def health(self) -> types.Health:
        """That the server is there, and its version; needs no token."""
        found: types.Health = self._sender.ask("/health")
        return found

    def me(self) -> types.Me:
        """Whom the token belongs to, and what it may."""
        found: types.Me = self._sender.ask(f"{PREFIX}/me")
        return found

    def templates(self) -> Iterator[types.Template]:
        """The application domains that a program can start from."""
        return self._sender.pages(f"{PREFIX}/templates")

    def policies(self) -> Iterator[types.PolicyInfo]:
        """The policies that a program can decide by."""
        return self._sender.pages(f"{PREFIX}/policies")

    def programs(self) -> Iterator[types.ProgramSummary]:
        """The programs that the token may see, the oldest first."""
        return self._sender.pages(f"{PREFIX}/programs", {"limit": PAGE})

    def program(self, name: str) -> Program:
        """The program of that name; whether it is there is known when one of its verbs is called."""
        return Program(self._sender, name)

    def create(
        self, name: str, template: str | None = None, key: str | None = None, **settings: Unpack[types.NewProgram]
    ) -> Program:
        """Make a program, by a template and settings or by settings alone."""
        made = self.program(name)
        given = {"name": name} | ({} if template is None else {"template": template}) | settings
        self._sender.send("POST", f"{PREFIX}/programs", body=Body.of(given), key=key or make_key())
        return made

    def audit(self) -> Iterator[types.AuditEntry]:
        """Who did what in the whole store, the newest first."""
        return self._sender.pages(f"{PREFIX}/audit", {"limit": PAGE})
