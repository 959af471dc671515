"""The server as a value: `make_app(desk, settings)` puts routes, pages, limits and the handling of errors together.

`app.state` has the desk, its open programs and the settings; nothing is read from anywhere else. An error on a page is
shown as a page, everywhere else it is a problem by RFC 9457, also where a path or a method is not there.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from restive.desk.desk import Desk
from restive.errors import InputError
from restive.server.errors import Refusal, describe, translate
from restive.server.middleware import add_middleware
from restive.server.openapi import ABOUT, SUMMARY, TAGS, describe_api, find_methods
from restive.server.openapi import router as document
from restive.server.program_pool import Programs
from restive.server.refusing import make_answer, wants_page
from restive.server.routes import ROUTERS
from restive.server.settings import Settings
from restive.server.views import router as pages
from restive.server.views import static_files
from restive.server.views.base import show_failure
from restive.version import __version__


def make_app(desk: Desk, settings: Settings) -> FastAPI:
    """The server over a desk."""
    app = FastAPI(
        title="restive", summary=SUMMARY, description=ABOUT, version=__version__, openapi_tags=TAGS,
        docs_url=None, redoc_url=None, openapi_url=None, lifespan=_live, redirect_slashes=False,
    )  # fmt: skip
    app.state.desk, app.state.programs, app.state.settings = desk, Programs(desk), settings
    for router in (*ROUTERS, document):
        app.router.routes.extend(router.routes)  # as they are: including a router makes all of its routes anew
    app.include_router(pages)
    app.mount("/static", static_files())
    app.openapi = lambda: describe_api(app)  # type: ignore[method-assign]
    for kind in (InputError, Refusal, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, _show_error)
    add_middleware(app, settings)
    return app


@asynccontextmanager
async def _live(app: FastAPI) -> AsyncIterator[None]:
    app.openapi()  # now, and not when somebody waits for it
    yield
    app.state.programs.close()


async def _show_error(request: Request, error: Exception) -> Response:
    """The answer to a request that failed in a way that can be said."""
    said = translate(error)
    if isinstance(said, Refusal) and said.status < 400:
        return Response(status_code=said.status, headers=said.headers)
    if isinstance(said, Refusal) and said.status == 405:
        said.headers["Allow"] = ", ".join(find_methods(request)) or said.headers.get("Allow", "")
    if wants_page(request.scope):
        return show_failure(request, said)
    return make_answer(said, describe(said, request), request.scope)
