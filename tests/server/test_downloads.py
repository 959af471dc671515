"""Lists as files: written without the program, sent, and removed afterwards."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message

from restive.desk import Desk
from restive.desk.table_files import read_table_file
from restive.server import downloads
from restive.server.downloads import Sheet, TemporaryFileResponse, make_list_sheet, write_file
from restive.server.program_pool import THREADS
from server.calling import API, Caller

LIST = f"{API}/programs/shops/rounds/1/list"
HTTP: dict[str, Any] = {"type": "http", "method": "GET", "headers": [], "asgi": {"spec_version": "2.3"}}


@pytest.fixture
def decided(caller: Caller) -> Caller:
    caller.desk.program("shops").decide({f"p{number}": "low" for number in range(300)}, budget=200)
    return caller


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    return tmp_path / "temporary"


@pytest.fixture
def go(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """No file is written before this event is set."""
    event = threading.Event()

    def write_later(sheet: Sheet) -> Any:
        assert event.wait(20)
        return write_file(sheet)

    monkeypatch.setattr(downloads, "write_file", write_later)
    yield event
    event.set()


@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx"])
@pytest.mark.parametrize("path", ["rounds/1/list", "tables/people", "tables/unreached"])
def test_a_long_table_is_written_in_parts_and_is_the_same(
    decided: Caller, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, path: str, ending: str
) -> None:
    whole = decided.call("GET", f"{API}/programs/shops/{path}.{ending}").content
    for module in ("tables", "recommendation", "export"):
        monkeypatch.setattr(f"restive.desk.{module}.PART_ROWS", 7)
    parts = decided.call("GET", f"{API}/programs/shops/{path}.{ending}").content
    files = [tmp_path / f"{name}.{ending}" for name in ("whole", "parts")]
    for file, content in zip(files, (whole, parts), strict=True):
        file.write_bytes(content)
    assert read_table_file(files[0]).equals(read_table_file(files[1]))
    assert ending != "csv" or parts == whole


def test_a_file_is_sent_and_removed(decided: Caller, folder: Path) -> None:
    answer = decided.call("GET", f"{LIST}.csv")
    recommendation = decided.desk.program("shops").recommendation(1)
    listed = pl.read_csv(BytesIO(answer.content), infer_schema=False)
    assert listed["agent"].to_list() == recommendation.table["agent"].to_list()
    assert 'filename="shops-round-1.csv"' in answer.headers["content-disposition"]
    assert list(folder.iterdir()) == []


def test_a_file_is_removed_when_the_client_disconnects(decided: Caller, folder: Path) -> None:
    async def fail(message: Message) -> None:
        raise ClientDisconnect

    async def story() -> None:
        path = write_file(make_list_sheet(decided.desk.program("shops").recommendation(1), "csv"))
        assert path.exists()
        with pytest.raises(ClientDisconnect):
            await TemporaryFileResponse(path)(HTTP, asyncio.Event().wait, fail)  # type: ignore[arg-type]

    decided.run(story())
    assert list(folder.iterdir()) == []


def test_a_file_that_cannot_be_written_is_removed(
    decided: Caller, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(downloads, "write_table_file", fail)
    with pytest.raises(OSError):  # noqa: PT011
        write_file(make_list_sheet(decided.desk.program("shops").recommendation(1), "csv", "missing"))
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("ending", ["csv", "xlsx", "parquet"])
def test_a_file_has_a_length_and_a_tag(decided: Caller, ending: str) -> None:
    answer = decided.call("GET", f"{LIST}.{ending}")
    assert int(answer.headers["content-length"]) == len(answer.content) > 100
    assert decided.call("GET", f"{LIST}.{ending}", headers={"If-None-Match": answer.headers["etag"]}).status_code == 304


@pytest.mark.parametrize("path", [f"{LIST}.csv", "/programs/shops/list.csv"])
def test_programs_and_threads_are_free_while_files_are_written(
    decided: Caller, desk: Desk, go: threading.Event, path: str
) -> None:
    desk.create("other", states=["low", "high"])
    decided.app.state.settings = replace(decided.app.state.settings, max_concurrent_requests=100)
    programs = decided.app.state.programs

    async def story() -> list[int]:
        files = [asyncio.ensure_future(decided.client.get(path)) for _ in range(2 * THREADS)]
        for _ in range(3000):  # until all are written or wait for that
            if sum(programs._held.values()) == len(files) and not getattr(programs._opened.get("shops"), "users", 1):
                break
            await asyncio.sleep(0.001)
        asked = [asyncio.ensure_future(decided.client.get(f"{API}/programs/{name}")) for name in ("shops", "other")]
        await asyncio.wait(asked, timeout=8)
        order = [each.done() for each in (*asked, *files)]
        go.set()
        assert order == [True] * 2 + [False] * len(files)
        return [(await each).status_code for each in (*asked, *files)]

    assert decided.run(story()) == [200] * (2 * THREADS + 2)
