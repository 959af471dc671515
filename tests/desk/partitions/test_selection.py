"""The distributed selection marks exactly those whom the single-machine selection marks, for every partitioning."""

import numpy as np
import pytest

from restive.desk.partitions.selection import BINS, Agents, find_cut, find_kth, look, order_keys
from restive.kernels import rng
from restive.kernels.top_k import choose
from restive.types import Bools, Floats

SIZE = 6000


def draw(kind: str) -> Floats:
    numbers = np.random.default_rng(8)
    smooth = numbers.normal(size=SIZE)
    return {
        "smooth": smooth,
        "tiny": smooth * 1e-300,
        "few values": np.round(smooth, 1),
        "equal": np.zeros(SIZE),
        "infinite": np.where(smooth > 2, np.inf, np.where(smooth < -1, -np.inf, np.round(smooth, 2))),
        "signed zeros": np.where(smooth > 0, 0.0, -0.0),
    }[kind]


@pytest.mark.parametrize("kind", ["smooth", "tiny", "few values", "equal", "infinite", "signed zeros"])
@pytest.mark.parametrize("partitions", [1, 3, 16])
def test_the_same_agents_are_marked_as_on_one_machine(kind: str, partitions: int) -> None:
    priority, number, keys = draw(kind), np.arange(SIZE), rng.run_keys(3, np.zeros(1, np.int64))
    ties = rng.branch(keys, rng.TIE, 5)
    for budget in (1, 700, 3001, SIZE):
        action = np.empty((1, SIZE), np.int64)
        choose(priority[None], np.zeros(1), budget, rng.branch(keys, rng.EXPLORE, 5), ties, number, action)
        split = zip(*(np.array_split(each, partitions) for each in (priority, number)), strict=True)
        found = mark_top([Agents(some, numbers, ties) for some, numbers in split], budget)
        assert found.sum() == budget
        assert (found == (action[0] == 1)).all()


def mark_top(parts: list[Agents], k: int) -> Bools:
    cut = find_cut(lambda above, low, high: [look(part.keys(above), low, high) for part in parts], k)
    return np.concatenate([part.mark(cut) for part in parts])


class Tied(Agents):
    def draw(self, number):  # type: ignore[no-untyped-def]
        return np.full(number.size, 5, np.uint64)


def test_equal_draws_are_taken_by_the_lowest_number() -> None:
    keys = rng.run_keys(3, np.zeros(1, np.int64))
    parts: list[Agents] = [Tied(np.zeros(3), np.arange(low, low + 3), keys) for low in (0, 3)]
    assert mark_top(parts, 4).tolist() == [True] * 4 + [False] * 2


def test_few_passes_of_few_bytes_suffice() -> None:
    parts = [order_keys(part) for part in np.array_split(draw("smooth"), 7)]
    sizes: list[int] = []

    def ask(low: int, high: int):  # type: ignore[no-untyped-def]
        windows = [look(part, low, high) for part in parts]
        sizes.extend(len(window.counts) for window in windows)
        return windows

    assert find_kth(ask, 600).passes <= 11
    assert max(sizes) <= BINS
