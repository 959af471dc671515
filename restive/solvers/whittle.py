"""Whittle indices of many agents, exact over the whole real line, with a test of indexability.

An agent that pays `price` per action has Q(s, a) = reward[s] − price·1{a=1} + discount · Σ_j transition[a, s, j] V(j).
Its index in s is the smallest price, coming from −∞, at which waiting is optimal in s; it is indexable if the set of
states where waiting is optimal only grows with the price. transition is [N, 2, S, S], reward [N, S].

Under one policy the advantage of acting, Q(s, 1) − Q(s, 0), is affine in the price: reward − price · work (marginal
reward and marginal work in Niño-Mora 2007). The price increases from −∞, where acting everywhere is optimal; where an
advantage reaches zero its state is flipped, and marginal reward and work follow by the Sherman-Morrison formula. Only
the flipped state's column of the underlying matrix is updated, from the flips before it (Gast, Gaujal and Khun 2023,
algorithm 2). Departure: states that return to acting are followed too, so an agent that is not indexable gets its first
crossings.
"""

from typing import NamedTuple

import numpy as np

from restive.errors import InputError, check_whole
from restive.kernels.jit import compiled, inlined
from restive.parallel import available_processors, map_chunks
from restive.types import Bools, Floats, Ints

MAX_LOOP_STATES = 48  # with more states LAPACK is faster than the loop below, although called agent by agent
ROUNDING = 1e-11  # what rounding may leave of a zero
REWARD, WORK, SIGN, COLUMN = 0, 1, 2, 3  # rows of `margin`, [4, S]; the sign is 1 where the policy acts, else −1
INDEXABLE, NOT_INDEXABLE, NO_INDEX = 1, 0, -1


class Indices(NamedTuple):
    """The Whittle index of each agent in each state, [N, S], and whether the agent is indexable, [N]."""

    value: Floats
    indexable: Bools


def whittle_indices(transition: Floats, reward: Floats, discount: float = 0.9, threads: int | None = None) -> Indices:
    """The Whittle index of each agent and state: the price at which acting and waiting are equally good.

    value[n, s] = min {price : Q(s, 0) ≥ Q(s, 1)};  a discount of 1 means the average reward, with the bias for V.

    In the example state 1 pays 1 in every step and is never left, and acting leads to it. The value of waiting forever
    in state 0 is 0, so the index there is discount / (1 − discount) = 1.

    >>> stay, climb = [[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]
    >>> whittle_indices(np.array([[stay, climb]]), np.array([[0.0, 1.0]]), discount=0.5)
    Indices(value=array([[1., 0.]]), indexable=array([ True]))
    """
    transition, reward = _check(transition, reward, discount)
    workers = check_whole("threads", available_processors() if threads is None else threads, 1)
    agents, states = reward.shape
    value, outcome = np.empty((agents, states)), np.empty(agents, dtype=np.int64)
    solve = _solve_small if states <= MAX_LOOP_STATES else _solve_large

    def work(first: int, last: int) -> None:
        part = slice(first, last)
        solve(transition[part], reward[part], float(discount), value[part], outcome[part])

    worthwhile = max(1, agents * states**3 // 20_000)  # with less work in a chunk, starting threads takes longer
    map_chunks(work, agents, min(agents, worthwhile, 4 * workers) or 1, workers)
    if agents and outcome.min() == NO_INDEX:
        raise InputError(
            f"agent {np.argmin(outcome)} has, or nearly has, two closed classes of states under one policy, "
            f"so that no index is defined for discount {discount:g}; use a discount below {discount:g}."
        )
    return Indices(value, outcome == INDEXABLE)


def _check(transition: Floats, reward: Floats, discount: float) -> tuple[Floats, Floats]:
    if not 0 < discount <= 1:
        raise InputError(f"discount is {discount!r}; it must be above 0 and at most 1 (1 means the average reward).")
    transition, reward = np.ascontiguousarray(transition, float), np.ascontiguousarray(reward, float)
    if reward.ndim != 2 or transition.shape != (len(reward), 2, *reward.shape[1:] * 2):
        shapes = f"transition is {list(transition.shape)} and reward {list(reward.shape)}"
        raise InputError(f"{shapes}; they must be [N, 2, S, S] and [N, S].")
    if not np.isfinite(transition.sum() + reward.sum()):
        numbers = np.isfinite(transition).all(axis=(1, 2, 3)) & np.isfinite(reward).all(axis=1)
        if not numbers.all():
            raise InputError(f"agent {np.argmin(numbers)} has an entry that is not a finite number.")
    return transition, reward


def _solve_large(transition: Floats, reward: Floats, discount: float, value: Floats, outcome: Ints) -> None:
    agents, states = reward.shape
    table, margin, steps, flipped = _make_scratch(states)
    for n in range(agents):
        outcome[n] = NO_INDEX
        waiting, acting = discount * transition[n]
        try:
            inverse = np.linalg.inv(np.eye(states) - acting + 1 / states)
        except np.linalg.LinAlgError:
            continue
        if np.abs(inverse).max() < 1 / ROUNDING:
            table[:, states:] = ((acting - waiting) @ inverse).T
            outcome[n] = _climb(table, reward, value, n, margin, steps, flipped)


@compiled
def _solve_small(transition: Floats, reward: Floats, discount: float, value: Floats, outcome: Ints) -> None:
    agents, states = reward.shape
    table, margin, steps, flipped = _make_scratch(states)
    for n in range(agents):
        _fill(table, transition, n, discount)
        outcome[n] = NO_INDEX
        if _eliminate(table):
            outcome[n] = _climb(table, reward, value, n, margin, steps, flipped)


@compiled
def _make_scratch(states: int) -> tuple[Floats, Floats, Floats, Ints]:
    flips = 8 * states + 32  # a limit: random agents that are not indexable took up to three flips for each state
    return np.empty((states, 2 * states)), np.empty((4, states)), np.empty((flips, states)), np.empty(flips, np.int64)


@inlined
def _fill(table: Floats, transition: Floats, n: int, discount: float) -> None:
    """Fill [Mᵀ | Dᵀ] for the policy that always acts: M = I − discount·P₁ + 1/S, D = discount·(P₁ − P₀).

    The rows of D sum to 0, so the 1/S does not change D M⁻¹; it makes M regular for the average reward, and well
    conditioned for discounts near 1.
    """
    states = table.shape[0]
    uniform = 1.0 / states
    for s in range(states):
        for j in range(states):
            acting = discount * transition[n, 1, s, j]
            table[j, s] = uniform - acting
            table[j, states + s] = acting - discount * transition[n, 0, s, j]
        table[s, s] += 1.0


@inlined
def _eliminate(table: Floats) -> bool:
    """Turn [Mᵀ | Dᵀ] into [· | (D M⁻¹)ᵀ]; False if M is singular, that is, if there are two closed classes.

    No pivoting is needed: the k-th pivot is a ratio of determinants of chains that follow P₁ in their first k or
    k − 1 states and go anywhere from the others, and it is positive until two closed classes are among the k.
    """
    states, width = table.shape[0], table.shape[1]
    for k in range(states):
        if not table[k, k] > ROUNDING:
            return False
        inverse = 1.0 / table[k, k]
        for i in range(k + 1, states):
            factor = table[i, k] * inverse
            for j in range(k + 1, width):
                table[i, j] -= factor * table[k, j]
    for k in range(states - 1, -1, -1):
        inverse = 1.0 / table[k, k]
        for i in range(k + 1, states):
            for j in range(states, width):
                table[k, j] -= table[k, i] * table[i, j]
        for j in range(states, width):
            table[k, j] *= inverse
    return True


@compiled
def _climb(table: Floats, reward: Floats, value: Floats, n: int, margin: Floats, steps: Floats, flipped: Ints) -> int:
    """Increase the price through all flips and fill the indices of agent n.

    steps [flips, S]: what a flip subtracts from every column for each unit the column has in the flipped state.
    """
    slack = ROUNDING * _begin(table, reward, value, n, margin)
    price, state, outcome = -np.inf, -1, INDEXABLE
    for flip in range(flipped.size):
        after, state, turned = _find_next(margin, price)
        if turned and not _stays_nested(margin, value, n, price, after, slack):
            outcome = NOT_INDEXABLE
        if state < 0:
            break
        price = after
        if np.isnan(value[n, state]):
            value[n, state] = price
        if not _flip(table, margin, steps, flipped, state, flip):
            return NO_INDEX
    finished = state < 0
    for s in range(value.shape[1]):
        if np.isnan(value[n, s]):
            if finished:
                return NO_INDEX
            value[n, s] = price  # no flips left: a lower bound of the index
    return outcome if finished else NOT_INDEXABLE


@inlined
def _begin(table: Floats, reward: Floats, value: Floats, n: int, margin: Floats) -> float:
    """Fill `margin` for the policy that always acts; return a bound on advantages, ‖reward‖ · ‖D M⁻¹‖."""
    states, largest_reward, norm = margin.shape[1], 0.0, 0.0
    for s in range(states):
        marginal, size = 0.0, 0.0
        for j in range(states):  # a reward common to all states cancels, and would only add rounding
            marginal += table[j, states + s] * (reward[n, j] - reward[n, 0])
            size += abs(table[j, states + s])
        margin[REWARD, s], margin[WORK, s], margin[SIGN, s], value[n, s] = marginal, 1.0, 1.0, np.nan
        largest_reward, norm = max(largest_reward, abs(reward[n, s] - reward[n, 0])), max(norm, size)
    return largest_reward * norm


@inlined
def _find_next(margin: Floats, price: float) -> tuple[float, int, bool]:
    """The price at which an advantage next reaches zero, and its state (−1 if there is none).

    Also whether some advantage of acting does not decrease with the price: only then can nesting fail.
    """
    after, state, turned = np.inf, -1, False
    for s in range(margin.shape[1]):
        work = margin[WORK, s]
        turned |= (margin[SIGN, s] > 0.0) & (work <= ROUNDING)
        if margin[SIGN, s] * work > ROUNDING:
            meeting = max(margin[REWARD, s] / work, price)
            if meeting < after:
                after, state = meeting, s
    return after, state, turned


@inlined
def _stays_nested(margin: Floats, value: Floats, n: int, price: float, after: float, slack: float) -> bool:
    """Whether waiting stays optimal up to the price `after` wherever it was optimal at `price` or below.

    An advantage may touch zero without crossing it, if another flip at the same price reverses it: that is the index.
    """
    nested = True
    for s in range(margin.shape[1]):
        marginal, work = margin[REWARD, s], margin[WORK, s]
        if margin[SIGN, s] > 0.0:
            if np.isnan(value[n, s]) and marginal - price * work <= slack:
                value[n, s] = price
            if work < -ROUNDING and marginal - after * work > slack and not np.isnan(value[n, s]):
                nested = False
    return nested


@inlined
def _flip(table: Floats, margin: Floats, steps: Floats, flipped: Ints, state: int, flip: int) -> bool:
    """Change the action in one state; False if that makes two closed classes."""
    states = margin.shape[1]
    for s in range(states):
        margin[COLUMN, s] = table[state, states + s]
    for i in range(flip):
        factor = margin[COLUMN, flipped[i]]
        for s in range(states):
            margin[COLUMN, s] -= factor * steps[i, s]
    sign, marginal, work = margin[SIGN, state], margin[REWARD, state], margin[WORK, state]
    pivot = 1.0 + sign * margin[COLUMN, state]  # the factor by which the flip changes the determinant of M
    if not pivot > ROUNDING:
        return False
    for s in range(states):
        step = margin[COLUMN, s] * (sign / pivot)
        steps[flip, s] = step
        margin[REWARD, s] -= step * marginal
        margin[WORK, s] -= step * work
    margin[SIGN, state], flipped[flip] = -sign, state
    return True
