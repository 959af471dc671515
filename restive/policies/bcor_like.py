"""`bcor-like`: Thompson sampling with a logistic model of all agents, after BCoR of Liang et al. (2024), arXiv 2402.04933.

With probability σ(η) an agent that goes to state j or a higher one goes beyond j (continuation ratio; with two states
this is the logistic model of the source), where

    η(n, a, s, j) = intercept(a, s, j) + effect(n, a) + features(n) · coefficient(a, s)

Intercepts, effects and coefficients are normal around 0; the variance of the effects is learned. Every `every` steps
the model is fitted again by Newton's method, block by block, one model is drawn from normal distributions around the
fit (the inverse curvature of each number by itself), and its Whittle indices are followed. So agents learn from each
other, and from what is known of them.

Departures, hence the name: any number of states; no splines in time, so dynamics are taken as constant; effects of the
two actions are independent; a normal approximation instead of Markov chain Monte Carlo; rewards are estimated.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from restive.contract import Draws, Ranking, Shape, rank_index
from restive.kernels import rng
from restive.kernels.feature_prior import standardise
from restive.kernels.jit import compiled
from restive.kernels.rng import fold, normal_quantile, unit_open
from restive.policies.base import Learner, check_setting
from restive.policies.index_table import look_up
from restive.policies.transition_counts import Counts, count_moves, mean_rewards, no_counts
from restive.solvers.whittle import whittle_indices
from restive.types import Floats, Ints, Keys

INTERCEPT_VARIANCE, COEFFICIENT_VARIANCE = 4.0, 1.0
MIN_VARIANCE, MAX_VARIANCE = 0.05, 4.0  # of the effects
MAX_MOVE = 1.0  # of a number in one step of Newton's method
SWEEPS = 2
NO_INDICES = -1


class BcorBelief(NamedTuple):
    """Counts, the fitted model, and the indices of the drawn one."""

    counts: Counts
    features: Floats  # [R, N, F]
    intercept: Floats  # [R, A, S, S − 1]
    effect: Floats  # [R, N, A]
    coefficient: Floats  # [R, A, S, F]
    variance: Floats  # [R, A] of the effects
    indices: Floats  # [R, N, S]
    drawn: Ints  # [] the step in which they were computed


class Fit(NamedTuple):
    """Gradient and curvature of the log-likelihood in each η, [R, N, A, S, S − 1]."""

    gradient: Floats
    curvature: Floats


@dataclass(frozen=True)
class BcorLike(Learner[BcorBelief]):
    """Whittle indices of a draw from a logistic model that agents share, with their features."""

    name: ClassVar[str] = "bcor-like"
    agent_axes: ClassVar[Mapping[str, int | None]] = dict.fromkeys(("intercept", "coefficient", "variance"))
    discount: float = 0.9
    every: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_setting(0 < self.discount <= 1, self, "discount", "above 0, and at most 1 for the average reward")
        check_setting(self.every >= 1, self, "every", "1 or more steps")

    def start(self, shape: Shape) -> BcorBelief:
        """No data: all numbers are 0."""
        features = shape.known_features()
        return BcorBelief(
            counts=no_counts(shape),
            features=features.copy(),
            intercept=np.zeros((shape.runs, 2, shape.states, shape.states - 1)),
            effect=np.zeros((shape.runs, shape.agents, 2)),
            coefficient=np.zeros((shape.runs, 2, shape.states, features.shape[2])),
            variance=np.ones((shape.runs, 2)),
            indices=np.zeros((shape.runs, shape.agents, shape.states)),
            drawn=np.array(NO_INDICES),
        )

    def rank(self, belief: BcorBelief, state: Ints, draws: Draws) -> Ranking:
        """The indices of the drawn model; another one is drawn first when it is due."""
        if belief.drawn == NO_INDICES or not 0 <= draws.step - int(belief.drawn) < self.every:
            self._draw(belief, draws)
        return rank_index(look_up(belief.indices, np.arange(len(state)), state), draws)

    def learn(self, belief: BcorBelief, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        """Count."""
        count_moves(*belief.counts, state, action, reward, after)

    def _draw(self, belief: BcorBelief, draws: Draws) -> None:
        features = np.stack([standardise(each) for each in belief.features])
        for _ in range(SWEEPS):
            fit_model(belief, features)
        model = _fill_rows(draw_scores(belief, features, draws))
        runs, agents, states = belief.indices.shape
        flat, reward = model.reshape(runs * agents, 2, states, states), mean_rewards(belief.counts)
        indices = whittle_indices(flat, reward.reshape(runs * agents, states), self.discount, threads=1)
        belief.indices[:] = indices.value.reshape(runs, agents, states)
        belief.drawn[...] = draws.step


def fit_model(belief: BcorBelief, features: Floats) -> None:
    """One step of Newton's method in each block: intercepts, coefficients, effects; then the variance of the effects."""
    fit = _differentiate(belief, features)
    slope = fit.gradient.sum(axis=1) - belief.intercept / INTERCEPT_VARIANCE
    belief.intercept[:] += _limit(slope / (fit.curvature.sum(axis=1) + 1 / INTERCEPT_VARIANCE))
    if features.shape[2]:
        fit = _differentiate(belief, features)
        slopes = np.einsum("rnf,rnasj->rasf", features, fit.gradient) - belief.coefficient / COEFFICIENT_VARIANCE
        step = np.linalg.solve(_coefficient_curvature(fit, features), slopes[..., None])[..., 0]
        belief.coefficient[:] += _limit(step)
    fit = _differentiate(belief, features)
    slope = fit.gradient.sum(axis=(3, 4)) - belief.effect / belief.variance[:, None]
    curvature = fit.curvature.sum(axis=(3, 4)) + 1 / belief.variance[:, None]
    belief.effect[:] += _limit(slope / curvature)
    spread = (np.square(belief.effect) + 1 / curvature).mean(axis=1)
    belief.variance[:] = np.clip(spread, MIN_VARIANCE, MAX_VARIANCE)


def draw_scores(belief: BcorBelief, features: Floats, draws: Draws) -> Floats:
    """η of a model drawn from normal distributions around the fit, [R, N, A, S, S − 1]."""
    fit = _differentiate(belief, features)
    shared = [belief.intercept, belief.coefficient]
    curvature = [fit.curvature.sum(axis=1) + 1 / INTERCEPT_VARIANCE]
    curvature.append(np.einsum("rasff->rasf", _coefficient_curvature(fit, features)))
    numbers = np.arange(sum(part[0].size for part in shared))
    normal = _normals(draws.branch(rng.OWN + 2), numbers)
    first = shared[0][0].size
    parts = normal[:, :first], normal[:, first:]
    intercept, coefficient = (
        mean + part.reshape(mean.shape) / np.sqrt(width)
        for mean, part, width in zip(shared, parts, curvature, strict=True)
    )
    own = np.stack([_normals(draws.branch(rng.OWN + action), draws.agents) for action in (0, 1)], axis=-1)
    effect = belief.effect + own / np.sqrt(fit.curvature.sum(axis=(3, 4)) + 1 / belief.variance[:, None])
    return _scores(intercept, effect, coefficient, features)


def _scores(intercept: Floats, effect: Floats, coefficient: Floats, features: Floats) -> Floats:
    person = effect[..., None] + np.einsum("rnf,rasf->rnas", features, coefficient)
    scores: Floats = intercept[:, None] + person[..., None]
    return scores


def _differentiate(belief: BcorBelief, features: Floats) -> Fit:
    moves = belief.counts.moves
    reached = np.cumsum(moves[..., ::-1], axis=-1)[..., ::-1]  # moves to a state or a higher one
    beyond = 1 / (1 + np.exp(-_scores(belief.intercept, belief.effect, belief.coefficient, features)))
    expected = reached[..., :-1] * beyond
    return Fit(reached[..., 1:] - expected, expected * (1 - beyond))


def _coefficient_curvature(fit: Fit, features: Floats) -> Floats:
    """The negative Hessian of the coefficients, [R, A, S, F, F]."""
    squares = np.einsum("rnas,rnf,rng->rasfg", fit.curvature.sum(axis=4), features, features)
    hessian: Floats = squares + np.eye(features.shape[2]) / COEFFICIENT_VARIANCE
    return hessian


def _limit(step: Floats) -> Floats:
    return np.clip(step, -MAX_MOVE, MAX_MOVE)


def _fill_rows(scores: Floats) -> Floats:
    """The transition rows of these η: P(j) = Π_{k<j} σ(η_k) · (1 − σ(η_j)), and the rest for the last state."""
    beyond = 1 / (1 + np.exp(-scores))
    ones = np.ones((*scores.shape[:-1], 1))
    reach = np.concatenate([ones, np.cumprod(beyond, axis=-1)], axis=-1)
    rows: Floats = reach * np.concatenate([1 - beyond, ones], axis=-1)
    return rows


@compiled
def _normals(keys: Keys, numbers: Ints) -> Floats:
    """Standard normal numbers, [R, numbers]."""
    drawn = np.empty((keys.size, numbers.size))
    for r in range(keys.size):
        for n in range(numbers.size):
            drawn[r, n] = normal_quantile(unit_open(fold(keys[r], numbers[n])))
    return drawn
