"""A partitioned program decides as the desk on one machine does, bit for bit, for every partitioning."""

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from desk.partitions.comparing import Pair, World, some_free
from restive.policies import lagrange

PEOPLE = 3 * 1024 + 500
RULES: dict[str, Any] = {
    "budget": 300, "cool_down": 3, "keep": 1, "control": 0.2, "control_until": 9, "shares": {"south": 0.5, "west": 0.3},
}  # fmt: skip


@pytest.fixture(autouse=True)
def early_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mixture of types is fitted after few rounds."""
    monkeypatch.setattr(lagrange, "FIRST_SEARCH", 3)


@pytest.fixture
def engine() -> Iterator[Executor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


@pytest.mark.parametrize(
    ("size", "settings", "missing", "unlike"),
    [
        (2048, {"budget": 300, "control": 0.0}, 0.0, 0.0),
        (1024, RULES, 0.1, 0.2),
        (8192, RULES, 0.1, 0.2),
        (2048, {**RULES, "spend": "at most", "budget": 1500}, 0.1, 0.1),
    ],
    ids=["plain", "rules", "one partition", "at most"],
)
def test_rounds_are_decided_as_on_one_machine(
    tmp_path: Path, engine: Executor, size: int, settings: dict[str, Any], missing: float, unlike: float
) -> None:
    pair = Pair(tmp_path, World(PEOPLE, missing=missing, unlike=unlike), size, engine, **settings)
    for round_ in range(11):
        given: dict[str, Any] = {}
        if round_ in (3, 6):
            names = some_free(pair, 8)
            given = {"never": names, "must": 5, "budget": 123}
        decided = pair.decide(**given)
        pair.compare(decided)
    assert pair.parts.verify(engine) == []
    assert pair.has_types()
    pair.close()


def test_the_coordinator_moves_few_bytes(tmp_path: Path, engine: Executor) -> None:
    pair = Pair(tmp_path, World(PEOPLE), 1024, engine, budget=300)
    for _ in range(2):
        moved = pair.decide().moved
    assert 2000 < sum(moved.values()) / len(pair.parts.partitions) < 5000
    pair.close()


@pytest.mark.parametrize(("size", "in_one_file"), [(1024, False), (4096, False), (2048, True)])
def test_people_come_leave_and_change_their_group(
    tmp_path: Path, engine: Executor, size: int, in_one_file: bool
) -> None:
    shares = {"south": 0.5, "abroad": 0.2, "elsewhere": 0.2}
    world = World(2000, missing=0.2, unlike=0.1, moving=0.05, arriving=400)
    pair = Pair(tmp_path, world, size, engine, **{**RULES, "shares": shares, "control_until": 4})
    for round_ in range(7):
        given: dict[str, Any] = {"left": some_free(pair, 300), "must": 3} if round_ > 2 else {}
        decided = pair.decide(in_one_file=in_one_file, **given)
        assert (decided.joined, decided.people) == (400 if round_ else 0, 2000 + 400 * round_)
        pair.compare(decided)
    assert pair.parts.verify(engine) == []
    assert pair.has_types()
    pair.close()


@pytest.mark.soak
@pytest.mark.parametrize(("partitions", "size"), [(1, 1 << 20), (3, 341 * 1024), (16, 62 * 1024)])
def test_a_million_people_are_decided_as_on_one_machine(
    tmp_path: Path, engine: Executor, partitions: int, size: int
) -> None:
    rules = {**RULES, "budget": 10_000}
    pair = Pair(tmp_path, World(1_000_000, missing=0.05, unlike=0.1), size, engine, **rules)
    assert len(pair.parts.partitions) == partitions
    for _ in range(5):
        pair.compare(pair.decide())
    assert pair.has_types()
    pair.close()
