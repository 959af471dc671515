"""The OpenAPI document at /openapi.json, its reference page at /api, and what routes declare for it.

Routes return plain data and read some bodies themselves; this module has the parts of the document that FastAPI cannot
derive: bodies of several media types, files, problems and headers.
"""

import hashlib
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import models_json_schema
from starlette.routing import compile_path
from typing_extensions import get_original_bases, is_typeddict

from restive.api import administration, status, types, webhooks
from restive.server import admin_requests, requests
from restive.server.errors import CODES, HTTP_CODES, PROBLEM
from restive.server.uploads import BINARY as OCTETS
from restive.server.uploads import JSON, TABLE_TYPES
from restive.server.views.base import render
from restive.version import __version__

SUMMARY = "Choose which people get one of a few actions, every round."
DESCRIPTION = (
    "A program decides round by round: send the current states, get the list of people to act on, send the outcomes. "
    "Bodies are JSON, or tables as CSV, Parquet or Excel. A request that is refused records nothing and returns a "
    "problem (RFC 9457). A request with an Idempotency-Key can be repeated safely. Every response has the id of its "
    "request in X-Request-ID, as in the server's log."
)
TAGS = [
    {"name": "programs", "description": "Programs, their settings and their status."},
    {"name": "rounds", "description": "Decide, list, correct and cancel rounds."},
    {"name": "results", "description": "Results by round and group, tables as files, and the report for a funder."},
    {"name": "people", "description": "Outcomes, people and their history; people who leave or are erased."},
    {"name": "audit", "description": "The event log and the audit log."},
    {"name": "webhooks", "description": "Where the server sends messages about a program."},
    {"name": "users", "description": "People and systems that can sign in, their roles and invitations."},
    {"name": "store", "description": "Templates, policies, the token and the audit log of the store."},
    {"name": "server", "description": "Health and metrics."},
]
BODIES = (
    requests.CreateBody, requests.ChangeBody, requests.DecideBody, requests.OutcomesBody, requests.CorrectStatesBody,
    requests.LeaveBody, requests.EraseBody, requests.DryRunBody, requests.UndoBody,
    admin_requests.GrantsBody, admin_requests.InviteBody, admin_requests.WebhookBody,
    admin_requests.ChangeWebhookBody,
)  # fmt: skip
UNCACHED = (
    "/audit",
    "/audit.csv",
    "/audit.parquet",
    "/audit.xlsx",
    "/calendar",
    "/webhooks",
)  # program routes without an ETag
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
SCHEMA = "#/components/schemas/{model}"
BINARY = {"type": "string", "format": "binary", "contentMediaType": OCTETS}
ALWAYS = (403, 408, 413, 421, 422, 429, 431, 500, 503)  # problems of every route
PROBLEM_HEADERS = {401: ["WWW-Authenticate"], 415: ["Accept"], 429: ["Retry-After"], 503: ["Retry-After"]}
HEADERS = {
    "Accept": "The accepted media types.",
    "Content-Disposition": "The name of the file.",
    "ETag": "Changes with the content; send it as If-None-Match.",
    "Idempotent-Replayed": "true if the request was executed before and its answer is repeated.",
    "Location": "The address of the new object.",
    "Retry-After": "Seconds to wait.",
    "WWW-Authenticate": "The authentication scheme.",
}
DESCRIPTIONS = {
    422: "The input is invalid; `faults` lists every fault of a table by row and column.",
    500: CODES["internal_error"],
    503: "The store is unavailable or the server is busy; wait for Retry-After.",
}
IF_NONE_MATCH = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "description": "An ETag; the answer is 304 if the content has not changed.",
    "schema": {"type": "string"},
}

Responses = dict[int | str, dict[str, Any]]


def problems(*statuses: int) -> Responses:
    """The problems that a route can answer with."""
    return {
        status: {
            "description": DESCRIPTIONS.get(status) or CODES[HTTP_CODES[status]],
            "content": {PROBLEM: {"schema": {"$ref": SCHEMA.format(model="Problem")}}},
            "headers": _headers(*PROBLEM_HEADERS.get(status, [])),
        }
        for status in statuses
    }


def _headers(*names: str) -> dict[str, Any]:
    return {name: {"description": HEADERS[name], "schema": {"type": "string"}} for name in names}


def json_body(model: type[BaseModel], required: bool = True) -> dict[str, Any]:
    """A JSON body, for `openapi_extra`."""
    content = {JSON: {"schema": {"$ref": SCHEMA.format(model=model.__name__)}}}
    return {"requestBody": {"required": required, "content": content}}


def table_body(model: type[BaseModel], example: str) -> dict[str, Any]:
    """A JSON body or a table file, for `openapi_extra`."""
    described = json_body(model)
    for kind, ending in (*TABLE_TYPES.items(), (OCTETS, "")):
        file = {"schema": BINARY} | ({"example": example} if ending == "csv" else {})
        described["requestBody"]["content"][kind] = file
    return described


def file_response(kind: str, *headers: str) -> Responses:
    """A file as the answer."""
    schema = {"type": "string"} if kind.startswith("text/") else BINARY
    return {200: {"description": "The file.", "content": {kind: {"schema": schema}}, "headers": _headers(*headers)}}


def make_document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document of the app, built once."""
    if app.openapi_schema is None:
        made = get_openapi(
            title="restive",
            version=__version__,
            summary=SUMMARY,
            description=DESCRIPTION,
            routes=app.routes,
            webhooks=app.webhooks.routes,
            tags=TAGS,
            servers=[{"url": root_path}] if (root_path := app.state.settings.root_path) else None,
        )
        schemas = made["components"]["schemas"]
        bodies = models_json_schema([(model, "validation") for model in BODIES], ref_template=SCHEMA)[1]
        problem = TypeAdapter(types.Problem).json_schema(ref_template=SCHEMA)
        schemas |= bodies["$defs"] | problem.pop("$defs") | {"Problem": problem}
        _inherit_descriptions(schemas)
        for name, schema in schemas.items():  # generators of clients name classes by the title, and need different ones
            schema["title"] = name.replace("_", "")
        for path, method, operation in operations(made):
            _describe_responses(path, method, operation)
        app.openapi_schema = made
    return app.openapi_schema


def _describe_responses(path: str, method: str, operation: dict[str, Any]) -> None:
    """Add the problems and headers that follow from what an operation is."""
    writes, of_program = method != "get", "{name}" in path
    cached = of_program and not writes and not path.endswith(UNCACHED)
    conditions = {401: "security" in operation, 404: "{" in path, 409: writes}
    conditions |= dict.fromkeys((400, 415), "requestBody" in operation)
    responses: dict[str, Any] = operation["responses"]
    found = problems(*(status for status, applies in conditions.items() if applies))
    responses |= {str(status): problem for status, problem in found.items()}
    if writes:
        for status in {"200", "201"} & set(responses):
            responses[status]["headers"] = _headers("Idempotent-Replayed", *["Location"] * (status == "201"))
    elif cached:
        responses["304"] = {"description": "The content has not changed.", "headers": _headers("ETag")}
        responses["200"]["headers"] = responses["200"].get("headers", {}) | _headers("ETag")
        operation["parameters"].append(IF_NONE_MATCH)


def _inherit_descriptions(schemas: dict[str, Any]) -> None:
    """Describe inherited fields: pydantic reads the texts below the fields of a class, not of its bases."""
    for name, kind in (vars(types) | vars(status) | vars(administration) | vars(webhooks)).items():
        if name in schemas and is_typeddict(kind):
            for field, description in _field_descriptions(kind).items():
                schemas[name]["properties"][field].setdefault("description", description)


@cache
def _field_descriptions(kind: type) -> dict[str, str]:
    found: dict[str, str] = {}
    for base in get_original_bases(kind):
        found |= _field_descriptions(base) if is_typeddict(base) else {}
    own = TypeAdapter(kind).json_schema().get("properties", {})
    return found | {field: schema["description"] for field, schema in own.items() if "description" in schema}


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every path, method and operation of the document."""
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                yield path, method, item[method]


def find_methods(request: Request) -> list[str]:
    """The methods that the document has for the path of a request."""
    found: dict[str, Any] = request.app.openapi()["paths"]
    items = [item for path, item in found.items() if compile_path(path)[0].match(request.url.path)]
    return [method.upper() for method in METHODS if any(method in item for item in items)]


router = APIRouter(include_in_schema=False)


@router.get("/openapi.json")
async def send_document(request: Request) -> Response:
    """The document as JSON."""
    content = json.dumps(request.app.openapi()).encode()
    tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    if tag in request.headers.get("If-None-Match", ""):
        return Response(status_code=304, headers={"ETag": tag})
    return Response(content, headers={"ETag": tag}, media_type=JSON)


@router.get("/api")
async def show_reference(request: Request) -> Response:
    """The reference page, on which requests can be tried."""
    return render(request, "api.html", {})
