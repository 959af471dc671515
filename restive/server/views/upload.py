"""Upload of a table: of states, from which a round is decided, or of outcomes.

"Check" runs the desk in a dry run and shows the result. The page then carries the digest of the checked form, the number
of the round and an idempotency key. "Decide now" and "Record now" send the same form with these, so that a changed file
is noticed, and neither a double click nor a second person can record anything twice.
"""

import base64
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from fastapi import Request, Response
from starlette.concurrency import run_in_threadpool

from restive.desk.audit import Repeated, RequestContext
from restive.desk.config import MAX_BUDGET
from restive.desk.display import as_series
from restive.desk.explanations import capitalize, count_people
from restive.desk.outcomes import find_previous
from restive.desk.program import Program
from restive.desk.schedule import mention_round
from restive.desk.table_columns import TEXTS, Fault
from restive.desk.table_files import csv_bytes
from restive.errors import Conflict, Hint, InputError
from restive.formats import enumerate_words
from restive.server.addresses import link
from restive.server.errors import describe
from restive.server.monitoring import Metrics
from restive.server.views.base import (
    Data,
    ProgramBuilder,
    Query,
    ask,
    build_page,
    is_fragment,
    program_page,
    render_in_thread,
    router,
)
from restive.server.views.forms import Form, Operator, Table, make_key, plain_name, read_uploaded, redirect, take_form
from restive.server.views.table_mapping import MAX_SHEETS, confirm_numbers, describe_reading, has_columns, read_mapping
from restive.types import Ints

MAX_FAULTS = 200  # that a page shows
MAX_ROWS = 5  # of texts that mean no state
MAX_MISSING = 20_000  # people in the file of those who are not in a table, which is a part of the page
MAX_ROUND = 10**9
OFFERED_ROUNDS = 60
RECORDING_STEPS = ("decide", "record")
ROUND_FIELDS = ("round", "label", "at", "waiting", "present")
NO_TABLE = "There is no table. Choose a file or paste rows."
ADVICE = {
    Hint.AGAIN: "If you want another round with the same states, tick the box below and check again.",
    Hint.NEW: "If these people are new, tick the box below and check again. If not, correct the ids in the table.",
    Hint.CORRECT: "To replace the recorded outcomes, tick “This is a correction” and send the form again.",
    Hint.CANCEL: "You can cancel a round under Settings.",
}

Asked = dict[str, Any]  # arguments of `Program.decide` or `Program.learn`


@program_page("states", "upload.html", role="operator")
def build_states(program: Program, _: Query) -> Data:
    """The form of states."""
    config, previous = program.config, find_previous(program.projection)
    taken = previous is not None and config.states_are_outcomes and config.rewards is not None
    return {
        "states": list(config.states),
        "budget": config.budget,
        "cost_unit": config.cost_unit,
        "round": program.projection.next_round,
        "previous": {"round": previous.round, "label": previous.label} if previous is not None and taken else None,
        "groups": list(program.projection.groups),
    }


@program_page("outcomes", "outcomes.html", role="operator")
def build_outcomes(program: Program, query: Query) -> Data:
    """The form of outcomes, with the rounds that they can be about, those with missing outcomes first."""
    decided = [totals for totals in reversed(program.rounds) if not totals.cancelled]
    from_states = program.config.states_are_outcomes and program.config.rewards is not None
    waiting = [totals for totals in decided if totals.waiting][
        :: 1 if from_states else -1
    ]  # the one expected next first
    others = [totals for totals in decided if not totals.waiting]
    offered = [*waiting[:OFFERED_ROUNDS], *others[:OFFERED_ROUNDS]]
    return {
        "states": list(program.config.states),
        "reported": program.config.rewards is None,
        "from_states": from_states,
        "rounds": [{name: getattr(totals, name) for name in ROUND_FIELDS} for totals in offered],
        "chosen": query.number("round", 0) or None,
    }


def read_states(form: Form, table: Table | None) -> Asked:
    """What the form of states asks for."""
    if table is None and not form.checked("known"):
        raise InputError(f"{NO_TABLE} To use the last known states, tick the box.")
    if table is not None and form.checked("known"):
        raise InputError("There is a table, and the box for the last known states is ticked. Use one of them.")
    return {
        "states": None if table is None else table.file,
        "budget": form.whole("budget", 0, MAX_BUDGET),
        "must": form.ids("must"),
        "never": form.ids("never"),
        "again": form.checked("again"),
        "new": form.checked("new"),
        "states_are_outcomes": False if form.checked("not_outcomes") else None,
    }


def read_outcomes(form: Form, table: Table | None) -> Asked:
    """What the form of outcomes asks for."""
    if table is None:
        raise InputError(NO_TABLE)
    return {
        "outcomes": table.file,
        "round": form.whole("round", 1, MAX_ROUND),
        "correct": form.checked("correct"),
    }


def preview_states(program: Program, asked: Asked) -> Data:
    """The decision in numbers; who would be on the list is not shown before the round is decided."""
    agents = program.projection.agents
    known, before = agents.count, np.flatnonzero(agents.active)
    last_states = agents.state.copy()
    recommendation = program.decide(**asked, dry_run=True)
    found, states = recommendation.found, recommendation.config.states
    reported = found.number[found.reported]
    missing = np.setdiff1d(before, reported) if reported.size else before[:0]
    left_out = np.setdiff1d(missing, found.number)
    return {
        "round": recommendation.round,
        "label": recommendation.totals.label,
        "budget": recommendation.budget,
        "planned": recommendation.planned,
        "people": int(found.number.size),
        "listed": len(recommendation.chosen),
        "states": [{"state": s, "people": int((found.state == code).sum())} for code, s in enumerate(states)],
        "new": int((found.number >= known).sum()),
        "carried_over": int(found.carried_over.sum()),
        "missing": int(missing.size),
        "left_out": int(left_out.size),
        "keep": recommendation.config.keep,
        "missing_file": _write_missing(program, missing[:MAX_MISSING], last_states),
        "exclusions": recommendation.exclusions(),
        "notes": list(recommendation.notes),
        "results": None if recommendation.results is None else recommendation.results._asdict(),
    }


def preview_outcomes(program: Program, asked: Asked) -> Data:
    """What would be recorded, in numbers."""
    return program.learn(**asked, dry_run=True)._asdict()


def decide_states(program: Program, asked: Asked, round_: int, context: RequestContext, metrics: Metrics) -> str:
    """Decide the round that was checked; the message about it."""
    try:
        decided = program.decide(**asked, round=round_, context=context)
        number = decided.round
        metrics.count_round(program.projection.totals(number).advised)
        metrics.outcomes.inc(decided.results.recorded if decided.results else 0)
    except Repeated as done:
        number = int(done.answer["round"])
    totals = program.projection.totals(number)
    listed = count_people(totals.advised, program.config.words)
    return f"{capitalize(totals.mention)} is decided: {listed} on the list."


def record_outcomes(program: Program, asked: Asked, _: int, context: RequestContext, metrics: Metrics) -> str:
    """Record outcomes; the message about it."""
    try:
        taken = program.learn(**asked, context=context)._asdict()
        metrics.outcomes.inc(taken["new"] + taken["corrected"])
    except Repeated as done:
        taken = done.answer
    return describe_recorded(taken)


def describe_recorded(taken: Data) -> str:
    """What was recorded, in a sentence or two.

    >>> labels = {"rounds": [7], "labels": ["November 2026"]}
    >>> describe_recorded({**labels, "new": 12, "corrected": 0, "repeated": 2, "waiting": 3})
    'November 2026 (round 7): 12 outcomes recorded, 2 recorded before. 3 are still missing.'
    """
    parts = [f"{taken['new']:,} {'outcome' if taken['new'] == 1 else 'outcomes'} recorded"]
    parts += [f"{taken['corrected']:,} corrected"] * bool(taken["corrected"])
    parts += [f"{taken['repeated']:,} recorded before"] * bool(taken["repeated"])
    rounds, waiting = enumerate_words(map(mention_round, taken["labels"], taken["rounds"])), taken["waiting"]
    rest = f"{waiting:,} {'is' if waiting == 1 else 'are'} still missing." if waiting else "None is missing."
    return f"{capitalize(rounds)}: {', '.join(parts)}. {rest}"


def _write_missing(program: Program, missing: Ints, last_states: Ints) -> str:
    """The people who are not in a table as the content of a CSV file, in base64: nothing of a check is stored."""
    states, display = program.config.states, program.config.display
    cells = program.store.display(program.id, missing) if display else {}
    columns = [
        pl.Series("agent", program.names.call(missing), pl.String),
        *as_series(cells, missing, display),
        pl.Series("last_state", [states[code] if code >= 0 else None for code in last_states[missing]], pl.String),
    ]
    return base64.b64encode(csv_bytes(pl.DataFrame(columns), ",")).decode()


class Upload(NamedTuple):
    """A kind of table: its form, how it is read, checked and recorded, and the page to go to afterwards."""

    kind: str
    template: str
    fields: tuple[str, ...]
    build: ProgramBuilder
    read: Callable[[Form, Table | None], Asked]
    preview: Callable[[Program, Asked], Data]
    record: Callable[[Program, Asked, int, RequestContext, Metrics], str]
    next_page: str


STATES = Upload(
    "states",
    "upload.html",
    ("known", "budget", "must", "never", "again", "new", "not_outcomes"),
    build_states,
    read_states,
    preview_states,
    decide_states,
    "list",
)
OUTCOMES = Upload(
    "outcomes",
    "outcomes.html",
    ("round", "correct"),
    build_outcomes,
    read_outcomes,
    preview_outcomes,
    record_outcomes,
    "status",
)


@router.post("/programs/{name}/states")
async def take_states(request: Request, name: str, principal: Operator) -> Response:
    """Check a table of states, or decide a round from it."""
    return await take_upload(request, name, principal, STATES)


@router.post("/programs/{name}/outcomes")
async def take_outcomes(request: Request, name: str, principal: Operator) -> Response:
    """Check a table of outcomes, or record it."""
    return await take_upload(request, name, principal, OUTCOMES)


async def take_upload(request: Request, name: str, principal: Operator, upload: Upload) -> Response:
    """Check a table, or record what was checked."""
    async with take_form(request) as form:
        table, reading = None, Data()
        try:
            table = await read_uploaded(form, request.app.state.settings)
            table = await find_sheet(request, name, upload, form, table)
            asked = upload.read(form, table)
            reading = await ask(request, name, read_mapping, form, table, upload.kind)
            await ask(request, name, confirm_numbers, table, upload.kind, reading)
            asked |= reading
            digest = await run_in_threadpool(form.digest, upload.fields, table, reading)
            if form.text("step") not in RECORDING_STEPS:
                preview = await ask(request, name, upload.preview, asked) | {"checked": digest, "key": make_key()}
                return await show_result(request, name, upload, form, table, reading, preview=preview)
            if form.text("checked") != digest or not form.text("key"):
                raise Conflict("The form has changed since the check. Check it again.")
            round_ = form.whole("of_round", 1, MAX_ROUND) or 1
            context = RequestContext(principal.signature, form.text("key"), f"{digest} {round_}")
            message = await ask(request, name, upload.record, asked, round_, context, request.app.state.metrics)
        except InputError as error:
            return await show_result(request, name, upload, form, table, reading, error=error)
    return redirect(request, link("programs", name, upload.next_page), message)


async def find_sheet(request: Request, name: str, upload: Upload, form: Form, table: Table | None) -> Table | None:
    """The sheet of a workbook with the columns that the program knows, or else the largest, unless one is chosen."""
    if table is None or len(table.file.sheets) < 2 or form.text("sheet"):
        return table
    best = table
    for sheet in table.file.sheets[:MAX_SHEETS]:
        found = table
        if sheet != table.file.sheet:
            with suppress(InputError):  # such as an empty sheet
                found = await read_uploaded(form, request.app.state.settings, sheet) or table
        if await ask(request, name, has_columns, found.file.frame, upload.kind):
            return found
        best = max(best, found, key=lambda each: each.file.frame.shape[0] * each.file.frame.shape[1])
    return best


async def show_result(
    request: Request,
    name: str,
    upload: Upload,
    form: Form,
    table: Table | None = None,
    reading: Data | None = None,
    preview: Data | None = None,
    error: InputError | None = None,
) -> Response:
    """The page with a preview or an error and everything that was typed; only the preview for htmx."""
    fragment = is_fragment(request)
    refused = None if error is None else explain(error, request)
    more: Data = {
        "typed": form.fields,
        "preview": preview,
        "refused": refused,
        "reading": await ask(
            request, name, describe_reading, table, upload.kind, reading or {}, bool(error), form.checked("by_cuts")
        )
        if table
        else None,
        # Browsers drop a chosen file when the page is reloaded.
        "choose_again": plain_name(form.file.filename or "") if form.file and not fragment else "",
    }
    data = await build_page(request, name, upload.build)
    shown = "preview.html" if fragment else upload.template
    status = 200 if refused is None else refused["status"]
    return await render_in_thread(request, shown, data | {"template": upload.template}, status, **more)


def explain(error: InputError, request: Request) -> Data:
    """A problem with at most MAX_FAULTS faults, their total, and advice in the words of a page."""
    problem = describe(error, request)
    found: Sequence[Fault] = getattr(error, "faults", ())
    faults = [fault for fault in found if not fault.choice]
    total = getattr(error, "total", len(found)) - getattr(error, "unclear", 0)
    return {
        **problem,
        "faults": [fault._asdict() for fault in faults[:MAX_FAULTS]],
        "total": total,
        "rows": [fault.row for fault in found if fault.choice == TEXTS][:MAX_ROWS],
        "choices": list(dict.fromkeys(fault.choice for fault in found if fault.choice)),
        "advice": ADVICE.get(error.hint) if error.hint else None,
    }
