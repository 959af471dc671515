"""Sums over agents in fixed blocks: plain sums of few agents, and the same for every division of many into whole blocks."""

from itertools import pairwise

import numpy as np
import pytest

from restive.kernels.block_sums import BLOCK, add_blocks, climb, count_blocks, join_nodes
from restive.kernels.hierarchical_prior import add_arrivals, add_pairs
from restive.kernels.priced_values import sweep_values
from restive.types import Floats

AGENTS, STATES = 5 * BLOCK + 77, 3


def draw() -> tuple[Floats, Floats, Floats]:
    """Moves, arrivals and rewards of agents."""
    numbers = np.random.default_rng(4)
    moves = numbers.integers(0, 4, (AGENTS, 2, STATES, STATES)).astype(np.float64)
    arrivals = moves.sum(axis=(1, 2))
    return moves, arrivals, arrivals * numbers.normal(size=arrivals.shape)


def test_the_sums_of_few_agents_are_plain_sums() -> None:
    _, arrivals, total = draw()
    few = add_blocks(add_arrivals(arrivals[:BLOCK], total[:BLOCK])).reshape(4, STATES)
    expected = np.zeros(STATES)
    for row in total[:BLOCK]:
        expected += row
    assert (few[2] == expected).all()


@pytest.mark.parametrize("borders", [[3], [1, 2, 4], [1, 2, 3, 4, 5]])
def test_the_sums_of_blocks_do_not_depend_on_who_adds_them(borders: list[int]) -> None:
    moves, arrivals, total = draw()
    cuts = [border * BLOCK for border in borders]
    weight = np.full((2, STATES), 3.0)
    whole = add_arrivals(arrivals, total), add_pairs(moves, weight)[1]
    parts = zip(*(np.split(each, cuts) for each in (moves, arrivals, total)), strict=True)
    found = [(add_arrivals(n, r), add_pairs(m, weight)[1]) for m, n, r in parts]
    for expected, pieces in zip(whole, zip(*found, strict=True), strict=True):
        assert (expected == np.concatenate(pieces)).all()


def test_a_sweep_of_some_blocks_is_part_of_the_sweep_of_all() -> None:
    moves, _, total = draw()
    state, action = np.arange(AGENTS) % STATES, np.arange(AGENTS) % 2
    cost, reward = np.ones(AGENTS), total - total.mean(axis=1, keepdims=True)

    def sweep(some: slice) -> Floats:
        value = reward[None, some].copy()
        given = moves[None, some] + 1.0, reward[None, some], state[None, some], action[None, some]
        parts = sweep_values(*given, 0.9, cost[None, some], value, np.array([0.1]))
        return np.concatenate([parts.ravel(), value.ravel()])

    whole, half = sweep(slice(None)), sweep(slice(2 * BLOCK, None))
    blocks = count_blocks(AGENTS)
    assert (whole[12 : 6 * blocks] == half[: 6 * (blocks - 2)]).all()
    assert (whole[6 * blocks + 2 * BLOCK * STATES :] == half[6 * (blocks - 2) :]).all()


@pytest.mark.parametrize("blocks", [1, 2, 3, 7, 8, 13, 64])
def test_nodes_of_any_partitions_join_to_the_sum_of_the_tree(blocks: int) -> None:
    numbers = np.random.default_rng(blocks)
    parts = numbers.normal(size=(blocks, 3)) * 10.0 ** numbers.integers(-9, 9, (blocks, 3))
    expected = add_blocks(parts.copy())
    for _ in range(20):
        borders = [0, *sorted(numbers.integers(0, blocks + 1, 3).tolist()), blocks]
        cuts = [(low, high) for low, high in pairwise(borders) if low < high]
        nodes = [climb(parts[low:high], low, blocks) for low, high in cuts]
        assert (join_nodes(nodes, blocks) == expected).all()
        assert all(len(each.level) <= 2 * blocks.bit_length() for each in nodes)
