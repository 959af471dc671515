"""Outcomes of a round: as a table to upload, or person by person in a form that also works on a phone.

The form shows the list of a round, some people at a time, filled with what is recorded. People who are left blank stay
open. Changing a recorded outcome is a correction, which the user must confirm by a check box.
"""

from itertools import count
from typing import Any, NamedTuple

import polars as pl
from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from restive.desk.audit import Repeated, RequestContext
from restive.desk.ingest import name_few
from restive.desk.program import Program
from restive.desk.projection import RoundTotals
from restive.desk.recommendation import Recommendation
from restive.desk.roster import ERASED
from restive.desk.rounds import DONE, UNKNOWN
from restive.desk.selection import RESERVE
from restive.errors import InputError, NotFound
from restive.server.metrics import Metrics
from restive.server.views.base import PageRoute, ask, head, link, page, paginate, read_number, render_in_thread
from restive.server.views.forms import Form, Operator, make_key, read_uploaded, redirect, take_form
from restive.server.views.upload import (
    MAX_ROUND,
    NO_TABLE,
    check_confirmation,
    explain,
    make_confirmation,
    show_result,
)

PEOPLE_PER_PAGE = 50
OFFERED_ROUNDS = 60
TABLE_FIELDS = ("round", "correct")
MARK_FIELDS = ("done", "next_state", "reward")

router = APIRouter(route_class=PageRoute, include_in_schema=False)


class OutcomesRequest(NamedTuple):
    """What the form of outcomes asks for."""

    outcomes: pl.DataFrame
    round: int | None
    correct: bool
    digest: str


@page(router, "/programs/{name}/outcomes", "outcomes.html", role="operator")
async def show_outcomes(request: Request, name: str, round: str = "") -> dict[str, Any]:
    """The form for a table of outcomes."""
    return await ask(request, name, build_outcomes, read_number(round, "round", 0) or None)


@router.post("/programs/{name}/outcomes")
async def take_outcomes(request: Request, name: str, principal: Operator) -> Response:
    """Check a table of outcomes, or record it."""
    async with take_form(request) as form:
        try:
            asked = await _read_request(request, form)
            if form.text("step") != "record":
                preview = await ask(request, name, preview_outcomes, asked) | make_confirmation(asked.digest)
                return await show_result(request, name, build_outcomes, "outcomes.html", form, preview=preview)
            _, key = check_confirmation(form, asked.digest)
            context = RequestContext(by=principal.signature, key=key, asked=asked.digest)
            metrics = request.app.state.metrics
            arguments = (asked.outcomes, asked.round, asked.correct, context, metrics)
            message = await ask(request, name, record_outcomes, *arguments)
        except InputError as error:
            return await show_result(request, name, build_outcomes, "outcomes.html", form, error=error)
    return redirect(request, link("programs", name, "status"), message)


@page(router, "/programs/{name}/outcomes/list", "mark_outcomes.html", role="operator")
async def show_marks(request: Request, name: str, round: str = "", page: str = "") -> dict[str, Any]:
    """The form for the people on a list, with what is recorded about them."""
    return await ask(request, name, build_marks, read_number(round, "round", 0) or None, read_number(page, "page"))


@router.post("/programs/{name}/outcomes/list")
async def take_marks(request: Request, name: str, principal: Operator) -> Response:
    """Record a page of marks, and go on to the next page of the list."""
    async with take_form(request) as form:
        round_, number = read_number(form.text("round"), "round"), read_number(form.text("page"), "page")
        rows = read_rows(form)
        context = await form.context(principal)
        try:
            asked = (rows, round_, number, form.checked("correct"), context, request.app.state.metrics)
            message, goes_on = await ask(request, name, record_marks, *asked)
        except InputError as error:
            data = await ask(request, name, build_marks, round_, number)
            refused = explain(error, request)
            refused |= {"faults": [_name_person(fault, rows) for fault in refused["faults"]]}
            more = {"typed": form.fields, "refused": refused}
            return await render_in_thread(request, "mark_outcomes.html", data, refused["status"], **more)
    following = link("programs", name, "outcomes", "list", round=round_, page=number + 1)
    return redirect(request, following if goes_on else link("programs", name, "status"), message)


def build_outcomes(program: Program, chosen: int | None = None) -> dict[str, Any]:
    """The rounds that outcomes can be about, those with missing outcomes first."""
    decided = [totals for totals in reversed(program.rounds) if not totals.cancelled]
    waiting = [totals for totals in decided if totals.waiting]
    others = [totals for totals in decided if not totals.waiting]
    return {
        "program": head(program),
        "states": list(program.config.states),
        "reported": program.config.rewards is None,
        "rounds": [_describe_round(totals) for totals in [*waiting[:OFFERED_ROUNDS], *others[:OFFERED_ROUNDS]]],
        "chosen": chosen,
    }


def preview_outcomes(program: Program, asked: OutcomesRequest) -> dict[str, Any]:
    """What would be recorded, in numbers."""
    taken = program.learn(asked.outcomes, asked.round, asked.correct, dry_run=True)
    return taken._asdict() | {"notes": list(taken.notes)}


def record_outcomes(
    program: Program, outcomes: object, round_: int | None, correct: bool, context: RequestContext, metrics: Metrics
) -> str:
    """Record outcomes; the message about it."""
    try:
        taken = program.learn(outcomes, round_, correct, context=context)._asdict()
        metrics.outcomes.inc(taken["new"] + taken["corrected"])
    except Repeated as done:
        taken = done.answer
    return describe_recorded(taken)


def describe_recorded(taken: dict[str, Any]) -> str:
    """What was recorded, in a sentence or two.

    >>> describe_recorded({"rounds": [7], "new": 12, "corrected": 0, "repeated": 2, "waiting": 3})
    'Round 7: 12 outcomes recorded, 2 recorded before. 3 are still missing.'
    """
    parts = [f"{taken['new']:,} {'outcome' if taken['new'] == 1 else 'outcomes'} recorded"]
    parts += [f"{taken['corrected']:,} corrected"] * bool(taken["corrected"])
    parts += [f"{taken['repeated']:,} recorded before"] * bool(taken["repeated"])
    rounds, waiting = ", ".join(map(str, taken["rounds"])), taken["waiting"]
    rest = f"{waiting:,} {'is' if waiting == 1 else 'are'} still missing." if waiting else "None is missing."
    return f"Round {rounds}: {', '.join(parts)}. {rest}"


def build_marks(program: Program, round_: int | None, number: int) -> dict[str, Any]:
    """One page of the list of a round, by default of the last one."""
    decided = [totals.round for totals in program.rounds if not totals.cancelled]
    if not decided:
        raise NotFound(f"{program.name} has no list yet, so there are no outcomes.")
    wanted = decided[-1] if round_ is None else round_
    if wanted not in decided:
        raise NotFound(f"Round {wanted} of {program.name} has no list.")
    people = _find_people(program.recommendation(wanted))
    part = paginate(number, len(people), PEOPLE_PER_PAGE)
    return {
        "program": head(program),
        "states": list(program.config.states),
        "reported": program.config.rewards is None,
        "round": wanted,
        "part": part._asdict(),
        "key": make_key(),
        "people": people[part.rows],
    }


def record_marks(
    program: Program,
    rows: list[dict[str, str]],
    round_: int,
    number: int,
    correct: bool,
    context: RequestContext,
    metrics: Metrics,
) -> tuple[str, bool]:
    """Record marks of one page; the message about it, and whether the list has a next page."""
    shown = build_marks(program, round_, number)
    has_next = number < shown["part"]["pages"]
    reported = {person["agent"] for person in shown["people"] if person["done"] is not None}
    unclear = [row["agent"] for row in rows if not row["done"] and row["agent"] not in reported]
    if unclear:
        raise InputError(f"{name_few(unclear)}: choose yes or no as well.")
    if not rows:
        if not has_next:
            raise InputError("The form is empty. Fill it in for at least one person.")
        return "", has_next
    return record_outcomes(program, rows, round_, correct, context, metrics), has_next


def read_rows(form: Form) -> list[dict[str, str]]:
    """The rows of the people for whom anything is filled in."""
    rows: list[dict[str, str]] = []
    for index in count():
        agent = form.fields.get(f"agent-{index}")
        if agent is None:
            return rows
        marks = {name: form.text(f"{name}-{index}") for name in MARK_FIELDS}
        if any(marks.values()):
            rows.append({"agent": agent, **marks})
    return rows


def _find_people(recommendation: Recommendation) -> list[dict[str, Any]]:
    """The people on the list whose ids are not erased, with their recorded outcomes."""
    found, listed = recommendation.found, recommendation.found.listed
    numbers = listed["agent"][listed["kind"] != RESERVE]
    places, _ = found.find(numbers)
    states = recommendation.config.states
    return [
        {
            "agent": name,
            "state": states[int(found.state[place])],
            "done": None if found.done[place] == UNKNOWN else bool(found.done[place] == DONE),
            "next_state": states[int(found.after[place])] if found.after[place] >= 0 else None,
            "reward": float(found.reward[place]) if found.after[place] >= 0 else None,
        }
        for name, place in zip(recommendation.names.call(numbers), places.tolist(), strict=True)
        if name != ERASED
    ]


async def _read_request(request: Request, form: Form) -> OutcomesRequest:
    table = await read_uploaded(form, request.app.state.settings)
    if table is None:
        raise InputError(NO_TABLE)
    digest = await run_in_threadpool(form.digest, TABLE_FIELDS, table)
    return OutcomesRequest(table.frame, form.whole("round", 1, MAX_ROUND), form.checked("correct"), digest)


def _describe_round(totals: RoundTotals) -> dict[str, Any]:
    return {"round": totals.round, "at": totals.at, "waiting": totals.waiting, "present": totals.present}


def _name_person(fault: dict[str, Any], rows: list[dict[str, str]]) -> dict[str, Any]:
    """A fault with the id of its person, because the form has no row numbers."""
    row = fault["row"]
    agent = rows[row - 1]["agent"] if row is not None and row <= len(rows) else None
    return {"agent": agent, "message": fault["message"]}
