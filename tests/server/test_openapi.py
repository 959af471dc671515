import json
import re
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute

from restive.server import requests
from restive.server.openapi import BODIES, operations
from restive.server.routes import ROUTERS
from server.calling import Caller

COMMON = {"403", "408", "413", "421", "422", "429", "431", "500", "503"}


@pytest.fixture
def document(app: FastAPI) -> dict[str, Any]:
    return app.openapi()


def find_roles(document: dict[str, Any]) -> dict[str, str]:
    """The role of each operation that needs one, by its name."""
    return {
        operation["operationId"]: operation["security"][0]["token"][0]
        for _, _, operation in operations(document)
        if "security" in operation
    }


def test_the_document_is_openapi_and_has_an_etag(caller: Caller) -> None:
    answer = caller.call("GET", "/openapi.json")
    assert answer.json()["openapi"].startswith("3.1")
    again = caller.call("GET", "/openapi.json", headers={"If-None-Match": answer.headers["ETag"]})
    assert again.status_code == 304


def test_every_route_is_in_the_document(caller: Caller) -> None:
    known = {(path, method) for path, method, _ in operations(caller.app.openapi())}
    routes = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    assert known == {(route.path, method.lower()) for route in routes for method in route.methods or ()}
    assert {path for path, _ in known if not path.startswith("/api/v1/")} == {"/health", "/ready", "/metrics"}


def test_every_operation_has_a_name_a_description_and_a_tag(document: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(set(names)) == len(names)
    tags = {tag["name"] for tag in document["tags"]}
    for path, _, operation in operations(document):
        assert operation["summary"]
        assert operation["description"].endswith(".")
        assert set(operation["tags"]) <= tags
        assert ("security" in operation) == (path not in ("/health", "/ready"))
        for parameter in operation.get("parameters", []):
            assert parameter["description"]


def test_every_operation_lists_its_problems(document: dict[str, Any]) -> None:
    for path, method, operation in operations(document):
        problems = {status: answer for status, answer in operation["responses"].items() if status >= "400"}
        expected = set(COMMON)
        expected |= {"401"} if "security" in operation else set()
        expected |= {"404"} if "{" in path else set()
        expected |= {"409"} if method != "get" else set()
        expected |= {"400", "415"} if "requestBody" in operation else set()
        assert set(problems) == expected, path
        for answer in problems.values():
            assert answer["content"] == {
                "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
            }


def test_every_response_has_its_headers(document: dict[str, Any]) -> None:
    for path, method, operation in operations(document):
        for status, answer in operation["responses"].items():
            headers = answer.get("headers", {})
            assert ("Location" in headers) == (status == "201")
            assert ("Retry-After" in headers) == (status in ("429", "503"))
        cached = method == "get" and "{name}" in path and not re.search("/(audit|calendar|webhooks)[^/]*$", path)
        assert ("304" in operation["responses"]) == cached
        assert ("ETag" in operation["responses"].get("200", {}).get("headers", {})) == cached
        named = [parameter["name"] for parameter in operation.get("parameters", [])]
        assert ("If-None-Match" in named) == cached


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


def test_every_schema_is_closed_and_described(document: dict[str, Any]) -> None:
    for name, schema in document["components"]["schemas"].items():
        assert schema["additionalProperties"] is False, name
        assert schema["description"], name


def test_inherited_fields_are_described(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    assert schemas["CancelledRound"]["properties"]["recorded"]["description"] == "False after a dry run."
    present = [schemas[name]["properties"]["present"]["description"] for name in ("Decision", "DecidedRound")]
    assert present[0] == present[1]


def test_examples_are_valid(document: dict[str, Any]) -> None:
    for model in BODIES:
        schema = document["components"]["schemas"][model.__name__]
        for example in schema.get("examples", []):
            model.model_validate_json(json.dumps(example))


def test_every_request_model_forbids_unknown_fields() -> None:
    for model in vars(requests).values():
        if isinstance(model, type) and hasattr(model, "model_config") and model.__module__ == requests.__name__:
            assert model.model_config.get("extra") == "forbid"


def test_roles_are_scopes_of_the_token(document: dict[str, Any]) -> None:
    roles = find_roles(document)
    assert {name for name, role in roles.items() if role == "admin"} == {
        "create", "change", "erase", "store_audit", "program_audit", "audit_csv", "audit_parquet", "audit_xlsx",
        "archive", "restore", "delete", "export_program", "list_users", "invite_user", "make_new_token", "renew_invitation",
        "change_user", "revoke_user",
        "show_webhooks", "make_webhook", "update_webhook", "send_test_message", "delete_webhook", "rotate_secret",
        "resend",
    }  # fmt: skip
    assert {name for name, role in roles.items() if role == "operator"} == {
        "decide", "learn", "correct_states", "cancel", "leave", "undo", "withdraw",
    }  # fmt: skip
    assert roles["me"] == roles["metrics"] == "viewer"


def test_the_reference_page_loads_only_files_of_this_server(caller: Caller) -> None:
    page = caller.call("GET", "/api", headers={"Accept": "text/html"})
    assert page.headers["content-type"].startswith("text/html")
    assert "swagger-ui-bundle.js" in page.text
    assert "<script>" not in page.text
    assert "http:" not in page.text
    assert "https:" not in page.text
