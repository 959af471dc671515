"""Start from a history: upload a table of what happened, see what it says about a program, and create the program.

The form starts a report, which a child process makes (`restive.server.histories`). The page of a report shows how far it
is until it is finished, reloading itself. Of a table that is not understood it asks which column is which, what the texts
of the column action mean and what each state is worth, and starts again with the answers. Fields of these: `column.agent`
has a header, `acts.0` a text that means acting, `state.0` and `reward.0` a state and its reward.
"""

from typing import Any

from fastapi import Request, Response
from fastapi.responses import FileResponse
from starlette.concurrency import run_in_threadpool

from restive.errors import InputError, NotFound, check_number, check_whole
from restive.logs.columns import MAX_STATES
from restive.logs.options import COLUMNS, split_names
from restive.server.addresses import link
from restive.server.histories import MODEL, PAGE, HistoryReports, Job
from restive.server.views.base import NO_STORE, Data, page, render_in_thread, router
from restive.server.views.forms import (
    Admin,
    Form,
    check_ending,
    read_decimal,
    read_whole,
    redirect,
    take_form,
    write_table,
)
from restive.server.views.upload import NO_TABLE, explain

LABELS = {
    "agent": "Id of the person",
    "time": "When",
    "state": "State",
    "action": "Acted on",
    "reward": "Reward",
    "next_state": "State afterwards",
    "propensity": "Probability of acting",
    "advised": "Advised",
    "arm": "Control or program",
    "group": "Group",
    "available": "Could be acted on",
}
EXAMPLE = "agent\ttime\tstate\taction\nA-001\t2026-03-02\tlapsed\t1\nA-001\t2026-03-09\tactive\t0"
DEFAULT_ROUNDS, MAX_ROUNDS, MAX_BUDGETS, MAX_REWARD = 26, 520, 6, 1e9
REFRESH_SECONDS = 2
FILES = {"html": (PAGE, "text/html"), "parquet": (MODEL, "application/vnd.apache.parquet")}


@page("/history", "history.html", role="admin")
async def show_history(request: Request, report: str = "") -> Data:
    """The form, or a report."""
    form = {"example": EXAMPLE, "rounds": DEFAULT_ROUNDS, "report": None, "labels": LABELS}
    if not report:
        return form
    job = find_job(request, report)
    return form | {"report": await run_in_threadpool(describe, job, request)}


@router.post("/history")
async def take_history(request: Request, principal: Admin) -> Response:
    """Start a report on a table."""
    reports: HistoryReports = request.app.state.histories
    async with take_form(request) as form:
        again = form.text("report") if form.file is None and not form.text("rows") else ""
        try:
            asked = read_asked(form)
            typed = {field: text for field, text in form.fields.items() if field != "rows"}
            if again:
                job = reports.start_again(find_job(request, again), asked, typed)
            else:
                name, ending = check_ending(form)
                folder = reports.make_folder()
                await run_in_threadpool(write_table, form, folder / f"table{ending}")
                job = reports.start(folder, principal.signature, name, f"table{ending}", asked, typed)
        except InputError as error:
            asks = again and find_job(request, again).table() is not None
            data = await show_history(request, again if asks else "")
            more = {"typed": form.fields, "refused": explain(error, request)}
            return await render_in_thread(request, "history.html", data, 422, **more)
    return redirect(request, link("history", report=job.id))


@router.get("/history.{kind}")
async def send_file(request: Request, kind: str, principal: Admin, report: str = "") -> Response:
    """The page, or the model, of a report as a file."""
    job = find_job(request, report)
    if kind not in FILES or job.running or job.error is not None:
        raise NotFound("There is no such file.")
    file, media_type = FILES[kind]
    return FileResponse(
        job.folder / file, media_type=media_type, filename=f"history.{kind}", headers={"Cache-Control": NO_STORE}
    )


def find_job(request: Request, id: str) -> Job:
    """A report of the user who asks."""
    reports: HistoryReports = request.app.state.histories
    return reports.find(id, request.state.principal.signature)


def find_result(request: Request, id: str) -> Data:
    """A finished report of the user who asks, with its id and the name of the file."""
    job = find_job(request, id)
    if job.running or job.error is not None:
        raise NotFound("The report is not finished.")
    return job.result() | {"id": job.id, "name": job.name}


def describe(job: Job, request: Request) -> Data:
    """A report, or how far it is, or why there is none."""
    known: dict[str, Any] = {
        "id": job.id, "name": job.name, "running": job.running, "progress": None, "refused": None, "result": None,
        "table": None,
    }  # fmt: skip
    if job.running:
        return known | {"progress": job.progress, "refresh": REFRESH_SECONDS}
    if job.error is not None:
        return known | {"refused": explain(job.error, request), "typed": job.typed, "table": job.table()}
    return known | {"result": job.result()}


def read_asked(form: Form) -> dict[str, Any]:
    """What a report is asked for."""
    if form.file is None and not form.text("rows") and not form.text("report"):
        raise InputError(NO_TABLE)
    budgets = [check_whole("budget", read_whole(text), 1, 10**9) for text in split_names(form.text("budgets"))]
    if len(budgets) > MAX_BUDGETS:
        raise InputError(f"There are {len(budgets)} budgets; at most {MAX_BUDGETS} are allowed.")
    return {
        "budgets": budgets,
        "rounds": form.whole("rounds", 1, MAX_ROUNDS) or DEFAULT_ROUNDS,
        "options": {
            "columns": {name: header for name in COLUMNS if (header := form.text(f"column.{name}"))},
            "rewards": _read_rewards(form),
            "action_is": [text for place in range(MAX_STATES) if (text := form.text(f"acts.{place}"))],
            **{name: form.text(name) or None for name in ("every", "reward_on", "propensity_of")},
        },
    }


def _read_rewards(form: Form) -> dict[str, float]:
    """The reward of each state that has one."""
    rewards = {}
    for place in range(MAX_STATES):
        state, text = form.text(f"state.{place}"), form.text(f"reward.{place}")
        if state and text:
            rewards[state] = check_number(
                f"reward of {state}", read_decimal(text), "it must be a number", -MAX_REWARD, MAX_REWARD
            )
    return rewards
