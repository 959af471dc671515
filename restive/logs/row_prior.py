"""The posterior of the Dirichlet distribution from which people's rows are drawn, given how often each of them moved.

    row_i ~ Dirichlet(w m),  n_i ~ multinomial(row_i);   m ~ Dirichlet(1/S, ..., 1/S),  1 / (1 + w) ~ uniform(0, 1)

for each action and state by itself. 1 / (1 + w) is the correlation of two moves of one person. Rows that all people share
have it 0. With the rows integrated out, the likelihood depends on the counts only through how many people have more than
k moves, for k = 0, 1, ... (Minka 2000): Σ_i lgamma(α_t + n_it) − lgamma(α_t) = Σ_k tail_t(k) log(α_t + k). So everything
after one pass over the people costs the same for a hundred people as for a million.

Draws are by Gibbs sampling with the numbers of tables of the Chinese restaurant process as auxiliary variables (Antoniak
1974; Escobar and West 1995; Teh et al. 2006):

    tables_t ~ Σ_k binomial(tail_t(k), α_t / (α_t + k));   m ~ Dirichlet(1/S + tables);
    p(w) ∝ prior(w) · w^(Σ_t tables_t) / Π_k (w + k)^(tail of all moves (k)), on a grid

The posterior is exact for any number of people; a bootstrap of people with few moves in a cell is not.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from restive.types import Floats, Ints

# Numbers of moves above this are put together in blocks whose width is this part of the number.
EXACT_MOVES, BLOCK_PART = 64, 16
# The weights that are considered, as logits of the correlation of two moves of one person.
GRID = np.linspace(-8.0, 6.0, 141)
WEIGHT = np.exp(-GRID)
FIRST_WEIGHT = 5.0
BURN_IN, THIN = 100, 10
SMALLEST = 1e-12  # of a mean row


class Tails(NamedTuple):
    """How many people have more than so many moves; leading axes [...] are actions, states and whatever else."""

    size: Floats  # [B] the number of moves, k
    moves: Ints  # [..., S, B] of people with more than k moves to a destination
    seen: Ints  # [..., B] of people with more than k moves


def count_tails(counts: Floats) -> Tails:
    """The tails of counts [N, ..., S].

    >>> tails = count_tails(np.array([[2.0, 0.0], [1.0, 1.0]]))
    >>> tails.moves.tolist(), tails.seen.tolist()
    ([[2, 1], [1, 0]], [2, 2])
    """
    seen = counts.sum(axis=-1)
    highest = max(int(seen.max(initial=0)), 1)
    moves, visits = (
        np.bincount(place_counts(part, highest).ravel(), minlength=part[0].size * (highest + 1)).reshape(
            *part.shape[1:], highest + 1
        )
        for part in (counts, seen)
    )
    return sum_tails(moves, visits)


def sum_tails(moves: Ints, visits: Ints) -> Tails:
    """Tails from how many people have exactly 0, 1, ... moves: [..., S, H + 1] to a destination, [..., H + 1] in all."""
    highest = moves.shape[-1] - 1
    starts = [0]
    while (following := starts[-1] + 1 + max(starts[-1] - EXACT_MOVES, 0) // BLOCK_PART) < highest:
        starts.append(following)
    first = np.array(starts)
    size = (first + np.append(first[1:], highest) - 1) / 2
    above = (part[..., :0:-1].cumsum(axis=-1)[..., ::-1] for part in (moves, visits))  # more than 0, 1, ...
    return Tails(size, *(np.add.reduceat(part, first, axis=-1) for part in above))


def sample_alpha(tails: Tails, draws: int, generator: np.random.Generator, thin: int = THIN) -> Floats:
    """Draws of the parameters w m of the distribution of rows, [draws, ..., S]."""
    alpha = first_alpha(tails)
    kept = np.empty((draws, *alpha.shape))
    score = weight_score(tails)
    for sweep in range(-BURN_IN, draws * thin):
        alpha = update_alpha(tails, score, alpha, generator)
        if sweep >= 0 and sweep % thin == thin - 1:
            kept[sweep // thin] = alpha
    return kept


def first_alpha(tails: Tails) -> Floats:
    """Where a chain starts: the rows of all people, with a weight of `FIRST_WEIGHT`, [..., S]."""
    total = tails.moves.sum(axis=-1) + 1.0 / tails.moves.shape[-2]
    return np.asarray(FIRST_WEIGHT * total / total.sum(axis=-1, keepdims=True))


def weight_score(tails: Tails) -> Floats:
    """What does not change in the log of the density of the weight, at each point of the grid, [..., G]."""
    correlation = 1 / (1 + WEIGHT)
    return np.asarray(np.log(correlation * (1 - correlation)) - tails.seen @ np.log(WEIGHT[:, None] + tails.size).T)


def update_alpha(tails: Tails, score: Floats, alpha: Floats, generator: np.random.Generator) -> Floats:
    """One sweep of Gibbs sampling; `score` is that of `weight_score`."""
    tables = generator.binomial(tails.moves, alpha[..., None] / (alpha[..., None] + tails.size)).sum(axis=-1)
    mean = np.maximum(generator.standard_gamma(tables + 1.0 / alpha.shape[-1]), SMALLEST)
    mean /= mean.sum(axis=-1, keepdims=True)
    weight = WEIGHT[_choose(score + tables.sum(axis=-1)[..., None] * np.log(WEIGHT), generator)]
    return np.asarray(weight[..., None] * mean)


def _choose(score: Floats, generator: np.random.Generator) -> Ints:
    """A position on the last axis, drawn with probability ∝ exp(score)."""
    cumulative = np.exp(score - score.max(axis=-1, keepdims=True)).cumsum(axis=-1)
    drawn = generator.random(score.shape[:-1]) * cumulative[..., -1]
    return np.asarray((cumulative < drawn[..., None]).sum(axis=-1))


def log_likelihood(alpha: Floats, counts: Floats) -> Floats:
    """The log-likelihood of each person's moves, in their order, under each of K distributions of rows, [N, K].

    >>> np.exp(log_likelihood(np.ones((1, 2)), np.array([[1.0, 0.0], [1.0, 1.0]])))  # 1/2 and 1/2 · 1/3
    array([[0.5       ],
           [0.16666667]])
    """
    types, people = alpha.shape[0], counts.shape[0]
    if (counts % 1).any():
        return np.stack([rising_log_likelihood(each, counts) for each in alpha], axis=1)
    seen = counts.sum(axis=-1)
    highest = int(seen.max(initial=0))
    moved = place_counts(counts, highest)
    visited = place_counts(seen, highest)
    found = np.empty((people, types))
    for k in range(types):
        found[:, k] = sum_logs(alpha[k], highest)[moved].sum(axis=1)
        found[:, k] -= sum_logs(alpha[k].sum(axis=-1), highest)[visited].sum(axis=1)
    return found


def rising_log_likelihood(alpha: Floats, counts: Floats) -> Floats:
    """The same for parameters [..., A, S, S] and counts [..., A, S, S] that need not be whole, [...]."""
    total, seen = alpha.sum(axis=-1), counts.sum(axis=-1)
    moves: Floats = (gammaln(alpha + counts) - gammaln(alpha)).sum(axis=(-3, -2, -1))
    return np.asarray(moves - (gammaln(total + seen) - gammaln(total)).sum(axis=(-2, -1)))


def place_counts(counts: Floats, highest: int) -> Ints:
    """The position of each count in a flat table [cells, highest + 1], as [N, cells]."""
    cells = counts.reshape(counts.shape[0], -1)
    return np.asarray(cells.astype(np.int64) + np.arange(cells.shape[1]) * (highest + 1))


def sum_logs(alpha: Floats, highest: int) -> Floats:
    """Σ_(k < n) log(alpha + k) for n = 0, ..., highest, flat."""
    logs = np.zeros((alpha.size, highest + 1))
    logs[:, 1:] = np.log(alpha.reshape(-1, 1) + np.arange(highest)).cumsum(axis=1)
    return logs.ravel()
