"""Does it work: lift against the control group, in all and by round, and a shadow policy against the program's own.

The control group is drawn by lot on joining, so the two sides differ by the program alone. Agents are the independent
units, never agent-rounds. Means are per agent-round: each agent is weighted by the rounds it was seen. Joining comes
before any action, so both sides hold the same mixture of early and late agents; and only with these weights is
lift · agent-rounds the extra reward in truth where those who are in for longer gain more. The price is a bias of the
order of 1 / agents on a side, far below the error. The error is that of Bell and McCaffrey (2002): residuals scaled and
freedom counted as for agents of equal spread; with equal rounds it is Welch's (1947). Leaving is another matter: where
the program keeps people who would have left, the sides are no longer alike.
"""

import math
from typing import NamedTuple

import numpy as np

from restive.desk.config import Words
from restive.desk.explanations import rounded
from restive.errors import InputError
from restive.stats import Band, student_quantile
from restive.types import Bools, Floats, Ints

LEVEL = 0.95
LARGE = 1e7  # degrees of freedom from which Student's law is the normal one to seven digits
TREATED, CONTROL = 0, 1  # rows of the arrays by side


class Lift(NamedTuple):
    """What the program adds per agent-round, 95% intervals; NaN where there are too few agents to say."""

    mean: float
    low: float
    high: float
    treated_mean: float
    control_mean: float
    treated: int  # agents seen at least once
    control: int
    extra: float  # reward added in all: lift · agent-rounds of the treated
    extra_low: float
    extra_high: float
    sentence: str

    def per_action(self, actions: int) -> tuple[float, float, float]:
        """What one action has added on average, with its interval; NaN before the first."""
        if actions < 1:
            return math.nan, math.nan, math.nan
        return self.extra / actions, self.extra_low / actions, self.extra_high / actions


class LiftCurve(NamedTuple):
    """Round by round, arrays [T] each: the mean reward of both sides and their difference; NaN where not known."""

    treated: Band
    control: Band
    lift: Band
    first: int = 1  # the number of the first round


class Shadow(NamedTuple):
    """What the shadow would have brought per agent-round, had it decided each round in turn, against the policy."""

    policy_mean: float
    shadow_mean: float
    mean: float  # shadow minus policy
    low: float
    high: float
    overlap: float  # share of the list in common
    unsupported: float  # share of agent-rounds left out: the shadow would do what the policy never did
    rounds: int  # agent-rounds compared
    effective: float  # as many agent-rounds of equal weight would tell as much
    sentence: str


def lift(total: Floats, seen: Ints, control: Bools, words: Words | None = None) -> Lift:
    """The mean reward per agent-round of the treated minus that of the control group, from sums over agents, [N] each.

    side = Σ total / Σ seen;   lift = treated − control;   extra = lift · Σ seen of the treated

    >>> answer = lift(np.array([2.0, 4.0, 1.0, 1.0]), np.array([2, 2, 1, 1]), np.array([False, False, True, True]))
    >>> answer.mean, answer.extra, answer.control
    (0.5, 2.0, 2)
    """
    words = words or Words()
    groups = [np.flatnonzero((seen > 0) & (control == side)) for side in (False, True)]
    sides = [_weigh(total[group].astype(float), seen[group].astype(float)) for group in groups]
    mean, reach = _difference(*sides)
    rounds, treated, aside = int(seen[groups[TREATED]].sum()), groups[TREATED].size, groups[CONTROL].size
    return Lift(
        mean=mean,
        low=mean - reach,
        high=mean + reach,
        treated_mean=sides[TREATED].mean,
        control_mean=sides[CONTROL].mean,
        treated=treated,
        control=aside,
        extra=rounds * mean,
        extra_low=rounds * (mean - reach),
        extra_high=rounds * (mean + reach),
        sentence=_say_lift(words, mean, reach, treated, aside),
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
    # The difference of two large sums can come out a little below 0.
    spare = np.where(counts > 1, counts - 1.0, np.nan)
    variance = np.maximum(squares - sums * mean, 0.0) / spare / number
    treated, control = (_band(mean[side], variance[side], spare[side]) for side in (TREATED, CONTROL))
    freedom = _welch(variance[TREATED], variance[CONTROL], spare[TREATED], spare[CONTROL])
    return LiftCurve(treated, control, _band(mean[TREATED] - mean[CONTROL], variance.sum(axis=0), freedom), first)


def compare_policies(
    reward: Floats,
    chosen: Bools,
    probability: Floats,
    shadow_probability: Floats,
    agent: Ints,
    shadow_chosen: Bools | None = None,
    words: Words | None = None,
) -> Shadow:
    """The mean reward per agent-round had the shadow decided it, by inverse probabilities; arrays over agent-rounds.

    One-step deviation: each round as it came, with the shadow's list instead of the policy's, and no credit for where
    the shadow's earlier lists would have led. chosen: on the list (whether it was then done is part of the effect).

    weight = shadow_probability / probability where chosen, (1 − shadow_probability) / (1 − probability) where not
    shadow_mean = Σ weight · reward / Σ weight;   error clustered by agent, by linearisation

    >>> half = np.full(4, 0.5)
    >>> reward, chosen = np.array([3.0, 1.0, 5.0, 1.0]), np.array([True, False, True, False])
    >>> answer = compare_policies(reward, chosen, half, np.array([1.0, 1.0, 0.5, 0.5]), np.array([0, 1, 2, 3]))
    >>> answer.policy_mean, answer.shadow_mean, answer.overlap
    (2.5, 3.0, 1.0)
    """
    backed = ~(((probability <= 0) & (shadow_probability > 0)) | ((probability >= 1) & (shadow_probability < 1)))
    overlap = _overlap(chosen, probability, shadow_probability, shadow_chosen)
    reward, chosen, agent = reward[backed].astype(float), chosen[backed], agent[backed]
    weight = _weights(chosen, probability[backed], shadow_probability[backed])
    whole = float(weight.sum())
    clusters, place = np.unique(agent, return_inverse=True)
    own = float(reward.mean()) if reward.size else math.nan
    shadowed = float(weight @ reward) / whole if whole > 0 else math.nan
    score = np.bincount(place, weight * (reward - shadowed) / (whole or 1) - (reward - own) / max(1, reward.size))
    many = clusters.size if whole > 0 else 0
    error = math.sqrt(many / (many - 1) * float(score @ score)) if many > 1 else math.nan
    reach = float(student_quantile(LEVEL, many - 1)) * error
    mean = 0.0 if math.isclose(shadowed, own, rel_tol=1e-12) else shadowed - own  # sums differ by how they are rounded
    left_out = 1 - float(backed.mean()) if backed.size else math.nan
    reported = _say_shadow(words or Words(), mean, reach, left_out)
    effective = whole**2 / float(weight @ weight) if whole > 0 else 0.0
    return Shadow(own, shadowed, mean, mean - reach, mean + reach, overlap, left_out, reward.size, effective, reported)


class _Side(NamedTuple):
    mean: float
    variance: float  # of the mean
    freedom: float


def _weigh(total: Floats, seen: Floats) -> _Side:
    """The mean per agent-round of one side with its variance and freedom, after Bell and McCaffrey.

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
    """One mean minus the other, and how far its interval reaches; NaN where a side has fewer than two agents."""
    variance = one.variance + two.variance
    freedom = _welch(*(np.array(part) for part in (one.variance, two.variance, one.freedom, two.freedom)))
    reach = float(student_quantile(LEVEL, freedom)) * math.sqrt(variance)
    return one.mean - two.mean if reach == reach else math.nan, reach


def _welch(one: Floats, two: Floats, one_freedom: Floats, two_freedom: Floats) -> Floats:
    """Degrees of freedom of a sum of two independent variances; as good as many where both are 0."""
    below = one**2 / one_freedom + two**2 / two_freedom
    freedom: Floats = np.where(below == 0, LARGE, (one + two) ** 2 / np.where(below == 0, 1.0, below))
    return freedom


def _band(mean: Floats, variance: Floats, freedom: Floats) -> Band:
    error = np.sqrt(variance)
    reach = student_quantile(LEVEL, freedom) * error
    return Band(mean, error, mean - reach, mean + reach)


def _weights(chosen: Bools, probability: Floats, shadow_probability: Floats) -> Floats:
    taken, would = (
        np.where(chosen, probability, 1 - probability),
        np.where(chosen, shadow_probability, 1 - shadow_probability),
    )
    if (taken <= 0).any():
        raise InputError(
            "probability: some were chosen with probability 0, or left out with probability 1; it must fit the list."
        )
    weight: Floats = would / taken
    return weight


def _overlap(chosen: Bools, probability: Floats, shadow_probability: Floats, shadow_chosen: Bools | None) -> float:
    """The share of the list in common: of the lists themselves where they are known, else as probabilities have it."""
    both = np.minimum(probability, shadow_probability) if shadow_chosen is None else (chosen & shadow_chosen)
    whole = float(probability.sum() if shadow_chosen is None else chosen.sum())
    return float(both.sum()) / whole if whole > 0 else math.nan


def _say_lift(words: Words, mean: float, reach: float, treated: int, control: int) -> str:
    if min(treated, control) < 2:
        least = "no control group" if control == 0 else f"{control} in the control group and {treated} in the program"
        return f"No lift can be reported: {least} with outcomes so far, and it takes two on each side."
    value, low, high = _ends(mean, reach)
    more = f"{value} {words.reward_unit} {'more' if mean >= 0 else 'less'}"
    if abs(mean) <= reach:
        return (
            f"No difference can be reported yet: {more} for each {words.person} in the program than in the control group, "
            f"but anything from {low} to {high} fits what was seen (95%)."
        )
    return (
        f"Each {words.person} in the program has {more} on average than in the control group "
        f"(95% interval from {low} to {high}; {treated:,} {words.people} against {control:,})."
    )


def _say_shadow(words: Words, mean: float, reach: float, left_out: float) -> str:
    if not math.isfinite(reach):
        return "Too few comparable choices yet to say how the shadow would have done."
    value, low, high = _ends(mean, reach)
    unit, within = words.reward_unit, f"95% interval from {low} to {high}"
    if abs(mean) <= reach:
        reported = f"No difference between the shadow and the policy can be reported yet ({within} {unit} for each {words.person})"
    else:
        more = f"{value} {unit} {'more' if mean > 0 else 'less'} for each {words.person}"
        reported = f"The shadow's lists would have brought {more} ({within})"
    aside = f" {left_out:.0%} of the choices cannot be compared and are left out." if left_out > 0 else ""
    return f"{reported}, each {words.every} taken by itself.{aside}"


def _ends(mean: float, reach: float) -> tuple[str, str, str]:
    """The size of a difference and the ends of its interval, with two digits of how far it reaches."""
    return rounded(abs(mean), reach / 10)[0], rounded(mean - reach, reach / 10)[0], rounded(mean + reach, reach / 10)[0]
