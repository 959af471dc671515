"""`two-state-v1`: the paper's synthetic instances. Every chance of reaching the good state is uniform on [0, 1].

Also what the other families with two states share: the same numbers, and instances made of such chances, [I, N, A, S].
"""

import numpy as np

from restive.kernels import rng
from restive.problem import Problem
from restive.types import Floats, Keys


def two_state(instances: int = 1, agents: int = 50, budget: int = 10, seed: int = 0) -> list[Problem]:
    """Two states worth 0 and 1; P(s → 1 | a) ~ U(0, 1), independently for each agent, state and action."""
    good = uniform_chances(rng.run_keys(seed, np.arange(instances)), agents)
    return build_instances(good, budget, "two-state-v1")


def chances(keys: Keys, agents: int, cell: int) -> Floats:
    """Uniform numbers, [I, N]: an agent's stay the same when more instances or agents are asked for."""
    return rng.uniform(rng.branch(keys, rng.FAMILY, cell), np.arange(agents))


def uniform_chances(keys: Keys, agents: int) -> Floats:
    """One uniform number for each agent, action and state, [I, N, 2, 2], from the cells 0 to 3."""
    return np.stack([chances(keys, agents, cell) for cell in range(4)], axis=-1).reshape(keys.size, agents, 2, 2)


def fill_rows(good: Floats) -> Floats:
    """The rows of transitions that have these chances of reaching state 1.

    >>> fill_rows(np.array([0.25, 1.0])).tolist()
    [[0.75, 0.25], [0.0, 1.0]]
    """
    return np.stack([1 - good, good], axis=-1)


def build_instances(good: Floats, budget: int, name: str) -> list[Problem]:
    """One problem for each instance in `good`, [I, N, A, S], whose bad state is worth 0 and whose good state 1."""
    return [Problem(fill_rows(each), [0.0, 1.0], budget, states=("bad", "good"), name=name) for each in good]
