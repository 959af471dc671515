"""Exact dynamic programming, against plain enumeration, exact fractions, and the theorem and counterexamples."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from restive.solvers.joint_dp import Numbers, evaluate_joint, follow, joint_index, list_sets, solve_joint
from restive.types import Floats, Ints

ROUNDING = 1e-10


def draw_agents(agents: int, states: int, seed: int = 0) -> tuple[Floats, Floats]:
    random = np.random.default_rng([seed, agents, states])
    return random.dirichlet(np.ones(states), size=(agents, 2, states)), random.normal(size=(agents, states))


def list_states(agents: int, states: int) -> list[tuple[int, ...]]:
    return list(product(range(states), repeat=agents))


def expect(transition: Floats, reward: Floats, state: tuple[int, ...], chosen: Ints, after: Floats) -> float:
    """The mean of reward plus `after` over every next joint state, one by one."""
    total = 0.0
    for k, target in enumerate(list_states(*reward.shape)):
        probability, gain = 1.0, 0.0
        for n, (s, j) in enumerate(zip(state, target, strict=True)):
            probability *= transition[n, chosen[n], s, j]
            gain += reward[n, j]
        total += probability * (gain + after[k])
    return total


def choose_always(table: Ints, sets: Ints) -> Ints:
    """Weights [..., C] that are 1 for the set named in `table` [...]."""
    return np.eye(len(sets), dtype=np.int64)[table]


@pytest.mark.parametrize(
    ("agents", "states", "budget"), [(1, 3, 1), (2, 2, 0), (2, 3, 1), (3, 2, 1), (3, 2, 2), (3, 3, 3)]
)
def test_values_agree_with_a_plain_sum_over_everything_that_can_happen(agents: int, states: int, budget: int) -> None:
    transition, reward = draw_agents(agents, states)
    joint = solve_joint(transition, reward, budget, horizon=3)
    assert np.all(joint.sets.sum(axis=1) == budget)
    for t, (k, state) in product(range(3), enumerate(list_states(agents, states))):
        worth = [expect(transition, reward, state, chosen, joint.values[t + 1]) for chosen in joint.sets]
        assert joint.values[t, k] == pytest.approx(max(worth), abs=ROUNDING)
        assert joint.best[t, k] == np.argmax(worth)
    np.testing.assert_array_equal(joint.values[3], 0)


def test_no_policy_of_all_there_are_is_better() -> None:
    transition, reward = draw_agents(2, 2)
    joint = solve_joint(transition, reward, budget=1, horizon=2)
    tables = np.array(list(product([0, 1], repeat=8))).reshape(-1, 2, 4)
    worth = [evaluate_joint(transition, reward, 2, joint.sets, choose_always(table, joint.sets))[0] for table in tables]
    assert len(worth) == 256
    np.testing.assert_allclose(joint.values[0], np.max(worth, axis=0), rtol=0, atol=ROUNDING)


def test_a_policy_is_worth_the_plain_sum_over_its_sets() -> None:
    transition, reward = draw_agents(3, 2)
    sets = np.array([[1, 0, 0], [0, 1, 1], [0, 0, 0]])
    weights = np.random.default_rng(3).uniform(size=(4, 8, 3))
    values = evaluate_joint(transition, reward, 4, sets, weights)
    for t, (k, state) in product(range(4), enumerate(list_states(3, 2))):
        worth = [expect(transition, reward, state, chosen, values[t + 1]) for chosen in sets]
        assert values[t, k] == pytest.approx(np.average(worth, weights=weights[t, k]), abs=ROUNDING)


def test_the_best_sets_are_worth_the_best_values() -> None:
    transition, reward = draw_agents(4, 3)
    joint = solve_joint(transition, reward, budget=2, horizon=6)
    values = evaluate_joint(transition, reward, 6, joint.sets, choose_always(joint.best, joint.sets))
    np.testing.assert_allclose(values, joint.values, rtol=0, atol=ROUNDING)


def test_the_order_of_the_agents_does_not_matter() -> None:
    transition, reward = draw_agents(4, 2)
    order = [2, 0, 3, 1]
    one = solve_joint(transition, reward, budget=2, horizon=5).values[0]
    other = solve_joint(transition[order], reward[order], budget=2, horizon=5).values[0]
    for state in list_states(4, 2):
        assert one[joint_index(state, 2)] == pytest.approx(
            other[joint_index([state[n] for n in order], 2)], abs=ROUNDING
        )


def test_fractions_stay_fractions_and_agree_with_floats() -> None:
    random = np.random.default_rng(5)
    parts = random.integers(1, 9, size=(3, 2, 2, 2))
    transition = np.vectorize(Fraction, otypes=[object])(parts, parts.sum(axis=-1, keepdims=True))
    reward = np.vectorize(Fraction, otypes=[object])(random.integers(-5, 5, size=(3, 2)))
    exact = solve_joint(transition, reward, budget=1, horizon=4)
    rounded = solve_joint(transition.astype(float), reward.astype(float), budget=1, horizon=4)
    assert all(isinstance(value, Fraction) for value in exact.values[0])
    np.testing.assert_allclose(exact.values.astype(float), rounded.values, rtol=0, atol=ROUNDING)
    drawn = evaluate_joint(transition, reward, 4, exact.sets, follow(reward, exact.sets))
    assert all(isinstance(value, Fraction) for value in drawn[0])


def test_following_priorities_draws_all_ways_to_break_a_tie() -> None:
    priority = np.array([[0.3, 0.1], [0.1 + 0.2, 0.9], [0.3, 0.0]])  # 0.1 + 0.2 is 0.3 but for rounding
    weights = follow(priority, list_sets(3, 2))
    np.testing.assert_array_equal(weights[joint_index((0, 0, 0), 2)], [1, 1, 1])
    np.testing.assert_array_equal(weights[joint_index((0, 1, 0), 2)], [1, 0, 1])
    np.testing.assert_array_equal(weights[joint_index((1, 0, 1), 2)], [1, 0, 0])


TYPE_ONE = [[[1, 0], [2 / 3, 1 / 3]], [[1 / 3, 2 / 3], [1 / 2, 1 / 2]]]
TYPE_TWO = [[[1, 0], [1, 0]], [[1 / 4, 3 / 4], [1 / 4, 3 / 4]]]
FOUR_AGENTS = np.array([TYPE_ONE, TYPE_ONE, TYPE_TWO, TYPE_TWO])
FOUR_REWARDS = np.array([[0.0, 1.0]] * 4)
ALTERNATING = np.resize([[[1, 0]], [[0, 1]]], (20, 1, 2))


def test_alternating_beats_greedy_when_agents_differ() -> None:
    sets = list_sets(4, 1)
    gain = ((FOUR_AGENTS[:, 1] - FOUR_AGENTS[:, 0]) * FOUR_REWARDS[:, None]).sum(axis=-1)
    greedy = evaluate_joint(FOUR_AGENTS, FOUR_REWARDS, 20, sets, follow(gain, sets))[0, 0]
    alternating = evaluate_joint(FOUR_AGENTS, FOUR_REWARDS, 20, sets[:2], ALTERNATING)[0, 0]
    best = solve_joint(FOUR_AGENTS, FOUR_REWARDS, budget=1, horizon=20).values[0, 0]
    assert greedy == pytest.approx(20 * 3 / 4)
    assert alternating == pytest.approx(16.7202, abs=1e-4)
    assert best == pytest.approx(18.9974, abs=1e-4)


def test_alternating_is_worth_what_two_chains_by_themselves_are() -> None:
    total, first, second = 0.0, 0.0, 0.0  # the chances of the two agents of type one to be in state 1
    for t in range(20):
        acted, waited = (first, second) if t % 2 == 0 else (second, first)
        acted, waited = acted / 2 + (1 - acted) * 2 / 3, waited / 3
        first, second = (acted, waited) if t % 2 == 0 else (waited, acted)
        total += first + second
    assert evaluate_joint(FOUR_AGENTS, FOUR_REWARDS, 20, np.eye(4)[:2], ALTERNATING)[0, 0] == pytest.approx(total)


def test_only_starts_with_type_one_in_state_zero_fit_the_simulated_figures() -> None:
    # The figures are means of 300 runs. Twenty coins of 3/4 have a standard deviation of √3.75, so 15.02 has an error
    # of 0.112; that of 16.78 is 0.17.
    greedy = evaluate_joint(FOUR_AGENTS, FOUR_REWARDS, 20, np.eye(4)[2:])[0]
    alternating = evaluate_joint(FOUR_AGENTS, FOUR_REWARDS, 20, np.eye(4)[:2], ALTERNATING)[0]
    for state in list_states(4, 2):
        fits = (
            abs(greedy[joint_index(state, 2)] - 15.02) < 3 * 0.112
            and abs(alternating[joint_index(state, 2)] - 16.78) < 3 * 0.17
        )
        assert fits == (state[:2] == (0, 0))


def three_state_agents() -> tuple[Numbers, Numbers]:
    part = Fraction
    waiting = [[1, 0, 0], [0, part(3, 4), part(1, 4)], [part(23, 28), part(5, 28), 0]]
    acting = [[1, 0, 0], [0, part(1, 2), part(1, 2)], [part(5, 7), part(1, 7), part(1, 7)]]
    return np.array([[waiting, acting]] * 2, dtype=object), np.array([[part(0), part(1), part(2)]] * 2, dtype=object)


def act_first_then_best(transition: Numbers, reward: Numbers, horizon: int) -> list[Fraction]:
    """What acting on state 1, and on state 2, of the pair (1, 2) is worth if all that follows is optimal."""
    joint = solve_joint(transition, reward, budget=1, horizon=horizon)
    weights = choose_always(joint.best, joint.sets)
    worth = []
    for first in (0, 1):
        weights[0] = np.eye(2)[first]
        worth.append(evaluate_joint(transition, reward, horizon, joint.sets, weights)[0, joint_index((1, 2), 3)])
    return worth


def test_of_two_equal_gains_one_is_better_with_three_states() -> None:
    transition, reward = three_state_agents()
    gain = ((transition[0, 1] - transition[0, 0]) * reward[0]).sum(axis=-1)
    assert list(gain) == [0, Fraction(1, 4), Fraction(1, 4)]
    assert act_first_then_best(transition, reward, horizon=1) == [Fraction(47, 28)] * 2
    assert act_first_then_best(transition, reward, horizon=2) == [Fraction(321, 112), Fraction(1221, 392)]
    assert act_first_then_best(transition, reward, horizon=3) == [Fraction(11555, 3136), Fraction(11313, 2744)]


def test_three_state_values_agree_with_a_sum_by_hand() -> None:
    part = Fraction
    later = {  # the reward of the pair itself and of one more step from it
        (0, 1): part(5, 2),
        (0, 2): part(17, 7),
        (1, 1): part(19, 4),
        (1, 2): 3 + part(47, 28),
        (2, 2): 4 + part(17, 28),
    }
    one = part(5, 56) * later[1, 2] + part(5, 56) * later[1, 1] + part(23, 56) * (later[0, 1] + later[0, 2])
    two = (later[2, 2] + 4 * later[1, 2] + 15 * later[0, 1] + 5 * later[0, 2] + 3 * later[1, 1]) / 28
    assert act_first_then_best(*three_state_agents(), horizon=2) == [one, two]


def test_what_is_too_large_is_refused_with_what_would_fit() -> None:
    with pytest.raises(
        ValueError, match=r"40 agents of 2 states .* 50,000,000 states times choices; 21 such agents would fit"
    ):
        solve_joint(*draw_agents(40, 2), budget=1, horizon=10)
    with pytest.raises(ValueError, match=r"40 agents of 2 states .* 20 such agents would fit"):
        evaluate_joint(*draw_agents(40, 2), horizon=10, sets=np.eye(40))
    with pytest.raises(ValueError, match=r"40 agents of 2 states .* 20 such agents would fit"):
        follow(np.zeros((40, 2)), sets=np.eye(40))


@pytest.mark.parametrize("budget", [-1, 3])
def test_a_budget_that_does_not_fit_the_agents_is_refused(budget: int) -> None:
    with pytest.raises(ValueError, match=r"budget is .*; it must be a whole number from 0 to 2"):
        solve_joint(*draw_agents(2, 2), budget=budget, horizon=1)


def test_a_policy_must_say_what_to_do_everywhere() -> None:
    weights = np.ones((3, 4, 2))
    weights[1, 2] = 0
    with pytest.raises(ValueError, match="above 0 for at least one set at every step and joint state"):
        evaluate_joint(*draw_agents(2, 2), horizon=3, sets=np.eye(2), weights=weights)
