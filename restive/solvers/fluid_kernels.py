"""Compiled sweeps of the fluid solver: advantages backward in time, and fractions of agents forward in time.

A step acts on a mass of agents in their states, mass [N, S], that costs `budget`. Backward, `backward_block` computes
the advantage of acting in each pair per unit of cost, [N, S]; forward, `find_level` finds the advantage at which the
budget is used up, or the lowest level allowed if it is not:

    fraction(n, s) = clip(share + (advantage(n, s) − level) / (2 width), 0, 1),   Σ cost · mass · fraction = budget

A positive width makes the level continuous in the prices and splits ties; share is ½ up to rounding, and corrects for
the spacing of floating-point numbers around the level. The T steps are divided into blocks of about √T: only the values
at the ends of blocks are stored, and the rest is recomputed. The best rows within a box depend only on the order of the
states by value, which rarely changes from one step to the next: they are recomputed only when it does.
"""

from typing import NamedTuple

import numpy as np

from restive.kernels.jit import compiled, inlined
from restive.kernels.optimistic_row import best_row, sort_descending
from restive.types import Floats, Ints

MAX_ITERATIONS = 100
BUDGET_TOLERANCE = 1e-11


class Agents(NamedTuple):
    """Transitions, the radius of the box around them, rewards, and the cost of acting."""

    transition: Floats  # [N, 2, S, S]
    radius: Floats  # [N, 2, S], or [N, 2, 0] for none
    reward: Floats  # [N, S]
    cost: Floats  # [N]


class Workspace(NamedTuple):
    """Arrays for blocks of L steps; none of them grows with T × N."""

    checkpoint: Floats  # [T / L, N, S] value at the end of each block
    advantage: Floats  # [L, N, S] of one block
    order: Ints  # [L, N, S] of one block: the states of each agent from best to worst; [0, N, S] without a radius
    held: Ints  # [N, S] the order that `rows` were made for
    rows: Floats  # [N, 2, S, S] the present rows; without a radius, the transition itself
    fraction: Floats  # [N, S] the share of each pair that is acted on


@inlined
def _is_order(order: Ints, n: int, target: Floats) -> bool:
    """Whether `order[n]` sorts the targets from the largest to the smallest, ties by position."""
    for k in range(target.size - 1):
        j, after = order[n, k], order[n, k + 1]
        if not (target[j] > target[after] or (target[j] == target[after] and j < after)):
            return False
    return bool(order[n, 0] >= 0)


@compiled
def _make_rows(agents: Agents, order: Ints, n: int, rows: Floats) -> None:
    """Fill the rows of agent n that put the most weight within the radius on the first states of `order`."""
    for a in range(2):
        for s in range(order.size):
            best_row(agents.transition[n, a, s], agents.radius[n, a, s], order, rows[n, a, s])


@compiled
def backward_block(agents: Agents, price: Floats, value: Floats, work: Workspace) -> None:
    """Go backward over the steps of `price`: value [N, S] after the last of them becomes the value before the first.

    gain_t(s) = Σ_j (rows_1 − rows_0)(s, j) · (reward(j) + value_{t+1}(j)),   advantage_t(s) = gain_t(s) / cost
    value_t(s) = Σ_j rows_0(s, j) · (reward(j) + value_{t+1}(j)) + max(0, gain_t(s) − price_t · cost)
    """
    reward, advantage, order, held, rows = agents.reward, work.advantage, work.order, work.held, work.rows
    size, optimistic = value.shape[1], order.size > 0
    target = np.empty(size)
    for t in range(price.size - 1, -1, -1):
        for n in range(value.shape[0]):
            for j in range(size):
                target[j] = reward[n, j] + value[n, j]
            if optimistic:
                if not _is_order(held, n, target):
                    sort_descending(target, held[n])
                    _make_rows(agents, held[n], n, rows)
                for j in range(size):
                    order[t, n, j] = held[n, j]
            for s in range(size):
                wait, act = 0.0, 0.0
                for j in range(size):
                    wait += rows[n, 0, s, j] * target[j]
                    act += rows[n, 1, s, j] * target[j]
                advantage[t, n, s] = (act - wait) / agents.cost[n]
                value[n, s] = wait + max(0.0, act - wait - price[t] * agents.cost[n])


@compiled
def restore_rows(agents: Agents, work: Workspace, i: int) -> None:
    """Restore the rows of step i of the block."""
    for n in range(work.order.shape[1] if work.order.size > 0 else 0):
        for k in range(work.order.shape[2]):
            if work.held[n, k] != work.order[i, n, k]:
                _make_rows(agents, work.order[i, n], n, work.rows)
                break
        for k in range(work.order.shape[2]):
            work.held[n, k] = work.order[i, n, k]


@compiled
def fill_fractions(advantage: Floats, level: float, share: float, width: float, fraction: Floats) -> float:
    """Fill the fraction of each pair [N, S]; return the sum of the distances of advantages from the level."""
    slope, distance = 0.5 / width, 0.0
    for n in range(advantage.shape[0]):
        for s in range(advantage.shape[1]):
            above = advantage[n, s] - level
            fraction[n, s] = min(1.0, max(0.0, share + above * slope))
            distance += abs(above)
    return distance


@compiled
def _acted_cost(mass: Floats, cost: Floats, advantage: Floats, level: float, width: float) -> tuple[float, float]:
    """The cost of the mass acted on at a share of ½, and of that inside the interpolation band (0 < fraction < 1)."""
    acted, inside, slope = 0.0, 0.0, 0.5 / width
    for n in range(mass.shape[0]):
        for s in range(mass.shape[1]):
            fraction = 0.5 + (advantage[n, s] - level) * slope
            if fraction >= 1.0:
                acted += mass[n, s] * cost[n]
            elif fraction > 0.0:
                acted += mass[n, s] * cost[n] * fraction
                inside += mass[n, s] * cost[n]
    return acted, inside


@inlined
def _level_range(advantage: Floats, width: float) -> tuple[float, float]:
    """The levels at and below which all mass is acted on, and at and above which none is."""
    low, high = np.inf, -np.inf
    for n in range(advantage.shape[0]):
        for s in range(advantage.shape[1]):
            low, high = min(low, advantage[n, s]), max(high, advantage[n, s])
    return low - width, high + width


@inlined
def find_level(
    mass: Floats, cost: Floats, advantage: Floats, budget: float, width: float, guess: float, lowest: float
) -> tuple[float, float]:
    """The level, starting from `guess`, and the share at which the mass acted on costs the budget.

    If even the lowest level allowed does not use it up, that is the level. Newton steps, with bisection whenever they
    leave the interval or fail to halve the excess.
    """
    if lowest > -np.inf and _acted_cost(mass, cost, advantage, lowest, width)[0] <= budget:
        return lowest, 0.5
    level, missed, (low, high) = guess, np.inf, _level_range(advantage, width)
    low = max(low, lowest)
    for _ in range(MAX_ITERATIONS):
        acted, inside = _acted_cost(mass, cost, advantage, level, width)
        excess = acted - budget
        step = level + 2.0 * width * excess / inside if inside > 0.0 else np.inf
        if abs(excess) <= BUDGET_TOLERANCE * (1.0 + budget):
            break
        low, high = (max(low, level), high) if excess > 0.0 else (low, min(high, level))
        if not low < step < high or abs(excess) > 0.5 * missed:
            step = 0.5 * (low + high)
        if not low < step < high:
            break
        level, missed = step, abs(excess)
    return level, 0.5 - excess / inside if inside > 0.0 else 0.5


@compiled
def propagate(rows: Floats, reward: Floats, fraction: Floats, mass: Floats) -> float:
    """Move the mass [N, S] one step by rows [N, 2, S, S], in place; return the reward on arrival."""
    size = mass.shape[1]
    arriving, total = np.empty(size), 0.0
    for n in range(mass.shape[0]):
        for j in range(size):
            arriving[j] = 0.0
        for s in range(size):
            act = mass[n, s] * fraction[n, s]
            wait = mass[n, s] - act
            for j in range(size):
                arriving[j] += wait * rows[n, 0, s, j] + act * rows[n, 1, s, j]
        for j in range(size):
            total += arriving[j] * reward[n, j]
            mass[n, j] = arriving[j]
    return total


@compiled
def _copy(source: Floats, goal: Floats) -> None:
    """Copy [N, S] entry by entry; a whole-array assignment takes numba seconds to compile."""
    for n in range(source.shape[0]):
        for s in range(source.shape[1]):
            goal[n, s] = source[n, s]


@compiled
def dual_bound(start: Floats, value: Floats, budget: float, price: Floats) -> float:
    """The dual bound: Σ_n Σ_s start(s) · value(s) + budget · Σ_t price_t."""
    total = 0.0
    for n in range(start.shape[0]):
        for s in range(start.shape[1]):
            total += start[n, s] * value[n, s]
    for t in range(price.size):
        total += budget * price[t]
    return total


@compiled
def backward(agents: Agents, price: Floats, work: Workspace) -> Floats:
    """The value [N, S] of the whole horizon at the prices; also fills the checkpoints at the ends of blocks."""
    value, length = np.zeros(agents.reward.shape), work.advantage.shape[0]
    for block in range(work.checkpoint.shape[0] - 1, -1, -1):
        _copy(value, work.checkpoint[block])
        backward_block(agents, price[block * length : (block + 1) * length], value, work)
    return value


@compiled
def sweep(
    agents: Agents,
    start: Floats,
    budget: float,
    price: Floats,
    width: float,
    lowest: float,
    work: Workspace,
    level: Floats,
    share: Floats,
) -> tuple[float, float, float]:
    """A backward and a forward sweep: fill level and share [T]; return bound, value and scale.

    The scale is the mean distance of an advantage from the level: the natural unit of prices and widths.
    """
    value = backward(agents, price, work)
    bound = dual_bound(start, value, budget, price)
    mass, total, scale = start.copy(), 0.0, 0.0
    length = work.advantage.shape[0]
    for t in range(price.size):
        i = t % length
        if i == 0 and work.checkpoint.shape[0] > 1:  # a single block is still there
            _copy(work.checkpoint[t // length], value)
            backward_block(agents, price[t : t + length], value, work)
        advantage = work.advantage[i]
        level[t], share[t] = find_level(mass, agents.cost, advantage, budget, width, price[t], lowest)
        scale += fill_fractions(advantage, level[t], share[t], width, work.fraction)
        restore_rows(agents, work, i)
        total += propagate(work.rows, agents.reward, work.fraction, mass)
    return bound, total, scale / (price.size * mass.size)
