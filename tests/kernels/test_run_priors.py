"""The parts of an estimate for all runs: the short way without a mixture is the long one, and runs do not mix."""

import numpy as np

from restive.kernels.run_priors import forget_runs, learn_mixtures, use_pools
from restive.types import Floats

RUNS, AGENTS, STATES, TYPES = 3, 40, 3, 5


def draw_moves(seed: int) -> Floats:
    return np.random.default_rng(seed).poisson(1.5, (RUNS, AGENTS, 2, STATES, STATES)).astype(float)


def test_without_a_mixture_the_pool_gives_the_same_posterior_bit_for_bit() -> None:
    moves = draw_moves(1)
    pool = np.random.default_rng(2).gamma(2.0, size=(RUNS, 2, STATES, STATES))
    weights, posteriors = np.zeros((2, RUNS, 2, STATES)), np.zeros((2, *moves.shape))
    use_pools(moves, pool, weights[0], posteriors[0])
    responsibility = np.zeros((RUNS, AGENTS, TYPES))
    learn_mixtures(moves, pool, weights[1], posteriors[1], responsibility, False)
    assert weights[0].tobytes() == weights[1].tobytes()
    assert posteriors[0].tobytes() == posteriors[1].tobytes()
    assert posteriors[0].min() > 0.0
    assert not responsibility.any()


def test_each_run_forgets_by_its_own_factor() -> None:
    same = np.tile([[0.0, 50.0], [50.0, 0.0]], (1, 9, 2, 1, 1))  # nine agents that always changed their state
    other = same + np.tile([[5.0, 0.0], [0.0, 5.0]], (1, 9, 2, 1, 1))  # and have stayed since
    moves, known = np.concatenate([other, 1.1 * same]), np.concatenate([same, same])
    before, posterior = moves.copy(), moves + 1.0
    forget_runs(moves, known, posterior, np.nan)
    np.testing.assert_array_equal(moves[0], (other - same)[0])
    np.testing.assert_array_equal(moves[1], before[1])
    forget_runs(moves, known, posterior, 0.5)
    np.testing.assert_array_equal(moves[1], before[1] - 0.5 * known[1])
