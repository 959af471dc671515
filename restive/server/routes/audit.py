"""Routes of the event log and the audit log."""

from itertools import islice
from typing import Annotated

from fastapi import Query, Request, Response

from restive.api import types
from restive.desk.program import Program
from restive.desk.store import Event
from restive.server.requests import AuditQuery, PageQuery
from restive.server.routes.deps import (
    Admin,
    Name,
    Viewer,
    get_programs,
    hide_policy_paths,
    json_response,
    make_router,
    page_url,
    read_program,
)

router = make_router("audit")


@router.get("/programs/{name}/events", response_model=types.Page[types.Event], summary="List events")
async def list_events(name: Name, request: Request, principal: Viewer, page: Annotated[PageQuery, Query()]) -> Response:
    """The event log of a program, from the first event on, without columns."""

    def read(program: Program) -> types.Page[types.Event]:
        found = list(islice(program.store.events(program.id, first=page.after, columns=False), page.limit))
        end = page.after + len(found)
        more = page_url(request, after=end) if end < program.projection.length else None
        return {"items": [_describe_event(event) for event in found], "next": more}

    return await read_program(request, name, read)


def _describe_event(event: Event) -> types.Event:
    return {
        "number": event.number,
        "kind": event.kind,
        "round": event.round,
        "at": event.at,
        "header": hide_policy_paths(event.header),
        "digest": event.digest,
    }


@router.get("/programs/{name}/audit", response_model=types.Page[types.AuditEntry], summary="Audit log of a program")
async def program_audit(
    name: Name, request: Request, principal: Admin, page: Annotated[AuditQuery, Query()]
) -> Response:
    """Who did what in this program, the newest entry first."""
    programs = get_programs(request)
    return await _list_entries(request, page, (await programs.run(programs.head, name)).program)


@router.get("/audit", response_model=types.Page[types.AuditEntry], summary="Audit log of the store")
async def store_audit(request: Request, principal: Admin, page: Annotated[AuditQuery, Query()]) -> Response:
    """Who did what in all programs and in the store itself, the newest entry first."""
    return await _list_entries(request, page, None)


async def _list_entries(request: Request, page: AuditQuery, program: int | None) -> Response:
    store = request.app.state.desk.store
    entries = await get_programs(request).run(store.audit_log, program, page.before, page.limit)
    more = len(entries) == page.limit and entries[-1].number > 1
    items = [hide_policy_paths(entry._asdict()) for entry in entries]
    return json_response({"items": items, "next": page_url(request, before=entries[-1].number) if more else None})
