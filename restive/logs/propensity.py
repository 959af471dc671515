"""The probability of acting where the log does not have it: a logistic regression, cross-fitted over people.

It uses the state, the features, the share acted on in the round, and the person's past: whether the last round acted on
the person, the share of rounds before that did, and the mean reward before.
"""

import numpy as np

from restive.logs.history import History
from restive.types import Bools, Floats, Ints

FOLDS = 5
RIDGE = 1.0
STEPS = (8, 3)  # of Newton's method: for everybody, and then without each fold


def person_folds(people: int) -> Ints:
    """The fold of each person, [N]; the same for the same number of people."""
    return np.asarray(np.random.default_rng(people).permutation(people) % FOLDS)


def past_mean(history: History, value: Floats, pseudo: float = 2.0) -> Floats:
    """How far the mean of `value` over a person's rows before each row lies from that of all, shrunk; NaN is skipped."""
    known = np.isfinite(value)
    center = float(value[known].mean()) if known.any() else 0.0
    total, count = (_sum_before(history, part) for part in (np.where(known, value - center, 0.0), known.astype(float)))
    return np.asarray(total / (count + pseudo))


def _sum_before(history: History, value: Floats) -> Floats:
    before = np.cumsum(value) - value
    first = np.append(0, np.flatnonzero(np.diff(history.agent)) + 1)
    start = np.repeat(before[first], np.diff(np.append(first, value.size)))
    return np.asarray(before - start)


def standard_features(history: History) -> Floats:
    """The features of each person with mean 0 and standard deviation 1, [N, F]; unknown ones are 0."""
    if history.features is None:
        return np.zeros((history.n_agents, 0))
    center, scale = np.nanmean(history.features, axis=0), np.nanstd(history.features, axis=0)
    return np.asarray(np.nan_to_num((history.features - center) / np.where(scale > 0, scale, 1.0)))


def estimate_propensity(history: History, available: Bools) -> Floats:
    """The estimated probability of acting in each row, 0 where acting was not possible."""
    rows = np.flatnonzero(available)
    acted = history.action.astype(float)
    last = np.append(0.0, np.where(np.diff(history.agent) == 0, acted[:-1], 0.0))
    share = np.bincount(history.round, acted) / np.maximum(np.bincount(history.round, available), 1)
    share = np.clip(share, 1e-3, 1 - 1e-3)
    columns = [np.eye(history.n_states)[history.state], standard_features(history)[history.agent]]
    columns += [np.log(share / (1 - share))[history.round][:, None], last[:, None]]
    columns += [past_mean(history, acted)[:, None], past_mean(history, history.reward)[:, None]]
    design = np.concatenate(columns, axis=1)[rows]
    fold = person_folds(history.n_agents)[history.agent[rows]]
    found = np.zeros(acted.size)
    found[rows] = _cross_fit(design, acted[rows], fold)
    return found


def _cross_fit(design: Floats, acted: Floats, fold: Ints) -> Floats:
    """Fitted probabilities, each from the other folds."""
    start = _newton(design, acted, np.zeros(design.shape[1]), STEPS[0])
    fitted = np.empty(acted.size)
    for number in range(FOLDS):
        here = fold == number
        slope = _newton(design[~here], acted[~here], start, STEPS[1])
        fitted[here] = _logistic(design[here] @ slope)
    return fitted


def _newton(design: Floats, acted: Floats, slope: Floats, steps: int) -> Floats:
    """Ridge logistic regression by Newton's method with steps of limited length."""
    for _ in range(steps):
        fitted = _logistic(design @ slope)
        gradient = design.T @ (acted - fitted) - RIDGE * slope
        curvature = (design * (fitted * (1 - fitted))[:, None]).T @ design + RIDGE * np.eye(slope.size)
        step = np.linalg.solve(curvature, gradient)
        slope = slope + step * min(1.0, 5.0 / max(float(np.abs(step).max()), 1e-12))
    return slope


def _logistic(value: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(value, -30, 30))))
