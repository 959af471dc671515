"""`few-types-v1`: agents of a few hidden types. Who learns from everyone at once can tell the types apart early.

The chances of a type, [I, types, A, S], are those that agents of `two-state-v1` have; the type of an agent, [I, N], is
uniform and not told to anyone.
"""

import numpy as np

from restive.errors import check_whole
from restive.kernels import rng
from restive.problem import Problem
from restive.problems.two_state import build_instances, chances, uniform_chances


def few_types(instances: int = 1, agents: int = 50, budget: int = 10, seed: int = 0, types: int = 4) -> list[Problem]:
    """Two states worth 0 and 1; each agent is one of a few types, drawn uniformly, with chances as in two-state-v1."""
    check_whole("types", types, 1)
    keys = rng.run_keys(seed, np.arange(instances))
    kind = (chances(keys, agents, 4) * types).astype(np.int64)
    good = uniform_chances(keys, types)[np.arange(instances)[:, None], kind]
    return build_instances(good, budget, "few-types-v1")
