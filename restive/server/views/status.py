"""A program at a glance: what to do next, whether it works, who is in, what was learned."""

from typing import Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse

from restive.desk.overview import look_at
from restive.desk.program import Program
from restive.server.auth import need_session
from restive.server.views.asking import ask, head
from restive.server.views.base import PageRoute, link, page
from restive.server.views.charts import say_course

router = APIRouter(route_class=PageRoute, include_in_schema=False)
# The page on which to do what a verb of the desk does.
PLACES: dict[str | None, str] = {"learn": "outcomes", "decide": "states"}
# Of no use to a browser, or not its business: where the store is on its machine.
UNSAID = ("steps", "name", "words", "policy", "shadow_policy")


@page(router, "/programs/{name}/status", "status.html")
async def status(request: Request, name: str) -> dict[str, Any]:
    """The page of a program."""
    return await ask(request, name, glance)


@router.get("/programs/{name}", dependencies=[Depends(need_session("viewer"))])
def begin(name: str) -> RedirectResponse:
    """The program itself: at a glance."""
    return RedirectResponse(link("programs", name, "status"), 303)


def glance(program: Program) -> dict[str, Any]:
    """All that the desk says of a program, in plain data."""
    seen = look_at(program)
    found = seen.as_json()
    said = {key: value for key, value in found.items() if key not in UNSAID}
    curve = found["curve"]
    return {
        "program": head(program),
        **said,
        "budget": program.config.budget,
        "steps": [
            {"sentence": step.sentence, "page": PLACES.get(step.verb), "round": step.round} for step in seen.steps
        ],
        "courses": {name: say_course(curve, name) for name in ("treated", "control", "lift")} if curve else None,
    }
