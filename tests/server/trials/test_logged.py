"""What a real server writes while everything is asked of it: one line a request, no people and no secrets."""

import json
from pathlib import Path

import httpx
import pytest

from restive.desk import Desk
from restive.desk.tokens import open_session
from server.trials.principals import OURS, PEOPLE, fill, furnish
from server.trials.served import Served
from server.trials.test_page_roles import OTHERS, PAGES, find_address
from server.trials.test_roles import WAYS, make_request

HELD = ("admin of all", "admin of theirs")
FIELDS = {"time", "level", "request", "method", "route", "program", "status", "ms", "bytes", "token"}


def ask_everything(client: httpx.Client, secret: str, cookie: str) -> int:
    """Ask for every operation and every page, with ids in addresses and bodies; how often was asked."""
    asked = 0
    for operation, way in WAYS.items():
        method, path, rest = make_request(operation, way, fill("{name}"))
        for address in (path, f"{path}{'&' if '?' in path else '?'}agent={PEOPLE[1]}&find={PEOPLE[2]}"):
            answer = client.request(method, address, headers={"Authorization": f"Bearer {secret}"}, **rest)
            assert answer.status_code < 500, answer.text
            asked += 1
    pages = [find_address(path, ending=ending) for path in PAGES for ending in ("", ".json")]
    pages += [find_address(path) for path in OTHERS]
    pages += [f"/programs/{PEOPLE[0]}/list", f"/{PEOPLE[1]}", f"/programs/{OURS}/rounds/{PEOPLE[2]}"]
    for page in pages:
        assert client.get(page, headers={"Cookie": f"restive_session={cookie}"}).status_code < 500
    return asked + len(pages)


def test_logs_of_everything_have_neither_people_nor_secrets_nor_questions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = str(tmp_path / "store.db")
    with Desk(store) as desk:
        secrets = furnish(desk)
        cookies = {name: open_session(desk.store, secrets[name]) or "" for name in HELD}
    with Served(store) as served, httpx.Client(base_url=served.address, timeout=60) as client:
        asked = 1
        while client.get("/ready").status_code != 200:  # kernels are compiled at the start
            asked += 1
        asked += sum(ask_everything(client, secrets[name], cookies[name]) for name in HELD)
        served.end()
    lines = [json.loads(line) for line in served.said if line.startswith("{")]
    lines = [line for line in lines if "webhook" not in line]  # attempts to deliver a message are logged too
    assert len(lines) == asked
    assert all(set(line) == FIELDS for line in lines)
    said = "\n".join(served.said)
    for word in (*PEOPLE, *secrets.values(), *cookies.values(), "?", "find=", "agent="):
        assert word not in said
    assert {line["program"] for line in lines} == {OURS, None}
    with capsys.disabled():
        print(f"\n  {asked} requests of {len(HELD)} principals, {len(lines)} lines of log: no people, no secrets")
