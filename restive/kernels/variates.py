"""Random variates from a stream, for samplers: normal, gamma, Dirichlet, Pólya-gamma and two-dimensional Wishart.

A stream is an array [2] of unsigned integers: a key, and how many uniform numbers were drawn from it. A symmetric
matrix [[a, b], [b, c]] is the triple (a, b, c).
"""

import math

import numpy as np

from restive.kernels.jit import compiled, inlined
from restive.kernels.rng import fold, normal_quantile, unit_open
from restive.types import Floats, Keys

Symmetric = tuple[float, float, float]
# Terms of the series of a Pólya-gamma variate that are drawn one by one.
EXACT_TERMS = 2
# Below this argument the moments of a Pólya-gamma variate are those at 0, to a part in a million; above, tanh is 1.
SMALL_ARGUMENT, LARGE_ARGUMENT = 1e-2, 100.0
TINY = 1e-300


@compiled
def draw_uniform(stream: Keys) -> float:
    """The next uniform number between 0 and 1."""
    stream[1] += np.uint64(1)
    return unit_open(fold(stream[0], stream[1]))


@compiled
def draw_normal(stream: Keys) -> float:
    """The next standard normal number."""
    return normal_quantile(draw_uniform(stream))


@compiled
def draw_gamma(stream: Keys, shape: float) -> float:
    """A gamma variate of scale 1, by rejection (Marsaglia and Tsang 2000); for shapes below 1 by a power of a uniform."""
    if shape < 1.0:
        return draw_gamma_above(stream, shape + 1.0) * math.exp(math.log(draw_uniform(stream)) / shape)
    return draw_gamma_above(stream, shape)


@compiled
def draw_gamma_above(stream: Keys, shape: float) -> float:
    """A gamma variate of scale 1 and of a shape of at least 1."""
    d = shape - 1.0 / 3.0
    while True:
        x = draw_normal(stream)
        v = (1.0 + x / math.sqrt(9.0 * d)) ** 3
        if v > 0.0 and math.log(draw_uniform(stream)) < 0.5 * x * x + d - d * v + d * math.log(v):
            return d * v


@inlined
def draw_dirichlet(stream: Keys, shape: Floats, row: Floats) -> None:
    """Fill `row` with a Dirichlet draw; if all gamma variates underflow, the largest cell gets everything."""
    total = 0.0
    for t in range(shape.size):
        row[t] = draw_gamma(stream, shape[t]) if shape[t] > 0.0 else 0.0
        total += row[t]
    if total > TINY:
        row /= total
    else:
        row[:] = 0.0
        row[np.argmax(shape)] = 1.0


@inlined
def find_polya_gamma_moments(count: float, argument: float) -> tuple[float, float]:
    """Mean and variance of a Pólya-gamma variate PG(count, argument).

    >>> find_polya_gamma_moments(1.0, 0.0)
    (0.25, 0.041666666666666664)
    """
    z = abs(argument)
    if z < SMALL_ARGUMENT:
        return count / 4.0, count / 24.0
    if z > LARGE_ARGUMENT:
        return count / (2.0 * z), count / (2.0 * z**3)
    bend = 2.0 * (math.sinh(z) - z) / (1.0 + math.cosh(z))
    return count * math.tanh(z / 2.0) / (2.0 * z), count * bend / (4.0 * z**3)


@inlined
def draw_polya_gamma(stream: Keys, count: float, argument: float) -> float:
    """A Pólya-gamma variate PG(count, argument), the augmentation of a logit (Polson, Scott and Windle 2013).

    It is a series of gamma variates, Σ_k g_k / (2π² ((k − ½)² + (argument / 2π)²)) with g_k ~ Gamma(count). The first
    terms are drawn, and the rest is one gamma variate that has the mean and the variance of the rest.
    """
    mean, variance = find_polya_gamma_moments(count, argument)
    tilt, value = (argument / (2.0 * math.pi)) ** 2, 0.0
    for k in range(EXACT_TERMS):
        factor = 1.0 / (2.0 * math.pi**2 * ((k + 0.5) ** 2 + tilt))
        value += factor * draw_gamma(stream, count)
        mean, variance = mean - factor * count, variance - factor**2 * count
    return value + draw_gamma(stream, mean * mean / variance) * variance / mean


@compiled
def invert(a: float, b: float, c: float) -> Symmetric:
    """The inverse of a symmetric matrix.

    >>> invert(2.0, 0.0, 4.0)
    (0.5, -0.0, 0.25)
    """
    determinant = a * c - b * b
    return c / determinant, -b / determinant, a / determinant


@compiled
def draw_wishart(stream: Keys, freedom: float, scale: Symmetric) -> Symmetric:
    """A Wishart variate, whose mean is freedom · scale, by its Cholesky factor (Bartlett 1933)."""
    a, b, c = scale
    first = math.sqrt(a)
    below, second = b / first, math.sqrt(max(c - b * b / a, TINY))
    one, two = math.sqrt(2.0 * draw_gamma(stream, freedom / 2)), math.sqrt(2.0 * draw_gamma(stream, (freedom - 1) / 2))
    p, q, r = first * one, below * one + second * draw_normal(stream), second * two
    return p * p, p * q, q * q + r * r


@compiled
def draw_pair(stream: Keys, precision: Symmetric, pull: tuple[float, float]) -> tuple[float, float]:
    """A pair of normal variates of this precision, and of the mean precision⁻¹ · pull."""
    a, b, c = invert(*precision)
    first = math.sqrt(a)
    x, y = draw_normal(stream), draw_normal(stream)
    return (
        a * pull[0] + b * pull[1] + first * x,
        b * pull[0] + c * pull[1] + b / first * x + math.sqrt(max(c - b * b / a, TINY)) * y,
    )
