"""The effect of a program: lift against the control group, in total and by round, and the shadow policy's comparison.

The control group is drawn at random when people join, so the two groups differ by the program alone. Agents are the
independent units, never agent-rounds. Means are per agent-round: each agent is weighted by the rounds in which it was
seen. Joining comes before any action, so both groups have the same mixture of early and late agents; and only with
these weights is lift · agent-rounds the true extra reward if agents who stay longer gain more. The bias is of the order
of 1 / agents in a group, far below the error. The error is that of Bell and McCaffrey (2002): residuals scaled and
degrees of freedom counted as for agents of equal variance; with equal rounds it is Welch's (1947). If the program keeps
people who would otherwise leave, the groups are no longer comparable.
"""

import math
from typing import NamedTuple

import numpy as np

from restive.desk.config import Words
from restive.desk.explanations import show_estimate
from restive.errors import InputError
from restive.formats import MINUS
from restive.stats import Band, student_quantile
from restive.types import Bools, Floats, Ints

LEVEL = 0.95
MAX_DF = 1e7  # degrees of freedom at which Student's distribution is normal to seven digits
TREATED, CONTROL = 0, 1  # rows of the arrays by group


class Lift(NamedTuple):
    """The gain per agent-round with 95% intervals; NaN if there are too few agents."""

    mean: float
    low: float
    high: float
    treated_mean: float
    control_mean: float
    treated: int  # agents seen at least once
    control: int
    extra: float  # total gain: lift · agent-rounds of the treated
    extra_low: float
    extra_high: float
    sentence: str

    def per_action(self, actions: int) -> tuple[float, float, float]:
        """The mean gain per action with its interval; NaN before the first action."""
        if actions < 1:
            return math.nan, math.nan, math.nan
        return self.extra / actions, self.extra_low / actions, self.extra_high / actions


class LiftCurve(NamedTuple):
    """The mean rewards of both groups and their difference by round, arrays [T]; NaN where unknown."""

    treated: Band
    control: Band
    lift: Band
    first: int = 1  # the number of the first round


class Shadow(NamedTuple):
    """The mean reward per agent-round if the shadow policy had decided each round, against the policy."""

    policy_mean: float
    shadow_mean: float
    mean: float  # shadow minus policy
    low: float
    high: float
    overlap: float  # share of the list in common
    unsupported: float  # share of agent-rounds left out, in which the policy never does what the shadow would
    rounds: int  # agent-rounds compared
    effective_sample_size: float
    sentence: str


def lift(total: Floats, seen: Ints, control: Bools, words: Words | None = None) -> Lift:
    """The mean reward per agent-round of the treated minus that of the control group, from sums by agent, [N] each.

    mean = Σ total / Σ seen;   lift = treated − control;   extra = lift · Σ seen of the treated

    >>> answer = lift(np.array([2.0, 4.0, 1.0, 1.0]), np.array([2, 2, 1, 1]), np.array([False, False, True, True]))
    >>> answer.mean, answer.extra, answer.control
    (0.5, 2.0, 2)
    """
    words = words or Words()
    groups = [np.flatnonzero((seen > 0) & (control == side)) for side in (False, True)]
    sides = [_weigh(total[group].astype(float), seen[group].astype(float)) for group in groups]
    mean, half_width = _difference(*sides)
    rounds, treated, untreated = int(seen[groups[TREATED]].sum()), groups[TREATED].size, groups[CONTROL].size
    return Lift(
        mean=mean,
        low=mean - half_width,
        high=mean + half_width,
        treated_mean=sides[TREATED].mean,
        control_mean=sides[CONTROL].mean,
        treated=treated,
        control=untreated,
        extra=rounds * mean,
        extra_low=rounds * (mean - half_width),
        extra_high=rounds * (mean + half_width),
        sentence=_describe_lift(words, mean, half_width, treated, untreated),
    )


def lift_by_round(sums: Floats, squares: Floats, counts: Ints, first: int = 1) -> LiftCurve:
    """Curves with 95% bands from sums of rewards and of their squares, [2, T]: row 0 treated, row 1 control.

    Within a round every agent counts once, so these are plain means with Student's and Welch's intervals.

    >>> curve = lift_by_round(np.array([[6.0], [2.0]]), np.array([[20.0], [4.0]]), np.array([[2], [2]]))
    >>> float(curve.treated.mean[0]), float(curve.lift.mean[0]), float(curve.lift.error[0])
    (3.0, 2.0, 1.4142135623730951)
    """
    number = np.where(counts > 0, counts, np.nan)
    mean = sums / number
    # The difference of two large sums can be slightly below 0.
    df = np.where(counts > 1, counts - 1.0, np.nan)
    variance = np.maximum(squares - sums * mean, 0.0) / df / number
    treated, control = (_band(mean[side], variance[side], df[side]) for side in (TREATED, CONTROL))
    welch = _welch(variance[TREATED], variance[CONTROL], df[TREATED], df[CONTROL])
    return LiftCurve(treated, control, _band(mean[TREATED] - mean[CONTROL], variance.sum(axis=0), welch), first)


def compare_policies(
    reward: Floats,
    chosen: Bools,
    probability: Floats,
    shadow_probability: Floats,
    agent: Ints,
    shadow_chosen: Bools | None = None,
    words: Words | None = None,
) -> Shadow:
    """The mean reward per agent-round if the shadow had decided, by inverse probability weighting; arrays over agent-rounds.

    One-step deviation: each round as it happened, with the shadow's list instead of the policy's, and without the
    effect of the shadow's earlier lists. chosen: on the list (whether it was then done is part of the effect).

    weight = shadow_probability / probability where chosen, (1 − shadow_probability) / (1 − probability) where not
    shadow_mean = Σ weight · reward / Σ weight;   error clustered by agent, by linearisation

    >>> half = np.full(4, 0.5)
    >>> reward, chosen = np.array([3.0, 1.0, 5.0, 1.0]), np.array([True, False, True, False])
    >>> answer = compare_policies(reward, chosen, half, np.array([1.0, 1.0, 0.5, 0.5]), np.array([0, 1, 2, 3]))
    >>> answer.policy_mean, answer.shadow_mean, answer.overlap
    (2.5, 3.0, 1.0)
    """
    supported = ~(((probability <= 0) & (shadow_probability > 0)) | ((probability >= 1) & (shadow_probability < 1)))
    overlap = _overlap(chosen, probability, shadow_probability, shadow_chosen)
    reward, chosen, agent = reward[supported].astype(float), chosen[supported], agent[supported]
    weight = _weights(chosen, probability[supported], shadow_probability[supported])
    total = float(weight.sum())
    clusters, place = np.unique(agent, return_inverse=True)
    own = float(reward.mean()) if reward.size else math.nan
    shadowed = float(weight @ reward) / total if total > 0 else math.nan
    score = np.bincount(place, weight * (reward - shadowed) / (total or 1) - (reward - own) / max(1, reward.size))
    units = clusters.size if total > 0 else 0
    error = math.sqrt(units / (units - 1) * float(score @ score)) if units > 1 else math.nan
    half_width = float(student_quantile(LEVEL, units - 1)) * error
    mean = 0.0 if math.isclose(shadowed, own, rel_tol=1e-12) else shadowed - own  # apart from rounding
    unsupported = 1 - float(supported.mean()) if supported.size else math.nan
    sentence = _describe_shadow(words or Words(), mean, half_width, unsupported)
    effective = total**2 / float(weight @ weight) if total > 0 else 0.0
    low, high = mean - half_width, mean + half_width
    return Shadow(own, shadowed, mean, low, high, overlap, unsupported, reward.size, effective, sentence)


class _Side(NamedTuple):
    mean: float
    variance: float  # of the mean
    df: float


def _weigh(total: Floats, seen: Floats) -> _Side:
    """The mean per agent-round of one group with its variance and degrees of freedom, after Bell and McCaffrey.

    share = seen / Σ seen; the residual of an agent's mean has variance (1 − 2 share + Σ share²) · that of the agent.
    """
    if seen.size == 0:
        return _Side(math.nan, math.nan, math.nan)
    share = seen / seen.sum()
    mean = float(total.sum() / seen.sum())
    if seen.size == 1:
        return _Side(mean, math.nan, math.nan)
    square = float(share @ share)
    scale = share**2 / (1 - 2 * share + square)
    variance = float(scale @ (total / seen - mean) ** 2)
    # The trace of the squared matrix of the quadratic form `variance`, whose trace is `square`.
    none, one, two = (float(scale @ share**order) for order in (0, 1, 2))
    crossed = 2 * two * none + square**2 * none**2 + 2 * one**2 - 4 * square * one * none
    return _Side(mean, variance, square**2 / (float(scale**2 @ (1 - 4 * share + 2 * square)) + crossed))


def _difference(one: _Side, two: _Side) -> tuple[float, float]:
    """The difference of two means and the half-width of its interval; NaN if a group has fewer than two agents."""
    variance = one.variance + two.variance
    df = _welch(*(np.array(part) for part in (one.variance, two.variance, one.df, two.df)))
    half_width = float(student_quantile(LEVEL, df)) * math.sqrt(variance)
    return math.nan if math.isnan(half_width) else one.mean - two.mean, half_width


def _welch(one: Floats, two: Floats, one_df: Floats, two_df: Floats) -> Floats:
    """The degrees of freedom of a sum of two independent variances; MAX_DF where both are 0."""
    below = one**2 / one_df + two**2 / two_df
    df: Floats = np.where(below == 0, MAX_DF, (one + two) ** 2 / np.where(below == 0, 1.0, below))
    return df


def _band(mean: Floats, variance: Floats, df: Floats) -> Band:
    error = np.sqrt(variance)
    half_width = student_quantile(LEVEL, df) * error
    return Band(mean, error, mean - half_width, mean + half_width)


def _weights(chosen: Bools, probability: Floats, shadow_probability: Floats) -> Floats:
    taken, would = (
        np.where(chosen, probability, 1 - probability),
        np.where(chosen, shadow_probability, 1 - shadow_probability),
    )
    if (taken <= 0).any():
        raise InputError("probability: some people were chosen with probability 0, or not chosen with probability 1.")
    weight: Floats = would / taken
    return weight


def _overlap(chosen: Bools, probability: Floats, shadow_probability: Floats, shadow_chosen: Bools | None) -> float:
    """The share of the list in common: of the lists if both are known, else of the probabilities."""
    both = np.minimum(probability, shadow_probability) if shadow_chosen is None else (chosen & shadow_chosen)
    total = float(probability.sum() if shadow_chosen is None else chosen.sum())
    return float(both.sum()) / total if total > 0 else math.nan


def _describe_lift(words: Words, mean: float, half_width: float, treated: int, control: int) -> str:
    shown = show_estimate(mean, mean - half_width, mean + half_width)
    if shown is None:
        groups = "no control group" if control == 0 else f"{control} in the control group and {treated} in the program"
        return f"The lift is not known yet: {groups} with outcomes so far, and each group needs two."
    more = f"{shown[0].removeprefix(MINUS)} {words.reward_unit} {'more' if mean >= 0 else 'less'} on average"
    interval = f"(95% interval from {shown[1]} to {shown[2]}; {treated:,} {words.people} against {control:,})"
    if abs(mean) > half_width:
        return f"Each {words.person} in the program has {more} than in the control group {interval}."
    each = f"for each {words.person} in the program than in the control group"
    return f"No clear difference yet: {more} {each} {interval}."


def _describe_shadow(words: Words, mean: float, half_width: float, unsupported: float) -> str:
    shown = show_estimate(mean, mean - half_width, mean + half_width)
    if shown is None:
        return "There are too few comparable choices to compare the shadow policy yet."
    unit, interval = words.reward_unit, f"95% interval from {shown[1]} to {shown[2]}"
    if abs(mean) > half_width:
        more = f"{shown[0].removeprefix(MINUS)} {unit} {'more' if mean > 0 else 'less'} per {words.person}"
        result = f"The lists of the shadow policy would have brought {more} ({interval})"
    else:
        unclear = "No clear difference between the shadow policy and the policy yet"
        result = f"{unclear} ({interval} {unit} per {words.person})"
    left_out = f" {unsupported:.0%} of the choices cannot be compared and are left out." if unsupported > 0 else ""
    return f"{result}, each {words.every} by itself.{left_out}"
