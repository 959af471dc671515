"""Routes that belong to no program: health, metrics, the token, templates and policies."""

import inspect
from dataclasses import MISSING, Field, fields

from fastapi import Request, Response
from starlette.datastructures import State
from starlette.exceptions import HTTPException

from restive.api import types
from restive.desk.config import TEMPLATES
from restive.desk.tokens import LOCAL, Principal
from restive.policies import POLICIES
from restive.policies.base import Learner
from restive.server.monitoring import Metrics
from restive.server.openapi import file_response
from restive.server.program_gauges import ProgramGauges
from restive.server.routes.deps import NO_QUERY, Viewer, get_programs, json_response, make_router
from restive.server.workers import Worker, merge_metrics
from restive.version import __version__

server = make_router("server", prefix="")
router = make_router("store")
READY_TIMEOUT_SECONDS = 3.0


@server.get("/health", response_model=types.Health, summary="Health of the server")
async def health() -> Response:
    """Answers as long as the server runs, even if its store is unavailable."""
    return json_response({"status": "ok", "version": __version__})


@server.get("/ready", response_model=types.Health, summary="Readiness of the server")
async def ready(request: Request) -> Response:
    """Answers if the store is available and the kernels are compiled; otherwise 503."""
    programs = get_programs(request)
    await programs.reach_store(READY_TIMEOUT_SECONDS)
    worker: Worker | None = request.app.state.worker
    if not programs.warm_up.done or not (worker is None or worker.all_ready):
        request.state.busy = True  # the store has not failed
        raise HTTPException(503, "Warming up: kernels are being compiled.", {"Retry-After": "5"})
    return json_response({"status": "ok", "version": __version__})


@server.get(
    "/metrics",
    summary="Metrics for Prometheus",
    response_class=Response,
    responses=file_response(Metrics.media_type),
    dependencies=NO_QUERY,
)
async def metrics(request: Request, principal: Viewer) -> Response:
    """Requests, durations, and the programs that the token gives access to; any token is sufficient."""
    text = await render_metrics(request.app.state, principal)
    worker: Worker | None = request.app.state.worker
    if worker is not None:
        texts = {worker.index: text, **await worker.ask_others()}
        text = merge_metrics(texts.items(), lambda program: not program or principal.sees(program))
    return Response(text, media_type=Metrics.media_type)


async def render_metrics(state: State, principal: Principal = LOCAL) -> bytes:
    """The metrics of this process, with those of its programs that somebody sees."""
    metrics: Metrics = state.metrics
    gauges: ProgramGauges = state.gauges
    return metrics.render() + await gauges.render(principal)


@router.get("/me", response_model=types.Me, summary="The token", dependencies=NO_QUERY)
async def me(principal: Viewer) -> Response:
    """The owner and the roles of the token."""
    grants = [{"program": program, "role": role} for program, role in principal.grants.items()]
    return json_response({"id": principal.id, "name": principal.name, "grants": grants, "version": __version__})


@router.get("/templates", response_model=types.Page[types.Template], summary="List templates", dependencies=NO_QUERY)
async def templates(principal: Viewer) -> Response:
    """The application domains that a program can be created from."""
    return json_response({"items": [*TEMPLATES.values()], "next": None})


@router.get("/policies", response_model=types.Page[types.PolicyInfo], summary="List policies", dependencies=NO_QUERY)
async def policies(principal: Viewer) -> Response:
    """The policies that a program can use, with their settings."""
    return json_response({"items": list_policies(), "next": None})


def list_policies() -> list[types.PolicyInfo]:
    """Every learner; an oracle needs to know the model, which a real program does not have."""
    return [
        {
            "name": name,
            "about": (inspect.getdoc(policy) or "").partition("\n\n")[0].replace("\n", " "),
            "settings": [_describe_setting(each) for each in fields(policy)],
        }
        for name, policy in POLICIES.items()
        if issubclass(policy, Learner)
    ]


def _describe_setting(setting: "Field[object]") -> types.PolicySetting:
    default = None if setting.default is MISSING else setting.default
    return {"name": setting.name, "default": default}  # type: ignore[typeddict-item]
