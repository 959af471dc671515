"""Samples from the posterior of transition probabilities: Dirichlet rows, each agent with random numbers of its own.

moves  [R, N, A, S, S]  how often each agent moved from s to t under a

A row of counts with prior p has the posterior Dirichlet(p + counts). It is sampled as normalised gamma variates
(Marsaglia and Tsang 2000); the k-th random number of an agent in a step is a pure function of its key and k.
"""

import numpy as np

from restive.kernels.jit import compiled, inlined
from restive.kernels.rng import fold, normal_quantile, unit_open
from restive.types import Floats, Ints, Keys


@inlined
def sample_gamma(shape: float, key: np.uint64, used: int) -> tuple[float, int]:
    """A gamma variate of the given shape and scale 1, and how many random numbers of `key` are used up now.

    The first `used` numbers of the key are skipped.
    """
    boosted = shape if shape >= 1.0 else shape + 1.0
    d = boosted - 1.0 / 3.0
    c = 1.0 / np.sqrt(9.0 * d)
    while True:
        x = normal_quantile(unit_open(fold(key, used)))
        uniform = unit_open(fold(key, used + 1))
        used += 2
        v = (1.0 + c * x) ** 3
        if v > 0.0 and np.log(uniform) < 0.5 * x * x + d - d * v + d * np.log(v):
            break
    if shape < 1.0:
        v *= unit_open(fold(key, used)) ** (1.0 / shape)
        used += 1
    return d * v, used


@compiled
def sample_rows(moves: Floats, prior: float, keys: Keys, agents: Ints, drawn: Floats) -> None:
    """Fill `drawn`, shaped like `moves`, with one transition model for each agent from its posterior."""
    runs, size, actions, states, _ = moves.shape
    for r in range(runs):
        for n in range(size):
            key, used = fold(keys[r], agents[n]), 0
            for a in range(actions):
                for s in range(states):
                    total = 0.0
                    for t in range(states):
                        weight, used = sample_gamma(moves[r, n, a, s, t] + prior, key, used)
                        drawn[r, n, a, s, t] = weight
                        total += weight
                    for t in range(states):
                        # With a tiny prior all weights may underflow to 0; the row is then uniform.
                        drawn[r, n, a, s, t] = drawn[r, n, a, s, t] / total if total > 0.0 else 1.0 / states
