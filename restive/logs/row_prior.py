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

from restive.types import Floats, Ints

# Numbers of moves above this are put together in blocks whose width is this part of the number.
EXACT_MOVES, BLOCK_PART = 64, 16
# The weights that are considered, as logits of the correlation of two moves of one person.
GRID = np.linspace(-8.0, 6.0, 141)
WEIGHT = np.exp(-GRID)
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
    starts = [0]
    while starts[-1] + 1 + max(starts[-1] - EXACT_MOVES, 0) // BLOCK_PART <= highest - 1:
        starts.append(starts[-1] + 1 + max(starts[-1] - EXACT_MOVES, 0) // BLOCK_PART)
    first = np.array(starts)
    size = (first + np.append(first[1:], highest) - 1) / 2
    return Tails(size, _count_above(counts, first, highest), _count_above(seen, first, highest))


def _count_above(counts: Floats, first: Ints, highest: int) -> Ints:
    shape = counts.shape[1:]
    place = _place(counts, highest)
    exactly = np.bincount(place.ravel(), minlength=place.shape[1] * (highest + 1)).reshape(-1, highest + 1)
    above = exactly[:, :0:-1].cumsum(axis=1)[:, ::-1]  # more than 0, 1, ..., highest - 1
    return np.asarray(np.add.reduceat(above, first, axis=1).reshape(*shape, first.size))


def sample_alpha(tails: Tails, draws: int, generator: np.random.Generator, thin: int = THIN) -> Floats:
    """Draws of the parameters w m of the distribution of rows, [draws, ..., S]."""
    states = tails.moves.shape[-2]
    log_weight = np.log(WEIGHT)
    at_grid = (tails.seen[..., None, :] * np.log(WEIGHT[:, None] + tails.size)).sum(axis=-1)
    correlation = 1 / (1 + WEIGHT)
    fixed = np.log(correlation * (1 - correlation)) - at_grid
    total = tails.moves.sum(axis=-1) + 1.0 / states
    mean = total / total.sum(axis=-1, keepdims=True)
    weight = np.full(mean.shape[:-1], 5.0)
    kept = np.empty((draws, *mean.shape))
    for sweep in range(-BURN_IN, draws * thin):
        alpha = weight[..., None] * mean
        tables = generator.binomial(tails.moves, alpha[..., None] / (alpha[..., None] + tails.size)).sum(axis=-1)
        mean = np.maximum(generator.standard_gamma(tables + 1.0 / states), SMALLEST)
        mean /= mean.sum(axis=-1, keepdims=True)
        score = fixed + tables.sum(axis=-1)[..., None] * log_weight
        weight = WEIGHT[_choose(score, generator)]
        if sweep >= 0 and sweep % thin == thin - 1:
            kept[sweep // thin] = weight[..., None] * mean
    return kept


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
    seen = counts.sum(axis=-1)
    highest = int(seen.max(initial=0))
    moved = _place(counts, highest)
    visited = _place(seen, highest)
    found = np.empty((people, types))
    for k in range(types):
        found[:, k] = _sum_logs(alpha[k], highest)[moved].sum(axis=1)
        found[:, k] -= _sum_logs(alpha[k].sum(axis=-1), highest)[visited].sum(axis=1)
    return found


def _place(counts: Floats, highest: int) -> Ints:
    """The position of each count in a flat table [cells, highest + 1], as [N, cells]."""
    cells = counts.reshape(counts.shape[0], -1)
    return np.asarray(cells.astype(np.int64) + np.arange(cells.shape[1]) * (highest + 1))


def _sum_logs(alpha: Floats, highest: int) -> Floats:
    """Σ_(k < n) log(alpha + k) for n = 0, ..., highest, flat."""
    logs = np.zeros((alpha.size, highest + 1))
    logs[:, 1:] = np.log(alpha.reshape(-1, 1) + np.arange(highest)).cumsum(axis=1)
    return logs.ravel()
