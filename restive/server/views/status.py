"""Status of a program (what to do next, lift, rewards by round, benefit by state) and comparison with its shadow."""

from typing import Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse

from restive.desk.program import Program
from restive.desk.status import MAX_SHADOW_ROUNDS, as_plain, compare_shadow, get_status
from restive.server.auth import need_session
from restive.server.views.base import PageRoute, ask, head, link, page
from restive.server.views.charts import describe_curve

# The page on which to do what a verb of the desk does.
PAGE_OF_VERB: dict[str | None, str] = {"learn": "outcomes", "decide": "states"}
# Replaced by the page's own fields.
OMITTED = ("steps", "name", "words", "policy", "shadow_policy")

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@page(router, "/programs/{name}/status", "status.html")
async def show_status(request: Request, name: str) -> dict[str, Any]:
    """The status of a program."""
    return await ask(request, name, build_status)


@page(router, "/programs/{name}/shadow", "shadow.html")
async def show_shadow(request: Request, name: str) -> dict[str, Any]:
    """The comparison of the policy with its shadow."""
    return await ask(request, name, build_shadow)


@router.get("/programs/{name}", dependencies=[Depends(need_session("viewer"))])
def redirect_to_status(name: str) -> RedirectResponse:
    """Redirect a program's own URL to its status."""
    return RedirectResponse(link("programs", name, "status"), 303)


def build_status(program: Program) -> dict[str, Any]:
    """The desk's status in plain data, with pages for the next steps."""
    status = get_status(program)
    fields = {key: value for key, value in status.items() if key not in OMITTED}
    curve = status["curve"]
    return {
        "program": head(program),
        **fields,
        "budget": program.config.budget,
        "steps": [
            {"sentence": step["message"], "page": PAGE_OF_VERB.get(step["verb"]), "round": step["round"]}
            for step in status["steps"]
        ],
        "courses": {name: describe_curve(curve, name) for name in ("treated", "control", "lift")} if curve else None,
    }


def build_shadow(program: Program) -> dict[str, Any]:
    """The comparison in plain data; None without a shadow, or if there is nothing to compare yet."""
    found = compare_shadow(program) if program.config.shadow else None
    return {
        "program": head(program),
        "over": min(MAX_SHADOW_ROUNDS, len(program.rounds)),
        "comparison": as_plain(found),
    }
