"""Routes of results: states by round, groups, people never reached, tables as files, and the report for a funder."""

from typing import Annotated, Any, Literal

from fastapi import Path, Query, Request, Response

from restive.api import types
from restive.api.results import Report, Results, Unreached
from restive.desk.program import Program
from restive.desk.report import make_report
from restive.desk.results import describe_unreached, find_unreached, get_results
from restive.server.downloads import MEDIA_TYPES, make_table_sheet, send_sheet
from restive.server.openapi import file_response
from restive.server.requests import PageQuery
from restive.server.routes.deps import NO_QUERY, Admin, Name, Viewer, get_programs, make_router, page_url, read_program

router = make_router("results")
# All of `restive.desk.tables` but the audit log, which needs another role.
Table = Annotated[
    Literal["rounds", "people", "states", "rewards", "groups", "effects", "unreached"],
    Path(description="The name of the table."),
]


@router.get("/programs/{name}/results", response_model=Results, summary="Results of a program", dependencies=NO_QUERY)
async def results(name: Name, request: Request, principal: Viewer) -> Response:
    """How many people are in which state in each round, the groups with their lift, and how many people were reached."""
    return await read_program(request, name, get_results)


@router.get("/programs/{name}/unreached", response_model=types.Page[Unreached], summary="List people never reached")
async def unreached(name: Name, request: Request, principal: Viewer, page: Annotated[PageQuery, Query()]) -> Response:
    """Active people of the program for whom the action was never done, for how long and why; not the control group."""

    def read(program: Program) -> types.Page[Unreached]:
        numbers = find_unreached(program)
        numbers = numbers[numbers >= page.after][: page.limit + 1]
        more = page_url(request, after=int(numbers[page.limit])) if numbers.size > page.limit else None
        return {"items": describe_unreached(program, numbers[: page.limit]), "next": more}

    return await read_program(request, name, read)


@router.get("/programs/{name}/report", response_model=Report, summary="Report for a funder", dependencies=NO_QUERY)
async def report(name: Name, request: Request, principal: Viewer) -> Response:
    """The program on one page, without ids and names: who, what was done, whether it worked, what is not known."""
    return await read_program(request, name, make_report)


def _add_file_routes(ending: str) -> None:
    described: dict[str, Any] = {
        "responses": file_response(MEDIA_TYPES[ending], "Content-Disposition"),
        "response_class": Response,
        "dependencies": NO_QUERY,
    }

    @router.get(
        f"/programs/{{name}}/tables/audit.{ending}",
        summary=f"Audit log as {ending}",
        name=f"audit_{ending}",
        **described,
    )
    async def send_audit(name: Name, request: Request, principal: Admin) -> Response:
        """The audit log of the program as a file."""
        # Without an ETag: not every entry is an event.
        sheet = await get_programs(request).call(request, name, make_table_sheet, "audit", ending)
        return await send_sheet(request, sheet)

    @router.get(
        f"/programs/{{name}}/tables/{{table}}.{ending}",
        summary=f"Table as {ending}",
        name=f"table_{ending}",
        **described,
    )
    async def send_table(name: Name, table: Table, request: Request, principal: Viewer) -> Response:
        """A table of the program as a file."""
        return await read_program(request, name, make_table_sheet, table, ending)


for _ending in MEDIA_TYPES:
    _add_file_routes(_ending)
