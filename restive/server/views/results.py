"""Results of a program: lift, states and rewards by round, groups, shadow, people never reached, the report, and files."""

import numpy as np
from fastapi import Depends, Request, Response

from restive.desk.program import Program
from restive.desk.report import make_report, render_body
from restive.desk.results import describe_unreached, find_unreached, get_results
from restive.desk.status import MAX_SHADOW_ROUNDS, as_plain, compare_shadow, get_status
from restive.server.auth import need_session
from restive.server.downloads import make_table_sheet, send_sheet
from restive.server.views.base import NO_STORE, Data, Query, ask, paginate, program_page, router
from restive.server.views.filters import describe_curve

# Replaced by the page's own fields, or on the page of the status.
OMITTED = ("steps", "drift", "name", "words", "policy", "shadow_policy")
PEOPLE_PER_PAGE = 100


@program_page("results", "results.html")
def build_results(program: Program, _: Query) -> Data:
    """What the desk knows about the effect, states by round and groups, in plain data, and its curves in words."""
    status, results = get_status(program), get_results(program)
    curve = status["curve"]
    return {
        **{key: value for key, value in status.items() if key not in OMITTED},
        **{key: results[key] for key in ("states", "groups", "groups_note", "reach")},
        "round_states": results["rounds"],
        "courses": {name: describe_curve(curve, name, status["rounds"]) for name in ("treated", "control", "lift")}
        if curve
        else None,
    }


@program_page("shadow", "shadow.html")
def build_shadow(program: Program, _: Query) -> Data:
    """The comparison in plain data; None without a shadow, or if there is nothing to compare yet."""
    found = compare_shadow(program) if program.config.shadow else None
    return {
        "over": min(MAX_SHADOW_ROUNDS, len(program.rounds)),
        "comparison": as_plain(found),
    }


@program_page("unreached", "unreached.html")
def build_unreached(program: Program, query: Query) -> Data:
    """People for whom the action was never done, the longest in the program first."""
    numbers = find_unreached(program)
    numbers = numbers[np.argsort(-program.projection.agents.present[numbers], kind="stable")]
    part = paginate(query.number("page"), numbers.size, PEOPLE_PER_PAGE)
    return {
        "part": part._asdict(),
        "people": describe_unreached(program, numbers[part.rows]),
        "reach": get_results(program)["reach"],
    }


@program_page("report", "report.html")
def build_report(program: Program, _: Query) -> Data:
    """The report for a funder, in plain data and as HTML."""
    report = make_report(program)
    return {"report": report, "html": render_body(report)}


@router.get("/programs/{name}/tables/audit.{kind}", dependencies=[Depends(need_session("admin"))])
async def download_audit(request: Request, name: str, kind: str) -> Response:
    """The audit log as a file."""
    return await _download(request, name, "audit", kind)


@router.get("/programs/{name}/tables/{table}.{kind}", dependencies=[Depends(need_session("viewer"))])
async def download_table(request: Request, name: str, table: str, kind: str) -> Response:
    """A table of a program as a file."""
    return await _download(request, name, table, kind)


async def _download(request: Request, name: str, table: str, kind: str) -> Response:
    response = await send_sheet(request, await ask(request, name, make_table_sheet, table, kind))
    response.headers["Cache-Control"] = f"private, {NO_STORE}"
    return response
