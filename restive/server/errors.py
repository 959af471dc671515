"""What went wrong, in the one shape that every error of the server has: a problem by RFC 9457, said in a sentence.

    InputError 422    TableError 422, each by row and column    NotFound 404    Conflict 409    StoreError 503
    Refusal: its own status, for what the web alone knows (no token, too large, not that media type)
    anything else 500, without a word about the code

`recorded` says what became of a request that was to record something: False, nothing was; True, it was all the same;
null, that is not known. No sentence names the place of the store on its machine.
"""

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import Response

from restive.desk.audit import KeyTaken
from restive.desk.database import StoreError
from restive.desk.opening import AlreadyDecided
from restive.desk.table_schema import Fault, TableError
from restive.errors import Conflict, InputError, NotFound
from restive.server.hiding import hide_folders
from restive.server.wording import speak

PROBLEM = "application/problem+json"
WORDS_OF_A_DATABASE = re.compile(r"the database says (['\"]).*\1")  # they may tell of its machine
RETRY_AFTER = "5"  # seconds until a store that failed is worth another try
SHOWN, MAX_PLACE, MAX_NAME = 5, 60, 200
MAX_FAULTS, MAX_SENTENCE = 1000, 10_000  # of one answer; more is for nobody to read
UNEXPECTED = "The server failed at this, which is a fault of its own; its log has the details under the request id."

# What the checker calls a kind of value, where a field may be of several.
KIND = re.compile(r"(?:constrained-)?(?:str|int|float|bool|none|list|dict)(?:\[.*\])?|function-\w+\[.*")
PLAIN = {
    "extra_forbidden": "it is not known here",
    "missing": "it is missing",
    "string_type": "it must be a text",
    "int_type": "it must be a whole number",
    "int_parsing": "it must be a whole number",
    "float_type": "it must be a number",
    "bool_type": "it must be true or false",
    "list_type": "it must be a list",
    "dict_type": "it must be an object",
    "model_type": "it must be an object",
    "string_pattern_mismatch": "it has a character that is not allowed there",
}

# The anchor on the page of the API where each kind of problem is explained, by class and by status.
KINDS: tuple[tuple[type[Exception], int, str], ...] = (
    (StoreError, 503, "store"),
    (NotFound, 404, "not-there"),
    (AlreadyDecided, 409, "already-decided"),
    (KeyTaken, 409, "key-taken"),
    (Conflict, 409, "conflict"),
    (TableError, 422, "table"),
    (InputError, 422, "input"),
)
REFUSED = {
    400: "malformed", 401: "token", 403: "role", 404: "not-there", 405: "method", 406: "media-type", 408: "timeout",
    409: "conflict", 413: "too-large", 414: "too-large", 415: "media-type", 421: "host", 422: "input",
    429: "too-many", 431: "too-large", 503: "busy", 504: "timeout",
}  # fmt: skip


PROBLEMS = {
    "input": "Something in the request is not as it must be; the sentence says what is allowed.",
    "table": "Rows of a table do not fit; `faults` has each by row and column. Nothing of the table was recorded.",
    "malformed": "The body is not what its media type says.",
    "token": "There is no token, or it is not known, revoked or expired.",
    "role": "The token's role is not enough for this, or a page of another site asked.",
    "not-there": "There is no such program, round, person or address, or none that the token may see.",
    "method": "The address is right, the method is not; Allow has those that are possible.",
    "conflict": "It does not go with what is on record, such as a name that is taken.",
    "already-decided": "The round has its list already; look at it instead of deciding again.",
    "key-taken": "The Idempotency-Key was used for another request; take a new one.",
    "too-large": "The body or the head of the request is larger than this server takes.",
    "media-type": "The media type of the body cannot be read here.",
    "timeout": "The request came too slowly.",
    "host": "An open server, which asks for no token, answers to its own machine alone.",
    "too-many": "Too many requests; come back after as many seconds as Retry-After says.",
    "store": "The store failed. `recorded` says whether anything was recorded; null: look before asking again, or ask "
    "again with the same Idempotency-Key, which is safe in any case.",
    "busy": "The server cannot answer now; come back after as many seconds as Retry-After says.",
    "fault": "The server failed; its log has the details under the request id.",
}


class Refusal(Exception):  # noqa: N818 - said to people, not only to programmers
    """A request that is turned down before the desk is asked, with the status to answer."""

    def __init__(self, status: int, sentence: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.headers = status, sentence, dict(headers or {})


class Misfit(InputError):  # noqa: N818
    """A request that is not as its model has it: each place, and what is wrong there; `more` were not looked at."""

    def __init__(self, errors: Sequence[Mapping[str, Any]], more: int = 0) -> None:
        said: dict[str | None, list[str]] = {}
        for each in errors:
            said.setdefault(_place(each["loc"]), []).append(_mend(each))
        # What may be this or that is refused once for each; it is one fault.
        faults = [Fault(None, place, ", or ".join(dict.fromkeys(words))) for place, words in said.items()]
        self.faults, self.total = faults[:MAX_FAULTS], len(faults) + more
        rest = f" and {self.total - SHOWN} more" if self.total > SHOWN else ""
        shown = [f"{place}: {sentence}" if place else sentence for _, place, sentence in faults[:SHOWN]]
        super().__init__("; ".join(shown) + rest + ".")


def _place(parts: Sequence[object]) -> str | None:
    """Where in the request: body, query and path are known from the name alone, and kinds of values are no places."""
    named = [str(part)[:MAX_PLACE] for part in parts if part not in ("body", "query", "path", "header")]
    return ".".join([part for place, part in enumerate(named[:4]) if not (place and KIND.fullmatch(part))]) or None


def _mend(error: Mapping[str, Any]) -> str:
    """The checker's message in the words of all others."""
    said = str(error["msg"]).removeprefix("Value error, ").replace("Input should", "it must")
    for word in ("String", "List", "Dictionary"):
        said = said.replace(f"{word} should", "it must")
    return PLAIN.get(str(error["type"]), said.replace("should", "must"))


class Flaw(BaseModel):
    """One thing that is wrong with a table or a request, and where."""

    model_config = ConfigDict(extra="forbid")

    row: int | None = Field(description="The row as a person counts: rows of JSON from 1, of a sheet with its header.")
    column: str | None = Field(description="The column, field or parameter, where one is to blame.")
    sentence: str = Field(description="What is wrong with it.")


class Failure(BaseModel):
    """Why a request was not carried out: a problem by RFC 9457, with the faults of a table and what was recorded."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "type": "/api#table",
                    "title": "Unprocessable Content",
                    "status": 422,
                    "detail": "states, row 2, column state: 'hihg' is not a state; the states are low, high",
                    "faults": [{"row": 2, "column": "state", "sentence": "'hihg' is not a state"}],
                    "recorded": False,
                    "request": "9f2c61d0a4b84f0e",
                }
            ]
        },
    )

    type: str = Field(description="The kind of problem: an anchor on the page of the API.")
    title: str = Field(description="The name of the status.")
    status: int = Field(description="The status, as in the answer's first line.")
    detail: str = Field(description="One sentence: what is wrong, where, and what is allowed.")
    faults: list[Flaw] = Field(description="The places that are wrong, where there are several; the first thousand.")
    recorded: bool | None = Field(description="Whether anything was recorded; null when that is not known.")
    request: str = Field(description="The id of the request, as in X-Request-ID and in the log.")


def translate(error: Exception) -> Exception:
    """What the framework says of a request, as an error of our own."""
    if isinstance(error, RequestValidationError):
        return Misfit(error.errors())
    if not isinstance(error, HTTPException):
        return error
    plain = {404: "There is nothing at this address.", 405: "This method is not possible here."}
    return Refusal(error.status_code, plain.get(error.status_code, str(error.detail)), error.headers)


def describe(error: Exception, request: HTTPConnection | None = None) -> Failure:
    """The error as the one shape; the request gives its id, and the place of the store that is not to be named."""
    error = translate(error)
    status, kind = _classify(error)
    if request is not None and isinstance(error, StoreError):
        request.state.why = str(error)  # for the log
    address = "" if request is None else _find_address(request)
    faults = [_flaw(fault) for fault in getattr(error, "faults", ())[:MAX_FAULTS]]
    return Failure(
        type=f"/api#{kind}",
        title=_title(status),
        status=status,
        detail=_say(error, status, address),
        faults=faults,
        recorded=getattr(error, "recorded", None if status == 500 else False),
        request="" if request is None else str(getattr(request.state, "id", "")),
    )


def _flaw(fault: Fault) -> Flaw:
    column = None if fault.column is None else fault.column[:MAX_NAME]
    return Flaw(row=fault.row, column=column, sentence=speak(hide_folders(fault.message[:MAX_SENTENCE])))


def answer(failure: Failure, headers: Mapping[str, str] | None = None) -> Response:
    """The failure as a response."""
    more = {"Retry-After": RETRY_AFTER} if failure.type == "/api#store" else {}
    return Response(failure.model_dump_json(), failure.status, more | dict(headers or {}), media_type=PROBLEM)


def _classify(error: Exception) -> tuple[int, str]:
    if isinstance(error, Refusal):
        return error.status, REFUSED.get(error.status, "input" if error.status < 500 else "fault")
    return next(((status, name) for kind, status, name in KINDS if isinstance(error, kind)), (500, "fault"))


def _title(status: int) -> str:
    """The name of a status; Python has changed some of them."""
    renamed = {413: "Content Too Large", 422: "Unprocessable Content"}
    return renamed.get(status) or HTTPStatus(status).phrase


def _say(error: Exception, status: int, address: str) -> str:
    """The sentence; what is not one of our own errors may say anything, and is not repeated."""
    if status == 500 or not isinstance(error, InputError | Refusal):
        return UNEXPECTED
    said = str(error)[:MAX_SENTENCE]
    reported = speak(hide_folders(said.replace(f"store {address}", "store") if address else said))
    return WORDS_OF_A_DATABASE.sub("for a reason that is in the server's log", reported)


def _find_address(request: HTTPConnection) -> str:
    state = getattr(request.scope.get("app"), "state", None)
    store = getattr(getattr(state, "desk", None), "store", None)
    return str(getattr(store, "address", ""))
