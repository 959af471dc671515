"""Pages of the whole server: the programs that a user may see, and the glossary."""

from typing import Any

from fastapi import APIRouter, Request

from restive.api.types import ProgramSummary
from restive.desk.config import policy_label
from restive.desk.templates import TEMPLATES
from restive.server.views.base import PageRoute, page, paginate, read_number
from restive.server.views.glossary import read_glossary

CARDS_PER_PAGE = 24

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@page(router, "/", "programs.html")
async def show_programs(request: Request, page: str = "") -> dict[str, Any]:
    """The programs, oldest first."""
    pool, principal = request.app.state.programs, request.state.principal
    rows = await pool.run(pool.desk.store.programs)
    visible = [row.name for row in rows if principal.sees(row.name)]
    part = paginate(read_number(page, "page"), len(visible), CARDS_PER_PAGE)
    cards = [describe(await pool.summarize(name, request)) for name in visible[part.rows]]
    return {"part": part._asdict(), "programs": cards}


@page(router, "/glossary", "glossary.html")
async def show_glossary() -> dict[str, Any]:
    """All terms in alphabetical order."""
    entries = sorted(read_glossary().items(), key=lambda item: item[1].title)
    return {"glossary": {key: entry._asdict() for key, entry in entries}}


def describe(summary: ProgramSummary) -> dict[str, Any]:
    """A program's summary; why a program cannot be read is left out, because it may name files of the server."""
    fields = {name: value for name, value in summary.items() if name != "error"}
    template = TEMPLATES.get(summary["template"] or "") if summary["title"] else None
    return {
        **fields,
        "readable": summary["error"] is None,
        "policy": policy_label(summary["policy"]) if summary["policy"] else None,
        "title": template.title if template else "",
        "about": template.about if template else "",
    }
