"""Extended value iteration: the most hopeful model of many agents, each known only up to a box around an estimate.

V(s) = reward[s] + max over a, and over rows of the box at (s, a), of −price·a + discount · Σ_j row[j] V(j)
box(s, a) = { row: |row[j] − estimate[a, s, j]| ≤ radius[a, s], 0 ≤ row[j] ≤ 1, Σ_j row[j] = 1 }

estimate and the answer's transition are [M, 2, S, S], radius [M, 2, S], reward and values [M, S]; M is any batch, such
as runs × agents. Every state and action has a box of its own, so the inner maximum is taken row by row and is exact
(Jaksch, Ortner and Auer 2010; Strehl and Littman 2008): UCWhittle in its value form (Wang et al. 2023) needs no solver
of bilinear programs. A row not seen yet has a radius of 1 or more: anything is allowed.

Departure: policy iteration, not value iteration. The linear system of the best rows is solved rather than approached
sweep by sweep; it is diagonally dominant, so elimination needs no pivots.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from restive.errors import InputError
from restive.kernels.jit import compiled
from restive.kernels.optimistic_row import best_row, sort_descending
from restive.types import Floats, Ints


class HopefulModel(NamedTuple):
    """The best rows of both actions, transition [M, 2, S, S], and what the best actions are worth, values [M, S]."""

    transition: Floats
    values: Floats


def optimistic_model(
    estimate: ArrayLike,
    radius: ArrayLike,
    reward: ArrayLike,
    price: ArrayLike,
    discount: float,
    values: ArrayLike | None = None,
    tolerance: float = 1e-6,
    rounds: int = 100,
) -> HopefulModel:
    """Return the rows within the boxes that maximise V, for both actions, and V; `price` is a number or [M].

    Give the last answer's `values` to start from there. It ends when one more sweep of value iteration would change no
    value by more than tolerance · (max |reward| + |price|): values are then off by no more than that / (1 − discount).

    >>> coin = np.full((1, 2, 2, 2), 0.5)  # state 1 pays; acting could lead there with 0.9, waiting is known
    >>> found = optimistic_model(coin, [[[0, 0], [0.4, 0.4]]], [[0, 1]], price=0.1, discount=0.5)
    >>> found.transition[0, 1, 0], found.values.round(6)
    (array([0.1, 0.9]), array([[0.7, 1.7]]))
    """
    if not 0 <= discount < 1:
        raise InputError(f"discount is {discount}; it must be at least 0 and below 1.")
    estimate = np.ascontiguousarray(estimate, dtype=np.float64)
    agents, _, states, _ = estimate.shape
    radius = _fill(radius, (agents, 2, states))
    reward = _fill(reward, (agents, states))
    found = HopefulModel(np.empty_like(estimate), _fill(reward if values is None else values, (agents, states)).copy())
    unsettled = _settle(estimate, radius, reward, _fill(price, (agents,)), discount, tolerance, rounds, found)
    if unsettled >= 0:
        raise InputError(
            f"agent {unsettled} did not settle in {rounds} rounds; its numbers must be finite "
            f"and the tolerance, now {tolerance}, well above rounding."
        )
    return found


def _fill(numbers: ArrayLike, shape: tuple[int, ...]) -> Floats:
    return np.ascontiguousarray(np.broadcast_to(np.asarray(numbers, dtype=np.float64), shape))


@compiled
def _settle(
    estimate: Floats,
    radius: Floats,
    reward: Floats,
    price: Floats,
    discount: float,
    tolerance: float,
    rounds: int,
    found: HopefulModel,
) -> int:
    """Improve and evaluate each agent until nothing improves; return the first agent that did not get there, or −1."""
    states = reward.shape[1]
    order, action, system = np.empty(states, np.int64), np.empty(states, np.int64), np.empty((states, states))
    for m in range(reward.shape[0]):
        model, values = found.transition[m], found.values[m]
        enough = tolerance * (np.abs(reward[m]).max() + abs(price[m]))
        left = rounds
        while _improve(estimate[m], radius[m], reward[m], price[m], discount, values, order, model, action) > enough:
            if left == 0:
                return m
            _evaluate(model, reward[m], price[m], discount, action, system, values)
            left -= 1
    return -1


@compiled
def _improve(
    estimate: Floats,
    radius: Floats,
    reward: Floats,
    price: float,
    discount: float,
    values: Floats,
    order: Ints,
    model: Floats,
    action: Ints,
) -> float:
    """Write the rows and actions that are best if `values` are right; return by how much they would change a value."""
    sort_descending(values, order)
    change = 0.0
    for s in range(reward.size):
        top = -np.inf
        for a in range(2):
            best_row(estimate[a, s], radius[a, s], order, model[a, s])
            worth = reward[s] - price * a
            for j in range(reward.size):
                worth += discount * model[a, s, j] * values[j]
            if worth > top:
                top = worth
                action[s] = a
        change = max(change, abs(top - values[s]))
    return change


@compiled
def _evaluate(
    model: Floats, reward: Floats, price: float, discount: float, action: Ints, system: Floats, values: Floats
) -> None:
    """Write into `values` what `action` is worth: V(s) = reward[s] − price·a + discount · Σ_j model[a, s, j] V(j)."""
    states = reward.size
    for s in range(states):
        values[s] = reward[s] - price * action[s]
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
