"""Lists as files: written beside the program, sent from the disk, and gone afterwards."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from starlette.types import Message

from restive.desk import Desk
from restive.server import downloads
from restive.server.downloads import FromDisk, Sheet, write_file
from restive.server.program_pool import THREADS
from server.calling import API, Caller

LIST = f"{API}/programs/shops/rounds/1/list"
HTTP: dict[str, Any] = {"type": "http", "method": "GET", "asgi": {"spec_version": "2.3"}}


@pytest.fixture
def decided(caller: Caller) -> Caller:
    caller.desk.program("shops").decide({f"p{number}": "low" for number in range(300)}, budget=200)
    return caller


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files lie."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    return tmp_path / "temporary"


@pytest.fixture
def go(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """No file is written before this is set."""
    event = threading.Event()

    def write_later(sheet: Sheet) -> Any:
        assert event.wait(20)
        return write_file(sheet)

    monkeypatch.setattr(downloads, "write_file", write_later)
    yield event
    event.set()


def test_a_file_comes_in_pieces_and_leaves_nothing_behind(
    decided: Caller, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "PIECE", 1000)
    advice, sent = decided.desk.program("shops").advice(1), list[Message]()

    async def story() -> FromDisk:
        file = write_file(Sheet(advice, "csv"))
        assert list(folder.iterdir()) == []
        answer = FromDisk(file, {}, "text/csv")

        async def send(message: Message) -> None:
            sent.append(message)

        await answer(HTTP, asyncio.Event().wait, send)  # type: ignore[arg-type]
        return answer

    answer = decided.run(story())
    pieces = [message["body"] for message in sent[1:]]
    assert max(map(len, pieces)) == 1000
    assert pl.read_csv(BytesIO(b"".join(pieces)))["agent"].to_list() == advice.table["agent"].to_list()
    assert answer._file.closed


def test_the_file_of_a_caller_who_leaves_is_closed(decided: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "PIECE", 1000)

    async def story() -> FromDisk:
        answer = FromDisk(write_file(Sheet(decided.desk.program("shops").advice(1), "csv")), {}, "text/csv")
        begun = asyncio.Event()

        async def receive() -> Message:
            await begun.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            begun.set()
            await asyncio.Event().wait()

        await asyncio.wait_for(answer(HTTP, receive, send), 20)
        return answer

    assert decided.run(story())._file.closed


@pytest.mark.parametrize("ending", ["csv", "xlsx", "parquet"])
def test_an_answer_says_how_long_its_file_is(decided: Caller, ending: str) -> None:
    answer = decided.call("GET", f"{LIST}.{ending}")
    assert int(answer.headers["content-length"]) == len(answer.content) > 1000
    assert decided.call("GET", f"{LIST}.{ending}", headers={"If-None-Match": answer.headers["etag"]}).status_code == 304


@pytest.mark.parametrize("path", [f"{LIST}.csv", "/programs/shops/list.csv"])
def test_others_have_the_program_and_the_threads_while_files_are_written(
    decided: Caller, desk: Desk, go: threading.Event, path: str
) -> None:
    desk.create("other", states=["low", "high"])
    decided.app.state.settings = replace(decided.app.state.settings, at_once=100)
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
