"""Who may do what, over every operation of the API: the list is written here, and held against the document."""

from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

import pytest

from restive.server.openapi import operations
from server.trials.principals import NONE, OVER, PEOPLE, PRINCIPALS, LocalServer, expect, fill, is_same, open_server

ROWS = [{"agent": agent, "state": "high"} for agent in PEOPLE]
FRESH = count()


class Way(NamedTuple):
    """The role that an operation needs (None: it is for everybody), and a request that is carried out."""

    role: str | None
    body: dict[str, Any] | None = None
    query: str = ""
    status: int = 200


P = "/api/v1/programs/{name}"
WAYS: dict[str, Way] = {
    "GET /health": Way(None),
    "GET /ready": Way(None),
    "GET /metrics": Way("viewer"),
    "GET /api/v1/me": Way("viewer"),
    "GET /api/v1/templates": Way("viewer"),
    "GET /api/v1/policies": Way("viewer"),
    "GET /api/v1/programs": Way("viewer"),
    "POST /api/v1/programs": Way("admin", {"name": "", "template": "pharmacy"}, status=201),
    "GET /api/v1/audit": Way("admin"),
    "GET /api/v1/users": Way("admin"),
    "POST /api/v1/users": Way("admin", {"name": "", "grants": [{"program": None, "role": "viewer"}]}, status=201),
    "POST /api/v1/tokens": Way("admin", {"name": "", "grants": [{"program": None, "role": "viewer"}]}, status=201),
    "POST /api/v1/users/{user}/invitation": Way("admin"),
    "PUT /api/v1/users/{user}/grants": Way("admin", {"grants": [{"program": None, "role": "viewer"}]}),
    "DELETE /api/v1/users/{user}": Way("admin"),
    f"GET {P}": Way("viewer"),
    f"PATCH {P}": Way("admin", {"budget": 2}),
    f"POST {P}/archive": Way("admin", query="?dry_run=true"),
    f"POST {P}/restore": Way("admin", query="?dry_run=true"),
    f"DELETE {P}": Way("admin", query="?confirm={name}&dry_run=true"),
    f"GET {P}/export.zip": Way("admin"),
    f"GET {P}/status": Way("viewer"),
    f"GET {P}/calendar": Way("viewer"),
    f"GET {P}/results": Way("viewer"),
    f"GET {P}/unreached": Way("viewer"),
    f"GET {P}/report": Way("viewer"),
    f"GET {P}/tables/{{table}}.csv": Way("viewer"),
    f"GET {P}/tables/audit.csv": Way("admin"),
    f"GET {P}/tables/{{table}}.parquet": Way("viewer"),
    f"GET {P}/tables/audit.parquet": Way("admin"),
    f"GET {P}/tables/{{table}}.xlsx": Way("viewer"),
    f"GET {P}/tables/audit.xlsx": Way("admin"),
    f"POST {P}/rounds": Way("operator", {"states": ROWS, "dry_run": True}),
    f"GET {P}/rounds": Way("viewer"),
    f"GET {P}/rounds/{{round}}": Way("viewer"),
    f"GET {P}/rounds/{{round}}/list": Way("viewer"),
    f"GET {P}/rounds/{{round}}/list.csv": Way("viewer"),
    f"GET {P}/rounds/{{round}}/list.parquet": Way("viewer"),
    f"GET {P}/rounds/{{round}}/list.xlsx": Way("viewer"),
    f"PUT {P}/rounds/{{round}}/states": Way("operator", {"states": ROWS, "dry_run": True}),
    f"POST {P}/rounds/{{round}}/cancel": Way("operator", query="?dry_run=true"),
    f"POST {P}/rounds/{{round}}/withdraw": Way("operator", {"agents": [PEOPLE[0]], "dry_run": True}),
    f"POST {P}/undo": Way("operator", query="?dry_run=true"),
    f"POST {P}/outcomes": Way("operator", {"outcomes": [{"agent": PEOPLE[0], "next_state": "low"}], "dry_run": True}),
    f"GET {P}/people": Way("viewer", query=f"?find={PEOPLE[0][:4]}"),
    f"GET {P}/history": Way("viewer", query=f"?agent={PEOPLE[0]}"),
    f"POST {P}/leave": Way("operator", {"agents": [PEOPLE[0]], "dry_run": True}),
    f"POST {P}/erase": Way("admin", {"agents": [PEOPLE[0]], "dry_run": True}),
    f"GET {P}/events": Way("viewer"),
    f"GET {P}/audit": Way("admin"),
    f"GET {P}/webhooks": Way("admin"),
    f"POST {P}/webhooks": Way("admin", {"url": ""}, status=201),
    f"PATCH {P}/webhooks/{{webhook}}": Way("admin", {"enabled": True}),
    f"POST {P}/webhooks/{{webhook}}/test": Way("admin"),
    f"POST {P}/webhooks/{{webhook}}/secret": Way("admin"),
    f"POST {P}/webhooks/{{webhook}}/resend": Way("admin"),
    f"DELETE {P}/webhooks/{{webhook}}": Way("admin", query="?dry_run=true"),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    with open_server(tmp_path_factory.mktemp("roles")) as server:
        yield server


def find_role(operation: dict[str, Any]) -> str | None:
    return operation["security"][0]["token"][0] if "security" in operation else None


def make_request(operation: str, way: Way, program: str) -> tuple[str, str, dict[str, Any]]:
    """Method, address and the rest of a request that would be carried out."""
    method, path = operation.split(" ")
    if way.body is None:
        return method, fill(path + way.query, program), {}
    fresh = {"name": f"fresh-{next(FRESH)}", "url": f"https://example.org/{next(FRESH)}"}
    fresh = {name: value for name, value in fresh.items() if name in way.body}
    return method, fill(path, program) + way.query, {"json": way.body | fresh}


def test_the_list_is_that_of_the_document(server: LocalServer) -> None:
    document = server.app.openapi()
    needed = {f"{method.upper()} {path}": find_role(said) for path, method, said in operations(document)}
    assert needed == {operation: way.role for operation, way in WAYS.items()}
    for path, method, said in operations(document):
        secured = bool(said.get("security"))
        assert secured is (find_role(said) is not None), f"{method} {path}"


@pytest.mark.parametrize("principal", [None, *OVER])
def test_a_client_without_a_valid_token_is_admitted_nowhere(server: LocalServer, principal: str | None) -> None:
    ask = server.by_token(principal)
    for operation, way in WAYS.items():
        for program in (fill("{name}"), NONE):
            method, path, rest = make_request(operation, way, program)
            answer = ask(method, path, **rest)
            assert answer.status_code == (way.status if way.role is None else 401), operation
            if way.role is not None:
                assert answer.headers["www-authenticate"].startswith("Bearer")
                assert program not in answer.text


@pytest.mark.parametrize("principal", PRINCIPALS)
def test_each_principal_may_do_exactly_what_the_role_allows(server: LocalServer, principal: str) -> None:
    ask = server.by_token(principal)
    for operation, way in WAYS.items():
        method, path, rest = make_request(operation, way, fill("{name}"))
        status = expect(way.role, PRINCIPALS[principal], operation)
        assert ask(method, path, **rest).status_code == (way.status if status == 200 else status), operation


def test_a_program_of_others_is_as_one_that_is_not_there(server: LocalServer) -> None:
    theirs, all_ = server.by_token("admin of theirs"), server.by_token("admin of all")
    for operation, way in WAYS.items():
        if "{name}" in operation:
            method, path, rest = make_request(operation, way, fill("{name}"))
            there = theirs(method, path, **rest)
            assert there.status_code == 404, operation
            method, path, rest = make_request(operation, way, NONE)
            for ask in (theirs, all_):  # even for a token that sees every program
                assert is_same(there, ask(method, path, **rest)), operation


def test_clients_without_the_role_record_nothing(server: LocalServer) -> None:
    store = server.app.state.desk.store
    before = [row.number for row in store.audit_log(None, limit=1000)]
    for principal in (None, *OVER, "viewer of all", "viewer of ours", "admin of theirs"):
        ask = server.by_token(principal)
        for operation, way in WAYS.items():
            method, path, rest = make_request(operation, way, fill("{name}"))
            ask(method, path, **rest)
    assert [row.number for row in store.audit_log(None, limit=1000)] == before
