"""Exact values of small restless bandits: dynamic programming over the joint state of all agents.

V_T = 0;  V_t(s) = max over sets of exactly B agents of E[ Σ_n reward[n, s'_n] + V_{t+1}(s') ].

Rewards come on arrival, so the reward of the first state is not included; Xu et al. (appendix) do include it, and their
horizon of three is three rewards and two moves. A joint state is one number, `joint_index(states, S)`, in which the
last agent's state changes fastest. Arrays of `fractions.Fraction` (dtype object) give exact results.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, takewhile
from math import comb
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.errors import InputError, check_whole
from restive.types import Ints

Numbers: TypeAlias = NDArray[Any]
MAX_CELLS = 50_000_000
TIE = 1e-12


class Joint(NamedTuple):
    """The optimal values [T + 1, S**N], and in best [T, S**N] the row of sets [C, N] to act on."""

    values: Numbers
    best: Ints
    sets: Ints


def joint_index(states: Sequence[int], size: int) -> int:
    """The index of a joint state if each agent has `size` states: Σ_n states[n] size^(N−1−n).

    >>> joint_index((1, 0, 2), size=3)
    11
    """
    return int(np.ravel_multi_index(tuple(states), (size,) * len(states)))


def list_sets(agents: int, budget: int) -> Ints:
    """Every set of exactly `budget` agents as a row of zeros and ones, in the order of `itertools.combinations`.

    >>> list_sets(3, 2)
    array([[1, 1, 0],
           [1, 0, 1],
           [0, 1, 1]])
    """
    sets = np.zeros((comb(agents, budget), agents), dtype=np.int64)
    for row, chosen in zip(sets, combinations(range(agents), budget), strict=True):
        row[list(chosen)] = 1
    return sets


def solve_joint(transition: ArrayLike, reward: ArrayLike, budget: int, horizon: int) -> Joint:
    """Solve N agents exactly, from transition [N, 2, S, S] and reward [N, S]; of equally good sets the first is taken.

    >>> stay, toss = [[1, 0], [0, 1]], [[0.5, 0.5], [0.5, 0.5]]  # acting moves to a random state, and state 1 pays
    >>> joint = solve_joint([[stay, toss]] * 2, [[0, 1]] * 2, budget=1, horizon=1)
    >>> float(joint.values[0, joint_index((0, 1), 2)]), joint.sets[joint.best[0, joint_index((0, 1), 2)]]
    (1.5, array([1, 0]))
    """
    transition, reward = _keep_exact(transition), _keep_exact(reward)
    check_whole("budget", budget, 0, len(reward))
    check_whole("horizon", horizon, 0)
    agents, states = reward.shape
    require_fit(agents, states, lambda n: states**n * max(comb(n, min(n, budget)), horizon + 1))
    sets, total = list_sets(agents, budget), _at_joint_states(reward).sum(axis=0)
    values = np.full((horizon + 1, total.size), -np.inf, dtype=np.result_type(transition, reward))
    values[horizon] = 0
    best = np.zeros((horizon, total.size), dtype=np.int64)
    for t in reversed(range(horizon)):
        for rows, expected in _expect(transition, total + values[t + 1], sets, np.arange(len(sets))):
            better = expected > values[t]
            values[t, better] = expected[better]
            best[t, better] = rows[0]
    return Joint(values, best, sets)


def evaluate_joint(
    transition: ArrayLike, reward: ArrayLike, horizon: int, sets: ArrayLike, weights: ArrayLike = 1
) -> Numbers:
    """The exact values [T + 1, S**N] of drawing row c of sets [C, N] with probability proportional to its weight.

    V_t(s) = Σ_c weights[t, s, c] E[ Σ_n reward[n, s'_n] + V_{t+1}(s') | sets[c] ] / Σ_c weights[t, s, c], where leading
    axes may be omitted or of length 1: [T, 1, C] depends on the step only, [S**N, C] on the joint state only.

    >>> off, on = [[1, 0], [1, 0]], [[0, 1], [0, 1]]  # acting leads to state 1, waiting to state 0
    >>> evaluate_joint([[off, on]] * 2, [[0, 1], [0, 10]], horizon=2, sets=[[1, 0], [0, 1]], weights=[3, 1])[0]
    array([6.5, 6.5, 6.5, 6.5])
    """
    check_whole("horizon", horizon, 0)
    transition, reward, sets = _keep_exact(transition), _keep_exact(reward), np.asarray(sets)
    weights = np.atleast_1d(np.asarray(weights))
    if np.any(weights < 0) or not np.all(weights.any(axis=-1)):
        raise InputError("weights must be 0 or more, and above 0 for at least one set at every step and joint state.")
    agents, states = reward.shape
    require_fit(agents, states, lambda n: states**n * max(len(sets), horizon + 1))
    total = _at_joint_states(reward).sum(axis=0)
    weights = np.broadcast_to(weights, (horizon, total.size, len(sets)))
    values = np.zeros((horizon + 1, total.size), dtype=np.result_type(transition, reward))
    for t in reversed(range(horizon)):
        for rows, expected in _expect(transition, total + values[t + 1], sets, np.arange(len(sets))):
            values[t] += weights[t][:, rows].sum(axis=1) * expected
        values[t] /= weights[t].sum(axis=1)
    return values


def follow(priority: ArrayLike, sets: ArrayLike) -> Ints:
    """The weights [S**N, C] of acting on the highest of priority [N, S]; all ways to break a tie have equal weight.

    Priorities that differ by no more than rounding are tied, unless they are exact.

    >>> follow([[0.1, 0.5], [0.3, 0.5]], sets=[[1, 0], [0, 1]])
    array([[0, 1],
           [0, 1],
           [1, 0],
           [1, 1]])
    """
    priority, sets = _keep_exact(priority), np.asarray(sets)
    agents, states = priority.shape
    require_fit(agents, states, lambda n: states**n * len(sets))
    score = (sets @ _at_joint_states(priority)).T
    slack = 0 if priority.dtype == object else TIE * np.abs(priority).sum()
    return np.asarray(score >= score.max(axis=1, keepdims=True) - slack).astype(np.int64)


def _keep_exact(numbers: ArrayLike) -> Numbers:
    array = np.asarray(numbers)
    return array if array.dtype == object else array.astype(np.float64)


def require_fit(agents: int, states: int, size: Callable[[int], int]) -> None:
    """Raise InputError if a problem does not fit into memory; `size` gives the cells for a number of agents."""
    if size(agents) > MAX_CELLS:
        fitting = sum(1 for _ in takewhile(lambda n: size(n) <= MAX_CELLS, range(1, agents)))
        raise InputError(
            f"{agents} agents of {states} states are too many for exact dynamic programming, which is limited to "
            f"{MAX_CELLS:,} states times choices; {fitting} such agents would fit."
        )


def _at_joint_states(table: Numbers) -> Numbers:
    """Look [N, S] up at every joint state: [N, S**N]."""
    agents, states = table.shape
    joint = np.indices((states,) * agents).reshape(agents, -1)
    return table[np.arange(agents)[:, None], joint]


def _expect(
    transition: Numbers, ahead: Numbers, sets: Ints, rows: Ints, agent: int = 0
) -> Iterator[tuple[Ints, Numbers]]:
    """Yield E[ahead(s')] from every joint state with its rows of `sets`; sets that start alike share their work.

    Each level averages over one agent's move along the slowest axis, and makes that axis the fastest: after N levels
    the axes are in their order again, and no matrix is larger than S × S.
    """
    if agent == len(transition):
        yield rows, ahead
        return
    for action in (1, 0):
        chosen = rows[sets[rows, agent] == action]
        if chosen.size:
            moved = ahead.reshape(transition.shape[-1], -1).T @ transition[agent, action].T
            yield from _expect(transition, moved.ravel(), sets, chosen, agent + 1)
