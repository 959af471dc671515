import json
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute

from restive.server import queries, requests
from restive.server.errors import Failure
from restive.server.openapi import BODIES, find_roles, operations
from restive.server.routes import ROUTERS
from server.calling import Caller

COMMON = {"403", "408", "413", "421", "422", "429", "500", "503"}


@pytest.fixture
def document(app: FastAPI) -> dict[str, Any]:
    return app.openapi()


def test_the_document_is_openapi_and_sent_with_a_tag(caller: Caller) -> None:
    answer = caller.call("GET", "/openapi.json")
    assert answer.json()["openapi"].startswith("3.1")
    again = caller.call("GET", "/openapi.json", headers={"If-None-Match": answer.headers["ETag"]})
    assert again.status_code == 304


def test_every_route_that_is_served_is_in_the_document(caller: Caller) -> None:
    known = {(path, method) for path, method, _ in operations(caller.app.openapi())}
    routes = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    assert known == {(route.path, method.lower()) for route in routes for method in route.methods or ()}
    assert {path for path, _ in known if not path.startswith("/api/v1/")} == {"/health", "/ready", "/metrics"}


def test_every_route_is_named_described_and_filed(document: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(set(names)) == len(names)
    tags = {tag["name"] for tag in document["tags"]}
    for path, _, operation in operations(document):
        assert operation["summary"]
        assert operation["description"].endswith(".")
        assert set(operation["tags"]) <= tags
        assert ("security" in operation) == (path not in ("/health", "/ready"))
        assert ("x-role" in operation) == ("security" in operation)
        for parameter in operation.get("parameters", []):
            assert parameter["description"]
            assert "null" not in json.dumps(parameter["schema"])


def test_every_route_names_its_failures_in_the_one_shape(document: dict[str, Any]) -> None:
    for path, method, operation in operations(document):
        failures = {status: answer for status, answer in operation["responses"].items() if status >= "400"}
        expected = set(COMMON)
        expected |= {"401"} if "security" in operation else set()
        expected |= {"404"} if "{name}" in path else set()
        expected |= {"409"} if method != "get" else set()
        expected |= {"400", "415"} if "requestBody" in operation else set()
        assert set(failures) == expected, path
        for answer in failures.values():
            assert answer["content"] == {
                "application/problem+json": {"schema": {"$ref": "#/components/schemas/Failure"}}
            }


def test_every_answer_has_its_headers(document: dict[str, Any]) -> None:
    for path, method, operation in operations(document):
        for status, answer in operation["responses"].items():
            assert "X-Request-ID" in answer["headers"]
            assert ("Location" in answer["headers"]) == (status == "201")
            assert ("Retry-After" in answer["headers"]) == (status in ("429", "503"))
        tagged = method == "get" and "{name}" in path and not path.endswith("audit")
        assert ("304" in operation["responses"]) == tagged


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    def follow(part: object) -> None:
        if isinstance(part, dict):
            if "$ref" in part:
                found: Any = document
                for step in str(part["$ref"]).removeprefix("#/").split("/"):
                    found = found[step]
            for each in part.values():
                follow(each)
        elif isinstance(part, list):
            for each in part:
                follow(each)

    follow(document)


def test_no_model_takes_what_it_does_not_know(document: dict[str, Any]) -> None:
    for name, schema in document["components"]["schemas"].items():
        assert schema["additionalProperties"] is False, name
        assert schema["description"], name


def test_examples_are_what_their_models_take(document: dict[str, Any]) -> None:
    for model in (*BODIES, Failure):
        schema = document["components"]["schemas"][model.__name__]
        for example in schema.get("examples", []):
            model.model_validate_json(json.dumps(example))


def test_every_model_of_the_rooms_is_strict() -> None:
    for room in (requests, queries):
        for model in vars(room).values():
            if isinstance(model, type) and hasattr(model, "model_config"):
                assert model.model_config.get("extra") == "forbid" or model.__name__ == "BaseModel"


def test_roles_are_those_that_routes_ask_for() -> None:
    roles = find_roles()
    assert {name for name, role in roles.items() if role == "admin"} == {
        "create", "change", "erase", "store_audit", "program_audit",
    }  # fmt: skip
    assert {name for name, role in roles.items() if role == "operator"} == {
        "decide", "learn", "correct_states", "cancel", "leave",
    }  # fmt: skip
    assert roles["me"] == roles["metrics"] == "viewer"
