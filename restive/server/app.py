"""The ASGI app: API routes, pages, middleware and error handlers over a desk.

`app.state` has the desk, the pool of programs, the settings and the sender of webhooks. An error on a page is shown as
a page; all other errors are problem documents (RFC 9457), including unknown paths and methods.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from restive.desk.desk import Desk
from restive.errors import InputError
from restive.server.addresses import check_root_path
from restive.server.errors import error_response, translate, wants_page
from restive.server.histories import HistoryReports
from restive.server.middleware import add_middleware
from restive.server.openapi import find_methods, make_document
from restive.server.openapi import router as document
from restive.server.program_gauges import ProgramGauges
from restive.server.program_pool import Programs
from restive.server.routes import ROUTERS
from restive.server.routes.webhooks import messages
from restive.server.settings import Settings
from restive.server.table_reader import SpareReader
from restive.server.views import router as pages
from restive.server.views import static_files
from restive.server.views.base import is_page, show_failure
from restive.server.webhooks import Sender
from restive.server.workers import Worker
from restive.version import __version__


def make_app(desk: Desk, settings: Settings, worker: Worker | None = None) -> FastAPI:
    """Create the app for a desk, in one of several workers or alone."""
    app = FastAPI(
        title="restive", version=__version__, docs_url=None, redoc_url=None, openapi_url=None, lifespan=_lifespan,
        redirect_slashes=False,
    )  # fmt: skip
    app.state.desk, app.state.programs, app.state.settings = desk, Programs(desk), settings
    app.state.histories, app.state.gauges = HistoryReports(settings.reports), ProgramGauges(app.state.programs, worker)
    app.state.worker = worker
    for router in (*ROUTERS, document, pages):
        app.router.routes.extend(router.routes)  # include_router would build every route again for every app
    app.webhooks.routes.extend(messages.routes)
    app.mount("/static", static_files())
    app.openapi = lambda: make_document(app)  # type: ignore[method-assign]
    for kind in (InputError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, _show_error)
    check_root_path(settings.root_path, app.routes)
    add_middleware(app, settings, worker)
    app.state.sender = Sender(app.state.programs, settings, app.state.metrics)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.openapi()  # cached, so that the first request does not wait for it
    tidying = app.state.programs.tidy(app.state.settings.program_idle_seconds)
    first = app.state.worker is None or app.state.worker.index == 0  # one worker sends the messages of the outbox
    sending = [app.state.sender.run()] if first else []
    tasks = [asyncio.create_task(task) for task in (*sending, tidying)]
    async with SpareReader().serving():
        yield
    for task in tasks:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    app.state.tracing.close()
    app.state.histories.close()
    app.state.programs.close()


async def _show_error(request: Request, error: Exception) -> Response:
    """The response to an error of a request."""
    error = translate(error)
    if isinstance(error, HTTPException) and error.status_code < 400:
        return Response(status_code=error.status_code, headers=error.headers)
    if isinstance(error, HTTPException) and error.status_code == 405:
        allowed = ", ".join(find_methods(request))
        error.headers = {**(error.headers or {}), **({"Allow": allowed} if allowed else {})}
    if is_page(request) or wants_page(request.scope):
        return show_failure(request, error)
    return error_response(error, request.scope)
