"""Features in the prior: what they explain is found, what they do not is not, and rows stay distributions."""

import numpy as np
import pytest

from restive.kernels.feature_prior import FIRST_VARIANCE, _invert, learn_feature_prior, standardise, tilt
from restive.types import Floats

AGENTS, STATES = 400, 3


def draw(seed: int, relevance: float, seen: int) -> tuple[Floats, Floats, Floats]:
    """Features [N, 2], of which the first matters if any, rows [N, A, S, S], and so many moves of each agent from each row."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(AGENTS, 2))
    direction = np.array([-1.0, 0.0, 1.0])
    score = relevance * features[:, :1] * direction + 0.2 * rng.normal(size=(AGENTS, STATES))
    rows = np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)
    every = np.broadcast_to(rows[:, None, None], (AGENTS, 2, STATES, STATES)).copy()
    moves = rng.multinomial(seen, every).astype(np.float64)
    return features, every, moves


def learn(features: Floats, moves: Floats, updates: int = 20) -> tuple[Floats, Floats, Floats, Floats]:
    """Coefficients, variances, weights and posterior after some updates from a uniform prior of weight 3."""
    coefficients, variance = np.zeros((2, STATES, STATES, 2)), np.full(2, FIRST_VARIANCE)
    for _ in range(updates):
        weight = np.full((2, STATES), 3.0)
        posterior = moves + 1.0
        learn_feature_prior(standardise(features), moves, coefficients, variance, weight, posterior)
    return coefficients, variance, weight, posterior


def test_a_feature_that_matters_is_found_and_one_that_does_not_is_shrunk() -> None:
    features, rows, moves = draw(0, relevance=0.8, seen=10)
    coefficients, variance, weight, posterior = learn(features, moves)
    effect = coefficients[..., 2, 0] - coefficients[..., 0, 0]
    assert effect == pytest.approx(np.full((2, STATES), 1.6), abs=0.25)
    assert np.abs(coefficients[..., 1]).max() < 0.1
    assert variance[0] > 20 * variance[1]
    assert weight == pytest.approx(3.0)
    prior = (posterior - moves) / weight[..., None]
    assert prior.sum(axis=-1) == pytest.approx(np.ones((AGENTS, 2, STATES)))
    assert np.abs(prior - rows).mean() < 0.5 * np.abs(1 / STATES - rows).mean()


def test_useless_features_leave_the_prior_nearly_as_it_is() -> None:
    features, _, moves = draw(1, relevance=0.0, seen=10)
    coefficients, _, weight, posterior = learn(features, moves)
    assert np.abs(coefficients).max() < 0.1
    prior = (posterior - moves) / weight[..., None]
    assert np.abs(prior - 1 / STATES).mean() < 0.02


def test_without_moves_nothing_is_learned() -> None:
    features, _, moves = draw(2, relevance=0.8, seen=0)
    coefficients, variance, weight, posterior = learn(features, moves)
    assert not coefficients.any()
    assert variance == pytest.approx(FIRST_VARIANCE)
    assert weight == pytest.approx(3.0)
    assert posterior == pytest.approx(1.0)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_matrix_times_its_inverse_is_one(size: int) -> None:
    root = np.random.default_rng(size).normal(size=(size, size))
    matrix = root @ root.T + 0.1 * np.eye(size)
    lower = matrix.copy()
    _invert(lower)
    inverse = np.tril(lower) + np.tril(lower, -1).T
    assert matrix @ inverse == pytest.approx(np.eye(size), abs=1e-9)


def test_extreme_scores_do_not_overflow() -> None:
    row = np.array([0.5, 0.5])
    tilt(np.array([1e4]), np.array([[1.0], [-1.0]]), row)
    assert row.tolist() == [1.0, 0.0]
