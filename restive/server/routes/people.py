"""Routes of people: outcomes, the list of people, histories, leaving and erasure."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from fastapi import Query, Request, Response

from restive.api import types
from restive.desk.export import describe_people
from restive.desk.program import Program
from restive.desk.tokens import Principal
from restive.server.openapi import json_body, table_body
from restive.server.requests import DryRun, EraseBody, HistoryQuery, LeaveBody, OutcomesBody, OutcomesQuery, PeopleQuery
from restive.server.routes.deps import (
    Admin,
    Key,
    Name,
    Number,
    Operator,
    Viewer,
    make_context,
    make_router,
    page_url,
    read_program,
    record,
)
from restive.server.uploads import dump_settings, take_settings, take_table

router = make_router("people")


@router.post(
    "/programs/{name}/outcomes",
    response_model=types.OutcomeCounts,
    summary="Record outcomes",
    openapi_extra=table_body(OutcomesBody, "agent,done,next_state\nann,yes,high\nben,,low\n"),
)
async def learn(
    name: Name, request: Request, principal: Operator, query: Annotated[OutcomesQuery, Query()], key: Key = None
) -> Response:
    """Record outcomes, which may arrive late, in parts and repeatedly.

    Settings are in the query string or, with a JSON body, in either place.
    """
    upload = await take_table(request, OutcomesBody, "outcomes", query)
    settings = upload.settings
    context = make_context(principal, key, upload.digest, settings.dry_run)

    def write(program: Program) -> dict[str, Any]:
        taken = program.learn(upload.table, **dump_settings(settings, "outcomes"), context=context)
        if not settings.dry_run:
            request.app.state.metrics.outcomes.inc(taken.new + taken.corrected)
        return taken._asdict()

    return await record(request, name, types.OutcomeCounts, settings.dry_run, write)


@router.get(
    "/programs/{name}/people",
    response_model=types.Page[types.Person],
    summary="List people",
)
async def list_people(
    name: Name, request: Request, principal: Viewer, page: Annotated[PeopleQuery, Query()]
) -> Response:
    """The people of the program in the order of joining, without those who were erased."""

    def read(program: Program) -> types.Page[types.Person]:
        rows = find_people(program, page.find, page.after, page.limit + 1)
        more = page_url(request, after=rows[page.limit - 1]["number"] + 1) if len(rows) > page.limit else None
        return {"items": rows[: page.limit], "next": more}

    return await read_program(request, name, read)


def find_people(program: Program, find: str = "", first: int = 0, limit: int = 100) -> list[types.Person]:
    """At most `limit` people whose id contains `find`, from the agent number `first` on."""
    numbers = program.names.search(find)
    return describe_people(program, numbers[numbers >= first][:limit])


@router.get(
    "/programs/{name}/history",
    response_model=types.Page[types.HistoryEntry],
    summary="History of a person",
)
async def history(name: Name, request: Request, principal: Viewer, query: Annotated[HistoryQuery, Query()]) -> Response:
    """One entry for each round in which the person took part."""

    def read(program: Program) -> types.Page[types.HistoryEntry]:
        return {"items": program.history(query.agent), "next": None}

    return await read_program(request, name, read)


@router.post(
    "/programs/{name}/rounds/{round}/withdraw",
    response_model=types.PeopleCount,
    summary="Withdraw reports",
    openapi_extra=json_body(LeaveBody),
)
async def withdraw(
    name: Name,
    round: Number,
    request: Request,
    principal: Operator,
    query: Annotated[DryRun, Query()],
    key: Key = None,
) -> Response:
    """Withdraw what was reported of people in a round, as if it had not been, while no later round rests on it."""
    return await _remove(request, name, principal, query, key, LeaveBody, partial(Program.withdraw, round=round))


@router.post(
    "/programs/{name}/leave",
    response_model=types.PeopleCount,
    summary="Remove people",
    openapi_extra=json_body(LeaveBody),
)
async def leave(
    name: Name, request: Request, principal: Operator, query: Annotated[DryRun, Query()], key: Key = None
) -> Response:
    """Record that people left; a person who appears in a later table of states is back."""
    return await _remove(request, name, principal, query, key, LeaveBody, Program.leave)


@router.post(
    "/programs/{name}/erase",
    response_model=types.PeopleCount,
    summary="Erase people",
    openapi_extra=json_body(EraseBody),
)
async def erase(
    name: Name, request: Request, principal: Admin, query: Annotated[DryRun, Query()], key: Key = None
) -> Response:
    """Erase names for good; the outcomes stay, under a number without a name."""
    return await _remove(request, name, principal, query, key, EraseBody, Program.erase)


async def _remove(
    request: Request,
    name: str,
    principal: Principal,
    query: DryRun,
    key: str | None,
    model: type[LeaveBody | EraseBody],
    remove: Callable[..., int],
) -> Response:
    upload = await take_settings(request, model, query)
    settings = upload.settings
    context = make_context(principal, key, upload.digest, settings.dry_run)

    def write(program: Program) -> dict[str, int]:
        return {"count": remove(program, settings.agents, dry_run=settings.dry_run, context=context)}

    return await record(request, name, types.PeopleCount, settings.dry_run, write)
