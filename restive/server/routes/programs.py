"""Routes of programs: list, create, read, change and status; the event log and the audit log."""

from collections.abc import Callable
from itertools import islice
from typing import Annotated, Any, cast

from fastapi import Query, Request, Response

from restive.api import administration, types
from restive.api.administration import ArchivedProgram, DeletedProgram
from restive.api.status import Status
from restive.desk.audit import Repeated
from restive.desk.config import Config
from restive.desk.config_advice import describe_setup
from restive.desk.program import Program
from restive.desk.status import get_status
from restive.desk.store import Event
from restive.desk.tokens import Principal
from restive.errors import Conflict, InputError
from restive.server.downloads import CALENDAR, ZIP, make_calendar_response, make_export
from restive.server.openapi import file_response, json_body
from restive.server.requests import AuditQuery, ChangeBody, CreateBody, DeleteQuery, DryRun, DryRunBody, PageQuery
from restive.server.routes.deps import (
    NO_QUERY,
    REPLAYED_HEADER,
    Admin,
    Key,
    Name,
    Viewer,
    get_programs,
    hide_policy_paths,
    json_response,
    make_context,
    make_router,
    page_url,
    program_url,
    read_dated,
    read_program,
    record,
    write_program,
)
from restive.server.uploads import take_settings

router, audit = make_router("programs"), make_router("audit")
NULLABLE = ("rewards", "horizon", "shadow")  # settings for which null differs from leaving them out


@router.get("/programs", response_model=types.Page[types.ProgramSummary], summary="List programs")
async def list_programs(request: Request, principal: Viewer, page: Annotated[PageQuery, Query()]) -> Response:
    """The programs that the token gives access to, the oldest first."""
    programs = get_programs(request)
    rows = await programs.run(request.app.state.desk.store.programs)
    visible = [row for row in rows if row.id > page.after and principal.sees(row.name)]
    items = [hide_policy_paths(await programs.summarize(row.name, request)) for row in visible[: page.limit]]
    more = page_url(request, after=visible[page.limit - 1].id) if len(visible) > page.limit else None
    return json_response({"items": items, "next": more})


@router.post(
    "/programs",
    response_model=types.ProgramConfig,
    status_code=201,
    summary="Create a program",
    openapi_extra=json_body(CreateBody),
    dependencies=NO_QUERY,
)
async def create(request: Request, principal: Admin, key: Key = None) -> Response:
    """Create a program from a template and settings, or from states and settings."""
    upload = await take_settings(request, CreateBody)
    settings = _read_settings(upload.settings)
    name, context = settings["name"], make_context(principal, key, upload.digest)

    def make() -> Program:
        made: Program = request.app.state.desk.create(**settings, context=context)
        return made

    def respond() -> Response:
        headers = {"Location": program_url(name)}
        try:
            config = _retry_conflict(make, key).config.as_json()
        except Repeated as repeated:
            config, headers[REPLAYED_HEADER] = repeated.answer["config"], "true"
        return json_response(_describe_config(name, config), 201, headers)

    return await get_programs(request).record(respond)


def _read_settings(body: CreateBody) -> dict[str, Any]:
    """The settings that were given; null counts only where it means something."""
    given = body.model_dump(exclude_unset=True)
    if given.get("words"):
        given["words"] = {name: word for name, word in given["words"].items() if word is not None}
    for name in ("policy", "shadow"):
        # A policy file is code: only users of the server's machine may choose one.
        if (given.get(name) or "").partition(":")[0].strip().lower().endswith(".py"):
            raise InputError(f"{name}: a policy file can only be set on the server's machine.", location=name)
    return {name: value for name, value in given.items() if value is not None or name in NULLABLE}


def _retry_conflict(make: Callable[[], Program], key: str | None) -> Program:
    """Create a program; on a conflict try again, because a concurrent request with the same key may have created it."""
    try:
        return make()
    except Conflict:
        if key is None:
            raise
    return make()


def _describe_config(name: str, config: types.Config) -> types.ProgramConfig:
    notes = describe_setup(Config.from_json(config))
    return {"name": name, "config": cast("types.Config", hide_policy_paths(config)), "notes": notes}


@router.get(
    "/programs/{name}",
    response_model=types.Program,
    summary="Get a program",
    dependencies=NO_QUERY,
)
async def show_program(name: Name, request: Request, principal: Viewer) -> Response:
    """The settings of a program and its numbers of people, rounds and events."""
    return await read_dated(request, name, _describe_program)


def _describe_program(program: Program) -> types.Program:
    projection = program.projection
    return {
        "name": program.name,
        "config": cast("types.Config", hide_policy_paths(projection.config.as_json())),
        "created": program.created,
        "events": projection.length,
        "rounds": len(projection.rounds),
        "people": int(projection.agents.active.sum()),
    }


@router.patch(
    "/programs/{name}",
    response_model=types.ProgramConfig,
    summary="Change a program",
    openapi_extra=json_body(ChangeBody),
    dependencies=NO_QUERY,
)
async def change(name: Name, request: Request, principal: Admin, key: Key = None) -> Response:
    """Change budget, spend, cost_unit, cool_down, keep, shares, display, states_are_outcomes, title, or how tables are read."""
    upload = await take_settings(request, ChangeBody)
    settings, context = upload.settings.model_dump(exclude_unset=True), make_context(principal, key, upload.digest)
    if not settings:
        raise InputError(f"The body has no setting to change; give one of {', '.join(ChangeBody.model_fields)}.")

    def write(program: Program) -> Response:
        return json_response(_describe_config(name, program.change(**settings, context=context).as_json()))

    def replay(_: Program, answer: dict[str, Any]) -> Response:
        return json_response(_describe_config(name, answer["config"]))

    return await write_program(request, name, write, replay)


@router.post(
    "/programs/{name}/archive",
    response_model=ArchivedProgram,
    summary="Archive a program",
    openapi_extra=json_body(DryRunBody, required=False),
)
async def archive(
    name: Name, request: Request, principal: Admin, query: Annotated[DryRun, Query()], key: Key = None
) -> Response:
    """Make a program read-only, but for erasing names; a second time changes nothing."""
    return await _set_archived(request, name, principal, query, key, True)


@router.post(
    "/programs/{name}/restore",
    response_model=ArchivedProgram,
    summary="Restore a program",
    openapi_extra=json_body(DryRunBody, required=False),
)
async def restore(
    name: Name, request: Request, principal: Admin, query: Annotated[DryRun, Query()], key: Key = None
) -> Response:
    """Let an archived program be used again; a second time changes nothing."""
    return await _set_archived(request, name, principal, query, key, False)


async def _set_archived(
    request: Request, name: str, principal: Principal, query: DryRun, key: str | None, archived: bool
) -> Response:
    upload = await take_settings(request, DryRunBody, query)
    dry_run = upload.settings.dry_run
    context = make_context(principal, key, upload.digest, dry_run)

    def write(program: Program) -> dict[str, bool]:
        (program.archive if archived else program.restore)(dry_run, context)
        return {"archived": archived}

    return await record(request, name, ArchivedProgram, dry_run, write)


@router.delete("/programs/{name}", response_model=DeletedProgram, summary="Delete a program")
async def delete(
    name: Name, request: Request, principal: Admin, query: Annotated[DeleteQuery, Query()], key: Key = None
) -> Response:
    """Delete a program for good, with its log, names and audit log; the audit log of the store keeps the fact."""
    context, headers = make_context(principal, key, "", query.dry_run), dict[str, str]()

    def run() -> int:
        try:
            return int(request.app.state.desk.delete(name, query.confirm, query.dry_run, context))
        except Repeated as repeated:
            headers[REPLAYED_HEADER] = "true"
            return int(repeated.answer["events"])

    events = await get_programs(request).delete(request, name, run)
    return json_response({"events": events, "recorded": not query.dry_run}, headers=headers)


@router.get(
    "/programs/{name}/status",
    response_model=Status,
    summary="Status of a program",
    dependencies=NO_QUERY,
)
async def status(name: Name, request: Request, principal: Viewer) -> Response:
    """Rounds, people, the gain of the program, what was learned, and what to do next."""
    return await read_dated(request, name, lambda program: hide_policy_paths(get_status(program)))


@router.get(
    "/programs/{name}/calendar",
    summary="Calendar of a program",
    responses=file_response(CALENDAR, "Content-Disposition"),
    response_class=Response,
    dependencies=NO_QUERY,
)
async def send_calendar(name: Name, request: Request, principal: Viewer) -> Response:
    """The due dates of lists, from the next one on, as an iCalendar file with reminders."""
    # Without an ETag: the next due date also depends on the time.
    return await get_programs(request).call(request, name, make_calendar_response)


@router.get(
    "/programs/{name}/export.zip",
    summary="Export a program",
    responses=file_response(ZIP, "Content-Disposition"),
    response_class=Response,
    dependencies=NO_QUERY,
)
async def export_program(name: Name, request: Request, principal: Admin) -> Response:
    """The people, rounds and records of a program as Parquet files in a ZIP file."""
    return await read_program(request, name, make_export)


@audit.get("/programs/{name}/events", response_model=types.Page[administration.Event], summary="List events")
async def list_events(name: Name, request: Request, principal: Viewer, page: Annotated[PageQuery, Query()]) -> Response:
    """The event log of a program, from the first event on, without columns."""

    def read(program: Program) -> types.Page[administration.Event]:
        found = list(islice(program.store.events(program.id, first=page.after, columns=False), page.limit))
        end = page.after + len(found)
        more = page_url(request, after=end) if end < program.projection.length else None
        return {"items": [_describe_event(event) for event in found], "next": more}

    return await read_program(request, name, read)


def _describe_event(event: Event) -> administration.Event:
    return {
        "number": event.number,
        "kind": event.kind,
        "round": event.round,
        "at": event.at,
        "header": hide_policy_paths(event.header),
        "digest": event.digest,
    }


@audit.get(
    "/programs/{name}/audit", response_model=types.Page[administration.AuditEntry], summary="Audit log of a program"
)
async def program_audit(
    name: Name, request: Request, principal: Admin, page: Annotated[AuditQuery, Query()]
) -> Response:
    """Who did what in this program, the newest entry first."""
    programs = get_programs(request)
    return await _list_entries(request, page, (await programs.run(programs.head, name)).program)


@audit.get("/audit", response_model=types.Page[administration.AuditEntry], summary="Audit log of the store")
async def store_audit(request: Request, principal: Admin, page: Annotated[AuditQuery, Query()]) -> Response:
    """Who did what in all programs and in the store itself, the newest entry first."""
    return await _list_entries(request, page, None)


async def _list_entries(request: Request, page: AuditQuery, program: int | None) -> Response:
    store = request.app.state.desk.store
    entries = await get_programs(request).run(store.audit_log, program, page.before, page.limit)
    more = len(entries) == page.limit and entries[-1].number > 1
    fields = administration.AuditEntry.__annotations__
    items = [hide_policy_paths({name: getattr(entry, name) for name in fields}) for entry in entries]
    return json_response({"items": items, "next": page_url(request, before=entries[-1].number) if more else None})
