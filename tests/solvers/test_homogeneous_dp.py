"""Counting agents that are alike gives what solving them jointly gives, and theorem 3.1."""

from functools import reduce
from itertools import product

import numpy as np
import pytest

from restive import make_problems
from restive.solvers.homogeneous_dp import CountValues, solve_counts
from restive.solvers.joint_dp import evaluate_joint, follow, joint_index, list_sets, solve_joint
from restive.types import Floats

ROUNDING, MARGIN_ROUNDING = 1e-10, 1e-6


def draw_alike(instances: int, states: int, seed: int) -> tuple[Floats, Floats]:
    random = np.random.default_rng([seed, states])
    return random.dirichlet(np.ones(states), size=(instances, 2, states)), random.normal(size=(instances, states))


def two_states(up: Floats) -> Floats:
    """Transitions [..., 2, 2, 2] from the chances [..., 2, 2] of reaching state 1, by action and state."""
    return np.stack([1 - up, up], axis=-1)


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
        places = [joint_index(np.repeat(np.arange(states), row).tolist(), states) for row in found.counts]
        np.testing.assert_allclose(found.values[m], best[0, places], rtol=0, atol=ROUNDING)
        np.testing.assert_allclose(found.greedy[m], greedy[0, places], rtol=0, atol=ROUNDING)
        assert found.gap[m] == pytest.approx((best - greedy).max(), abs=ROUNDING)


def test_row_k_of_two_state_counts_is_k_agents_in_state_one() -> None:
    counts = solve_counts(*draw_alike(1, 2, seed=0), agents=4, budget=1, horizon=1).counts
    np.testing.assert_array_equal(counts, [[4, 0], [3, 1], [2, 2], [1, 3], [0, 4]])


@pytest.mark.parametrize("agents", range(1, 13))
def test_greedy_is_optimal_for_identical_two_state_agents(agents: int) -> None:
    random = np.random.default_rng(agents)
    for budget, horizon in product({0, 1, agents // 2, agents}, (1, 7, 30)):
        up = random.choice([0.0, 0.5, 1.0], size=(300, 2, 2))  # sure moves and equal gains
        up[100:] = random.uniform(size=(200, 2, 2))
        reward = random.normal(size=(300, 2))
        found = solve_counts(two_states(up), reward, agents, budget, horizon)
        assert found.gap.max() <= 1e-9
        assert found.margin.min() >= -MARGIN_ROUNDING


def test_counting_finds_the_gap_of_three_state_agents_however_ties_are_broken() -> None:
    problem = make_problems("counterexample-three-state-v1")[0]
    found = solve_counts(problem.transition[:1], problem.reward[0], agents=2, budget=1, horizon=2)
    pair = found.counts.tolist().index([0, 1, 1])
    assert found.values[0, pair] == pytest.approx(1221 / 392)
    assert found.greedy[0, pair] == pytest.approx(321 / 112)
    assert found.gap[0] == pytest.approx(1221 / 392 - 321 / 112)


def enumerate_sets(transition: Floats, reward: Floats, agents: int, budget: int, horizon: int) -> tuple[float, float]:
    """The gap and the margin by their definitions, over every joint state and every set of agents."""
    sets = list_sets(agents, budget)
    states = np.indices((reward.size,) * agents).reshape(agents, -1).T
    moves = np.stack([reduce(np.kron, [transition[action] for action in row]) for row in sets])
    gain = ((transition[1] - transition[0]) @ reward)[states] @ sets.T
    short, total = gain.max(axis=1, keepdims=True) - gain, reward[states].sum(axis=1)
    tied, other = short < 1e-9, short >= 1e-9
    best, greedy, gap, margin = np.zeros(len(states)), np.zeros(len(states)), 0.0, np.inf
    for _ in range(horizon):
        mean = np.einsum("cij,j->ic", moves, total + best)
        lead = np.where(tied, mean, -np.inf).max(axis=1, keepdims=True) - mean
        margin = np.min(lead[other] / short[other], initial=margin)
        greedy = np.where(tied, np.einsum("cij,j->ic", moves, total + greedy), np.inf).min(axis=1)
        best = mean.max(axis=1)
        gap = max(gap, (best - greedy).max())
    every, rewards = np.stack([transition] * agents), np.stack([reward] * agents)
    np.testing.assert_allclose(best, solve_joint(every, rewards, budget, horizon).values[0], rtol=0, atol=ROUNDING)
    return float(gap), float(margin)


@pytest.mark.parametrize(
    ("agents", "states", "budget"),
    [(2, 2, 1), (3, 2, 1), (4, 2, 3), (5, 2, 2), (2, 3, 1), (3, 3, 1), (3, 3, 2), (4, 3, 2)],
)
def test_gap_and_margin_are_those_of_every_set_in_every_joint_state(agents: int, states: int, budget: int) -> None:
    transition, reward = draw_alike(40, states, seed=agents + 100)
    random = np.random.default_rng(agents)
    transition[:20] = random.multinomial(3, np.ones(states) / states, size=(20, 2, states)) / 3  # sure moves and ties
    reward[:20] = np.arange(states)
    for horizon in (1, 2, 6):
        found = solve_counts(transition, reward, agents, budget, horizon)
        slow = [enumerate_sets(*each, agents, budget, horizon) for each in zip(transition, reward, strict=True)]
        np.testing.assert_allclose(np.column_stack([found.gap, found.margin]), slow, rtol=0, atol=ROUNDING)


def test_margin_is_one_for_one_step_and_never_grows_with_the_horizon() -> None:
    transition, reward = draw_alike(200, 3, seed=2)
    margins = [
        solve_counts(transition, reward, agents=4, budget=2, horizon=horizon).margin for horizon in (1, 2, 5, 20)
    ]
    np.testing.assert_allclose(margins[0], 1, rtol=0, atol=MARGIN_ROUNDING)
    assert np.diff(margins, axis=0).max() <= MARGIN_ROUNDING
    assert np.diff(margins, axis=0).min() < -0.1


@pytest.mark.parametrize("probability", [0.1, 0.5, 1.0])
def test_margin_is_zero_where_greedy_only_ties(probability: float) -> None:
    # Acting swaps the states, waiting leads from 0 to 1. Agents in 0 and 1 earn 1 + probability and then 1 if the one in 0
    # is acted on, and 1 and then 1 + probability if the other one is.
    transition = two_states(np.array([[[1.0, probability], [1.0, 0.0]]]))
    assert solve_counts(transition, [0, 1], agents=2, budget=1, horizon=2).margin[0] == pytest.approx(0, abs=1e-12)
    assert solve_counts(transition, [0, 1], agents=2, budget=1, horizon=1).margin[0] == pytest.approx(1, abs=1e-12)


def test_margin_of_the_three_state_counterexample_is_negative_without_any_tie() -> None:
    # Of agents in states 0 and 1, acting gains 0 and 1/4. Yet acting on the one in 0, where it changes nothing, earns
    # 5/4 + 3/4 · 3/2 + 1/4 · 3/7 in two steps, and acting on the other one 3/2 + 1/2 · 3/2 + 1/2 · 3/7: less by 1/56.
    problem = make_problems("counterexample-three-state-v1")[0]
    found = solve_counts(problem.transition[:1], problem.reward[0], agents=2, budget=1, horizon=2)
    assert found.margin[0] == pytest.approx(-(1 / 56) / (1 / 4))


def test_margin_is_negative_exactly_where_greedy_loses() -> None:
    found = solve_counts(*draw_alike(2000, 3, seed=3), agents=3, budget=1, horizon=8)
    loses = found.gap > 1e-9
    np.testing.assert_array_equal(found.margin < -MARGIN_ROUNDING, loses)
    assert 200 < loses.sum() < 1800


def test_margin_is_infinite_where_there_is_nothing_to_choose() -> None:
    transition, reward = draw_alike(3, 3, seed=4)
    for budget in (0, 4):
        assert np.all(solve_counts(transition, reward, agents=4, budget=budget, horizon=5).margin == np.inf)
    assert np.all(solve_counts(transition, reward, agents=4, budget=2, horizon=0).margin == np.inf)
    alike = two_states(np.array([[[0.2, 0.5], [0.4, 0.7]]]))  # acting adds 0.2 in both states, but for rounding
    assert solve_counts(alike, [0, 1], agents=4, budget=2, horizon=5).margin[0] == np.inf


def margin_of_two_steps(up: Floats) -> Floats:
    """Two agents, one action: min(1, 1 + wait − (up[0, 1] up[1, 0] − up[0, 0] up[1, 1])) if benefit(1) < benefit(0).

    From (1, 0), the two choices differ by (wait − act) first · (V(1, 0) − V(0, 0)), where the values of the last step
    differ by 1 + wait, and by up[0, 1] up[1, 0] − up[0, 0] up[1, 1] times V(1, 1) − 2 V(1, 0) + V(0, 0) = act − wait.
    """
    wait, cross = up[:, 0, 1] - up[:, 0, 0], up[:, 0, 1] * up[:, 1, 0] - up[:, 0, 0] * up[:, 1, 1]
    return np.minimum(1, 1 + wait - cross)


def test_margin_of_two_agents_and_two_steps_has_a_closed_form() -> None:
    up = np.random.default_rng(6).uniform(size=(1000, 2, 2))
    up = np.where((up[:, 1, 1] - up[:, 1, 0] > up[:, 0, 1] - up[:, 0, 0])[:, None, None], up[:, ::-1], up)
    found = solve_counts(two_states(up), [0, 1], agents=2, budget=1, horizon=2)
    np.testing.assert_allclose(found.margin, margin_of_two_steps(up), rtol=0, atol=MARGIN_ROUNDING)


def test_margin_of_nearly_equal_gains_is_right_or_left_out() -> None:
    random = np.random.default_rng(7)
    up = random.uniform(0.1, 0.3, size=(1000, 2, 2))
    up[:, 1, 1] = up[:, 1, 0] + up[:, 0, 1] - up[:, 0, 0]
    for apart, counted in ((5e-8, True), (3e-8, False), (1e-11, False)):
        near = up - [[0, 0], [0, apart]]
        margin = solve_counts(two_states(near), [0.9, 1.0], agents=2, budget=1, horizon=2).margin
        expected = margin_of_two_steps(near) if counted else np.full(1000, np.inf)
        np.testing.assert_allclose(margin, expected, rtol=0, atol=MARGIN_ROUNDING)


def test_margin_depends_neither_on_the_unit_of_reward_nor_on_the_order_of_actions() -> None:
    transition, reward = draw_alike(100, 3, seed=5)
    margin = solve_counts(transition, reward, agents=5, budget=2, horizon=6).margin
    scaled = solve_counts(transition, 1000 * reward + 7, agents=5, budget=2, horizon=6).margin
    swapped = solve_counts(transition[:, ::-1], reward, agents=5, budget=3, horizon=6).margin
    np.testing.assert_allclose(scaled, margin, rtol=0, atol=MARGIN_ROUNDING)
    np.testing.assert_allclose(swapped, margin, rtol=0, atol=MARGIN_ROUNDING)


def test_instances_do_not_depend_on_threads_or_on_each_other() -> None:
    transition, reward = draw_alike(37, 3, seed=1)

    def solve(part: slice, threads: int) -> CountValues:
        return solve_counts(transition[part], reward[part], agents=6, budget=2, horizon=5, threads=threads)

    whole = solve(slice(None), threads=1)
    for name in ("values", "greedy", "gap", "margin"):
        parts = [getattr(solve(part, threads=3), name) for part in (slice(0, 5), slice(5, 37))]
        np.testing.assert_array_equal(np.concatenate(parts), getattr(whole, name))


def test_too_large_or_invalid_input_is_refused() -> None:
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
            found = solve_counts(two_states(up), [0, 1], agents, budget, horizon)
            assert found.gap.max() <= 1e-9
            assert found.margin.min() >= -MARGIN_ROUNDING
