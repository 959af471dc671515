"""Errors as problems (RFC 9457), built from the code, hint and faults of an `InputError`; no message is rewritten.

    InputError 422    NotFound 404    Conflict 409    StoreError 503    HTTPException: its own    all others 500

Messages of `StoreError` name the address of the store and quote the database, and those of unexpected errors can
contain anything; both are for the log only. `location` is answered if it is a text; a path on this machine is not.
"""

import json
from collections.abc import Mapping, Sequence
from html import escape
from http import HTTPStatus
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, Response
from starlette.types import Scope

from restive.api import types
from restive.desk.database import StoreError, StoreRestored
from restive.desk.table_columns import Fault
from restive.errors import Conflict, Hint, InputError, NotFound
from restive.server.addresses import at_root

PROBLEM = "application/problem+json"
RETRY_AFTER = "5"  # seconds after a store error
MAX_SHOWN = 5  # faults of a request in `detail`
MAX_FAULTS, MAX_MESSAGE, MAX_NAME = 1000, 10_000, 200

STATUSES: tuple[tuple[type[Exception], int], ...] = (
    (StoreError, 503),
    (NotFound, 404),
    (Conflict, 409),
    (InputError, 422),
)
HTTP_CODES = {
    400: "malformed_body", 401: "unauthorized", 403: "forbidden", 404: "not_found", 405: "method_not_allowed",
    406: "unsupported_media_type", 408: "timeout", 409: "conflict", 413: "too_large", 414: "too_large",
    415: "unsupported_media_type", 421: "wrong_host", 422: "invalid_input", 429: "too_many_requests",
    431: "too_large", 503: "busy", 504: "timeout",
}  # fmt: skip
CODES = {
    "invalid_input": "A field, parameter or setting is invalid.",
    "invalid_table": "Rows of a table are invalid; `faults` lists each by row and column. Nothing was recorded.",
    "malformed_body": "The body does not match its media type.",
    "unauthorized": "The token is missing, unknown, revoked or expired.",
    "forbidden": "The role of the token is too low, or the request is cross-site.",
    "not_found": "The program, round, person or address does not exist, or the token does not give access to it.",
    "method_not_allowed": "The address does not support this method; `Allow` lists those it does.",
    "conflict": "The request contradicts what is recorded, for example a name in use.",
    "already_decided": "The round already has a list.",
    "key_reused": "The Idempotency-Key was used for another request; use a new one.",
    "too_large": "The body or the head of the request is too large.",
    "unsupported_media_type": "The media type of the body is not supported.",
    "timeout": "The request arrived too slowly.",
    "wrong_host": "A server without tokens only answers to its own machine.",
    "too_many_requests": "Too many requests; wait for as many seconds as `Retry-After` says.",
    "store_unavailable": "The store failed; `recorded` says whether the request was recorded. If it is null, send the "
    "request again with the same Idempotency-Key.",
    "store_restored": "The store was restored from a backup or replaced since the program was last read. Nothing was "
    "recorded; check the program and send the request again.",
    "busy": "The server is busy; wait for as many seconds as `Retry-After` says.",
    "internal_error": "The server failed; its log has the details under the id of the request.",
}
TITLES = {413: "Content Too Large", 422: "Unprocessable Content"}  # of RFC 9110; Python 3.11 has older ones
STORE_MESSAGES = {
    False: "The store is unavailable. Nothing was recorded.",
    True: "The request was recorded, but the store failed afterwards.",
    None: "The store failed. It is not known whether the request was recorded.",
}
DEFAULT_MESSAGES = {404: "There is nothing at this address.", 405: "This address does not support this method."}
ADVICE = {
    Hint.AGAIN: "To decide another round all the same, set `again`.",
    Hint.NEW: "If these people are new, set `new`.",
    Hint.CORRECT: "To replace the recorded values, set `correct`.",
    Hint.COLUMNS: "If a column has another name, give it in `columns`.",
    Hint.CANCEL: "If the earlier round was a mistake, cancel it.",
}
PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    "<title>{title}</title><h1>{title}</h1><p>{detail}</p><p>Request <code>{request}</code></p>"
    '<p><a href="/">Start</a></p>'
)


class InvalidRequest(InputError):  # noqa: N818 - a kind of input error
    """A body, query string or path that does not match its model; `more` errors were not validated."""

    def __init__(self, errors: Sequence[Mapping[str, Any]], more: int = 0) -> None:
        faults = [Fault(None, _field_name(each["loc"]), _field_message(each)) for each in errors]
        self.faults, self.total = faults[:MAX_FAULTS], len(faults) + more
        shown = [f"{fault.column}: {fault.message}" if fault.column else fault.message for fault in faults[:MAX_SHOWN]]
        rest = f" and {self.total - MAX_SHOWN} more" if self.total > MAX_SHOWN else ""
        super().__init__("; ".join(shown) + rest + ".")


def _field_name(location: Sequence[object]) -> str | None:
    """The path of a field in the request."""
    names = [str(part)[:MAX_NAME] for part in location if part not in ("body", "query", "path", "header")]
    return ".".join(names[:4]) or None


def _field_message(error: Mapping[str, Any]) -> str:
    """The message of a validation error; that of an own validator without pydantic's prefix."""
    raised = error.get("ctx", {}).get("error")
    return str(error["msg"] if raised is None else raised)


def translate(error: Exception) -> Exception:
    """The error of the framework as one of ours."""
    return InvalidRequest(error.errors()) if isinstance(error, RequestValidationError) else error


def describe(error: Exception, request: HTTPConnection | None = None) -> types.Problem:
    """The error as a problem; the message of a store error goes to the log of the request."""
    error = translate(error)
    status, code = _classify(error)
    if request is not None and isinstance(error, StoreError):
        request.state.why = error.message
    hint = getattr(error, "hint", None)
    location = getattr(error, "location", None)
    return {
        "type": at_root(f"/api#{code}"),
        "title": TITLES.get(status) or HTTPStatus(status).phrase,
        "status": status,
        "code": code,
        "detail": _public_message(error, status)[:MAX_MESSAGE],
        "hint": None if hint is None else str(hint),
        "advice": ADVICE.get(hint) if hint else None,
        "location": location[:MAX_NAME] if isinstance(location, str) else None,
        "faults": [_describe_fault(fault) for fault in getattr(error, "faults", ())[:MAX_FAULTS]],
        "recorded": getattr(error, "recorded", None if status == 500 else False),
        "request": "" if request is None else str(getattr(request.state, "id", "")),
    }


def _classify(error: Exception) -> tuple[int, str]:
    if isinstance(error, HTTPException):
        status = error.status_code
        return status, HTTP_CODES.get(status, "invalid_input" if status < 500 else "internal_error")
    status = next((status for kind, status in STATUSES if isinstance(error, kind)), 500)
    return status, error.code if isinstance(error, InputError) else "internal_error"


def _public_message(error: Exception, status: int) -> str:
    if isinstance(error, StoreRestored):
        return CODES[error.code]
    if isinstance(error, StoreError):
        return STORE_MESSAGES[error.recorded]
    if isinstance(error, InputError):
        return error.message
    if isinstance(error, HTTPException) and status != 500:
        default = error.detail == HTTPStatus(status).phrase
        return DEFAULT_MESSAGES.get(status, error.detail) if default else error.detail
    return CODES["internal_error"]


def _describe_fault(fault: Fault) -> types.Fault:
    column = None if fault.column is None else fault.column[:MAX_NAME]
    return {"row": fault.row, "column": column, "message": fault.message[:MAX_MESSAGE]}


def error_response(error: Exception, scope: Scope) -> Response:
    """The error as a plain page for a browser, and as a problem for all others."""
    problem = describe(error, HTTPConnection(scope))
    headers = find_headers(error)
    if wants_page(scope):
        shown = {name: escape(str(problem[name])) for name in ("title", "detail", "request")}
        return HTMLResponse(PAGE.format(**shown), problem["status"], headers)
    return Response(json.dumps(problem), problem["status"], headers, media_type=PROBLEM)


def find_headers(error: Exception) -> dict[str, str]:
    """The headers of an error's response."""
    given = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    return ({"Retry-After": RETRY_AFTER} if isinstance(error, StoreError) else {}) | given


def wants_page(scope: Scope) -> bool:
    """Whether a browser requests a page."""
    return "text/html" in Headers(scope=scope).get("accept", "") and not scope["path"].startswith("/api/")
