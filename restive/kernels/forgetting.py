"""Forgetting: how much older moves still say about the latest ones, judged by how well they predict them.

moves      [N, A, S, S]  how often each agent moved from s to t under a
known      [N, A, S, S]  those of them that are older than the last estimate
posterior  [N, A, S, S]  moves plus the pseudo-counts of the prior

The row that predicts the latest moves of an agent is prior + factor · known, normalised. Its loss for a move to t is
the quadratic score, Σ_j row(j)² − 2 row(t) (Brier 1950). Older moves are multiplied by the factor with the smallest
loss, if the loss is smaller than that of factor 1 by more than MIN_EVIDENCE standard errors, with agents as the units:
so dynamics that do not change are forgotten hardly ever, however many agents there are, and a change is noticed by all
agents at once.
"""

from typing import NamedTuple

import numpy as np

from restive.kernels.block_sums import LAST, SHIFT, add_blocks, count_blocks
from restive.kernels.jit import compiled, inlined
from restive.types import Floats

FACTORS = (0.9, 0.75, 0.5, 0.25, 0.0)
MIN_EVIDENCE = 2.5


class Sums(NamedTuple):
    """Sums over one row of the latest moves, the prior, the known moves, and of their products."""

    latest: float
    prior: float
    known: float
    latest_prior: float
    latest_known: float
    prior_prior: float
    prior_known: float
    known_known: float


@inlined
def find_factor(moves: Floats, known: Floats, posterior: Floats) -> float:
    """The factor of older moves, 1 if nothing should be forgotten.

    >>> known = np.tile([[0.0, 50.0], [50.0, 0.0]], (9, 2, 1, 1))  # nine agents that always changed their state
    >>> stayed = known + np.tile([[5.0, 0.0], [0.0, 5.0]], (9, 2, 1, 1))  # and have stayed since
    >>> find_factor(stayed, known, stayed + 1.0), find_factor(1.1 * known, known, 1.1 * known + 1.0)
    (0.0, 1.0)
    """
    return best_factor(add_blocks(add_gains(moves, known, posterior)))


@compiled
def add_gains(moves: Floats, known: Floats, posterior: Floats) -> Floats:
    """How much smaller the loss of agents is with each factor, and the squares of that, by block, [B, 2 · factors]."""
    agents, actions, states, _ = moves.shape
    parts, gain = np.empty((count_blocks(agents), 2 * len(FACTORS))), np.empty(len(FACTORS))
    total, squares = np.zeros(len(FACTORS)), np.zeros(len(FACTORS))
    for n in range(agents):
        gain[:] = 0.0
        for a in range(actions):
            for s in range(states):
                latest, old = 0.0, 0.0
                for t in range(states):
                    latest, old = latest + (moves[n, a, s, t] - known[n, a, s, t]), old + known[n, a, s, t]
                if latest > 0.0 and old > 0.0:  # else the row says nothing
                    sums = _add_row(moves, known, posterior, n, a, s)
                    keep = _loss(sums, 1.0)
                    for k in range(len(FACTORS)):
                        gain[k] += keep - _loss(sums, FACTORS[k])
        for k in range(len(FACTORS)):
            total[k] += gain[k]
            squares[k] += gain[k] ** 2
        if n & LAST == LAST or n == agents - 1:
            for k in range(len(FACTORS)):
                parts[n >> SHIFT, k], parts[n >> SHIFT, len(FACTORS) + k] = total[k], squares[k]
                total[k], squares[k] = 0.0, 0.0
    return parts


@compiled
def best_factor(sums: Floats) -> float:
    """The factor of older moves, given the sums of gains and of their squares over all agents."""
    factor, best = 1.0, 0.0
    for k in range(len(FACTORS)):
        if sums[k] > MIN_EVIDENCE * np.sqrt(sums[len(FACTORS) + k]) and sums[k] > best:
            factor, best = FACTORS[k], sums[k]
    return factor


@inlined
def _add_row(moves: Floats, known: Floats, posterior: Floats, n: int, a: int, s: int) -> Sums:
    """What the losses of one row depend on; with them each factor takes a few operations however many states there are."""
    latest, priors, old, new_prior, new_old, prior_prior, prior_old, old_old = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for t in range(moves.shape[3]):
        times, before = moves[n, a, s, t], known[n, a, s, t]
        prior, new = posterior[n, a, s, t] - times, times - before
        latest, priors, old = latest + new, priors + prior, old + before
        new_prior, new_old = new_prior + new * prior, new_old + new * before
        prior_prior, prior_old, old_old = (
            prior_prior + prior * prior,
            prior_old + prior * before,
            old_old + before * before,
        )
    return Sums(latest, priors, old, new_prior, new_old, prior_prior, prior_old, old_old)


@compiled
def _loss(sums: Sums, factor: float) -> float:
    """The quadratic score of the latest moves from one state under the row that older moves predict."""
    share = 1.0 / (sums.prior + factor * sums.known)
    cross = sums.latest_prior + factor * sums.latest_known
    square = sums.prior_prior + factor * (2.0 * sums.prior_known + factor * sums.known_known)
    return (sums.latest * square * share - 2.0 * cross) * share


@compiled
def forget(moves: Floats, known: Floats, posterior: Floats, factor: float) -> None:
    """Multiply older moves by a factor, in moves and posterior."""
    agents, actions, states, _ = moves.shape
    for n in range(agents):
        for a in range(actions):
            for s in range(states):
                for t in range(states):
                    lost = (1.0 - factor) * known[n, a, s, t]
                    moves[n, a, s, t] -= lost
                    posterior[n, a, s, t] -= lost
