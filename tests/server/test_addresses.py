"""A server below a path prefix, through a real proxy that strips it: no link, form, redirect or cookie leaves the prefix."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

import httpx
import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from restive.client import APIError, Client
from restive.desk import Desk
from restive.desk.demo import run_demo
from restive.desk.tokens import make_token
from restive.errors import InputError
from restive.server.app import make_app
from restive.server.settings import Settings
from server.running import run_server
from server.views.browsing import read_fields

LINK = re.compile(r'(?:href|src|action|formaction|hx-get|hx-post)="([^"#][^"]*)"')


class StrippingProxy:
    """Forwards what is below /desk, without that prefix; everything else is not found."""

    def __init__(self, port: int) -> None:
        self._client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await self._client.aclose()
            await send({"type": "lifespan.shutdown.complete"})
            return
        path, body, more = scope["raw_path"].decode(), b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        if not path.startswith("/desk/"):
            await send({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body", "body": b"outside of the prefix"})
            return
        query = f"?{scope['query_string'].decode()}" if scope["query_string"] else ""
        address = path.removeprefix("/desk") + query
        answer = await self._client.request(scope["method"], address, content=body, headers=scope["headers"])
        headers = [
            each for each in answer.headers.raw if each[0].lower() not in (b"content-encoding", b"content-length")
        ]
        await send({"type": "http.response.start", "status": answer.status_code, "headers": headers})
        await send({"type": "http.response.body", "body": answer.content})


class Prefixed(NamedTuple):
    """The address of the proxy, that of the server itself, and a token."""

    site: str
    direct: str
    token: str


@pytest.fixture(scope="module")
def prefixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prefixed]:
    with Desk(tmp_path_factory.mktemp("prefixed") / "store.db") as desk:
        run_demo(desk, "demo", agents=30, rounds=3, budget=4)
        token = make_token(desk.store, "boss", {None: "admin"})
        settings = Settings(log="none", rate=1e6, burst=10**6, root_path="/desk", behind_proxy=True, plain_http=True)
        app: ASGIApp = make_app(desk, settings)
        plain = Settings(log="none")
        with run_server(app, settings) as (_, port), run_server(StrippingProxy(port), plain) as (host, front):
            yield Prefixed(f"http://{host}:{front}", f"http://{host}:{port}", token)


@pytest.fixture
def browser(prefixed: Prefixed) -> Iterator[httpx.Client]:
    """A browser that is signed in, by the form."""
    with httpx.Client(base_url=prefixed.site) as client:
        first = client.get("/desk/programs/demo/people?find=a")
        assert (first.status_code, first.headers["location"]) == (
            303,
            "/desk/login?next=%2Fprograms%2Fdemo%2Fpeople%3Ffind%3Da",
        )
        form = client.get(first.headers["location"])
        assert 'action="/desk/login"' in form.text
        answer = client.post("/desk/login", data={**read_fields(form.text), "token": prefixed.token})
        assert answer.headers["location"] == "/desk/programs/demo/people?find=a"
        assert "Path=/desk;" in answer.headers["set-cookie"]
        yield client


def test_no_link_of_any_page_leaves_the_prefix(browser: httpx.Client) -> None:
    waiting, seen, faults = ["/desk/"], {"/desk/"}, []
    while waiting:
        here = waiting.pop()
        answer = browser.get(here)
        if answer.is_redirect:
            targets = [answer.headers["location"]]
        elif "text/html" in answer.headers.get("content-type", ""):
            targets = [unescape(found) for found in LINK.findall(answer.text)]
        else:
            targets = []
        if answer.status_code >= 400 and answer.status_code != 405:  # the target of a form
            faults.append(f"{here}: {answer.status_code}")
        for target in targets:
            absolute = urlsplit(urljoin(here, target))
            if absolute.scheme or target.startswith("data:"):
                continue  # another site
            if not absolute.path.startswith("/desk/"):
                faults.append(f"{here} leads to {target}")
            if absolute.path not in seen and not re.search(
                r"/(logout|demo|help/(?!desk|pages|index).*)$", absolute.path
            ):
                seen.add(absolute.path)
                waiting.append(absolute._replace(fragment="").geturl())
    assert faults == []
    assert {"/desk/programs/demo/settings", "/desk/help/desk", "/desk/glossary", "/desk/api", "/desk/users"} <= seen
    assert any(path.startswith("/desk/static/") for path in seen)


def test_forms_redirect_below_the_prefix_with_their_message(browser: httpx.Client) -> None:
    made = browser.post("/desk/demo")
    assert made.headers["location"] == "/desk/programs/demo-2/status#main"
    assert "Path=/desk;" in made.headers["set-cookie"]
    assert "These people are simulated" in browser.get("/desk/programs/demo-2/status").text
    assert "These people are simulated" not in browser.get("/desk/programs/demo-2/status").text
    left = browser.post("/desk/logout")
    assert left.headers["location"] == "/desk/login"
    assert browser.get("/desk/").status_code == 303


def test_the_client_and_the_api_work_below_the_prefix(prefixed: Prefixed) -> None:
    with Client(f"{prefixed.site}/desk", prefixed.token) as client:
        shops = client.create("shops", template="pharmacy", budget=1)
        assert shops.decide({"ann": "silent", "ben": "silent"}).round == 1
        link = client.invite("dora", {None: "viewer"})["link"]
        assert link.startswith(f"{prefixed.site}/desk/join?code=rsi_")
        with pytest.raises(APIError, match="There is no program"):
            client.program("none").status()
    headers = {"Authorization": f"Bearer {prefixed.token}"}
    with httpx.Client(base_url=prefixed.site, headers=headers) as raw:
        page = raw.get("/desk/api/v1/programs/shops/people?limit=1").json()
        assert page["next"] == "/desk/api/v1/programs/shops/people?limit=1&after=1"
        assert raw.get(page["next"]).json()["items"][0]["agent"] == "ben"
        decided = raw.post(
            "/desk/api/v1/programs/shops/rounds", json={"states": [{"agent": "ann", "state": "frequent"}]}
        )
        assert decided.headers["location"] == "/desk/api/v1/programs/shops/rounds/2"
        assert raw.get("/desk/api/v1/programs/none").json()["type"] == "/desk/api#not_found"
        assert raw.get("/desk/openapi.json").json()["servers"] == [{"url": "/desk"}]


def test_the_server_answers_without_the_prefix_and_with_it(prefixed: Prefixed) -> None:
    """For probes that reach it directly, and for proxies that keep the prefix."""
    for path in ("/health", "/desk/health"):
        assert httpx.get(prefixed.direct + path).json()["status"] == "ok"
    assert httpx.get(f"{prefixed.direct}/desktop").status_code == 404
    assert httpx.get(f"{prefixed.direct}/desk", follow_redirects=False).headers["location"] == "/desk/login?next=%2F"


@pytest.mark.parametrize("wrong", ["desk", "/", "/desk/", "//desk", "/a b", "/../x", "/a?b"])
def test_a_prefix_that_is_no_path_is_refused(wrong: str) -> None:
    with pytest.raises(InputError, match="it must be a path such as /desk"):
        Settings(root_path=wrong)


@pytest.mark.parametrize("taken", ["/programs", "/api/desk", "/static", "/openapi"])
def test_a_prefix_that_the_server_uses_itself_is_refused(tmp_path: Path, taken: str) -> None:
    with Desk(tmp_path / "store.db") as desk, pytest.raises(InputError, match="choose another prefix"):
        make_app(desk, Settings(root_path=taken))
