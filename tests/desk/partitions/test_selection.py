"""The distributed selection marks exactly those whom the single-machine selection marks, for every partitioning."""

import numpy as np
import pytest

from restive.desk.partitions.selection import BINS, find_kth, look, mark_top, order_keys
from restive.kernels import rng
from restive.kernels.top_k import choose
from restive.types import Floats

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
    tie = rng.uniform(ties, number)[0]
    for budget in (1, 700, 3001, SIZE):
        action = np.empty((1, SIZE), np.int64)
        choose(priority[None], np.zeros(1), budget, rng.branch(keys, rng.EXPLORE, 5), ties, number, action)
        split = (np.array_split(each, partitions) for each in (priority, tie, number))
        found = np.concatenate(mark_top(list(zip(*split, strict=True)), budget))
        assert found.sum() == budget
        assert (found == (action[0] == 1)).all()


def test_equal_draws_are_taken_by_the_lowest_number() -> None:
    parts = [(np.zeros(3), np.full(3, 0.5), np.arange(3)), (np.zeros(3), np.full(3, 0.5), np.arange(3, 6))]
    assert np.concatenate(mark_top(parts, 4)).tolist() == [True] * 4 + [False] * 2


def test_few_passes_of_few_bytes_suffice() -> None:
    parts = [order_keys(part) for part in np.array_split(draw("smooth"), 7)]
    sizes: list[int] = []

    def ask(low: int, high: int):  # type: ignore[no-untyped-def]
        windows = [look(part, low, high) for part in parts]
        sizes.extend(len(window.counts) for window in windows)
        return windows

    assert find_kth(ask, 600).passes <= 8
    assert max(sizes) <= BINS
