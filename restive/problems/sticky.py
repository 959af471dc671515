"""`sticky-v1`: agents that hardly ever move. What acting did shows late, and lasts.

The chance of leaving a state, [I, N, A, S], is uniform on [0, 0.05]: a stay lasts 40 steps at the mean chance.
"""

import numpy as np

from restive.kernels import rng
from restive.problem import Problem
from restive.problems.two_state import build_instances, uniform_chances

MOST = 0.05


def sticky(instances: int = 1, agents: int = 50, budget: int = 10, seed: int = 0) -> list[Problem]:
    """Two states worth 0 and 1; every chance of leaving a state ~ U(0, 0.05), for each agent, state and action."""
    leave = MOST * uniform_chances(rng.run_keys(seed, np.arange(instances)), agents)
    return build_instances(np.stack([leave[..., 0], 1 - leave[..., 1]], axis=-1), budget, "sticky-v1")
