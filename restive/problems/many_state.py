"""`many-state-v1`: random agents with any number of states, ten by default, as in the paper's appendix.

Rows are uniform on the simplex (exponential numbers, normalised), which for two states is `two-state-v1`'s law. The
paper says only that its ten-state instances are random.
"""

import numpy as np

from restive.errors import check_whole
from restive.kernels import rng
from restive.problem import Problem
from restive.problems.two_state import chances


def many_state(
    instances: int = 1, agents: int = 50, budget: int = 10, seed: int = 0, states: int = 10
) -> list[Problem]:
    """S states worth 0 to S − 1; every row of every agent uniform on the simplex."""
    check_whole("states", states, 1)
    keys = rng.run_keys(seed, np.arange(instances))
    cells = [-np.log1p(-chances(keys, agents, cell)) for cell in range(2 * states * states)]
    weight = np.stack(cells, axis=-1).reshape(instances, agents, 2, states, states)
    reward = np.arange(states, dtype=np.float64)
    return [Problem(each / each.sum(axis=-1, keepdims=True), reward, budget, name="many-state-v1") for each in weight]
