"""Optimistic models, against linear algebra, plain value iteration and all corners of the boxes."""

from itertools import product

import numpy as np
import pytest

from restive.solvers.optimistic_mdp import OptimisticModel, optimistic_model
from restive.types import Floats

ROUNDING = 1e-9


def draw_agents(agents: int, states: int, seed: int = 0) -> tuple[Floats, Floats, Floats, Floats]:
    """Estimates, radii (none, small, or everything allowed), rewards and prices."""
    random = np.random.default_rng([seed, states])
    estimate = random.dirichlet(np.ones(states), size=(agents, 2, states))
    radius = random.choice([0.0, 0.05, 0.3, 1.5], size=(agents, 2, states))
    return estimate, radius, random.normal(size=(agents, states)), random.normal(scale=0.5, size=agents)


def evaluate(transition: Floats, reward: Floats, price: float, discount: float, action: tuple[int, ...]) -> Floats:
    """What one agent's fixed action in each state is worth, by a linear solve."""
    chosen = np.array(action)
    rows = transition[chosen, np.arange(reward.size)]
    values: Floats = np.linalg.solve(np.eye(reward.size) - discount * rows, reward - price * chosen)
    return values


def list_corners(estimate: Floats, radius: float) -> list[Floats]:
    """All corners of the box on the simplex: every entry but one at a bound, that one what is left of 1."""
    low, high = np.maximum(0, estimate - radius), np.minimum(1, estimate + radius)
    corners = []
    for free, sides in product(range(estimate.size), product([0, 1], repeat=estimate.size)):
        row = np.where(sides, high, low)
        row[free] = 1 - np.delete(row, free).sum()
        if low[free] - 1e-12 <= row[free] <= high[free] + 1e-12:
            corners.append(row)
    return corners


@pytest.mark.parametrize("states", [1, 2, 4])
def test_without_radii_values_are_those_of_the_best_policy_of_the_estimate(states: int) -> None:
    estimate, radius, reward, price = draw_agents(40, states)
    found = optimistic_model(estimate, 0 * radius, reward, price, 0.9)
    np.testing.assert_allclose(found.transition, estimate, rtol=0, atol=ROUNDING)
    for m in range(40):
        policies = product([0, 1], repeat=states)
        best = np.max([evaluate(estimate[m], reward[m], price[m], 0.9, action) for action in policies], axis=0)
        np.testing.assert_allclose(found.values[m], best, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize(("states", "agents"), [(2, 40), (3, 6)])
def test_no_corner_of_the_boxes_gives_a_better_model(states: int, agents: int) -> None:
    estimate, radius, reward, price = draw_agents(agents, states)
    found = optimistic_model(estimate, radius, reward, price, 0.8)
    for m in range(agents):
        corners = [
            [(a, row) for a in (0, 1) for row in list_corners(estimate[m, a, s], radius[m, a, s])]
            for s in range(states)
        ]
        best = np.full(states, -np.inf)
        for choice in product(*corners):
            action, rows = np.array([a for a, _ in choice]), np.array([row for _, row in choice])
            worth = np.linalg.solve(np.eye(states) - 0.8 * rows, reward[m] - price[m] * action)
            best = np.maximum(best, worth)
        np.testing.assert_allclose(found.values[m], best, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("states", [2, 3, 10])
def test_values_are_the_fixed_point_over_the_corners_of_every_box(states: int) -> None:
    estimate, radius, reward, price = draw_agents(20 if states < 10 else 1, states)
    found = optimistic_model(estimate, radius, reward, price, 0.95)
    for m, s, a in np.ndindex(reward.shape[0], states, 2):
        value = found.values[m]
        best = max(row @ value for row in list_corners(estimate[m, a, s], float(radius[m, a, s])))
        assert found.transition[m, a, s] @ value == pytest.approx(best, abs=ROUNDING)
    worth = reward[:, None] + 0.95 * np.einsum("masj,mj->mas", found.transition, found.values)
    worth[:, 1] -= price[:, None]
    np.testing.assert_allclose(found.values, worth.max(axis=1), rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("states", [2, 3, 10])
def test_rows_are_distributions_inside_their_boxes(states: int) -> None:
    estimate, radius, reward, price = draw_agents(300, states)
    transition = optimistic_model(estimate, radius, reward, price, 0.9).transition
    np.testing.assert_allclose(transition.sum(axis=-1), 1, rtol=0, atol=ROUNDING)
    assert np.all(transition >= 0)
    assert np.all(np.abs(transition - estimate) <= radius[..., None] + ROUNDING)


def test_a_larger_box_never_lowers_the_value() -> None:
    estimate, radius, reward, price = draw_agents(200, 3)
    worth = [optimistic_model(estimate, scale * radius, reward, price, 0.9).values for scale in (0, 0.2, 0.5, 1, 2)]
    assert np.all(np.diff(worth, axis=0) >= -ROUNDING)
    assert np.any(np.diff(worth, axis=0) > 0.01)


def test_if_everything_is_allowed_the_best_state_is_reached_at_once() -> None:
    found = optimistic_model(np.zeros((1, 2, 3, 3)), np.ones((1, 2, 3)), [[0, 5, 1]], price=1, discount=0.5)
    np.testing.assert_array_equal(found.transition[0, :, :, 1], np.ones((2, 3)))
    np.testing.assert_allclose(found.values, [[5, 10, 6]], rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("states", [2, 5])
def test_any_start_leads_to_the_same_model(states: int) -> None:
    estimate, radius, reward, price = draw_agents(300, states)
    cold = optimistic_model(estimate, radius, reward, price, 0.9)
    starts = [cold.values, np.zeros_like(reward), np.random.default_rng(1).normal(scale=30, size=reward.shape)]
    for start in starts:
        before = start.copy()
        warm = optimistic_model(estimate, radius, reward, price, 0.9, values=start)
        np.testing.assert_array_equal(start, before)
        np.testing.assert_allclose(warm.values, cold.values, rtol=0, atol=ROUNDING)
        np.testing.assert_allclose(warm.transition, cold.transition, rtol=0, atol=ROUNDING)


def test_agents_do_not_depend_on_the_rest_of_the_batch() -> None:
    estimate, radius, reward, price = draw_agents(101, 4)
    whole = optimistic_model(estimate, radius, reward, price, 0.9)
    parts = [
        optimistic_model(estimate[part], radius[part], reward[part], price[part], 0.9)
        for part in (slice(0, 1), slice(1, 40), slice(40, 101))
    ]
    together = OptimisticModel(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
    np.testing.assert_array_equal(whole.transition, together.transition)
    np.testing.assert_array_equal(whole.values, together.values)


def test_one_price_holds_for_all_agents() -> None:
    estimate, radius, reward, _ = draw_agents(30, 2)
    one = optimistic_model(estimate, radius, reward, 0.3, 0.9)
    each = optimistic_model(estimate, radius, reward, np.full(30, 0.3), 0.9)
    np.testing.assert_array_equal(one.values, each.values)


def test_a_loose_tolerance_is_respected() -> None:
    estimate, radius, reward, price = draw_agents(300, 3)
    exact = optimistic_model(estimate, radius, reward, price, 0.9).values
    nearly = optimistic_model(estimate, radius, reward, price, 0.9, values=exact + 0.003, tolerance=1e-2).values
    allowed = 1e-2 * (np.abs(reward).max(axis=1) + np.abs(price)) / (1 - 0.9)
    assert np.all(np.abs(nearly - exact) <= allowed[:, None])
    assert np.any(nearly != exact)


@pytest.mark.parametrize("discount", [-0.1, 1.0, np.nan])
def test_a_discount_outside_zero_to_one_is_refused(discount: float) -> None:
    estimate, radius, reward, price = draw_agents(1, 2)
    with pytest.raises(ValueError, match=r"discount is .*; it must be at least 0 and below 1"):
        optimistic_model(estimate, radius, reward, price, discount)


def test_an_agent_that_does_not_converge_is_named() -> None:
    estimate, radius, reward, price = draw_agents(5, 2)
    start = optimistic_model(estimate, radius, reward, price, 0.9).values
    start[3] += 1
    with pytest.raises(ValueError, match="agent 3 did not converge in 0 rounds"):
        optimistic_model(estimate, radius, reward, price, 0.9, values=start, rounds=0)
