"""The programs that somebody may see, each in short: where everything begins."""

from typing import Any

from fastapi import APIRouter, Request

from restive.api.types import ProgramSummary
from restive.desk.templates import TEMPLATES
from restive.server.hiding import name_policy
from restive.server.views.asking import read_number
from restive.server.views.base import PageRoute, page
from restive.server.views.paging import turn_to

router = APIRouter(route_class=PageRoute, include_in_schema=False)
CARDS = 24  # on one page


@page(router, "/", "programs.html")
async def programs(request: Request, page: str = "") -> dict[str, Any]:
    """The programs, the oldest first."""
    opened, principal = request.app.state.programs, request.state.principal
    rows = await opened.run(opened.desk.store.programs)
    seen = [row.name for row in rows if principal.sees(row.name)]
    part = turn_to(read_number(page, "page"), len(seen), CARDS)
    cards = [describe(await opened.summarise(name, request)) for name in seen[part.rows]]
    return {"part": part._asdict(), "programs": cards}


def describe(summary: ProgramSummary) -> dict[str, Any]:
    """A program in short; of one that cannot be read the reason stays here, as it may name files of this machine."""
    readable = summary["error"] is None
    template = TEMPLATES.get(summary["template"] or "") if summary["title"] else None
    return {
        **summary,
        "readable": readable,
        "policy": name_policy(summary["policy"]) if summary["policy"] else None,
        "title": template.title if template else "",
        "about": template.about if template else "",
    }
