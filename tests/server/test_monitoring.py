import asyncio
import json
import logging
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from restive.desk import Desk
from restive.desk.tokens import make_token
from restive.server.app import make_app
from restive.server.monitoring import LIBRARIES, LOGGER, Formatter, Metrics, configure_logging, describe_error
from restive.server.settings import Settings
from restive.version import __version__
from server.running import OPEN, ask, ask_all, make_plain

STATES: dict[str, Any] = {"states": ["low", "high"], "rewards": [0, 1], "budget": 1}


@pytest.fixture(autouse=True)
def loggers() -> Iterator[None]:
    """Leave the loggers as they were."""
    found = {name: logging.getLogger(name) for name in (LOGGER.name, *LIBRARIES)}
    before = {name: (each.handlers, each.propagate, each.level) for name, each in found.items()}
    yield
    for name, each in found.items():
        each.handlers, each.propagate, level = before[name]
        each.setLevel(level)


def read_log(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines() if line.startswith("{")]


def test_a_request_is_one_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("json")
    ask(make_plain(), path="/fill/7?who=ann", headers={"X-Request-ID": "mine"})
    (line,) = read_log(capsys)
    assert line.pop("time").endswith("Z")
    assert line.pop("ms") >= 0
    assert line == {
        "level": "info",
        "request": "mine",
        "method": "GET",
        "route": "/fill/{size}",
        "program": None,
        "status": 200,
        "bytes": 7,
        "token": None,
    }


def test_a_line_of_text_has_the_same_fields(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("text")
    ask(make_plain(), path="/fill/7", headers={"X-Request-ID": "mine"})
    (line,) = capsys.readouterr().err.splitlines()
    assert " info request=mine method=GET route=/fill/{size} status=200 ms=" in line
    assert line.endswith(" bytes=7")


def test_nothing_is_logged_with_the_format_none(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("none")
    app = make_plain()
    ask(app)
    ask(app, path="/fail")
    assert capsys.readouterr().err == ""


def test_an_app_logs_to_a_logger_that_can_be_configured(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, LOGGER.name):
        ask(make_plain())
    (record,) = caplog.records
    assert (record.name, record.levelname, record.fields["route"]) == ("restive.server", "INFO", "/")  # type: ignore[attr-defined]


def test_the_log_has_numbers_of_tokens_and_names_of_programs_but_no_people(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging("json")
    with Desk(tmp_path / "store.db") as desk:
        desk.create("north", **STATES)
        secret = make_token(desk.store, "ward", {"north": "viewer"})
        app = make_app(desk, Settings(log="json"))
        shown = {"Authorization": f"Bearer {secret}"}
        own = "/api/v1/programs"
        paths = (f"{own}/north/people?find=Ann", f"{own}/Ann%0A", "/Ann", f"{own}/north/Ann")
        statuses = [ask(app, path=path, headers=shown).status_code for path in paths]
        app.state.programs.close()
    written = capsys.readouterr().err
    assert statuses == [200, 404, 404, 404]
    assert "Ann" not in written
    assert secret not in written
    lines = [json.loads(line) for line in written.splitlines() if line.startswith("{")]
    assert [line["route"] for line in lines] == [f"{own}/{{name}}/people", f"{own}/{{name}}", "(none)", "(none)"]
    assert [line["program"] for line in lines] == ["north", None, None, None]
    assert [line["token"] for line in lines] == [1, 1, None, None]


def test_an_unexpected_error_is_logged_with_its_place_but_without_values(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logging("json")
    ask(make_plain(), path="/fail?secret=ann", headers={"X-Request-ID": "mine"})
    error, line = read_log(capsys)
    assert (error["level"], error["request"], error["route"]) == ("error", "mine", "/fail")
    assert error["error"][0] == "RuntimeError"
    assert error["error"][-1].startswith("tests/server/running.py:")
    assert error["error"][-1].endswith(" in fail")
    assert line["status"] == 500
    assert "ann" not in json.dumps([error, line])


def test_an_error_is_described_with_its_causes() -> None:
    try:
        try:
            raise KeyError("ann")
        except KeyError as error:
            raise ValueError("ben") from error
    except ValueError as error:
        said = describe_error(error)
    assert [line for line in said if " in " not in line] == ["ValueError", "KeyError"]


def test_messages_of_libraries_are_logged_without_values(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("json")
    logging.getLogger("uvicorn.error").error("cannot serve %s", "ann")
    logging.getLogger("uvicorn.error").warning("not worth a line")
    logging.getLogger("asyncio").warning("slow %s", "ann", exc_info=ValueError("ann"))
    first, second = read_log(capsys)
    assert (first["logger"], first["message"], first["level"]) == ("uvicorn.error", "cannot serve %s", "error")
    assert (second["message"], second["error"]) == ("slow %s", ["ValueError"])


def test_unknown_methods_and_paths_are_logged_by_kind(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("json")
    app = make_plain()
    for path in ("/a", "/b", "/programs/x/list", "/programs/y/list"):
        ask(app, "BREW", path)
    kinds = {(line["method"], line["route"]) for line in read_log(capsys)}
    assert kinds == {("other", "(none)"), ("other", "/programs/{name}/list")}


def test_values_in_messages_of_asyncio_are_not_logged(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("json")

    async def fail() -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(print_nothing, "ann")
        loop.call_exception_handler({"message": "It was never retrieved", "exception": ValueError("ann"), "of": "ann"})
        await asyncio.sleep(0)

    def print_nothing(name: str) -> None:
        raise KeyError(name)

    asyncio.run(fail())
    written = capsys.readouterr().err
    first, second = [json.loads(line) for line in written.splitlines()]
    assert (first["message"], first["error"]) == ("It was never retrieved", ["ValueError"])
    assert second["message"].startswith("Exception in callback")
    assert second["error"][0] == "KeyError"
    assert "ann" not in written


def test_a_failure_of_the_store_is_a_warning_with_its_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging("json")
    with Desk(tmp_path / "store.db") as desk:
        desk.create("north", **STATES)
        app = make_app(desk, Settings(open=True, log="json"))
        with sqlite3.connect(tmp_path / "store.db") as connection:
            connection.execute("DROP TABLE events")
        connection.close()
        answer = ask(app, path="/api/v1/programs/north/status")
        app.state.programs.close()
    (line,) = read_log(capsys)
    assert (answer.status_code, line["status"], line["level"]) == (503, 503, "warning")
    assert "no such table" in line["reason"]
    assert "no such table" not in answer.text


def read_metrics(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
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
    found = read_metrics(app.state.metrics)
    route = "/programs/{name}/list"
    assert found["restive_requests_total", labels(route=route, method="GET", status="200")] == 2
    assert found["restive_requests_total", labels(route="(none)", method="GET", status="404")] == 1
    assert found["restive_request_duration_seconds_count", labels(route=route, method="GET")] == 2
    assert found["restive_requests_in_progress", ()] == 0


def test_no_request_adds_a_label_of_its_own() -> None:
    app = make_plain(OPEN)
    ask_all(app, [("GET", "/", {})])
    before = len(read_metrics(app.state.metrics))
    ask_all(app, [("GET", f"/?n={n}", {"headers": {"X-Request-ID": f"n{n}"}}) for n in range(20)])
    assert len(read_metrics(app.state.metrics)) == before


def test_what_the_desk_did_is_counted() -> None:
    metrics = Metrics()
    metrics.count_round(50)
    metrics.count_round(0)
    metrics.outcomes.inc(40)
    metrics.store_errors.inc()
    found = read_metrics(metrics)
    names = ("rounds_decided", "people_listed", "outcomes_recorded", "store_errors")
    assert [found[f"restive_{name}_total", ()] for name in names] == [2, 50, 40, 1]
    assert found["restive_build_info", labels(version=__version__)] == 1


def test_a_store_that_fails_is_counted_and_a_busy_server_is_not() -> None:
    app = make_plain(replace(OPEN, max_total_bytes=10))
    ask_all(app, [("GET", "/store", {}), ("POST", "/count", {"content": b"x" * 11}), ("GET", "/", {})])
    found = read_metrics(app.state.metrics)
    assert [
        found["restive_requests_total", labels(route=route, method=method, status="503")]
        for route, method in (("/store", "GET"), ("/count", "POST"))
    ] == [1, 1]
    assert found["restive_store_errors_total", ()] == 1


def test_each_app_has_counts_of_its_own() -> None:
    one, other = Metrics(), Metrics()
    one.count_round(1)
    assert read_metrics(other)["restive_rounds_decided_total", ()] == 0


def test_a_line_feed_in_a_value_begins_no_line_of_the_log() -> None:
    record = logging.LogRecord("restive.server", logging.INFO, "", 0, "request", None, None)
    record.fields = {"reason": "a\n2026 info request=1\x1b[31m"}
    line = Formatter("text").format(record)
    assert line.isprintable()
    assert line.endswith(r"reason='a\n2026 info request=1\x1b[31m'")
