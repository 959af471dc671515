"""The paper's two counterexamples: greedy is not optimal for different agents, nor for three states.

Both have a single, fixed instance.
"""

import numpy as np

from restive.problem import Problem


def counterexample_heterogeneous() -> list[Problem]:
    """Four two-state agents of two types, B = 1: greedy always acts on type 2, while alternating on type 1 earns more.

    All start in state 0, which the paper does not say, but which fits its figures: 15.02 and 16.78 observed over 20
    steps, where 15 and 16.72 are expected.
    """
    first = np.array([[[1, 0], [2 / 3, 1 / 3]], [[1 / 3, 2 / 3], [1 / 2, 1 / 2]]])
    second = np.array([[[1, 0], [1, 0]], [[1 / 4, 3 / 4], [1 / 4, 3 / 4]]])
    agents = [first, first, second, second]
    return [Problem(agents, [0, 1], 1, start=[0, 0, 0, 0], name="counterexample-heterogeneous-v1")]


def counterexample_three_state() -> list[Problem]:
    """Two identical three-state agents, B = 1, in states 1 and 2: both benefits are 1/4, but acting on 2 is better."""
    waiting = [[1, 0, 0], [0, 3 / 4, 1 / 4], [23 / 28, 5 / 28, 0]]
    acting = [[1, 0, 0], [0, 1 / 2, 1 / 2], [5 / 7, 1 / 7, 1 / 7]]
    agent = np.array([waiting, acting])
    return [Problem([agent, agent], [0, 1, 2], 1, start=[1, 2], name="counterexample-three-state-v1")]
