import asyncio
import json
import logging
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from restive.desk import Desk
from restive.desk.tokens import make_token
from restive.server.app import make_app
from restive.server.logging import LIBRARIES, capture_libraries, describe_error
from restive.server.settings import Settings
from server.running import OPEN, ask, make_plain

STATES: dict[str, Any] = {"states": ["low", "high"], "rewards": [0, 1], "budget": 1}


@pytest.fixture
def loggers() -> Iterator[None]:
    """Leave loggers as they were."""
    found = {name: logging.getLogger(name) for name in LIBRARIES}
    before = {name: (each.handlers, each.propagate, each.level) for name, each in found.items()}
    yield
    for name, each in found.items():
        each.handlers, each.propagate, level = before[name]
        each.setLevel(level)


def read(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_a_request_is_one_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    app = make_plain(replace(OPEN, log="json"))
    ask(app, path="/fill/7?who=ann", headers={"X-Request-ID": "mine"})
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


def test_a_line_of_text_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    ask(make_plain(replace(OPEN, log="text")), path="/fill/7", headers={"X-Request-ID": "mine"})
    (line,) = capsys.readouterr().err.splitlines()
    assert " info request=mine method=GET route=/fill/{size} status=200 ms=" in line
    assert line.endswith(" bytes=7")


def test_no_line_is_written_where_none_is_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    app = make_plain(replace(OPEN, log="none"))
    ask(app)
    ask(app, path="/fail")
    assert capsys.readouterr().err == ""


def test_the_log_knows_tokens_by_number_and_programs_by_name_and_people_not_at_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
    lines = [json.loads(line) for line in written.splitlines()]
    assert [line["route"] for line in lines] == [f"{own}/{{name}}/people", f"{own}/{{name}}", "(none)", "(none)"]
    assert [line["program"] for line in lines] == ["north", None, None, None]
    assert [line["token"] for line in lines] == [1, 1, None, None]


def test_an_error_that_nobody_expected_is_kept_with_its_place_but_without_values(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ask(make_plain(replace(OPEN, log="json")), path="/fail?secret=ann", headers={"X-Request-ID": "mine"})
    error, line = read(capsys)
    assert (error["level"], error["request"], error["route"]) == ("error", "mine", "/fail")
    assert error["error"][0] == "RuntimeError"
    assert error["error"][-1].startswith("tests/server/running.py:")
    assert error["error"][-1].endswith(" in fail")
    assert line["status"] == 500
    assert "ann" not in json.dumps([error, line])


def test_an_error_brings_its_causes_along() -> None:
    try:
        try:
            raise KeyError("ann")
        except KeyError as error:
            raise ValueError("ben") from error
    except ValueError as error:
        said = describe_error(error)
    assert [line for line in said if " in " not in line] == ["ValueError", "KeyError"]


def test_what_libraries_say_is_a_line_too_without_its_values(capsys: pytest.CaptureFixture[str], loggers: None) -> None:
    capture_libraries("json")
    logging.getLogger("uvicorn.error").error("cannot serve %s", "ann")
    logging.getLogger("uvicorn.error").warning("not worth a line")
    logging.getLogger("asyncio").warning("slow %s", "ann", exc_info=ValueError("ann"))
    first, second = read(capsys)
    assert (first["logger"], first["said"], first["level"]) == ("uvicorn.error", "cannot serve %s", "error")
    assert (second["said"], second["error"]) == ("slow %s", ["ValueError"])


def test_any_method_and_path_make_only_so_many_kinds_of_lines(capsys: pytest.CaptureFixture[str]) -> None:
    app = make_plain(replace(OPEN, log="json"))
    for path in ("/a", "/b", "/programs/x/list", "/programs/y/list"):
        ask(app, "BREW", path)
    kinds = {(line["method"], line["route"]) for line in read(capsys)}
    assert kinds == {("other", "(none)"), ("other", "/programs/{name}/list")}


def test_what_asyncio_had_in_hand_is_not_written(capsys: pytest.CaptureFixture[str], loggers: None) -> None:
    capture_libraries("json")

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
    assert (first["said"], first["error"]) == ("It was never retrieved", ["ValueError"])
    assert second["said"].startswith("Exception in callback")
    assert second["error"][0] == "KeyError"
    assert "ann" not in written


def test_a_store_that_fails_is_a_warning_that_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
    assert "no such table" in line["why"]
    assert "no such table" not in answer.text
