"""The posterior of the distribution of rows, against quadrature and against counting by hand."""

import numpy as np
from scipy.special import betaln, gammaln

from restive.logs.row_prior import count_tails, log_likelihood, sample_alpha


def draw_counts(people: int, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    share = generator.beta(2.0, 4.0, people)
    moves = generator.integers(0, 12, people)
    first = generator.binomial(moves, share)
    return np.stack([first, moves - first], axis=1).astype(float)


def test_tails_count_people_with_more_moves() -> None:
    counts = np.random.default_rng(1).integers(0, 400, (50, 2, 3)).astype(float)
    tails = count_tails(counts)
    assert tails.moves[..., :60].tolist() == [
        [[int((counts[:, c, t] > k).sum()) for k in range(60)] for t in range(3)] for c in range(2)
    ]
    assert (tails.moves.sum(axis=-1) == counts.sum(axis=0)).all()
    assert (tails.seen.sum(axis=-1) == counts.sum(axis=(0, 2))).all()
    assert tails.size.size < 150


def test_log_likelihood_is_that_of_the_dirichlet_multinomial_sequence() -> None:
    counts, alpha = draw_counts(40, 2), np.array([[0.7, 1.9], [3.0, 0.2]])
    expected = betaln(alpha[:, 0] + counts[:, :1], alpha[:, 1] + counts[:, 1:]) - betaln(alpha[:, 0], alpha[:, 1])
    assert np.allclose(log_likelihood(alpha, counts), expected)
    wide = np.random.default_rng(0).integers(0, 5, (6, 4)).astype(float)
    alpha = np.array([[0.5, 1.0, 2.0, 0.1]])
    whole = gammaln(3.6) - gammaln(3.6 + wide.sum(axis=1)) + (gammaln(alpha + wide) - gammaln(alpha)).sum(axis=1)
    assert np.allclose(log_likelihood(alpha, wide)[:, 0], whole)


def test_draws_have_the_moments_of_the_posterior_by_quadrature() -> None:
    counts = draw_counts(30, 4)
    alpha = sample_alpha(count_tails(counts), 2500, np.random.default_rng(1))
    weight = alpha.sum(axis=-1)
    mean, correlation = alpha[:, 0] / weight, 1 / (1 + weight)
    m, rho = np.meshgrid((np.arange(400) + 0.5) / 400, (np.arange(400) + 0.5) / 400)
    w = 1 / rho - 1
    log = -0.5 * np.log(m * (1 - m))
    for first, second in counts:
        log += betaln(w * m + first, w * (1 - m) + second) - betaln(w * m, w * (1 - m))
    density = np.exp(log - log.max())
    density /= density.sum()
    for drawn, grid in ((mean, m), (correlation, rho)):
        center = (density * grid).sum()
        spread = np.sqrt((density * (grid - center) ** 2).sum())
        assert abs(drawn.mean() - center) < 0.1 * spread
        assert 0.93 < drawn.std() / spread < 1.07


def test_a_row_without_moves_has_the_prior() -> None:
    alpha = sample_alpha(count_tails(np.zeros((5, 1, 2))), 1500, np.random.default_rng(1))[:, 0]
    correlation = 1 / (1 + alpha.sum(axis=-1))
    assert abs(correlation.mean() - 0.5) < 0.04
    assert abs((alpha[:, 0] / alpha.sum(axis=-1)).mean() - 0.5) < 0.04
