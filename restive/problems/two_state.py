"""`two-state-v1`: the paper's synthetic instances. Every chance of reaching the good state is uniform on [0, 1]."""

import numpy as np

from restive.kernels import randomness
from restive.problem import Problem
from restive.types import Floats, Keys


def two_state(instances: int = 1, agents: int = 50, budget: int = 10, seed: int = 0) -> list[Problem]:
    """Two states worth 0 and 1; P(s → 1 | a) ~ U(0, 1), independently for each agent, state and action."""
    keys = randomness.run_keys(seed, np.arange(instances))
    good = np.stack([chances(keys, agents, cell) for cell in range(4)], axis=-1).reshape(instances, agents, 2, 2)
    return [
        Problem(
            np.stack([1 - chance, chance], axis=-1), [0.0, 1.0], budget, states=("bad", "good"), name="two-state-v1"
        )
        for chance in good
    ]


def chances(keys: Keys, agents: int, cell: int) -> Floats:
    """Uniform numbers, [I, N]: an agent's stay the same when more instances or agents are asked for."""
    return randomness.uniform(randomness.branch(keys, randomness.FAMILY, cell), np.arange(agents))
