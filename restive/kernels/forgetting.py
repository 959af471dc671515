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

import numpy as np

from restive.kernels.jit import compiled
from restive.types import Floats

FACTORS = (0.9, 0.75, 0.5, 0.25, 0.0)
MIN_EVIDENCE = 2.5


@compiled
def find_factor(moves: Floats, known: Floats, posterior: Floats) -> float:
    """The factor of older moves, 1 if nothing should be forgotten.

    >>> known = np.tile([[0.0, 50.0], [50.0, 0.0]], (9, 2, 1, 1))  # nine agents that always changed their state
    >>> stayed = known + np.tile([[5.0, 0.0], [0.0, 5.0]], (9, 2, 1, 1))  # and have stayed since
    >>> find_factor(stayed, known, stayed + 1.0), find_factor(1.1 * known, known, 1.1 * known + 1.0)
    (0.0, 1.0)
    """
    agents, actions, states, _ = moves.shape
    total, squares, gain = np.zeros(len(FACTORS)), np.zeros(len(FACTORS)), np.empty(len(FACTORS))
    for n in range(agents):
        gain[:] = 0.0
        for a in range(actions):
            for s in range(states):
                latest = 0.0
                for t in range(states):
                    latest += moves[n, a, s, t] - known[n, a, s, t]
                if latest > 0.0:
                    keep = _loss(moves[n, a, s], known[n, a, s], posterior[n, a, s], latest, 1.0)
                    for k in range(len(FACTORS)):
                        gain[k] += keep - _loss(moves[n, a, s], known[n, a, s], posterior[n, a, s], latest, FACTORS[k])
        total += gain
        squares += gain * gain
    factor, best = 1.0, 0.0
    for k in range(len(FACTORS)):
        if total[k] > MIN_EVIDENCE * np.sqrt(squares[k]) and total[k] > best:
            factor, best = FACTORS[k], total[k]
    return factor


@compiled
def _loss(moves: Floats, known: Floats, posterior: Floats, latest: float, factor: float) -> float:
    """The quadratic score of the latest moves from one state under the row that older moves predict."""
    norm, cross, square = 0.0, 0.0, 0.0
    for t in range(moves.size):
        weight = posterior[t] - moves[t] + factor * known[t]
        norm += weight
        cross += (moves[t] - known[t]) * weight
        square += weight * weight
    return latest * square / (norm * norm) - 2.0 * cross / norm


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
