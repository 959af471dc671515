"""Effects of a randomised draw and tests of its randomisation, with errors clustered by person.

Rows are sorted by person. `draw` is 0 or 1, `propensity` the probability of 1 before the draw.

- Weighted and centred least squares (Boruvka, Almirall, Witkiewitz and Murphy 2018, equation 6; Klasnja et al. 2019):
  outcome ~ 1 + controls + (draw − q) · moderators with weights (q/e)^draw ((1−q)/(1−e))^(1−draw), q constant. The
  sandwich has the leverage correction of Mancl and DeRouen (2001), (I − H_i)^-1 r_i, computed from matrices as small as the
  number of columns: X_i'W_i (I − H_i)^-1 r_i = g_i + G_i (G − G_i)^-1 g_i with g_i = X_i'W_i r_i, G_i = X_i'W_i X_i, G = Σ G_i.
- Mantel-Haenszel difference over strata of one person in one state: Σ n1 n0 / n (mean1 − mean0) / Σ n1 n0 / n.
- Score test of what predicts a draw: U = Σ (draw − e) x, var U = Σ e (1−e) x x', for x that is known before the draw. The
  sum is a martingale, so it needs no assumption about outcomes or about how people differ.
"""

import math
from typing import NamedTuple

import numpy as np

from restive.stats import student_quantile
from restive.types import Bools, Floats, Ints


class Estimate(NamedTuple):
    """A number with its 95% interval and, for numbers from the same people, what each person contributes to its error."""

    value: float
    error: float
    low: float
    high: float
    influence: Floats | None = None  # [people], mean 0; error² = Σ influence²
    freedom: float = math.inf  # of Student's distribution

    @property
    def p(self) -> float:
        """The two-sided p-value of 0."""
        from scipy.special import stdtr

        if not self.error > 0:
            return 1.0
        z = self.value / self.error
        return two_sided(z) if math.isinf(self.freedom) else float(2 * stdtr(self.freedom, -abs(z)))

    @property
    def detectable(self) -> float:
        """The smallest true size that would be seen in four of five histories like this one."""
        return 2.8 * self.error

    @classmethod
    def of(cls, value: float, influence: Floats, columns: int = 1) -> "Estimate":
        """An estimate from what each person contributes; `columns` are the numbers fitted, for Student's quantile."""
        error = math.sqrt(float(influence @ influence))
        freedom = max(1, int(np.count_nonzero(influence)) - columns)
        reach = float(student_quantile(0.95, freedom)) * error
        return cls(float(value), error, float(value - reach), float(value + reach), influence, freedom)

    def minus(self, other: "Estimate") -> "Estimate":
        """The difference of two estimates from the same people."""
        assert self.influence is not None
        assert other.influence is not None
        return Estimate.of(self.value - other.value, self.influence - other.influence)


def two_sided(z: float) -> float:
    """The two-sided p-value of a standard normal number."""
    return math.erfc(abs(z) / math.sqrt(2))


def estimate_effects(
    outcome: Floats,
    draw: Ints,
    propensity: Floats,
    controls: Floats,
    agent: Ints,
    n_agents: int,
    moderators: Floats | None = None,
    corrected: bool = True,
) -> list[Estimate]:
    """The effect of a draw, or one for each column of `moderators`, by weighted and centred least squares.

    >>> estimate = estimate_effects(np.array([1.0, 3, 1, 3]), np.array([0, 1, 0, 1]), np.full(4, 0.5), np.empty((4, 0)),
    ...     np.array([0, 0, 1, 1]), 2)
    >>> round(estimate[0].value, 6)
    2.0
    """
    share = float(propensity.mean())
    weight = np.where(draw == 1, share / propensity, (1 - share) / (1 - propensity))
    parts = np.ones((draw.size, 1)) if moderators is None else moderators
    columns = np.hstack([np.ones((draw.size, 1)), controls, (draw - share)[:, None] * parts])
    weighted = columns * weight[:, None]
    first = _first_rows(agent)
    own = np.add.reduceat(columns[:, :, None] * weighted[:, None, :], first) if corrected else None
    whole = weighted.T @ columns
    bread = np.linalg.pinv(whole, hermitian=True)
    residual = outcome - columns @ (bread @ (weighted.T @ outcome))
    scores = np.add.reduceat(weighted * residual[:, None], first)
    if own is not None:
        ridge = 1e-8 * np.diag(np.maximum(np.diag(whole), 1e-12))
        scores = scores + (own @ np.linalg.solve(whole + ridge - own, scores[:, :, None]))[:, :, 0]
    coefficients = bread @ (weighted.T @ outcome)
    influence = np.zeros((n_agents, columns.shape[1]))
    influence[agent[first]] = scores @ bread
    where = range(columns.shape[1] - parts.shape[1], columns.shape[1])
    return [Estimate.of(coefficients[each], influence[:, each], columns.shape[1]) for each in where]


def estimate_within(outcome: Floats, draw: Ints, agent: Ints, state: Ints, n_agents: int, n_states: int) -> Estimate:
    """The Mantel-Haenszel difference between draws within the same person in the same state.

    >>> estimate_within(np.array([1.0, 2, 5, 7]), np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1]), np.zeros(4, int), 2, 1).value
    1.5
    """
    stratum = agent * n_states + state
    size = n_agents * n_states
    both = np.bincount(stratum, minlength=size).astype(np.float64)
    acted = np.bincount(stratum, draw, size)
    total = np.bincount(stratum, outcome, size)
    total_acted = np.bincount(stratum, outcome * draw, size)
    with np.errstate(invalid="ignore", divide="ignore"):
        weight = np.asarray(acted * (both - acted) / both)
        difference = total_acted / acted - (total - total_acted) / (both - acted)
    weight = np.where(both > 0, weight, 0.0)
    difference = np.where(weight > 0, difference, 0.0)
    if not weight.sum():
        return Estimate(math.nan, math.nan, math.nan, math.nan, np.zeros(n_agents))
    value = float(weight @ difference / weight.sum())
    influence = (weight * (difference - value)).reshape(n_agents, n_states).sum(axis=1) / weight.sum()
    people = int(np.count_nonzero(weight.reshape(n_agents, n_states).sum(axis=1)))
    return Estimate.of(value, influence * math.sqrt(people / max(1, people - 1)))


class ScoreTest(NamedTuple):
    """The test of whether columns predict a draw."""

    statistic: float  # chi-squared
    freedom: int
    p: float
    z: Floats  # of each column alone
    scale: Floats  # the standard error of the score of each column


def score_test(draw: Ints, propensity: Floats, columns: Floats, cell: Ints | None = None) -> ScoreTest:
    """Whether columns that were known before the draw predict it beyond its propensity.

    With `cell` the columns are compared within cells, weighted by e (1−e): for propensities that were estimated as the
    share of each cell, and for a budget that is always spent.

    >>> test = score_test(np.array([0, 1, 0, 1]), np.full(4, 0.5), np.array([[-1.0], [1], [-1], [1]]))
    >>> test.statistic, test.freedom, round(test.p, 4)
    (4.0, 1, 0.0455)
    """
    from scipy.special import chdtrc

    variance = propensity * (1 - propensity)
    centred = columns if cell is None else columns - cell_means(columns, cell, variance)
    score = (draw - propensity) @ centred
    information = (centred * variance[:, None]).T @ centred
    scale = np.sqrt(np.diag(information))
    varies = scale > 1e-9 * math.sqrt(max(1.0, variance.sum()))
    if not varies.any():
        return ScoreTest(0.0, 0, 1.0, np.zeros(columns.shape[1]), scale)
    z = np.zeros(columns.shape[1])
    z[varies] = score[varies] / scale[varies]
    correlation = information[np.ix_(varies, varies)] / np.outer(scale[varies], scale[varies])
    roots, axes = np.linalg.eigh(correlation)
    kept = roots > 1e-9
    statistic = float((((z[varies] @ axes)[kept]) ** 2 / roots[kept]).sum())
    freedom = int(kept.sum())
    return ScoreTest(statistic, freedom, float(chdtrc(freedom, statistic)), z, scale)


def cell_means(columns: Floats, cell: Ints, weight: Floats) -> Floats:
    """The weighted mean of each column over the rows of the same cell, for every row."""
    total = np.maximum(np.bincount(cell, weight), 1e-300)
    means = [np.bincount(cell, weight * column) / total for column in columns.T]
    return np.asarray(np.stack(means, axis=1)[cell]) if means else np.empty_like(columns)


def fit_logistic(columns: Floats, draw: Ints, offset: Floats, rows: Bools, ridge: float = 1.0) -> Floats:
    """The coefficients of a logistic regression with an offset on some rows, by four Newton steps."""
    inside, drawn, start = columns[rows], draw[rows], offset[rows]
    coefficients = np.zeros(columns.shape[1])
    for _ in range(4):
        fitted = logistic(start + inside @ coefficients)
        gradient = inside.T @ (drawn - fitted) - ridge * coefficients
        hessian = (inside * (fitted * (1 - fitted))[:, None]).T @ inside + ridge * np.eye(coefficients.size)
        coefficients = coefficients + np.linalg.solve(hessian, gradient)
    return coefficients


def logistic(x: Floats) -> Floats:
    """1 / (1 + exp(−x))."""
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -35, 35))))


def _first_rows(agent: Ints) -> Ints:
    return np.flatnonzero(np.diff(agent, prepend=-1))
