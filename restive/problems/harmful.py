"""`harmful-v1`: acting hurts everyone everywhere, some little and some much, and yet exactly B must be acted on.

The task is to find those whom it hurts least. Waiting is as in `two-state-v1`; acting leaves a uniform share of the
chance of the good state that waiting has.
"""

import numpy as np

from restive.kernels import rng
from restive.problem import Problem
from restive.problems.two_state import build_instances, uniform_chances


def harmful(instances: int = 1, agents: int = 50, budget: int = 10, seed: int = 0) -> list[Problem]:
    """Two states worth 0 and 1; P(s → 1 | wait) ~ U(0, 1), and acting multiplies it by another uniform number."""
    luck = uniform_chances(rng.run_keys(seed, np.arange(instances)), agents)
    good = np.stack([luck[:, :, 0], luck[:, :, 0] * luck[:, :, 1]], axis=2)
    return build_instances(good, budget, "harmful-v1")
