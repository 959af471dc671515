"""One line for each request on standard error: when, what for, how it went, by whose token; nothing about people.

A line names the route's template and the program, never the path or the query as they were asked, and the number of the
token, never its secret. An error that nobody expected is a line with its type and where it came from; its message may
hold anything, so it is left out, and so are the values in what libraries have to say. `style` is `json`, `text` or
`none`.
"""

import json
import logging
import re
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from restive.server.metrics import Metrics

NO_ROUTE = "(none)"
STORE_FAILED = 503
GONE = 499  # the caller left before there was an answer
LIBRARIES = {"uvicorn": logging.ERROR, "asyncio": logging.WARNING, "concurrent.futures": logging.WARNING}
PROGRAM = re.compile(r"[\w.-]{1,100}")
VALUE = re.compile(r"[(<\[{'\"=]")  # where a library's sentence goes on with what it had in hand
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class Observe:
    """Write a line about each request, and count it."""

    def __init__(self, app: ASGIApp, metrics: Metrics, log: str) -> None:
        self._app, self._metrics, self._style = app, metrics, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, size, began = GONE, 0, time.perf_counter()

        async def send_noted(message: Message) -> None:
            nonlocal status, size
            status = message.get("status", status)
            size += len(message.get("body", b""))
            await send(message)

        try:
            with self._metrics.running.track_inprogress():
                await self._app(scope, receive, send_noted)
        finally:
            self._note(scope, status, size, time.perf_counter() - began)

    def _note(self, scope: Scope, status: int, size: int, seconds: float) -> None:
        route, method = find_route(scope), scope["method"] if scope["method"] in METHODS else "other"
        self._metrics.note_request(route, method, status, seconds)
        if status == STORE_FAILED and "busy" not in scope["state"]:
            self._metrics.note_store_error()
        principal = scope["state"].get("principal")
        about = {
            "request": scope["state"].get("id"),
            "method": method,
            "route": route,
            "program": None if status in (401, 403, 404) else find_program(scope),
            "status": status,
            "ms": round(seconds * 1000, 1),
            "bytes": size,
            "token": None if principal is None else principal.id,
        }
        why = scope["state"].get("why")
        write_line(self._style, "info" if why is None else "warning", about if why is None else about | {"why": why})


def log_error(error: BaseException, scope: Scope) -> None:
    """Write a line about an error that nobody expected."""
    about = {"request": scope["state"].get("id"), "route": find_route(scope), "error": describe_error(error)}
    write_line(scope["app"].state.settings.log, "error", about)


def find_route(scope: Mapping[str, Any]) -> str:
    """The template of the route that a request went to: of these there are so many and no more."""
    route = scope.get("route")
    # Where routers are nested the route alone has only the last part of its path.
    whole = scope.get("fastapi", {}).get("effective_route_context") if route is not None else None
    for found in (whole, route):
        if path := getattr(found, "path_format", None) or getattr(found, "path", None):
            return str(path)
    mounted = scope.get("app_root_path") is not None and scope.get("root_path")
    return f"{mounted}/*" if mounted and scope.get("endpoint") is not None else NO_ROUTE


def find_program(scope: Mapping[str, Any]) -> str | None:
    """The program that was asked for; before somebody was let in, anything could stand there."""
    name = (scope.get("path_params") or {}).get("name", "")
    return name if "principal" in scope["state"] and PROGRAM.fullmatch(name) else None


def describe_error(error: BaseException) -> list[str]:
    """The type of an error and where it came from, and the same of what caused it; no values."""
    return [line for one in _causes(error) for line in (type(one).__qualname__, *_places(one))]


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(5):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _places(error: BaseException) -> list[str]:
    frames = traceback.extract_tb(error.__traceback__)[-8:]
    return [f"{_shorten(frame.filename)}:{frame.lineno} in {frame.name}" for frame in frames]


def _shorten(file: str) -> str:
    """A file from its package on.

    >>> _shorten("/home/ann/lib/site-packages/polars/io.py"), _shorten("/srv/restive/server/app.py")
    ('polars/io.py', 'restive/server/app.py')
    """
    parts = file.replace("\\", "/").rpartition("/site-packages/")
    return parts[2] if parts[1] else "/".join(file.rsplit("/", 3)[-3:])


def write_line(style: str, level: str, about: Mapping[str, object]) -> None:
    """Write one line, whole."""
    if style == "none":
        return
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if style == "json":
        line = json.dumps({"time": now, "level": level, **about})
    else:
        line = " ".join(
            [now, level, *(f"{name}={_plain(value)}" for name, value in about.items() if value is not None)]
        )
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _plain(value: object) -> str:
    return " < ".join(map(str, value)) if isinstance(value, list) else str(value)


class Lines(logging.Handler):
    """What libraries log, as lines of the one kind; without the values that they would put into their sentences."""

    def __init__(self, style: str) -> None:
        super().__init__(logging.WARNING)
        self._style = style

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        error = record.exc_info[1] if record.exc_info else None
        about: dict[str, object] = {"logger": record.name, "said": _first_words(str(record.msg))}
        write_line(self._style, record.levelname.lower(), about | ({"error": describe_error(error)} if error else {}))


def _first_words(said: str) -> str:
    """The first line up to the first value: asyncio puts whatever it had in hand into its sentences.

    >>> _first_words("Exception in callback read(b'ann')\\nhandle: <Handle read>")
    'Exception in callback read'
    """
    line = said.strip().partition("\n")[0]
    return VALUE.split(line, maxsplit=1)[0].strip()[:200]


def capture_libraries(style: str) -> None:
    """Have the libraries of the server log by the same lines."""
    handler = Lines(style)
    for name, level in LIBRARIES.items():
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
