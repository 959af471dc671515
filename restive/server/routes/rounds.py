"""Routes of rounds: decide, list, correct, cancel and undo."""

from typing import Annotated, Any

from fastapi import Query, Request, Response

from restive.api import types
from restive.api.status import Undone
from restive.desk.export import summarize_rounds
from restive.desk.program import Program
from restive.desk.recommendation import Recommendation
from restive.server.downloads import MEDIA_TYPES, Sheet, make_list_sheet
from restive.server.openapi import file_response, json_body, table_body
from restive.server.requests import (
    CorrectStatesBody,
    DecideBody,
    DecideQuery,
    DryRun,
    DryRunBody,
    ListFileQuery,
    PageQuery,
    UndoBody,
    UndoQuery,
)
from restive.server.routes.deps import (
    NO_QUERY,
    Key,
    Name,
    Number,
    Operator,
    Viewer,
    hide_policy_paths,
    json_response,
    make_context,
    make_router,
    page_url,
    program_url,
    read_program,
    record,
    write_program,
)
from restive.server.uploads import dump_settings, take_settings, take_table

router = make_router("rounds")


@router.post(
    "/programs/{name}/rounds",
    response_model=types.DecidedRound,
    status_code=201,
    summary="Decide a round",
    responses={200: {"model": types.DecidedRound, "description": "The result of a dry run."}},
    openapi_extra=table_body(DecideBody, "agent,state,group\nann,low,north\nben,high,south\n"),
)
async def decide(
    name: Name, request: Request, principal: Operator, query: Annotated[DecideQuery, Query()], key: Key = None
) -> Response:
    """Record the current states and choose the people to act on.

    Settings are in the query string or, with a JSON body, in either place.
    """
    upload = await take_table(request, DecideBody, "states", query)
    dry_run = upload.settings.dry_run
    context = make_context(principal, key, upload.digest, dry_run)

    def write(program: Program) -> Response:
        settings = dump_settings(upload.settings, "states", "limit")
        recommendation = program.decide(upload.table, **settings, context=context)
        if not dry_run:
            request.app.state.metrics.count_round(len(recommendation.chosen))
            request.app.state.metrics.outcomes.inc(recommendation.results.recorded if recommendation.results else 0)
        return reply(recommendation, recorded=not dry_run)

    def replay(program: Program, answer: dict[str, Any]) -> Response:
        return reply(program.recommendation(answer["round"], answer["notes"], answer["results"]), recorded=True)

    def reply(recommendation: Recommendation, recorded: bool) -> Response:
        address = program_url(name, "rounds", recommendation.round)
        limit = upload.settings.limit
        more = f"{address}/list?after={limit}" if recorded and recommendation.size > limit else None
        content = hide_policy_paths(recommendation.as_json(limit)) | {"next": more, "recorded": recorded}
        return json_response(content, 201, {"Location": address}) if recorded else json_response(content)

    return await write_program(request, name, write, replay)


@router.get(
    "/programs/{name}/rounds",
    response_model=types.Page[types.RoundSummary],
    summary="List rounds",
)
async def list_rounds(name: Name, request: Request, principal: Viewer, page: Annotated[PageQuery, Query()]) -> Response:
    """The totals of each round, from the first on."""

    def read(program: Program) -> types.Page[types.RoundSummary]:
        rows = summarize_rounds(program)[page.after : page.after + page.limit]
        end = page.after + len(rows)
        return {"items": rows, "next": page_url(request, after=end) if end < len(program.rounds) else None}

    return await read_program(request, name, read)


@router.get(
    "/programs/{name}/rounds/{round}",
    response_model=types.RoundDetail,
    summary="Get a round",
    dependencies=NO_QUERY,
)
async def show_round(name: Name, round: Number, request: Request, principal: Viewer) -> Response:
    """The totals of a round and its decision."""

    def read(program: Program) -> dict[str, Any]:
        decision = hide_policy_paths(program.recommendation(round).as_json(0))
        del decision["people"], decision["results"]
        return {**summarize_rounds(program)[round - 1], "decision": decision}

    return await read_program(request, name, read)


@router.get(
    "/programs/{name}/rounds/{round}/list",
    response_model=types.Page[types.ListedPerson],
    summary="Get the list of a round",
)
async def show_list(
    name: Name, round: Number, request: Request, principal: Viewer, page: Annotated[PageQuery, Query()]
) -> Response:
    """The people to act on, best first, then the reserve list."""

    def read(program: Program) -> types.Page[types.ListedPerson]:
        recommendation, end = program.recommendation(round), page.after + page.limit
        rows = recommendation.people(slice(page.after, end))
        return {"items": rows, "next": page_url(request, after=end) if end < recommendation.size else None}

    return await read_program(request, name, read)


def _add_file_route(ending: str) -> None:
    @router.get(
        f"/programs/{{name}}/rounds/{{round}}/list.{ending}",
        summary=f"Download the list as .{ending}",
        responses=file_response(MEDIA_TYPES[ending], "Content-Disposition"),
        response_class=Response,
        name=f"list_{ending}",
    )
    async def send_list(
        name: Name, round: Number, request: Request, principal: Viewer, query: Annotated[ListFileQuery, Query()]
    ) -> Response:
        """The whole list as a file; with `done` filled in, it can be sent back as outcomes."""

        def read(program: Program) -> Sheet:
            return make_list_sheet(program.recommendation(round), ending, query.columns)

        return await read_program(request, name, read)


for _ending in MEDIA_TYPES:
    _add_file_route(_ending)


@router.put(
    "/programs/{name}/rounds/{round}/states",
    response_model=types.CorrectedStates,
    summary="Correct states",
    openapi_extra=table_body(CorrectStatesBody, "agent,state\nann,high\n"),
)
async def correct_states(
    name: Name,
    round: Number,
    request: Request,
    principal: Operator,
    query: Annotated[DryRun, Query()],
    key: Key = None,
) -> Response:
    """Replace states of a round that were recorded wrongly.

    Settings are in the query string or, with a JSON body, in either place.
    """
    upload = await take_table(request, CorrectStatesBody, "states", query)
    dry_run = upload.settings.dry_run
    context = make_context(principal, key, upload.digest, dry_run)

    def write(program: Program) -> dict[str, int]:
        return {"corrected": program.correct_states(upload.table, round, dry_run=dry_run, context=context)}

    return await record(request, name, types.CorrectedStates, dry_run, write)


@router.post(
    "/programs/{name}/rounds/{round}/cancel",
    response_model=types.CancelledRound,
    summary="Cancel a round",
    openapi_extra=json_body(DryRunBody, required=False),
)
async def cancel(
    name: Name,
    round: Number,
    request: Request,
    principal: Operator,
    query: Annotated[DryRun, Query()],
    key: Key = None,
) -> Response:
    """Cancel a round that was decided by mistake and that nobody acts on."""
    upload = await take_settings(request, DryRunBody, query)
    dry_run = upload.settings.dry_run
    context = make_context(principal, key, upload.digest, dry_run)

    def write(program: Program) -> dict[str, int]:
        return {"listed": program.cancel(round, dry_run=dry_run, context=context)}

    return await record(request, name, types.CancelledRound, dry_run, write)


@router.post(
    "/programs/{name}/undo",
    response_model=Undone,
    summary="Undo the last request",
    openapi_extra=json_body(UndoBody, required=False),
)
async def undo(
    name: Name, request: Request, principal: Operator, query: Annotated[UndoQuery, Query()], key: Key = None
) -> Response:
    """Take back the last list, report or correction, as if it had not been recorded; a dry run shows what it is."""
    upload = await take_settings(request, UndoBody, query)
    settings = upload.settings
    context = make_context(principal, key, upload.digest, settings.dry_run)

    def write(program: Program) -> dict[str, Any]:
        return program.undo(settings.event, dry_run=settings.dry_run, context=context)._asdict()

    return await record(request, name, Undone, settings.dry_run, write)
