"""Shared parts of the API routes: roles, path parameters, idempotency keys, ETags and pages.

The content of a program changes only with its events, so the digest of the last event, which covers all of them, is its
ETag. Long lists are answered in pages; `next` is the address of the next one.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any, Concatenate, ParamSpec
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response, Security
from pydantic_core import to_json

from restive.api.types import Result
from restive.desk.audit import MAX_KEY, Repeated, RequestContext
from restive.desk.config import policy_label
from restive.desk.program import Program
from restive.desk.tokens import Principal
from restive.errors import InputError
from restive.server import requests
from restive.server.addresses import at_root, link
from restive.server.auth import need_token
from restive.server.downloads import Sheet, send_sheet
from restive.server.openapi import ALWAYS, problems
from restive.server.program_pool import Programs
from restive.version import __version__

PREFIX = "/api/v1"
REPLAYED_HEADER = "Idempotent-Replayed"
REPEATABLE = ("must", "never", "columns", "values")  # query parameters that may be given several times
POLICY_FIELDS = ("policy", "shadow", "shadow_policy")
P = ParamSpec("P")


async def check_repeated(request: Request) -> None:
    """Refuse a query parameter that is given twice."""
    given = request.query_params
    for name in given:
        if name not in REPEATABLE and len(given.getlist(name)) > 1:
            raise InputError(f"{name[:60]} is given twice in the query string.", location=name[:60])


async def check_no_query(query: Annotated[requests.Query, Query()]) -> None:
    """Refuse all query parameters."""


NO_QUERY = [Depends(check_no_query)]


def make_router(tag: str, prefix: str = PREFIX) -> APIRouter:
    """A router whose operations have the names of their functions."""
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        dependencies=[Depends(check_repeated)],
        responses=problems(*ALWAYS),
        generate_unique_id_function=lambda route: route.name,
    )


Viewer = Annotated[Principal, Security(need_token("viewer"), scopes=["viewer"])]
Operator = Annotated[Principal, Security(need_token("operator"), scopes=["operator"])]
Admin = Annotated[Principal, Security(need_token("admin"), scopes=["admin"])]
Name = Annotated[str, Path(description="The name of a program.", examples=["shops"])]
Number = Annotated[requests.Round, Path(description="The number of a round, from 1.", examples=[1])]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=MAX_KEY,
        pattern=r"^[!-~]+$",
        description="Any text. The same request with the same key is executed once; a repetition gets the first answer, "
        "with Idempotent-Replayed: true. Another request with the key is refused.",
    ),
]


def get_programs(request: Request) -> Programs:
    """The open programs of the server."""
    programs: Programs = request.app.state.programs
    return programs


def json_response(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Plain data as JSON, not validated; NaN becomes null."""
    return Response(to_json(content, inf_nan_mode="null"), status, headers, media_type="application/json")


def program_url(name: str, *rest: object) -> str:
    """The address of a program or of something in it."""
    return link(*PREFIX.split("/")[1:], "programs", name, *rest)


def page_url(request: Request, **changed: object) -> str:
    """The address of the request with some query parameters changed."""
    kept = [(name, value) for name, value in request.query_params.multi_items() if name not in changed]
    query = urlencode(kept + [(name, str(value)) for name, value in changed.items()])
    return at_root(f"{quote(request.url.path)}?{query}")


def hide_policy_paths(record: Mapping[str, Any]) -> dict[str, Any]:
    """Plain data in which policies loaded from files have no folder, at any depth.

    >>> hide_policy_paths({"header": {"policy": "/home/ann/mine.py:depth=2"}})
    {'header': {'policy': 'mine.py:depth=2'}}
    """
    return {name: _hide_policy_path(name, value) for name, value in record.items()}


def _hide_policy_path(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return hide_policy_paths(value)
    return policy_label(value) if name in POLICY_FIELDS and isinstance(value, str) else value


def make_etag(digest: str, period: str = "") -> str:
    """The ETag of a program's content after the event with this digest, in this version and period."""
    return f'W/"{digest[:32]}-{__version__}{period}"'


def matches_etag(request: Request, etag: str) -> bool:
    """Whether the caller has the content of that ETag."""
    given = [each.strip().removeprefix("W/") for each in request.headers.get("If-None-Match", "").split(",")]
    return "*" in given or etag.removeprefix("W/") in given


async def read_program(
    request: Request,
    name: str,
    read: Callable[Concatenate[Program, P], object],
    *args: P.args,
    **kwargs: P.kwargs,
) -> Response:
    """What `read` returns for a program, with an ETag, or 304 without waiting for the program."""
    return await _read(request, name, lambda program: read(program, *args, **kwargs))


async def read_dated(request: Request, name: str, read: Callable[[Program], object]) -> Response:
    """The same for content with due dates, which also depends on the day; in every time zone one begins with a quarter hour."""
    now: datetime = get_programs(request).desk.store.clock()
    return await _read(request, name, read, f"-{int(now.timestamp()) // 900}")


async def _read(request: Request, name: str, read: Callable[[Program], object], period: str = "") -> Response:
    programs = get_programs(request)
    etag = make_etag((await programs.run(programs.head, name)).digest, period)
    if matches_etag(request, etag):
        return Response(status_code=304, headers={"ETag": etag})

    def respond(program: Program) -> tuple[Response | Sheet, Mapping[str, str]]:
        projection = program.projection  # before reading: the ETag may be older than the content, never newer
        content = read(program)
        # With pseudonyms, names change without an event, when this process learns them.
        headers = {"ETag": make_etag(projection.digest, period)} if projection.config.pseudonyms is None else {}
        return content if isinstance(content, Sheet | Response) else json_response(content), headers

    found, headers = await programs.call(request, name, respond)
    response = await send_sheet(request, found)
    response.headers.update(headers)
    return response


async def check_empty_body(request: Request) -> None:
    """Refuse a body; the route has no settings."""
    if (await request.body()).strip():
        raise InputError("The body must be empty.")


def make_context(principal: Principal, key: str | None, digest: str, dry_run: bool = False) -> RequestContext:
    """Who requests what, with which idempotency key; a dry run has none, because nothing is remembered."""
    return RequestContext(principal.signature, None if dry_run else key, digest)


async def write_program(
    request: Request,
    name: str,
    write: Callable[[Program], Response],
    replay: Callable[[Program, dict[str, Any]], Response],
) -> Response:
    """Execute `write` on a program; `replay` builds the answer again if the idempotency key was used before."""

    def respond(program: Program) -> Response:
        try:
            return write(program)
        except Repeated as repeated:
            response = replay(program, repeated.answer)
            response.headers[REPLAYED_HEADER] = "true"
            return response

    return await get_programs(request).call(request, name, respond)


async def record(
    request: Request, name: str, model: type[Result], dry_run: bool, write: Callable[[Program], Mapping[str, Any]]
) -> Response:
    """Execute `write` on a program; the answer has the fields of the model, from its result or as they were recorded."""

    fields = [field for field in model.__annotations__ if field != "recorded"]

    def answer(found: Mapping[str, Any]) -> Response:
        return json_response({field: found[field] for field in fields} | {"recorded": not dry_run})

    return await write_program(
        request, name, lambda program: answer(write(program)), lambda _, recorded: answer(recorded)
    )
