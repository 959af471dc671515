"""The reference of the regret: anyone above the threshold, the best otherwise, and never a cost that can be spared."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from restive import InputError, Problem, World, make_policy, make_problems, simulate
from restive.contract import as_ranking
from restive.policies.threshold_oracle import ThresholdOracle
from restive.types import Ints


def fixed_benefits(gains: list[float], budget: int) -> Problem:
    """Agents whose benefit is the same in both states: waiting leads to 0, acting to 1 with that probability."""
    agents = np.array([[[[1.0, 0.0]] * 2, [[1.0 - gain, gain]] * 2] for gain in gains])
    return Problem(agents, [0, 1], budget)


def first_choices(problem: Problem, policy: ThresholdOracle, runs: int) -> Ints:
    world = World(problem, runs=runs, seed=5)
    ranked = policy.rank(policy.begin(world.shape, world.model), world.first_states(), world.draws(0))
    return world.choose(as_ranking(ranked, world.shape, policy.name), world.draws(0))


def test_all_sets_of_good_agents_are_equally_likely() -> None:
    action = first_choices(fixed_benefits([0.9, 0.2, 0.5, 0.7, 0.1], budget=2), ThresholdOracle(gamma=0.5), 6000)
    counts = Counter(tuple(np.flatnonzero(row).tolist()) for row in action)
    assert set(counts) == set(combinations([0, 2, 3], 2))
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3


@pytest.mark.parametrize("gamma", [0.8, 0.95, np.inf])
def test_too_few_good_agents_mean_the_largest_benefits(gamma: float) -> None:
    action = first_choices(fixed_benefits([0.9, 0.2, 0.5, 0.7, 0.1], budget=3), ThresholdOracle(gamma=gamma), 50)
    assert (action == [1, 0, 1, 1, 0]).all()


def test_the_default_threshold_makes_acting_free() -> None:
    problems = make_problems("many-state-v1", instances=5, agents=8, budget=3, states=3, seed=4)
    assert (simulate(problems, "threshold-oracle", horizon=60, runs=3).cost == 0).all()
    assert simulate(problems, "random", horizon=60, runs=3).cost.sum() > 0


def test_each_instance_has_its_own_threshold() -> None:
    problems = make_problems("two-state-v1", instances=3, agents=6, budget=2, seed=6)
    world, policy = World(problems, runs=2), ThresholdOracle()
    table = policy.begin(world.shape, world.model).indices
    assert table.max(axis=(1, 2)).tolist() == world.threshold.tolist()
    assert len(set(world.threshold.tolist())) == 3


@pytest.mark.parametrize("budget", [0, 6])
def test_an_empty_and_a_full_budget_cost_nothing(budget: int) -> None:
    problem = make_problems("two-state-v1", agents=6, budget=budget)[0]
    assert (simulate(problem, "threshold-oracle", horizon=10, runs=2).cost == 0).all()


def test_a_threshold_that_is_no_number_is_refused() -> None:
    with pytest.raises(InputError, match="threshold-oracle: gamma is nan; it must be a number, or None"):
        make_policy("threshold-oracle:gamma=nan")
