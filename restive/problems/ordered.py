"""`ordered-v1`: two random two-state agents of which one gains more from acting in all of its states than the other.

The instances of the paper's regret curve: the chances are those of `two-state-v1`, and only such instances are kept as
have benefits I of one agent at least as large as those of the other, and I(1) − I(0) ≥ 0.15 for the other. A threshold
between the other's two benefits then leaves one state in which acting costs, and always one agent that may be acted on.
"""

import numpy as np

from restive.kernels import rng
from restive.problem import Problem
from restive.problems.two_state import fill_rows, uniform_chances
from restive.types import Bools, Floats

TRIES = 1000  # one in 17 is kept, so that none in a thousand has a chance of one in 10^26
APART = 0.15


def ordered(instances: int = 1, seed: int = 0) -> list[Problem]:
    """Two agents of which one is better in every state; the other is better in state 1 by 0.15 or more."""
    keys = rng.run_keys(seed, np.arange(instances * TRIES))
    good = uniform_chances(keys, 2).reshape(instances, TRIES, 2, 2, 2)
    kept = good[np.arange(instances), _fits(good).argmax(axis=1)]
    return [Problem(fill_rows(each), [0.0, 1.0], 1, name="ordered-v1") for each in kept]


def _fits(good: Floats) -> Bools:
    """Whether the agents [..., N, A, S] are in order."""
    gain = good[..., 1, :] - good[..., 0, :]
    better = gain[..., 0, :].min(axis=-1) >= gain[..., 1, :].max(axis=-1)
    fits: Bools = better & (gain[..., 1, 1] - gain[..., 1, 0] >= APART)
    return fits
