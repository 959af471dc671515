"""Settings of a program: change them, undo the last request, cancel a round, remove people who left, erase ids.

An operator may undo, cancel rounds and remove people; an admin may also change settings and erase ids. What cannot be undone
takes two posts: the first shows what would happen, the second does it.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from fastapi import Request, Response
from starlette.exceptions import HTTPException

from restive.desk.audit import Repeated, RequestContext
from restive.desk.config import CALENDAR, Config, policy_label
from restive.desk.display import check_display
from restive.desk.explanations import count_people
from restive.desk.program import Program
from restive.desk.schedule import check_first_due
from restive.desk.table_mapping import MAX_COUNTRY, parse_cut_points
from restive.errors import InputError, NotFound, check_whole, parse_pairs
from restive.problem import AT_MOST, EXACTLY
from restive.server.addresses import link
from restive.server.auth import admit
from restive.server.downloads import make_export
from restive.server.errors import describe
from restive.server.views.base import Data, Query, ask, build_page, program_page, render_in_thread, router
from restive.server.views.forms import Admin, Form, Operator, make_key, read_whole, redirect, take_form

NUMBERS = ("budget", "cool_down", "keep")
FIXED = ("states", "rewards", "control", "control_until", "horizon", "seed", "template")
OFFERED_ROUNDS, MAX_GROUPS = 60, 20  # that the page shows


class Question(Exception):  # noqa: N818 - not an error
    """A question that the user must answer before a step is taken."""

    def __init__(self, step: str, **about: object) -> None:
        super().__init__(step)
        self.about = {"step": step, **about}


class Step(NamedTuple):
    """One kind of change: the role that it needs, how it is done, and the message about its result."""

    role: str
    run: Callable[[Program, Form, RequestContext], Data]
    describe: Callable[[Data, Form, Config], str]
    page: str = "settings"  # the one to show then


@router.post("/programs/{name}/settings")
async def take_step(request: Request, name: str, principal: Operator) -> Response:
    """Take one step."""
    async with take_form(request) as form:
        if form.text("step") not in STEPS:
            raise HTTPException(400, "The form has no step. Reload the page.")
        admit(request, principal, STEPS[form.text("step")].role)
        context = await form.context(principal)
        try:
            message = await ask(request, name, run_step, form, context)
        except Question as question:
            return await _show(request, name, form, 200, question=question.about)
        except InputError as error:
            failure = describe(error, request)
            refused = {"step": form.text("step"), "detail": failure["detail"]}
            return await _show(request, name, form, failure["status"], refused=refused)
    return redirect(request, link("programs", name, STEPS[form.text("step")].page), message)


@program_page("settings", "settings.html", role="operator")
def build_settings(program: Program, _: Query) -> Data:
    """All settings, and the rounds that can be cancelled."""
    config = program.config
    groups = list(program.projection.groups)
    cancellable = [each for each in reversed(program.rounds) if not (each.cancelled or each.outcomes or each.done)]
    policies = {"policy": policy_label(config.policy), "shadow": policy_label(config.shadow) if config.shadow else None}
    return {
        **{name: getattr(config, name) for name in NUMBERS},
        "at_most": config.spend == AT_MOST,
        "cost_unit": config.cost_unit,
        "title": config.title,
        **{name: getattr(config, name) for name in CALENDAR},
        "states_are_outcomes": config.states_are_outcomes,
        "shares": dict(config.shares),
        "display": list(config.display),
        "columns": dict(config.columns),
        "values": dict(config.values),
        "cut_points": str(config.cut_points) if config.cut_points else "",
        "phone_country": config.phone_country,
        "groups": groups[:MAX_GROUPS],
        "fixed": {name: getattr(config, name) for name in FIXED} | policies | {"pseudonyms": bool(config.pseudonyms)},
        "created": program.created,
        "rounds": [
            {"round": totals.round, "label": totals.label, "listed": totals.advised}
            for totals in cancellable[:OFFERED_ROUNDS]
        ],
        **offer_undo(program),
    }


def offer_undo(program: Program) -> Data:
    """What the button that undoes the last request shows and sends."""
    found = program.undoable()
    return {"undo": None if found is None else {"event": found.event, "message": found.message}, "key": make_key()}


def run_step(program: Program, form: Form, context: RequestContext) -> str:
    """Run the step of a form; the message about it."""
    step = STEPS[form.text("step")]
    try:
        answer = step.run(program, form, context)
    except Repeated as done:
        answer = done.answer
    return step.describe(answer, form, program.config)


def change_config(program: Program, form: Form, context: RequestContext) -> Data:
    """Change the settings that differ from the current ones."""
    config = program.config
    wanted: Data = {name: read_whole(form.text(name)) for name in NUMBERS}
    wanted["spend"] = AT_MOST if form.checked("at_most") else EXACTLY
    wanted["shares"] = form.shares("shares")
    if "cost_unit" in form.fields:
        wanted["cost_unit"] = form.text("cost_unit")
    if "title" in form.fields:
        wanted["title"] = form.text("title")
    if "rhythm" in form.fields:
        wanted |= {name: form.text(name) for name in CALENDAR} | {"first_due": check_first_due(form.text("first_due"))}
    if "display" in form.fields:
        wanted["display"] = list(check_display(form.lines("display")))
    wanted["states_are_outcomes"] = form.checked("states_are_outcomes")
    wanted["columns"] = parse_pairs(form.lines("columns"), "columns", may_be_empty=True)
    wanted["values"] = parse_pairs(form.lines("values"), "values", may_be_empty=True)
    wanted["cut_points"] = parse_cut_points(form.text("cut_points"))
    wanted["phone_country"] = form.whole("phone_country", 1, MAX_COUNTRY)
    current: Data = {**config.as_json()}
    settings = {name: value for name, value in wanted.items() if value != current[name]}
    return {"config": program.change(**(settings or wanted), context=context).as_json()}


def cancel_round(program: Program, form: Form, context: RequestContext) -> Data:
    """Cancel a round, once it is confirmed."""
    number = check_whole("round", read_whole(form.text("round")), 1)
    if not form.checked("sure"):
        listed = program.cancel(number, dry_run=True)
        raise Question("cancel", round=number, mention=program.rounds[number - 1].mention, listed=listed)
    return {"listed": program.cancel(number, context=context)}


def undo_last(program: Program, form: Form, context: RequestContext) -> Data:
    """Undo the request that the button named, once it is confirmed."""
    event = check_whole("event", read_whole(form.text("event")), 0)
    if not form.checked("sure"):
        raise Question("undo", event=event, message=program.undo(event, dry_run=True).message)
    return program.undo(event, context=context)._asdict()


def remove_people(program: Program, form: Form, context: RequestContext) -> Data:
    """Remove people who left."""
    if not form.lines("agents"):
        raise InputError("There is no id. Write one id on each line.")
    return {"count": program.leave(form.lines("agents"), context=context)}


def erase_id(program: Program, form: Form, context: RequestContext) -> Data:
    """Erase an id, once it is typed twice."""
    agent = form.text("agent")
    if not agent:
        raise InputError("There is no id. Type the id to erase.")
    if "again" not in form.fields:
        program.erase([agent], dry_run=True)
        raise Question("erase", agent=agent)
    if form.text("again") != agent:
        raise InputError("The two ids differ, so nothing was erased.")
    return {"count": program.erase([agent], context=context)}


def set_archived(program: Program, form: Form, context: RequestContext) -> Data:
    """Archive or restore the program."""
    archived = form.text("step") == "archive"
    (program.archive if archived else program.restore)(context=context)
    return {"archived": archived}


@router.post("/programs/{name}/delete")
async def take_deletion(request: Request, name: str, principal: Admin) -> Response:
    """Delete the program, once its name is typed."""
    async with take_form(request) as form:
        context, desk = RequestContext(principal.signature, form.text("key") or None), request.app.state.desk
        delete = partial(desk.delete, name, form.text("confirm"), context=context)
        try:
            with suppress(Repeated):
                await request.app.state.programs.delete(request, name, delete)
        except InputError as error:
            if isinstance(error, NotFound):
                raise
            failure = describe(error, request)
            refused = {"step": "delete", "detail": failure["detail"]}
            return await _show(request, name, form, failure["status"], refused=refused)
    return redirect(request, link(), f"The program {name} is deleted.")


@router.get("/programs/{name}/export.zip")
async def send_export(request: Request, name: str, principal: Admin) -> Response:
    """The whole program as Parquet files in a ZIP file."""
    return await ask(request, name, make_export)


STEPS = {
    "archive": Step("admin", set_archived, lambda *_: "The program is archived."),
    "restore": Step("admin", set_archived, lambda *_: "The program is restored."),
    "change": Step("admin", change_config, lambda *_: "The new settings apply from the next round."),
    "cancel": Step(
        "operator",
        cancel_round,
        lambda answer, _, config: f"The list is cancelled. It had {count_people(answer['listed'], config.words)}.",
    ),
    "undo": Step("operator", undo_last, lambda answer, *_: f"Undone: {answer['message']}.", page="status"),
    "leave": Step(
        "operator", remove_people, lambda answer, _, config: f"{count_people(answer['count'], config.words)} removed."
    ),
    "erase": Step(
        "admin",
        erase_id,
        lambda answer, _, config: (
            f"{count_people(answer['count'], config.words)} erased. Delete the lists that you saved as files."
        ),
    ),
}


async def _show(request: Request, name: str, form: Form, status: int, **more: Any) -> Response:
    """The page with a question or an error, and everything that was typed."""
    data = await build_page(request, name, build_settings)
    return await render_in_thread(request, "settings.html", data, status, typed=form.fields, **more)
