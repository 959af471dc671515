"""Outcomes of a round, person by person, in a form that also works on a phone.

The form shows the list of a round, some people at a time, filled with what is recorded. People who are left blank stay
open. Changing a recorded outcome is a correction, which the user must confirm by a check box.
"""

from itertools import count
from typing import Any

from fastapi import Request, Response

from restive.desk.audit import RequestContext
from restive.desk.ingest import name_few
from restive.desk.program import Program
from restive.desk.roster import ERASED
from restive.errors import InputError, NotFound
from restive.server.monitoring import Metrics
from restive.server.views.base import (
    Data,
    Query,
    ask,
    build_page,
    link,
    paginate,
    program_page,
    render_in_thread,
    router,
)
from restive.server.views.forms import Form, Operator, make_key, redirect, take_form
from restive.server.views.rounds import describe_results, find_chosen
from restive.server.views.upload import explain, record_outcomes

PEOPLE_PER_PAGE = 50
MARK_FIELDS = ("done", "next_state", "reward")


@program_page("outcomes/list", "mark_outcomes.html", role="operator")
def build_marks(program: Program, query: Query) -> Data:
    """One page of the list of a round, by default of the last one, with what is recorded."""
    decided = [totals.round for totals in program.rounds if not totals.cancelled]
    if not decided:
        raise NotFound(f"{program.name} has no list yet, so there are no outcomes.")
    wanted = query.number("round", decided[-1])
    if wanted not in decided:
        raise NotFound(f"Round {wanted} of {program.name} has no list.")
    found = program.get_round(wanted)
    people = [row for row in describe_results(program, found, find_chosen(found)) if row["agent"] != ERASED]
    part = paginate(query.number("page"), len(people), PEOPLE_PER_PAGE)
    return {
        "states": list(program.config.states),
        "reported": program.config.rewards is None,
        "round": wanted,
        "part": part._asdict(),
        "key": make_key(),
        "people": people[part.rows],
    }


@router.post("/programs/{name}/outcomes/list")
async def take_marks(request: Request, name: str, principal: Operator) -> Response:
    """Record a page of marks, and go on to the next page of the list."""
    async with take_form(request) as form:
        query = Query(round=form.text("round") or "1", page=form.text("page"))
        rows = read_rows(form)
        context = await form.context(principal)
        try:
            asked = (query, rows, form.checked("correct"), context, request.app.state.metrics)
            message, has_next = await ask(request, name, record_marks, *asked)
        except InputError as error:
            data = await build_page(request, name, build_marks, query)
            refused = explain(error, request)
            refused |= {"faults": [_name_person(fault, rows) for fault in refused["faults"]]}
            more = {"typed": form.fields, "refused": refused}
            return await render_in_thread(request, "mark_outcomes.html", data, refused["status"], **more)
    following = link("programs", name, "outcomes", "list", round=query["round"], page=query.number("page") + 1)
    return redirect(request, following if has_next else link("programs", name, "status"), message)


def record_marks(
    program: Program,
    query: Query,
    rows: list[dict[str, str]],
    correct: bool,
    context: RequestContext,
    metrics: Metrics,
) -> tuple[str, bool]:
    """Record marks of one page; the message about it, and whether the list has a next page."""
    shown = build_marks(program, query)
    has_next = shown["part"]["page"] < shown["part"]["pages"]
    reported = {person["agent"] for person in shown["people"] if person["done"] is not None}
    unclear = [row["agent"] for row in rows if not row["done"] and row["agent"] not in reported]
    if unclear:
        raise InputError(f"{name_few(unclear)}: choose yes or no as well.")
    if not rows:
        if not has_next:
            raise InputError("The form is empty. Fill it in for at least one person.")
        return "", has_next
    asked = {"outcomes": rows, "round": shown["round"], "correct": correct}
    return record_outcomes(program, asked, shown["round"], context, metrics), has_next


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


def _name_person(fault: dict[str, Any], rows: list[dict[str, str]]) -> dict[str, Any]:
    """A fault with the id of its person, because the form has no row numbers."""
    row = fault["row"]
    agent = rows[row - 1]["agent"] if row is not None and row <= len(rows) else None
    return {"agent": agent, "message": fault["message"]}
