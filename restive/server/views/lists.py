"""The list of a round: whom to act on and why, who is next, who was left out, what rules cost; also as a file."""

from typing import Any

from fastapi import APIRouter, Depends, Request, Response

from restive.desk.program import Program
from restive.desk.recommendation import Advice
from restive.errors import NotFound
from restive.server.auth import need_session
from restive.server.downloads import Sheet, send_sheet
from restive.server.views.asking import ask, head, read_number
from restive.server.views.base import PageRoute, page
from restive.server.views.paging import turn_to

router = APIRouter(route_class=PageRoute, include_in_schema=False)
ROWS = 200  # on one page
KINDS = ("csv", "xlsx")


@page(router, "/programs/{name}/list", "list.html")
async def show_list(request: Request, name: str, round: str = "", page: str = "") -> dict[str, Any]:
    """The list of a round, by default of the last one that was decided."""
    return await ask(request, name, look_up, round, read_number(page, "page"))


@router.get("/programs/{name}/list.{kind}", dependencies=[Depends(need_session("viewer"))])
async def save_list(request: Request, name: str, kind: str, round: str = "") -> Response:
    """The whole list as a file; with `done` filled in, it comes back as a table of outcomes."""
    return await _save(request, name, kind, round, missing=False)


@router.get("/programs/{name}/missing.{kind}", dependencies=[Depends(need_session("viewer"))])
async def save_missing(request: Request, name: str, kind: str, round: str = "") -> Response:
    """Those of a round who are still to be reported_at of, as a table of outcomes to fill in."""
    return await _save(request, name, kind, round, missing=True)


async def _save(request: Request, name: str, kind: str, round_: str, missing: bool) -> Response:
    if kind not in KINDS:
        raise NotFound(f"A list can be had as {' or '.join(KINDS)}.")
    response = await send_sheet(request, Sheet(await ask(request, name, find_list, round_), kind, missing))
    response.headers["Cache-Control"] = "private, no-store"
    return response


def look_up(program: Program, asked: str, page: int) -> dict[str, Any]:
    """A page of the list with what holds for all of it."""
    number = find_round(program, asked)
    about = {"program": head(program), "decided": decided_rounds(program)}
    if number is None:
        return {**about, "round": None}
    advice = program.advice(number)
    said, part = advice.as_json(0), turn_to(page, advice.size, ROWS)
    reported = {
        "cancelled": program.projection.totals(number).cancelled,
        "ahead": advice.ahead,
        "chosen": len(advice.chosen),
    }
    return {
        **about,
        **said,
        "program": about["program"],
        **reported,
        "part": part._asdict(),
        "people": advice.people(part.rows),
    }


def find_list(program: Program, asked: str) -> Advice:
    """The list of a round, or of the last that has one."""
    number = find_round(program, asked)
    if number is None:
        raise NotFound(f"{program.name} has no list yet.")
    return program.advice(number)


def find_round(program: Program, asked: str) -> int | None:
    """The round whose list is asked for, or the last that has one; None where no round has."""
    decided = decided_rounds(program)
    if not asked:
        return decided[-1] if decided else None
    number = read_number(asked, "round")
    if number not in decided:
        raise NotFound(f"Round {number} of {program.name} has no list.")
    return number


def decided_rounds(program: Program) -> list[int]:
    """The rounds that have a list, in order."""
    return [line.round for line in program.rounds if line.decided >= 0]
