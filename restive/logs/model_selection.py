"""What the model of a history may have: several types of people, or features, where they earn their place.

Candidates are fitted to four fifths of the people and judged by the log score of the others: the log of the posterior
predictive probability of all moves of a person. Up to `MAX_FOLDED` people, each fifth is held out in turn.

The number of types is the smallest whose score is within a hundredth of what types gain of the best, which is noise of the
draws; and one unless it gains two standard errors over one: otherwise people of one type would be split. A type too many
costs little, because people of two types may be alike. A type too few is taken for differences between people that a
policy could use: forecasts of policies then promise too much, and too exactly.
Features are used, with the best ridge, if they gain two standard errors over the types so chosen.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from restive.logs.feature_rows import sample_feature_priors
from restive.logs.mixture import sample_priors
from restive.logs.model import Choice, Prior
from restive.logs.row_prior import log_likelihood, rising_log_likelihood
from restive.types import Floats, Ints

MAX_TYPES, RIDGES = 6, (0.01, 0.1, 1.0)
# How many people are enough for the choice, how many are needed, and up to how many everybody is held out once; one in
# `PART` is held out at a time.
MAX_PEOPLE, MIN_PEOPLE, MAX_FOLDED, PART = 4_000, 50, 1_000, 5
DRAWS, MIN_GAIN, MIN_PART = 40, 2.0, 0.01


class Split(NamedTuple):
    """The people whom a candidate is fitted to, and those whom it is judged by."""

    train: Ints
    test: Ints


def choose(counts: Floats, features: Floats | None, generator: np.random.Generator) -> Choice:
    """Choose by held-out people, from moves [N, A, S, S] and features [N, F], of mean 0 and variance 1."""
    people = generator.permutation(np.flatnonzero(counts.any(axis=(1, 2, 3))))[:MAX_PEOPLE]
    if people.size < MIN_PEOPLE:
        return Choice()
    splits = [
        Split(np.delete(people, np.s_[first::PART]), people[first::PART])
        for first in range(PART if people.size <= MAX_FOLDED else 1)
    ]
    scores = _score_types(counts, splits, generator)
    base, best = scores[0], scores[int(np.argmax([score.mean() for score in scores]))]
    little = MIN_PART * _gain(best, base)[0]
    types = next(number for number, score in enumerate(scores, start=1) if _gain(best, score)[0] <= little)
    if not _earned(scores[types - 1], base):
        types = 1
    gains = tuple(_gain(score, base) for score in scores)
    if features is None:
        return Choice(types, None, gains)
    with_features = [_score_ridge(counts, features, ridge, splits, generator) for ridge in RIDGES]
    found = int(np.argmax([score.mean() for score in with_features]))
    earned = _earned(with_features[found], scores[types - 1])
    feature_gains = tuple(_gain(score, base) for score in with_features)
    return Choice(1 if earned else types, RIDGES[found] if earned else None, gains, feature_gains)


def _score_types(counts: Floats, splits: Sequence[Split], generator: np.random.Generator) -> list[Floats]:
    """Scores of 1, 2, ... types, until two numbers in a row bring no gain over the best."""
    scores: list[Floats] = []
    for types in range(1, MAX_TYPES + 1):
        priors = (sample_priors(counts[split.train], types, DRAWS, generator) for split in splits)
        parts = [score_people(each, counts[split.test]) for each, split in zip(priors, splits, strict=True)]
        scores.append(np.concatenate(parts))
        if len(scores) - 1 - int(np.argmax([score.mean() for score in scores])) == 2:
            break
    return scores


def _score_ridge(
    counts: Floats, features: Floats, ridge: float, splits: Sequence[Split], generator: np.random.Generator
) -> Floats:
    """Scores of features with one ridge."""
    parts = []
    for train, test in splits:
        priors = sample_feature_priors(counts[train], features[train], ridge, DRAWS, generator)
        parts.append(score_people(priors, counts[test], features[test]))
    return np.concatenate(parts)


def score_people(priors: tuple[Prior, ...], counts: Floats, features: Floats | None = None) -> Floats:
    """The log of the posterior predictive probability of all moves of each person, [N]."""
    logs = []
    for prior in priors:
        if prior.coefficients is not None:
            logs.append(rising_log_likelihood(prior.alpha_of(features), counts))
        else:
            logs.append(np.logaddexp.reduce(np.log(prior.share) + log_likelihood(prior.alpha, counts), axis=1))
    return np.asarray(np.logaddexp.reduce(logs, axis=0) - np.log(len(logs)))


def _gain(score: Floats, base: Floats) -> tuple[float, float]:
    return float((score - base).mean()), float((score - base).std(ddof=1) / np.sqrt(score.size))


def _earned(score: Floats, base: Floats) -> bool:
    gain, error = _gain(score, base)
    return gain > MIN_GAIN * error
