import asyncio
import threading

import pytest

from restive.desk import Desk
from restive.desk.program import Program
from restive.errors import NotFound
from restive.server import program_pool
from restive.server.program_pool import Programs, _Opened


@pytest.fixture
def opened(desk: Desk) -> Programs:
    return Programs(desk)


def test_callers_get_a_program_one_at_a_time_in_the_order_of_asking(opened: Programs) -> None:
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


def test_a_caller_who_is_gone_keeps_the_program_until_its_work_is_done(opened: Programs) -> None:
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


def test_an_error_of_a_work_reaches_its_caller(opened: Programs) -> None:
    def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        asyncio.run(opened.run(fail))


def test_a_program_that_is_not_there_is_refused_without_naming_others(opened: Programs) -> None:
    async def use() -> None:
        async with opened.using("shop"):
            pass

    with pytest.raises(NotFound, match=r"^There is no program 'shop'\.$"):
        asyncio.run(use())
    with pytest.raises(NotFound, match=r"^There is no program 'shop'\.$"):
        opened.length("shop")


def test_length_counts_events_of_other_processes_too(opened: Programs, desk: Desk) -> None:
    assert opened.length("shops") == 1
    desk.program("shops").decide({"ann": "low"})
    assert opened.length("shops") == 4


def test_programs_not_used_for_longest_are_closed_unless_somebody_has_them(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_a_program_that_somebody_waits_for_is_not_closed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
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
        assert "shops" in opened._opened  # nobody has it at this moment, and somebody waits for it
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


def test_a_busy_program_is_summed_up_as_it_was_and_any_other_as_it_is(opened: Programs, desk: Desk) -> None:
    async def story() -> list[int | None]:
        found = [await opened.summarise("shops")]
        await opened.run(desk.program("shops").decide, {"ann": "low"})
        async with opened.using("shops"):
            found.append(await asyncio.wait_for(opened.summarise("shops"), 20))
        found.append(await opened.summarise("shops"))
        return [each["rounds"] for each in found]

    assert asyncio.run(story()) == [0, 0, 1]
