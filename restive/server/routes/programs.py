"""Programs: which there are, new ones, what each decides by, and each at a glance."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Query, Request, Response

from restive.api import types
from restive.api.status import Status
from restive.desk.audit import Repeated
from restive.desk.program import Program
from restive.desk.status import get_status
from restive.errors import Conflict, InputError
from restive.server.hiding import hide_configs, hide_folders
from restive.server.queries import Page
from restive.server.requests import Change, Create
from restive.server.routes.deps import (
    REPLAYED,
    Admin,
    Key,
    Name,
    Told,
    Viewer,
    find_programs,
    follow,
    make_context,
    make_router,
    place,
    record,
    send,
    show,
)
from restive.server.routes.describing import brings
from restive.server.uploads import take_settings

router = make_router("programs")
EMPTY = ("rewards", "horizon", "shadow")  # where null says something else than leaving it out


@router.get("/programs", response_model=types.Page[types.ProgramSummary], summary="All programs")
async def list_programs(request: Request, principal: Viewer, page: Annotated[Page, Query()]) -> Response:
    """The programs that the token may see, the oldest first."""
    programs = find_programs(request)
    rows = await programs.run(request.app.state.desk.store.programs)
    seen = [row for row in rows if row.id > page.after and principal.sees(row.name)]
    items = [_hide(await programs.summarize(row.name, request)) for row in seen[: page.limit]]
    more = follow(request, after=seen[page.limit - 1].id) if len(seen) > page.limit else None
    return send({"items": items, "next": more})


def _hide(summary: types.ProgramSummary) -> dict[str, Any]:
    line = hide_configs(summary)
    return line | {"error": line["error"] and hide_folders(line["error"])}


@router.post(
    "/programs",
    response_model=types.ProgramConfig,
    status_code=201,
    summary="Make a program",
    openapi_extra=brings(Create),
)
async def create(request: Request, principal: Admin, key: Key = None) -> Response:
    """Make a program by a template and what is to be other than there, or by states and settings of its own."""
    asked = await take_settings(request, Create)
    given = asked.settings.model_dump(exclude_unset=True)
    if given.get("words"):
        given["words"] = {name: word for name, word in given["words"].items() if word is not None}
    settings = {name: value for name, value in given.items() if value is not None or name in EMPTY}
    for spec in ("policy", "shadow"):
        _refuse_file(spec, settings.get(spec))
    context, headers = make_context(principal, key, asked.digest), {"Location": place(request, given["name"])}

    def make_once() -> Program:
        made: Program = request.app.state.desk.create(**settings, context=context)
        return made

    def make() -> Response:
        try:
            config, replayed = _insist(make_once, key).config.as_json(), {}
        except Repeated as again:
            config, replayed = again.answer["config"], {REPLAYED: "true"}
        return send(_planned(given["name"], config), 201, headers | replayed)

    return await find_programs(request).run(make)


def _insist(make: Callable[[], Program], key: str | None) -> Program:
    """Make a program; one whose name was taken a moment ago may have been asked for by the same key."""
    try:
        return make()
    except Conflict:
        if key is None:
            raise
    return make()


def _refuse_file(what: str, spec: str | None) -> None:
    """A policy in a file is code: only who has the server's machine may have it run there."""
    if spec is not None and spec.partition(":")[0].strip().lower().endswith(".py"):
        raise InputError(f"{what}: a policy in a file of its own is set up on the server's machine, by the command.")


def _planned(name: str, config: types.Config) -> dict[str, Any]:
    return {"name": name, "config": hide_configs(config)}


@router.get("/programs/{name}", response_model=types.Program, summary="A program")
async def show_program(name: Name, request: Request, principal: Viewer) -> Response:
    """What a program decides by, and how far it is."""
    return await show(request, name, _describe)


def _describe(program: Program) -> dict[str, Any]:
    projection = program.projection
    known = {"name": program.name, "created": program.created, "events": projection.length}
    counts = {"rounds": len(projection.rounds), "people": int(projection.agents.active.sum())}
    return known | counts | {"config": hide_configs(projection.config.as_json())}


@router.patch(
    "/programs/{name}", response_model=types.ProgramConfig, summary="Change a program", openapi_extra=brings(Change)
)
async def change(name: Name, request: Request, principal: Admin, key: Key = None) -> Response:
    """Change the budget, cool-down, keeping of states or shares, from now on."""
    asked = await take_settings(request, Change)
    settings, context = asked.settings.model_dump(exclude_unset=True), make_context(principal, key, asked.digest)
    if not settings:
        raise InputError("Nothing is to be changed; give budget, cool_down, keep or shares.")

    def act(program: Program) -> Told:
        return Told(_planned(name, program.change(**settings, context=context).as_json()))

    return await record(request, name, act, lambda _, answer: Told(_planned(name, answer["config"])))


@router.get("/programs/{name}/status", response_model=Status, summary="A program at a glance")
async def status(name: Name, request: Request, principal: Viewer) -> Response:
    """Rounds, people, what the program adds, what was learned, and what to do next."""
    return await show(request, name, _glance)


def _glance(program: Program) -> dict[str, Any]:
    return hide_configs(get_status(program).as_json())
