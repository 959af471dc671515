"""Outcomes of a round, person by person, in a form that also works on a phone.

The page shows the list of a round and its reserve, some people at a time, each with what is recorded. Every person is a
form of its own, which is saved as soon as a choice is made; without scripts it has a button. A choice that contradicts
the record is answered in the card, with a button that replaces it. Clearing a choice withdraws the report.
"""

from typing import Any

import numpy as np
from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from restive.desk.audit import RequestContext
from restive.desk.program import Program
from restive.desk.roster import ERASED
from restive.desk.rounds import UNKNOWN
from restive.errors import Hint, InputError, NotFound
from restive.server.monitoring import Metrics
from restive.server.views.base import (
    Data,
    Query,
    ask,
    build_page,
    is_fragment,
    link,
    paginate,
    program_page,
    render_in_thread,
    router,
)
from restive.server.views.forms import Form, Operator, read_whole, take_form
from restive.server.views.rounds import UNLISTED, describe_results
from restive.server.views.upload import explain, record_outcomes

PEOPLE_PER_PAGE = 50
MARK_FIELDS = ("done", "next_state", "reward")


@program_page("outcomes/list", "mark_outcomes.html", role="operator")
def build_marks(program: Program, query: Query) -> Data:
    """One page of the list of a round and its reserve, by default of the oldest that waits, with what is recorded."""
    wanted = find_wanted(program, query)
    found = program.get_round(wanted)
    numbers = found.listed["agent"].astype(np.int64)
    people = [row for row in describe_results(program, found, numbers) if row["agent"] != ERASED]
    part = paginate(query.number("page"), len(people), PEOPLE_PER_PAGE)
    marked = found.chosen & (found.done != UNKNOWN) & ~found.assumed
    return {
        "states": list(program.config.states),
        "reported": program.config.rewards is None,
        "round": wanted,
        "at": found.at,
        "part": part._asdict(),
        "marked": int(marked.sum()),
        "listed": int(found.chosen.sum()),
        "people": [row | ({"list": "reserve"} if row["list"] == UNLISTED else {}) for row in people[part.rows]],
    }


def find_wanted(program: Program, query: Query) -> int:
    """The round that is asked for, by default the one whose outcomes are expected next."""
    decided = [totals for totals in program.rounds if not totals.cancelled]
    if not decided:
        raise NotFound(f"{program.name} has no list yet, so there are no outcomes.")
    config = program.config
    waiting = [] if config.states_are_outcomes and config.rewards else [each for each in decided if each.waiting]
    wanted = query.number("round", (waiting or decided[-1:])[0].round)
    if wanted not in [totals.round for totals in decided]:
        raise NotFound(f"Round {wanted} of {program.name} has no list.")
    return wanted


@router.post("/programs/{name}/outcomes/list")
async def take_mark(request: Request, name: str, principal: Operator) -> Response:
    """Record the mark of one person, or withdraw it; the answer is its card, or the page for browsers without scripts."""
    async with take_form(request) as form:
        query = Query(round=form.text("round") or "1", page=form.text("page"))
        place = read_whole(form.text("place"))
        failed: Data | None = None
        try:
            context = RequestContext(principal.signature)
            await ask(request, name, record_mark, form, query.number("round"), context, request.app.state.metrics)
        except NotFound:
            raise
        except InputError as error:
            failed = {"place": place, "typed": form.fields, "refused": _explain_mark(error, request)}
    data = await build_page(request, name, build_marks, query)
    status = 200 if failed is None else failed["refused"]["status"]
    if is_fragment(request) and isinstance(place, int) and 0 <= place < len(data["people"]):
        about = {} if failed is None else {"typed": failed["typed"], "refused": failed["refused"]}
        shown = {"person": data["people"][place], "index": place, **about}
        return await render_in_thread(request, "mark_answer.html", data, status, **shown)
    if failed is not None:
        return await render_in_thread(request, "mark_outcomes.html", data, status, failed=failed)
    back = link("programs", name, "outcomes", "list", round=query["round"], page=query["page"] or None)
    return RedirectResponse(f"{back}#mark-{place}", 303)


def record_mark(program: Program, form: Form, round_: int, context: RequestContext, metrics: Metrics) -> None:
    """Record what a form says about one person, or withdraw it if the form asks for that."""
    agent = form.text("agent")
    if form.text("step") == "clear":
        program.withdraw([agent], round_, context=context)
        return
    marks = {name: form.text(name) for name in MARK_FIELDS}
    if not any(marks.values()):
        raise InputError("Nothing is chosen.")
    if not marks["done"] and "done" not in find_recorded(program, agent, round_):
        raise InputError("Choose yes or no as well.")
    asked = {"outcomes": [{"agent": agent, **marks}], "round": round_, "correct": form.text("step") == "replace"}
    record_outcomes(program, asked, round_, context, metrics)


def find_recorded(program: Program, agent: str, round_: int) -> dict[str, Any]:
    """What is recorded of a person in a round."""
    return next(({**entry} for entry in program.history(agent) if entry["round"] == round_), {})


def _explain_mark(error: InputError, request: Request) -> Data:
    """Why a mark is not recorded, in a sentence that needs no id, because it is shown in the card of the person."""
    refused = explain(error, request)
    faults = [fault["message"] for fault in refused["faults"]]
    message = "Another outcome is recorded." if error.hint == Hint.CORRECT else "; ".join(faults) or refused["detail"]
    return {"status": refused["status"], "message": message, "hint": refused.get("hint")}
