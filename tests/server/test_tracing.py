"""Traces: of a real server at a real receiver, and off unless the standard variables ask for them."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from restive.desk import Desk
from restive.errors import InputError
from restive.server.tracing import find_exporter
from server.conftest import SHOPS
from server.running import Command

TRACE = "0af7651916cd43dd8448eb211c80319c"


class Collector:
    """What an OTLP receiver got."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.address = ""

    def spans(self) -> list[Span]:
        found = [ExportTraceServiceRequest.FromString(body) for body in self.bodies]
        return [
            span for each in found for part in each.resource_spans for one in part.scope_spans for span in one.spans
        ]


@contextmanager
def collecting() -> Iterator[Collector]:
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            collector.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector.address = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=[0.05])
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()


def test_a_decision_is_traced_from_the_request_to_the_store(tmp_path: Path) -> None:
    with Desk(tmp_path / "store.db") as desk:
        desk.create("shops", **SHOPS)
    with collecting() as collector:
        variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address, "OTEL_SERVICE_NAME": "our-desk"}
        with Command("--store", str(tmp_path / "store.db"), environment=variables) as served:
            place = f"{served.address()}/api/v1/programs"
            body = {"states": [{"agent": "ann-the-patient", "state": "low"}]}
            headers = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01", "X-Request-ID": "mine"}
            answer = httpx.post(f"{place}/shops/rounds", json=body, headers=headers, timeout=120)
            assert answer.status_code == 201
            assert httpx.get(f"{place}/no-such-program/people?find=ann-the-patient").status_code == 404
            served.tell(signal.SIGTERM)
            assert served.wait() == 0
        traced = {span.span_id: span for span in collector.spans() if span.trace_id.hex() == TRACE}
    request = next(span for span in traced.values() if span.name == "POST /api/v1/programs/{name}/rounds")
    attributes = {each.key: each.value for each in request.attributes}
    assert attributes["http.response.status_code"].int_value == 201
    assert (attributes["restive.program"].string_value, attributes["restive.request"].string_value) == ("shops", "mine")
    decided = next(span for span in traced.values() if span.name == "desk decided")
    written = next(span for span in traced.values() if span.parent_span_id == decided.span_id)
    assert (traced[decided.parent_span_id], written.name) == (request, "store write")
    sent = b"".join(collector.bodies)
    assert b"our-desk" in sent
    assert b"ann-the-patient" not in sent
    assert b"no-such-program" not in sent


def test_nothing_is_traced_unless_the_variables_say_so() -> None:
    place = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}
    assert find_exporter({}) is None
    assert find_exporter({"OTEL_SERVICE_NAME": "x"}) is None
    assert find_exporter(place | {"OTEL_SDK_DISABLED": "true"}) is None
    assert find_exporter(place | {"OTEL_TRACES_EXPORTER": "none"}) is None
    assert find_exporter({"OTEL_TRACES_EXPORTER": "console"}) == "console"
    assert find_exporter({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}) == "otlp"
    with pytest.raises(InputError, match=r"'zipkin'; it must be otlp, console or none"):
        find_exporter({"OTEL_TRACES_EXPORTER": "zipkin"})
    with pytest.raises(InputError, match="traces are sent by http/protobuf"):
        find_exporter(place | {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})
