"""The best row in a box, against a linear program, all corners, and the cases that can be said in words."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from restive.kernels.optimistic_row import best_row, sort_descending
from restive.types import Floats, Ints

ROUNDING = 1e-12


def sort(value: Floats) -> Ints:
    order = np.empty(value.size, dtype=np.int64)
    sort_descending(value, order)
    return order


def maximise(estimate: Floats, radius: float, value: Floats) -> Floats:
    row = np.empty(estimate.size)
    best_row(estimate, radius, sort(value), row)
    return row


def draw_cases(count: int, states: int) -> list[tuple[Floats, float, Floats]]:
    random = np.random.default_rng(states)
    estimates = random.dirichlet(np.full(states, 0.5), size=count)
    radii = random.choice([0.0, 0.03, 0.2, 0.6, 1.0, 7.5], size=count)
    values = random.normal(size=(count, states)).round(1)  # rounded, so that some values are equal
    return list(zip(estimates, radii.tolist(), values, strict=True))


def bounds(estimate: Floats, radius: float) -> tuple[Floats, Floats]:
    return np.maximum(0, estimate - radius), np.minimum(1, estimate + radius)


@pytest.mark.parametrize("states", [1, 2, 3, 6])
def test_no_row_of_the_linear_program_is_better(states: int) -> None:
    for estimate, radius, value in draw_cases(60, states):
        low, high = bounds(estimate, radius)
        program = linprog(-value, A_eq=np.ones((1, states)), b_eq=[1], bounds=np.column_stack([low, high]))
        assert maximise(estimate, radius, value) @ value == pytest.approx(-program.fun, abs=1e-9)


@pytest.mark.parametrize("states", [2, 3, 4])
def test_no_corner_of_the_box_is_better(states: int) -> None:
    # At a corner all entries but one are at a bound, and that one is what is left of 1.
    for estimate, radius, value in draw_cases(60, states):
        low, high = bounds(estimate, radius)
        best = -np.inf
        for free, sides in product(range(states), product([0, 1], repeat=states)):
            row = np.where(sides, high, low)
            row[free] = 1 - np.delete(row, free).sum()
            if low[free] - ROUNDING <= row[free] <= high[free] + ROUNDING:
                best = max(best, float(row @ value))
        assert maximise(estimate, radius, value) @ value == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("states", [1, 2, 3, 10])
def test_the_row_is_a_distribution_inside_the_box(states: int) -> None:
    for estimate, radius, value in draw_cases(200, states):
        row = maximise(estimate, radius, value)
        low, high = bounds(estimate, radius)
        assert row.sum() == pytest.approx(1, abs=ROUNDING)
        assert np.all(row >= low - ROUNDING)
        assert np.all(row <= high + ROUNDING)


def test_without_a_radius_the_row_is_the_estimate() -> None:
    estimate = np.array([0.2, 0.5, 0.3])
    np.testing.assert_allclose(maximise(estimate, 0.0, np.array([3.0, 1.0, 2.0])), estimate, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("estimate", [[0.2, 0.5, 0.3], [0.0, 0.0, 0.0]])
def test_an_unseen_row_goes_to_the_best_state(estimate: list[float]) -> None:
    np.testing.assert_array_equal(maximise(np.array(estimate), 1.0, np.array([1.0, 2.0, 3.0])), [0, 0, 1])


@pytest.mark.parametrize("states", [1, 2, 5, 12])
def test_places_are_sorted_by_value_and_equal_values_by_place(states: int) -> None:
    for _, _, value in draw_cases(100, states):
        np.testing.assert_array_equal(sort(value), np.argsort(-value, kind="stable"))
