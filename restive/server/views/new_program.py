"""Making a program by form: choose a template, look over what it sets, change what is different here.

Every field is checked by the desk on its own, so that all that is wrong is said at once, each at its place. Policies
are chosen from those there are: one in a file would be code of the machine that the server runs on.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response

from restive.desk.audit import Repeated, RequestContext
from restive.desk.config import WORDS, Config, Words, check_name
from restive.desk.desk import Desk, from_template, make_config
from restive.desk.templates import TEMPLATES, Template
from restive.errors import Conflict, InputError, NotFound
from restive.policies import POLICIES
from restive.policies.base import Learner
from restive.server.errors import MAX_SENTENCE, describe
from restive.server.hiding import hide_folders
from restive.server.views.base import PageRoute, link, page, render_aside
from restive.server.views.forms import Admin, Form, go_on, make_key, read_decimal, read_whole, take_form

OWN = "own"  # instead of the name of a template
SPARE_ROWS, MAX_ROWS = 3, 30  # of states
WHOLE, DECIMAL = ("budget", "cool_down", "keep", "horizon", "seed"), ("control", "reward_range")
FIELDS = (*WHOLE, *DECIMAL, "shares", "policy", "shadow")
USUAL_STATES = ("low", "high")

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@page(router, "/new", "setting_up.html", role="admin")
async def show_form(request: Request, template: str = "") -> dict[str, Any]:
    """The templates to choose from, and the form of the one that was chosen."""
    if template and template != OWN and template not in TEMPLATES:
        raise NotFound("There is no such template; choose one of those on the page.")
    return describe_form(template)


@router.post("/new")
async def make_program(request: Request, principal: Admin) -> Response:
    """Make the program, or say at each field what is wrong with it."""
    async with take_form(request) as form:
        run, template = request.app.state.programs.run, form.text("template")
        known = template if template in TEMPLATES else OWN
        wrong, status = await run(check_fields, form), 422
        if not wrong:
            context = RequestContext(
                by=principal.signature, key=form.text("key") or None, asked=await run(form.seal_all)
            )
            try:
                name = await run(create, request.app.state.desk, form, known, context)
                return go_on(request, link("programs", name, "states"), f"{name} is ready. Bring the first states.")
            except InputError as error:
                failure = describe(error, request)
                wrong, status = {_find_field(error): failure.detail}, failure.status
        more = {"typed": form.fields, "wrong": wrong}
        return await render_aside(request, "setting_up.html", describe_form(known), status, **more)


def describe_form(template: str) -> dict[str, Any]:
    """What the page shows: templates to choose from, or what the form of one is filled with."""
    listed = [_tell(each) for each in TEMPLATES.values()]
    if not template:
        return {"templates": listed, "template": None, "settings": None}
    chosen = TEMPLATES.get(template)
    given: Mapping[str, Any] = {} if chosen is None else from_template(template)
    config = Config.from_json({"states": USUAL_STATES, "rewards": (0.0, 1.0)} | dict(given) | {"template": None})
    settings = asdict(config) | {"shares": dict(config.shares)}
    signs = [] if chosen is None else list(chosen.signs)
    return {
        "templates": listed,
        "template": {"name": OWN, "title": "A program of your own"} if chosen is None else _tell(chosen),
        "settings": settings | {"signs": signs, "groups": [] if chosen is None else list(chosen.groups)},
        "policies": [{"name": name, "about": _about(name)} for name in learners()],
        "rows": min(len(config.states) + SPARE_ROWS, MAX_ROWS),
        "key": make_key(),
    }


def learners() -> list[str]:
    """The policies that can run a program."""
    return [name for name, kind in POLICIES.items() if issubclass(kind, Learner)]


def check_fields(form: Form) -> dict[str, str]:
    """What is wrong, by field; the desk is asked about each of them alone, with the states that go with it."""
    wrong: dict[str, str] = {}
    states = _read_states(form)
    _try(wrong, "name", lambda: check_name(form.text("name")))
    if not _try(wrong, "states", lambda: make_config("x", **states)):
        states = {"states": USUAL_STATES, "rewards": None}
    for name in FIELDS:
        _try(wrong, name, partial(_check_one, form, name, states, alone="horizon" in wrong))
    for name in WORDS:
        _try(wrong, f"word-{name}", partial(_read_word, form, name))
    return wrong


def _check_one(form: Form, name: str, states: Mapping[str, Any], alone: bool) -> None:
    """Let the desk make a config with one setting; some policies want to know how many rounds there are."""
    planned = _read(form, "horizon") if name in ("policy", "shadow") and not alone else {}
    make_config("x", **{**states, **planned, **_read(form, name)})


def create(desk: Desk, form: Form, template: str, context: RequestContext) -> str:
    """Make the program of a form; its name."""
    name, chosen = form.text("name"), None if template == OWN else template
    settings = _read_states(form) | {"words": {word: _read_word(form, word) for word in WORDS}}
    for field in FIELDS:
        settings |= _read(form, field)
    config = make_config(name, chosen, **settings)
    with suppress(Repeated):
        desk.create(name, config, pseudonyms=form.ticked("pseudonyms"), context=context)
    return name


def _try(wrong: dict[str, str], field: str, check: Callable[[], object]) -> bool:
    """Ask the desk; what it refuses is said at the field."""
    try:
        check()
    except InputError as error:
        wrong[field] = hide_folders(str(error)[:MAX_SENTENCE])
        return False
    return True


def _read_states(form: Form) -> dict[str, Any]:
    """The states that are filled in, with what each is worth, or None where rewards are reported."""
    rows = [(form.text(f"state-{place}"), form.text(f"worth-{place}")) for place in range(MAX_ROWS)]
    filled = [(state, worth) for state, worth in rows if state or worth]
    rewards = None if form.ticked("reported") else [read_decimal(worth) for _, worth in filled]
    return {"states": [state for state, _ in filled], "rewards": rewards}


def _read(form: Form, name: str) -> dict[str, Any]:
    """A setting as the desk takes it; what is left empty is left to the desk."""
    if name == "shares":
        return {name: form.shares(name)}
    text = form.text(name)
    if not text:
        return {"horizon": None} if name == "horizon" else {}
    if name in ("policy", "shadow") and text not in learners():
        raise InputError(f"{name} is {text!r}; choose one of {', '.join(learners())}.")
    return {name: read_whole(text) if name in WHOLE else read_decimal(text) if name in DECIMAL else text}


def _read_word(form: Form, name: str) -> str:
    """A word of the program's own, or the usual one."""
    word = form.text(f"word-{name}") or getattr(Words(), name)
    if len(word) > 60 or not word.isprintable():
        raise InputError("a word has at most 60 characters, all on one line.")
    return str(word)


def _find_field(error: InputError) -> str:
    """At which field a refusal of the whole form is shown."""
    return "name" if isinstance(error, Conflict) else "form"


def _tell(template: Template) -> dict[str, Any]:
    reported = ("name", "title", "about", "people", "person", "action", "every")
    return {name: getattr(template, name) for name in reported} | {"states": list(template.states)}


def _about(name: str) -> str:
    """The first sentence about a policy."""
    return (POLICIES[name].__doc__ or "").strip().partition("\n")[0]
