"""Benefits that are shown: calibrated, not known where nothing was tried, and a pure function of the counts."""

import numpy as np
import pytest

from restive import Simulation, World, make_policy, make_problems
from restive.benchmark.calibration import find_true_benefits
from restive.contract import Shape
from restive.policies.benefits import MIN_TRIED, estimate_benefits
from restive.policies.lagrange import Lagrange
from restive.policies.transition_counts import Counts, no_counts
from restive.types import Floats


def some_counts(rows: Floats, times: int, seed: int = 0) -> Counts:
    """Every agent is seen `times` times in each state under each action; rows: [N, A, S, S], rewards 0 to S − 1."""
    moves = np.random.default_rng(seed).multinomial(times, rows).astype(np.float64)[None]
    arrivals = moves.sum(axis=(2, 3))
    return Counts(moves, arrivals, arrivals * np.arange(rows.shape[-1]))


def one_price(counts: Counts, price: float = 0.3) -> tuple[Counts, Floats, Floats, float]:
    return counts, np.zeros(1), np.full(counts.moves.shape[:2], price), 0.9


def test_with_many_observations_benefits_are_those_of_the_true_model() -> None:
    rows = np.random.default_rng(1).dirichlet(np.ones(3), (20, 2, 3))
    found = estimate_benefits(*one_price(some_counts(rows, 2_000)))
    true = find_true_benefits(rows, np.tile(np.arange(3.0), (20, 1)), price=0.3, discount=0.9)
    np.testing.assert_allclose(found.benefit[0], true, atol=0.3)
    assert found.error.max() < 0.15
    np.testing.assert_allclose(found.mean, found.benefit.mean(axis=1), rtol=1e-9)


def test_true_benefits_by_hand() -> None:
    """Acting takes state 0 to state 1, where everybody stays one step; at price 0 it is always done."""
    stay, leave = [[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]
    found = find_true_benefits(np.array([[stay, leave]]), np.array([[0.0, 1.0]]), price=0.0, discount=0.5)
    # value(0) = 0.5 value(1), value(1) = 1 + 0.5 value(0): 2/3 and 4/3
    np.testing.assert_allclose(found, [[2 / 3, 0.0]], atol=1e-9)


def test_most_intervals_hold_the_truth_and_errors_are_smaller_than_the_spread() -> None:
    problems = make_problems("two-state-v1", instances=6, agents=50, budget=10, seed=4711)
    world = World(problems, runs=1, seed=5)
    game = Simulation(world, make_policy("lagrange"))
    game.advance(30)
    found = game.policy.benefits(game.belief, world.shape, np.arange(50))
    true = np.stack(
        [
            find_true_benefits(world.model.transition[r], world.model.reward[r], float(game.belief.price[r]), 0.95)
            for r in range(6)
        ]
    )
    known = np.isfinite(found.benefit)
    assert known.mean() > 0.9
    within = np.abs(found.benefit - true) <= 1.96 * found.error
    assert 0.9 < within[known].mean() < 0.99
    assert np.sqrt(np.mean((found.benefit - true)[known] ** 2)) < 0.9 * true[known].std()


@pytest.mark.parametrize("tried", [0, MIN_TRIED - 1, MIN_TRIED])
def test_a_benefit_is_not_known_until_enough_agents_were_seen_under_both_actions(tried: int) -> None:
    counts = some_counts(np.full((12, 2, 2, 2), 0.5), 4)
    counts.moves[0, tried:, 1, 1] = 0.0
    found = estimate_benefits(*one_price(counts))
    assert np.isfinite(found.benefit[0, :, 0]).all()
    for part in (found.benefit[..., 1], found.error[..., 1], found.mean[..., 1], found.mean_error[..., 1]):
        assert np.isfinite(part).all() == (tried >= MIN_TRIED)
        assert np.isnan(part).all() == (tried < MIN_TRIED)


def test_before_the_first_step_nothing_is_known() -> None:
    shape = Shape(2, 3, 2, 1, None, np.ones(2))
    found = Lagrange().benefits(Lagrange().start(shape), shape, np.arange(3))
    assert [part.shape for part in found] == [(2, 3, 2), (2, 3, 2), (2, 2), (2, 2)]
    assert all(np.isnan(part).all() for part in found)
    assert np.isnan(estimate_benefits(no_counts(shape), np.zeros(2), np.zeros((2, 3)), 0.9).benefit).all()


def test_benefits_are_a_function_of_the_counts_alone() -> None:
    counts = some_counts(np.random.default_rng(2).dirichlet(np.ones(2), (15, 2, 2)), 6)
    first, second = (estimate_benefits(*one_price(counts)) for _ in range(2))
    for one, two in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_few_agents_get_about_the_benefits_that_they_get_among_all() -> None:
    counts = some_counts(np.random.default_rng(3).dirichlet(np.ones(2), (40, 2, 2)), 10)
    everyone, some = estimate_benefits(*one_price(counts)), estimate_benefits(*one_price(counts), np.array([3, 17]))
    assert some.benefit.shape == (1, 2, 2)
    # Two averages of 100 draws each: their difference has a standard error of 0.14 errors.
    assert (np.abs(some.benefit - everyone.benefit[:, [3, 17]]) < 5 * 0.14 * everyone.error[:, [3, 17]]).all()


def test_noise_of_rewards_makes_errors_larger() -> None:
    counts = some_counts(np.random.default_rng(4).dirichlet(np.ones(2), (30, 2, 2)), 5)
    noise = np.random.default_rng(5).normal(size=counts.total.shape) * 5 * np.sqrt(counts.arrivals)
    noisy = counts._replace(total=counts.total + noise)
    repeated = 25 * np.array([(counts.arrivals - 1).sum()])
    plain = estimate_benefits(*one_price(counts))
    found = estimate_benefits(noisy, repeated, np.full((1, 30), 0.3), 0.9)
    assert np.median(found.error) > 1.2 * np.median(plain.error)
