"""Samples from what counts say about transitions: rows of a Dirichlet distribution, each agent from its own luck.

moves  [R, N, A, S, S]  how often each agent went from s to t under a
A row of counts with prior p has the posterior Dirichlet(p + counts); it is sampled as normalised gamma numbers
(Marsaglia and Tsang 2000), the k-th number of an agent in a step being a pure function of its key and k.
"""

import numpy as np

from restive.kernels.jit import compiled
from restive.kernels.rng import fold, normal_quantile, unit_open
from restive.types import Floats, Ints, Keys


@compiled
def sample_gamma(shape: float, key: np.uint64, used: int) -> tuple[float, int]:
    """A gamma number of the given shape and scale 1, from the numbers of `key` after the `used` first ones.

    Returns the number and how many of the key's numbers are used up now.
    """
    lift = shape if shape >= 1.0 else shape + 1.0
    d = lift - 1.0 / 3.0
    c = 1.0 / np.sqrt(9.0 * d)
    while True:
        x = normal_quantile(unit_open(fold(key, used)))
        luck = unit_open(fold(key, used + 1))
        used += 2
        v = (1.0 + c * x) ** 3
        if v > 0.0 and np.log(luck) < 0.5 * x * x + d - d * v + d * np.log(v):
            break
    if shape < 1.0:
        v *= unit_open(fold(key, used)) ** (1.0 / shape)
        used += 1
    return d * v, used


@compiled
def sample_rows(moves: Floats, prior: float, keys: Keys, agents: Ints, drawn: Floats) -> None:
    """Fill `drawn`, shaped like `moves`, with one model for each agent from its posterior."""
    runs, size, actions, states, _ = moves.shape
    for r in range(runs):
        for n in range(size):
            key, used = fold(keys[r], agents[n]), 0
            for a in range(actions):
                for s in range(states):
                    whole = 0.0
                    for t in range(states):
                        weight, used = sample_gamma(moves[r, n, a, s, t] + prior, key, used)
                        drawn[r, n, a, s, t] = weight
                        whole += weight
                    for t in range(states):
                        # A tiny prior can leave nothing but zeros: then all states are alike.
                        drawn[r, n, a, s, t] = drawn[r, n, a, s, t] / whole if whole > 0.0 else 1.0 / states
