"""Spans of work, for traces: who wants them sets a tracer, as `restive.server.tracing` does; otherwise they cost nothing.

Attributes are names of programs, verbs and kinds of stores, never ids, names or cells of people.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext

Tracer = Callable[[str, Mapping[str, str]], AbstractContextManager[object]]
_tracer: Tracer | None = None


def set_tracer(tracer: Tracer | None) -> None:
    """Have all spans of this process begun by a tracer from now on; None: by nobody."""
    global _tracer
    _tracer = tracer


def span(name: str, **attributes: str) -> AbstractContextManager[object]:
    """A span around a piece of work."""
    return nullcontext() if _tracer is None else _tracer(name, attributes)
