"""What every route of the API begins and ends with: who asks, what the address may say, the context, tags and pages.

A document that changes only with events carries a tag of their number: whoever has it is reported so, without the program
being waited for. A table or list is answered in parts; `next` is the address of the following one.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Concatenate, NamedTuple, ParamSpec
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Depends, Header, Path, Request, Response
from pydantic import BaseModel
from pydantic_core import to_json

from restive.desk.audit import MAX_KEY, Repeated, RequestContext
from restive.desk.program import Program
from restive.desk.tokens import Principal
from restive.errors import InputError
from restive.server.auth import need_token
from restive.server.downloads import Sheet, send_sheet
from restive.server.program_pool import Programs
from restive.server.queries import WholeRound
from restive.version import __version__

PREFIX = "/api/v1"
REPLAYED = "Idempotent-Replayed"
P = ParamSpec("P")


def make_router(tag: str, prefix: str = PREFIX) -> APIRouter:
    """A router for one thing that is asked about; its operations are called as their functions are."""
    return APIRouter(prefix=prefix, tags=[tag], generate_unique_id_function=lambda route: route.name)


def admit(role: str) -> Callable[..., Awaitable[Principal]]:
    """A dependency: whoever asks, if the role is held there; only then is the address looked at."""
    known = need_token(role)

    async def principal(request: Request, found: Annotated[Principal, Depends(known)]) -> Principal:
        refuse_unknown(request)
        return found

    principal.role = role  # type: ignore[attr-defined]  # read by the document
    return principal


def refuse_unknown(request: Request) -> None:
    """Refuse parameters that mean nothing here, and those that may come once and come twice."""
    several = find_parameters(request.scope["route"])
    given = request.query_params
    for name in given:
        if name not in several:
            there = f"there are {', '.join(several)}" if several else "there are none here"
            raise InputError(f"{name[:60]!r} is not a parameter of this address; {there}.")
        if not several[name] and len(given.getlist(name)) > 1:
            raise InputError(f"{name} comes twice in the address; keep one.")


def find_parameters(route: Any) -> dict[str, bool]:
    """The parameters that an address may have, and whether they may be repeated."""
    found: dict[str, bool] = {}
    for parameter in route.dependant.query_params:
        kind = parameter.field_info.annotation
        fields = kind.model_fields if isinstance(kind, type) and issubclass(kind, BaseModel) else {}
        found |= {name: "list" in str(each.annotation) for name, each in fields.items()}
    return found


Viewer = Annotated[Principal, Depends(admit("viewer"))]
Operator = Annotated[Principal, Depends(admit("operator"))]
Admin = Annotated[Principal, Depends(admit("admin"))]
Name = Annotated[str, Path(description="The name of a program.", examples=["shops"])]
Number = Annotated[WholeRound, Path(description="The number of a round, from 1.", examples=[1])]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=MAX_KEY,
        pattern=r"^[!-~]+$",
        description="A text of your choice. The same request with the same key is carried out once: asked again, "
        "it is answered as before, with Idempotent-Replayed: true. Another request with the key is refused.",
    ),
]


def find_programs(request: Request) -> Programs:
    """The open programs of the server."""
    programs: Programs = request.app.state.programs
    return programs


def send(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Plain data as an answer; quicker than by a model where there are many rows."""
    return Response(to_json(content, inf_nan_mode="null"), status, headers, media_type="application/json")


def place(request: Request, name: str, *rest: object) -> str:
    """The address of something in a program."""
    parts = ["programs", name, *map(str, rest)]
    return str(request.scope.get("root_path", "")) + PREFIX + "/" + "/".join(quote(part, safe="") for part in parts)


def follow(request: Request, **changed: object) -> str:
    """The address of this request with other parameters."""
    asked = [(name, value) for name, value in request.query_params.multi_items() if name not in changed]
    return f"{quote(request.url.path)}?{urlencode(asked + [(name, str(value)) for name, value in changed.items()])}"


def make_tag(events: int) -> str:
    """The tag of a document after so many events, by this version."""
    return f'W/"{events}-{__version__}"'


def has_tag(request: Request, tag: str) -> bool:
    """Whether the caller has the document of that tag already."""
    given = [each.strip().removeprefix("W/") for each in request.headers.get("If-None-Match", "").split(",")]
    return "*" in given or tag.removeprefix("W/") in given


async def show(
    request: Request,
    name: str,
    question: Callable[Concatenate[Program, P], object],
    *args: P.args,
    **kwargs: P.kwargs,
) -> Response:
    """What `question` says of a program, with a tag; nothing but the tag to whoever has it already."""
    programs = find_programs(request)
    tag = make_tag(await programs.run(programs.length, name))
    if has_tag(request, tag):
        return Response(status_code=304, headers={"ETag": tag})

    def ask(program: Program) -> tuple[Response | Sheet, Mapping[str, str]]:
        projection = program.projection  # before the question: a tag may be older than what it stands for, never newer
        content = question(program, *args, **kwargs)
        # With pseudonyms names change with what this process has been reported, without an event.
        headers = {"ETag": make_tag(projection.length)} if projection.config.pseudonyms is None else {}
        return content if isinstance(content, Sheet) else send(content), headers

    async with programs.using(name, request) as program:
        found, headers = await programs.run(ask, program)
    response = await send_sheet(request, found) if isinstance(found, Sheet) else found
    response.headers.update(headers)
    return response


class Told(NamedTuple):
    """What a verb did: what to answer, and where it can be found."""

    content: dict[str, Any]
    headers: Mapping[str, str] = {}


def make_context(principal: Principal, key: str | None, digest: str, dry_run: bool = False) -> RequestContext:
    """Who asks for what, by which key; a dry run has no key, because it has nothing to remember."""
    return RequestContext(principal.signature, None if dry_run else key, digest)


async def record(
    request: Request,
    name: str,
    act: Callable[[Program], Told],
    repeat: Callable[[Program, dict[str, Any]], Told],
    status: int = 200,
) -> Response:
    """Carry out what a request asks of a program; one that was carried out before is answered as then."""

    def carry_out(program: Program) -> Response:
        replayed = {}
        try:
            reported = act(program)
        except Repeated as again:
            reported, replayed = repeat(program, again.answer), {REPLAYED: "true"}
        return send(reported.content, status, {**reported.headers, **replayed})

    programs = find_programs(request)
    async with programs.using(name, request) as program:
        return await programs.run(carry_out, program)
