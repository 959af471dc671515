import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator

import httpx
import pytest
from fastapi import FastAPI

from restive.desk import Desk
from restive.server.app import make_app
from restive.server.openapi import operations
from restive.server.settings import Settings
from server.calling import API, Caller, check_failure

SAMPLE = {"name": "shops", "round": 1, "user": "ann", "table": "rounds", "webhook": 1}


def paths(app: FastAPI) -> Iterator[tuple[str, str, dict[str, object]]]:
    for path, method, operation in operations(app.openapi()):
        yield method.upper(), path.format(**SAMPLE), operation


@pytest.mark.parametrize("method", ["HEAD", "TRACE", "PUT", "OPTIONS", "FOO"])
def test_a_method_that_is_not_there_is_refused_with_those_that_are(caller: Caller, method: str) -> None:
    for path, allowed in (
        ("/programs", "GET, POST"),
        ("/programs/shops", "GET, DELETE, PATCH"),
        ("/programs/shops/leave", "POST"),
    ):
        answer = caller.call(method, API + path)
        assert answer.headers["Allow"] == allowed
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.status_code == 405
        if method != "HEAD":
            assert check_failure(answer, 405)["type"] == "/api#method_not_allowed"


@pytest.mark.parametrize(
    "path", ["/api/v1", "/api/v1/nope", "/api/v1/programs/", "/api/v1/programs/shops/rounds/1/list.ods"]
)
def test_an_address_that_is_not_there_is_reported_in_the_one_shape(caller: Caller, path: str) -> None:
    assert caller.refused("GET", path, 404)["detail"] == "There is nothing at this address."


def test_a_browser_is_shown_a_page_where_software_gets_a_problem(caller: Caller) -> None:
    page = caller.call("GET", "/nowhere", headers={"Accept": "text/html"})
    assert page.status_code == 404
    assert page.headers["content-type"].startswith("text/html")
    caller.refused("GET", "/nowhere", 404)
    caller.refused("GET", "/api/v1/nowhere", 404, headers={"Accept": "text/html"})


def test_every_route_of_the_api_asks_for_a_token(principals: Callable[..., Caller]) -> None:
    anonymous = principals(None)
    asked = [(method, path) for method, path, operation in paths(anonymous.app) if "security" in operation]
    assert len(asked) > 25
    for method, path in asked:
        answer = anonymous.call(method, path, headers={"Authorization": "Bearer rst_1_wrong"})
        assert check_failure(answer, 401)["recorded"] is False
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")


def test_every_route_about_a_program_says_when_it_is_not_there(caller: Caller) -> None:
    for path, method, operation in operations(caller.app.openapi()):
        if "{name}" in path:
            body = {} if "requestBody" not in operation else {"json": EXAMPLES.get(operation["operationId"], {})}
            query = {"history": {"agent": "ann"}, "delete": {"confirm": "gone"}}.get(operation["operationId"], {})
            answer = caller.call(method.upper(), path.format(**{**SAMPLE, "name": "gone"}), params=query, **body)
            assert check_failure(answer, 404)["detail"] == "There is no program 'gone'."


EXAMPLES = {
    "decide": {"states": [{"agent": "ann", "state": "low"}]},
    "correct_states": {"states": [{"agent": "ann", "state": "low"}]},
    "learn": {"outcomes": [{"agent": "ann", "done": True}]},
    "leave": {"agents": ["ann"]},
    "withdraw": {"agents": ["ann"]},
    "erase": {"agents": ["ann"]},
    "change": {"budget": 3},
    "make_webhook": {"url": "https://example.org/hook"},
    "update_webhook": {"enabled": False},
}


def test_two_servers_over_one_store_see_each_others_rounds(desk: Desk, runner: asyncio.Runner) -> None:
    apps = [make_app(desk, Settings(open=True, log="none")) for _ in range(2)]
    callers = [Caller(app, desk, runner) for app in apps]
    for number in range(4):
        states = [{"agent": "ann", "state": ["low", "high"][number % 2]}]
        answer: httpx.Response = callers[number % 2].call("POST", "rounds", json={"states": states})
        assert answer.json()["round"] == number + 1
    for each in callers:
        each.run(each.client.aclose())
        each.app.state.programs.close()


def test_importing_the_server_loads_nothing_of_the_web() -> None:
    script = "import restive.server, sys; print({'fastapi', 'uvicorn', 'jinja2'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "set()\n"
