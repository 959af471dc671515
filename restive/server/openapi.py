"""The OpenAPI document at /openapi.json, its reference page at /api, and what routes declare for it.

Routes return plain data and read some bodies themselves; this module has the parts of the document that FastAPI cannot
derive: bodies of several media types, files, problems and headers.
"""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import models_json_schema
from starlette.routing import compile_path
from typing_extensions import get_original_bases, is_typeddict

from restive.api import status, types
from restive.server.requests import (
    ChangeBody,
    CorrectStatesBody,
    CreateBody,
    DecideBody,
    EraseBody,
    LeaveBody,
    OutcomesBody,
)
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
    {"name": "people", "description": "Outcomes, people and their history; people who leave or are erased."},
    {"name": "audit", "description": "The event log and the audit log."},
    {"name": "store", "description": "Templates, policies, the token and the audit log of the store."},
    {"name": "server", "description": "Health and metrics."},
]
BODIES = (CreateBody, ChangeBody, DecideBody, OutcomesBody, CorrectStatesBody, LeaveBody, EraseBody)
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
SCHEMA = "#/components/schemas/{model}"
PROBLEM = "application/problem+json"
BINARY = {"type": "string", "contentMediaType": "application/octet-stream"}

Responses = dict[int | str, dict[str, Any]]


def header(description: str) -> dict[str, Any]:
    """A response header."""
    return {"description": description, "schema": {"type": "string"}}


RETRY_AFTER = {"Retry-After": header("Seconds to wait.")}
REPLAYED = {"Idempotent-Replayed": header("true if the request was executed before and its answer is repeated.")}
ETAG = {"ETag": header("Changes with the content; send it as If-None-Match.")}
LOCATION = {"Location": header("The address of the new object.")}
ATTACHMENT = {"Content-Disposition": header("The name of the file.")}
PROBLEM_HEADERS = {
    401: {"WWW-Authenticate": header("The authentication scheme.")},
    415: {"Accept": header("The accepted media types.")},
    429: RETRY_AFTER,
    503: RETRY_AFTER,
}
REASONS = {
    400: "The body does not match its media type, for example invalid JSON.",
    401: "The token is missing, unknown, revoked or expired.",
    403: "The role of the token is too low, or the request is cross-site.",
    404: "The program, round or person does not exist, or the token does not give access to it.",
    408: "The body arrived too slowly.",
    409: "The request contradicts what is recorded: a decided round, a name in use, a reused idempotency key.",
    413: "The body is too large.",
    415: "The media type of the body is not supported.",
    421: "A server without tokens only answers to its own machine.",
    422: "The input is invalid; `faults` lists every fault of a table by row and column.",
    429: "Too many requests; wait for Retry-After.",
    500: "Internal error; the server's log has the details under the id of the request.",
    503: "The store is unavailable or the server is busy; wait for Retry-After.",
}


def problems(*statuses: int) -> Responses:
    """The problems that a route can answer with."""
    content = {PROBLEM: {"schema": {"$ref": SCHEMA.format(model="Problem")}}}
    return {
        status: {"description": REASONS[status], "content": content, "headers": PROBLEM_HEADERS.get(status, {})}
        for status in statuses
    }


ALWAYS = problems(403, 408, 413, 421, 422, 429, 500, 503)
OF_TOKEN = problems(401)
OF_PROGRAM = problems(404)
OF_WRITE = problems(409)
OF_BODY = problems(400, 409, 415)
REPLAYABLE: Responses = {200: {"headers": REPLAYED}}
CREATED: Responses = {201: {"headers": LOCATION | REPLAYED}}
CACHED: Responses = {200: {"headers": ETAG}, 304: {"description": "The content has not changed.", "headers": ETAG}}
IF_NONE_MATCH = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "description": "An ETag; the answer is 304 if the content has not changed.",
    "schema": {"type": "string"},
}
CONDITIONAL: dict[str, Any] = {"parameters": [IF_NONE_MATCH]}


def json_body(model: type[BaseModel]) -> dict[str, Any]:
    """A JSON body, for `openapi_extra`."""
    content = {JSON: {"schema": {"$ref": SCHEMA.format(model=model.__name__)}}}
    return {"requestBody": {"required": True, "content": content}}


def table_body(model: type[BaseModel], example: str) -> dict[str, Any]:
    """A JSON body or a table file, whose settings are in the query string, for `openapi_extra`."""
    described = json_body(model)
    for kind, ending in TABLE_TYPES.items():
        text = {"schema": {"type": "string"}, "example": example}
        described["requestBody"]["content"][kind] = text if ending == "csv" else {"schema": BINARY}
    return described


def file_response(kind: str, headers: dict[str, Any] | None = None) -> Responses:
    """A file as the answer."""
    schema = {"type": "string"} if kind.startswith("text/") else BINARY
    return {200: {"description": "The file.", "content": {kind: {"schema": schema}}, "headers": headers or {}}}


def make_document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document of the app, built once."""
    if app.openapi_schema is None:
        made = get_openapi(
            title="restive", version=__version__, summary=SUMMARY, description=DESCRIPTION, routes=app.routes, tags=TAGS
        )
        schemas = made["components"]["schemas"]
        bodies = models_json_schema([(model, "validation") for model in BODIES], ref_template=SCHEMA)[1]
        problem = TypeAdapter(types.Problem).json_schema(ref_template=SCHEMA)
        schemas |= bodies["$defs"] | problem.pop("$defs") | {"Problem": problem}
        _inherit_descriptions(schemas)
        app.openapi_schema = made
    return app.openapi_schema


def _inherit_descriptions(schemas: dict[str, Any]) -> None:
    """Describe inherited fields: pydantic reads the texts below the fields of a class, not of its bases."""
    for name, kind in (vars(types) | vars(status)).items():
        if name in schemas and is_typeddict(kind):
            for field, description in _field_descriptions(kind).items():
                schemas[name]["properties"][field].setdefault("description", description)


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
