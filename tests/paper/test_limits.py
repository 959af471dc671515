"""Limits of policies, against brute force on small cases."""

from itertools import product

import numpy as np
import pytest
from examining import examine

from restive.paper.claims import FAILS, HOLDS
from restive.paper.tasks.limits import action_values, average_reward, many_equal_agents, occupancy_bound
from restive.solvers.joint_dp import evaluate_joint, follow, list_sets
from restive.types import Floats


def draw_agent(seed: int, states: int) -> tuple[Floats, Floats]:
    random = np.random.default_rng(seed)
    return random.dirichlet(np.ones(states), size=(2, states)), random.random(states)


def test_the_reference_policy_is_greedy_at_the_top_and_falls_from_there() -> None:
    found = examine("reference")
    assert found["reference-greedy-at-the-largest-threshold"].verdict == HOLDS
    assert found["reference-poorer-with-lower-threshold"].verdict != FAILS


def test_the_limit_of_wiql_is_below_whittle_at_a_small_budget() -> None:
    claim = examine("wiql-limit")["wiql-limit-is-whittle"]
    assert claim.verdict == FAILS
    small, *_, large = claim.parts
    assert small.value == pytest.approx(0.84, abs=0.06)
    assert large.value > 0.95


@pytest.mark.parametrize("seed", range(5))
def test_action_values_are_those_of_the_best_of_all_stationary_policies(seed: int) -> None:
    transition, reward = draw_agent(seed, states=3)
    best = np.full(3, -np.inf)
    for actions in product((0, 1), repeat=3):
        rows = transition[actions, np.arange(3)]
        best = np.maximum(best, np.linalg.solve(np.eye(3) - 0.9 * rows, rows @ reward))
    expected = np.stack([transition[a] @ (reward + 0.9 * best) for a in (0, 1)], axis=-1)
    np.testing.assert_allclose(action_values(transition, reward, 0.9), expected, atol=1e-8)


@pytest.mark.parametrize(("seed", "states"), [(1, 2), (2, 2), (3, 3)])
def test_average_reward_is_what_joint_evaluation_gains_per_step(seed: int, states: int) -> None:
    (transition, reward), agents, budget = draw_agent(seed, states), 4, 2
    index, sets = np.random.default_rng(seed).random(states), list_sets(agents, budget)
    every = np.stack([transition] * agents), np.stack([reward] * agents)
    values = evaluate_joint(*every, 200, sets, follow(np.stack([index] * agents), sets))
    gained = (values[0] - values[1])[0] / agents
    assert average_reward(transition, reward, index, agents, budget) == pytest.approx(gained, abs=1e-9)


def test_the_bound_of_one_agent_is_the_best_mixture_of_stationary_policies() -> None:
    transition, reward = draw_agent(7, states=2)
    grid = np.linspace(0, 1, 401)
    best = -np.inf
    for first, second in product(grid, grid):
        acting = np.array([first, second])
        rows = (1 - acting)[:, None] * transition[0] + acting[:, None] * transition[1]
        high = rows[0, 1] / (rows[0, 1] + rows[1, 0])
        if abs((1 - high) * first + high * second - 0.3) < 2e-3:
            best = max(best, (1 - high) * reward[0] + high * reward[1])
    assert occupancy_bound(transition, reward, 0.3) == pytest.approx(best, abs=3e-3)


def test_whittle_with_many_equal_agents_lies_between_random_choice_and_the_bound() -> None:
    few, many = (many_equal_agents(agents, 0.25, 3, types=4, seed=1) for agents in (4, 16))
    for found in (few, many):
        assert np.all(found["whittle"] <= found["bound"] + 1e-9)
        assert np.all(found["whittle"] > found["random"])
    assert np.all(many["whittle"] > few["whittle"])
