"""From plain data to a page: Jinja templates with everything escaped, and the twin of a page for other software.

A page is one function that answers plain data. `page` makes two routes of it: at `path` the data in a template, at
`path` + ".json" the data itself, so that both can never differ:

    router = APIRouter(route_class=PageRoute, include_in_schema=False)

    @page(router, "/programs/{name}/status", "status.html")
    async def status(request: Request, name: str) -> dict[str, Any]: ...

In a template the data is `data`; beside it there are `principal` (who looks), `may(role)`, `csrf()`, `static(file)`,
`link` (an address with its parts escaped) and `why(word)`, the small question mark that explains a word. `more` of
`render` comes by its own names. A failure in a route of the class `PageRoute` is a page too, or a fragment of one.
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import quote, unquote, urlencode

from fastapi import APIRouter, Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.routing import APIRoute
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from restive.errors import InputError
from restive.server.auth import csrf, need_session
from restive.server.errors import RETRY_AFTER, Refusal, describe, translate
from restive.server.views.charts import PLOTS
from restive.server.views.definitions import WORDS
from restive.server.views.files import address
from restive.server.views.filters import FILTERS
from restive.version import __version__

FOLDER = Path(__file__).parent.parent / "templates"
EXPECTED = (InputError, Refusal, RequestValidationError, HTTPException)
SAID, MAX_SAID = "restive_said", 500  # the cookie that carries a sentence from a form to the next page
# Pages are about people: not even their own browser keeps one, or Back would show it after signing out.
KEPT = "no-store"

TITLES = {
    401: "Who are you?",
    403: "That is not allowed",
    404: "This is not here",
    409: "This was settled otherwise",
    413: "That is too large",
    422: "That does not fit",
    429: "Too many requests",
    500: "Something went wrong",
    503: "Not now, but soon",
}

Builder = TypeVar("Builder", bound=Callable[..., Awaitable[dict[str, Any]]])


@cache
def templates() -> Environment:
    """All templates; a name that the data does not have is an error, never an empty place."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"static": address, "link": link, "version": __version__, **PLOTS}
    environment.filters |= FILTERS
    return environment


def link(*parts: object, **query: object) -> str:
    """An address of its parts, each escaped; of the query, what is None is left out.

    >>> link("programs", "a/b", "person", agent="x&y", page=None)
    '/programs/a%2Fb/person?agent=x%26y'
    """
    path = "".join(f"/{quote(str(part), safe='')}" for part in parts)
    asked = urlencode({name: value for name, value in query.items() if value is not None})
    return f"{path}?{asked}" if asked else path


def render(
    request: Request,
    template: str,
    data: Mapping[str, Any],
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    **more: object,
) -> HTMLResponse:
    """A template filled with data."""
    principal = getattr(request.state, "principal", None)
    program = (data.get("program") or {}).get("name")
    about: dict[str, Any] = {
        "data": data,
        "principal": principal,
        "may": lambda role: principal is not None and principal.may(role, program),
        "may_all": lambda role: principal is not None and principal.may(role, None),
        "csrf": lambda: csrf(request),
        "path": request.url.path,
        "why": _explainer(request),
    }
    about["said"] = unquote(request.cookies.get(SAID, ""))[:MAX_SAID]
    text = templates().get_template(template).render(**about, **more)
    answer = HTMLResponse(text, status, {"Cache-Control": KEPT, **(headers or {})})
    if about["said"]:
        answer.delete_cookie(SAID)
    return answer


async def render_aside(
    request: Request, template: str, data: Mapping[str, Any], status: int = 200, **more: object
) -> HTMLResponse:
    """The same in a thread, for a page that repeats what was typed: that may be much."""
    return await run_in_threadpool(lambda: render(request, template, data, status, None, **more))


def page(router: APIRouter, path: str, template: str, role: str = "viewer") -> Callable[[Builder], Builder]:
    """Register a function of plain data as a page and as its twin."""

    def register(build: Builder) -> Builder:
        def tell(data: Annotated[dict[str, Any], Depends(build)]) -> JSONResponse:
            return JSONResponse(data, headers={"Cache-Control": KEPT})

        def show(request: Request, data: Annotated[dict[str, Any], Depends(build)]) -> HTMLResponse:
            return render(request, template, data)

        settled = {"dependencies": [Depends(need_session(role))], "include_in_schema": False, "response_model": None}
        # The twin first: a number or name at the end of a path would take in its ending too.
        router.add_api_route(f"{path}.json", tell, **settled)  # type: ignore[arg-type]
        router.add_api_route(path, show, **settled)  # type: ignore[arg-type]
        return build

    return register


class PageRoute(APIRoute):
    """A route whose failures are shown as a page; what nobody expected is left to the app, which records it."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler with failures shown."""
        inner = super().get_route_handler()

        async def handle(request: Request) -> Response:
            try:
                return await inner(request)
            except EXPECTED as error:
                if request.url.path.endswith(".json") or getattr(error, "status", 400) < 400:
                    raise
                return show_failure(request, error)

        return handle


def is_fragment(request: Request) -> bool:
    """Whether htmx asks, for a part of the page only."""
    return "HX-Request" in request.headers and request.headers.get("HX-Request-Type") != "full"


def show_failure(request: Request, error: Exception) -> HTMLResponse:
    """What went wrong as a page, or as a fragment of one where a part of a page was asked for."""
    said = translate(error)
    failure = describe(said, request)
    headers = {"Retry-After": RETRY_AFTER} if failure.status == 503 else {}
    headers |= getattr(said, "headers", None) or {}
    template = "fault.html" if is_fragment(request) else "error.html"
    more = {"title": TITLES.get(failure.status, failure.title), "writing": request.method not in ("GET", "HEAD")}
    return render(request, template, {"failure": failure.model_dump(mode="json")}, failure.status, headers, **more)


def _explainer(request: Request) -> Callable[[str], Markup]:
    """`why` of one answer: the question mark of a word with its explanation, numbered so that each has its own name."""
    made: list[str] = []
    prefix = "part" if "HX-Request" in request.headers else "why"

    def why(word: str) -> Markup:
        made.append(word)
        template = templates().get_template("why.html")
        return Markup(template.render(word=word, known=WORDS[word], id=f"{prefix}-{word}-{len(made)}"))

    return why
