"""The record of a program: its events, and who did what."""

from itertools import islice
from typing import Annotated, Any

from fastapi import Query, Request, Response

from restive.api import types
from restive.desk.program import Program
from restive.desk.store import Event
from restive.server.hiding import hide_configs
from restive.server.queries import Back, Page
from restive.server.routes.deps import Admin, Name, Viewer, find_programs, follow, make_router, show
from restive.server.routes.system import send_audit_entries

router = make_router("record")


@router.get("/programs/{name}/events", response_model=types.Page[types.Event], summary="The log")
async def list_events(name: Name, request: Request, principal: Viewer, page: Annotated[Page, Query()]) -> Response:
    """The events that all else follows from, the first first, without their columns; `after` is how many to skip."""

    def look(program: Program) -> dict[str, Any]:
        found = list(islice(program.store.events(program.id, first=page.after, columns=False), page.limit))
        end = page.after + len(found)
        more = follow(request, after=end) if end < program.projection.length else None
        return {"items": [_line(event) for event in found], "next": more}

    return await show(request, name, look)


def _line(event: Event) -> dict[str, Any]:
    """An event as it is reported."""
    known = {"number": event.number, "kind": event.kind, "at": event.at, "digest": event.digest}
    return known | {"round": event.round, "header": hide_configs(event.header)}


@router.get("/programs/{name}/audit", response_model=types.Page[types.AuditEntry], summary="Audit of a program")
async def program_audit(name: Name, request: Request, principal: Admin, page: Annotated[Back, Query()]) -> Response:
    """Who did what in this program, the newest first."""
    programs, store = find_programs(request), request.app.state.desk.store
    number = await programs.run(programs.find_id, name)
    return send_audit_entries(request, await programs.run(store.audit_log, number, page.before, page.limit), page)
