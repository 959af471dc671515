"""Clients of a server: anonymous, with a token for each role in all programs or in one, in another program, expired.

`LocalServer` is a server in this process with all of them; no answer may contain a secret or anything of another
program.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from restive.desk import Desk
from restive.desk.tokens import ROLES, invite, make_token, open_session, revoke_token
from restive.desk.webhooks import add_webhook
from restive.server.app import make_app
from restive.server.settings import Settings

PLACE = "http://127.0.0.1:8787"
OURS, THEIRS, NONE = "shops", "quietus", "shopz"  # a program, one of others, and one that is not there
GUEST = "guest"  # somebody who is invited
PEOPLE = ("zebra-17", "okapi-23", "gnu-41")
MARK = {"X-Request-ID": "the-same"}
Ask = Callable[..., httpx.Response]
Grants = Mapping[str | None, str]
PRINCIPALS: dict[str, Grants] = {
    **{f"{role} of all": {None: role} for role in ROLES},
    **{f"{role} of ours": {OURS: role} for role in ROLES},
    "admin of theirs": {THEIRS: "admin"},
}
OVER = ("revoked", "expired")


class Clock:
    """A clock that can be advanced by days, so that tokens expire."""

    def __init__(self) -> None:
        self.days = 0

    def __call__(self) -> datetime:
        return datetime(2026, 3, 2, 8, tzinfo=UTC) + timedelta(days=self.days)


def furnish(desk: Desk) -> dict[str, str]:
    """Two programs, one of which has a round, and the secrets of all principals."""
    config: dict[str, Any] = {
        "states": ["low", "high"],
        "rewards": [0, 1],
        "budget": 2,
        "control": 0.0,
        "policy": "egt",
    }
    ours = desk.create(OURS, **config, shadow="egt")
    add_webhook(ours, "https://localhost/hook")
    ours.decide(dict.fromkeys(PEOPLE, "low"))
    desk.create(THEIRS, **config)
    invite(desk.store, GUEST, {OURS: "viewer"})
    return {name: make_token(desk.store, name.replace(" ", "-"), grants) for name, grants in PRINCIPALS.items()}


class LocalServer:
    """A server in this process, and the secrets and cookies of all who come."""

    def __init__(self, desk: Desk, clock: Clock, runner: asyncio.Runner) -> None:
        self.secrets = {over: make_token(desk.store, over, {None: "admin"}, days=1) for over in OVER}
        self.cookies = {over: open_session(desk.store, self.secrets[over]) or "" for over in OVER}
        revoke_token(desk.store, "revoked")
        clock.days = 2
        self.secrets |= furnish(desk)
        self.cookies |= {name: open_session(desk.store, self.secrets[name]) or "" for name in PRINCIPALS}
        self.app = make_app(desk, Settings(log="none", rate=1e6, burst=10**6, max_sign_ins_per_minute=10**6))
        self._runner = runner

    def ask(self, method: str, path: str, **given: Any) -> httpx.Response:
        """The answer to one request."""

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url=PLACE) as client:
                return await client.request(method, path, **given)

        return self._runner.run(send())

    def by_token(self, name: str | None) -> Ask:
        """Asks with the token of a principal, or with none."""
        head = {} if name is None else {"Authorization": f"Bearer {self.secrets[name]}"}
        return lambda method, path, **given: self._watch(name, self.ask(method, path, headers=head | MARK, **given))

    def by_cookie(self, name: str | None) -> Ask:
        """Asks as the browser of a principal who is signed in, or of somebody who is not."""
        head = {} if name is None else {"Cookie": f"restive_session={self.cookies[name]}"}
        head |= {"Accept": "text/html"} | MARK
        return lambda method, path, headers=None, **given: self._watch(
            name, self.ask(method, path, headers=head | (headers or {}), **given)
        )

    def _watch(self, name: str | None, answer: httpx.Response) -> httpx.Response:
        """The answer, which says neither a secret nor anything of a program that the principal cannot see."""
        said = answer.content.decode(errors="replace") + str(answer.headers)
        assert not any(secret in said for secret in [*self.secrets.values(), *self.cookies.values()])
        hidden = {"admin of theirs": PEOPLE, **{f"{role} of ours": (THEIRS,) for role in ROLES}}
        for word in (*PEOPLE, THEIRS) if name is None else hidden.get(name, ()):
            assert word not in said or word in str(answer.url), (word, answer.url)
        assert answer.status_code < 500, answer.text
        return answer


@contextmanager
def open_server(folder: Path) -> Iterator[LocalServer]:
    """The server, while the block runs."""
    clock = Clock()
    with Desk(folder / "store.db", clock=clock) as desk, asyncio.Runner() as runner:
        server = LocalServer(desk, clock, runner)
        yield server
        server.app.state.programs.close()


def expect(need: str | None, grants: Grants, path: str) -> int:
    """The status for a principal with these grants where that role is needed; 200 if it is admitted."""
    if need is None:
        return 200
    if "{name}" not in path:
        return 200 if need == "viewer" or _rank(grants.get(None)) >= _rank(need) else 403
    held = max(_rank(grants.get(OURS)), _rank(grants.get(None)))
    return 404 if held < 0 else 200 if held >= _rank(need) else 403


def _rank(role: str | None) -> int:
    return -1 if role is None else ROLES.index(role)


def fill(path: str, program: str = OURS) -> str:
    """An address by its template."""
    path = (
        path.replace("{user}", GUEST)
        .replace("{topic}", "pages")
        .replace("{webhook}", "1")
        .replace("{file}", "list-phone.png")
    )
    return path.replace("{name}", program).replace("{round}", "1").replace("{kind}", "csv").replace("{table}", "groups")


def is_same(one: httpx.Response, other: httpx.Response) -> bool:
    """Whether two answers are the same, but for the name of the program that was asked for."""
    same = one.content.decode().replace(OURS, NONE) == other.content.decode()
    return same and one.status_code == other.status_code and one.headers == other.headers
