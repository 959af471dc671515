"""Boundaries of planned looks at a trial that is still running, by spending the error (Lan and DeMets 1983).

At look k, with the fraction t_k of all information, a trial may claim a difference if |z| exceeds the boundary b_k. The
boundaries spend the error step by step, α(t_k) in all up to look k:

    O'Brien-Fleming   α(t) = 4 − 4 Φ(Φ⁻¹(1 − α/4) / √t)         hardly anything early; half of α on each side
    Pocock            α(t) = α ln(1 + (e − 1) t)                  about the same at each look

They are found one after the other by recursive integration of the density of the score process, whose increments are
independent and normal (Armitage, McPherson and Rowe 1969). Rewards of the same people at different rounds depend on each
other positively, which makes looks more alike than this assumes, and the error smaller.
"""

import math
from collections.abc import Sequence

import numpy as np

from restive.errors import InputError
from restive.types import Floats

SPENDING = ("obrien-fleming", "pocock")
NODES = 300  # of Gauss and Legendre, for each integral
MAX_BOUNDARY = 12.0


def find_boundaries(
    fractions: Sequence[float] | Floats, spending: str = "obrien-fleming", error: float = 0.05
) -> Floats:
    """The boundary of |z| at each look, given the fractions of information, rising, the last at most 1.

    >>> find_boundaries([0.2, 0.4, 0.6, 0.8, 1.0]).round(3)
    array([4.877, 3.357, 2.68 , 2.29 , 2.031])
    """
    times = np.asarray(fractions, float)
    if times.ndim != 1 or not times.size or times[0] <= 0 or times[-1] > 1 or (np.diff(times) <= 0).any():
        raise InputError("looks must be rising fractions of the trial, above 0 and at most 1, such as 0.5 and 1.")
    spent = np.diff(_spend(times, spending, error), prepend=0.0)
    node, weight = np.polynomial.legendre.leggauss(NODES)
    place, mass = np.zeros(1), np.ones(1)  # of the score process before this look, while no boundary was crossed
    boundaries = np.empty(times.size)
    for k, step in enumerate(np.sqrt(np.diff(times, prepend=0.0)).tolist()):
        scale = math.sqrt(times[k])
        boundaries[k] = _solve(place / step, mass, scale / step, spent[k])
        inside = boundaries[k] * scale * node
        density = np.exp(-0.5 * ((inside[:, None] - place) / step) ** 2) @ mass / (step * math.sqrt(2 * math.pi))
        place, mass = inside, density * weight * boundaries[k] * scale
    return boundaries


def _solve(place: Floats, mass: Floats, scale: float, spent: float) -> float:
    """The boundary that is crossed for the first time at this look with the probability `spent`."""
    from scipy.optimize import brentq
    from scipy.special import ndtr

    def excess(boundary: float) -> float:
        edge = boundary * scale
        return float(mass @ (ndtr(place - edge) + ndtr(-place - edge))) - spent

    return float(brentq(excess, 0.0, MAX_BOUNDARY, xtol=1e-10)) if excess(MAX_BOUNDARY) < 0 else MAX_BOUNDARY


def _spend(times: Floats, spending: str, error: float) -> Floats:
    from scipy.special import ndtr, ndtri

    if spending == "obrien-fleming":
        return np.asarray(4 * ndtr(ndtri(error / 4) / np.sqrt(times)))
    if spending == "pocock":
        return np.asarray(error * np.log1p((math.e - 1) * times))
    raise InputError(f"spending is {spending!r}; there are {' and '.join(SPENDING)}.")
