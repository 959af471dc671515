"""The two pages that take a table: states, from which a round is decided, and outcomes, from which the program learns.

"Check" lets the desk go through everything as a dry run and shows what it found. The answer carries the digest of what
was checked, the number of the round and a key; "Decide now" and "Record now" send the same form again with these, so
that a changed file is noticed, and a double click or a second person cannot have anything recorded twice.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from restive.desk.audit import Repeated, RequestContext
from restive.desk.config import MAX_BUDGET
from restive.desk.program import Program
from restive.desk.projection import RoundTotals
from restive.desk.remarks import count
from restive.desk.tokens import Principal
from restive.errors import Conflict, InputError
from restive.server.errors import describe
from restive.server.metrics import Metrics
from restive.server.views.asking import ask, head, read_number
from restive.server.views.base import PageRoute, is_fragment, link, page, render_aside
from restive.server.views.forms import (
    Form,
    Operator,
    Sheet,
    go_on,
    make_key,
    plain_name,
    read_brought,
    take_form,
)
from restive.server.views.mark_outcomes import record_outcomes
from restive.server.views.mark_outcomes import router as marking
from restive.server.wording import say_here

ASKED_STATES = ("known", "budget", "must", "never", "again", "new")
ASKED_OUTCOMES = ("round", "correct")
SHOWN_FAULTS, SHOWN_NAMES, OFFERED_ROUNDS = 200, 10, 60
MAX_ROUND = 10**9
NOT_CHECKED = "What is in the form is not what was checked: a file or a field changed. Check it again"
NOTHING = "Choose a file or paste rows."

router = APIRouter(route_class=PageRoute, include_in_schema=False)
router.include_router(marking)


class AskedStates(NamedTuple):
    """What a form of states asks for."""

    states: pl.DataFrame | None
    budget: int | None
    must: list[str] | None
    never: list[str] | None
    again: bool
    new: bool
    digest: str


class AskedOutcomes(NamedTuple):
    """What a form of outcomes asks for."""

    outcomes: pl.DataFrame
    round: int | None
    correct: bool
    digest: str


@page(router, "/programs/{name}/states", "uploading.html", role="operator")
async def show_states(request: Request, name: str) -> dict[str, Any]:
    """What the form of states needs to know."""
    return await ask(request, name, look_at_states)


@page(router, "/programs/{name}/outcomes", "outcomes.html", role="operator")
async def show_outcomes(request: Request, name: str, round: str = "") -> dict[str, Any]:
    """What the form of outcomes needs to know."""
    return await ask(request, name, look_at_outcomes, read_number(round, "round", 0) or None)


@router.post("/programs/{name}/states")
async def bring_states(request: Request, name: str, principal: Operator) -> Response:
    """Check a table of states, or decide a round by it."""
    async with take_form(request) as form:
        try:
            asked = await _ask_states(request, form)
            if form.text("step") != "decide":
                preview = await ask(request, name, preview_states, asked) | _sealed(asked.digest)
                return await _answer(request, name, look_at_states, "uploading.html", form, preview=preview)
            metrics = request.app.state.metrics
            said = await ask(request, name, decide_states, asked, *_unseal(form, asked.digest), principal, metrics)
        except InputError as error:
            return await _answer(request, name, look_at_states, "uploading.html", form, error=error)
    return go_on(request, link("programs", name, "list"), said)


@router.post("/programs/{name}/outcomes")
async def bring_outcomes(request: Request, name: str, principal: Operator) -> Response:
    """Check a table of outcomes, or record it."""
    async with take_form(request) as form:
        try:
            asked = await _ask_outcomes(request, form)
            if form.text("step") != "record":
                preview = await ask(request, name, preview_outcomes, asked) | _sealed(asked.digest)
                return await _answer(request, name, look_at_outcomes, "outcomes.html", form, preview=preview)
            context = RequestContext(by=principal.signature, key=_unseal(form, asked.digest)[1], asked=asked.digest)
            metrics = request.app.state.metrics
            said = await ask(
                request, name, record_outcomes, asked.outcomes, asked.round, asked.correct, context, metrics
            )
        except InputError as error:
            return await _answer(request, name, look_at_outcomes, "outcomes.html", form, error=error)
    return go_on(request, link("programs", name, "status"), said)


def look_at_states(program: Program) -> dict[str, Any]:
    """The program, its states, and which round comes next."""
    config, lines = program.config, program.rounds
    opened = [line.round for line in lines if line.decided < 0 and not line.cancelled]
    return {
        "program": head(program),
        "states": list(config.states),
        "budget": config.budget,
        "round": opened[0] if opened else len(lines) + 1,
        "opened": opened[0] if opened else None,
        "groups": list(program.projection.groups),
    }


def look_at_outcomes(program: Program, chosen: int | None = None) -> dict[str, Any]:
    """The program, its states, and the rounds that outcomes can be about: those that wait first."""
    decided = [line for line in reversed(program.rounds) if line.decided >= 0 and not line.cancelled]
    waiting = [line for line in decided if line.waiting]
    others = [line for line in decided if not line.waiting]
    return {
        "program": head(program),
        "states": list(program.config.states),
        "reported": program.config.rewards is None,
        "rounds": [_offer(line) for line in [*waiting[:OFFERED_ROUNDS], *others[:OFFERED_ROUNDS]]],
        "chosen": chosen,
    }


def preview_states(program: Program, asked: AskedStates) -> dict[str, Any]:
    """What would be decided, in numbers: who would be on the list is not reported before it is."""
    known, before = program.projection.agents.count, _reported_last(program)
    advice = program.decide(*asked[:4], again=asked.again, new=asked.new, dry_run=True)
    found, states = advice.found, advice.config.states
    reported = found.number[found.reported]
    missing = np.setdiff1d(before, reported) if reported.size else before[:0]
    return {
        "round": advice.round,
        "budget": advice.budget,
        "people": int(found.number.size),
        "listed": len(advice.chosen),
        "states": [{"state": s, "people": int((found.state == code).sum())} for code, s in enumerate(states)],
        "new": int((found.number >= known).sum()),
        "carried_over": int(found.carried_over.sum()),
        "missing": int(missing.size),
        "names": advice.names.call(missing[:SHOWN_NAMES]),
        "left_out": advice.left_out(),
        "notes": [say_here(note) for note in advice.notes],
    }


def decide_states(
    program: Program, asked: AskedStates, round_: int, key: str, principal: Principal, metrics: Metrics
) -> str:
    """Decide the round that was checked; what to say of it."""
    context = RequestContext(by=principal.signature, key=key, asked=f"{asked.digest} {round_}")
    try:
        number = program.decide(*asked[:4], round=round_, again=asked.again, new=asked.new, context=context).round
        metrics.note_round(program.projection.totals(number).advised)
    except Repeated as done:
        number = int(done.answer["round"])
    return f"Round {number} is decided: {count(program.projection.totals(number).advised, program.config.words)} on the list."


def preview_outcomes(program: Program, asked: AskedOutcomes) -> dict[str, Any]:
    """What would be recorded, in numbers."""
    taken = program.learn(asked.outcomes, asked.round, asked.correct, dry_run=True)
    return taken._asdict() | {"notes": [say_here(note) for note in taken.notes]}


async def _ask_states(request: Request, form: Form) -> AskedStates:
    sheet = await read_brought(form, request.app.state.settings)
    if sheet is None and not form.ticked("known"):
        raise InputError(f"{NOTHING} To go on from the states last known, tick the box for it.")
    if sheet is not None and form.ticked("known"):
        raise InputError("There is a table, and the box for the states last known is ticked; keep one of them.")
    return await run_in_threadpool(_read_states, form, sheet)


def _read_states(form: Form, sheet: Sheet | None) -> AskedStates:
    return AskedStates(
        None if sheet is None else sheet.frame,
        form.whole("budget", 0, MAX_BUDGET),
        form.ids("must"),
        form.ids("never"),
        form.ticked("again"),
        form.ticked("new"),
        form.seal(ASKED_STATES, sheet),
    )


async def _ask_outcomes(request: Request, form: Form) -> AskedOutcomes:
    sheet = await read_brought(form, request.app.state.settings)
    if sheet is None:
        raise InputError(NOTHING)
    return await run_in_threadpool(_read_outcomes, form, sheet)


def _read_outcomes(form: Form, sheet: Sheet) -> AskedOutcomes:
    round_ = form.whole("round", 1, MAX_ROUND)
    return AskedOutcomes(sheet.frame, round_, form.ticked("correct"), form.seal(ASKED_OUTCOMES, sheet))


def _sealed(digest: str) -> dict[str, str]:
    return {"checked": digest, "key": make_key()}


def _unseal(form: Form, digest: str) -> tuple[int, str]:
    """The round and the key that came with what was checked, if it is what is sent now."""
    if form.text("checked") != digest or not form.text("key"):
        raise Conflict(f"{NOT_CHECKED}; nothing was recorded.")
    return form.whole("of_round", 1, MAX_ROUND) or 1, form.text("key")


def _reported_last(program: Program) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Who had a state in the last table, and has not left since."""
    if not program.rounds:
        return np.zeros(0, np.int64)
    last = program.cache.get_round(len(program.rounds))
    reported = last.number[last.reported]
    return reported[program.projection.agents.active[reported]]


def _offer(line: RoundTotals) -> dict[str, Any]:
    return {"round": line.round, "at": line.at, "waiting": line.waiting, "present": line.present}


async def _answer(
    request: Request,
    name: str,
    look: Callable[[Program], dict[str, Any]],
    template: str,
    form: Form,
    preview: dict[str, Any] | None = None,
    error: InputError | None = None,
) -> Response:
    """The page with what was found, or only that where htmx asked; what was typed is kept."""
    failure = None if error is None else describe(error, request)
    refused = None if failure is None or error is None else _explain(failure.model_dump(mode="json"), error)
    part = is_fragment(request)
    again = plain_name(form.file.filename or "") if form.file and not part else ""  # a browser forgets it on loading
    more: dict[str, Any] = {"typed": form.fields, "preview": preview, "refused": refused, "again": again}
    data = await ask(request, name, look)
    shown = "preview.html" if part else template
    status = 200 if failure is None else failure.status
    return await render_aside(request, shown, data | {"kind": template}, status, **more)


def _explain(failure: dict[str, Any], error: InputError) -> dict[str, Any]:
    """A failure in the words of a page, with the options that the desk named in it."""
    faults = [fault | {"sentence": say_here(fault["sentence"])} for fault in failure["faults"]]
    total = getattr(error, "total", len(faults))
    offers = [name for name in ("again", "new", "correct") if f"--{name}" in str(error)]
    detail = {"detail": say_here(failure["detail"]), "faults": faults[:SHOWN_FAULTS], "total": total, "offers": offers}
    return failure | detail
