"""The effect of a program: lift against the control group, in total and by round, and the shadow policy's comparison.

The control group is drawn at random when people join, so the two groups differ by the program alone. Agents are the
independent units, never agent-rounds. Means are per agent-round: each agent is weighted by the rounds in which it was
seen. Joining comes before any action, so both groups have the same mixture of early and late agents; and only with
these weights is lift · agent-rounds the true extra reward if agents who stay longer gain more. The bias is of the order
of 1 / agents in a group, far below the error. If the program keeps people who would otherwise leave, the groups are no
longer comparable.

Every decision records who of the control group would have been on the list, so the lift can be measured on the people
of the lists alone, from their first list on (`onward` of `restive.logs.estimators`, with its errors). This is used where
its interval is narrower than that of the difference in means, unless somebody was acted on without a list.
"""

import math
from typing import NamedTuple

import numpy as np

from restive.desk.agents import Agents
from restive.desk.config import Words
from restive.desk.explanations import show_estimate
from restive.errors import InputError
from restive.formats import MINUS, show_number
from restive.logs.estimators import LEVEL, Effect, Sums, base, is_sharper, onward, welch
from restive.stats import Band, student_quantile
from restive.types import Bools, Floats, Ints

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
    estimator: str  # "base", the difference in means, or "onward", by people on the lists, from their first one on
    explanation: str  # of which and why

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


def sum_people(agents: Agents) -> Sums:
    """What happened to each person of a program in rounds with a control group, from the sums of its agents."""
    seen = agents.compared_seen.astype(float), agents.since_total, agents.since_seen.astype(float)
    return Sums(agents.compared_total, *seen, agents.since_seen > 0, agents.listed.astype(float), agents.control)


def lift(
    people: Sums, words: Words | None = None, unlisted: int = 0, level: float = LEVEL, price: float | None = None
) -> Lift:
    """The lift of a program, by the sharper estimator; `unlisted` counts people acted on without a list before.

    `price` is that of an action for `onward`, by default estimated; the sentences are those of a level of 95%.

    base = Σ total / Σ seen of the treated − that of the control group;   extra = lift · Σ seen of the treated

    >>> control = np.array([False, False, True, True])
    >>> answer = lift(Sums.untouched(np.array([2.0, 4.0, 1.0, 1.0]), np.array([2.0, 2, 1, 1]), control))
    >>> answer.mean, answer.extra, answer.control, answer.estimator
    (0.5, 2.0, 2, 'base')
    """
    words = words or Words()
    people = people.take(people.seen > 0)
    sides = people.arms()
    plain, sharp = base(people), onward(people, price)
    effect = sharp if not unlisted and is_sharper(sharp, plain) else plain
    half_width, rounds, treated = effect.half_width(level), float(sides[TREATED].seen.sum()), sides[TREATED].seen.size
    return Lift(
        mean=effect.mean,
        low=effect.mean - half_width,
        high=effect.mean + half_width,
        treated_mean=_mean(sides[TREATED]),
        control_mean=_mean(sides[CONTROL]),
        treated=treated,
        control=sides[CONTROL].seen.size,
        extra=rounds * effect.mean,
        extra_low=rounds * (effect.mean - half_width),
        extra_high=rounds * (effect.mean + half_width),
        sentence=_describe_lift(words, effect.mean, half_width, treated, sides[CONTROL].seen.size),
        estimator=effect.estimator,
        explanation=_explain(words, people, plain, sharp, unlisted),
    )


def _mean(side: Sums) -> float:
    return float(side.total.sum() / side.seen.sum()) if side.seen.size else math.nan


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
    both = welch(variance[TREATED], variance[CONTROL], df[TREATED], df[CONTROL])
    return LiftCurve(treated, control, _band(mean[TREATED] - mean[CONTROL], variance.sum(axis=0), both), first)


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


def _explain(words: Words, people: Sums, plain: Effect, sharp: Effect, unlisted: int) -> str:
    """Which estimator was used and why."""
    if math.isnan(plain.mean):
        return ""
    reason = ""
    program, control = (int(side.touched.sum()) for side in people.arms())
    if unlisted:
        those = f"{unlisted:,} {words.person if unlisted == 1 else words.people} acted on without being on a list"
        reason = f"The lists alone do not tell, because of {those}."
    elif math.isnan(sharp.mean):
        reason = f"Too few of the control group would have been on a list: {control:,}."
    elif not is_sharper(sharp, plain):
        reason = f"To compare only the {program:,} {words.people} on a list would not be more exact."
    if reason:
        return f"Measured by the difference in means. {reason}"
    times = show_number(plain.half_width() / sharp.half_width(), 2)
    against = f"{program:,} {words.people} on a list, from their first one on, against {control:,} of the control group"
    return f"Measured by the {against} who would have been on one: {times} times as exact as the difference in means."


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
