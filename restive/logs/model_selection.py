"""What the model of a history may have: several types of people, or features, where they earn their place.

Candidates are fitted to four fifths of the people and judged by the log score of the others: the log of the posterior
predictive probability of all moves of a person.

The number of types is the smallest whose score is within one standard error of the best (Breiman et al. 1984), or within
a hundredth of what types gain, which is noise of the draws; and one unless it gains two standard errors over one: otherwise
people of one type would be split in one history out of eight.
Features are used, with the best ridge, if they gain two standard errors over the types so chosen.
"""

import numpy as np

from restive.logs.feature_rows import sample_feature_priors
from restive.logs.mixture import sample_priors
from restive.logs.model import Choice, Prior
from restive.logs.row_prior import log_likelihood, rising_log_likelihood
from restive.types import Floats

MAX_TYPES, RIDGES = 6, (0.01, 0.1, 1.0)
# How many people are enough for the choice and how many are needed; one in `PART` is held out.
MAX_PEOPLE, MIN_PEOPLE, PART = 4_000, 50, 5
DRAWS, MIN_GAIN, MIN_PART = 40, 2.0, 0.01


def choose(counts: Floats, features: Floats | None, generator: np.random.Generator) -> Choice:
    """Choose by held-out people, from moves [N, A, S, S] and features [N, F], of mean 0 and variance 1."""
    people = generator.permutation(np.flatnonzero(counts.any(axis=(1, 2, 3))))[:MAX_PEOPLE]
    if people.size < MIN_PEOPLE:
        return Choice()
    test, train = people[::PART], np.delete(people, np.s_[::PART])
    scores = _score_types(counts[train], counts[test], generator)
    base, means = scores[0], [score.mean() for score in scores]
    best = scores[int(np.argmax(means))]
    behind = [_gain(best, score) for score in scores]
    little = MIN_PART * _gain(best, base)[0]
    types = next(number for number, (gain, error) in enumerate(behind, start=1) if gain <= max(error, little))
    if not _earned(scores[types - 1], base):
        types = 1
    gains = tuple(_gain(score, base) for score in scores)
    if features is None:
        return Choice(types, None, gains)
    with_features = [
        score_people(
            sample_feature_priors(counts[train], features[train], ridge, DRAWS, generator), counts[test], features[test]
        )
        for ridge in RIDGES
    ]
    found = int(np.argmax([score.mean() for score in with_features]))
    earned = _earned(with_features[found], scores[types - 1])
    feature_gains = tuple(_gain(score, base) for score in with_features)
    return Choice(1 if earned else types, RIDGES[found] if earned else None, gains, feature_gains)


def _score_types(train: Floats, test: Floats, generator: np.random.Generator) -> list[Floats]:
    """Scores of 1, 2, ... types, until two numbers in a row bring no gain over the best."""
    scores: list[Floats] = []
    for types in range(1, MAX_TYPES + 1):
        scores.append(score_people(sample_priors(train, types, DRAWS, generator), test))
        if len(scores) - 1 - int(np.argmax([score.mean() for score in scores])) == 2:
            break
    return scores


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
