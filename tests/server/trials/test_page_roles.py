"""Who may see and send what, for every page: the roles are listed here and compared with the routes of the app."""

import re
from collections.abc import Iterator

import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute

from server.trials.principals import (
    NONE,
    OURS,
    OVER,
    PEOPLE,
    PRINCIPALS,
    LocalServer,
    expect,
    fill,
    is_same,
    open_server,
)

P = "/programs/{name}"
PUBLIC = {"GET /openapi.json", "GET /api", "GET /login", "GET /join", "POST /login", "POST /logout"}
# Pages with a JSON endpoint, and the role that they need.
PAGES = {
    "/": "viewer",
    "/glossary": "viewer",
    "/help": "viewer",
    "/help/{topic}": "viewer",
    "/new": "admin",
    "/history": "admin",
    "/audit": "admin",
    "/users": "admin",
    "/users/{user}": "admin",
    f"{P}/status": "viewer",
    f"{P}/list": "viewer",
    f"{P}/rounds": "viewer",
    f"{P}/rounds/{{round}}": "viewer",
    f"{P}/people": "viewer",
    f"{P}/person": "viewer",
    f"{P}/results": "viewer",
    f"{P}/shadow": "viewer",
    f"{P}/unreached": "viewer",
    f"{P}/report": "viewer",
    f"{P}/states": "operator",
    f"{P}/outcomes": "operator",
    f"{P}/settings": "operator",
    f"{P}/audit": "admin",
    f"{P}/webhooks": "admin",
}
REPORT_FILE = "/history.{kind}"
OTHERS = {
    REPORT_FILE: "admin",
    "/audit.{kind}": "admin",
    "/help/pictures/{file}": "viewer",
    P: "viewer",
    f"{P}/week": "viewer",
    f"{P}/list.{{kind}}": "viewer",
    f"{P}/missing.{{kind}}": "viewer",
    f"{P}/calendar.ics": "viewer",
    f"{P}/export.zip": "admin",
    f"{P}/tables/{{table}}.{{kind}}": "viewer",
    f"{P}/tables/audit.{{kind}}": "admin",
}  # files and redirects
FORMS = {
    "/new": "admin",
    "/demo": "admin",
    "/history": "admin",
    "/users": "admin",
    "/users/{user}": "admin",
    f"{P}/states": "operator",
    f"{P}/outcomes": "operator",
    f"{P}/list": "operator",
    f"{P}/settings": "operator",
    f"{P}/delete": "admin",
    f"{P}/webhooks": "admin",
}
STEPS = {
    "archive": "admin",
    "restore": "admin",
    "change": "admin",
    "erase": "admin",
    "cancel": "operator",
    "leave": "operator",
    "undo": "operator",
}  # of the settings
QUERY = {f"{P}/person": f"?agent={PEOPLE[0]}"}
FORM = re.compile(r"<form\b[^>]*>")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    with open_server(tmp_path_factory.mktemp("pages")) as server:
        yield server


def list_routes(app: FastAPI) -> set[str]:
    """Method and path of every route outside the OpenAPI document."""
    hidden = [route for route in app.routes if isinstance(route, APIRoute) and not route.include_in_schema]
    return {f"{method} {route.path}" for route in hidden for method in route.methods or ()}


def find_address(path: str, program: str = OURS, ending: str = "") -> str:
    return fill(path, program) + ending + QUERY.get(path, "")


def test_the_list_is_that_of_the_app(server: LocalServer) -> None:
    seen = {f"GET {path}{ending}" for path in PAGES for ending in ("", ".json")} | {f"GET {path}" for path in OTHERS}
    assert list_routes(server.app) == seen | {f"POST {path}" for path in FORMS} | PUBLIC


@pytest.mark.parametrize("principal", [None, *OVER])
def test_a_user_who_is_not_signed_in_is_redirected(server: LocalServer, principal: str | None) -> None:
    ask = server.by_cookie(principal)
    answers = [ask("GET", find_address(path)) for path in PAGES | OTHERS]
    answers += [ask("POST", fill(path), data={"step": "x"}) for path in FORMS]
    for answer in answers:
        assert answer.status_code == 303, answer.url
        assert answer.headers["location"].startswith("/login?next=%2F")
    for path in PAGES:
        answer = ask("GET", find_address(path, ending=".json"))
        assert answer.status_code == 401, path
        assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("principal", PRINCIPALS)
def test_each_principal_sees_exactly_what_the_role_allows(server: LocalServer, principal: str) -> None:
    for path, role in (PAGES | OTHERS).items():
        status = expect(role, PRINCIPALS[principal], path)
        answer = server.by_cookie(principal)("GET", find_address(path))
        admitted = {P: 303, f"{P}/week": 303, REPORT_FILE: 404}.get(path, 200)  # there is no report
        assert answer.status_code == (admitted if status == 200 else status), path
        check_forms(answer, PRINCIPALS[principal].get(OURS) or PRINCIPALS[principal].get(None))
        if path in PAGES:
            for ask in (server.by_cookie(principal), server.by_token(principal)):
                assert ask("GET", find_address(path, ending=".json")).status_code == status, path


def check_forms(answer: httpx.Response, role: str | None) -> None:
    """A viewer sees no form that changes anything."""
    changing = [form for form in FORM.findall(answer.text) if "post" in form and 'action="/logout"' not in form]
    assert role != "viewer" or not changing, answer.url


def test_forms_are_shown_to_users_who_may_send_them(server: LocalServer) -> None:
    ask = server.by_cookie("admin of all")
    for path in FORMS:
        query = "?template=pharmacy" if path == "/new" else ""
        shown = {"/demo": "/new"}.get(path, path.replace("/delete", "/settings"))
        forms = [form for form in FORM.findall(ask("GET", fill(shown) + query).text) if "post" in form]
        assert len(forms) >= 2, path  # besides signing out


@pytest.mark.parametrize("principal", PRINCIPALS)
def test_no_form_of_another_site_is_taken(server: LocalServer, principal: str) -> None:
    ask, events = server.by_cookie(principal), count_events(server)
    for path in FORMS:
        for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "http://a.org"}):
            for step in ("", "decide", "record", *STEPS):
                sent = ask("POST", fill(path), data={"step": step, "agents": PEOPLE[0]}, headers=headers)
                assert sent.status_code == 403, path
    assert count_events(server) == events


def count_events(server: LocalServer) -> int:
    desk = server.app.state.desk
    return int(desk.store.length(desk.program(OURS).id))


@pytest.mark.parametrize("principal", PRINCIPALS)
def test_each_step_of_the_settings_needs_its_own_role(server: LocalServer, principal: str) -> None:
    page = server.by_cookie("admin of all")("GET", fill(f"{P}/settings"))
    assert page.status_code == 200
    for step, role in STEPS.items():
        sent = {"step": step, "agent": PEOPLE[0], "round": "1"}  # not confirmed
        answer = server.by_cookie(principal)("POST", fill(f"{P}/settings"), data=sent)
        status = expect(role, PRINCIPALS[principal], f"{P}/settings")
        asked = (303,) if step in ("archive", "restore") else (200, 422)  # these need no confirmation
        assert answer.status_code in (asked if status == 200 else (status,)), step


def test_a_program_without_access_looks_like_a_missing_one(server: LocalServer) -> None:
    ask, all_ = server.by_cookie("admin of theirs"), server.by_token("admin of all")
    for method, paths in (("GET", [*PAGES, *OTHERS]), ("POST", [*FORMS])):
        for path in paths:
            if "{name}" in path:
                there, not_there = (ask(method, find_address(path, name)) for name in (OURS, NONE))
                assert there.status_code == 404, path
                assert is_same(there, not_there), path
    for path in PAGES:
        if "{name}" in path:
            there = server.by_token("admin of theirs")("GET", find_address(path, OURS, ".json"))
            assert there.status_code == 404, path
            assert is_same(there, all_("GET", find_address(path, NONE, ".json"))), path


def test_public_pages_reveal_no_programs_and_people(server: LocalServer) -> None:
    ask = server.by_cookie(None)
    for operation in PUBLIC:
        method, path = operation.split(" ")
        answer = ask(method, path)
        assert answer.status_code in (200, 303, 401, 404), operation
        assert OURS not in answer.text or path in ("/api", "/openapi.json")  # where it is an example
