"""The list of a round: whom to act on and why, who is next, who was left out, what rules cost; also as a file."""

import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl
from fastapi import APIRouter, Depends, Request, Response

from restive.desk.program import Program
from restive.desk.sheets import write_sheet
from restive.errors import NotThere
from restive.server.identity import need_session
from restive.server.pages.asking import ask, head, read_number
from restive.server.pages.paging import turn_to
from restive.server.pages.rendering import PageRoute, page

router = APIRouter(route_class=PageRoute, include_in_schema=False)
ROWS = 200  # on one page
KINDS = {
    "csv": "text/csv; charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}


@page(router, "/programs/{name}/list", "list.html")
async def show_list(request: Request, name: str, round: str = "", page: str = "") -> dict[str, Any]:
    """The list of a round, by default of the last one that was decided."""
    return await ask(request, name, look_up, round, read_number(page, "page"))


@router.get("/programs/{name}/list.{kind}", dependencies=[Depends(need_session("viewer"))])
async def save_list(request: Request, name: str, kind: str, round: str = "") -> Response:
    """The whole list as a file; with `done` filled in, it comes back as a table of outcomes."""
    if kind not in KINDS:
        raise NotThere(f"A list can be had as {' or '.join(KINDS)}.")
    number, table = await ask(request, name, find_table, round)
    content = await request.app.state.programs.run(write_table, table, kind)  # others may have the program meanwhile
    called = quote(f"{name}-round-{number}.{kind}", safe="")
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{called}", "Cache-Control": "private, no-store"}
    return Response(content, headers=headers, media_type=KINDS[kind])


def look_up(program: Program, asked: str, page: int) -> dict[str, Any]:
    """A page of the list with what holds for all of it."""
    number = find_round(program, asked)
    about = {"program": head(program), "decided": decided_rounds(program)}
    if number is None:
        return {**about, "round": None}
    advice = program.advice(number)
    said = advice.as_json()
    people = said.pop("people")
    part = turn_to(page, len(people), ROWS)
    told = {"cancelled": program.lines[number - 1].cancelled, "ahead": advice.ahead, "chosen": len(advice.chosen)}
    return {**about, **said, "program": about["program"], **told, "part": part._asdict(), "people": people[part.rows]}


def find_table(program: Program, asked: str) -> tuple[int, pl.DataFrame]:
    """The number of the round, and its whole list."""
    number = find_round(program, asked)
    if number is None:
        raise NotThere(f"{program.name} has no list yet.")
    return number, program.advice(number).table


def write_table(table: pl.DataFrame, kind: str) -> bytes:
    """A table as the bytes of a file."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / f"list.{kind}"
        write_sheet(table, place)
        return place.read_bytes()


def find_round(program: Program, asked: str) -> int | None:
    """The round whose list is asked for, or the last that has one; None where no round has."""
    decided = decided_rounds(program)
    if not asked:
        return decided[-1] if decided else None
    number = read_number(asked, "round")
    if number not in decided:
        raise NotThere(f"Round {number} of {program.name} has no list.")
    return number


def decided_rounds(program: Program) -> list[int]:
    """The rounds that have a list, in order."""
    return [line.round + 1 for line in program.lines if line.decided >= 0]
