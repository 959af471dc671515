"""Means with confidence intervals: running means, group means, ratios, differences and Student quantiles.

Instances are the independent units: runs of one instance share its agents, so bands are taken over instance means.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from restive.errors import InputError
from restive.types import Floats, Ints


class Band(NamedTuple):
    """A mean with its standard error and confidence interval: arrays of one shape, or scalars."""

    mean: Floats
    error: Floats  # standard error of the mean, NaN with one unit
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
    """The mean over the first axis with a Student interval: mean ± t(level, units − 1) · std / √units.

    >>> [round(float(part), 3) for part in band(np.array([1.0, 2.0, 3.0]))]
    [2.0, 0.577, -0.484, 4.484]
    """
    units = values.shape[0]
    mean = values.mean(axis=0)
    error = values.std(axis=0, ddof=1) / math.sqrt(units) if units > 1 else np.full_like(mean, np.nan)
    reach = student_quantile(level, units - 1) * error
    return Band(mean, error, mean - reach, mean + reach)


def ratio(above: Floats, below: Floats, level: float = 0.95) -> Band:
    """The ratio of two means over the first axis, with an interval by linearisation (the delta method); NaN if below is 0.

    share = mean(above) / mean(below);   error: that of the mean of (above − share · below) / mean(below)

    >>> ratio(np.array([[1.0, 4.0], [3.0, 4.0]]), np.array([[4.0, 0.0], [4.0, 0.0]])).mean
    array([0.5, nan])
    """
    scale = below.mean(axis=0)
    scale = np.where(scale == 0, np.nan, scale)
    share = above.mean(axis=0) / scale
    residual = band((above - share * below) / scale, level)
    return Band(np.asarray(share), residual.error, share + residual.low, share + residual.high)


def difference(one: Band, two: Band) -> Band:
    """The difference of two estimates, taken as independent; with common random numbers the interval is too wide.

    >>> [float(part) for part in difference(Band(*np.array([5, 3, -1, 11.0])), Band(*np.array([1, 4, -7, 9.0])))]
    [4.0, 5.0, -6.0, 14.0]
    """
    mean, error = one.mean - two.mean, np.hypot(one.error, two.error)
    reach = np.hypot(one.high - one.mean, two.high - two.mean)
    return Band(mean, error, mean - reach, mean + reach)


def student_quantile(level: float, df: ArrayLike) -> Floats:
    """The half-width, in standard errors, of a two-sided Student interval with `df` degrees of freedom.

    `df` may be fractional and an array; the answer is NaN below 1.

    >>> student_quantile(0.95, [1, 2, 3, 10, 49.5]).round(2)
    array([12.71,  4.3 ,  3.18,  2.23,  2.01])
    """
    from scipy.special import stdtrit  # SciPy takes longer to import than all of restive

    if not 0 < level < 1:
        raise InputError(f"level is {level!r}; it must lie between 0 and 1, such as 0.95.")
    freedom = np.asarray(df, np.float64)
    freedom = np.where(freedom >= 1 - 1e-9, np.maximum(freedom, 1.0), np.nan)
    quantile: Floats = stdtrit(freedom, 0.5 * (1 + level))
    return quantile
