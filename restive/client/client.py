"""The client of a server: `Client` is the server, `AsyncClient` the same for asynchronous code.

    with Client("https://desk.example", token) as client:
        program = client.program("coupons")
        recommendation = program.decide("monday.csv")
        program.learn({"agent": recommendation.chosen, "done": [True] * len(recommendation.chosen)})

    async with AsyncClient("https://desk.example", token) as client:
        recommendation = await client.program("coupons").decide("monday.csv")

Without a token, that of the environment variable RESTIVE_TOKEN is used. Threads may share a `Client`; an `AsyncClient` is
used from one event loop.
"""

import ssl
from collections.abc import Mapping
from types import TracebackType
from typing import Any, ClassVar, Generic, Self, TypeVar, Unpack
from urllib.parse import quote

from restive.api import administration, types
from restive.api.administration import Invitation, NewToken, User
from restive.api.settings import NewProgram
from restive.client.calls import Awaiting, Blocking, Pages, Request, Steps, call, get, listing
from restive.client.program import PAGE_SIZE, AsyncProgram, Program
from restive.client.transport import PREFIX, Body, make_key

AnyProgram = TypeVar("AnyProgram", Program, AsyncProgram)


class ClientCalls(Generic[AnyProgram]):
    """The calls of a server, run by `Client` and awaited by `AsyncClient`.

    address          http://HOST:PORT or https://HOST
    token            a token of the server; None: that of the environment, if there is one
    timeout_seconds  how long to wait for an answer
    retries          how often a request is sent again when its answer is lost or the server is busy
    tls              the certificates to trust; None: those of the system
    """

    _transport_type: ClassVar[Any]
    _program_type: ClassVar[Any]

    def __init__(
        self,
        address: str = "http://127.0.0.1:8787",
        token: str | None = None,
        timeout_seconds: float = 120.0,
        retries: int = 4,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._transport: Any = self._transport_type(address, token, timeout_seconds, retries, tls)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._transport.address!r})"

    def program(self, name: str) -> AnyProgram:
        """The program of that name; no request is sent, so it need not exist."""
        found: AnyProgram = self._program_type(self._transport, name)
        return found

    @call
    def health(self) -> Steps[types.Health]:
        """The state and the version of the server; needs no token."""
        return (yield from get(types.Health, "/health"))

    @call
    def me(self) -> Steps[types.Me]:
        """The owner and the roles of the token."""
        return (yield from get(types.Me, f"{PREFIX}/me"))

    @listing
    def templates(self) -> Pages[types.Template]:
        """The application domains that a program can be created from."""
        return Pages(f"{PREFIX}/templates")

    @listing
    def policies(self) -> Pages[types.PolicyInfo]:
        """The policies that a program can use."""
        return Pages(f"{PREFIX}/policies")

    @listing
    def programs(self) -> Pages[types.ProgramSummary]:
        """The programs that the token gives access to, the oldest first."""
        return Pages(f"{PREFIX}/programs", {"limit": PAGE_SIZE})

    @call
    def create(
        self, name: str, template: str | None = None, key: str | None = None, **settings: Unpack[NewProgram]
    ) -> Steps[AnyProgram]:
        """Create a program from a template and settings, or from settings alone."""
        program = self.program(name)
        body: dict[str, Any] = {"name": name, **({} if template is None else {"template": template}), **settings}
        yield Request("POST", f"{PREFIX}/programs", body=Body.of(body), key=key or make_key())
        return program

    @listing
    def users(self) -> Pages[User]:
        """Everybody who can sign in or send a token, the oldest first."""
        return Pages(f"{PREFIX}/users")

    @call
    def invite(self, name: str, grants: Mapping[str | None, str], days: int | None = None) -> Steps[Invitation]:
        """Add a person with a role in each program (None: in all of them); the link signs one browser in, once."""
        body = Body.of({"name": name, "grants": _list_grants(grants), "days": days})
        answer: Invitation = yield Request("POST", f"{PREFIX}/users", body=body)
        return answer

    @call
    def make_token(self, name: str, grants: Mapping[str | None, str], days: int | None = None) -> Steps[NewToken]:
        """Add a system with a role in each program (None: in all of them); its token is not shown again."""
        body = Body.of({"name": name, "grants": _list_grants(grants), "days": days})
        answer: NewToken = yield Request("POST", f"{PREFIX}/tokens", body=body)
        return answer

    @call
    def invite_again(self, name: str) -> Steps[Invitation]:
        """A new link for a user; the last one is void."""
        answer: Invitation = yield Request("POST", f"{PREFIX}/users/{quote(name, safe='')}/invitation")
        return answer

    @call
    def change_user(self, name: str, grants: Mapping[str | None, str]) -> Steps[User]:
        """Replace all roles of a user."""
        path, body = f"{PREFIX}/users/{quote(name, safe='')}/grants", Body.of({"grants": _list_grants(grants)})
        answer: User = yield Request("PUT", path, body=body)
        return answer

    @call
    def revoke_user(self, name: str) -> Steps[User]:
        """End all access of a user at once."""
        answer: User = yield Request("DELETE", f"{PREFIX}/users/{quote(name, safe='')}")
        return answer

    @listing
    def audit(self) -> Pages[administration.AuditEntry]:
        """The audit log of the whole store, the newest entry first."""
        return Pages(f"{PREFIX}/audit", {"limit": PAGE_SIZE})


def _list_grants(grants: Mapping[str | None, str]) -> list[dict[str, str | None]]:
    return [{"program": program, "role": role} for program, role in grants.items()]


class Client(ClientCalls[Program], Blocking):
    """A server; for the settings see `ClientCalls`."""

    _program_type = Program

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()


class AsyncClient(ClientCalls[AsyncProgram], Awaiting):
    """A server, whose calls are awaited; for the settings see `ClientCalls`."""

    _program_type = AsyncProgram

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()
