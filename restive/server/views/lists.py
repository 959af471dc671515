"""The list of a round: shown, marked person by person, also on a phone, and downloaded as a file.

Every person on the list or in reserve has a form of its own, which is saved as soon as a choice is made; without scripts
it has a button. A choice that contradicts the record is answered beside it, with a button that replaces it. Clearing a
choice withdraws the report.
"""

from typing import Annotated, Any

import numpy as np
from fastapi import Depends, Request, Response
from fastapi.responses import RedirectResponse

from restive.desk.audit import RequestContext
from restive.desk.program import Program
from restive.desk.recommendation import Recommendation
from restive.desk.rounds import UNKNOWN
from restive.desk.status import find_due
from restive.desk.tokens import Principal
from restive.errors import Hint, InputError, NotFound
from restive.server.addresses import link
from restive.server.auth import need_session
from restive.server.downloads import SheetPart, make_list_sheet, send_sheet
from restive.server.monitoring import Metrics
from restive.server.views.base import (
    NO_STORE,
    Data,
    Query,
    ask,
    build_page,
    is_fragment,
    paginate,
    program_page,
    render_in_thread,
    router,
)
from restive.server.views.forms import Form, Operator, read_whole, take_form
from restive.server.views.rounds import PEOPLE_PER_PAGE, describe_results, find_round
from restive.server.views.settings import offer_undo
from restive.server.views.upload import explain, record_outcomes

MARK_FIELDS = ("done", "next_state", "reward")
FILE_TYPES = ("csv", "xlsx")
RESULTS = ("done", "assumed", "next_state", "reward")


@router.get("/programs/{name}/week")
async def redirect_to_step(
    request: Request, name: str, principal: Annotated[Principal, Depends(need_session("viewer"))]
) -> Response:
    """Redirect to what is due: the form of states for an operator if a list is due, otherwise the last list."""
    due = principal.may("operator", name) and await ask(request, name, is_due)
    return RedirectResponse(link("programs", name, "states" if due else "list"), 303)


def is_due(program: Program) -> bool:
    """Whether the next thing to do is to decide a round."""
    due = find_due(program)
    return not program.rounds or program.rounds[-1].cancelled or (due is not None and due["days"] <= 0)


@program_page("list", "list.html")
def build_list(program: Program, query: Query) -> Data:
    """A page of the list of a round and its reserve, by default of the last round, with what is recorded."""
    number = find_round(program, query.get("round", ""))
    if number is None:
        return {"round": None}
    recommendation, found = program.recommendation(number), program.get_round(number)
    part = paginate(query.number("page"), recommendation.size, PEOPLE_PER_PAGE)
    results = describe_results(program, found, found.listed["agent"][part.rows].astype(np.int64))
    marked = found.chosen & (found.done != UNKNOWN) & ~found.assumed
    return {
        **recommendation.as_json(0),
        "cancelled": program.projection.totals(number).cancelled,
        **offer_undo(program),
        "chosen": len(recommendation.chosen),
        "cost_unit": program.config.cost_unit,
        "marked": int(marked.sum()),
        "states": list(program.config.states),
        "reported": program.config.rewards is None,
        "from_states": program.config.states_are_outcomes and program.config.rewards is not None,
        "part": part._asdict(),
        "people": [
            {**person, **{name: result[name] for name in RESULTS}}
            for person, result in zip(recommendation.people(part.rows), results, strict=True)
        ],
    }


@router.get("/programs/{name}/list.{kind}", dependencies=[Depends(need_session("viewer"))])
async def download_list(request: Request, name: str, kind: str, round: str = "", columns: str = "call") -> Response:
    """The call list or all columns as a file, which can be uploaded as outcomes once `done` is filled in."""
    return await _download(request, name, kind, round, "all" if columns == "all" else "call")


@router.get("/programs/{name}/missing.{kind}", dependencies=[Depends(need_session("viewer"))])
async def download_missing(request: Request, name: str, kind: str, round: str = "") -> Response:
    """The people of a round without an outcome, as a table to fill in."""
    return await _download(request, name, kind, round, "missing")


async def _download(request: Request, name: str, kind: str, round_: str, part: SheetPart) -> Response:
    if kind not in FILE_TYPES:
        raise NotFound(f"There is no list in this format; the formats are {' and '.join(FILE_TYPES)}.")
    response = await send_sheet(request, make_list_sheet(await ask(request, name, find_list, round_), kind, part))
    response.headers["Cache-Control"] = f"private, {NO_STORE}"
    return response


def find_list(program: Program, asked: str) -> Recommendation:
    """The list of a round, by default of the last one."""
    number = find_round(program, asked)
    if number is None:
        raise NotFound(f"{program.name} has no list yet.")
    return program.recommendation(number)


@router.post("/programs/{name}/list")
async def take_mark(request: Request, name: str, principal: Operator) -> Response:
    """Record the mark of one person, or withdraw it; the answer is its form, or the page for browsers without scripts."""
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
    data = await build_page(request, name, build_list, query)
    status = 200 if failed is None else failed["refused"]["status"]
    if is_fragment(request) and isinstance(place, int) and 0 <= place < len(data["people"]):
        about = {} if failed is None else {"typed": failed["typed"], "refused": failed["refused"]}
        shown = {"person": data["people"][place], "index": place, **about}
        return await render_in_thread(request, "mark_answer.html", data, status, **shown)
    if failed is not None:
        return await render_in_thread(request, "list.html", data, status, failed=failed)
    back = link("programs", name, "list", round=query["round"], page=query["page"] or None)
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
    """Why a mark is not recorded, in a sentence that needs no id, because it is shown beside the person."""
    refused = explain(error, request)
    faults = [fault["message"] for fault in refused["faults"]]
    message = "Another outcome is recorded." if error.hint == Hint.CORRECT else "; ".join(faults) or refused["detail"]
    return {"status": refused["status"], "message": message, "hint": refused.get("hint")}
