"""Rounds: decide one, look at them and at their lists, correct the states of one, cancel one."""

from typing import Annotated, Any

from fastapi import Query, Request, Response

from restive.api import types
from restive.desk.export import summarise_rounds
from restive.desk.program import Program
from restive.desk.recommendation import Recommendation
from restive.errors import InputError
from restive.server.downloads import MEDIA_TYPES, Sheet
from restive.server.hiding import hide_configs
from restive.server.queries import DryRun, Page, WithStates
from restive.server.requests import Decide, Mend
from restive.server.routes.deps import (
    Key,
    Name,
    Number,
    Operator,
    Told,
    Viewer,
    follow,
    make_context,
    make_router,
    place,
    record,
    show,
)
from restive.server.routes.describing import answers_file, brings_table
from restive.server.uploads import STATES, digest, take_table
from restive.server.wording import speak

router = make_router("rounds")


@router.post(
    "/programs/{name}/rounds",
    response_model=types.DecidedRound,
    status_code=201,
    summary="Decide a round",
    responses={200: {"model": types.DecidedRound, "description": "A dry run: what would be decided."}},
    openapi_extra=brings_table(Decide, "agent,state,group\nann,low,north\nben,high,south\n"),
)
async def decide(
    name: Name, request: Request, principal: Operator, query: Annotated[WithStates, Query()], key: Key = None
) -> Response:
    """Take in who is in which state now, and say whom to act on.

    With a body of JSON its settings stand in the body, with a table of another kind in the address.
    """
    asked = await take_table(request, Decide, "states", STATES, query)
    given = asked.settings
    context = make_context(principal, key, asked.digest, given.dry_run)

    def act(program: Program) -> Told:
        settings = given.model_dump(exclude={"states"})
        recommendation = program.decide(asked.table, **settings, context=context)
        if not given.dry_run:
            request.app.state.metrics.count_round(len(recommendation.chosen))
        return tell(recommendation, recorded=not given.dry_run)

    def repeat(program: Program, answer: dict[str, Any]) -> Told:
        return tell(program.recommendation(answer["round"], answer["notes"]), recorded=True)

    def tell(recommendation: Recommendation, recorded: bool) -> Told:
        where = place(request, name, "rounds", recommendation.round)
        rest = f"{where}/list?after={query.limit}" if recorded and recommendation.size > query.limit else None
        notes = [speak(note) for note in recommendation.notes]
        content = hide_configs(recommendation.as_json(query.limit)) | {
            "notes": notes,
            "next": rest,
            "recorded": recorded,
        }
        return Told(content, {"Location": where} if recorded else {})

    return await record(request, name, act, repeat, 200 if given.dry_run else 201)


def _summarise(recommendation: Recommendation) -> dict[str, Any]:
    """A decision without its list."""
    record = hide_configs(recommendation.as_json(0))
    del record["people"]
    return record


@router.get("/programs/{name}/rounds", response_model=types.Page[types.RoundSummary], summary="All rounds")
async def list_rounds(name: Name, request: Request, principal: Viewer, page: Annotated[Page, Query()]) -> Response:
    """The rounds so far, the first first."""

    def look(program: Program) -> dict[str, Any]:
        rows = summarise_rounds(program)[page.after : page.after + page.limit]
        end = page.after + len(rows)
        return {"items": rows, "next": follow(request, after=end) if end < len(program.rounds) else None}

    return await show(request, name, look)


@router.get("/programs/{name}/rounds/{round}", response_model=types.RoundDetail, summary="A round")
async def show_round(name: Name, round: Number, request: Request, principal: Viewer) -> Response:
    """A round as it stands now, and how it was decided."""

    def look(program: Program) -> dict[str, Any]:
        decided = program.get_round(round).decided is not None
        line = summarise_rounds(program)[round - 1]
        return {**line, "decision": _summarise(program.recommendation(round)) if decided else None}

    return await show(request, name, look)


@router.get(
    "/programs/{name}/rounds/{round}/list", response_model=types.Page[types.ListedPerson], summary="The list of a round"
)
async def show_list(
    name: Name, round: Number, request: Request, principal: Viewer, page: Annotated[Page, Query()]
) -> Response:
    """Whom to act on, best first, then who is next if one of them falls out."""

    def look(program: Program) -> dict[str, Any]:
        recommendation, end = program.recommendation(round), page.after + page.limit
        rows = recommendation.people(slice(page.after, end))
        return {"items": rows, "next": follow(request, after=end) if end < recommendation.size else None}

    return await show(request, name, look)


def _add_file(ending: str) -> None:
    """The route of a whole list as a file."""

    @router.get(
        f"/programs/{{name}}/rounds/{{round}}/list.{ending}",
        summary=f"The list as .{ending}",
        responses=answers_file(MEDIA_TYPES[ending]),
        response_class=Response,
        name=f"list_{ending}",
    )
    async def send_list(name: Name, round: Number, request: Request, principal: Viewer) -> Response:
        """The whole list as a file; with `done` filled in it can be sent back as a table of outcomes."""
        return await show(request, name, lambda program: Sheet(program.recommendation(round), ending))


for _ending in MEDIA_TYPES:
    _add_file(_ending)


@router.put(
    "/programs/{name}/rounds/{round}/states",
    response_model=types.CorrectedStates,
    summary="Correct states",
    openapi_extra=brings_table(Mend, "agent,state\nann,high\n"),
)
async def correct_states(
    name: Name, round: Number, request: Request, principal: Operator, query: Annotated[DryRun, Query()], key: Key = None
) -> Response:
    """Mend the states of a round that were recorded wrong.

    With a body of JSON its settings stand in the body, with a table of another kind in the address.
    """
    asked = await take_table(request, Mend, "states", STATES, query)
    dry_run = asked.settings.dry_run
    context = make_context(principal, key, asked.digest, dry_run)

    def act(program: Program) -> Told:
        corrected = program.correct_states(asked.table, round, dry_run=dry_run, context=context)
        return Told({"corrected": corrected, "recorded": not dry_run})

    return await record(
        request, name, act, lambda _, answer: Told({"corrected": answer["corrected"], "recorded": True})
    )  # fmt: skip


@router.post("/programs/{name}/rounds/{round}/cancel", response_model=types.CancelledRound, summary="Cancel a round")
async def cancel(
    name: Name, round: Number, request: Request, principal: Operator, query: Annotated[DryRun, Query()], key: Key = None
) -> Response:
    """Say that nobody acts by the list of this round, which was a mistake."""
    if (await request.body()).strip():
        raise InputError("The body is not read here, so it must be empty; dry_run stands in the address.")
    context = make_context(principal, key, digest(request, b""), query.dry_run)

    def act(program: Program) -> Told:
        listed = program.cancel(round, dry_run=query.dry_run, context=context)
        return Told({"listed": listed, "recorded": not query.dry_run})

    return await record(
        request, name, act, lambda _, answer: Told({"listed": answer["listed"], "recorded": True})
    )  # fmt: skip
