"""The fluid's market for actions, compiled: at given prices, what every action is worth, and who gets the budget.

A step sells `budget` actions to the mass [N, S] of agents in states. Looking back, `recall` finds what acting adds in
each pair, advantage [N, S]; going forward, `clear` finds the level of advantage at which exactly the budget is sold:

    fraction(n, s) = clip(share + (advantage(n, s) − level) / (2 width), 0, 1),   Σ mass · fraction = budget

A positive width makes the level continuous in the prices and splits ties; share is ½ up to rounding, and takes up what
the spacing of floating-point numbers around the level cannot say. T steps are cut in blocks of about √T: only the value
at the end of every block is kept, and the rest found again. The best rows within a box depend on the order of the
states alone, which hardly ever changes from one step to the next: only then are they made anew.
"""

from typing import NamedTuple

import numpy as np

from restive.kernels.jit import compiled
from restive.kernels.optimistic_row import best_row, sort_descending
from restive.types import Floats, Ints

SEARCHES = 100
SOLD = 1e-11


class Agents(NamedTuple):
    """How agents move, [N, 2, S, S], within which radius, [N, 2, S] or [N, 2, 0] for none, and their reward, [N, S]."""

    transition: Floats
    radius: Floats
    reward: Floats


class Bench(NamedTuple):
    """Room to work in, for blocks of L steps: nothing here grows with T × N."""

    checkpoint: Floats  # [T / L, N, S] value at the end of each block
    advantage: Floats  # [L, N, S] of one block
    order: Ints  # [L, N, S] of one block: the states of each agent from best to worst; [0, N, S] without a radius
    held: Ints  # [N, S] the order that `rows` were made for
    rows: Floats  # [N, 2, S, S] in force; without a radius, the transition itself
    fraction: Floats  # [N, S] acted on


@compiled
def _is_order(order: Ints, n: int, target: Floats) -> bool:
    """Whether `order[n]` is what sorting would give: from the largest target to the smallest, ties by place."""
    for k in range(target.size - 1):
        j, after = order[n, k], order[n, k + 1]
        if not (target[j] > target[after] or (target[j] == target[after] and j < after)):
            return False
    return bool(order[n, 0] >= 0)


@compiled
def _make_rows(agents: Agents, order: Ints, n: int, rows: Floats) -> None:
    """Write the rows of agent n that lean as far as the radius allows towards the first of `order`."""
    for a in range(2):
        for s in range(order.size):
            best_row(agents.transition[n, a, s], agents.radius[n, a, s], order, rows[n, a, s])


@compiled
def recall(agents: Agents, price: Floats, value: Floats, bench: Bench) -> None:
    """Go back over the steps of `price`: value [N, S], of what follows the last of them, becomes that of the first.

    advantage_t(s) = Σ_j (rows_1 − rows_0)(s, j) · (reward(j) + value_{t+1}(j))
    value_t(s) = Σ_j rows_0(s, j) · (reward(j) + value_{t+1}(j)) + max(0, advantage_t(s) − price_t)
    """
    reward, advantage, order, held, rows = agents.reward, bench.advantage, bench.order, bench.held, bench.rows
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
                advantage[t, n, s] = act - wait
                value[n, s] = wait + max(0.0, act - wait - price[t])


@compiled
def hold(agents: Agents, bench: Bench, i: int) -> None:
    """Put the rows in force that step i of the block was recalled with."""
    for n in range(bench.order.shape[1] if bench.order.size > 0 else 0):
        for k in range(bench.order.shape[2]):
            if bench.held[n, k] != bench.order[i, n, k]:
                _make_rows(agents, bench.order[i, n], n, bench.rows)
                break
        for k in range(bench.order.shape[2]):
            bench.held[n, k] = bench.order[i, n, k]


@compiled
def fill(advantage: Floats, level: float, share: float, width: float, fraction: Floats) -> float:
    """Write how much of each pair [N, S] is acted on; return the sum of the distances of advantages from the level."""
    slope, spread = 0.5 / width, 0.0
    for n in range(advantage.shape[0]):
        for s in range(advantage.shape[1]):
            above = advantage[n, s] - level
            fraction[n, s] = min(1.0, max(0.0, share + above * slope))
            spread += abs(above)
    return spread


@compiled
def _sell(mass: Floats, advantage: Floats, level: float, width: float) -> tuple[float, float]:
    """Return the mass acted on at a share of ½, and the mass that is torn: acted on in part."""
    sold, torn, slope = 0.0, 0.0, 0.5 / width
    for n in range(mass.shape[0]):
        for s in range(mass.shape[1]):
            fraction = 0.5 + (advantage[n, s] - level) * slope
            if fraction >= 1.0:
                sold += mass[n, s]
            elif fraction > 0.0:
                sold += mass[n, s] * fraction
                torn += mass[n, s]
    return sold, torn


@compiled
def _frame(advantage: Floats, width: float) -> tuple[float, float]:
    """Return the levels at and below which all is sold, and at and above which nothing is."""
    low, high = np.inf, -np.inf
    for n in range(advantage.shape[0]):
        for s in range(advantage.shape[1]):
            low, high = min(low, advantage[n, s]), max(high, advantage[n, s])
    return low - width, high + width


@compiled
def clear(mass: Floats, advantage: Floats, budget: float, width: float, guess: float) -> tuple[float, float]:
    """Return the level, the guess if that will do, and the share at which exactly the budget is sold.

    Newton's steps, and halving of the interval whenever they leave it or fail to halve what is missing.
    """
    level, missed, (low, high) = guess, np.inf, _frame(advantage, width)
    for _ in range(SEARCHES):
        sold, torn = _sell(mass, advantage, level, width)
        excess = sold - budget
        step = level + 2.0 * width * excess / torn if torn > 0.0 else np.inf
        if abs(excess) <= SOLD * (1.0 + budget):
            break
        low, high = (max(low, level), high) if excess > 0.0 else (low, min(high, level))
        if not low < step < high or abs(excess) > 0.5 * missed:
            step = 0.5 * (low + high)
        if not low < step < high:
            break
        level, missed = step, abs(excess)
    return level, 0.5 - excess / torn if torn > 0.0 else 0.5


@compiled
def move(rows: Floats, reward: Floats, fraction: Floats, mass: Floats) -> float:
    """Let the mass [N, S] move one step by rows [N, 2, S, S], acted on in part; return the reward on arrival."""
    size = mass.shape[1]
    arriving, total = np.empty(size), 0.0
    for n in range(mass.shape[0]):
        for j in range(size):
            arriving[j] = 0.0
            for s in range(size):
                act = mass[n, s] * fraction[n, s]
                arriving[j] += (mass[n, s] - act) * rows[n, 0, s, j] + act * rows[n, 1, s, j]
            total += arriving[j] * reward[n, j]
        for j in range(size):
            mass[n, j] = arriving[j]
    return total


@compiled
def _copy(source: Floats, goal: Floats) -> None:
    """Copy [N, S] entry by entry: the assignment of whole arrays takes numba seconds to compile."""
    for n in range(source.shape[0]):
        for s in range(source.shape[1]):
            goal[n, s] = source[n, s]


@compiled
def add_up(start: Floats, value: Floats, budget: float, price: Floats) -> float:
    """Return the bound: Σ_n Σ_s start(s) · value(s) + budget · Σ_t price_t."""
    total = 0.0
    for n in range(start.shape[0]):
        for s in range(start.shape[1]):
            total += start[n, s] * value[n, s]
    for t in range(price.size):
        total += budget * price[t]
    return total


@compiled
def look_back(agents: Agents, price: Floats, bench: Bench) -> Floats:
    """Return the value [N, S] of the whole horizon at the prices, and leave that of every block's end on the bench."""
    value, length = np.zeros(agents.reward.shape), bench.advantage.shape[0]
    for block in range(bench.checkpoint.shape[0] - 1, -1, -1):
        _copy(value, bench.checkpoint[block])
        recall(agents, price[block * length : (block + 1) * length], value, bench)
    return value


@compiled
def sweep(
    agents: Agents,
    start: Floats,
    budget: float,
    price: Floats,
    width: float,
    bench: Bench,
    level: Floats,
    share: Floats,
) -> tuple[float, float, float]:
    """Look back at the prices, then clear every step: write level and share [T]; return bound, value and spread.

    The spread is the mean distance of an advantage from the level: the natural unit of prices and widths.
    """
    value = look_back(agents, price, bench)
    bound = add_up(start, value, budget, price)
    mass, total, spread = start.copy(), 0.0, 0.0
    length = bench.advantage.shape[0]
    for t in range(price.size):
        i = t % length
        if i == 0:
            _copy(bench.checkpoint[t // length], value)
            recall(agents, price[t : t + length], value, bench)
        advantage = bench.advantage[i]
        level[t], share[t] = clear(mass, advantage, budget, width, price[t])
        spread += fill(advantage, level[t], share[t], width, bench.fraction)
        hold(agents, bench, i)
        total += move(bench.rows, agents.reward, bench.fraction, mass)
    return bound, total, spread / (price.size * mass.size)
