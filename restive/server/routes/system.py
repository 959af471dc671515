"""What belongs to no program: the server itself, who asks, what a program can be made of, and the store's audit."""

import inspect
from dataclasses import MISSING, asdict, fields
from typing import Annotated, Any

from fastapi import Query, Request, Response

from restive.api import types
from restive.desk.audit import AuditRow
from restive.desk.templates import TEMPLATES
from restive.policies import POLICIES
from restive.policies.base import Learner
from restive.server.hiding import hide_configs
from restive.server.metrics import Metrics
from restive.server.queries import Back
from restive.server.routes.deps import Admin, Viewer, find_programs, follow, make_router, send
from restive.server.routes.describing import answers_file
from restive.version import __version__

server = make_router("server", prefix="")
router = make_router("store")
PATIENCE = 3.0  # seconds for the store to say that it is there


@server.get("/health", response_model=types.Health, summary="Whether the server is there")
async def health() -> Response:
    """Answers as long as the server runs, whatever its store does."""
    return send({"status": "ok", "version": __version__})


@server.get("/ready", response_model=types.Health, summary="Whether the server can work")
async def ready(request: Request) -> Response:
    """Answers when the store does; 503 when it does not."""
    await find_programs(request).reach_store(PATIENCE)
    return send({"status": "ok", "version": __version__})


@server.get(
    "/metrics", summary="Counts for Prometheus", response_class=Response, responses=answers_file(Metrics.media_type)
)
async def metrics(request: Request, principal: Viewer) -> Response:
    """Requests, rounds decided, outcomes recorded and times; any token will do."""
    found: Metrics = request.app.state.metrics
    return Response(found.render(), media_type=Metrics.media_type)


@router.get("/me", response_model=types.Me, summary="Who I am")
async def me(principal: Viewer) -> Response:
    """Whom the token belongs to, and what it allows."""
    grants = [{"program": program, "role": role} for program, role in principal.grants.items()]
    return send({"id": principal.id, "name": principal.name, "grants": grants, "version": __version__})


@router.get("/templates", response_model=types.Page[types.Template], summary="Templates")
async def templates(principal: Viewer) -> Response:
    """The application domains that a program can start from."""
    return send({"items": [asdict(template) for template in TEMPLATES.values()], "next": None})


@router.get("/policies", response_model=types.Page[types.PolicyInfo], summary="Policies")
async def policies(principal: Viewer) -> Response:
    """The policies that a program can decide by, with their settings."""
    return send({"items": list_policies(), "next": None})


def list_policies() -> list[dict[str, Any]]:
    """Every learner with its settings; policies that must know how people move cannot decide for real ones."""
    return [
        {"name": name, "about": _about(policy), "settings": [_setting(each) for each in fields(policy)]}
        for name, policy in POLICIES.items()
        if issubclass(policy, Learner)
    ]


def _about(policy: type) -> str:
    return (inspect.getdoc(policy) or "").partition("\n\n")[0].replace("\n", " ")


def _setting(each: Any) -> dict[str, Any]:
    return {"name": each.name, "default": None if each.default is MISSING else each.default}


@router.get("/audit", response_model=types.Page[types.AuditEntry], summary="Audit of the store")
async def store_audit(request: Request, principal: Admin, page: Annotated[Back, Query()]) -> Response:
    """Who did what, in all programs and to the store itself, the newest first."""
    store = request.app.state.desk.store
    return send_audit_entries(
        request, await find_programs(request).run(store.audit_log, None, page.before, page.limit), page
    )


def send_audit_entries(request: Request, audit_log: list[AuditRow], page: Back) -> Response:
    """A page of audit_log."""
    more = len(audit_log) == page.limit and audit_log[-1].number > 1
    items = [hide_configs(context._asdict()) for context in audit_log]
    return send({"items": items, "next": follow(request, before=audit_log[-1].number) if more else None})
