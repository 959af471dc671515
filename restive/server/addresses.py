"""Addresses below a path prefix, where a proxy serves the app as a part of a site (`restive serve --root-path /desk`).

Inside the app all paths are without the prefix; every address in a response goes through `at_root`. A proxy may strip
the prefix or keep it, and probes that reach the server directly need none.
"""

from collections.abc import Sequence
from contextvars import ContextVar
from urllib.parse import quote, urlencode

from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from restive.errors import InputError

ROOT_PATH: ContextVar[str] = ContextVar("ROOT_PATH", default="")


def at_root(path: str) -> str:
    """A path of the app as browsers and clients see it."""
    return ROOT_PATH.get() + path


def cookie_path() -> str:
    """The path of cookies: other applications of the same host do not get them."""
    return ROOT_PATH.get() or "/"


def link(*parts: object, **query: object) -> str:
    """URL of escaped path parts and query parameters; parameters that are None are left out.

    >>> link("programs", "a/b", "person", agent="x&y", page=None)
    '/programs/a%2Fb/person?agent=x%26y'
    """
    path = "".join(f"/{quote(str(part), safe='')}" for part in parts) or "/"
    encoded = urlencode({name: value for name, value in query.items() if value is not None})
    return at_root(f"{path}?{encoded}" if encoded else path)


def check_root_path(root_path: str, routes: Sequence[BaseRoute]) -> None:
    """Refuse a prefix that begins like an address of the app: a path could then be meant with it or without it."""
    taken = {getattr(route, "path", "").split("/")[1].partition(".")[0] for route in routes}
    if root_path and root_path.split("/")[1] in taken:
        raise InputError(f"root_path is {root_path}, but the server has pages below it itself; choose another prefix.")


class RootPathMiddleware:
    """Remove the prefix from the paths of requests, and let `at_root` add it to addresses in responses."""

    def __init__(self, app: ASGIApp, root_path: str) -> None:
        self._app, self._root_path = app, root_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] == "http":
            ROOT_PATH.set(self._root_path)
            if f"{scope['path']}/".startswith(f"{self._root_path}/"):
                scope["path"] = scope["path"].removeprefix(self._root_path) or "/"
        await self._app(scope, receive, send)
