"""What acting adds in one step, and the thresholds that go with it (the paper's section 2.3 and assumption 4.2).

phi(s, a) = Σ_t transition[a, s, t] · reward[t]      expected reward on arrival
benefit(s) = phi(s, 1) − phi(s, 0)                   what acting adds to it, the paper's I(s)

Leading axes of any number are allowed: [..., A, S, S] and [..., S].
"""

import numpy as np

from restive.types import Floats


def phi(transition: Floats, reward: Floats) -> Floats:
    """The expected reward on arrival for each state and action, [..., S, A].

    >>> phi(np.array([[[1.0, 0.0], [0.5, 0.5]], [[0.2, 0.8], [0.0, 1.0]]]), np.array([0.0, 1.0]))
    array([[0. , 0.8],
           [0.5, 1. ]])
    """
    arrival = np.einsum("...ast,...t->...sa", transition, reward)
    return np.ascontiguousarray(arrival)


def benefit(transition: Floats, reward: Floats) -> Floats:
    """What acting adds to the expected reward on arrival, [..., S].

    >>> benefit(np.array([[[1.0, 0.0], [0.5, 0.5]], [[0.2, 0.8], [0.0, 1.0]]]), np.array([0.0, 1.0]))
    array([0.8, 0.5])
    """
    arrival = phi(transition, reward)
    return np.ascontiguousarray(arrival[..., 1] - arrival[..., 0])


def largest_threshold(gain: Floats, budget: int) -> float:
    """The largest threshold under which `budget` agents are good in all of their states; gain: [N, S] from `benefit`.

    The budget-th largest over agents of min_s gain(s): with it, acting never has to cost anything (assumption 4.2 with
    4.1). Nothing has to be acted on with a budget of 0, so any threshold does: infinity.

    >>> largest_threshold(np.array([[0.9, 0.1], [0.5, 0.4], [0.3, 0.2]]), budget=2)
    0.2
    """
    if budget == 0:
        return float("inf")
    return float(np.sort(gain.min(axis=-1))[-budget])
