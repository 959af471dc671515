"""One-step benefits of acting, and the threshold of assumption 4.2 (the paper's section 2.3).

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


def largest_threshold(benefits: Floats, budget: int) -> float:
    """The largest threshold that `budget` agents reach in all of their states; benefits: [N, S] from `benefit`.

    The budget-th largest over agents of min_s benefits(s): with it, acting never has to cost anything (assumptions 4.1
    and 4.2). With a budget of 0 it is infinite.

    >>> largest_threshold(np.array([[0.9, 0.1], [0.5, 0.4], [0.3, 0.2]]), budget=2)
    0.2
    """
    if budget == 0:
        return float("inf")
    return float(np.sort(benefits.min(axis=-1))[-budget])
