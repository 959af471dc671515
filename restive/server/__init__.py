"""The desk on the web: an HTTP API for platforms and pages for program teams, in one server over `restive.desk`.

It has no logic of its own: what decides, checks, counts and explains is the desk. Here requests become calls, one after
the other for each program, and answers and errors take the shapes that the API's document promises. Names are looked up
when they are first used, so that nothing of the web is loaded by a command that does not serve.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from restive.server.app import make_app

__all__ = ["make_app"]


def __getattr__(name: str) -> Any:
    if name == "make_app":
        return import_module("restive.server.app").make_app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
