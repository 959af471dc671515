"""The draws of samplers against the distributions of SciPy, and against sums of very many terms."""

import numpy as np
import pytest
from scipy import stats

from restive.kernels.variates import (
    draw_dirichlet,
    draw_gamma,
    draw_normal,
    draw_pair,
    draw_polya_gamma,
    draw_uniform,
    draw_wishart,
    find_polya_gamma_moments,
    invert,
)
from restive.types import Keys

MANY = 20_000


def new_stream(key: int = 7) -> Keys:
    return np.array([key, 0], np.uint64)


def test_uniform_and_normal_draws_have_their_distributions() -> None:
    stream = new_stream()
    assert stats.kstest([draw_uniform(stream) for _ in range(MANY)], "uniform").pvalue > 0.001
    assert stats.kstest([draw_normal(stream) for _ in range(MANY)], "norm").pvalue > 0.001
    assert stream[1] == 2 * MANY


@pytest.mark.parametrize("shape", [0.05, 0.7, 1.0, 3.5, 400.0])
def test_gamma_draws_have_their_distribution(shape: float) -> None:
    stream = new_stream(11)
    assert stats.kstest([draw_gamma(stream, shape) for _ in range(MANY)], stats.gamma(shape).cdf).pvalue > 0.001


def test_a_dirichlet_draw_sums_to_one_even_if_all_its_parts_underflow() -> None:
    row = np.empty(3)
    draw_dirichlet(new_stream(), np.array([2.0, 0.0, 1.0]), row)
    assert (row[1], row.sum()) == (0.0, pytest.approx(1.0))
    draw_dirichlet(new_stream(), np.array([1e-9, 2e-9, 1e-9]), row)
    assert row.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(("count", "argument"), [(1.0, 0.0), (1.0, 3.0), (4.0, -1.5), (40.0, 6.0), (2.0, 25.0)])
def test_a_polya_gamma_draw_has_the_distribution_of_its_series(count: float, argument: float) -> None:
    stream, generator, terms = new_stream(5), np.random.default_rng(5), np.arange(400) + 0.5
    found = [draw_polya_gamma(stream, count, argument) for _ in range(4_000)]
    factor = 1 / (2 * np.pi**2 * (terms**2 + (argument / (2 * np.pi)) ** 2))
    series = generator.gamma(count, size=(4_000, terms.size)) @ factor
    assert stats.ks_2samp(found, series).pvalue > 0.001
    mean, variance = find_polya_gamma_moments(count, argument)
    assert np.mean(found) == pytest.approx(mean, abs=5 * np.sqrt(variance / 4_000))
    assert np.var(found) == pytest.approx(variance, rel=0.2)


@pytest.mark.parametrize("argument", [1e-2, 1e2])
def test_moments_of_polya_gamma_are_continuous_where_their_formula_changes(argument: float) -> None:
    below, above = (find_polya_gamma_moments(3.0, argument * factor) for factor in (1 - 1e-9, 1 + 1e-9))
    assert below == pytest.approx(above, rel=1e-3)


def test_pairs_and_wishart_draws_have_their_moments() -> None:
    stream, precision = new_stream(9), (2.0, -0.5, 1.0)
    a, b, c = invert(*precision)
    pairs = np.array([draw_pair(stream, precision, (1.0, 2.0)) for _ in range(MANY)])
    np.testing.assert_allclose(pairs.mean(axis=0), [a + 2 * b, b + 2 * c], atol=0.05)
    np.testing.assert_allclose(np.cov(pairs.T), [[a, b], [b, c]], atol=0.05)
    drawn = np.array([draw_wishart(stream, 6.0, (a, b, c)) for _ in range(MANY)])
    np.testing.assert_allclose(drawn.mean(axis=0), [6 * a, 6 * b, 6 * c], rtol=0.05)
    assert stats.kstest(drawn[:, 0] / a, stats.chi2(6).cdf).pvalue > 0.001
