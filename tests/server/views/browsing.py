"""A browser without a screen: it keeps cookies and does not follow redirects."""

import asyncio
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from restive.desk import Desk
from restive.desk.tokens import make_token, open_session
from restive.server.app import make_app
from restive.server.settings import Settings

PLACE = "http://127.0.0.1:8787"
HTMX = {"HX-Request": "true"}
CROSS_SITE = {"Sec-Fetch-Site": "cross-site"}
ROLES = ("viewer", "operator", "admin")


class Site:
    """A server over a store with one program, and a token for each role."""

    def __init__(self, desk: Desk, app: FastAPI, runner: asyncio.Runner, tokens: Mapping[str, str]) -> None:
        self.desk, self.app, self.runner, self.tokens = desk, app, runner, tokens

    def browser(self, role: str | None = None) -> "Browser":
        """A browser, signed in if a role is given."""
        made = Browser(self.app, self.runner)
        if role is not None:
            made.client.cookies.set("restive_session", open_session(self.desk.store, self.tokens[role]) or "")
        return made


class Browser:
    """One person's browser."""

    def __init__(self, app: FastAPI, runner: asyncio.Runner) -> None:
        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=PLACE)
        self._runner = runner

    def get(self, path: str, **headers: str) -> httpx.Response:
        """A page."""
        return self._runner.run(self.client.get(path, headers=headers))

    def post(
        self,
        path: str,
        fields: Mapping[str, str],
        file: tuple[str, bytes] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Send a form."""
        return self._runner.run(self.sending(path, fields, file, headers))

    async def sending(
        self,
        path: str,
        fields: Mapping[str, str],
        file: tuple[str, bytes] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Send a form, from a loop that runs already."""
        files = {"file": file} if file is not None else None
        return await self.client.post(path, data=dict(fields), files=files, headers=headers)


def read_fields(page: str) -> dict[str, str]:
    """The hidden fields of a page; of several with one name the last."""
    found = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page)
    return {name: unescape(value) for name, value in found}


def read_filled(page: str) -> dict[str, str]:
    """All fields of a page with one form, as they are filled in, without check boxes and text areas."""
    fields = read_fields(page)
    for tag in re.findall(r"<input (?![^>]*(?:hidden|checkbox))[^>]*>", page):
        name, value = re.search(r'name="([^"]+)"', tag), re.search(r'value="([^"]*)"', tag)
        assert name
        assert value
        fields[name[1]] = unescape(value[1])
    for name, options in re.findall(r'<select id="[^"]+" name="([^"]+)".*?>(.*?)</select>', page, re.DOTALL):
        chosen = re.search(r'<option value="([^"]*)" selected', options)
        fields[name] = chosen[1] if chosen else ""
    return fields


def read_text(page: str) -> str:
    """The text of a page, with single spaces."""
    body = page.partition("<main")[2] or page
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


@contextmanager
def open_site(folder: Path, closed: bool = True, max_table_bytes: int = 64 * 2**20, **settings: Any) -> Iterator[Site]:
    """A server in this process, with tokens or open."""
    content, tokens = make_store(closed, **settings)
    (folder / "desk.db").write_bytes(content)
    with Desk(folder / "desk.db") as desk, asyncio.Runner() as runner:
        app = make_app(desk, Settings(open=not closed, log="none", max_table_bytes=max_table_bytes))
        yield Site(desk, app, runner, tokens)
        app.state.programs.close()


@cache
def make_store(closed: bool, **settings: Any) -> tuple[bytes, dict[str, str]]:
    """The bytes of a store with one program, and its tokens; each test gets a copy."""
    usual = {"states": ["low", "high"], "rewards": [0, 1], "budget": 2, "control": 0.0, "cool_down": 0}
    with tempfile.TemporaryDirectory() as folder:
        with Desk(Path(folder) / "desk.db") as desk:
            desk.create("coupons", **{**usual, **settings})
            tokens = {role: make_token(desk.store, f"the-{role}", {None: role}) for role in ROLES} if closed else {}
        return (Path(folder) / "desk.db").read_bytes(), tokens
