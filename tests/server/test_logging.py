import asyncio
import json
import logging
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from restive.desk import Desk
from restive.desk.tokens import make_token
from restive.server.app import make_app
from restive.server.logging import LIBRARIES, LOGGER, configure_logging, describe_error
from restive.server.settings import Settings
from server.running import ask, make_plain

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


def read(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines() if line.startswith("{")]


def test_a_request_is_one_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("json")
    ask(make_plain(), path="/fill/7?who=ann", headers={"X-Request-ID": "mine"})
    (line,) = read(capsys)
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
    error, line = read(capsys)
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
    first, second = read(capsys)
    assert (first["logger"], first["message"], first["level"]) == ("uvicorn.error", "cannot serve %s", "error")
    assert (second["message"], second["error"]) == ("slow %s", ["ValueError"])


def test_unknown_methods_and_paths_are_logged_by_kind(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("json")
    app = make_plain()
    for path in ("/a", "/b", "/programs/x/list", "/programs/y/list"):
        ask(app, "BREW", path)
    kinds = {(line["method"], line["route"]) for line in read(capsys)}
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
    (line,) = read(capsys)
    assert (answer.status_code, line["status"], line["level"]) == (503, 503, "warning")
    assert "no such table" in line["reason"]
    assert "no such table" not in answer.text
