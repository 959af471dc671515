"""Estimators of a program's lift against a control group, from sums for each person; rewards are per person and round.

`arm` 1 is the program, whose budget goes each round to the highest priorities; people of arm 0, the control group, are
never acted on. A person is touched from the first round in which the program acts on them, in the control group from
the first round in which it would have (the priority on their own untouched path reaches the program's cutoff). Until
then both arms move alike, and those never touched are alike throughout. With sums Σ1, Σ0 over the arms:

    base        Σ1 total / Σ1 seen − Σ0 total / Σ0 seen
    subgroup    Σ1 z / Σ1 seen − Σ0 z / Σ0 seen,   z = touched (total − m seen),   m: mean of the touched of arm 0
    reshuffled  the same with m the mean of the untouched of both arms: the average over all exchanges of them
    onward      the same as subgroup with total and seen from the round of the first touch on: what both arms have in
                common before it is no longer noise
    variance    Var1(z − price · actions) n1 / (Σ1 seen)² + Var0(z) n0 / (Σ0 seen)²

The cutoff moves with the people of the program so that the budget is always spent: one more person to act on displaces
another, so that only what exceeds the price, what the marginal action adds, is noise. For a program that acts first
where it adds most, the price lies between 0 and the mean effect of an action; two thirds of that mean are taken unless
it is known: .62 of the mean is the least of the highest fifth of an exponential distribution, .64 of a triangular one, and
more of fewer. The variance is a quadratic in the price with its least value close to the mean, so that two thirds of the
way are nearly nine tenths of the gain. Base is that of Bell and McCaffrey (2002): agents of equal variance; with equal
rounds it is Welch's (1947).

The lift is that of this program. If the policy learns, another program with the same policy would learn other things,
and its lift would differ by more than this interval; one trial cannot tell by how much.

Sources: subgroup, Boehmer et al. (arXiv 2402.11771) after Imai and Li (2023); reshuffled, Mate et al. (arXiv 2302.02570);
adjusted, Lin (2013); small binary samples, Agresti and Caffo (2000). Onward and the price are our own.
"""

import math
from typing import NamedTuple

import numpy as np

from restive.stats import student_quantile
from restive.types import Bools, Floats, Ints

LEVEL = 0.95
MAX_DF = 1e7  # degrees of freedom at which Student's distribution is normal to seven digits
MIN_TOUCHED = 2  # in each arm, for a variance
BORROWED_DF = 1.0  # degree of freedom of the program's variance in that of a few touched people of the control group
MARGINAL_SHARE = 2 / 3  # what the marginal action adds, of the mean effect of an action
MAX_RATIO = 0.98  # of the half-widths of intervals, for one to be narrower
FEW_TOUCHED = 30  # below it, shares of binary outcomes get pseudo-counts


class Sums(NamedTuple):
    """What happened to each person, all [N]."""

    total: Floats  # rewards
    seen: Floats  # rounds with a reward
    since_total: Floats  # rewards from the round of the first touch on
    since_seen: Floats
    touched: Bools
    actions: Floats
    control: Bools

    @classmethod
    def untouched(cls, total: Floats, seen: Floats | Ints, control: Bools) -> "Sums":
        """The sums if it is not known who was touched, or would have been."""
        none = np.zeros(total.size)
        return cls(total, seen.astype(np.float64), none, none, none > 0, none, control)

    def take(self, rows: Bools) -> "Sums":
        """Some of the people."""
        return Sums._make(column[rows] for column in self)

    def arms(self) -> tuple["Sums", "Sums"]:
        """The people of the program and of the control group."""
        return self.take(~self.control), self.take(self.control)


class Effect(NamedTuple):
    """The lift per person and round by one estimator; NaN if there are too few people."""

    estimator: str
    mean: float
    error: float
    df: float

    def half_width(self, level: float = LEVEL) -> float:
        """The half-width of the interval."""
        return float(student_quantile(level, self.df)) * self.error


class Side(NamedTuple):
    """The mean per person and round of one group, its variance, and the degrees of freedom of that."""

    mean: float
    variance: float
    df: float


def weigh(total: Floats, seen: Floats) -> Side:
    """The mean per person and round of one group with its variance and degrees of freedom, after Bell and McCaffrey.

    share = seen / Σ seen; the residual of a person's mean has variance (1 − 2 share + Σ share²) · that of the person.
    """
    if seen.size == 0:
        return Side(math.nan, math.nan, math.nan)
    share = seen / seen.sum()
    mean = float(total.sum() / seen.sum())
    if seen.size == 1:
        return Side(mean, math.nan, math.nan)
    square = float(share @ share)
    scale = share**2 / (1 - 2 * share + square)
    variance = float(scale @ (total / seen - mean) ** 2)
    # The trace of the squared matrix of the quadratic form `variance`, whose trace is `square`.
    none, one, two = (float(scale @ share**order) for order in (0, 1, 2))
    crossed = 2 * two * none + square**2 * none**2 + 2 * one**2 - 4 * square * one * none
    return Side(mean, variance, square**2 / (float(scale**2 @ (1 - 4 * share + 2 * square)) + crossed))


def welch(one: Floats, two: Floats, one_df: Floats, two_df: Floats) -> Floats:
    """The degrees of freedom of a sum of two independent variances; MAX_DF where both are 0."""
    below = one**2 / one_df + two**2 / two_df
    df: Floats = np.where(below == 0, MAX_DF, (one + two) ** 2 / np.where(below == 0, 1.0, below))
    return df


def base(sums: Sums) -> Effect:
    """The difference in means.

    >>> control = np.array([False, False, True, True])
    >>> effect = base(Sums.untouched(np.array([2.0, 4, 1, 1]), np.array([2.0, 2, 1, 1]), control))
    >>> effect.mean, effect.error
    (0.5, 0.5)
    """
    one, two = (weigh(arm.total[arm.seen > 0], arm.seen[arm.seen > 0]) for arm in sums.arms())
    return _join("base", one.mean - two.mean, one.variance, two.variance, one.df, two.df)


def subgroup(sums: Sums, price: float | None = None) -> Effect:
    """The lift of those whom the program touches, against those of the control group whom it would have touched."""
    touched = sums.touched
    whole = sums._replace(since_total=np.where(touched, sums.total, 0), since_seen=np.where(touched, sums.seen, 0))
    return onward(whole, price)._replace(estimator="subgroup")


def onward(sums: Sums, price: float | None = None) -> Effect:
    """The same from the round of the first touch on.

    >>> control = np.array([False, False, False, True, True, True])
    >>> seen, since = np.full(6, 4.0), np.array([2.0, 2, 0, 2, 2, 0])
    >>> rewards = np.array([2.0, 2, 0, 1, 1, 0])
    >>> effect = onward(Sums(rewards, seen, rewards, since, since > 0, np.array([1.0, 1, 0, 0, 0, 0]), control))
    >>> round(effect.mean, 4)  # one half in each of 4 of the 12 rounds
    0.1667
    """
    program, control = sums.arms()
    here, there = (np.flatnonzero(arm.since_seen > 0) for arm in (program, control))
    if min(here.size, there.size) < MIN_TOUCHED:
        return Effect("onward", math.nan, math.nan, math.nan)
    one = weigh(program.since_total[here], program.since_seen[here])
    two = weigh(control.since_total[there], control.since_seen[there])
    rounds = program.seen.sum()
    share = float(program.since_seen.sum() / rounds)
    mean = share * (one.mean - two.mean)
    excess = program.since_total - two.mean * program.since_seen
    variance = _variance(excess - _price(mean, program, price) * program.actions, program.seen, here.size)
    squares = [_sum_of_squares(arm.since_seen) for arm in (program, control)]
    borrowed = BORROWED_DF * one.variance / squares[0] * squares[1]
    two = two._replace(variance=(two.df * two.variance + borrowed) / (two.df + BORROWED_DF))
    return _join("onward", mean, variance, share**2 * two.variance, one.df, two.df)


def reshuffled(sums: Sums, price: float | None = None) -> Effect:
    """The mean over all exchanges of people of the two arms whom the program does not touch."""
    program, control = sums.arms()
    here, there = (int(arm.touched.sum()) for arm in (program, control))
    rounds = float(sums.seen[~sums.touched].sum())
    if min(here, there) < MIN_TOUCHED or rounds == 0:
        return Effect("reshuffled", math.nan, math.nan, math.nan)
    center = float(sums.total[~sums.touched].sum()) / rounds
    one, two = (np.where(arm.touched, arm.total - center * arm.seen, 0) for arm in (program, control))
    mean = float(one.sum() / program.seen.sum() - two.sum() / control.seen.sum())
    variance = _variance(one - _price(mean, program, price) * program.actions, program.seen, here)
    return _join("reshuffled", mean, variance, _variance(two, control.seen, there), here - 1, there - 1)


def adjusted(effect: Effect, sums: Sums, covariates: Floats, price: float | None = None) -> Effect:
    """The estimate, base or onward, with covariates [N, F] regressed out within each arm (Lin 2013).

    response = z − price · actions, of base total, per mean round; its intercepts in the two arms, with covariates centred
    at their mean over both, are subtracted. The error is reduced as that of White (HC2) is by the covariates.
    """
    known = sums.seen > 0
    sums, covariates = sums.take(known), covariates[known]
    program, control = sums.arms()
    response, cost = sums.total, 0.0
    if effect.estimator == "onward":
        center = float(control.since_total.sum() / control.since_seen.sum())
        cost = _price(effect.mean, program, price)
        response = sums.since_total - center * sums.since_seen - np.where(sums.control, 0, cost * sums.actions)
    design = np.column_stack([np.ones(response.size), covariates - covariates.mean(axis=0)])
    sides = (~sums.control, sums.control)
    fitted, plain = ([_intercept(x[side], response[side]) for side in sides] for x in (design, design[:, :1]))
    mean = (fitted[0][0] - fitted[1][0] + cost * float(program.actions.mean())) / float(sums.seen.mean())
    reduction = (fitted[0][1] + fitted[1][1]) / (plain[0][1] + plain[1][1])
    return Effect(f"{effect.estimator}, adjusted", mean, effect.error * math.sqrt(reduction), effect.df)


def binary(sums: Sums) -> Effect | None:
    """The subgroup estimate with a pseudo-count of each outcome in each arm, if one outcome of 0 or 1 is known of each.

    After Agresti and Caffo (2000): share = (successes + 1) / (touched + 2), variance = share (1 − share) / (touched + 2).
    """
    known = sums.seen > 0
    if not (np.isin(sums.total[known], (0, 1)).all() and (sums.seen[known] == 1).all()):
        return None
    shares, variances = [], []
    for arm in sums.arms():
        count = float(arm.touched.sum())
        share = (float(arm.total[arm.touched].sum()) + 1) / (count + 2)
        shares.append(share)
        variances.append(share * (1 - share) / (count + 2))
    program = sums.arms()[0]
    scale = float(program.touched.sum() / (program.seen > 0).sum())
    error = scale * math.sqrt(sum(variances))
    return Effect("subgroup, with pseudo-counts", scale * (shares[0] - shares[1]), error, MAX_DF)


def sharper(sums: Sums, price: float | None = None) -> Effect:
    """Onward if it is sharper than the difference in means, else the latter."""
    plain, sharp = base(sums), onward(sums, price)
    return sharp if is_sharper(sharp, plain) else plain


def is_sharper(one: Effect, two: Effect) -> bool:
    """Whether the interval of one estimate is noticeably narrower than that of another; unknown or empty ones are not."""
    return 0 < one.half_width() < MAX_RATIO * two.half_width()


def _price(lift: float, program: Sums, price: float | None) -> float:
    """The price of an action: as given, or two thirds of the mean effect of an action."""
    if price is not None:
        return price
    actions = float(program.actions.sum())
    return MARGINAL_SHARE * lift * float(program.seen.sum()) / actions if actions else 0.0


def _variance(response: Floats, seen: Floats, touched: int) -> float:
    """The variance of Σ response / Σ seen, of which only so many people have a response other than 0."""
    residual = response - response.sum() / seen.sum() * seen
    return float(residual @ residual) / float(seen.sum()) ** 2 * touched / (touched - 1)


def _sum_of_squares(seen: Floats) -> float:
    """Of the shares of rounds: the variance of a mean if that of each person is 1."""
    return float(seen @ seen) / float(seen.sum()) ** 2


def _intercept(design: Floats, response: Floats) -> tuple[float, float]:
    """The intercept of a least-squares fit, and its variance (HC2)."""
    inverse = np.linalg.pinv(design.T @ design)
    residual = response - design @ (inverse @ (design.T @ response))
    leverage = np.einsum("ij,jk,ik->i", design, inverse, design)
    weight = residual / np.sqrt(np.maximum(1 - leverage, 1e-9))
    row = design @ inverse[0]
    return float(inverse[0] @ (design.T @ response)), float((row * weight) @ (row * weight))


def _join(name: str, mean: float, one: float, two: float, one_df: float, two_df: float) -> Effect:
    df = float(welch(*(np.array(part) for part in (one, two, one_df, two_df))))
    error = math.sqrt(one + two)
    return Effect(name, math.nan if math.isnan(error) else mean, error, df)
