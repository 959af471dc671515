"""The draws of the sampler against the distributions of SciPy, and the sampler against a population it must recover."""

import numpy as np
import pytest
from scipy import stats

from restive.kernels.gibbs import Data, begin, draw_dirichlet, draw_gamma, draw_normal, draw_uniform, sweep
from restive.types import Floats, Keys

MANY = 20_000


def new_stream(key: int = 7) -> Keys:
    return np.array([key, 0], np.uint64)


def observe(moves: Floats) -> Data:
    arrivals = moves.sum(axis=(1, 2))
    return Data(moves, moves.sum(axis=-1), arrivals, arrivals * np.arange(moves.shape[-1]), 0.0)


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


def test_the_weight_of_agents_that_differ_is_recovered() -> None:
    """Rows uniform on [0, 1] are Dirichlet rows of weight 2; agents that are all alike have a large weight."""
    generator = np.random.default_rng(3)
    for rows, low, high in (
        (generator.dirichlet(np.ones(2), (300, 2, 2)), 1.4, 3.2),
        (np.full((300, 2, 2, 2), 0.5), 20, 1e4),
    ):
        data, stream = observe(generator.multinomial(30, rows).astype(np.float64)), new_stream()
        sample, found = begin(stream, data), []
        for step in range(300):
            sweep(stream, data, sample)
            if step >= 100:
                found.append(sample.weight.copy())
        assert low < np.median(found) < high
