"""Status of a program: what to do next, whether it works in a sentence, and its main figures."""

from fastapi import Depends, Request, Response
from fastapi.responses import RedirectResponse

from restive.desk.program import Program
from restive.desk.status import get_progress
from restive.server.addresses import link
from restive.server.auth import need_session
from restive.server.downloads import make_calendar_response
from restive.server.views.base import Data, Query, ask, program_page, router
from restive.server.views.settings import offer_undo

# The page on which to do what a verb of the desk does; where states are outcomes, only the list is reported.
PAGE_OF_VERB: dict[str | None, str] = {"learn": "outcomes", "decide": "states"}
# Replaced by the page's own fields.
OMITTED = ("steps", "name", "words", "policy", "shadow_policy")


@router.get("/programs/{name}", dependencies=[Depends(need_session("viewer"))])
def redirect_to_status(name: str) -> RedirectResponse:
    """Redirect a program's own URL to its status."""
    return RedirectResponse(link("programs", name, "status"), 303)


@router.get("/programs/{name}/calendar.ics", dependencies=[Depends(need_session("viewer"))])
async def send_calendar(request: Request, name: str) -> Response:
    """The due dates of lists as a file for a calendar app."""
    return await ask(request, name, make_calendar_response)


@program_page("status", "status.html")
def build_status(program: Program, _: Query) -> Data:
    """The progress of a program in plain data, with pages for the next steps."""
    status = get_progress(program)
    fields = {key: value for key, value in status.items() if key not in OMITTED}
    weekly = program.config.states_are_outcomes and program.config.rewards is not None
    pages = PAGE_OF_VERB | ({"learn": "list"} if weekly else {})
    return {
        **fields,
        "budget": program.config.budget,
        **offer_undo(program),
        "steps": [
            {"sentence": step["message"], "page": pages.get(step["verb"]), "round": step["round"]}
            for step in status["steps"]
        ],
    }
