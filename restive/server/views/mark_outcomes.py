"""Outcomes without a file, as on a phone: the list of a round as a form, some people at a time.

Whoever is left blank stays open. What is on record already is filled in; changing it is a correction, and has to be
called one.
"""

from itertools import count
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from restive.desk.audit import Repeated, RequestContext
from restive.desk.decision import SPARE
from restive.desk.ingest import name_few
from restive.desk.names import ERASED
from restive.desk.program import Program
from restive.desk.recommendation import Advice
from restive.desk.rounds import DONE, UNKNOWN
from restive.errors import InputError, NotFound
from restive.server.errors import describe
from restive.server.metrics import Metrics
from restive.server.views.asking import ask, head, read_number
from restive.server.views.base import PageRoute, link, page, render_aside
from restive.server.views.forms import Form, Operator, go_on, make_key, take_form
from restive.server.wording import say_here

AT_ONCE = 50
ASKED = ("done", "next_state", "reward")

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@page(router, "/programs/{name}/outcomes/list", "marking.html", role="operator")
async def show_list(request: Request, name: str, round: str = "", page: str = "") -> dict[str, Any]:
    """The people on the list of a round, with what is known of them."""
    return await ask(request, name, look_at_list, read_number(round, "round", 0) or None, read_number(page, "page"))


@router.post("/programs/{name}/outcomes/list")
async def mark_list(request: Request, name: str, principal: Operator) -> Response:
    """Record what was marked, and go on to the next people of the list."""
    async with take_form(request) as form:
        round_, number = read_number(form.text("round"), "round"), read_number(form.text("page"), "page")
        rows = read_rows(form)
        context = RequestContext(
            by=principal.signature, key=form.text("key") or None, asked=await run_in_threadpool(form.seal_all)
        )
        try:
            asked = (rows, round_, number, form.ticked("correct"), context, request.app.state.metrics)
            said, goes_on = await ask(request, name, record_rows, *asked)
        except InputError as error:
            data = await ask(request, name, look_at_list, round_, number)
            failure = describe(error, request).model_dump(mode="json")
            offers = "--correct" in str(error)
            faults = [_name_row(fault, rows) for fault in failure["faults"]]
            refused = failure | {"detail": say_here(failure["detail"]), "faults": faults, "offers": offers}
            more = {"typed": form.fields, "refused": refused}
            return await render_aside(request, "marking.html", data, failure["status"], **more)
    following = link("programs", name, "outcomes", "list", round=round_, page=number + 1)
    return go_on(request, following if goes_on else link("programs", name, "status"), said)


def look_at_list(program: Program, round_: int | None, number: int) -> dict[str, Any]:
    """One page of the list of a round, the last decided one if none is named."""
    decided = [line.round for line in program.rounds if line.decided >= 0 and not line.cancelled]
    if not decided:
        raise NotFound("There is no list yet, so there are no outcomes.")
    wanted = decided[-1] if round_ is None else round_
    if wanted not in decided:
        raise NotFound(f"Round {wanted} has no list that outcomes could be about.")
    people = _find_people(program.advice(wanted))
    pages = max(1, -(-len(people) // AT_ONCE))
    if number > pages:
        raise NotFound(f"The list has {pages} pages.")
    return {
        "program": head(program),
        "states": list(program.config.states),
        "reported": program.config.rewards is None,
        "round": wanted,
        "page": number,
        "pages": pages,
        "listed": len(people),
        "first": (number - 1) * AT_ONCE + 1,
        "key": make_key(),
        "people": people[(number - 1) * AT_ONCE : number * AT_ONCE],
    }


def record_rows(
    program: Program,
    rows: list[dict[str, str]],
    round_: int,
    number: int,
    correct: bool,
    context: RequestContext,
    metrics: Metrics,
) -> tuple[str, bool]:
    """Record rows of a list; what to say of it, and whether the list goes on."""
    seen = look_at_list(program, round_, number)
    more = number < int(seen["pages"])
    reported_at = {person["agent"] for person in seen["people"] if person["done"] is not None}
    unsaid = [row["agent"] for row in rows if not row["done"] and row["agent"] not in reported_at]
    if unsaid:
        raise InputError(f"{name_few(unsaid)}: say yes or no as well; a list does not say what was done.")
    if not rows:
        if not more:
            raise InputError("Nothing is filled in; mark at least one person.")
        return "", more
    return record_outcomes(program, rows, round_, correct, context, metrics), more


def record_outcomes(
    program: Program, outcomes: object, round_: int | None, correct: bool, context: RequestContext, metrics: Metrics
) -> str:
    """Record outcomes; what to say of it."""
    try:
        taken = program.learn(outcomes, round_, correct, context=context)._asdict()
        metrics.note_outcomes(taken["new"] + taken["corrected"])
    except Repeated as done:
        taken = done.answer
    return say_taken(taken)


def say_taken(taken: dict[str, Any]) -> str:
    """What became of outcomes, in a sentence or two.

    >>> say_taken({"rounds": [7], "new": 12, "corrected": 0, "repeated": 2, "waiting": 3})
    'Round 7: 12 outcomes recorded, 2 known already. Still waiting for 3.'
    """
    parts = [f"{taken['new']:,} {'outcome' if taken['new'] == 1 else 'outcomes'} recorded"]
    parts += [f"{taken['corrected']:,} corrected"] * bool(taken["corrected"])
    parts += [f"{taken['repeated']:,} known already"] * bool(taken["repeated"])
    rounds = ", ".join(map(str, taken["rounds"]))
    rest = f"Still waiting for {taken['waiting']:,}." if taken["waiting"] else "Nothing is missing."
    return f"Round {rounds}: {', '.join(parts)}. {rest}"


def read_rows(form: Form) -> list[dict[str, str]]:
    """The people of whom anything is filled in, with what is."""
    rows: list[dict[str, str]] = []
    for place in count():
        agent = form.fields.get(f"agent-{place}")
        if agent is None:
            return rows
        said = {name: form.text(f"{name}-{place}") for name in ASKED}
        if any(said.values()):
            rows.append({"agent": agent, **said})
    return rows


def _find_people(advice: Advice) -> list[dict[str, Any]]:
    """The people on the list who still have a name, and what is on record of them."""
    found, listed = advice.found, advice.found.list
    numbers = listed["agent"][listed["kind"] != SPARE]
    places, _ = found.find(numbers)
    states = advice.config.states
    return [
        {
            "agent": name,
            "state": states[int(found.state[place])],
            "done": None if found.done[place] == UNKNOWN else bool(found.done[place] == DONE),
            "next_state": states[int(found.after[place])] if found.after[place] >= 0 else None,
            "reward": float(found.reward[place]) if found.after[place] >= 0 else None,
        }
        for name, place in zip(advice.names.call(numbers), places.tolist(), strict=True)
        if name != ERASED
    ]


def _name_row(fault: dict[str, Any], rows: list[dict[str, str]]) -> dict[str, Any]:
    """A fault by the person that it is about; the rows were counted here, and nobody saw them."""
    row = fault["row"]
    agent = rows[row - 1]["agent"] if row is not None and row <= len(rows) else None
    return {"agent": agent, "sentence": say_here(fault["sentence"])}
