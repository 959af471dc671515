import asyncio
import re
import sqlite3
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import httpx
import pytest
from fastapi import Depends, FastAPI, Form, Request, Response

from restive.desk import Desk
from restive.desk.tokens import Principal, invite, make_token, open_session, revoke_token
from restive.server import auth
from restive.server.app import make_app
from restive.server.auth import (
    MAX_LOOKUPS,
    MAX_SESSION_WRITES,
    form_key,
    local_path,
    need_session,
    need_token,
    sign_in,
    sign_out,
)
from restive.server.settings import Settings

PLACE = "http://127.0.0.1:8787"
STATES: dict[str, Any] = {"states": ["low", "high"], "rewards": [0, 1], "budget": 1}


class Site:
    """A server with two programs and routes that need every role."""

    def __init__(self, desk: Desk, settings: Settings) -> None:
        self.desk, self.app, self.runner = desk, make_app(desk, settings), asyncio.Runner()
        self.client = self.browser()
        add_routes(self.app)

    def browser(self, address: str = "10.0.0.1") -> httpx.AsyncClient:
        transport = httpx.ASGITransport(self.app, client=(address, 5))
        return httpx.AsyncClient(transport=transport, base_url=PLACE)

    def get(self, path: str, secret: str | None = None, **headers: str) -> httpx.Response:
        shown = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        return self.runner.run(self.client.get(path, headers={**shown, **headers}))

    def post(self, path: str, client: httpx.AsyncClient | None = None, **fields: str) -> httpx.Response:
        return self.runner.run((client or self.client).post(path, data=fields))

    def token(self, name: str, **grants: str) -> str:
        return make_token(self.desk.store, name, {None if place == "all" else place: grants[place] for place in grants})


def add_routes(app: FastAPI) -> None:
    @app.get("/test/{name}/needs/{role}")
    async def program(principal: Annotated[Principal, Depends(need_token("operator"))]) -> str:
        return principal.name

    @app.get("/test/store")
    async def store(principal: Annotated[Principal, Depends(need_token("admin"))]) -> str:
        return principal.name

    @app.get("/test/anything")
    async def anything(principal: Annotated[Principal, Depends(need_token("viewer"))]) -> str:
        return principal.name

    @app.get("/test/page.json")
    @app.get("/test/page")
    async def page(
        request: Request, principal: Annotated[Principal, Depends(need_session("viewer"))]
    ) -> dict[str, str]:
        return {"principal": principal.name, "key": form_key(request)}

    @app.post("/test/in")
    async def enter(request: Request, response: Response, secret: Annotated[str, Form()]) -> bool:
        return await sign_in(request, response, secret) is not None

    @app.post("/test/out")
    async def leave(request: Request, response: Response) -> None:
        await sign_out(request, response)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with Desk(tmp_path / "store.db") as desk:
        desk.create("north", **STATES)
        desk.create("south", **STATES)
        yield desk


def make_site(desk: Desk, settings: Settings) -> Iterator[Site]:
    site = Site(desk, settings)
    yield site
    site.runner.run(site.client.aclose())
    site.app.state.programs.close()
    site.runner.close()


@pytest.fixture
def site(desk: Desk) -> Iterator[Site]:
    yield from make_site(desk, Settings(log="none"))


@pytest.fixture
def open_site(desk: Desk) -> Iterator[Site]:
    yield from make_site(desk, Settings(log="none", open=True))


def test_a_token_is_let_in_where_it_has_the_role_and_nowhere_else(site: Site) -> None:
    secret = site.token("ann", north="operator", south="viewer")
    assert site.get("/test/north/needs/x", secret).json() == "ann"
    low = site.get("/test/south/needs/x", secret)
    assert (low.status_code, low.json()["detail"]) == (
        403,
        "ann is not allowed to do this; it needs the role operator for south.",
    )
    assert site.get("/test/anything", secret).json() == "ann"
    assert site.get("/test/store", secret).status_code == 403
    assert site.get("/test/store", site.token("eve", all="admin")).json() == "eve"


def test_a_program_that_one_cannot_see_is_answered_as_one_that_is_not_there(site: Site) -> None:
    secret = site.token("ann", north="admin")
    hidden, missing = (
        site.get(f"/api/v1/programs/{name}", secret, **{"X-Request-ID": "same"}) for name in ("south", "nosuch")
    )
    assert hidden.status_code == missing.status_code == 404
    assert hidden.text == missing.text.replace("nosuch", "south")
    assert {*hidden.headers.items()} - {*missing.headers.items()} <= {("content-length", str(len(hidden.content)))}
    everything = site.token("eve", all="viewer")
    assert site.get("/api/v1/programs/nosuch", everything, **{"X-Request-ID": "same"}).text == missing.text


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Basic YTpi", "Bearer x", "rst_1_x", f"Bearer {'x' * 10_000}", "Bearer rst_1_é"]
)
def test_a_request_without_a_valid_token_is_answered_with_401(site: Site, header: str) -> None:
    site.token("ann", all="admin")
    given = {b"Authorization": header.encode("latin-1")} if header else {}
    answer = site.runner.run(site.client.get("/test/anything", headers=given))
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.json()["detail"].endswith("ask the administrator of the server for one.")


def test_a_wrong_secret_of_a_right_token_is_a_wrong_token(site: Site) -> None:
    secret = site.token("ann", all="admin")
    assert site.get("/test/anything", secret).status_code == 200
    assert site.get("/test/anything", secret[:-1] + ("A" if secret[-1] != "A" else "B")).status_code == 401


def test_a_revoked_token_is_refused_from_the_next_request_on(site: Site) -> None:
    secret = site.token("ann", all="admin")
    assert site.get("/test/anything", secret).status_code == 200
    revoke_token(site.desk.store, "ann")
    assert site.get("/test/anything", secret).status_code == 401


def test_an_open_server_lets_anybody_in_until_the_first_token_is_made(open_site: Site) -> None:
    assert open_site.get("/test/store").json() == "local"
    assert open_site.get("/test/page").json()["principal"] == "local"
    secret = open_site.token("ann", all="admin")
    assert open_site.get("/test/store").status_code == 401
    assert open_site.get("/test/page").status_code == 303
    assert open_site.get("/test/store", secret).json() == "ann"


def test_an_open_server_stays_closed_once_all_tokens_are_revoked(open_site: Site) -> None:
    open_site.token("ann", all="admin")
    revoke_token(open_site.desk.store, "ann")
    assert open_site.get("/test/store").status_code == 401


def test_a_wrong_token_is_wrong_at_an_open_server_too(open_site: Site) -> None:
    assert open_site.get("/test/store", "rst_1_x").status_code == 401


def test_a_server_that_is_not_open_lets_nobody_in_without_a_token(site: Site) -> None:
    assert site.get("/test/store").status_code == 401
    assert site.get("/test/page").status_code == 303


def test_signing_in_sets_a_cookie_that_scripts_and_other_sites_do_not_get(site: Site) -> None:
    answer = site.post("/test/in", secret=site.token("ann", all="viewer"))
    kind = answer.headers["set-cookie"].lower()
    assert answer.json() is True
    assert {"httponly", "samesite=lax", "path=/", "max-age=2592000"} <= {part.strip() for part in kind.split(";")}
    assert "secure" not in kind
    assert site.get("/test/page").json()["principal"] == "ann"


def test_by_https_the_cookie_insists_on_it(desk: Desk) -> None:
    for site in make_site(desk, Settings(log="none", https=True)):
        answer = site.post("/test/in", secret=site.token("ann", all="viewer"))
        name, _, rest = answer.headers["set-cookie"].partition("=")
        assert name == "__Host-restive_session"
        assert {"secure", "path=/", "httponly"} <= {part.strip().lower() for part in rest.split(";")}
        assert "domain" not in rest.lower()
        shown = {"Cookie": f"{name}={rest.partition(';')[0]}"}
        assert site.get("/test/page", **shown).json()["principal"] == "ann"
        assert site.get("/test/page", Cookie=shown["Cookie"].removeprefix("__Host-")).status_code == 303
        gone = site.runner.run(site.client.post("/test/out", headers=shown))
        assert gone.headers["set-cookie"].startswith('__Host-restive_session="";')
        assert gone.headers["clear-site-data"] == '"cache"'


def test_signing_out_ends_the_session_in_the_store_too(site: Site) -> None:
    site.post("/test/in", secret=site.token("ann", all="viewer"))
    cookie = site.client.cookies["restive_session"]
    site.post("/test/out")
    assert "restive_session" not in site.client.cookies
    assert site.get("/test/page", Cookie=f"restive_session={cookie}").status_code == 303


def test_a_page_redirects_to_the_sign_in_page_which_redirects_back(site: Site) -> None:
    answer = site.get("/test/page?round=2&find=a b")
    assert answer.headers["location"] == "/login?next=%2Ftest%2Fpage%3Fround%3D2%26find%3Da%2520b"
    part = site.get("/test/page", **{"HX-Request": "true"})
    assert (part.status_code, part.headers["hx-redirect"]) == (401, "/login?next=%2Ftest%2Fpage")


def test_the_json_endpoint_of_a_page_accepts_a_cookie_or_a_token_and_does_not_redirect(site: Site) -> None:
    secret = site.token("ann", all="viewer")
    assert site.get("/test/page.json").status_code == 401
    assert site.get("/test/page.json", secret).json()["principal"] == "ann"
    assert site.get("/test/page", secret).status_code == 303
    site.post("/test/in", secret=secret)
    assert site.get("/test/page.json").json()["principal"] == "ann"


def test_a_cookie_is_no_token_of_the_api(site: Site) -> None:
    site.post("/test/in", secret=site.token("ann", all="admin"))
    assert site.get("/test/anything").status_code == 401


def make_limited_site(desk: Desk, sign_ins: int) -> Iterator[Site]:
    """A site with a limit on sign-ins for which no time passes."""
    for site in make_site(desk, Settings(log="none", max_sign_ins_per_minute=sign_ins)):
        site.app.state.rates.sign_ins._clock = lambda: 0.0
        yield site


def test_sign_in_attempts_are_limited_for_each_address(desk: Desk) -> None:
    for site in make_limited_site(desk, sign_ins=3):
        secret = site.token("ann", all="viewer")
        assert [site.post("/test/in", secret=f"guess {n}").json() for n in range(3)] == [False] * 3
        refused = site.post("/test/in", secret=secret)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "20")
        elsewhere = site.browser("10.0.0.2")
        assert site.post("/test/in", elsewhere, secret=secret).json() is True
        site.runner.run(elsewhere.aclose())


def test_the_key_of_forms_differs_between_sessions(site: Site) -> None:
    secret = site.token("ann", all="viewer")
    site.post("/test/in", secret=secret)
    mine = site.get("/test/page").json()["key"]
    assert re.fullmatch("[0-9a-f]{64}", mine)
    assert site.get("/test/page").json()["key"] == mine
    site.post("/test/in", secret=secret)
    assert site.get("/test/page").json()["key"] != mine


@pytest.mark.parametrize(
    "elsewhere",
    ["//a.org", "/\\a.org", "https://a.org", "javascript:alert(1)", "a.org", "", None, "/a\r\nX: y", "/\ta"],
)
def test_nobody_is_sent_to_another_site_after_signing_in(elsewhere: str | None) -> None:
    assert local_path(elsewhere) == "/"
    assert local_path("/programs/a/list?round=2") == "/programs/a/list?round=2"


def test_a_wait_of_less_than_a_second_is_rounded_up_in_retry_after(desk: Desk) -> None:
    for site in make_limited_site(desk, sign_ins=90):
        answers = [site.post("/test/in", secret="guess") for _ in range(91)]
        assert [answer.status_code for answer in answers] == [200] * 90 + [429]
        assert answers[-1].headers["retry-after"] == "1"


def hold_store(desk: Desk) -> sqlite3.Connection:
    """Let nobody else write to the store."""
    held = sqlite3.connect(desk.store.address, isolation_level=None)
    held.execute("BEGIN IMMEDIATE")
    return held


def test_a_made_up_cookie_is_signed_out_without_writing_to_the_store(site: Site) -> None:
    async def play() -> bool:
        held = hold_store(site.desk)
        leaving = asyncio.create_task(site.client.post("/test/out", headers={"Cookie": "restive_session=made-up"}))
        done, _ = await asyncio.wait([leaving], timeout=30)
        held.close()
        await leaving
        return bool(done)

    assert site.runner.run(play())


class CountingThreads(ThreadPoolExecutor):
    """Threads that count what they were given to do."""

    submitted = 0

    def submit(self, *args: Any, **kwargs: Any) -> Future[Any]:
        self.submitted += 1
        return super().submit(*args, **kwargs)


def test_look_ups_do_not_wait_behind_sessions_that_wait_for_the_store(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = CountingThreads(MAX_SESSION_WRITES)
    monkeypatch.setattr(auth, "SESSION_WRITES", threads)
    secret = site.token("ann", all="viewer")
    cookies = [open_session(site.desk.store, secret) for _ in range(2 * MAX_LOOKUPS)]

    async def play() -> int:
        held = hold_store(site.desk)
        leaving = [
            asyncio.create_task(site.client.post("/test/out", headers={"Cookie": f"restive_session={cookie}"}))
            for cookie in cookies
        ]
        try:
            async with asyncio.timeout(50):
                while threads.submitted < len(cookies):
                    await asyncio.sleep(0.001)
        except TimeoutError:
            held.close()
            raise
        found = await site.client.get("/test/anything", headers={"Authorization": f"Bearer {secret}"})
        waited = sum(not task.done() for task in leaving)
        held.close()
        await asyncio.gather(*leaving)
        return waited if found.status_code == 200 else 0

    assert site.runner.run(play()) == len(cookies)


NAMED = Settings(
    log="none",
    behind_proxy=True,
    trusted_proxies=("127.0.0.1",),
    identity_header="X-Forwarded-User",
    max_json_bytes=2**20,
)


def ask_as(
    site: Site, path: str, headers: list[tuple[str, str]], peer: str = "127.0.0.1", **given: Any
) -> httpx.Response:
    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(site.app, client=(peer, 5))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8787") as client:
            return await client.request(given.pop("method", "GET"), path, headers=headers, **given)

    return site.runner.run(send())


@pytest.fixture
def named_site(desk: Desk) -> Iterator[Site]:
    invite(desk.store, "ann", {"north": "operator"})
    yield from make_site(desk, NAMED)


def test_a_trusted_proxy_names_the_user(named_site: Site) -> None:
    ann = [("X-Forwarded-User", "ann"), ("X-Forwarded-For", "203.0.113.9")]
    assert ask_as(named_site, "/test/page", ann).json()["principal"] == "ann"
    assert ask_as(named_site, "/test/anything", ann).json() == "ann"
    assert ask_as(named_site, "/test/store", ann).status_code == 403
    revoke_token(named_site.desk.store, "ann")
    assert ask_as(named_site, "/test/page", ann).status_code == 403


@pytest.mark.parametrize("name", ["ben", "x" * 100, "ann, ann"])
def test_a_name_that_is_no_user_is_refused(named_site: Site, name: str) -> None:
    for path in ("/test/page", "/test/anything"):
        assert ask_as(named_site, path, [("X-Forwarded-User", name)]).status_code == 403


def test_nobody_else_names_a_user(named_site: Site) -> None:
    ann = ("X-Forwarded-User", "ann")
    for peer, headers in (
        ("10.0.0.9", [ann]),
        ("10.0.0.9", [ann, ("X-Forwarded-For", "127.0.0.1")]),
        ("", [ann]),
        ("127.0.0.1", [ann, ann]),
        ("127.0.0.1", [("X-Forwarded-User", "ben"), ann]),
        ("127.0.0.1", [ann, ("Authorization", "Basic eDp5")]),
        ("127.0.0.1", []),
    ):
        assert ask_as(named_site, "/test/anything", headers, peer).status_code == 401, headers
        assert ask_as(named_site, "/test/page", headers, peer).status_code == 303, headers


def test_other_sites_cannot_use_the_name_that_a_proxy_gives(named_site: Site) -> None:
    given = [("X-Forwarded-User", "ann"), ("Sec-Fetch-Site", "cross-site")]
    assert ask_as(named_site, "/programs/north/settings", given, method="POST", data={"step": "x"}).status_code == 403


def test_a_named_user_may_send_more_than_strangers(named_site: Site) -> None:
    ann, rows = [("X-Forwarded-User", "ann")], [{"agent": f"agent-{n}", "state": "low"} for n in range(4000)]
    for _ in range(2):  # before and after the name is known to the rate limits
        answer = ask_as(
            named_site,
            "/api/v1/programs/north/rounds?limit=1",
            ann,
            method="POST",
            json={"states": rows, "dry_run": True},
        )
        assert answer.status_code == 200, answer.text


def test_the_session_lasts_as_the_settings_say(desk: Desk) -> None:
    secret = make_token(desk.store, "ann", {None: "viewer"})
    for site in make_site(desk, Settings(log="none", session_days=0.5)):
        answer = site.runner.run(site.client.post("/test/in", data={"secret": secret}))
        assert "Max-Age=43200" in answer.headers["set-cookie"]
        assert "for 12 hours, or" in site.runner.run(site.client.get("/login", headers={"Cookie": ""})).text
