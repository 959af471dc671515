"""Gaps: rounds inside a person's history in which the action is known and the state is not.

A gap is a path s → ? → … → t of k moves under recorded actions, of which neither the first nor the last move is known. The
states in it are drawn given everybody's rows, forward filtering and backward sampling (Carter and Kohn 1994), in turn
with the rows given all moves, and with the distribution of rows: the EM algorithm with draws instead of expectations,
so that whole moves say how much people differ. It assumes that whether a state is missing does not depend on that
state, given the states before and after; `restive.logs.examine` asks whether it depends on what was seen.

Before the first and after the last known state nothing is drawn: such rounds say nothing about moves.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from restive.kernels.jit import compiled
from restive.logs.model import Prior, draw_posterior
from restive.types import Floats, Ints

# How often states are drawn: in large histories what is not known about them matters little.
IMPUTATIONS, FEW_IMPUTATIONS, MANY_PEOPLE = 50, 10, 2_000
SWEEPS = 4


class Gaps(NamedTuple):
    """G gaps with M moves in all."""

    agent: Ints  # [G]
    before: Ints  # [G] the last known state
    after: Ints  # [G] the next known state
    first: Ints  # [G + 1] where the actions of each begin
    action: Ints  # [M]


def find_gaps(agent: Ints, round_: Ints, state: Ints, action: Ints) -> Gaps:
    """The gaps of rows sorted by agent and round; unknown states and actions are -1.

    >>> one, rounds = np.zeros(5, int), np.arange(5)
    >>> found = find_gaps(one, rounds, np.array([0, -1, -1, 1, -1]), np.array([1, 0, 1, 0, 0]))
    >>> found.before.tolist(), found.after.tolist(), found.action.tolist()
    ([0], [1], [1, 0, 1])
    """
    known = np.flatnonzero(state >= 0)
    begin, end = known[:-1], known[1:]
    inside = (end > begin + 1) & (agent[begin] == agent[end]) & (round_[end] - round_[begin] == end - begin)
    unknown_actions = np.append(0, np.cumsum(action < 0))
    inside &= unknown_actions[end] == unknown_actions[begin]
    begin, end = begin[inside], end[inside]
    first = np.append(0, np.cumsum(end - begin))
    place = np.arange(first[-1]) + np.repeat(begin - first[:-1], end - begin)
    return Gaps(agent[begin], state[begin], state[end], first, action[place])


def impute(
    counts: Floats,
    gaps: Gaps,
    sample: Callable[[Floats, int], tuple[Prior, ...]],
    draws: int,
    generator: np.random.Generator,
    features: Floats | None = None,
) -> tuple[tuple[Prior, ...], Floats]:
    """Draws of the distribution of rows, and the mean number of moves of each agent with those in gaps, [N, A, S, S].

    `sample` draws distributions given whole moves, so many of them.
    """
    times = min(draws, IMPUTATIONS if len(counts) <= MANY_PEOPLE else FEW_IMPUTATIONS)
    priors, total, drawn = sample(counts, 1), np.zeros_like(counts), np.zeros_like(counts)
    kept: list[Prior] = []
    for number in range(times):
        for _ in range(SWEEPS):
            rows = draw_posterior(priors[-1], counts + drawn, features, generator)
            drawn = np.zeros_like(counts)
            _draw_gaps(*gaps, rows, generator.random(gaps.action.size), drawn)
        priors = sample(counts + drawn, draws * (number + 1) // times - draws * number // times)
        kept += priors
        total += drawn
    return tuple(kept), counts + total / times


@compiled
def _draw_gaps(
    agent: Ints, before: Ints, after: Ints, first: Ints, action: Ints, rows: Floats, uniform: Floats, counts: Floats
) -> None:
    """Draw the states in each gap given rows [N, A, S, S], and add its moves to counts [N, A, S, S]."""
    states = rows.shape[-1]
    for g in range(agent.size):
        n, length = agent[g], first[g + 1] - first[g]
        # reach[j, s]: the probability of the rest of the gap from state s before its move j
        reach = np.zeros((length + 1, states))
        reach[length, after[g]] = 1.0
        for j in range(length - 1, 0, -1):
            a = action[first[g] + j]
            for s in range(states):
                for t in range(states):
                    reach[j, s] += rows[n, a, s, t] * reach[j + 1, t]
        s = before[g]
        for j in range(length):
            a = action[first[g] + j]
            total = 0.0
            for t in range(states):
                total += rows[n, a, s, t] * reach[j + 1, t]
            left, chosen = uniform[first[g] + j] * total, after[g] if j == length - 1 else 0
            if j < length - 1:
                while chosen < states - 1 and left >= rows[n, a, s, chosen] * reach[j + 1, chosen]:
                    left -= rows[n, a, s, chosen] * reach[j + 1, chosen]
                    chosen += 1
            counts[n, a, s, chosen] += 1.0
            s = chosen
