"""Upload of states, from which a round is decided, and the check-then-confirm steps shared with outcomes.

"Check" runs the desk in a dry run and shows the result. The page then carries the digest of the checked form, the number
of the round and an idempotency key. "Decide now" sends the same form with these, so that a changed file is noticed, and
neither a double click nor a second person can record anything twice.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from restive.desk.audit import Repeated, RequestContext
from restive.desk.config import MAX_BUDGET
from restive.desk.explanations import count_people
from restive.desk.program import Program
from restive.desk.tokens import Principal
from restive.errors import Conflict, Hint, InputError
from restive.server.errors import describe
from restive.server.metrics import Metrics
from restive.server.views.base import PageRoute, ask, head, is_fragment, link, page, render_in_thread
from restive.server.views.forms import (
    Form,
    Operator,
    make_key,
    plain_name,
    read_uploaded,
    redirect,
    take_form,
)
from restive.types import Ints

STATES_FIELDS = ("known", "budget", "must", "never", "again", "new")
MAX_FAULTS, MAX_NAMES = 200, 10  # that a page shows
MAX_ROUND = 10**9
NO_TABLE = "There is no table. Choose a file or paste rows."
ADVICE = {
    Hint.AGAIN: "If you want another round with the same states, tick the box below and check again.",
    Hint.NEW: "If these people are new, tick the box below and check again. If not, correct the ids in the table.",
    Hint.CORRECT: "To replace the recorded outcomes, tick “This is a correction” and send the form again.",
    Hint.ROUND: "Choose the round in the form, or add a column round to the table.",
    Hint.CANCEL: "You can cancel a round under Settings.",
}

router = APIRouter(route_class=PageRoute, include_in_schema=False)


class StatesRequest(NamedTuple):
    """What the form of states asks for."""

    states: pl.DataFrame | None
    budget: int | None
    must: list[str] | None
    never: list[str] | None
    again: bool
    new: bool
    digest: str


@page(router, "/programs/{name}/states", "upload.html", role="operator")
async def show_states(request: Request, name: str) -> dict[str, Any]:
    """The form of states."""
    return await ask(request, name, build_states)


@router.post("/programs/{name}/states")
async def take_states(request: Request, name: str, principal: Operator) -> Response:
    """Check a table of states, or decide a round from it."""
    async with take_form(request) as form:
        try:
            asked = await _read_request(request, form)
            if form.text("step") != "decide":
                preview = await ask(request, name, preview_states, asked) | make_confirmation(asked.digest)
                return await show_result(request, name, build_states, "upload.html", form, preview=preview)
            round_, key = check_confirmation(form, asked.digest)
            metrics = request.app.state.metrics
            message = await ask(request, name, decide_states, asked, round_, key, principal, metrics)
        except InputError as error:
            return await show_result(request, name, build_states, "upload.html", form, error=error)
    return redirect(request, link("programs", name, "list"), message)


def build_states(program: Program) -> dict[str, Any]:
    """The states of the program, and the number of the next round."""
    config = program.config
    return {
        "program": head(program),
        "states": list(config.states),
        "budget": config.budget,
        "round": program.projection.next_round,
        "groups": list(program.projection.groups),
    }


def preview_states(program: Program, asked: StatesRequest) -> dict[str, Any]:
    """The decision in numbers; who would be on the list is not shown before the round is decided."""
    known, before = program.projection.agents.count, _reported_last(program)
    recommendation = program.decide(*asked[:4], again=asked.again, new=asked.new, dry_run=True)
    found, states = recommendation.found, recommendation.config.states
    reported = found.number[found.reported]
    missing = np.setdiff1d(before, reported) if reported.size else before[:0]
    return {
        "round": recommendation.round,
        "budget": recommendation.budget,
        "people": int(found.number.size),
        "listed": len(recommendation.chosen),
        "states": [{"state": s, "people": int((found.state == code).sum())} for code, s in enumerate(states)],
        "new": int((found.number >= known).sum()),
        "carried_over": int(found.carried_over.sum()),
        "missing": int(missing.size),
        "names": recommendation.names.call(missing[:MAX_NAMES]),
        "exclusions": recommendation.exclusions(),
        "notes": list(recommendation.notes),
    }


def decide_states(
    program: Program, asked: StatesRequest, round_: int, key: str, principal: Principal, metrics: Metrics
) -> str:
    """Decide the round that was checked; the message about it."""
    context = RequestContext(by=principal.signature, key=key, asked=f"{asked.digest} {round_}")
    try:
        number = program.decide(*asked[:4], round=round_, again=asked.again, new=asked.new, context=context).round
        metrics.count_round(program.projection.totals(number).advised)
    except Repeated as done:
        number = int(done.answer["round"])
    listed = count_people(program.projection.totals(number).advised, program.config.words)
    return f"Round {number} is decided: {listed} on the list."


async def _read_request(request: Request, form: Form) -> StatesRequest:
    table = await read_uploaded(form, request.app.state.settings)
    if table is None and not form.checked("known"):
        raise InputError(f"{NO_TABLE} To use the last known states, tick the box.")
    if table is not None and form.checked("known"):
        raise InputError("There is a table, and the box for the last known states is ticked. Use one of them.")
    return StatesRequest(
        None if table is None else table.frame,
        form.whole("budget", 0, MAX_BUDGET),
        form.ids("must"),
        form.ids("never"),
        form.checked("again"),
        form.checked("new"),
        await run_in_threadpool(form.digest, STATES_FIELDS, table),
    )


def _reported_last(program: Program) -> Ints:
    """The people with a state in the last table who have not left since."""
    if not program.rounds:
        return np.zeros(0, np.int64)
    last = program.cache.get_round(len(program.rounds))
    reported: Ints = last.number[last.reported]
    return reported[program.projection.agents.active[reported]]


def make_confirmation(digest: str) -> dict[str, str]:
    """What the page sends back with "Decide now" and "Record now"."""
    return {"checked": digest, "key": make_key()}


def check_confirmation(form: Form, digest: str) -> tuple[int, str]:
    """The round and the key of the checked form, if the form is still the same."""
    if form.text("checked") != digest or not form.text("key"):
        raise Conflict("The form has changed since the check. Check it again.")
    return form.whole("of_round", 1, MAX_ROUND) or 1, form.text("key")


async def show_result(
    request: Request,
    name: str,
    build: Callable[[Program], dict[str, Any]],
    template: str,
    form: Form,
    preview: dict[str, Any] | None = None,
    error: InputError | None = None,
) -> Response:
    """The page with a preview or an error and everything that was typed; only the preview for htmx."""
    fragment = is_fragment(request)
    refused = None if error is None else explain(error, request)
    more: dict[str, Any] = {
        "typed": form.fields,
        "preview": preview,
        "refused": refused,
        # Browsers drop a chosen file when the page is reloaded.
        "choose_again": plain_name(form.file.filename or "") if form.file and not fragment else "",
    }
    data = await ask(request, name, build)
    shown = "preview.html" if fragment else template
    status = 200 if refused is None else refused["status"]
    return await render_in_thread(request, shown, data | {"template": template}, status, **more)


def explain(error: InputError, request: Request) -> dict[str, Any]:
    """A problem with at most MAX_FAULTS faults, their total, and advice in the words of a page."""
    problem = describe(error, request)
    faults = problem["faults"]
    return {
        **problem,
        "faults": faults[:MAX_FAULTS],
        "total": getattr(error, "total", len(faults)),
        "advice": ADVICE.get(error.hint) if error.hint else None,
    }
