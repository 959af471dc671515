"""Logs and metrics: one log record for each request, by Python's `logging`, and metrics for Prometheus.

Neither has anything about people. Labels of metrics are route templates, methods and statuses, so their number is
bounded; each app has its own registry.

A record has the route's template and the program, never the path or the query, and the number of the token, never its
secret. An unexpected error is logged with its type and places in the code; its message can contain anything and is left
out, as are the values in messages of libraries. `configure_logging` is called by `restive serve`; an app that is run in
another way logs to the logger `restive.server`, which can be configured as usual.
"""

import json
import logging
import re
import traceback
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from starlette.types import Scope

from restive.version import __version__

LOGGER = logging.getLogger("restive.server")
LIBRARIES = {
    "uvicorn": logging.ERROR,
    "asyncio": logging.WARNING,
    "concurrent.futures": logging.WARNING,
    "httpx": logging.WARNING,
}
NO_ROUTE = "(none)"
PROGRAM = re.compile(r"[\w.-]{1,100}")
VALUE = re.compile(r"[(<\[{'\"=]")  # what begins a value in the message of a library
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
BUCKET_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
MAX_CAUSES, MAX_FRAMES, MAX_MESSAGE_CHARACTERS = 5, 8, 200


class Metrics:
    """The metrics of one app."""

    media_type = CONTENT_TYPE_PLAIN_0_0_4

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        labels = ("route", "method", "status")
        self.requests = Counter("restive_requests", "Requests answered.", labels, registry=registry)
        self.seconds = Histogram(
            "restive_request_duration_seconds",
            "Duration of requests.",
            ("route", "method"),
            buckets=BUCKET_SECONDS,
            registry=registry,
        )
        self.running = Gauge("restive_requests_in_progress", "Requests in progress.", registry=registry)
        self.rounds = Counter("restive_rounds_decided", "Rounds decided.", registry=registry)
        self.people = Counter("restive_people_listed", "People on the lists of decided rounds.", registry=registry)
        self.outcomes = Counter("restive_outcomes_recorded", "Outcomes recorded.", registry=registry)
        self.store_errors = Counter(
            "restive_store_errors", "Requests that failed because of the store.", registry=registry
        )
        self.webhooks = Counter(
            "restive_webhook_deliveries", "Attempts to deliver a webhook.", ("type", "outcome"), registry=registry
        )
        ProcessCollector(registry=registry)
        Info("restive_build", "The version.", registry=registry).info({"version": __version__})

    def count_round(self, people: int) -> None:
        """Count a decided round with this many people on its list."""
        self.rounds.inc()
        self.people.inc(people)

    def render(self) -> bytes:
        """All metrics in the Prometheus text format."""
        return generate_latest(self.registry)


def log_request(metrics: Metrics, scope: Scope, status: int, size: int, seconds: float) -> None:
    """Log and count a request that has been answered."""
    route, method = find_route(scope), scope["method"] if scope["method"] in METHODS else "other"
    metrics.requests.labels(route, method, str(status)).inc()
    metrics.seconds.labels(route, method).observe(seconds)
    if status == 503 and "busy" not in scope["state"]:
        metrics.store_errors.inc()
    principal, reason = scope["state"].get("principal"), scope["state"].get("why")
    fields = {
        "request": scope["state"].get("id"),
        "method": method,
        "route": route,
        "program": None if status in (401, 403, 404) else find_program(scope),
        "status": status,
        "ms": round(seconds * 1000, 1),
        "bytes": size,
        "token": None if principal is None else principal.id,
    }
    if reason is not None:
        fields["reason"] = reason
    _log(logging.INFO if reason is None else logging.WARNING, "request", fields)


def log_error(error: BaseException, scope: Scope) -> None:
    """Log an unexpected error."""
    fields = {"request": scope["state"].get("id"), "route": find_route(scope), "error": describe_error(error)}
    _log(logging.ERROR, "unexpected error", fields)


def _log(level: int, message: str, fields: Mapping[str, object]) -> None:
    LOGGER.log(level, message, extra={"fields": fields})


def find_route(scope: Mapping[str, Any]) -> str:
    """The template of the matched route, of which there are finitely many."""
    if path := getattr(scope.get("route"), "path", None):
        return str(path)
    mounted = scope.get("app_root_path") is not None and scope.get("root_path")
    return f"{mounted}/*" if mounted and scope.get("endpoint") is not None else NO_ROUTE


def find_program(scope: Mapping[str, Any]) -> str | None:
    """The program of an authenticated request; before authentication the name could be anything."""
    name = (scope.get("path_params") or {}).get("name", "")
    return name if "principal" in scope["state"] and PROGRAM.fullmatch(name) else None


def describe_error(error: BaseException) -> list[str]:
    """Types and places in the code of an error and its causes, without values."""
    return [line for cause in _causes(error) for line in (type(cause).__qualname__, *_frames(cause))]


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(MAX_CAUSES):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _frames(error: BaseException) -> list[str]:
    frames = traceback.extract_tb(error.__traceback__)[-MAX_FRAMES:]
    return [f"{_shorten(frame.filename)}:{frame.lineno} in {frame.name}" for frame in frames]


def _shorten(file: str) -> str:
    """The path of a source file from its package on.

    >>> _shorten("/home/ann/lib/site-packages/polars/io.py"), _shorten("/srv/restive/server/app.py")
    ('polars/io.py', 'restive/server/app.py')
    """
    parts = file.replace("\\", "/").rpartition("/site-packages/")
    return parts[2] if parts[1] else "/".join(file.rsplit("/", 3)[-3:])


class Formatter(logging.Formatter):
    """One line for each record, as JSON or text; records of libraries without the values in their messages."""

    def __init__(self, style: str, worker: int | None = None) -> None:
        super().__init__()
        self._json = style == "json"
        self._worker = {} if worker is None else {"worker": worker}

    def format(self, record: logging.LogRecord) -> str:
        """Format one record."""
        fields: dict[str, object] = self._worker | (getattr(record, "fields", None) or _library_fields(record))
        now = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        level = record.levelname.lower()
        if self._json:
            return json.dumps({"time": now, "level": level, **fields})
        texts = [f"{name}={_as_text(value)}" for name, value in fields.items() if value is not None]
        return " ".join([now, level, *texts])


def _as_text(value: object) -> str:
    text = " < ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if text.isprintable() else repr(text)  # a line feed would begin a line that nobody logged


def _library_fields(record: logging.LogRecord) -> dict[str, object]:
    error = record.exc_info[1] if record.exc_info else None
    fields: dict[str, object] = {"logger": record.name, "message": _strip_values(str(record.msg))}
    return fields | ({"error": describe_error(error)} if error else {})


def _strip_values(message: str) -> str:
    """The first line of a message up to its first value.

    >>> _strip_values("Exception in callback read(b'ann')\\nhandle: <Handle read>")
    'Exception in callback read'
    """
    line = message.strip().partition("\n")[0]
    return VALUE.split(line, maxsplit=1)[0].strip()[:MAX_MESSAGE_CHARACTERS]


def configure_logging(style: str, worker: int | None = None) -> None:
    """Log to standard error as `json` or `text`, or not at all (`none`); with the number of the worker, if there is one."""
    handler = logging.NullHandler() if style == "none" else logging.StreamHandler()
    handler.setFormatter(Formatter(style, worker))
    for name, level in {LOGGER.name: logging.INFO, **LIBRARIES}.items():
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
