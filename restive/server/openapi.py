"""The API's own document: OpenAPI 3.1 at /openapi.json, made of the routes and their models, and a page of it at /api.

To what the framework writes it adds what every answer has in common: the one shape of failures under each status that a
route can answer, the headers, the role that is needed, and the bodies that are read by hand.
"""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.routing import APIRoute
from pydantic.json_schema import models_json_schema
from starlette.routing import compile_path

from restive.server.errors import PROBLEM, Failure
from restive.server.outline import make_outline
from restive.server.requests import Change, Create, Decide, Erase, Learn, Leave, Mend
from restive.server.routes import ROUTERS
from restive.server.routes.describing import refer
from restive.server.views.base import render

SUMMARY = "Every round, who of many people gets one of few actions."
ABOUT = (
    "Programs decide round by round: send who is in which state, get the list of whom to act on, send what came of it. "
    "Bodies are JSON, or tables as CSV, Parquet or Excel. Whatever is refused is refused whole, with a sentence, and "
    "nothing of it is recorded. An Idempotency-Key makes asking again safe."
)
TAGS = [
    {"name": "programs", "description": "Programs, what they decide by, and each at a glance."},
    {"name": "rounds", "description": "Decide a round; look at rounds and lists; correct and cancel."},
    {"name": "people", "description": "Outcomes, people and their history; who left and who is to be forgotten."},
    {"name": "record", "description": "The log of a program, and who did what."},
    {"name": "store", "description": "What belongs to no program."},
    {"name": "server", "description": "Whether the server is there."},
]
BODIES = (Create, Change, Decide, Learn, Mend, Leave, Erase, Failure)
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
REASONS = {
    400: "The body is not what its media type says, such as no JSON.",
    401: "There is no token, or it is not known, revoked or expired.",
    403: "The token's role is not enough, or a page of another site asked.",
    404: "There is no such program, round or person, or none that this token may see.",
    408: "The body came too slowly.",
    409: "It does not go with what is on record: decided already, a name taken, a key used for another request.",
    413: "The body is too large.",
    415: "The media type of the body cannot be read here.",
    421: "An open server answers to its own machine alone.",
    422: "Something is not as it must be; every fault of a table is named by row and column.",
    429: "Too many requests; Retry-After says when to come back.",
    500: "The server failed; its log has the details under the request id.",
    503: "The store does not answer now; Retry-After says when to try again.",
}
ALWAYS = (403, 408, 413, 421, 422, 429, 500, 503)
HEADERS = {
    "X-Request-ID": "The id of the request, as in the log.",
    "ETag": "Changes when the document does; send it as If-None-Match.",
    "Location": "Where it can be found.",
    "Idempotent-Replayed": "true, when the request was carried out before and is only answered again.",
    "Content-Disposition": "The name of the file.",
    "Retry-After": "Seconds to wait.",
    "WWW-Authenticate": "How to show a token.",
    "Accept": "The media types that can be read here.",
}

router = APIRouter(include_in_schema=False)


def describe_api(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document of the app, made once."""
    if app.openapi_schema is None:
        made = FastAPI.openapi(app)
        _, schemas = models_json_schema(
            [(model, "validation") for model in BODIES], ref_template="#/components/schemas/{model}"
        )
        made["components"]["schemas"] |= schemas["$defs"]
        for unused in ("HTTPValidationError", "ValidationError"):  # the framework's own shape of a failure
            made["components"]["schemas"].pop(unused, None)
        made["components"]["headers"] = {name: _header(said) for name, said in HEADERS.items()}
        roles = find_roles()
        for path, method, operation in operations(made):
            _complete(path, method, operation, roles.get(operation["operationId"]))
    assert app.openapi_schema is not None
    return app.openapi_schema


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every path and method with what the document says of it."""
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                yield path, method, item[method]


def find_roles() -> dict[str, str]:
    """The role that each route needs, by the name of its operation; those that need none are not in it."""
    routes = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    needed = {}
    for route in routes:
        for dependency in route.dependant.dependencies:
            if role := getattr(dependency.call, "role", None):
                needed[route.name] = role
    return needed


def _header(said: str) -> dict[str, Any]:
    return {"description": said, "schema": {"type": "string"}}


def _use(*names: str) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _complete(path: str, method: str, operation: dict[str, Any], role: str | None) -> None:
    """Add to an operation what all of its kind have in common."""
    for parameter in operation.get("parameters", []):
        parameter["schema"] = _without_null(parameter["schema"])
    answers = operation["responses"]
    tagged = method == "get" and "{name}" in path and not path.endswith("/audit")
    keyed = any(each["name"] == "Idempotency-Key" for each in operation.get("parameters", []))
    for status, answer in answers.items():
        located = ["Location"] if status == "201" else []
        filed = ["Content-Disposition"] if "/list." in path else []
        answer["headers"] = _use(*located, *filed, *["ETag"] * tagged, *["Idempotent-Replayed"] * keyed)
    if tagged:
        answers["304"] = {"description": "It is as the caller has it.", "headers": _use("ETag")}
        operation.setdefault("parameters", []).append(IF_NONE_MATCH)
    for status in _statuses(path, method, operation, role):
        answers[str(status)] = _failure(status)
    for answer in answers.values():
        answer["headers"] = _use("X-Request-ID") | answer.get("headers", {})
    operation["responses"] = dict(sorted(answers.items()))
    if role is not None:
        operation["x-role"] = role


IF_NONE_MATCH = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "description": "The ETag of the document that the caller has; 304 when it still holds.",
    "schema": {"type": "string"},
}


def _statuses(path: str, method: str, operation: dict[str, Any], role: str | None) -> list[int]:
    """The failures that an operation can answer."""
    found = set(ALWAYS)
    found |= {401} if role else set()
    found |= {404} if "{name}" in path else set()
    found |= {409} if method != "get" else set()
    found |= {400, 415} if "requestBody" in operation else set()
    return sorted(found)


def _failure(status: int) -> dict[str, Any]:
    more = {401: ["WWW-Authenticate"], 415: ["Accept"], 429: ["Retry-After"], 503: ["Retry-After"]}.get(status, [])
    return {
        "description": REASONS[status],
        "headers": _use(*more),
        "content": {PROBLEM: {"schema": refer(Failure)}},
    }


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a parameter: in an address there is no null, only leaving it out."""
    kinds = [kind for kind in schema.get("anyOf", []) if kind != {"type": "null"}]
    if len(kinds) != 1:
        return schema
    rest = {name: value for name, value in schema.items() if name not in ("anyOf", "default")}
    return {**kinds[0], **rest}


def find_methods(request: Request) -> list[str]:
    """The methods that the document has for a path."""
    found: dict[str, Any] = request.app.openapi()["paths"]
    names = [item for path, item in found.items() if compile_path(path)[0].match(request.url.path)]
    return [method.upper() for method in METHODS if any(method in item for item in names)]


@router.get("/openapi.json")
async def send_document(request: Request) -> Response:
    """The document."""
    content = json.dumps(request.app.openapi()).encode()
    tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    if tag in request.headers.get("If-None-Match", ""):
        return Response(status_code=304, headers={"ETag": tag})
    return Response(content, headers={"ETag": tag}, media_type="application/json")


@router.get("/api")
async def show_document(request: Request) -> Response:
    """The document as a page."""
    base = f"{request.url.scheme}://{request.url.netloc}"
    return render(request, "api.html", make_outline(request.app.openapi(), base))
