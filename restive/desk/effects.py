"""What the action adds to the next reward, by state, with 95% intervals that hold under a policy that learns.

The effect in a state is the mean, over the actions done there, of what each added to the reward of its round: the
expected reward of that person with the action minus that of the same person without it. It is about the actions that
were done, and not about people who were never acted on. With k actions and m rounds without of a person in a state, y
and z the means of the rewards that followed, and K = Σ k:

    effect   = Σ k (y − wait) / K              wait = mean + trust · (z − mean) + hint · (y − mean of all y)
    variance = within_act / K + Σ (k/K)² · Var(wait) + (Σ k/K (1 − trust))² · (Var(mean) + (SELECTION · apart)²)
    interval = effect + shift ± √(shift² + quantile² · variance),   shift = quantile² · skewness / (2 K)

`wait` is the reward that the person is expected to have without the action: the best linear prediction from z and y
under a random-effects model of both, by moments. y counts because people are chosen by it: whom a policy acts on
often does better than others with the action, and so probably also without. The prediction is linear and people are
not: those who are acted on can differ from it by a share of `apart`, the root mean square over actions of wait −
mean, as far as their own rounds do not say. SELECTION is that share, set on simulated programs of other seeds than
those of the acceptance checks. The sum of the rewards after actions is a martingale however the next one is chosen,
so a policy that learns does not bias it, except that few actions are done where the first ones fail. Few actions can
all end alike; the variance under the action is therefore computed with PSEUDO_ACTIONS more that end like rounds
without it. Moves are often rare, so the error is skewed: the variance under the action grows with its mean, by
skewness = third central moment / variance, and the ends are those of a score interval, Wilson's if rewards are 0 or
1. This needs the rewards of states; where rewards are reported, the shift is 0. Quantiles are Student's with Welch's
degrees of freedom over people.

The spread is the standard deviation of the effect over people, each weighted by its actions, by moments of y − z; it
is not an error of the effect, which more rounds make smaller. It is stated where it is clearly above 0.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from restive.desk.tallies import ACT, COUNT, SQUARES, SUM, WAIT, Tallies
from restive.logs.estimators import LEVEL, welch
from restive.stats import student_quantile
from restive.types import Floats, Ints

MIN_PEOPLE = 5  # in a state under each action; with fewer the effect is not known
FEW_ACTIONS = 30  # with fewer under either action, an effect rests on little
PSEUDO_ACTIONS = 8.0
SELECTION = 0.25
MAX_SHIFT = 0.5  # of the half-width
MIN_WITHIN = 0.25  # of the variance under the action
MAX_CORRELATION = 0.95  # between what people have with the action and without
UNSEEN = 1e9  # variance of the mean of somebody who was not seen, of that of a reward
MIN_SPREAD_ERRORS = 2.5  # standard errors above 0, for a spread to be stated
TINY = 1e-300


class Effect(NamedTuple):
    """The effect in one state; NaN if it is not known."""

    mean: float
    low: float
    high: float
    spread: float
    acted_people: int  # of the people whose sums are kept
    waited_people: int


UNKNOWN_EFFECT = Effect(math.nan, math.nan, math.nan, math.nan, 0, 0)


class Side(NamedTuple):
    """Rewards that followed one action in a state: of each person, [M], and variances within and between people."""

    outcomes: Floats
    mean: Floats
    total_mean: float
    variance: float
    within: float
    between: float
    between_error: float

    def noise(self) -> Floats:
        """The variance of each person's mean; meaningless where there is none."""
        return self.within / np.maximum(self.outcomes, 1)

    def center(self) -> tuple[float, float]:
        """The mean over people, weighted by precision, and its precision."""
        precision = (self.outcomes > 0) / (self.between + self.noise() + TINY)
        return float(precision @ self.mean / precision.sum()), float(precision.sum())


class Expected(NamedTuple):
    """The reward that each person is expected to have without the action, [M], and how much its own mean counts."""

    mean: Floats
    variance: Floats
    trust: Floats


def estimate_effects(tallies: Tallies, rewards: Sequence[float] | None = None) -> list[Effect]:
    """The effect in each state; `rewards` are those of arriving in each state, or None if they are reported.

    >>> people = np.zeros((20, 2, 1, 3))  # everybody has a reward of 1 or 3 after waiting, of 2 or 4 after acting
    >>> people[:, 0, 0], people[:, 1, 0] = (2, 4, 10), (2, 6, 20)
    >>> effect = estimate_effects(Tallies(np.zeros((2, 1, 1), int), people, np.array(1), np.array([1.0, 4.0])))[0]
    >>> round(effect.mean, 6), round(effect.low, 2), round(effect.high, 2)
    (1.0, 0.37, 1.63)
    """
    thinned = 1 - 1 / int(tallies.stride)
    skewness = np.zeros(len(tallies.moves[0])) if rewards is None else _find_skewness(tallies.moves, np.array(rewards))
    return [
        _estimate(tallies.people[:, WAIT, s], tallies.people[:, ACT, s], thinned, float(skewness[s]))
        for s in range(len(tallies.moves[0]))
    ]


def _find_skewness(moves: Ints, rewards: Floats) -> Floats:
    """By state, the third central moment of rewards under the action over their variance, with the pseudo-actions."""
    seen = np.maximum(moves.sum(axis=-1, keepdims=True), 1)
    share = PSEUDO_ACTIONS / (PSEUDO_ACTIONS + seen[ACT])
    row = (1 - share) * moves[ACT] / seen[ACT] + share * moves[WAIT] / seen[WAIT]
    deviation = rewards - (row @ rewards)[:, None]
    skewness: Floats = (row * deviation**3).sum(axis=-1) / ((row * deviation**2).sum(axis=-1) + TINY)
    return skewness


def _estimate(waited: Floats, acted: Floats, thinned: float, skewness: float) -> Effect:
    """The effect from the sums of people, [M, 3]; `thinned` is the share of people who are not among them."""
    people = [int((side[:, COUNT] > 0).sum()) for side in (acted, waited)]
    if min(people) < MIN_PEOPLE:
        return UNKNOWN_EFFECT._replace(acted_people=people[0], waited_people=people[1])
    act, wait = _summarize(acted), _summarize(waited)
    actions = float(act.outcomes.sum())
    weight = act.outcomes / actions
    expected, error = _expect_waiting(act, wait)
    mean = act.total_mean - float(weight @ expected.mean)
    of_people = thinned * (act.between + wait.between) * float(weight @ weight)
    apart = float(weight @ (expected.mean - wait.center()[0]) ** 2)
    parts = np.array(
        [
            _smooth_variance(act, wait) / actions + of_people,
            float(weight**2 @ expected.variance)
            + float(weight @ (1 - expected.trust)) ** 2 * (error + SELECTION**2 * apart),
        ]
    )
    df = float(welch(parts[0], parts[1], *(np.array(number - 1.0) for number in people)))
    quantile = float(student_quantile(LEVEL, df))
    half_width = quantile * math.sqrt(parts.sum())
    limit = MAX_SHIFT * half_width
    shift = min(max(quantile**2 * skewness / (2 * actions), -limit), limit)
    half_width = math.hypot(shift, half_width)
    low, high = mean + shift - half_width, mean + shift + half_width
    return Effect(mean, low, high, _find_spread(act, wait), *people)


def _expect_waiting(act: Side, wait: Side) -> tuple[Expected, float]:
    """What each person is expected to have without the action, and the variance of the mean that it is drawn to.

    The best linear prediction from both means of the person, whose noise is independent.
    """
    (center, precision), (other, _) = (side.center() for side in (wait, act))
    shared = np.sqrt(act.outcomes * wait.outcomes)
    together = float(shared @ ((act.mean - other) * (wait.mean - center))) / max(float(shared.sum()), 1.0)
    limit = MAX_CORRELATION * math.sqrt(act.between * wait.between)
    together = min(max(together, -limit), limit)
    here, there = (
        side.between + np.where(side.outcomes > 0, side.noise(), UNSEEN * side.variance) for side in (wait, act)
    )
    determinant = here * there - together**2 + TINY
    trust = (wait.between * there - together**2) / determinant
    hint = together * (here - wait.between) / determinant
    mean = center + trust * (wait.mean - center) * (wait.outcomes > 0) + hint * (act.mean - other) * (act.outcomes > 0)
    variance = np.maximum(wait.between * (1 - trust) - together * hint, 0.0)
    return Expected(mean, variance, trust), 1 / precision


def _summarize(sums: Floats) -> Side:
    """The moments of one action; variances by the analysis of variance of a one-way random-effects model."""
    count, total, squares = sums[:, COUNT], sums[:, SUM], sums[:, SQUARES]
    seen, rounds = count > 0, float(count.sum())
    mean = np.where(seen, total / np.maximum(count, 1), 0.0)
    center = float(total.sum()) / rounds
    variance = max(float(squares.sum()) / rounds - center**2, 0.0)
    repeated = rounds - int(seen.sum())
    inside = max(float((squares - count * mean**2).sum()), 0.0)
    within = inside / repeated if repeated else variance
    outside = (count * (mean - center) ** 2)[seen]
    scale = max(rounds - float(count @ count) / rounds, 1.0)
    between = min(max((float(outside.sum()) - (outside.size - 1) * within) / scale, 0.0), variance)
    # Normal, or larger where few people are far from the others, as with rare moves.
    error = (
        math.sqrt(max(float(((outside - outside.mean()) ** 2).sum()), 2 * outside.size * outside.mean() ** 2)) / scale
    )
    return Side(count, mean, center, variance, within, between, error)


def _smooth_variance(act: Side, wait: Side) -> float:
    """The variance of a reward under the action for a given person, with pseudo-actions that end like waiting.

    What people differ is not part of it, as far as it is sure: where a policy stops to act on somebody after a bad
    outcome, those with several outcomes vary less than others, and people seem to differ more than they do.
    """
    share = PSEUDO_ACTIONS / (PSEUDO_ACTIONS + float(act.outcomes.sum()))
    apart = share * (1 - share) * (act.total_mean - wait.total_mean) ** 2
    whole = (1 - share) * act.variance + share * wait.variance + apart
    within = (1 - share) * act.within + share * wait.variance
    return max(whole - max(act.between - act.between_error, 0.0), within, MIN_WITHIN * whole)


def _find_spread(act: Side, wait: Side) -> float:
    """The standard deviation of the effect over people, NaN where it is not clearly above 0."""
    both = (act.outcomes > 0) & (wait.outcomes > 0)
    repeated = float(np.maximum(act.outcomes - 1, 0).sum())
    if both.sum() < MIN_PEOPLE or repeated < FEW_ACTIONS:
        return math.nan
    weight = act.outcomes[both] / act.outcomes[both].sum()
    apart = act.mean[both] - wait.mean[both]
    squares = (apart - weight @ apart) ** 2
    seen = float(weight @ squares)
    noise = act.within / act.outcomes[both] + wait.within / wait.outcomes[both]
    variance = seen - float((weight * (1 - weight)) @ noise)
    # Normal, or larger where few people are far from the others, as with rare moves.
    error = math.sqrt(max(2 * seen**2 * float(weight @ weight), float(weight**2 @ (squares - seen) ** 2)))
    return math.sqrt(variance) if variance > MIN_SPREAD_ERRORS * error else math.nan
