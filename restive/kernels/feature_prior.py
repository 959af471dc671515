"""Features of agents in the prior: a multinomial-logit regression of the prior rows, by empirical Bayes.

features      [N, F]        fixed numbers of each agent, standardised; F is 0 if there are none
moves         [N, A, S, S]  how often each agent moved from s to t under a
posterior     [N, A, S, S]  moves + weight · prior row
weight        [A, S]        the weight of an agent's prior row, in moves
coefficients  [A, S, S, F]  of the features in the log of a prior row's entries
variance      [F]           of the coefficients of each feature

    prior row of agent n ∝ (prior row without features) · exp(features_n · coefficients)

So agents with little data, and newcomers, borrow from those who are like them. The coefficients have a normal prior of
mean 0, whose variance for each feature is estimated from all coefficients (automatic relevance determination, MacKay
1992): useless features are shrunk towards nothing. Each update is one step of Newton's method with the curvature of
independent Poisson counts, which is never too small, and one step of MacKay's fixed point for the variances. As in
`restive.kernels.mixture`, n moves of an agent count as n · (weight + 1) / (weight + n), because agents also differ in
what features do not say. The weight stays as it is: one that was estimated around the rows with features gained a little
where features matter, and cost more than 0.01 of the gap with 50 agents where they are useless.
"""

import numpy as np

from restive.kernels.jit import compiled, inlined
from restive.types import Floats

# The variance of the coefficients at first, and the number of pseudo-coefficients that have it.
FIRST_VARIANCE, PRIOR_COEFFICIENTS = 0.01, 1.0
# A coefficient changes by at most so much in one update.
MAX_CHANGE = 0.5


@compiled
def standardise(features: Floats) -> Floats:
    """Features of mean 0 and variance 1 over agents, [N, F]; missing ones (NaN) are 0, and so is one that is constant.

    >>> standardise(np.array([[1.0, 5.0], [3.0, 5.0], [np.nan, 5.0]]))
    array([[-1.,  0.],
           [ 1.,  0.],
           [ 0.,  0.]])
    """
    scaled = np.zeros_like(features)
    for f in range(features.shape[1]):
        count, total, square = 0.0, 0.0, 0.0
        for n in range(features.shape[0]):
            if not np.isnan(features[n, f]):
                count += 1.0
                total += features[n, f]
        mean = total / max(count, 1.0)
        for n in range(features.shape[0]):
            if not np.isnan(features[n, f]):
                square += (features[n, f] - mean) ** 2
        spread = np.sqrt(square / max(count, 1.0))
        for n in range(features.shape[0]):
            if spread > 0.0 and not np.isnan(features[n, f]):
                scaled[n, f] = (features[n, f] - mean) / spread
    return scaled


@compiled
def tilt(features: Floats, coefficients: Floats, row: Floats) -> None:
    """Multiply a row [S] by exp(features · coefficients), [F] and [S, F], and normalise it.

    >>> row = np.array([0.5, 0.5])
    >>> tilt(np.array([2.0]), np.array([[0.0], [np.log(3.0) / 2]]), row)
    >>> row
    array([0.25, 0.75])
    """
    total, largest = 0.0, -np.inf
    for t in range(row.size):
        score = 0.0
        for f in range(features.size):
            score += features[f] * coefficients[t, f]
        largest = max(largest, score)
    for t in range(row.size):
        score = -largest
        for f in range(features.size):
            score += features[f] * coefficients[t, f]
        row[t] *= np.exp(score)
        total += row[t]
    for t in range(row.size):
        row[t] /= total


@inlined
def learn_feature_prior(
    features: Floats, moves: Floats, coefficients: Floats, variance: Floats, weight: Floats, posterior: Floats
) -> None:
    """Update coefficients and variances, and give each agent the prior rows that its features imply."""
    agents, actions, states, _ = moves.shape
    squares = np.full(variance.size, PRIOR_COEFFICIENTS * FIRST_VARIANCE)
    known = np.full(variance.size, PRIOR_COEFFICIENTS)
    rows = np.empty((agents, states))
    for a in range(actions):
        for s in range(states):
            for n in range(agents):
                for t in range(states):
                    rows[n, t] = max(posterior[n, a, s, t] - moves[n, a, s, t], 1e-9 * weight[a, s])
                rows[n] /= rows[n].sum()
            base = rows.copy()
            for n in range(agents):
                tilt(features[n], coefficients[a, s], rows[n])
            _update_coefficients(
                features, moves[:, a, s], rows, weight[a, s], variance, coefficients[a, s], squares, known
            )
            for n in range(agents):
                rows[n] = base[n]
                tilt(features[n], coefficients[a, s], rows[n])
            for n in range(agents):
                for t in range(states):
                    posterior[n, a, s, t] = moves[n, a, s, t] + weight[a, s] * rows[n, t]
    for f in range(variance.size):
        variance[f] = squares[f] / known[f]


@inlined
def _update_coefficients(
    features: Floats,
    moves: Floats,
    rows: Floats,
    weight: float,
    variance: Floats,
    coefficients: Floats,
    squares: Floats,
    known: Floats,
) -> None:
    """One Newton step for the coefficients [S, F] of one row; adds their expected squares to `squares` [F]."""
    agents, states = rows.shape
    size = variance.size
    gradient, curvature = np.zeros((states, size)), np.zeros((states, size, size))
    for n in range(agents):
        seen = moves[n].sum()
        if seen == 0.0:
            continue
        trust = (weight + 1.0) / (weight + max(seen, 1.0))
        for t in range(states):
            excess, expected = trust * (moves[n, t] - seen * rows[n, t]), trust * seen * rows[n, t]
            for f in range(size):
                gradient[t, f] += excess * features[n, f]
                for g in range(f + 1):
                    curvature[t, f, g] += expected * features[n, f] * features[n, g]
    for t in range(states):
        for f in range(size):
            gradient[t, f] -= coefficients[t, f] / variance[f]
            curvature[t, f, f] += 1.0 / variance[f]
        _invert(curvature[t])
        for f in range(size):
            change = 0.0
            for g in range(size):
                change += curvature[t, max(f, g), min(f, g)] * gradient[t, g]
            coefficients[t, f] += min(max(change, -MAX_CHANGE), MAX_CHANGE)
            squares[f] += coefficients[t, f] ** 2
            known[f] += 1.0 - curvature[t, f, f] / variance[f]


@inlined
def _invert(matrix: Floats) -> None:
    """Replace the lower triangle of a positive definite matrix by that of its inverse, by Cholesky factors."""
    size = matrix.shape[0]
    for j in range(size):
        for i in range(j, size):
            total = matrix[i, j]
            for k in range(j):
                total -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = np.sqrt(total) if i == j else total / matrix[j, j]
    for j in range(size):
        matrix[j, j] = 1.0 / matrix[j, j]
        for i in range(j + 1, size):
            total = 0.0
            for k in range(j, i):
                total -= matrix[i, k] * matrix[k, j]
            matrix[i, j] = total / matrix[i, i]
    for j in range(size):
        for i in range(j, size):
            total = 0.0
            for k in range(i, size):
                total += matrix[k, i] * matrix[k, j]
            matrix[i, j] = total
