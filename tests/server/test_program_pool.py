import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from restive.desk import Desk
from restive.desk.program import Program
from restive.errors import NotFound
from restive.server import program_pool
from restive.server.program_pool import Programs, _Opened, find_policies
from server.calling import API, Caller

ROUNDS = "/api/v1/programs/shops/rounds"
ANN = {"states": [{"agent": "ann", "state": "low"}]}


@pytest.fixture
def opened(desk: Desk) -> Programs:
    return Programs(desk)


def test_requests_get_a_program_one_at_a_time_in_the_order_of_arrival(opened: Programs) -> None:
    seen: list[tuple[str, int]] = []

    async def use(number: int) -> None:
        async with opened.using("shops"):
            seen.append(("begins", number))
            await asyncio.sleep(0)
            seen.append(("ends", number))

    async def all_at_once() -> None:
        async with opened.using("shops"):
            tasks = []
            for number in range(5):
                tasks.append(asyncio.create_task(use(number)))
                await asyncio.sleep(0)
        await asyncio.gather(*tasks)

    asyncio.run(all_at_once())
    assert seen == [(what, number) for number in range(5) for what in ("begins", "ends")]


def test_a_cancelled_request_holds_the_program_until_its_work_is_done(opened: Programs) -> None:
    begun, go, order = threading.Event(), threading.Event(), []

    def work() -> None:
        begun.set()
        go.wait(10)
        order.append("worked")

    async def first() -> None:
        async with opened.using("shops"):
            await opened.run(work)

    async def second() -> None:
        async with opened.using("shops"):
            order.append("second")

    async def story() -> None:
        one = asyncio.create_task(first())
        await asyncio.to_thread(begun.wait, 10)
        two = asyncio.create_task(second())
        await asyncio.sleep(0)
        one.cancel()
        await asyncio.sleep(0)
        one.cancel()
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await one
        await two

    asyncio.run(story())
    assert order == ["worked", "second"]


def test_an_error_in_a_thread_is_raised_in_the_caller(opened: Programs) -> None:
    def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        asyncio.run(opened.run(fail))


def test_an_unknown_program_is_an_error_that_names_no_others(opened: Programs) -> None:
    async def use() -> None:
        async with opened.using("shop"):
            pass

    with pytest.raises(NotFound, match=r"^There is no program 'shop'\.$"):
        asyncio.run(use())
    with pytest.raises(NotFound, match=r"^There is no program 'shop'\.$"):
        opened.head("shop")


def test_the_end_of_the_log_counts_events_of_other_processes_too(opened: Programs, desk: Desk) -> None:
    assert opened.head("shops").length == 1
    desk.program("shops").decide({"ann": "low"})
    assert opened.head("shops") == (1, 3, desk.program("shops").projection.digest)


def test_the_least_recently_used_programs_are_closed_unless_in_use(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_pool, "MAX_OPEN", 2)
    for name in ("b", "c", "d"):
        desk.create(name, states=["low", "high"])
    opened = Programs(desk)

    async def story() -> None:
        async with opened.using("shops"):
            for name in ("b", "c", "d"):
                async with opened.using(name):
                    pass
            assert list(opened._opened) == ["shops", "d"]
        async with opened.using("c"):
            pass
        assert list(opened._opened) == ["d", "c"]

    asyncio.run(story())


def test_programs_with_too_many_agents_together_are_closed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_pool, "MAX_OPEN_AGENTS", 3)
    desk.create("b", states=["low", "high"])
    opened = Programs(desk)

    async def decide(name: str) -> None:
        async with opened.using(name) as program:
            program.decide({"ann": "low", "ben": "high"})

    asyncio.run(decide("shops"))
    assert list(opened._opened) == ["shops"]
    asyncio.run(decide("b"))
    assert list(opened._opened) == ["b"]


def test_programs_that_nobody_uses_are_closed_unless_only_memory_has_their_names(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESTIVE_KEYS", str(tmp_path / "keys"))
    desk.create("hidden", states=["low", "high"], pseudonyms=True)
    opened = Programs(desk)

    async def story() -> None:
        for name in ("shops", "hidden"):
            async with opened.using(name) as program:
                program.decide({"ann": "low", "ben": "high"})
        tidying = asyncio.create_task(opened.tidy(idle_seconds=0.01))
        while "shops" in opened._opened:
            await asyncio.sleep(0.01)
        tidying.cancel()

    asyncio.run(asyncio.wait_for(story(), 60))
    assert list(opened._opened) == ["hidden"]


def test_a_program_with_waiting_requests_is_not_closed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_pool, "MAX_OPEN", 1)
    desk.create("b", states=["low", "high"])
    opened, inside = Programs(desk), list[Program]()

    async def wait() -> None:
        async with opened.using("shops") as program:
            inside.append(program)

    async def story() -> None:
        async with opened.using("shops") as program:
            waiting = asyncio.create_task(wait())
            await asyncio.sleep(0)
            async with opened.using("b"):
                pass
            opened._opened["b"] = opened._opened.get("b") or _Opened(desk.program("b"))
        assert "shops" in opened._opened
        await waiting
        assert inside == [program]

    asyncio.run(story())


def test_programs_are_closed_after_an_error_too(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_pool, "MAX_OPEN", 0)
    opened = Programs(desk)

    async def fail() -> None:
        async with opened.using("shops"):
            raise KeyError

    with pytest.raises(KeyError):
        asyncio.run(fail())
    assert not opened._opened


def test_the_summary_of_a_busy_program_is_the_last_one(opened: Programs, desk: Desk) -> None:
    async def story() -> list[int | None]:
        found = [await opened.summarize("shops")]
        await opened.run(desk.program("shops").decide, {"ann": "low"})
        async with opened.using("shops"):
            found.append(await asyncio.wait_for(opened.summarize("shops"), 20))
        found.append(await opened.summarize("shops"))
        return [each["rounds"] for each in found]

    assert asyncio.run(story()) == [0, 0, 1]


@contextmanager
def writing(store: Path) -> Iterator[None]:
    """Lock the store for all other writers."""
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


def test_a_request_whose_client_disconnects_is_finished(app: FastAPI, live: str, desk: Desk, tmp_path: Path) -> None:
    async def story() -> None:
        async with httpx.AsyncClient(base_url=live, timeout=20) as client:
            with writing(tmp_path / "store.db"):
                only = asyncio.ensure_future(client.post(ROUNDS, json=ANN))
                await asyncio.to_thread(wait_until, lambda: count_users(app) == 1)
                only.cancel()
        await asyncio.to_thread(wait_until, lambda: count_users(app) == 0)

    asyncio.run(story())
    assert desk.program("shops").recommendation(1).chosen == ["ann"]


def test_reads_are_answered_while_writers_wait_for_the_store(caller: Caller, tmp_path: Path) -> None:
    names = [f"shop{number}" for number in range(program_pool.THREADS)]
    for name in names:
        caller.desk.create(name, states=["low", "high"])
    reads = [f"{API}/programs", f"{API}/programs/shop0", f"{API}/programs/shops/status", "/", "/programs/shop1/status"]

    async def story() -> tuple[list[int], list[int]]:
        client, programs = caller.client, caller.app.state.programs
        with writing(tmp_path / "store.db"):
            posts = [asyncio.ensure_future(client.post(f"{API}/programs/{name}/rounds", json=ANN)) for name in names]
            posts.append(
                asyncio.ensure_future(client.post(f"{API}/programs", json={"name": "x", "states": ["a", "b"]}))
            )
            while len(programs._opened) < len(names) or any(not each.users for each in programs._opened.values()):
                await asyncio.sleep(0.001)
            found = [await asyncio.wait_for(client.get(path), 20) for path in reads]
            assert not any(post.done() for post in posts)
        return [each.status_code for each in found], [(await post).status_code for post in posts]

    assert caller.run(story()) == ([200] * len(reads), [201] * (len(names) + 1))


def test_the_queue_of_a_program_is_limited_in_length_and_time(caller: Caller) -> None:
    caller.app.state.settings = replace(caller.app.state.settings, max_concurrent_requests=3, queue_seconds=0.05)

    async def story() -> list[httpx.Response]:
        async with caller.app.state.programs.using("shops"):
            asked = [caller.client.get(f"{API}/programs/shops") for _ in range(5)]
            return await asyncio.wait_for(asyncio.gather(*asked), 20)

    answers = caller.run(story())
    assert sorted(answer.status_code for answer in answers) == [429, 429, 503, 503, 503]
    for answer in answers:
        assert int(answer.headers["retry-after"]) > 0
    assert {answer.json()["type"] for answer in answers} == {"/api#busy", "/api#too_many_requests"}
    assert "restive_store_errors_total 0.0" in caller.call("GET", "/metrics").text
    assert caller.call("GET", f"{API}/programs/shops").status_code == 200


def test_the_length_of_the_queue_is_limited_for_each_token(principals: Callable[..., Caller]) -> None:
    one, other = principals("viewer"), principals("viewer")
    one.app.state.settings = replace(one.app.state.settings, max_concurrent_requests=1)

    async def story() -> tuple[int, list[int]]:
        async with one.app.state.programs.using("shops"):
            waiting = [asyncio.ensure_future(each.client.get(f"{API}/programs/shops")) for each in (one, other)]
            while count_users(one.app) < 3:
                await asyncio.sleep(0.001)
            refused = await one.client.get(f"{API}/programs/shops")
        return refused.status_code, [(await each).status_code for each in waiting]

    assert one.run(story()) == (429, [200, 200])


@pytest.fixture
def empty(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "desk.db")


def make(desk: Desk, name: str, policy: str, shadow: str | None = None) -> None:
    desk.create(name, states=["low", "high"], rewards=[0, 1], policy=policy, shadow=shadow)


def test_the_policies_in_use_are_found_without_duplicates_the_newest_first(empty: Desk) -> None:
    with empty:
        assert find_policies(empty.store) == [("lagrange", None)]
        for name, policy, shadow in (("a", "egt", None), ("b", "egt:eta=0.5", "wiql"), ("c", "egt", None)):
            make(empty, name, policy, shadow)
        assert find_policies(empty.store) == [("egt", None), ("egt:eta=0.5", "wiql")]


def test_a_server_is_ready_when_the_policies_in_use_are_compiled(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on, compiled = threading.Event(), threading.Event(), []

    def compile_slowly(policies: object) -> None:
        compiled.append(policies)
        begun.set()
        go_on.wait(60)
        raise RuntimeError("ignored")

    monkeypatch.setattr(program_pool, "compile_policies", compile_slowly)
    warm_up = caller.app.state.programs.warm_up
    assert caller.call("GET", "/ready").status_code == 200
    warm_up.start(caller.desk)
    assert begun.wait(60)
    refused = caller.refused("GET", "/ready", 503)
    assert (refused["code"], refused["detail"]) == ("busy", "Warming up: kernels are being compiled.")
    assert caller.call("GET", "/health").status_code == 200
    go_on.set()
    while not warm_up.done:
        time.sleep(0.01)
    assert caller.call("GET", "/ready").status_code == 200
    assert compiled == [find_policies(caller.desk.store)]
