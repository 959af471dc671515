"""Exact values of identical agents: dynamic programming over the number of agents in each state.

V_T = 0;  V_t(k) = max over waiting + acted = k with Σ_s acted[s] = B of E[ Σ_s k'[s] reward[s] + V_{t+1}(k') ]

Dozens of agents are feasible, and many instances are solved at once: transition [M, 2, S, S], reward [M, S]. Rewards
come on arrival, as in `restive.solvers.joint_dp`. The greedy policy acts on the largest one-step benefit
Σ_j (P1 − P0)[s, j] reward[j] (theorem 3.1 of Xu et al.) and breaks every tie in the worst way at every step, so that a
gap of 0 holds for every greedy policy. The margin is the long-run advantage of the greedy choice over another one for
each unit of one-step advantage.
"""

from itertools import combinations_with_replacement
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from restive.errors import check_whole
from restive.kernels.jit import compiled, inlined
from restive.parallel import available_processors, map_chunks
from restive.solvers.joint_dp import require_fit
from restive.types import Bools, Floats, Ints

TIE = 1e-12
# The rounding error of values is about 1e-16 of the largest possible total reward. The margin of two choices whose
# benefits differ by less than this share of it would be rounding only: they are skipped, and the others exact to 1e-6.
MIN_DIFFERENCE = 1e-9


class CountValues(NamedTuple):
    """Values [M, C] of the optimal and of the greedy policy at every row of counts [C, S], for M instances.

    `gap` [M] is the largest difference between the two over all counts and steps. `margin` [M] is the minimum, over
    all counts, steps and choices that are not greedy, of (best value of a greedy choice − value of the other choice) /
    (one-step benefit of a greedy choice − that of the other), if all later choices are optimal. It is 1 at the last
    step and negative where greedy is not optimal. Where there is no choice (equal benefits, a budget of 0 or N, no
    steps) it is infinite.
    """

    values: Floats
    greedy: Floats
    gap: Floats
    margin: Floats
    counts: Ints


def solve_counts(
    transition: ArrayLike, reward: ArrayLike, agents: int, budget: int, horizon: int, threads: int | None = None
) -> CountValues:
    """Solve M instances of `agents` identical agents, from transition [M, 2, S, S] and reward [M, S] or [S].

    V_t(k) = max over waiting + acted = k with Σ_s acted[s] = budget of E[ Σ_s k'[s] reward[s] + V_{t+1}(k') ], where
    k[s] agents are in state s. With two states, row k of the result is for k agents in state 1.

    >>> stay, toss = [[1, 0], [0, 1]], [[0.5, 0.5], [0.5, 0.5]]
    >>> solve_counts([[stay, toss]], [0, 1], agents=2, budget=1, horizon=1).values
    array([[0.5, 1.5, 1.5]])
    """
    check_whole("budget", budget, 0, agents)
    check_whole("horizon", horizon, 0)
    # Copies, because numba would compile the kernel again for read-only arrays.
    transition = np.array(transition, dtype=np.float64, order="C")
    instances, states = transition.shape[0], transition.shape[-1]
    transition = transition.reshape(instances, 2, states, states)
    reward = np.array(np.broadcast_to(np.asarray(reward, dtype=np.float64), (instances, states)), order="C")
    require_fit(agents, states, lambda n: comb(max(min(n, budget), n - budget) + states - 1, states - 1) ** 2)
    tables = _tabulate(agents, states, budget)
    best, greedy = np.empty((2, instances, len(tables.counts)))
    found = CountValues(best, greedy, np.empty(instances), np.empty(instances), tables.counts)

    def solve(first: int, last: int) -> None:
        part = CountValues(
            found.values[first:last],
            found.greedy[first:last],
            found.gap[first:last],
            found.margin[first:last],
            found.counts,
        )
        _solve_chunk(transition[first:last], reward[first:last], horizon, tables, part)

    workers = threads or available_processors()
    map_chunks(solve, instances, min(instances, 8 * workers), workers)
    return found


class _Tables(NamedTuple):
    """Index tables of the counts of agents per state, which do not depend on the probabilities.

    Counts are sorted by the number of agents in state 1 or above, then in 2 or above, and so on: the counts of fewer
    agents come first, and agents in state 0 do not change the position. size[n] is the number of counts of n agents; a
    count is its `parent` with one more agent in state `last`; grow [C, S] adds one agent; together [waiting, acted]
    adds two counts.
    """

    waiting: int
    acted: int
    counts: Ints
    size: Ints
    parent: Ints
    last: Ints
    grow: Ints
    together: Ints


def _tabulate(agents: int, states: int, budget: int) -> _Tables:
    above = np.array(
        sorted(row[::-1] for row in combinations_with_replacement(range(agents + 1), states - 1)), np.int64
    )
    counts = -np.diff(above, axis=1, prepend=agents, append=0)
    # The numbers above, read as digits, are a sort key of the counts; the key of a sum of counts is the sum of keys.
    unit = np.cumsum(np.append(0, (agents + 1) ** np.arange(states - 2, -1, -1)))
    key = counts @ unit
    size = np.array([comb(n + states - 1, states - 1) for n in range(agents + 1)])
    last = states - 1 - np.argmax(counts[:, ::-1] > 0, axis=1)
    parent, grow = np.searchsorted(key, key - unit[last]), np.searchsorted(key, key[:, None] + unit)
    together = np.searchsorted(key, key[: size[agents - budget], None] + key[: size[budget]])
    return _Tables(agents - budget, budget, counts, size, parent, last, grow, together)


@compiled
def _count_transitions(move: Floats, agents: int, tables: _Tables) -> Floats:
    """The probability [c, x] that `agents` agents with counts c have counts x after their `move` [S, S]."""
    probability = np.zeros((tables.size[agents], tables.size[agents]))
    probability[0, 0] = 1.0
    for n in range(1, agents + 1):
        for c in range(tables.size[n] - 1, -1, -1):
            before = probability[tables.parent[c]].copy()
            probability[c] = 0.0
            for x in range(tables.size[n - 1]):
                for s in range(move.shape[0]):
                    probability[c, tables.grow[x, s]] += move[tables.last[c], s] * before[x]
    return probability


@inlined
def _benefit_shortfall(transition: Floats, reward: Floats, tables: _Tables) -> Floats:
    """How much smaller the one-step benefit of a pair [waiting, acted] is than that of the greedy pairs of its sum."""
    benefit = ((transition[1] - transition[0]) * reward).sum(axis=1)
    total = (tables.counts[: tables.together.shape[1], 1:] * (benefit[1:] - benefit[0])).sum(axis=1)
    slack = TIE * total.size * np.abs(reward).max()
    top = np.full(tables.counts.shape[0], -np.inf)
    for row in tables.together:
        top[row] = np.maximum(top[row], total)
    short: Floats = np.empty(tables.together.shape)
    for i in range(tables.together.shape[0]):
        short[i] = top[tables.together[i]] - total
        short[i, short[i] <= slack] = 0.0
    return short


@compiled
def _multiply(left: Floats, right: Floats) -> Floats:
    product = np.zeros((left.shape[0], right.shape[1]))
    for i in range(left.shape[0]):
        for k in range(left.shape[1]):
            for j in range(right.shape[1]):
                product[i, j] += left[i, k] * right[k, j]
    return product


@compiled
def _expect(total: Floats, values: Floats, wait: Floats, act: Floats, together: Ints) -> Floats:
    """The mean of total + values [C] after each pair [waiting, acted] has moved."""
    after = np.empty(together.shape)
    for i in range(together.shape[0]):
        for b in range(together.shape[1]):
            after[i, b] = total[together[i, b]] + values[together[i, b]]
    return _multiply(_multiply(wait, after), act)


@inlined
def _find_margin(lead: Floats, mean: Floats, together: Ints, weight: Floats) -> float:
    """The minimum of (value of the greedy choice − value of the pair) · weight over the pairs with a weight."""
    margin = np.inf
    for i in range(together.shape[0]):
        for b in range(together.shape[1]):
            if weight[i, b] > 0:
                margin = min(margin, (lead[together[i, b]] - mean[i, b]) * weight[i, b])
    return margin


@compiled
def _step_back(values: Floats, mean: Floats, together: Ints, allowed: Bools, sign: float) -> None:
    """Turn V_{t+1} into V_t: the maximum (sign 1) or minimum (sign −1) mean over the `allowed` [waiting, acted]."""
    values[:] = -np.inf
    for i in range(together.shape[0]):
        for b in range(together.shape[1]):
            if allowed[i, b]:
                values[together[i, b]] = max(values[together[i, b]], sign * mean[i, b])
    values *= sign


@compiled
def _solve_chunk(transition: Floats, reward: Floats, horizon: int, tables: _Tables, found: CountValues) -> None:
    """Solve the instances in turn; waiting and acted-on agents move independently, and their counts are added."""
    together, lead = tables.together, np.empty(tables.counts.shape[0])
    every = np.full(together.shape, True)
    for m in range(transition.shape[0]):
        wait = _count_transitions(transition[m, 0], tables.waiting, tables)
        act = np.ascontiguousarray(_count_transitions(transition[m, 1], tables.acted, tables).T)
        short = _benefit_shortfall(transition[m], reward[m], tables)
        greedy_choice = short == 0
        floor = MIN_DIFFERENCE * horizon * (tables.waiting + tables.acted) * np.abs(reward[m]).max()
        weight = np.where(short > floor, 1 / short, 0)
        total = (tables.counts * reward[m]).sum(axis=1)
        best, greedy = found.values[m], found.greedy[m]
        best[:], greedy[:], found.gap[m], found.margin[m] = 0.0, 0.0, 0.0, np.inf
        for _ in range(horizon):
            mean = _expect(total, best, wait, act, together)
            _step_back(lead, mean, together, greedy_choice, 1.0)
            found.margin[m] = min(found.margin[m], _find_margin(lead, mean, together, weight))
            _step_back(best, mean, together, every, 1.0)
            _step_back(greedy, _expect(total, greedy, wait, act, together), together, greedy_choice, -1.0)
            found.gap[m] = max(found.gap[m], np.max(best - greedy))
