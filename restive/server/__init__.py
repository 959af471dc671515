"""The server: an HTTP API for platforms and pages for program teams, over `restive.desk`.

The server has no logic of its own: it turns requests into calls of the desk, one at a time for each program. `make_app`
is imported when it is first used, so that importing the package does not import the web framework.
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
