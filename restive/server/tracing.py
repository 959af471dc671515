"""OpenTelemetry traces: a span for each request, for what the desk does in it, and for each transaction of the store.

Traces are sent only if the standard variables of OpenTelemetry ask for it: OTEL_EXPORTER_OTLP_ENDPOINT or
OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, or OTEL_TRACES_EXPORTER=console. OTEL_SDK_DISABLED=true or OTEL_TRACES_EXPORTER=none turns
them off. The SDK itself reads the other variables, such as OTEL_SERVICE_NAME, OTEL_TRACES_SAMPLER and
OTEL_EXPORTER_OTLP_HEADERS. A request continues the trace of its header `traceparent`.

Spans have route templates, methods, statuses and the program, as the log has; never paths, queries, ids or names.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers
from starlette.types import Scope

from restive.desk.tracing import set_tracer
from restive.errors import InputError
from restive.server.monitoring import METHODS, find_program, find_route
from restive.version import __version__

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
EXPORTERS = ("otlp", "console")
HTTP = "http/protobuf"


def find_exporter(variables: Mapping[str, str]) -> str | None:
    """Where traces are sent, by the environment variables; None: nowhere.

    >>> find_exporter({}), find_exporter({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"})
    (None, 'otlp')
    """
    chosen = variables.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    off = variables.get("OTEL_SDK_DISABLED", "").strip().lower() == "true" or chosen == "none"
    if off or not (chosen or any(variables.get(name) for name in ENDPOINTS)):
        return None
    if chosen not in ("", *EXPORTERS):
        raise InputError(f"OTEL_TRACES_EXPORTER is {chosen!r}; it must be otlp, console or none.")
    protocol = next((variables[name] for name in PROTOCOLS if variables.get(name)), HTTP)
    if chosen != "console" and protocol != HTTP:
        raise InputError(f"OTEL_EXPORTER_OTLP_PROTOCOL is {protocol!r}; traces are sent by {HTTP}.")
    return chosen or "otlp"


class Tracing:
    """The traces of one process; without a provider there are none."""

    def __init__(self, provider: "TracerProvider | None" = None) -> None:
        self._provider = provider
        self._tracer = None if provider is None else provider.get_tracer("restive", __version__)
        if provider is not None:
            set_tracer(self._begin)

    def request(self, scope: Scope) -> AbstractContextManager[Callable[[int], None]]:
        """A span around a request; call what it gives with the status of the answer."""
        return nullcontext(lambda status: None) if self._tracer is None else self._request(scope)

    @contextmanager
    def _request(self, scope: Scope) -> Iterator[Callable[[int], None]]:
        from opentelemetry.propagate import extract
        from opentelemetry.trace import SpanKind, Status, StatusCode

        assert self._tracer is not None
        method = scope["method"] if scope["method"] in METHODS else "other"
        parent = extract(Headers(scope=scope))
        with self._tracer.start_as_current_span(method, parent, SpanKind.SERVER) as current:

            def end(status: int) -> None:
                route = find_route(scope)
                current.update_name(f"{method} {route}")
                found = {"http.request.method": method, "http.route": route, "http.response.status_code": status}
                program = None if status in (401, 403, 404) else find_program(scope)
                current.set_attributes(found | ({} if program is None else {"restive.program": program}))
                current.set_attribute("restive.request", scope["state"]["id"])
                if status >= 500:
                    current.set_status(Status(StatusCode.ERROR))

            yield end

    def _begin(self, name: str, attributes: Mapping[str, str]) -> AbstractContextManager[object]:
        assert self._tracer is not None
        # An error may quote what people sent, so it is not recorded.
        named: dict[str, Any] = {f"restive.{key}": value for key, value in attributes.items()}
        return self._tracer.start_as_current_span(
            name, attributes=named, record_exception=False, set_status_on_exception=False
        )

    def close(self) -> None:
        """Send what is waiting, and end."""
        if self._provider is not None:
            set_tracer(None)
            self._provider.shutdown()


def make_tracing(variables: Mapping[str, str] = os.environ, processor: "SpanProcessor | None" = None) -> Tracing:
    """The tracing that the environment asks for, or one with a processor of your own."""
    exporter = find_exporter(variables)
    if exporter is None and processor is None:
        return Tracing()
    try:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
    except ImportError:
        raise InputError('The variables OTEL_* ask for traces, which need: pip install "restive[otel]".') from None
    named = {} if variables.get("OTEL_SERVICE_NAME") else {"service.name": "restive"}
    provider = TracerProvider(resource=Resource.create(named | {"service.version": __version__}))
    provider.add_span_processor(processor or _make_processor(exporter))
    return Tracing(provider)


def _make_processor(exporter: str | None) -> "SpanProcessor":
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
    except ImportError:
        raise InputError('The variables OTEL_* ask for traces, which need: pip install "restive[otel]".') from None
    return BatchSpanProcessor(ConsoleSpanExporter() if exporter == "console" else OTLPSpanExporter())
