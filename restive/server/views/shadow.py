"""The shadow against the policy: would another policy have done better."""

from typing import Any

from fastapi import APIRouter, Request

from restive.desk.overview import SHADOWED, compare_shadow
from restive.desk.program import Program
from restive.server.views.asking import ask, head
from restive.server.views.base import PageRoute, page
from restive.server.views.rounds import finite

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@page(router, "/programs/{name}/shadow", "shadow.html")
async def shadow(request: Request, name: str) -> dict[str, Any]:
    """The comparison."""
    return await ask(request, name, compare)


def compare(program: Program) -> dict[str, Any]:
    """The comparison in plain data; None where there is no shadow, or nothing to compare yet."""
    found = compare_shadow(program) if program.config.shadow else None
    said = None if found is None else found._asdict()
    plain = said and {name: finite(value) if isinstance(value, float) else value for name, value in said.items()}
    return {"program": head(program), "over": min(SHADOWED, len(program.rounds)), "comparison": plain}
