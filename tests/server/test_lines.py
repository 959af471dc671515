"""In line for a program: callers who are gone, who wait for too long, and who take too many places."""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from starlette.requests import ClientDisconnect, Request

from restive.desk import Desk
from restive.server.lines import in_turn
from server.calling import API, Caller

ROUNDS = "/api/v1/programs/shops/rounds"


@contextmanager
def writing(store: Path) -> Iterator[None]:
    """Keep all others from writing to the store."""
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def count_users(app: FastAPI) -> int:
    opened = app.state.programs._opened.get("shops")
    return 0 if opened is None else int(opened.users)


async def leave_while_waiting(app: FastAPI, live: str) -> None:
    async with httpx.AsyncClient(base_url=live, timeout=20) as client:
        waiting = asyncio.ensure_future(client.post(ROUNDS, json={"states": [{"agent": "ben", "state": "low"}]}))
        await asyncio.to_thread(wait_until, lambda: count_users(app) == 2)
        waiting.cancel()
    await asyncio.to_thread(wait_until, lambda: count_users(app) == 1)


def test_a_caller_who_is_gone_leaves_the_line_and_nothing_is_done(
    app: FastAPI, live: str, desk: Desk, tmp_path: Path
) -> None:
    async def story() -> httpx.Response:
        async with httpx.AsyncClient(base_url=live, timeout=20) as client:
            with writing(tmp_path / "store.db"):
                first = asyncio.ensure_future(client.post(ROUNDS, json={"states": [{"agent": "ann", "state": "low"}]}))
                await asyncio.to_thread(wait_until, lambda: count_users(app) == 1)
                await leave_while_waiting(app, live)
            return await first

    assert asyncio.run(story()).status_code == 201
    assert desk.program("shops").advice(1).chosen == ["ann"]
    assert len(desk.program("shops").rounds) == 1
    counted = httpx.get(f"{live}/metrics").text
    assert 'status="499"} 1.0' in counted


def test_a_caller_who_is_gone_while_their_work_is_done_has_it_done(
    app: FastAPI, live: str, desk: Desk, tmp_path: Path
) -> None:
    async def story() -> None:
        async with httpx.AsyncClient(base_url=live, timeout=20) as client:
            with writing(tmp_path / "store.db"):
                only = asyncio.ensure_future(client.post(ROUNDS, json={"states": [{"agent": "ann", "state": "low"}]}))
                await asyncio.to_thread(wait_until, lambda: count_users(app) == 1)
                locked = app.state.programs._opened["shops"].lock.locked
                await asyncio.to_thread(wait_until, locked)
                only.cancel()
        await asyncio.to_thread(wait_until, lambda: count_users(app) == 0)

    asyncio.run(story())
    assert desk.program("shops").advice(1).chosen == ["ann"]


def test_a_caller_has_few_places_in_line_and_nobody_stands_there_for_ever(caller: Caller) -> None:
    caller.app.state.settings = replace(caller.app.state.settings, at_once=3, queue_seconds=0.05)

    async def story() -> list[httpx.Response]:
        async with caller.app.state.programs.using("shops"):
            asked = [caller.client.get(f"{API}/programs/shops") for _ in range(5)]
            return await asyncio.wait_for(asyncio.gather(*asked), 20)

    answers = caller.run(story())
    assert sorted(answer.status_code for answer in answers) == [429, 429, 503, 503, 503]
    for answer in answers:
        assert int(answer.headers["retry-after"]) > 0
    assert {answer.json()["type"] for answer in answers} == {"/api#busy", "/api#too-many"}
    assert "restive_store_errors_total 0.0" in caller.call("GET", "/metrics").text
    assert caller.call("GET", f"{API}/programs/shops").status_code == 200


def test_places_are_counted_for_each_token(principals: Callable[..., Caller]) -> None:
    one, other = principals("viewer"), principals("viewer")
    one.app.state.settings = replace(one.app.state.settings, at_once=1)

    async def story() -> tuple[int, list[int]]:
        async with one.app.state.programs.using("shops"):
            waiting = [asyncio.ensure_future(each.client.get(f"{API}/programs/shops")) for each in (one, other)]
            while count_users(one.app) < 3:
                await asyncio.sleep(0.001)
            refused = await one.client.get(f"{API}/programs/shops")
        return refused.status_code, [(await each).status_code for each in waiting]

    assert one.run(story()) == (429, [200, 200])


@pytest.mark.parametrize("last", [False, True])
def test_a_turn_that_comes_as_the_caller_leaves_is_not_lost(app: FastAPI, last: bool) -> None:
    async def story() -> bool:
        line, gone = asyncio.Lock(), asyncio.Event()

        async def receive() -> dict[str, str]:
            await gone.wait()
            return {"type": "http.disconnect"}

        async def stand() -> None:
            async with in_turn(line, Request({"type": "http", "app": app, "state": {}}, receive)):
                pass

        await line.acquire()
        task = asyncio.ensure_future(stand())
        await asyncio.sleep(0.01)
        for act in (gone.set, line.release) if last else (line.release, gone.set):
            act()
        await asyncio.gather(task, return_exceptions=True)
        assert task.exception() is None or isinstance(task.exception(), ClientDisconnect)
        await asyncio.wait_for(line.acquire(), 5)
        return True

    assert asyncio.run(story())
