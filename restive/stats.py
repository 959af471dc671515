"""How well a policy did: running means, confidence bands over instances, and the share of a gap that is closed.

Instances are the independent units: runs of one instance share its agents, so bands are taken over instance means.
"""

import math
from typing import NamedTuple

import numpy as np

from restive.errors import InputError
from restive.types import Floats, Ints


class Band(NamedTuple):
    """A mean and how sure it is: arrays over the trailing axes of what was measured, or single numbers."""

    mean: Floats
    error: Floats  # standard error, NaN with one unit
    low: Floats
    high: Floats


def running_mean(reward: Floats) -> Floats:
    """The mean up to and including each step, along the last axis.

    >>> running_mean(np.array([[1.0, 3.0, 2.0]]))
    array([[1., 2., 2.]])
    """
    means: Floats = np.cumsum(reward, axis=-1) / np.arange(1, reward.shape[-1] + 1)
    return means


def mean_by(group: Ints, values: Floats) -> Floats:
    """The mean of the rows of each group: [R, ...] to [groups, ...]; groups are numbered from 0.

    >>> mean_by(np.array([0, 0, 1]), np.array([1.0, 3.0, 5.0]))
    array([2., 5.])
    """
    sums = np.zeros((int(group.max()) + 1, *values.shape[1:]))
    np.add.at(sums, group, values)
    counts = np.bincount(group).reshape(-1, *[1] * (values.ndim - 1))
    means: Floats = sums / counts
    return means


def band(values: Floats, level: float = 0.95) -> Band:
    """The mean over the first axis with a Student interval.

    mean ± t(level, units − 1) · deviation / √units

    >>> [round(float(part), 3) for part in band(np.array([1.0, 2.0, 3.0]))]
    [2.0, 0.577, -0.484, 4.484]
    """
    units = values.shape[0]
    mean = values.mean(axis=0)
    error = values.std(axis=0, ddof=1) / math.sqrt(units) if units > 1 else np.full_like(mean, np.nan)
    reach = student_quantile(level, units - 1) * error
    return Band(mean, error, mean - reach, mean + reach)


def ratio(above: Floats, below: Floats, level: float = 0.95) -> Band:
    """The ratio of two means over the same units, with an interval by linearisation.

    share = mean(above) / mean(below);   error: that of the mean of (above − share · below) / mean(below)
    """
    whole = below.mean()
    if whole == 0:
        nothing = np.array(np.nan)
        return Band(nothing, nothing, nothing, nothing)
    share = above.mean() / whole
    spread = band((above - share * below) / whole, level)
    return Band(np.array(share), spread.error, share + spread.low, share + spread.high)


def difference(one: Band, two: Band) -> Band:
    """How far one estimate is above another; they are taken as independent, which is safe where they share their luck.

    >>> [float(part) for part in difference(Band(*np.array([5, 3, -1, 11.0])), Band(*np.array([1, 4, -7, 9.0])))]
    [4.0, 5.0, -6.0, 14.0]
    """
    mean, error = one.mean - two.mean, np.hypot(one.error, two.error)
    reach = np.hypot(one.high - one.mean, two.high - two.mean)
    return Band(mean, error, mean - reach, mean + reach)


def student_quantile(level: float, freedom: int) -> float:
    """How many standard errors reach out to each side of a two-sided Student interval.

    The angle at which the chance of staying within it is `level`, found by halving; √freedom · tan(angle).

    >>> [round(student_quantile(0.95, freedom), 2) for freedom in (1, 2, 3, 10, 49)]
    [12.71, 4.3, 3.18, 2.23, 2.01]
    """
    if not 0 < level < 1:
        raise InputError(f"level is {level!r}; it must lie between 0 and 1, such as 0.95.")
    if freedom < 1:
        return math.nan
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _student_within(middle, freedom) < level else (low, middle)
    return math.sqrt(freedom) * math.tan(low)


def _student_within(angle: float, freedom: int) -> float:
    """The chance that |t| ≤ √freedom · tan(angle), a finite sum (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4)."""
    cosine, odd = math.cos(angle), freedom % 2
    term, total = cosine if odd else 1.0, 0.0
    for power in range(2 + odd, freedom + 2, 2):
        total += term
        term *= cosine**2 * (power - 1) / power
    return 2 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total
