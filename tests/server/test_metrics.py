from dataclasses import replace

from prometheus_client.parser import text_string_to_metric_families

from restive.server.metrics import Metrics
from restive.version import __version__
from server.running import OPEN, ask_all, make_plain


def read(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    families = text_string_to_metric_families(metrics.render().decode())
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def labels(**given: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(given.items()))


def test_requests_are_counted_by_route_method_and_status() -> None:
    app = make_plain(OPEN)
    ask_all(app, [("GET", "/programs/a/list", {}), ("GET", "/programs/b/list", {}), ("GET", "/nowhere", {})])
    found = read(app.state.metrics)
    route = "/programs/{name}/list"
    assert found["restive_requests_total", labels(route=route, method="GET", status="200")] == 2
    assert found["restive_requests_total", labels(route="(none)", method="GET", status="404")] == 1
    assert found["restive_request_duration_seconds_count", labels(route=route, method="GET")] == 2
    assert found["restive_requests_in_progress", ()] == 0


def test_no_request_adds_a_label_of_its_own() -> None:
    app = make_plain(OPEN)
    ask_all(app, [("GET", "/", {})])
    before = len(read(app.state.metrics))
    ask_all(app, [("GET", f"/?n={n}", {"headers": {"X-Request-ID": f"n{n}"}}) for n in range(20)])
    assert len(read(app.state.metrics)) == before


def test_what_the_desk_did_is_counted() -> None:
    metrics = Metrics()
    metrics.count_round(50)
    metrics.count_round(0)
    metrics.outcomes.inc(40)
    metrics.store_errors.inc()
    found = read(metrics)
    names = ("rounds_decided", "people_listed", "outcomes_recorded", "store_errors")
    assert [found[f"restive_{name}_total", ()] for name in names] == [2, 50, 40, 1]
    assert found["restive_build_info", labels(version=__version__)] == 1


def test_a_store_that_fails_is_counted_and_a_busy_server_is_not() -> None:
    app = make_plain(replace(OPEN, max_total_bytes=10))
    ask_all(app, [("GET", "/store", {}), ("POST", "/count", {"content": b"x" * 11}), ("GET", "/", {})])
    found = read(app.state.metrics)
    assert [
        found["restive_requests_total", labels(route=route, method=method, status="503")]
        for route, method in (("/store", "GET"), ("/count", "POST"))
    ] == [1, 1]
    assert found["restive_store_errors_total", ()] == 1


def test_each_app_has_counts_of_its_own() -> None:
    one, other = Metrics(), Metrics()
    one.count_round(1)
    assert read(other)["restive_rounds_decided_total", ()] == 0
