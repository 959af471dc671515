"""The settings of a program: what may be changed while it runs, a round taken back, people who left, names forgotten.

Whoever may decide may also take a list back and say who left; settings and names are for an admin of the program. What
cannot be undone is asked for twice: the first post answers with what would happen, the second does it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from restive.desk.audit import Repeated, RequestContext
from restive.desk.config import Config
from restive.desk.program import Program
from restive.desk.projection import RoundTotals
from restive.desk.remarks import count
from restive.errors import InputError, check_whole
from restive.server.auth import admit
from restive.server.errors import Refusal, describe
from restive.server.hiding import name_policy
from restive.server.views.asking import ask, head
from restive.server.views.base import PageRoute, link, page, render_aside
from restive.server.views.forms import Form, Operator, go_on, make_key, read_whole, take_form
from restive.server.wording import say_here

NUMBERS = ("budget", "cool_down", "keep")
OFFERED = 60  # rounds that could be cancelled
SHOWN_GROUPS = 20

router = APIRouter(route_class=PageRoute, include_in_schema=False)


class Question(Exception):  # noqa: N818 - no error, but what is asked before something is done
    """What would happen, to be confirmed."""

    def __init__(self, step: str, **about: object) -> None:
        super().__init__(step)
        self.about = {"step": step, **about}


class Step(NamedTuple):
    """One thing that can be done here: who may, how it is done, and what is said of its answer."""

    role: str
    do: Callable[[Program, Form, RequestContext], dict[str, Any]]
    say: Callable[[dict[str, Any], Form, Config], str]


@page(router, "/programs/{name}/settings", "changing.html", role="operator")
async def show_settings(request: Request, name: str) -> dict[str, Any]:
    """What is set, and what can be done about it."""
    return await ask(request, name, look_at_settings)


@router.post("/programs/{name}/settings")
async def change_something(request: Request, name: str, principal: Operator) -> Response:
    """Do one of the things on the page."""
    async with take_form(request) as form:
        if form.text("step") not in STEPS:
            raise Refusal(400, "The form does not say what is to be done; load the page again.")
        admit(request, principal, STEPS[form.text("step")].role)
        context = RequestContext(
            by=principal.signature, key=form.text("key") or None, asked=await run_in_threadpool(form.seal_all)
        )
        try:
            said = await ask(request, name, take_step, form, context)
        except Question as question:
            return await _show(request, name, form, 200, question=question.about)
        except InputError as error:
            failure = describe(error, request)
            refused = {"step": form.text("step"), "detail": say_here(failure.detail)}
            return await _show(request, name, form, failure.status, refused=refused)
    return go_on(request, link("programs", name, "settings"), said)


def look_at_settings(program: Program) -> dict[str, Any]:
    """All settings, and the rounds whose list can still be taken back."""
    config = program.config
    groups = list(program.projection.groups)
    policies = {"policy": name_policy(config.policy), "shadow": name_policy(config.shadow) if config.shadow else None}
    fixed = ("states", "rewards", "control", "horizon", "seed", "template")
    return {
        "program": head(program),
        **{name: getattr(config, name) for name in NUMBERS},
        "shares": dict(config.shares),
        "groups": groups[:SHOWN_GROUPS],
        "fixed": {name: getattr(config, name) for name in fixed} | policies | {"pseudonyms": bool(config.pseudonyms)},
        "created": program.created,
        "rounds": [_offer(line) for line in reversed(program.rounds) if _is_open(line)][:OFFERED],
        "key": make_key(),
    }


def take_step(program: Program, form: Form, context: RequestContext) -> str:
    """Do what the form asks for; what to say of it."""
    step = STEPS[form.text("step")]
    try:
        answer = step.do(program, form, context)
    except Repeated as done:
        answer = done.answer
    return step.say(answer, form, program.config)


def change_config(program: Program, form: Form, context: RequestContext) -> dict[str, Any]:
    """Set what differs from what is set now."""
    config = program.config
    wanted: dict[str, Any] = {name: read_whole(form.text(name)) for name in NUMBERS}
    wanted["shares"] = form.shares("shares")
    settings = {name: value for name, value in wanted.items() if value != getattr(config, name)}
    return {"config": program.change(**(settings or wanted), context=context).as_json()}


def cancel_round(program: Program, form: Form, context: RequestContext) -> dict[str, Any]:
    """Take a list back, once it is confirmed."""
    number = check_whole("round", read_whole(form.text("round")), 1)
    if not form.ticked("sure"):
        raise Question("cancel", round=number, listed=program.cancel(number, dry_run=True))
    return {"listed": program.cancel(number, context=context)}


def take_out(program: Program, form: Form, context: RequestContext) -> dict[str, Any]:
    """Take people out who left."""
    if not form.lines("agents"):
        raise InputError("There is nobody in the list; write an id on each line.")
    return {"count": program.leave(form.lines("agents"), context=context)}


def forget_name(program: Program, form: Form, context: RequestContext) -> dict[str, Any]:
    """Erase a name, once it was typed twice."""
    agent = form.text("agent")
    if not agent:
        raise InputError("Type the id of whom to forget.")
    if "again" not in form.fields:
        program.erase([agent], dry_run=True)
        raise Question("erase", agent=agent)
    if form.text("again") != agent:
        raise InputError("The two ids are not the same; nobody was erased.")
    return {"count": program.erase([agent], context=context)}


STEPS = {
    "change": Step("admin", change_config, lambda *_: "The settings are changed, from the next round on."),
    "cancel": Step(
        "operator",
        cancel_round,
        lambda answer, form, config: (
            f"Round {form.text('round')} is cancelled; {count(answer['listed'], config.words)} were on its list."
        ),
    ),
    "leave": Step("operator", take_out, lambda answer, _, config: f"{count(answer['count'], config.words)} taken out."),
    "erase": Step(
        "admin",
        forget_name,
        lambda answer, _, config: (
            f"{count(answer['count'], config.words)} erased. Lists that were saved as files are yours to delete."
        ),
    ),
}


async def _show(request: Request, name: str, form: Form, status: int, **more: Any) -> Response:
    """The page with a question or a refusal at its place; what was typed is kept."""
    data = await ask(request, name, look_at_settings)
    return await render_aside(request, "changing.html", data, status, typed=form.fields, **more)


def _is_open(line: RoundTotals) -> bool:
    """Whether nothing came of the round yet, so that it may have been a mistake."""
    return not (line.cancelled or line.outcomes or line.done)


def _offer(line: RoundTotals) -> dict[str, Any]:
    return {"round": line.round, "at": line.at, "listed": line.advised, "decided": line.decided >= 0}
