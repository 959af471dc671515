"""`own-rewards-v1`: every agent has rewards of its own. In half of them state 0 is the better one.

Transitions are those of `two-state-v1` for the same seed; rewards, [I, N, S], are uniform on [0, 1] and independent. So
what a state is worth to one agent says nothing about what it is worth to another.
"""

import numpy as np

from restive.kernels import rng
from restive.problem import Problem
from restive.problems.two_state import chances, fill_rows, uniform_chances


def own_rewards(instances: int = 1, agents: int = 50, budget: int = 10, seed: int = 0) -> list[Problem]:
    """Two states worth a uniform number each to each agent; transitions as in two-state-v1."""
    keys = rng.run_keys(seed, np.arange(instances))
    reward = np.stack([chances(keys, agents, cell) for cell in (4, 5)], axis=-1)
    transition = fill_rows(uniform_chances(keys, agents))
    return [Problem(rows, worth, budget, name="own-rewards-v1") for rows, worth in zip(transition, reward, strict=True)]
