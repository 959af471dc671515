"""People: what came of it for them, who they are, what happened to one of them, who left and who is to be forgotten."""

from collections.abc import Callable
from typing import Annotated, Any

import polars as pl
from fastapi import Query, Request, Response

from restive.api import types
from restive.desk.export import agents_table
from restive.desk.history import find_history
from restive.desk.program import Program
from restive.desk.tokens import Principal
from restive.server.queries import Find, OfAgent, WithOutcomes
from restive.server.requests import Erase, Learn, Leave
from restive.server.routes.deps import (
    Admin,
    Key,
    Name,
    Operator,
    Told,
    Viewer,
    follow,
    make_context,
    make_router,
    record,
    show,
)
from restive.server.routes.describing import brings, brings_table
from restive.server.uploads import OUTCOMES, take_settings, take_table
from restive.server.wording import speak

router = make_router("people")
LEARNT = ("rounds", "new", "corrected", "repeated", "waiting", "notes")


@router.post(
    "/programs/{name}/outcomes",
    response_model=types.OutcomeCounts,
    summary="Record outcomes",
    openapi_extra=brings_table(Learn, "agent,done,next_state\nann,yes,high\nben,,low\n"),
)
async def learn(
    name: Name, request: Request, principal: Operator, query: Annotated[WithOutcomes, Query()], key: Key = None
) -> Response:
    """Take in what happened; outcomes may come late, in parts and more than once.

    With a body of JSON its settings stand in the body, with a table of another kind in the address.
    """
    asked = await take_table(request, Learn, "outcomes", OUTCOMES, query)
    given = asked.settings
    context = make_context(principal, key, asked.digest, given.dry_run)

    def act(program: Program) -> Told:
        taken = program.learn(asked.table, given.round, given.correct, given.dry_run, context=context)
        if not given.dry_run:
            request.app.state.metrics.count_outcomes(taken.new + taken.corrected)
        return tell(taken._asdict(), recorded=not given.dry_run)

    def repeat(_: Program, answer: dict[str, Any]) -> Told:
        return tell({name: answer[name] for name in LEARNT}, recorded=True)

    def tell(taken: dict[str, Any], recorded: bool) -> Told:
        return Told(taken | {"notes": [speak(note) for note in taken["notes"]], "recorded": recorded})

    return await record(request, name, act, repeat)


@router.get("/programs/{name}/people", response_model=types.Page[types.Person], summary="People")
async def list_people(name: Name, request: Request, principal: Viewer, page: Annotated[Find, Query()]) -> Response:
    """Who is in the program, in the order of joining; who was erased is not."""

    def look(program: Program) -> dict[str, Any]:
        rows = find_people(program, page.find, page.after, page.limit + 1)
        more = follow(request, after=rows[page.limit - 1]["number"] + 1) if len(rows) > page.limit else None
        return {"items": rows[: page.limit], "next": more}

    return await show(request, name, look)


def find_people(program: Program, find: str = "", first: int = 0, limit: int = 100) -> list[dict[str, Any]]:
    """Those whose id has `find` in it, from the agent of number `first` on, at most `limit`."""
    numbers = program.names.search(find)
    some = numbers[numbers >= first][:limit]
    called = pl.Series("agent", program.names.call(some), pl.String)
    return agents_table(program, some).with_columns(called).to_dicts()


@router.get(
    "/programs/{name}/history", response_model=types.Page[types.HistoryEntry], summary="What happened to somebody"
)
async def history(name: Name, request: Request, principal: Viewer, query: Annotated[OfAgent, Query()]) -> Response:
    """A row for each round that this person took part in."""
    return await show(request, name, lambda program: {"items": find_history(program, query.agent), "next": None})


@router.post(
    "/programs/{name}/leave", response_model=types.PeopleCount, summary="People left", openapi_extra=brings(Leave)
)
async def leave(name: Name, request: Request, principal: Operator, key: Key = None) -> Response:
    """Say who is gone; who appears again in a table of states is back."""
    return await _drop(request, name, principal, key, Leave, Program.leave)


@router.post(
    "/programs/{name}/erase", response_model=types.PeopleCount, summary="Forget people", openapi_extra=brings(Erase)
)
async def erase(name: Name, request: Request, principal: Admin, key: Key = None) -> Response:
    """Forget names for good; what these people taught stays, as a number without a name."""
    return await _drop(request, name, principal, key, Erase, Program.erase)


async def _drop(
    request: Request,
    name: str,
    principal: Principal,
    key: str | None,
    model: type[Leave | Erase],
    verb: Callable[..., int],
) -> Response:
    """Carry out a verb of the desk on the people that a request names, and say how many they were."""
    asked = await take_settings(request, model)
    given, context = asked.settings, make_context(principal, key, asked.digest, asked.settings.dry_run)
    return await record(
        request,
        name,
        lambda program: Told(_count(verb(program, given.agents, given.dry_run, context=context), given.dry_run)),
        lambda _, answer: Told(_count(answer["count"], dry_run=False)),
    )


def _count(count: int, dry_run: bool) -> dict[str, Any]:
    return {"count": count, "recorded": not dry_run}
