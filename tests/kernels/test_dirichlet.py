"""Gamma and Dirichlet samples have the right law, and each agent's depend on its own random numbers alone."""

import numpy as np
import pytest
from scipy import stats

from restive.kernels.dirichlet import sample_gamma, sample_rows
from restive.kernels.rng import run_keys
from restive.types import Floats

DRAWS = 4000


@pytest.mark.parametrize("shape", [0.05, 0.5, 1.0, 1.7, 20.0, 3000.0])
def test_gamma_variates_have_the_gamma_distribution(shape: float) -> None:
    keys = run_keys(1, np.arange(DRAWS))
    drawn = [sample_gamma(shape, key, 0)[0] for key in keys]
    assert stats.kstest(drawn, stats.gamma(shape).cdf).pvalue > 0.001


def test_a_key_continues_where_it_stopped() -> None:
    key = run_keys(3, np.arange(1))[0]
    _, used = sample_gamma(2.0, key, 0)
    again, _ = sample_gamma(2.0, key, used)
    assert again != sample_gamma(2.0, key, 0)[0]
    assert again == sample_gamma(2.0, key, used)[0]


def draw(moves: Floats, prior: float = 1.0, agents: int | None = None) -> Floats:
    drawn = np.empty_like(moves)
    sample_rows(moves, prior, run_keys(5, np.arange(len(moves))), np.arange(agents or moves.shape[1]), drawn)
    return drawn


def test_rows_are_distributions_with_the_posterior_mean_and_spread() -> None:
    moves = np.zeros((DRAWS, 1, 2, 3, 3))
    moves[:, 0, 1, 2] = [4.0, 0.0, 9.0]
    rows = draw(moves)
    np.testing.assert_allclose(rows.sum(axis=-1), 1.0)
    law = stats.dirichlet([5.0, 1.0, 10.0])
    np.testing.assert_allclose(rows[:, 0, 1, 2].mean(axis=0), law.mean(), atol=4 * np.sqrt(law.var().max() / DRAWS))
    np.testing.assert_allclose(rows[:, 0, 1, 2].var(axis=0), law.var(), rtol=0.1)
    assert stats.kstest(rows[:, 0, 0, 0, 0], stats.beta(1, 2).cdf).pvalue > 0.001


def test_an_agent_keeps_its_sample_when_others_join() -> None:
    moves = np.zeros((2, 5, 2, 2, 2))
    np.testing.assert_array_equal(draw(moves)[:, :3], draw(moves[:, :3].copy()))
