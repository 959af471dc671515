"""Types of people: a mixture of distributions of rows, by Gibbs sampling.

    k_i ~ share,  share ~ Dirichlet(1, ..., 1),  rows of i ~ Dirichlet(alpha[k_i]), as in `restive.logs.row_prior`

People of one type are alike unless their moves say otherwise: the correlation of two moves of one person, given the type,
is Beta(0.1, 1) instead of uniform. A uniform one takes noise for differences within types, and a policy that picks people
by them is expected to bring more than it does.

A sweep draws everybody's type given the parameters, in one pass over the people, and then the parameters of each type
from the tails of its people. Types also say which rows go together: people who move up by themselves may gain less.
"""

import math
from typing import NamedTuple

import numpy as np

from restive.kernels.jit import compiled
from restive.logs.model import Prior
from restive.logs.row_prior import (
    FIRST_WEIGHT,
    WEIGHT,
    Tails,
    count_tails,
    first_alpha,
    place_counts,
    sample_alpha,
    sum_logs,
    sum_tails,
    update_alpha,
    weight_score,
)
from restive.types import Floats, Ints

# Among many people the draws of one sweep hardly depend on those of the sweep before.
BURN_IN, THIN, MANY_PEOPLE = 60, 2, 10_000
CLUSTER_STEPS = 10
WITHIN_SCORE = (0.1 - 1) * np.log(1 / (1 + WEIGHT))  # log density of Beta(0.1, 1) at each point of the grid


class People(NamedTuple):
    """The counts above 0 of people, as places in a flat table [cells, H + 1]: moves to a destination, then in all."""

    shape: tuple[int, ...]  # A, S, S
    highest: int  # H
    start: Ints  # [N + 1] where the places of each person begin
    place: Ints

    @property
    def width(self) -> int:
        """The number of places."""
        return (math.prod(self.shape) + math.prod(self.shape[:2])) * (self.highest + 1)


def sample_priors(counts: Floats, types: int, draws: int, generator: np.random.Generator) -> tuple[Prior, ...]:
    """Draws of the distribution of rows with so many types, given the moves of people [N, A, S, S]."""
    if types == 1:
        return tuple(Prior(np.ones(1), alpha[None]) for alpha in sample_alpha(count_tails(counts), draws, generator))
    people, kind = _list_places(counts), _cluster(counts, types, generator)
    tails = _first_tails(people, kind, types)
    alpha, kept, thin = first_alpha(tails), list[Prior](), 1 if kind.size > MANY_PEOPLE else THIN
    for sweep in range(-BURN_IN, draws * thin):
        share = generator.dirichlet(1.0 + np.bincount(kind, minlength=types))
        alpha = update_alpha(tails, weight_score(tails) + WITHIN_SCORE, alpha, generator)
        if sweep >= 0 and sweep % thin == thin - 1:
            kept.append(Prior(share, alpha))
        exactly = np.zeros((types, people.width), np.int64)
        table, uniform = _tabulate(alpha, people.highest), generator.random(kind.size)
        _draw_kinds(people.start, people.place, table, np.log(share), uniform, kind, exactly)
        tails = _as_tails(people, exactly)
    return _order(kept)


def _first_tails(people: People, kind: Ints, types: int) -> Tails:
    owner = np.repeat(np.arange(kind.size), np.diff(people.start))
    places = kind[owner] * people.width + people.place
    return _as_tails(people, np.bincount(places, minlength=types * people.width).reshape(types, -1))


def _as_tails(people: People, exactly: Ints) -> Tails:
    """Tails of each type from how many of its people have each count, [K, width]."""
    types, destinations = exactly.shape[0], math.prod(people.shape) * (people.highest + 1)
    return sum_tails(
        exactly[:, :destinations].reshape(types, *people.shape, -1),
        exactly[:, destinations:].reshape(types, *people.shape[:2], -1),
    )


def _list_places(counts: Floats) -> People:
    seen = counts.sum(axis=-1)
    highest = max(int(seen.max(initial=0)), 1)
    cells = np.concatenate([part.reshape(part.shape[0], -1) for part in (counts, seen)], axis=1)
    above = cells > 0
    return People(
        counts.shape[1:], highest, np.append(0, above.sum(axis=1).cumsum()), place_counts(cells, highest)[above]
    )


def _cluster(counts: Floats, types: int, generator: np.random.Generator) -> Ints:
    """First types: k-means of shrunk rows, from centers that are far from each other (Arthur and Vassilvitskii 2007)."""
    total = counts.sum(axis=0) + 1 / counts.shape[-1]
    rows = counts + FIRST_WEIGHT * total / total.sum(axis=-1, keepdims=True)
    rows = (rows / rows.sum(axis=-1, keepdims=True)).reshape(counts.shape[0], -1)
    centers = rows[generator.integers(rows.shape[0])][None]
    while centers.shape[0] < types:
        nearest = _distances(rows, centers).min(axis=1)
        drawn = np.searchsorted(nearest.cumsum(), generator.random() * nearest.sum())
        centers = np.concatenate([centers, rows[min(int(drawn), rows.shape[0] - 1)][None]])
    for _ in range(CLUSTER_STEPS):
        kind = _distances(rows, centers).argmin(axis=1)
        member = kind == np.arange(types)[:, None]
        centers = np.where(
            member.any(axis=1)[:, None], member @ rows / np.maximum(member.sum(axis=1), 1)[:, None], centers
        )
    return np.asarray(_distances(rows, centers).argmin(axis=1))


def _distances(rows: Floats, centers: Floats) -> Floats:
    squares: Floats = (rows**2).sum(axis=1)[:, None] - 2 * rows @ centers.T + (centers**2).sum(axis=1)
    return np.maximum(squares, 0)


def _tabulate(alpha: Floats, highest: int) -> Floats:
    """What each count adds to the log-likelihood of each type, [places, K]."""
    parts = [np.concatenate([sum_logs(each, highest), -sum_logs(each.sum(axis=-1), highest)]) for each in alpha]
    return np.ascontiguousarray(np.stack(parts, axis=1))


@compiled
def _draw_kinds(
    start: Ints, place: Ints, table: Floats, log_share: Floats, uniform: Floats, kind: Ints, exactly: Ints
) -> None:
    """Draw everybody's type, and add everybody's counts to those of the type in `exactly` [K, places]."""
    types = log_share.size
    score = np.empty(types)
    for n in range(kind.size):
        score[:] = log_share
        for j in range(start[n], start[n + 1]):
            for k in range(types):
                score[k] += table[place[j], k]
        best, total = score.max(), 0.0
        for k in range(types):
            score[k] = np.exp(score[k] - best)
            total += score[k]
        left, drawn = uniform[n] * total, 0
        while drawn < types - 1 and left >= score[drawn]:
            left -= score[drawn]
            drawn += 1
        kind[n] = drawn
        for j in range(start[n], start[n + 1]):
            exactly[drawn, place[j]] += 1


def _order(priors: list[Prior]) -> tuple[Prior, ...]:
    """The same draws with the types in the order of their mean shares, the largest first."""
    order = np.argsort(-np.mean([prior.share for prior in priors], axis=0), kind="stable")
    return tuple(Prior(prior.share[order], prior.alpha[order]) for prior in priors)
