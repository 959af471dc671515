"""Counting agents that are alike gives what solving them jointly gives, and theorem 3.1."""

from itertools import product

import numpy as np
import pytest

from restive import make_problems
from restive.solvers.homogeneous import Counted, solve_counts
from restive.solvers.joint import evaluate_joint, follow, list_sets, place, solve_joint
from restive.types import Floats

ROUNDING = 1e-10


def draw_alike(instances: int, states: int, seed: int) -> tuple[Floats, Floats]:
    random = np.random.default_rng([seed, states])
    return random.dirichlet(np.ones(states), size=(instances, 2, states)), random.normal(size=(instances, states))


@pytest.mark.parametrize(
    ("agents", "states", "budget"),
    [(1, 2, 1), (5, 2, 2), (6, 2, 6), (4, 3, 0), (4, 3, 2), (5, 3, 4), (3, 4, 2), (3, 1, 1)],
)
def test_counting_agrees_with_the_joint_solution(agents: int, states: int, budget: int) -> None:
    transition, reward = draw_alike(3, states, seed=agents)
    found = solve_counts(transition, reward, agents, budget, horizon=4)
    sets = list_sets(agents, budget)
    for m in range(3):
        every, rewards = np.stack([transition[m]] * agents), np.stack([reward[m]] * agents)
        best = solve_joint(every, rewards, budget, horizon=4).values
        gain = ((transition[m, 1] - transition[m, 0]) * reward[m]).sum(axis=-1)
        greedy = evaluate_joint(every, rewards, 4, sets, follow(np.stack([gain] * agents), sets))
        places = [place(np.repeat(np.arange(states), row).tolist(), states) for row in found.counts]
        np.testing.assert_allclose(found.values[m], best[0, places], rtol=0, atol=ROUNDING)
        np.testing.assert_allclose(found.greedy[m], greedy[0, places], rtol=0, atol=ROUNDING)
        assert found.gap[m] == pytest.approx((best - greedy).max(), abs=ROUNDING)


def test_row_k_of_two_state_counts_is_k_agents_in_state_one() -> None:
    counts = solve_counts(*draw_alike(1, 2, seed=0), agents=4, budget=1, horizon=1).counts
    np.testing.assert_array_equal(counts, [[4, 0], [3, 1], [2, 2], [1, 3], [0, 4]])


@pytest.mark.parametrize("agents", range(1, 13))
def test_greedy_is_optimal_for_two_state_agents_that_are_alike(agents: int) -> None:
    random = np.random.default_rng(agents)
    for budget, horizon in product({0, 1, agents // 2, agents}, (1, 7, 30)):
        up = random.choice([0.0, 0.5, 1.0], size=(300, 2, 2))  # sure moves and equal gains
        up[100:] = random.uniform(size=(200, 2, 2))
        transition = np.stack([1 - up, up], axis=-1)
        reward = random.normal(size=(300, 2))
        found = solve_counts(transition, reward, agents, budget, horizon)
        assert found.gap.max() <= 1e-9


def test_counting_finds_the_gap_of_three_state_agents_however_ties_are_broken() -> None:
    problem = make_problems("counterexample-three-state-v1")[0]
    found = solve_counts(problem.transition[:1], problem.reward[0], agents=2, budget=1, horizon=2)
    pair = found.counts.tolist().index([0, 1, 1])
    assert found.values[0, pair] == pytest.approx(1221 / 392)
    assert found.greedy[0, pair] == pytest.approx(321 / 112)
    assert found.gap[0] == pytest.approx(1221 / 392 - 321 / 112)


def test_instances_do_not_depend_on_threads_or_on_each_other() -> None:
    transition, reward = draw_alike(37, 3, seed=1)

    def solve(part: slice, threads: int) -> Counted:
        return solve_counts(transition[part], reward[part], agents=6, budget=2, horizon=5, threads=threads)

    whole = solve(slice(None), threads=1)
    for name in ("values", "greedy", "gap"):
        parts = [getattr(solve(part, threads=3), name) for part in (slice(0, 5), slice(5, 37))]
        np.testing.assert_array_equal(np.concatenate(parts), getattr(whole, name))


def test_what_is_too_large_or_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match=r"300 agents of 4 states .* 42 such agents would fit"):
        solve_counts(*draw_alike(1, 4, seed=0), agents=300, budget=10, horizon=10)
    with pytest.raises(ValueError, match=r"budget is -1; it must be a whole number from 0 to 2"):
        solve_counts(*draw_alike(1, 2, seed=0), agents=2, budget=-1, horizon=1)


@pytest.mark.soak
def test_greedy_is_optimal_for_a_hundred_thousand_random_instances_of_up_to_48_agents() -> None:
    random = np.random.default_rng(31)
    for agents in range(2, 49):
        for horizon in (3, 12, 40):
            up = random.uniform(size=(710, 2, 2))
            budget = int(random.integers(0, agents + 1))
            found = solve_counts(np.stack([1 - up, up], axis=-1), [0, 1], agents, budget, horizon)
            assert found.gap.max() <= 1e-9
