"""How well a fit predicts what it has not seen: the last fifth of everybody's moves, and a fifth of the people.

Every held-out move is predicted from the distribution of rows that was fitted without it, and from all earlier moves of
the same person. So predictions of a true model are calibrated exactly, also where people who move differently are seen
in other states; predictions that stay as they were at the cut are not, because which states come up then depends on what
happened in between.

Calibration is that of arriving in state t or a better one, for t = 1, ..., S − 1: a logistic regression of the event on
the logit of its predicted probability, with intercept 0 and slope 1 if predictions are right (Cox 1958), and errors
clustered by person. The fit is uncertain too: the variance of slope and intercept over draws of it is added.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from restive.kernels.jit import compiled
from restive.logs.half_life import keep_some
from restive.logs.history import History
from restive.logs.model import Prior, center
from restive.types import Bools, Floats, Ints

PART, BINS = 5, 10
# More people say nothing new about calibration. Fewer people or held-out moves say too little.
MAX_PEOPLE, MIN_PEOPLE, MIN_MOVES = 5_000, 10, 50
CLIP = 1e-6  # of probabilities, in logarithms
STEPS = 25
SLOPE_DRAWS, SLOPE_MOVES = 20, 20_000  # of the fit, and moves, for the variance of the slope
QUANTILE = 1.959964

# Draws of the distribution of rows, from counts [n, A, S, S] and positions of people [n].
Fit = Callable[[Floats, Ints], tuple[Prior, ...]]


class Moves(NamedTuple):
    """The moves of a history in order, and what was known of each person before each of them."""

    agent: Ints  # [M]
    action: Ints
    state: Ints
    next_state: Ints
    before: Floats  # [M, S] the person's earlier moves from this state under this action, by destination, as they count
    round: Ints

    def take(self, rows: Bools) -> "Moves":
        """Some of the moves."""
        agent, action, state, next_state, before, round_ = self
        return Moves(agent[rows], action[rows], state[rows], next_state[rows], before[rows], round_[rows])


class Slope(NamedTuple):
    """The logistic regression of events on the logits of their predictions."""

    intercept: float
    slope: float
    intercept_error: float
    slope_error: float


def list_moves(history: History, half_life: float | None = None) -> Moves:
    """The moves of a history, by person and in the order of rounds; earlier ones count by their weight."""
    known, keep = history.known, 1.0 if half_life is None else 0.5 ** (1 / half_life)
    agent, round_, action, state, after = (
        part[known].astype(np.int64)
        for part in (history.agent, history.round, history.action, history.state, history.next_state)
    )
    before = _count_before(agent, round_, action, state, after, history.n_states, keep)
    return Moves(agent, action, state, after, before, round_)


@compiled
def _count_before(
    agent: Ints, round_: Ints, action: Ints, state: Ints, after: Ints, states: int, keep: float
) -> Floats:
    before, counts = np.zeros((agent.size, states)), np.zeros((2, states, states))
    seen_at = np.zeros((2, states), np.int64)
    for j in range(agent.size):
        if j == 0 or agent[j] != agent[j - 1]:
            counts[:] = 0.0
        a, s = action[j], state[j]
        before[j] = counts[a, s] * keep ** (round_[j] - 1 - seen_at[a, s])
        counts[a, s] = before[j] * keep
        counts[a, s, after[j]] += 1.0
        seen_at[a, s] = round_[j]
    return before


def predict(prior: Prior, moves: Moves, features: Floats | None = None) -> Floats:
    """The probability of each destination of each move, given the earlier moves of the person, [M, S].

    All moves of each person have to be there, from the first on: with several types, they tell which one it is.
    """
    if prior.coefficients is not None:
        own = prior.alpha_of(features)[moves.agent, moves.action, moves.state] + moves.before
        return np.asarray(own / own.sum(axis=1, keepdims=True))
    number = np.arange(moves.agent.size)
    by_type = []
    for alpha in prior.alpha:
        row = alpha[moves.action, moves.state] + moves.before
        by_type.append(row / row.sum(axis=1, keepdims=True))
    if len(by_type) == 1:
        return np.asarray(by_type[0])
    gain = np.log([row[number, moves.next_state] for row in by_type])  # [K, M]
    total = gain.cumsum(axis=1) - gain
    first = np.flatnonzero(np.diff(moves.agent, prepend=-1))
    length = np.diff(np.append(first, moves.agent.size))
    score = total - np.repeat(total[:, first], length, axis=1) + np.log(prior.share)[:, None]
    weight = np.exp(score - score.max(axis=0))
    weight /= weight.sum(axis=0)
    return np.asarray(sum(part[:, None] * row for part, row in zip(weight, by_type, strict=True)))


def hold_out(
    history: History, fit: Fit, seed: int = 0, features: Floats | None = None, half_life: float | None = None
) -> dict[str, Any]:
    """Figures on held-out rounds and people; those that rest on too little are left out.

    `features` [N, F] and `half_life` are those that the fit uses.
    """
    people = np.random.default_rng([seed, 1]).permutation(history.n_agents)[:MAX_PEOPLE]
    moves = list_moves(history, half_life)
    if people.size < history.n_agents:
        moves = moves.take(np.isin(moves.agent, people))
    figures = {}
    for name, out in (("rounds", _last_moves(moves.agent)), ("people", np.isin(moves.agent, people[::PART]))):
        involved = np.unique(moves.agent[out]).size
        if out.sum() >= MIN_MOVES and involved >= MIN_PEOPLE:
            kept = _keep_train(moves, out, half_life, np.random.default_rng([seed, 5]))
            judged = _judge(moves, out, kept, fit, (history.n_agents, history.n_states), features)
            figures[name] = judged | {"people": int(involved)}
    return figures


def _last_moves(agent: Ints) -> Bools:
    """The last fifth of the moves of everybody with two or more, rounded up."""
    number = np.bincount(agent)
    begun = number.cumsum() - number
    left = (begun + number)[agent] - np.arange(agent.size)  # 1 for the last move
    return np.asarray((left <= -(-number // PART)[agent]) & (number[agent] > 1))


def _keep_train(moves: Moves, out: Bools, half_life: float | None, generator: np.random.Generator) -> Bools:
    """The moves that a fit without those that are held out is fitted to."""
    if half_life is None:
        return ~out
    age = np.maximum(moves.round[~out].max(initial=0) - moves.round, 0)
    return np.asarray(~out & keep_some(np.exp2(-age / half_life), generator))


def _judge(
    moves: Moves, out: Bools, kept: Bools, fit: Fit, shape: tuple[int, int], features: Floats | None
) -> dict[str, Any]:
    people, states = shape
    counts = np.zeros((people, 2, states, states))
    np.add.at(counts, tuple(part[kept] for part in moves[:4]), 1.0)
    seen = np.unique(moves.agent[kept])
    test = moves.take(out)
    pooled, stay = _baselines(counts, test)
    priors = fit(counts[seen], seen)
    predicted = predict(center(priors), moves, features)[out]
    scores = [_log_score(rows, test.next_state) for rows in (predicted, pooled, stay)]
    event = np.arange(states) == test.next_state[:, None]
    return {
        "moves": int(out.sum()),
        "log_score": float(scores[0].mean()),
        "gain_over_pooled": _mean_with_error(scores[0] - scores[1], test.agent),
        "gain_over_stay": _mean_with_error(scores[0] - scores[2], test.agent),
        "brier": float(((event - predicted) ** 2).sum(axis=1).mean()),
        "brier_pooled": float(((event - pooled) ** 2).sum(axis=1).mean()),
    } | calibrate(predicted, test.next_state, test.agent, _fit_variance(priors, moves, out, features))


def _fit_variance(priors: tuple[Prior, ...], moves: Moves, out: Bools, features: Floats | None) -> Floats:
    """The variances of intercept and slope over draws of the fit, [2]."""
    some = moves.agent <= moves.agent[min(moves.agent.size, SLOPE_MOVES) - 1]
    part, test = moves.take(some), out[some]
    found = []
    for prior in priors[:: max(1, len(priors) // SLOPE_DRAWS)]:
        predicted = predict(prior, part, features)[test]
        found.append(_regress(*_events(predicted, part.next_state[test]))[0])
    return np.asarray(np.var(found, axis=0, ddof=1)) if len(found) > 1 else np.zeros(2)


def _baselines(counts: Floats, test: Moves) -> tuple[Floats, Floats]:
    """Predictions by one row for all people, and by one probability that a state stays, [M, S] each."""
    states = counts.shape[-1]
    total = counts.sum(axis=0) + 1 / states
    rows = total / total.sum(axis=-1, keepdims=True)
    stays = float(total.trace(axis1=1, axis2=2).sum() / total.sum())
    stay = np.full((states, states), (1 - stays) / max(states - 1, 1))
    np.fill_diagonal(stay, stays)
    return rows[test.action, test.state], stay[test.state]


def _log_score(predicted: Floats, after: Ints) -> Floats:
    return np.asarray(np.log(np.maximum(predicted[np.arange(after.size), after], CLIP)))


def _mean_with_error(values: Floats, agent: Ints) -> list[float]:
    """The mean over moves, and its standard error clustered by person."""
    mean = float(values.mean())
    sums = np.bincount(agent, values - mean)
    return [mean, float(np.sqrt((sums**2).sum())) / values.size]


def calibrate(predicted: Floats, after: Ints, agent: Ints, variance: Floats | None = None) -> dict[str, Any]:
    """Slope and intercept with intervals, and reliability in ten bins of equally many predictions.

    `variance` [2] of intercept and slope is added to that of the events.
    """
    probability, event = _events(predicted, after)
    found = find_slope(probability, event, np.repeat(agent, predicted.shape[1] - 1))
    added = np.zeros(2) if variance is None else variance
    reliability = bin_reliability(probability, event)
    number, stated, observed = reliability.T
    noise = observed * (1 - observed) / np.maximum(number - 1, 1)
    squares = (number * ((stated - observed) ** 2 - noise)).sum() / number.sum()
    return {
        "slope": _interval(found.slope, float(np.hypot(found.slope_error, np.sqrt(added[1])))),
        "intercept": _interval(found.intercept, float(np.hypot(found.intercept_error, np.sqrt(added[0])))),
        "calibration_error": float(np.sqrt(max(squares, 0.0))),
        "reliability": reliability.tolist(),
    }


def _events(predicted: Floats, after: Ints) -> tuple[Floats, Floats]:
    """The probabilities of state 1 or better, 2 or better, ..., and whether that was so, one after the other."""
    probability = predicted[:, :0:-1].cumsum(axis=1)[:, ::-1].ravel()
    event = (after[:, None] >= np.arange(1, predicted.shape[1])).ravel().astype(np.float64)
    return probability.clip(CLIP, 1 - CLIP), event


def _regress(probability: Floats, event: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Intercept and slope of a logistic regression on logits; its design, expected values and information."""
    design = np.stack([np.ones_like(probability), np.log(probability / (1 - probability))], axis=1)
    coefficients = np.array([0.0, 1.0])
    for _ in range(STEPS):
        expected = 1 / (1 + np.exp(-design @ coefficients))
        curvature = (design * (expected * (1 - expected))[:, None]).T @ design
        change = np.linalg.solve(curvature + 1e-9 * np.eye(2), design.T @ (event - expected))
        coefficients = coefficients + np.clip(change, -1, 1)
        if np.abs(change).max() < 1e-8:
            break
    return coefficients, design, expected, curvature + 1e-9 * np.eye(2)


def find_slope(probability: Floats, event: Floats, agent: Ints) -> Slope:
    """Logistic regression of events on the logits of their predictions, with errors clustered by person."""
    coefficients, design, expected, information = _regress(probability, event)
    _, cluster = np.unique(agent, return_inverse=True)
    score = np.stack([np.bincount(cluster, part * (event - expected)) for part in design.T], axis=1)
    clusters, number = score.shape[0], event.size
    inverse = np.linalg.inv(information)
    scale = clusters / max(clusters - 1, 1) * (number - 1) / max(number - 2, 1)
    error = np.sqrt(np.diag(inverse @ (score.T @ score) @ inverse) * scale)
    return Slope(float(coefficients[0]), float(coefficients[1]), float(error[0]), float(error[1]))


def bin_reliability(probability: Floats, event: Floats) -> Floats:
    """The number of predictions, their mean and the share of events, in bins of equally many predictions, [bins, 3]."""
    order = np.argsort(probability, kind="stable")
    parts = [part for part in np.array_split(order, BINS) if part.size]
    return np.array([(part.size, probability[part].mean(), event[part].mean()) for part in parts])


def _interval(value: float, error: float) -> list[float]:
    return [value, value - QUANTILE * error, value + QUANTILE * error]
