"""Who is chosen: exactly the budget, always a valid top, ties and exploration uniform, inclusion as it happens."""

from collections import Counter
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from restive.kernels import rng
from restive.kernels.top_k import MAX_SCAN, SAMPLE_SIZE, choose, find_cutoff, inclusion
from restive.types import Floats, Ints

PRIORITIES = st.one_of(st.sampled_from([0.0, -0.0, 1.0, 2.0, np.inf, -np.inf]), st.floats(allow_nan=False))


def decide(priority: Floats, explore: float | Floats, budget: int, seed: int = 0, agents: Ints | None = None) -> Ints:
    """The choice of every run, each with noise of its own."""
    runs, size = priority.shape
    top = rng.run_keys(seed, np.arange(runs))
    coins, ties = (rng.branch(top, stream, 0) for stream in (rng.EXPLORE, rng.TIE))
    action = np.full((runs, size), -1)
    numbers = np.arange(size) if agents is None else agents
    assert choose(priority, np.broadcast_to(explore, runs).copy(), budget, coins, ties, numbers, action) == -1
    return action


def decide_slowly(priority: Floats, explore: float, budget: int, seed: int = 0) -> Ints:
    """Sort by priority and by noise, or by noise alone when the coin says so."""
    runs, size = priority.shape
    top = rng.run_keys(seed, np.arange(runs))
    coin = rng.uniform(rng.branch(top, rng.EXPLORE, 0), np.zeros(1, np.int64))[:, 0]
    noise = rng.uniform(rng.branch(top, rng.TIE, 0), np.arange(size))
    action = np.zeros((runs, size), np.int64)
    for r in range(runs):
        ranked = np.zeros(size) if coin[r] < explore else priority[r]
        action[r, np.lexsort((-noise[r], -ranked))[:budget]] = 1
    return action


def alike(row: list[float], runs: int) -> Floats:
    return np.tile(np.array(row, np.float64), (runs, 1))


def find_cutoff_slowly(values: Floats, k: int) -> tuple[float, int, int]:
    bar = np.sort(values)[-k]
    return bar, int((values > bar).sum()), int((values == bar).sum())


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.lists(PRIORITIES, min_size=1, max_size=30), st.data())
def test_the_cutoff_agrees_with_sorting(values: list[float], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(values)))
    array = np.array(values)
    assert find_cutoff(array, k) == find_cutoff_slowly(array, k)
    assert array.tolist() == values


PATTERNS: dict[str, Callable[[int], Floats]] = {
    "random": lambda size: np.random.default_rng(size).random(size),
    "ascending": lambda size: np.arange(size, dtype=np.float64),
    "descending": lambda size: -np.arange(size, dtype=np.float64),
    "equal": np.ones,
    "periodic": lambda size: np.arange(size) % 16 + np.arange(size) // 16 * 1e-6,
    "few levels": lambda size: np.random.default_rng(size).integers(0, 4, size).astype(np.float64),
    "infinite": lambda size: np.random.default_rng(size).choice([-np.inf, 0.0, 1.0, np.inf], size),
    "one apart": lambda size: np.where(np.arange(size) == size - 1, 1.0, 0.0),
}


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("size", [1, 2, 63, 64, 1000, MAX_SCAN, MAX_SCAN + 1, SAMPLE_SIZE + 1, 3 * SAMPLE_SIZE + 5])
def test_the_cutoff_agrees_with_sorting_at_every_size(pattern: str, size: int) -> None:
    values = PATTERNS[pattern](size)
    for k in {1, 2, size // 10, size // 2, size - 1, size} & set(range(1, size + 1)):
        assert find_cutoff(values, k) == find_cutoff_slowly(values, k)


def test_a_large_choice_is_that_of_sorting_by_priority_and_noise() -> None:
    priority = np.random.default_rng(3).integers(0, 6, (2, 2 * MAX_SCAN)).astype(np.float64)
    for explore in (0.0, 1.0):
        assert np.array_equal(decide(priority, explore, 1500), decide_slowly(priority, explore, 1500))


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.lists(PRIORITIES, min_size=1, max_size=12), st.integers(0, 12), st.integers(0, 99))
def test_the_chosen_are_a_valid_top_of_any_priorities(row: list[float], budget: int, seed: int) -> None:
    budget = min(budget, len(row))
    priority = alike(row, 3)
    action = decide(priority, 0.0, budget, seed)
    assert np.isin(action, (0, 1)).all()
    assert (action.sum(axis=1) == budget).all()
    if 0 < budget < len(row):
        for chosen in action == 1:
            assert priority[0][chosen].min() >= priority[0][~chosen].max()


@settings(derandomize=True, max_examples=100, deadline=None)
@given(st.lists(PRIORITIES, min_size=1, max_size=9), st.integers(0, 9), st.sampled_from([0.0, 0.3, 1.0]))
def test_the_choice_is_that_of_sorting_by_priority_and_noise(row: list[float], budget: int, explore: float) -> None:
    budget = min(budget, len(row))
    priority = alike(row, 5)
    assert np.array_equal(decide(priority, explore, budget), decide_slowly(priority, explore, budget))


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.lists(PRIORITIES, min_size=1, max_size=12), st.integers(0, 12), st.floats(0, 1))
def test_inclusion_sums_to_the_budget_and_follows_the_priorities(row: list[float], budget: int, explore: float) -> None:
    budget = min(budget, len(row))
    probability = inclusion(alike(row, 1), np.array([explore]), budget)[0]
    assert probability.sum() == pytest.approx(budget, abs=1e-12)
    assert ((probability >= 0) & (probability <= 1 + 1e-12)).all()
    ordered = probability[np.argsort(row, kind="stable")]
    assert (np.diff(ordered) >= -1e-12).all()


def test_all_sets_of_tied_agents_are_equally_likely() -> None:
    action = decide(alike([5.0, 1.0, 1.0, 1.0, 1.0, 0.0], 12_000), 0.0, 3)
    assert (action[:, 0] == 1).all()
    assert (action[:, 5] == 0).all()
    counts = Counter(tuple(np.flatnonzero(row).tolist()) for row in action[:, 1:5])
    assert set(counts) == set(combinations(range(4), 2))
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3


@pytest.mark.parametrize("value", [0.0, np.inf, -np.inf])
def test_infinite_priorities_tie_like_any_others(value: float) -> None:
    counts = decide(alike([value] * 5, 10_000), 0.0, 2).sum(axis=0)
    assert stats.chisquare(counts).pvalue > 1e-3


def test_exploring_makes_all_sets_equally_likely() -> None:
    action = decide(alike([4.0, 3.0, 2.0, 1.0], 12_000), 1.0, 2)
    counts = Counter(tuple(np.flatnonzero(row).tolist()) for row in action)
    assert set(counts) == set(combinations(range(4), 2))
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3


@pytest.mark.parametrize("explore", [0.05, 0.3, 0.9])
def test_exploration_is_as_frequent_as_asked(explore: float) -> None:
    runs = 40_000
    astray = (decide(alike([1.0, 0.0, 0.0, 0.0], runs), explore, 1)[:, 0] == 0).mean()
    wanted = explore * 3 / 4
    assert abs(astray - wanted) < 4 * np.sqrt(wanted * (1 - wanted) / runs)


def test_each_run_explores_by_its_own_probability() -> None:
    explore = np.repeat([0.0, 1.0], 4000)
    action = decide(alike([1.0, 0.0], 8000), explore, 1)
    assert (action[:4000, 0] == 1).all()
    assert abs(action[4000:, 0].mean() - 0.5) < 4 * 0.5 / np.sqrt(4000)


@pytest.mark.parametrize(
    ("row", "budget", "explore"),
    [
        ([3.0, 2.0, 2.0, 2.0, 1.0], 2, 0.25),
        ([np.inf, np.inf, 0.0, -np.inf], 3, 0.5),
        ([0.0] * 6, 2, 0.0),
        ([1.0, 2.0, 3.0], 1, 1.0),
        ([-np.inf, -np.inf, 5.0], 2, 0.1),
    ],
)
def test_inclusion_is_how_often_an_agent_is_chosen(row: list[float], budget: int, explore: float) -> None:
    runs = 40_000
    probability = inclusion(alike(row, 1), np.array([explore]), budget)[0]
    often = decide(alike(row, runs), explore, budget, seed=8).mean(axis=0)
    assert (np.abs(often - probability) <= 4 * np.sqrt(probability * (1 - probability) / runs) + 1e-12).all()


@pytest.mark.parametrize("explore", [0.0, 0.4, 1.0])
def test_no_budget_chooses_nobody_and_a_full_one_everybody(explore: float) -> None:
    priority = alike([np.inf, 0.0, -np.inf], 50)
    assert (decide(priority, explore, 0) == 0).all()
    assert (decide(priority, explore, 3) == 1).all()
    assert (inclusion(priority, np.full(50, explore), 0) == 0).all()
    assert inclusion(priority, np.full(50, explore), 3) == pytest.approx(np.ones((50, 3)))


def test_a_single_agent_is_chosen_or_not_by_the_budget() -> None:
    assert decide(np.zeros((4, 1)), 0.5, 1).tolist() == [[1]] * 4
    assert decide(np.zeros((4, 1)), 0.5, 0).tolist() == [[0]] * 4


@pytest.mark.parametrize("explore", [0.0, 1.0])
def test_the_run_of_a_missing_priority_is_reported_even_when_it_explores(explore: float) -> None:
    priority = np.zeros((4, 3))
    priority[2, 1] = np.nan
    top = rng.run_keys(0, np.arange(4))
    action = np.zeros((4, 3), np.int64)
    assert choose(priority, np.full(4, explore), 1, top, top, np.arange(3), action) == 2


def test_priorities_are_left_as_they_were() -> None:
    priority = np.random.default_rng(0).random((20, 9))
    before = priority.copy()
    decide(priority, 0.5, 4)
    inclusion(priority, np.full(20, 0.5), 4)
    assert np.array_equal(priority, before)


def test_reordering_agents_with_their_numbers_reorders_the_choice() -> None:
    rng = np.random.default_rng(1)
    priority, order = rng.integers(0, 3, (200, 8)).astype(np.float64), rng.permutation(8)
    plain = decide(priority, 0.3, 3)
    turned = decide(np.ascontiguousarray(priority[:, order]), 0.3, 3, agents=order)
    assert np.array_equal(plain[:, order], turned)
