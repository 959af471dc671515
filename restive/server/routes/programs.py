"""Programs: which there are, new ones, what each decides by, and each at a glance."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Query, Request, Response

from restive.desk.deeds import Repeated
from restive.desk.overview import look_at
from restive.desk.program import Program
from restive.errors import Conflict, InputError
from restive.server.answers import Planned, ProgramLines
from restive.server.answers import Program as ProgramAnswer
from restive.server.bodies import take_settings
from restive.server.glance import Status
from restive.server.hiding import hide_folders, hide_plans
from restive.server.models import Change, Create
from restive.server.queries import Page
from restive.server.routes.asking import (
    REPLAYED,
    Admin,
    Key,
    Name,
    Told,
    Viewer,
    find_programs,
    follow,
    make_deed,
    make_router,
    place,
    record,
    send,
    show,
)
from restive.server.routes.describing import brings

router = make_router("programs")
EMPTY = ("rewards", "horizon", "shadow")  # where null says something else than leaving it out


@router.get("/programs", response_model=ProgramLines, summary="All programs")
async def list_programs(request: Request, holder: Viewer, page: Annotated[Page, Query()]) -> Response:
    """The programs that the token may see, the oldest first."""
    programs = find_programs(request)
    rows = await programs.run(request.app.state.desk.store.programs)
    seen = [row for row in rows if row.id > page.after and holder.sees(row.name)]
    items = [_hide(await programs.summarise(row.name, request)) for row in seen[: page.limit]]
    more = follow(request, after=seen[page.limit - 1].id) if len(seen) > page.limit else None
    return send({"items": items, "next": more})


def _hide(summary: dict[str, Any]) -> dict[str, Any]:
    line = hide_plans(summary)
    return line | {"template": hide_folders(line["template"])}


@router.post(
    "/programs", response_model=Planned, status_code=201, summary="Make a program", openapi_extra=brings(Create)
)
async def create(request: Request, holder: Admin, key: Key = None) -> Response:
    """Make a program by a template and what is to be other than there, or by states and settings of its own."""
    asked = await take_settings(request, Create)
    given = asked.settings.model_dump(exclude_unset=True)
    if given.get("words"):
        given["words"] = {name: word for name, word in given["words"].items() if word is not None}
    settings = {name: value for name, value in given.items() if value is not None or name in EMPTY}
    for spec in ("policy", "shadow"):
        _refuse_file(spec, settings.get(spec))
    deed, headers = make_deed(holder, key, asked.digest), {"Location": place(request, given["name"])}

    def make_once() -> Program:
        made: Program = request.app.state.desk.create(**settings, deed=deed)
        return made

    def make() -> Response:
        try:
            plan, replayed = _insist(make_once, key).plan.as_json(), {}
        except Repeated as again:
            plan, replayed = again.answer["plan"], {REPLAYED: "true"}
        return send(_planned(given["name"], plan), 201, headers | replayed)

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


def _planned(name: str, plan: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "plan": hide_plans(plan)}


@router.get("/programs/{name}", response_model=ProgramAnswer, summary="A program")
async def show_program(name: Name, request: Request, holder: Viewer) -> Response:
    """What a program decides by, and how far it is."""
    return await show(request, name, _describe)


def _describe(program: Program) -> dict[str, Any]:
    fold = program.fold
    known = {"name": program.name, "created": program.created, "events": fold.length}
    counts = {"rounds": len(fold.ledger.lines), "people": int(fold.ledger.active.sum())}
    return known | counts | {"plan": hide_plans(fold.plan.as_json())}


@router.patch("/programs/{name}", response_model=Planned, summary="Change a program", openapi_extra=brings(Change))
async def change(name: Name, request: Request, holder: Admin, key: Key = None) -> Response:
    """Change the budget, cool-down, keeping of states or shares, from now on."""
    asked = await take_settings(request, Change)
    settings, deed = asked.settings.model_dump(exclude_unset=True), make_deed(holder, key, asked.digest)
    if not settings:
        raise InputError("Nothing is to be changed; give budget, cool_down, keep or shares.")

    def act(program: Program) -> Told:
        return Told(_planned(name, program.change(**settings, deed=deed).as_json()))

    return await record(request, name, act, lambda _, answer: Told(_planned(name, answer["plan"])))


@router.get("/programs/{name}/status", response_model=Status, summary="A program at a glance")
async def status(name: Name, request: Request, holder: Viewer) -> Response:
    """Rounds, people, what the program adds, what was learnt, and what to do next."""
    return await show(request, name, _glance)


def _glance(program: Program) -> dict[str, Any]:
    seen = look_at(program)
    told = hide_plans(seen.as_json())
    del told["store"]  # a place on the server's machine, as are the commands of steps
    return told | {"steps": [step.sentence for step in seen.steps]}
