"""The probability of being chosen against plain selection with noise drawn very often, and ties in closed form."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from restive.kernels import rng
from restive.kernels.inclusion import inclusion_probabilities, near_normal_above
from restive.kernels.top_k import inclusion
from restive.types import Bools, Floats, Ints

KEY = np.uint64(77)
OFTEN = 200_000
NO_GROUPS = np.zeros(0, np.int64)
# Five standard deviations of the difference of two frequencies: an agent without noise is one in the kernel as well.
CLOSE = 5 * 0.5 * (2 / OFTEN) ** 0.5


def find(mean: Floats, noise: Floats, group: Ints, minimum: Ints, budget: int, draws: int = OFTEN) -> Floats:
    return inclusion_probabilities(mean, noise, group, minimum, budget, KEY, np.arange(mean.size) + 3, draws)[0]


def draw_near_normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    bells: Floats = (rng.random((*shape, 4)).sum(axis=-1) - 2) * 3**0.5
    return bells


def best(priority: Floats, may: Bools, places: int, rng: np.random.Generator) -> Bools:
    """Who has one of the places in each draw, of those who may; equals in an order of their own."""
    eligible = np.where(may, priority, -np.inf)
    order = np.lexsort((rng.random(eligible.shape), ~may, -eligible), axis=-1)[:, :places]
    taken = np.zeros(eligible.shape, np.bool_)
    np.put_along_axis(taken, order, True, axis=1)
    return taken & may


def select(priority: Floats, group: Ints, minimum: Sequence[int], budget: int, rng: np.random.Generator) -> Bools:
    """The selection in words: from each group its best, then the best of all that are left, [draws, N]."""
    taken = np.zeros(priority.shape, np.bool_)
    for code, places in enumerate(minimum):
        if places:
            taken |= best(priority, np.broadcast_to(group == code, priority.shape), places, rng)
    return taken | best(priority, ~taken, budget - sum(minimum), rng)


MEAN = np.array([0.9, 0.5, 0.4, 0.1, 0.0, 0.0, -0.2, -0.5, -0.6, -1.0])
NOISE = np.array([0.1, 0.5, 0.0, 1.0, 0.3, 0.3, 0.9, 0.2, 2.0, 0.7])
GROUP = np.array([0, 0, 1, 0, 1, 2, 2, 2, -1, 2])
CASES = {
    "no groups": (MEAN, NOISE, np.full(10, -1), (), 3),
    "groups without places": (MEAN, NOISE, GROUP, (0, 0, 0), 4),
    "groups that are not asked about": (MEAN, NOISE, GROUP, (0,), 4),
    "a place for the last group": (MEAN, NOISE, GROUP, (0, 0, 1), 3),
    "places that all are the groups'": (MEAN, NOISE, GROUP, (1, 1, 2), 4),
    "a group that is taken whole": (MEAN, NOISE, GROUP, (0, 2, 1), 5),
    "a group of which all but one are": (MEAN, NOISE, GROUP, (2, 0, 0), 4),
    "places that hardly matter": (MEAN, NOISE, GROUP, (1, 0, 0), 6),
    "all but one": (MEAN, NOISE, GROUP, (0, 0, 3), 9),
    "little noise": (MEAN, NOISE / 3, GROUP, (0, 1, 1), 4),
    "equals with equal noise": (np.zeros(10), np.ones(10), GROUP, (0, 0, 2), 4),
    "some without noise, and equal": (np.round(MEAN), NOISE * (NOISE > 0.4), GROUP, (1, 0, 1), 4),
    "nobody has noise, some groups are not asked about": (np.round(MEAN), np.zeros(10), GROUP, (1,), 4),
    "nobody has noise": (np.round(MEAN), np.zeros(10), GROUP, (1, 0, 2), 5),
}


@pytest.mark.parametrize("case", CASES)
def test_probabilities_are_how_often_plain_selection_chooses(case: str) -> None:
    mean, noise, group, minimum, budget = CASES[case]
    rng = np.random.default_rng(1)
    priority = mean + noise * draw_near_normal(rng, (OFTEN, mean.size))
    often = select(priority, group, minimum, budget, rng).mean(axis=0)
    found = find(mean, noise, group, np.array(minimum, np.int64), budget)
    np.testing.assert_allclose(found, often, atol=CLOSE)
    assert found.sum() == pytest.approx(budget, abs=0.02)  # its standard deviation is about 0.002


@pytest.mark.parametrize("case", CASES)
def test_errors_are_those_of_averages_over_so_many_draws(case: str) -> None:
    """The same average with 1,000 keys: its deviations from the frequency of plain selection have the stated size."""
    mean, noise, group, minimum, budget = CASES[case]
    wanted, agents = np.array(minimum, np.int64), np.arange(mean.size)
    exact = find(mean, noise, group, wanted, budget)
    found = [
        inclusion_probabilities(mean, noise, group, wanted, budget, key, agents, 32)
        for key in rng.run_keys(9, np.arange(1_000))
    ]
    probability, error = np.array(found).swapaxes(0, 1)
    if not noise.any():
        assert not error.any()
        return
    spread, stated = np.sqrt(((probability - exact) ** 2).mean(axis=0)), np.sqrt((error**2).mean(axis=0))
    assert (spread <= 1.1 * stated + 0.002).all()
    assert (stated <= 1.1 * spread + 0.03).all()  # where a draw decides by itself, 32 that agree leave 0.02


@settings(derandomize=True, max_examples=150, deadline=None)
@given(st.lists(st.sampled_from([-np.inf, -1.0, 0.0, 1.0, 2.5, np.inf]), min_size=1, max_size=12), st.data())
def test_without_noise_probabilities_are_those_of_the_choice(values: list[float], data: st.DataObject) -> None:
    mean, budget = np.array(values), data.draw(st.integers(0, len(values)))
    found = find(mean, np.zeros(mean.size), np.full(mean.size, -1), NO_GROUPS, budget, draws=1)
    np.testing.assert_allclose(found, inclusion(mean[None], np.zeros(1), budget)[0], rtol=1e-15)


def test_noise_that_is_lost_in_rounding_is_none() -> None:
    mean, noise = np.full(5, 1e6), np.full(5, 1e-12)
    np.testing.assert_allclose(find(mean, noise, np.full(5, -1), NO_GROUPS, 2, draws=3), 0.4, rtol=1e-15)


def test_infinite_priorities_have_no_use_for_noise() -> None:
    mean = np.array([np.inf, 0.0, 0.0, -np.inf])
    found = find(mean, np.ones(4), np.full(4, -1), NO_GROUPS, 2)
    np.testing.assert_allclose(found, [1.0, 0.5, 0.5, 0.0], atol=0.01)


@pytest.mark.parametrize(("budget", "probability"), [(0, 0.0), (6, 1.0)])
def test_nobody_and_everybody_are_certain(budget: int, probability: float) -> None:
    rng = np.random.default_rng(2)
    found = find(rng.normal(size=6), rng.random(6), np.array([0, 0, 0, -1, -1, -1]), np.zeros(1, np.int64), budget, 3)
    assert found.tolist() == [probability] * 6


def test_agents_in_another_order_have_the_same_probabilities() -> None:
    order, minimum = np.random.default_rng(3).permutation(10), np.array([1, 0, 2])
    plain = inclusion_probabilities(MEAN, NOISE, GROUP, minimum, 5, KEY, np.arange(10), 7)
    turned = inclusion_probabilities(MEAN[order], NOISE[order], GROUP[order], minimum, 5, KEY, order, 7)
    assert [part[order].tolist() for part in plain] == [part.tolist() for part in turned]


def test_few_draws_suffice_for_many_agents_except_where_noise_is_small() -> None:
    rng = np.random.default_rng(4)
    mean, noise, group = rng.normal(size=20_000), rng.random(20_000), rng.integers(-1, 3, 20_000)
    few, many = (find(mean, noise, group, np.array([0, 900, 0]), 2_000, draws) for draws in (8, 400))
    apart = np.abs(few - many)
    assert np.sqrt((apart**2).mean()) < 0.01
    assert apart[noise >= 0.1].max() < 0.05


def test_the_distribution_of_near_normal_is_that_of_its_draws() -> None:
    bits = rng.run_keys(5, np.arange(400_000))
    drawn = np.sort([rng.near_normal(each) for each in bits])
    for x in np.linspace(-3.6, 3.6, 25):
        assert near_normal_above(x) == pytest.approx((drawn > x).mean(), abs=5 * 0.5 / 400_000**0.5)
    assert (near_normal_above(np.inf), near_normal_above(-np.inf)) == (0.0, 1.0)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("break_even", [0.05, 0.45])
def test_nobody_below_break_even_is_chosen_and_their_places_go_to_others_above_it(case: str, break_even: float) -> None:
    mean, noise, group, minimum, budget = CASES[case]
    rng = np.random.default_rng(4)
    priority = mean + noise * draw_near_normal(rng, (OFTEN // 4, mean.size))
    worth = priority > break_even
    taken = np.zeros(priority.shape, np.bool_)
    for code, places in enumerate(minimum):
        if places:
            taken |= best(priority, (group == code) & worth, places, rng)
    left, often = budget - taken.sum(axis=1), taken.copy()
    for free in range(1, budget + 1):
        some = left == free
        often[some] |= best(priority[some], worth[some] & ~taken[some], free, rng)
    rest = np.arange(mean.size) + 3, OFTEN // 4, break_even
    found, _ = inclusion_probabilities(mean, noise, group, np.array(minimum, np.int64), budget, KEY, *rest)
    np.testing.assert_allclose(found, often.mean(axis=0), atol=2 * CLOSE)
