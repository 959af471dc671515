"""Features of people in the distribution of rows: a softmax regression of the mean rows, with ridge.

    row_i ~ Dirichlet(w m_i),   m_i(t) ∝ exp(c_t + x_i · B_t),   B_tf ~ normal(0, ridge)

for each action and state by itself, with the priors of `restive.logs.row_prior` for softmax(c) and w; x are features of
mean 0 and variance 1, 0 where they are unknown. The mode of the marginal likelihood is found by Newton steps with the
information of n moves of a person, n (w + 1) / (w + n) times that of one; draws are from the normal approximation there
(Laplace).
"""

from typing import NamedTuple

import numpy as np

from restive.kernels.jit import compiled
from restive.logs.model import Prior
from restive.types import Floats

STEPS, MAX_CHANGE, TOLERANCE = 40, 1.0, 1e-3
MIN_LOG_WEIGHT, MAX_LOG_WEIGHT = -6.0, 8.0
INTERCEPT_VARIANCE = 100.0  # fixes what the same number added to all c_t leaves open


class Mode(NamedTuple):
    """The mode of one action and state, with the normal approximation there."""

    coefficients: Floats  # [S, F + 1]: B_t, then c_t
    log_weight: float
    factor: Floats  # [S (F + 1), S (F + 1)] whose product with its transpose is the covariance of the coefficients
    log_weight_error: float


def sample_feature_priors(
    counts: Floats, features: Floats, ridge: float, draws: int, generator: np.random.Generator
) -> tuple[Prior, ...]:
    """Draws of the distribution of rows, given moves [N, A, S, S] and features [N, F] of people."""
    _, actions, states, _ = counts.shape
    design = np.append(features, np.ones((features.shape[0], 1)), axis=1)
    alpha = np.empty((draws, actions, states, states))
    coefficients = np.empty((draws, actions, states, states, features.shape[1]))
    for a in range(actions):
        for s in range(states):
            mode = find_mode(counts[:, a, s], design, ridge)
            noise = generator.standard_normal((draws, mode.factor.shape[0])) @ mode.factor.T
            drawn = mode.coefficients + noise.reshape(draws, *mode.coefficients.shape)
            log_weight = mode.log_weight + mode.log_weight_error * generator.standard_normal(draws)
            mean = np.exp(drawn[..., -1] - drawn[..., -1].max(axis=1, keepdims=True))
            weight = np.exp(log_weight.clip(MIN_LOG_WEIGHT, MAX_LOG_WEIGHT))
            alpha[:, a, s] = weight[:, None] * mean / mean.sum(axis=1, keepdims=True)
            coefficients[:, a, s] = drawn[..., :-1]
    return tuple(Prior(np.ones(1), each[None], slope) for each, slope in zip(alpha, coefficients, strict=True))


def find_mode(counts: Floats, design: Floats, ridge: float) -> Mode:
    """The mode for the counts [N, S] of one action and state; the last column of the design [N, F + 1] is 1."""
    seen = counts.sum(axis=1) > 0
    counts, design = np.ascontiguousarray(counts[seen]), np.ascontiguousarray(design[seen])
    states, size = counts.shape[1], design.shape[1]
    precision = np.full(size, 1 / ridge)
    precision[-1] = 1 / INTERCEPT_VARIANCE
    coefficients, log_weight = np.zeros((states, size)), float(np.log(5.0))
    for _ in range(STEPS):
        gradient, information, slope, bend = _add_people(counts, design, coefficients, np.exp(log_weight))
        mean = np.exp(coefficients[:, -1] - coefficients[:, -1].max())
        mean /= mean.sum()
        gradient -= coefficients * precision
        gradient[:, -1] += 1 / states - mean
        information = information.reshape(states * size, -1) + np.diag(np.tile(precision, states))
        change = np.linalg.solve(information, gradient.ravel()).reshape(states, size)
        change *= min(1.0, MAX_CHANGE / max(float(np.abs(change).max()), 1e-12))
        weight = np.exp(log_weight)
        slope += 1 - 2 * weight / (1 + weight)
        bend = min(bend - 2 * weight / (1 + weight) ** 2, -0.05)
        step = min(max(-slope / bend, -MAX_CHANGE), MAX_CHANGE)
        coefficients = coefficients + change
        log_weight = min(max(log_weight + step, MIN_LOG_WEIGHT), MAX_LOG_WEIGHT)
        if max(float(np.abs(change).max()), abs(step)) < TOLERANCE:
            break
    factor = np.linalg.inv(np.linalg.cholesky(information)).T
    return Mode(coefficients, log_weight, factor, float(1 / np.sqrt(-bend)))


@compiled
def _add_people(
    counts: Floats, design: Floats, coefficients: Floats, weight: float
) -> tuple[Floats, Floats, float, float]:
    """Sums over people: gradient [S, G] and information [S, G, S, G] of the coefficients; slope and bend in log w."""
    people, states = counts.shape
    size = design.shape[1]
    gradient, information = np.zeros((states, size)), np.zeros((states, size, states, size))
    slope, bend = 0.0, 0.0
    mean, excess = np.empty(states), np.empty(states)
    for n in range(people):
        highest, total, seen = -np.inf, 0.0, 0.0
        for t in range(states):
            mean[t] = 0.0
            for f in range(size):
                mean[t] += coefficients[t, f] * design[n, f]
            highest = max(highest, mean[t])
        for t in range(states):
            mean[t] = np.exp(mean[t] - highest)
            total += mean[t]
            seen += counts[n, t]
        common, first, second = 0.0, 0.0, 0.0
        for t in range(states):
            mean[t] = max(mean[t] / total, 1e-12)
            excess[t], squares = _sum_inverse(weight * mean[t], counts[n, t])
            common += mean[t] * excess[t]
            second -= mean[t] ** 2 * squares
        all_moves, squares = _sum_inverse(weight, seen)
        first = common - all_moves
        slope += weight * first
        bend += weight * first + weight**2 * (second + squares)
        trust = seen * (weight + 1.0) / (weight + seen)
        for t in range(states):
            score = weight * mean[t] * (excess[t] - common)
            for f in range(size):
                gradient[t, f] += score * design[n, f]
            for u in range(states):
                part = trust * mean[t] * ((1.0 if t == u else 0.0) - mean[u])
                for f in range(size):
                    for g in range(size):
                        information[t, f, u, g] += part * design[n, f] * design[n, g]
    return gradient, information, slope, bend


@compiled
def _sum_inverse(alpha: float, number: float) -> tuple[float, float]:
    """Σ_(k < number) 1 / (alpha + k), and the same of the squares."""
    total, squares = 0.0, 0.0
    for k in range(int(number)):
        part = 1.0 / (alpha + k)
        total += part
        squares += part * part
    return total, squares
