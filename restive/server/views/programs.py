"""Pages of the whole server: sign-in, the programs that a user may see, the glossary, and the form for a new program.

The form of a program has two steps: choose a template, then change its settings. The desk checks each field by itself,
so that the page shows all errors at once, each at its field. Only built-in policies can be chosen: a policy in a file
would be code that runs on the server.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from itertools import count
from typing import Any

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from restive.api.types import ProgramSummary, Template
from restive.desk.audit import Repeated, RequestContext
from restive.desk.config import CALENDAR, TEMPLATES, WORDS, Config, Words, check_name, policy_label
from restive.desk.config_advice import describe_control, find_doubts
from restive.desk.demo import run_demo
from restive.desk.desk import Desk, from_template, make_config
from restive.desk.features import parse_features
from restive.desk.schedule import WEEK, find_local_timezone
from restive.desk.tokens import INVITATION
from restive.errors import Conflict, InputError, NotFound
from restive.policies import POLICIES
from restive.policies.base import Learner
from restive.problem import AT_MOST, EXACTLY
from restive.server.addresses import at_root, link
from restive.server.auth import find_signed_in, local_path, sign_in, sign_out
from restive.server.errors import MAX_MESSAGE, describe
from restive.server.views.base import (
    Data,
    page,
    paginate,
    read_glossary,
    read_number,
    render,
    render_in_thread,
    router,
)
from restive.server.views.forms import Admin, Form, make_key, read_decimal, read_whole, redirect, take_form
from restive.server.views.history import find_result

CARDS_PER_PAGE = 24
OWN, DEMO = "own", "demo"  # instead of the name of a template; the name of a program with simulated people
EMPTY_ROWS, MAX_ROWS = 3, 30  # of states
MAX_WORD = 60  # characters
WHOLE = ("budget", "cool_down", "keep", "horizon", "seed", "control_until")
DECIMAL = ("control", "reward_range")
FIELDS = (
    *DECIMAL,
    *WHOLE,
    "spend",
    "cost_unit",
    "shares",
    "display",
    "features",
    "policy",
    "shadow",
    "title",
    *CALENDAR,
)
MAX_DERIVED = 50  # characters of a name that is made from a title
TEMPLATE_FIELDS = ("name", "title", "about", "people", "person", "action", "every", "states")
NEEDED = {"policy": "horizon", "shadow": "horizon", "control_until": "control"}
DEFAULT_STATES = ("low", "high")
# What each policy does, for people who have not heard of it.
PLAIN_WORDS = {
    "random": "chooses at random. What a program without a method would do.",
    "egt": "prefers people for whom the action helped most so far, and tries others less and less often.",
    "wiql": "learns about each person alone. It needs many rounds.",
    "ucwhittle": "gives people of whom little is known the benefit of the doubt.",
    "rma2b": "tries the action on everybody for some rounds, then follows a plan.",
    "thompson-whittle": "draws a plausible model of people from time to time, and plans by it.",
    "cet-whittle": "plans by the best estimate so far, and never tries anything out.",
    "lagrange": "learns from people who are alike, and counts what an action brings now and later. The usual choice.",
    "lp-update": "makes a new plan in each round from the best estimate, and never tries anything out.",
    "bcor-like": "predicts people from their features, such as age or region. For programs with features.",
}
WRONG_TOKEN = "This token is not valid. It may be mistyped, expired or revoked. Ask the person who gave it to you."
WRONG_LINK = "This link is not valid. It works once; it may be used, expired or replaced. Ask for a new one."
# The address has the code: own pages that this one leads to get the host only, and a post still has its Origin.
NO_CODE_IN_REFERER = {"Referrer-Policy": "strict-origin"}


@router.get("/login")
async def show_sign_in(request: Request, next: str = "/") -> Response:
    """The sign-in form; a user who is signed in already is redirected."""
    if await find_signed_in(request) is not None:
        return RedirectResponse(at_root(local_path(next)), 303)
    return render(request, "login.html", {"next": local_path(next)}, lasts=describe_session(request))


@router.post("/login")
async def take_token(request: Request) -> Response:
    """Sign in, and redirect to the page that was asked for; who has one program only starts there."""
    async with take_form(request) as form:
        target = local_path(form.text("next"))
        response = RedirectResponse(at_root(target), 303)
        principal = await sign_in(request, response, form.text("token"))
        if principal is not None:
            (only,) = principal.grants if len(principal.grants) == 1 else (None,)
            if target == "/" and only is not None:
                response.headers["location"] = link("programs", only, "status")
            return response
        refused = WRONG_LINK if form.text("token").startswith("rsi_") else WRONG_TOKEN
        lasts = describe_session(request)
        return render(request, "login.html", {"next": target}, 401, refused=refused, lasts=lasts)


def describe_session(request: Request) -> str:
    """How long a sign-in lasts."""
    days: float = request.app.state.settings.session_days
    number, unit = (days, "day") if days >= 1 else (days * 24, "hour")
    return f"{number:.3g} {unit}{'' if number == 1 else 's'}"


@router.get("/join")
async def show_invitation(request: Request, code: str = "") -> Response:
    """The page of an invitation; a post signs in, so that a preview of the link in a messenger does not use it up."""
    shown = code if INVITATION.fullmatch(code) else ""
    return render(request, "join.html", {"code": shown}, headers=NO_CODE_IN_REFERER)


@router.post("/logout")
async def log_out(request: Request) -> Response:
    """Sign out."""
    response = RedirectResponse(link("login"), 303)
    await sign_out(request, response)
    return response


@page("/", "programs.html")
async def show_programs(request: Request, page: str = "", archived: str = "") -> Data:
    """The programs, oldest first; those that are archived are on a page of their own."""
    pool, principal = request.app.state.programs, request.state.principal
    rows = [row for row in await pool.run(pool.desk.store.programs) if principal.sees(row.name)]
    visible = [row.name for row in rows if bool(row.archived) == bool(archived)]
    n_archived = sum(row.archived is not None for row in rows)
    part = paginate(read_number(page, "page"), len(visible), CARDS_PER_PAGE)
    cards = [describe_program(await pool.summarize(name, request)) for name in visible[part.rows]]
    return {"part": part._asdict(), "programs": cards, "archived": bool(archived), "n_archived": n_archived}


@router.post("/demo")
async def create_demo(request: Request, principal: Admin) -> Response:
    """Create a program with simulated people, and show its status."""
    programs = request.app.state.programs
    taken = {row.name for row in await programs.run(programs.desk.store.programs)}
    name = next(name for number in count(1) if (name := DEMO if number == 1 else f"{DEMO}-{number}") not in taken)
    desk: Desk = request.app.state.desk
    await programs.record(run_demo, desk.with_clock(desk.store.clock, by=principal.signature), name)
    return redirect(
        request, link("programs", name, "status"), "These people are simulated: look around and try things."
    )


@page("/glossary", "glossary.html")
async def show_glossary() -> Data:
    """All terms in alphabetical order."""
    entries = sorted(read_glossary().items(), key=lambda item: item[1].title)
    return {"glossary": {key: entry._asdict() for key, entry in entries}}


@page("/new", "new_program.html", role="admin")
async def show_form(request: Request, template: str = "", history: str = "") -> Data:
    """The templates, or the form of the chosen one; with a history, filled in from its report."""
    if template and template != OWN and template not in TEMPLATES:
        raise NotFound("There is no such template.")
    return describe_form(template, find_result(request, history) if history else None)


@router.post("/new")
async def create_program(request: Request, principal: Admin) -> Response:
    """Create the program, or show at each field what is wrong."""
    async with take_form(request) as form:
        programs, template = request.app.state.programs, form.text("template")
        known = template if template in TEMPLATES else OWN
        wrong, status = await programs.run(check_fields, form), 422
        doubts = [] if wrong or form.checked("sure") else await programs.run(find_form_doubts, form)
        if not wrong and not doubts:
            context = await form.context(principal)
            try:
                name = await programs.record(create, request.app.state.desk, form, known, context)
                message = f"{form.text('title') or name} is ready. Upload the first table."
                return redirect(request, link("programs", name, "states"), message)
            except InputError as error:
                failure = describe(error, request)
                wrong, status = {_find_field(error, form): failure["detail"]}, failure["status"]
        more = {"typed": form.fields, "wrong": wrong, "doubts": doubts}
        history = form.text("history")
        data = describe_form(known, find_result(request, history) if history else None)
        return await render_in_thread(request, "new_program.html", data, status, **more)


def describe_program(summary: ProgramSummary) -> Data:
    """A program's summary; why a program cannot be read is left out, because it may name files of the server."""
    fields = {name: value for name, value in summary.items() if name != "error"}
    template = TEMPLATES.get(summary["template"] or "") if summary["title"] else None
    return {
        **fields,
        "readable": summary["error"] is None,
        "policy": policy_label(summary["policy"]) if summary["policy"] else None,
        "title": summary["title"] or "",
        "own_title": bool(summary["title"]) and not (template and summary["title"] == template["title"]),
        "about": template["about"] if template else "",
    }


def describe_form(template: str, report: Mapping[str, Any] | None = None) -> Data:
    """The templates, and the settings that the form of the chosen one, or of a report, is filled with."""
    listed = [_describe_template(template) for template in TEMPLATES.values()]
    if not template:
        return {"templates": listed, "template": None, "settings": None}
    chosen = TEMPLATES.get(template)
    given: Mapping[str, Any] = {} if chosen is None else from_template(template)
    if report is not None:
        given = {**given, **{name: report[name] for name in ("states", "rewards", "budget", "features")}}
    config = Config.from_json({"states": DEFAULT_STATES, "rewards": (0.0, 1.0)} | dict(given) | {"template": None})
    settings = asdict(config) | {"shares": dict(config.shares), "timezone": find_local_timezone()}
    if chosen is None:
        settings["rhythm"] = WEEK
    signs = [] if chosen is None else chosen["signs"]
    return {
        "templates": listed,
        "template": {"name": OWN, "title": "A program of your own"} if chosen is None else _describe_template(chosen),
        "settings": settings | {"signs": signs, "groups": [] if chosen is None else chosen["groups"]},
        "policies": [{"name": name, "about": PLAIN_WORDS[name]} for name in learners()],
        "rows": min(len(config.states) + EMPTY_ROWS, MAX_ROWS),
        "key": make_key(),
        "history": None if report is None else {"id": report["id"], "name": report["name"]},
        "control_note": describe_control(config if chosen is None else replace(config, template=template)),
    }


def learners() -> list[str]:
    """The policies that can run a program."""
    return [name for name, kind in POLICIES.items() if issubclass(kind, Learner)]


def check_fields(form: Form) -> dict[str, str]:
    """The errors by field; the desk checks each field together with the states."""
    wrong: dict[str, str] = {}
    states = _read_states(form)
    _try(wrong, "name" if form.text("name") else "title", lambda: check_name(find_name(form)))
    if not _try(wrong, "states", lambda: make_config("x", **states)):
        states = {"states": DEFAULT_STATES, "rewards": None}
    for name in FIELDS:
        _try(wrong, name, partial(_check_one, form, name, states, wrong))
    for name in WORDS:
        _try(wrong, f"word-{name}", partial(_read_word, form, name))
    return wrong


def find_form_doubts(form: Form) -> list[str]:
    """What is allowed and probably not meant in a form without errors."""
    return find_doubts(make_config("x", **_read_states(form)))


def _check_one(form: Form, name: str, states: Mapping[str, Any], wrong: Mapping[str, str]) -> None:
    """Let the desk make a config with one setting, and with the one that it needs unless that is wrong itself."""
    needed = NEEDED.get(name)
    others = _read(form, needed) if needed and needed not in wrong else {}
    make_config("x", **{**states, **others, **_read(form, name)})


def create(desk: Desk, form: Form, template: str, context: RequestContext) -> str:
    """Create the program of a form; its name."""
    name, chosen = find_name(form), None if template == OWN else template
    settings = _read_states(form) | {"words": {word: _read_word(form, word) for word in WORDS}}
    for field in FIELDS:
        settings |= _read(form, field)
    if settings.get("title") == name:
        del settings["title"]
    config = make_config(name, chosen, **settings)
    with suppress(Repeated):
        desk.create(name, config, pseudonyms=form.checked("pseudonyms"), context=context)
    return name


def find_name(form: Form) -> str:
    """The technical name of a form: as given, or made from the title.

    >>> find_name(Form({"title": "Mothers in Thane, 2026"})), find_name(Form({"title": "x", "name": "calls"}))
    ('mothers-in-thane-2026', 'calls')
    """
    given, title = form.text("name"), form.text("title")
    if given or not title:
        return given
    with suppress(InputError):
        return check_name(title)
    return re.sub(r"[^\w.]+", "-", title.lower()).strip("-._")[:MAX_DERIVED].rstrip("-._") or "program"


def _try(wrong: dict[str, str], field: str, check: Callable[[], object]) -> bool:
    """Run a check; its error is shown at the field."""
    try:
        check()
    except InputError as error:
        wrong[field] = error.message[:MAX_MESSAGE]
        return False
    return True


def _read_states(form: Form) -> Data:
    """The states that are filled in with their rewards, or None if rewards are reported with outcomes."""
    rows = [(form.text(f"state-{index}"), form.text(f"reward-{index}")) for index in range(MAX_ROWS)]
    filled = [(state, reward) for state, reward in rows if state or reward]
    rewards = None if form.checked("reported") else [read_decimal(reward) for _, reward in filled]
    return {"states": [state for state, _ in filled], "rewards": rewards}


def _read(form: Form, name: str) -> Data:
    """A setting in the type that the desk expects; empty fields are left to the desk."""
    if name == "shares":
        return {name: form.shares(name)}
    if name == "display":
        return {name: form.lines(name)}
    if name == "features":
        return {name: parse_features(form.lines(name))}
    if name == "spend":
        return {name: AT_MOST if form.checked("at_most") else EXACTLY}
    text = form.text(name)
    if not text:
        return {"horizon": None} if name == "horizon" else {}
    if name in ("policy", "shadow") and text not in learners():
        raise InputError(f"{name} is {text!r}; choose one of {', '.join(learners())}.")
    if name == "control" and text.endswith("%"):
        share = read_decimal(text.removesuffix("%").strip())
        return {name: share / 100 if isinstance(share, float) else text}
    return {name: read_whole(text) if name in WHOLE else read_decimal(text) if name in DECIMAL else text}


def _read_word(form: Form, name: str) -> str:
    """A word of the program, or the default one."""
    word = form.text(f"word-{name}") or getattr(Words(), name)
    if len(word) > MAX_WORD or not word.isprintable():
        raise InputError(f"a word has at most {MAX_WORD} characters, all on one line.")
    return str(word)


def _find_field(error: InputError, form: Form) -> str:
    """The field at which an error of the whole form is shown."""
    return ("name" if form.text("name") else "title") if isinstance(error, Conflict) else "form"


def _describe_template(template: Template) -> Data:
    return {name: value for name, value in template.items() if name in TEMPLATE_FIELDS}
