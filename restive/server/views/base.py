"""Rendering of pages: Jinja templates with autoescape, and a JSON endpoint beside each page.

A page is one function that returns plain data. `page` registers two routes for it in `router`, so that both show the
same: the template at `path` and the data itself at `path` + ".json". `program_page` does so for a page of a program:

    @program_page("status", "status.html")
    def build_status(program: Program, query: Query) -> dict[str, Any]: ...

Templates see the data as `data`, and `principal`, `may(role)`, `places`, `static(file)`, `link(...)` and `why(word)`, the
question mark that opens a definition. Errors in a route of `router` are shown as a page, or as a fragment for htmx.
"""

import hashlib
import math
import tomllib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Concatenate, NamedTuple, ParamSpec, TypeVar
from urllib.parse import unquote

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.routing import APIRoute
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.middleware.gzip import GZipMiddleware
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Scope

from restive.desk.config import policy_label
from restive.desk.program import Program
from restive.desk.schedule import RHYTHMS, list_timezones
from restive.desk.status import find_due
from restive.errors import NotFound
from restive.server.addresses import at_root, cookie_path, link
from restive.server.auth import need_session
from restive.server.errors import describe, find_headers
from restive.server.settings import FLASH_COOKIE
from restive.server.views.filters import FILTERS, PLOTS
from restive.server.views.navigation import find_help, find_places
from restive.version import __version__

TEMPLATES = Path(__file__).parent.parent / "templates"
STATIC = Path(__file__).parent.parent / "static"
IMMUTABLE = "public, max-age=31536000, immutable"
MIN_GZIP_BYTES = 1000
MAX_FLASH = 500  # characters
NO_STORE = "no-store"  # pages are about people: the Back button must show nothing after signing out
MAX_DIGITS = 9  # of a number in a URL

TITLES = {
    401: "Sign in",
    403: "Not allowed",
    404: "Not found",
    409: "Conflict",
    413: "Too large",
    422: "Invalid input",
    429: "Too many requests",
    500: "Server error",
    503: "Temporarily unavailable",
}

Data = dict[str, Any]
Builder = TypeVar("Builder", bound=Callable[..., Awaitable[Data]])
Rest = ParamSpec("Rest")
Answer = TypeVar("Answer")


class Entry(NamedTuple):
    """A term of the glossary and its definition, in one to three sentences."""

    title: str
    definition: str


@cache
def read_glossary() -> Mapping[str, Entry]:
    """All entries by the key in templates (`why("lift")`), which is also the anchor on the page (/glossary#lift)."""
    text = (TEMPLATES / "glossary.toml").read_text(encoding="utf-8")
    return {key: Entry(**entry) for key, entry in tomllib.loads(text).items()}


class CachedStaticFiles(StaticFiles):
    """Static files that browsers keep for a year if the URL carries a version."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """The file, or 404."""
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = IMMUTABLE if scope["query_string"].startswith(b"v=") else "no-cache"
        return response


def static_files() -> ASGIApp:
    """The app to mount at /static."""
    return GZipMiddleware(CachedStaticFiles(directory=STATIC), minimum_size=MIN_GZIP_BYTES)


def static(name: str) -> str:
    """URL of a static file, versioned by its content."""
    return at_root(_versioned(name))


@cache
def _versioned(name: str) -> str:
    digest = hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:16]
    return f"/static/{name}?v={digest}"


@cache
def templates() -> Environment:
    """All templates; a name that the data does not have is an error."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"static": static, "link": link, "at_root": at_root, "version": __version__, **PLOTS}
    environment.globals |= {"rhythms": RHYTHMS, "timezones": list_timezones}
    environment.filters |= FILTERS
    return environment


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
    flash = unquote(request.cookies.get(FLASH_COOKIE, ""))[:MAX_FLASH]

    def may(role: str) -> bool:
        return principal is not None and principal.may(role, program)

    context: dict[str, Any] = {
        "data": data,
        "principal": principal,
        "may": may,
        "places": find_places(data["program"], request.url.path, may) if program else None,
        "may_all": lambda role: principal is not None and principal.may(role, None),
        "path": at_root(request.url.path),
        "help": at_root(find_help(request.url.path)),
        "why": _explainer(request),
        "flash": flash,
    }
    text = templates().get_template(template).render(**context, **more)
    response = HTMLResponse(text, status, {"Cache-Control": NO_STORE, **(headers or {})})
    if flash:
        response.delete_cookie(FLASH_COOKIE, cookie_path())
    return response


async def render_in_thread(
    request: Request, template: str, data: Mapping[str, Any], status: int = 200, **more: object
) -> HTMLResponse:
    """`render` in a thread, for pages that repeat a large form."""
    return await run_in_threadpool(lambda: render(request, template, data, status, None, **more))


class PageRoute(APIRoute):
    """The route of a page, whose errors are shown as a page, whatever the request accepts."""


def is_page(request: Request) -> bool:
    """Whether a request is for a page, not for its JSON endpoint."""
    return isinstance(request.scope.get("route"), PageRoute) and not request.url.path.endswith(".json")


router = APIRouter(route_class=PageRoute, include_in_schema=False)


def page(path: str, template: str, role: str = "viewer") -> Callable[[Builder], Builder]:
    """Register a function of plain data as a page and as its JSON endpoint."""

    def register(build: Builder) -> Builder:
        def send_json(data: Annotated[Data, Depends(build)]) -> JSONResponse:
            return JSONResponse(data, headers={"Cache-Control": NO_STORE})

        def show(request: Request, data: Annotated[Data, Depends(build)]) -> HTMLResponse:
            return render(request, template, data)

        options = {"dependencies": [Depends(need_session(role))], "response_model": None}
        # JSON first: a parameter at the end of the path would match ".json" too.
        router.add_api_route(f"{path}.json", send_json, **options)  # type: ignore[arg-type]
        router.add_api_route(path, show, **options)  # type: ignore[arg-type]
        return build

    return register


def is_fragment(request: Request) -> bool:
    """Whether htmx asks for a part of a page."""
    return "HX-Request" in request.headers and request.headers.get("HX-Request-Type") != "full"


def show_failure(request: Request, error: Exception) -> HTMLResponse:
    """An error as a page, or as a fragment for htmx."""
    failure = describe(error, request)
    headers = find_headers(error)
    template = "error_message.html" if is_fragment(request) else "error.html"
    more = {"title": TITLES.get(failure["status"], failure["title"]), "writing": request.method not in ("GET", "HEAD")}
    return render(request, template, {"failure": failure}, failure["status"], headers, **more)


def _explainer(request: Request) -> Callable[[str], Markup]:
    """`why` of one response: the question mark of a word and its definition, with unique element ids."""
    used: list[str] = []
    prefix = "part" if "HX-Request" in request.headers else "why"

    def why(word: str) -> Markup:
        used.append(word)
        template = templates().get_template("why.html")
        return Markup(template.render(word=word, entry=read_glossary()[word], id=f"{prefix}-{word}-{len(used)}"))

    return why


async def ask(
    request: Request,
    name: str,
    query: Callable[Concatenate[Program, Rest], Answer],
    *args: Rest.args,
    **kwargs: Rest.kwargs,
) -> Answer:
    """Run `query` on a program in a worker thread, while nobody else uses the program."""
    answer: Answer = await request.app.state.programs.call(request, name, query, *args, **kwargs)
    return answer


def head(program: Program) -> dict[str, Any]:
    """What the header of every page about a program shows."""
    config = program.config
    return {
        "name": program.name,
        "archived": program.archived,
        "title": config.title,
        "words": asdict(config.words),
        "policy": policy_label(config.policy),
        "shadow": policy_label(config.shadow) if config.shadow else None,
        "rounds": len(program.rounds),
        "timezone": config.timezone,
        "last": program.rounds[-1].label if program.rounds else None,
        "due": find_due(program),
    }


class Query(dict[str, str]):
    """The parameters in the URL of a page."""

    def number(self, name: str, default: int = 1) -> int:
        """A number from 1, `default` if it is not given; anything else is not found."""
        return read_number(self.get(name, ""), name, default)


ProgramBuilder = Callable[[Program, Query], Data]


def program_page(path: str, template: str, role: str = "viewer") -> Callable[[ProgramBuilder], ProgramBuilder]:
    """Register a function of a program as a page and as its JSON endpoint."""

    def register(build: ProgramBuilder) -> ProgramBuilder:
        @page(f"/programs/{{name}}/{path}", template, role)
        async def show(request: Request, name: str) -> Data:
            return await build_page(request, name, build, Query({**request.query_params, **request.path_params}))

        return build

    return register


async def build_page(request: Request, name: str, build: ProgramBuilder, query: Query | None = None) -> Data:
    """The data of a page of a program, with what the header shows."""

    def build_all(program: Program) -> Data:
        header = {"program": head(program)}
        return header | build(program, query or Query()) | header

    return await ask(request, name, build_all)


def read_number(text: str, what: str, default: int = 1) -> int:
    """A number from 1 in a URL, `default` if it is empty; anything else is not found.

    >>> read_number("12", "round"), read_number("", "page")
    (12, 1)
    """
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS and int(text) > 0):
        raise NotFound(f"There is no such {what}: a {what} is a whole number from 1.")
    return int(text)


class Part(NamedTuple):
    """One page of a long table; rows count from 1."""

    page: int
    pages: int
    first: int
    last: int
    total: int

    @property
    def rows(self) -> slice:
        """The indices of its rows."""
        return slice(self.first - 1, self.last)


def paginate(page: int, total: int, size: int) -> Part:
    """Page `page` of `total` rows, `size` on each; an empty table has one empty page.

    >>> paginate(3, total=410, size=200)
    Part(page=3, pages=3, first=401, last=410, total=410)
    """
    pages = max(1, -(-total // size))
    if page > pages:
        raise NotFound(f"There is no page {page}; there {'is 1' if pages == 1 else f'are {pages:,}'}.")
    return Part(page, pages, (page - 1) * size + 1, min(page * size, total), total)


def finite(value: float) -> float | None:
    """The number, or None if it is infinite or NaN, which JSON does not have."""
    return float(value) if math.isfinite(value) else None
