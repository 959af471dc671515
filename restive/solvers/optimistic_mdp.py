"""Extended value iteration: the optimistic model of many agents, each within a box around an estimate.

V(s) = reward[s] + max over a, and over rows of the box at (s, a), of −price·a + discount · Σ_j row[j] V(j)
box(s, a) = { row: |row[j] − estimate[a, s, j]| ≤ radius[a, s], 0 ≤ row[j] ≤ 1, Σ_j row[j] = 1 }

estimate and the answer's transition are [M, 2, S, S], radius [M, 2, S], reward and values [M, S]; M is any batch, such
as runs × agents. Every state and action has a box of its own, so the inner maximum is taken row by row and is exact
(Jaksch, Ortner and Auer 2010; Strehl and Littman 2008): UCWhittle in its value form (Wang et al. 2023) needs no
bilinear solver. A row without data has a radius of 1 or more, which allows any distribution.

Departure: policy iteration, not value iteration. The linear system of the best rows is solved exactly; it is diagonally
dominant, so elimination needs no pivoting.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from restive.errors import InputError
from restive.kernels.jit import compiled, inlined
from restive.kernels.optimistic_row import best_row, sort_descending
from restive.types import Floats, Ints


class OptimisticModel(NamedTuple):
    """The best rows of both actions, and the optimal values."""

    transition: Floats  # [M, 2, S, S]
    values: Floats  # [M, S]


class _Problem(NamedTuple):
    estimate: Floats  # [M, 2, S, S]
    radius: Floats  # [M, 2, S]
    reward: Floats  # [M, S]
    price: Floats  # [M]
    discount: float


def optimistic_model(
    estimate: ArrayLike,
    radius: ArrayLike,
    reward: ArrayLike,
    price: ArrayLike,
    discount: float,
    values: ArrayLike | None = None,
    tolerance: float = 1e-6,
    rounds: int = 100,
) -> OptimisticModel:
    """The rows within the boxes that maximise V, for both actions, and V; `price` is a number or [M].

    `values` is the starting point, such as an earlier result. The iteration ends when one more sweep of value iteration
    would change no value by more than tolerance · (max |reward| + |price|): the error is then at most that divided by
    1 − discount.

    >>> coin = np.full((1, 2, 2, 2), 0.5)  # state 1 pays; acting reaches it with at most 0.9
    >>> found = optimistic_model(coin, [[[0, 0], [0.4, 0.4]]], [[0, 1]], price=0.1, discount=0.5)
    >>> found.transition[0, 1, 0], found.values.round(6)
    (array([0.1, 0.9]), array([[0.7, 1.7]]))
    """
    if not 0 <= discount < 1:
        raise InputError(f"discount is {discount}; it must be at least 0 and below 1.")
    estimate = np.ascontiguousarray(estimate, dtype=np.float64)
    agents, _, states, _ = estimate.shape
    radius = _broadcast(radius, (agents, 2, states))
    reward = _broadcast(reward, (agents, states))
    found = OptimisticModel(
        np.empty_like(estimate), _broadcast(reward if values is None else values, (agents, states)).copy()
    )
    problem = _Problem(estimate, radius, reward, _broadcast(price, (agents,)), float(discount))
    failed = _solve(problem, tolerance, rounds, found)
    if failed >= 0:
        raise InputError(
            f"agent {failed} did not converge in {rounds} rounds; its numbers must be finite "
            f"and the tolerance, now {tolerance}, well above rounding."
        )
    return found


def _broadcast(numbers: ArrayLike, shape: tuple[int, ...]) -> Floats:
    return np.ascontiguousarray(np.broadcast_to(np.asarray(numbers, dtype=np.float64), shape))


@compiled
def _solve(problem: _Problem, tolerance: float, rounds: int, found: OptimisticModel) -> int:
    """Policy iteration for each agent; return the first agent that did not converge, or −1."""
    agents, states = problem.reward.shape
    order, action, system = np.empty(states, np.int64), np.empty(states, np.int64), np.empty((states, states))
    for m in range(agents):
        model, values = found.transition[m], found.values[m]
        enough = tolerance * (np.abs(problem.reward[m]).max() + abs(problem.price[m]))
        left = rounds
        while _improve(problem, m, values, order, model, action) > enough:
            if left == 0:
                return m
            _evaluate(problem, m, model, action, system, values)
            left -= 1
    return -1


@inlined
def _improve(problem: _Problem, m: int, values: Floats, order: Ints, model: Floats, action: Ints) -> float:
    """Fill the best rows and actions for `values` of agent m; return the largest change of a value by one sweep."""
    sort_descending(values, order)
    change = 0.0
    for s in range(values.size):
        top = -np.inf
        for a in range(2):
            best_row(problem.estimate[m, a, s], problem.radius[m, a, s], order, model[a, s])
            value = problem.reward[m, s] - problem.price[m] * a
            for j in range(values.size):
                value += problem.discount * model[a, s, j] * values[j]
            if value > top:
                top = value
                action[s] = a
        change = max(change, abs(top - values[s]))
    return change


@inlined
def _evaluate(problem: _Problem, m: int, model: Floats, action: Ints, system: Floats, values: Floats) -> None:
    """Fill `values` of agent m under `action`: V(s) = reward[s] − price·a + discount · Σ_j model[a, s, j] V(j)."""
    states, discount = values.size, problem.discount
    for s in range(states):
        values[s] = problem.reward[m, s] - problem.price[m] * action[s]
        for j in range(states):
            system[s, j] = (1.0 if s == j else 0.0) - discount * model[action[s], s, j]
    for k in range(states):
        for i in range(k + 1, states):
            factor = system[i, k] / system[k, k]
            values[i] -= factor * values[k]
            for j in range(k + 1, states):
                system[i, j] -= factor * system[k, j]
    for i in range(states - 1, -1, -1):
        for j in range(i + 1, states):
            values[i] -= system[i, j] * values[j]
        values[i] /= system[i, i]
