"""Status of a program (what to do next, lift, rewards by round, effect by state) and comparison with its shadow."""

from fastapi import Depends
from fastapi.responses import RedirectResponse

from restive.desk.program import Program
from restive.desk.status import MAX_SHADOW_ROUNDS, as_plain, compare_shadow, get_status
from restive.server.auth import need_session
from restive.server.views.base import Data, Query, link, program_page, router
from restive.server.views.filters import describe_curve
from restive.server.views.settings import offer_undo

# The page on which to do what a verb of the desk does.
PAGE_OF_VERB: dict[str | None, str] = {"learn": "outcomes", "decide": "states"}
# Replaced by the page's own fields.
OMITTED = ("steps", "name", "words", "policy", "shadow_policy")


@router.get("/programs/{name}", dependencies=[Depends(need_session("viewer"))])
def redirect_to_status(name: str) -> RedirectResponse:
    """Redirect a program's own URL to its status."""
    return RedirectResponse(link("programs", name, "status"), 303)


@program_page("status", "status.html")
def build_status(program: Program, _: Query) -> Data:
    """The desk's status in plain data, with pages for the next steps."""
    status = get_status(program)
    fields = {key: value for key, value in status.items() if key not in OMITTED}
    curve = status["curve"]
    return {
        **fields,
        "budget": program.config.budget,
        **offer_undo(program),
        "steps": [
            {"sentence": step["message"], "page": PAGE_OF_VERB.get(step["verb"]), "round": step["round"]}
            for step in status["steps"]
        ],
        "courses": {name: describe_curve(curve, name) for name in ("treated", "control", "lift")} if curve else None,
    }


@program_page("shadow", "shadow.html")
def build_shadow(program: Program, _: Query) -> Data:
    """The comparison in plain data; None without a shadow, or if there is nothing to compare yet."""
    found = compare_shadow(program) if program.config.shadow else None
    return {
        "over": min(MAX_SHADOW_ROUNDS, len(program.rounds)),
        "comparison": as_plain(found),
    }
