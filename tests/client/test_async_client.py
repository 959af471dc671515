"""The asynchronous client against a real server: the same calls, awaited, many at once."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from client.scripted import LOST, Answer, problem, serve
from client.served import Served
from restive.client import APIError, AsyncClient, AsyncProgram, Client, Program
from restive.client.transport import AsyncTransport, Body

T = TypeVar("T")
STATES = {f"a{n}": ("low", "high")[n % 2] for n in range(8)}
PLAN: dict[str, Any] = {"states": ["low", "high"], "rewards": [0, 1], "budget": 2, "control": 0}


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(coroutine)


def test_the_story_of_a_program_awaited(served: Served, tmp_path: Path) -> None:
    async def play() -> None:
        async with AsyncClient(served.address, served.secret, retries=0) as client:
            calls = await client.create("awaited", **PLAN)
            decided = await calls.decide(STATES, key="k1")
            assert (decided.round, len(decided.chosen)) == (1, 2)
            assert await calls.decide(STATES, key="k1") == decided
            rows = [{"agent": agent, "done": agent in decided.chosen, "next_state": "high"} for agent in STATES]
            assert (await calls.learn(rows))["new"] == 8
            assert await calls.withdraw(["a1"], round=1) == 1
            assert (await calls.undo())["what"] == "withdrawn"
            assert (await calls.change(budget=3))["budget"] == 3
            assert (await calls.about())["config"]["budget"] == 3
            assert [row["agent"] async for row in calls.get_list(1)] == decided.chosen + decided.reserve
            assert [row["round"] async for row in calls.rounds()] == [1]
            assert [entry["round"] for entry in await calls.history("a1")] == [1]
            await calls.download(1, tmp_path / "list.csv")
            assert (tmp_path / "list.csv").read_text().startswith("rank,agent")
            made = await calls.webhooks.add("https://no-such-host.invalid/hook")
            assert [each["id"] async for each in calls.webhooks] == [made["webhook"]["id"]]
            assert repr(calls).startswith("AsyncProgram('awaited' at http")
            with pytest.raises(APIError, match="not a state"):
                await calls.decide({"a1": "loud"})
            await calls.delete("awaited")
            assert "awaited" not in [row["name"] async for row in client.programs()]

    run(play())


def test_many_programs_decide_at_once(served: Served) -> None:
    async def play() -> list[int]:
        async with AsyncClient(served.address, served.secret) as client:
            programs = await asyncio.gather(*(client.create(f"many-{n}", **PLAN) for n in range(8)))
            decided = await asyncio.gather(*(program.decide(STATES) for program in programs))
            return [each.round for each in decided]

    assert run(play()) == [1] * 8


def test_a_long_list_of_a_decision_is_fetched_in_pages(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("restive.client.program.MAX_LIST_ROWS", 1)
    monkeypatch.setattr("restive.client.program.PAGE_SIZE", 3)

    async def play() -> list[str]:
        async with AsyncClient(served.address, served.secret) as client:
            calls = await client.create("paged", **PLAN | {"budget": 5})
            decided = await calls.decide(STATES)
            assert decided.data["next"] is None
            return decided.chosen

    assert len(run(play())) == 5


@pytest.mark.parametrize("trouble", [LOST, problem(503)])
def test_temporary_errors_are_retried_with_the_same_key(trouble: Answer | str) -> None:
    async def play(address: str, pauses: list[float]) -> Any:
        async def pause(seconds: float) -> None:
            pauses.append(seconds)

        transport = AsyncTransport(address, retries=2, sleep=pause)
        try:
            return await transport.fetch("POST", "/x", body=Body.of({}), key="k1")
        finally:
            await transport.close()

    with serve(trouble, Answer(200, {"fine": True})) as server:
        assert run(play(server.address, server.pauses)) == {"fine": True}
    assert (server.keys(), len(server.pauses)) == (["k1", "k1"], 1)


def test_both_clients_have_the_same_calls() -> None:
    for one, other in ((Client, AsyncClient), (Program, AsyncProgram)):
        names = {name for name in dir(one) if not name.startswith("_")} - {"config"}
        assert names == {name for name in dir(other) if not name.startswith("_")}
        assert all(getattr(one, name).__doc__ for name in names)
