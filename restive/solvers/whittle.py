"""Whittle indices of many agents at once, exact over the whole real line, with a test of indexability.

An agent that pays `price` per action has Q(s, a) = reward[s] − price·1{a=1} + discount · Σ_j transition[a, s, j] V(j).
Its index in s is the smallest price, coming from −∞, at which waiting is optimal in s; it is indexable if the set of
states where waiting is optimal only grows with the price. transition is [N, 2, S, S], reward [N, S].

Under one policy the advantage of acting is affine in the price, worth − price · work (marginal reward and marginal
work in Niño-Mora 2007). The price climbs from −∞, where acting everywhere is optimal; where an advantage meets zero its
state is flipped, and worth and work follow by the Sherman-Morrison formula. Only the flipped state's column of the
matrix behind them is brought up to date, from the flips before it (Gast, Gaujal and Khun 2023, algorithm 2).
Departure: states that return to acting are followed too, so an agent that is not indexable has its first crossings.
"""

from typing import NamedTuple

import numpy as np

from restive.errors import InputError, check_whole
from restive.kernels.jit import compiled
from restive.parallel import available_processors, map_chunks
from restive.types import Bools, Floats, Ints

SMALL = 48  # states; beyond, LAPACK outruns the loop below although it is called agent by agent
DUST = 1e-11  # what rounding may leave of a zero
WORTH, WORK, SIGN, COLUMN = 0, 1, 2, 3  # rows of the ledger, [4, S]; the sign is 1 where the policy acts, else −1
INDEXABLE, NOT_INDEXABLE, NO_INDEX = 1, 0, -1


class Indices(NamedTuple):
    """The Whittle index of each agent in each state, [N, S], and whether the agent is indexable, [N]."""

    value: Floats
    indexable: Bools


def whittle_indices(transition: Floats, reward: Floats, discount: float = 0.9, threads: int | None = None) -> Indices:
    """Return the price of an action at which acting and waiting are equally good, for each agent and state.

    value[n, s] = min {price : Q(s, 0) ≥ Q(s, 1)};  a discount of 1 means the average reward, with the bias for V.

    Below, nothing leads out of state 1, which pays 1 a step, and acting leads into it. Waiting for ever in state 0 is
    worth 0, so acting there is worth discount / (1 − discount) = 1.

    >>> stay, climb = [[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]
    >>> whittle_indices(np.array([[stay, climb]]), np.array([[0.0, 1.0]]), discount=0.5)
    Indices(value=array([[1., 0.]]), indexable=array([ True]))
    """
    transition, reward = _check(transition, reward, discount)
    workers = check_whole("threads", available_processors() if threads is None else threads, 1)
    agents, states = reward.shape
    value, outcome = np.empty((agents, states)), np.empty(agents, dtype=np.int64)
    solve = _solve_small if states <= SMALL else _solve_large

    def work(first: int, last: int) -> None:
        part = slice(first, last)
        solve(transition[part], reward[part], float(discount), value[part], outcome[part])

    worthwhile = max(1, agents * states**3 // 20_000)  # less than this per chunk, and starting threads takes longer
    map_chunks(work, agents, min(agents, worthwhile, 4 * workers) or 1, workers)
    if agents and outcome.min() == NO_INDEX:
        raise InputError(
            f"agent {np.argmin(outcome)} has, or nearly has, two closed classes of states under one policy, "
            f"so that discount {discount:g} defines no index; use a discount below {discount:g}."
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
            raise InputError(f"agent {np.argmin(numbers)} has an entry that is no finite number.")
    return transition, reward


def _solve_large(transition: Floats, reward: Floats, discount: float, value: Floats, outcome: Ints) -> None:
    agents, states = reward.shape
    table, ledger, steps, flipped = _make_scratch(states)
    for n in range(agents):
        outcome[n] = NO_INDEX
        waiting, acting = discount * transition[n]
        try:
            inverse = np.linalg.inv(np.eye(states) - acting + 1 / states)
        except np.linalg.LinAlgError:
            continue
        if np.abs(inverse).max() < 1 / DUST:
            table[:, states:] = ((acting - waiting) @ inverse).T
            outcome[n] = _climb(table, reward, value, n, ledger, steps, flipped)


@compiled
def _solve_small(transition: Floats, reward: Floats, discount: float, value: Floats, outcome: Ints) -> None:
    agents, states = reward.shape
    table, ledger, steps, flipped = _make_scratch(states)
    for n in range(agents):
        _fill(table, transition, n, discount)
        outcome[n] = NO_INDEX
        if _eliminate(table):
            outcome[n] = _climb(table, reward, value, n, ledger, steps, flipped)


@compiled
def _make_scratch(states: int) -> tuple[Floats, Floats, Floats, Ints]:
    flips = 8 * states + 32  # a limit: random agents that are not indexable took up to three flips a state
    return np.empty((states, 2 * states)), np.empty((4, states)), np.empty((flips, states)), np.empty(flips, np.int64)


@compiled
def _fill(table: Floats, transition: Floats, n: int, discount: float) -> None:
    """Write [Mᵀ | Dᵀ] for the policy that always acts: M = I − discount·P₁ + 1/S, D = discount·(P₁ − P₀).

    The rows of D sum to 0, so the 1/S changes nothing in D M⁻¹; it makes M regular for the average reward, and well
    conditioned for discounts near 1.
    """
    states = table.shape[0]
    even = 1.0 / states
    for s in range(states):
        for j in range(states):
            acting = discount * transition[n, 1, s, j]
            table[j, s] = even - acting
            table[j, states + s] = acting - discount * transition[n, 0, s, j]
        table[s, s] += 1.0


@compiled
def _eliminate(table: Floats) -> bool:
    """Turn [Mᵀ | Dᵀ] into [· | (D M⁻¹)ᵀ]; False if M is singular, that is, if there are two closed classes.

    No rows need exchanging: the k-th pivot is a ratio of determinants of chains that follow P₁ in their first k or
    k − 1 states and go anywhere from the others, and it is positive until two closed classes are among the k.
    """
    states, width = table.shape[0], table.shape[1]
    for k in range(states):
        if not table[k, k] > DUST:
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
def _climb(table: Floats, reward: Floats, value: Floats, n: int, ledger: Floats, steps: Floats, flipped: Ints) -> int:
    """Raise the price through all flips and write the indices of agent n.

    steps [flips, S]: what a flip takes from every column for each unit the column has in the flipped state.
    """
    slack = DUST * _begin(table, reward, value, n, ledger)
    price, state, outcome = -np.inf, -1, INDEXABLE
    for flip in range(flipped.size):
        after, state, turned = _find_next(ledger, price)
        if turned and not _stays_nested(ledger, value, n, price, after, slack):
            outcome = NOT_INDEXABLE
        if state < 0:
            break
        price = after
        if np.isnan(value[n, state]):
            value[n, state] = price
        if not _flip(table, ledger, steps, flipped, state, flip):
            return NO_INDEX
    finished = state < 0
    for s in range(value.shape[1]):
        if np.isnan(value[n, s]):
            if finished:
                return NO_INDEX
            value[n, s] = price  # out of flips: the index is not below
    return outcome if finished else NOT_INDEXABLE


@compiled
def _begin(table: Floats, reward: Floats, value: Floats, n: int, ledger: Floats) -> float:
    """Open the ledger with acting everywhere; return how large advantages could be, ‖reward‖ · ‖D M⁻¹‖."""
    states, stake, reach = ledger.shape[1], 0.0, 0.0
    for s in range(states):
        worth, size = 0.0, 0.0
        for j in range(states):  # a reward common to all states cancels in the end, and would only round on the way
            worth += table[j, states + s] * (reward[n, j] - reward[n, 0])
            size += abs(table[j, states + s])
        ledger[WORTH, s], ledger[WORK, s], ledger[SIGN, s], value[n, s] = worth, 1.0, 1.0, np.nan
        stake, reach = max(stake, abs(reward[n, s] - reward[n, 0])), max(reach, size)
    return stake * reach


@compiled
def _find_next(ledger: Floats, price: float) -> tuple[float, int, bool]:
    """Find the state whose advantage is the next to meet zero as the price rises (−1: none will), and where.

    Also tell whether an advantage of acting does not fall with the price: only then can nesting be in question.
    """
    after, state, turned = np.inf, -1, False
    for s in range(ledger.shape[1]):
        work = ledger[WORK, s]
        turned |= (ledger[SIGN, s] > 0.0) & (work <= DUST)
        if ledger[SIGN, s] * work > DUST:
            meeting = max(ledger[WORTH, s] / work, price)
            if meeting < after:
                after, state = meeting, s
    return after, state, turned


@compiled
def _stays_nested(ledger: Floats, value: Floats, n: int, price: float, after: float, slack: float) -> bool:
    """Tell whether waiting is optimal up to the price `after` wherever it was at `price` or below.

    A state may touch zero and stay, when another's flip at the same price turns its advantage round: that is its index.
    """
    nested = True
    for s in range(ledger.shape[1]):
        worth, work = ledger[WORTH, s], ledger[WORK, s]
        if ledger[SIGN, s] > 0.0:
            if np.isnan(value[n, s]) and worth - price * work <= slack:
                value[n, s] = price
            if work < -DUST and worth - after * work > slack and not np.isnan(value[n, s]):
                nested = False
    return nested


@compiled
def _flip(table: Floats, ledger: Floats, steps: Floats, flipped: Ints, state: int, flip: int) -> bool:
    """Change the action in one state; False if that leaves two closed classes."""
    states = ledger.shape[1]
    for s in range(states):
        ledger[COLUMN, s] = table[state, states + s]
    for i in range(flip):
        factor = ledger[COLUMN, flipped[i]]
        for s in range(states):
            ledger[COLUMN, s] -= factor * steps[i, s]
    sign, worth, work = ledger[SIGN, state], ledger[WORTH, state], ledger[WORK, state]
    pivot = 1.0 + sign * ledger[COLUMN, state]  # the factor by which the flip changes the determinant of M
    if not pivot > DUST:
        return False
    for s in range(states):
        step = ledger[COLUMN, s] * (sign / pivot)
        steps[flip, s] = step
        ledger[WORTH, s] -= step * worth
        ledger[WORK, s] -= step * work
    ledger[SIGN, state], flipped[flip] = -sign, state
    return True
