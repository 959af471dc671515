"""Was it randomised, are there hidden reasons, and do people influence each other: score tests of the draws.

A draw that is random given its propensity is not predicted by anything known before it (randomised), not by how the
person fared before compared with others in the same state (hidden reasons), and other people's draws do not predict a
person's own outcome (influence).
"""

import math

import numpy as np

from restive.formats import show_count, show_fixed
from restive.logs.assumptions.acting import effect_by_propensity, effect_within
from restive.logs.assumptions.estimators import (
    Estimate,
    ScoreTest,
    estimate_effects,
    fit_logistic,
    logistic,
    score_test,
)
from restive.logs.assumptions.finding import CANNOT_TELL, HOLDS, LEVEL, Finding, Size, as_numbers, show_p
from restive.logs.assumptions.questions import HIDDEN, INFLUENCE, RANDOMISED
from restive.logs.assumptions.rows import Rows
from restive.types import Bools, Floats, Ints

FOLDS = 2


def examine_randomisation(rows: Rows) -> Finding:
    """Whether state, time, features and the past predict the draw beyond its propensity."""
    if not _drawn(rows):
        return Finding(RANDOMISED, statistic="There is no row in which acting was uncertain.")
    names, columns = known_before(rows)
    test = score_test(rows.draw, rows.propensity, columns, _cells(rows))
    calibration = _calibrate(rows) if rows.recorded else None
    p = test.p if calibration is None else min(1.0, 2 * min(test.p, calibration.p))
    gain, fitted = cross_fit(rows, columns)
    shift = _shift(rows, fitted)
    done = calibration is not None and calibration.p < 0.01 and _is_of_what_was_done(rows)
    notes = [f"Score test of {', '.join(names)}: {show_p(test.p)}; they predict the action {_show_gain(gain)}."]
    if test.p < LEVEL:
        worst = int(np.abs(test.z).argmax())
        notes.append(f"Strongest: {names[worst]} (z = {show_fixed(test.z[worst], 1)}).")
    if calibration is not None:
        add_up = "add" if rows.budgeted else "do not add"
        notes.append(f"Propensities in tenths against actions: {show_p(calibration.p)}; they {add_up} up to a budget.")
    if done:
        notes.append("The column fits the probability of what was DONE, not of acting.")
    return Finding(
        RANDOMISED,
        statistic=" ".join(notes),
        consequence=f"Adjusting for what predicts the action changes the effect of acting by {shift.show()}.",
        size=Size() if done else shift,
        p=p,
        numbers={
            "score_test": {"statistic": test.statistic, "freedom": test.freedom, "p": test.p},
            "z": dict(zip(names, map(float, test.z), strict=True)),
            "calibration_p": None if calibration is None else calibration.p,
            "log_score_gain": gain,
            "budget_spent": rows.budgeted if rows.recorded else None,
            "propensity_of_what_was_done": done,
            "recorded": rows.recorded,
        },
    )


def known_before(rows: Rows) -> tuple[list[str], Floats]:
    """What was known before each draw: state, time, features, and the draw and outcome of the row before."""
    names, columns = [], []
    if rows.recorded:
        names += [f"state {name}" for name in rows.history.states[1:]]
        columns += list(rows.by_state.T)
    has, at = rows.previous >= 0, np.maximum(rows.previous, 0)
    earlier = rows.all.outcome[at]
    known = has & np.isfinite(earlier)
    names += ["round", "acted on before", "outcome before"]
    columns += [
        rows.history.round / max(1, rows.history.n_rounds),
        np.where(has & (rows.all.draw[at] >= 0), rows.all.draw[at], rows.propensity),
        np.where(known, earlier, earlier[known].mean() if known.any() else 0.0),
    ]
    if rows.history.features is not None:
        for name, feature in zip(rows.history.feature_names, rows.history.features.T, strict=True):
            filled = np.where(np.isfinite(feature), feature, np.nanmean(feature) if np.isfinite(feature).any() else 0.0)
            names.append(name)
            columns.append(((filled - filled.mean()) / max(float(filled.std()), 1e-12))[rows.agent])
    return names, np.stack(columns, axis=1).astype(float)


def _cells(rows: Rows) -> Ints | None:
    """Cells within which columns are compared: states if propensities are estimated, rounds if a budget is always spent."""
    if not rows.recorded:
        return rows.state
    return rows.history.round if rows.budgeted else None


def _calibrate(rows: Rows) -> ScoreTest:
    """Whether the share of draws equals the propensity in each tenth of the propensities."""
    edges = np.unique(np.quantile(rows.propensity, np.arange(1, 10) / 10))
    tenth = np.searchsorted(edges, rows.propensity)
    indicator = np.asarray(tenth[:, None] == np.unique(tenth), np.float64)
    return score_test(rows.draw, rows.propensity, indicator, rows.history.round if rows.budgeted else None)


def _is_of_what_was_done(rows: Rows) -> bool:
    """Whether mean A/p = 1 and mean (1−A)/p = 1, as for a probability p of the action that was taken."""
    p = rows.propensity
    for chosen in (rows.draw == 1, rows.draw == 0):
        ratio = chosen / p - 1
        if abs(ratio.mean()) > 4 * ratio.std() / math.sqrt(ratio.size):
            return False
    return True


def cross_fit(rows: Rows, columns: Floats) -> tuple[float, Floats]:
    """The gain in log score of the draw by known columns, on people left out, in nats a row; and the fitted propensities."""
    offset = np.log(rows.propensity / (1 - rows.propensity))
    centred = columns - columns.mean(axis=0)
    scaled = centred / np.maximum(centred.std(axis=0), 1e-12)
    scaled = np.hstack([scaled, np.ones((offset.size, 1))])
    fold = rows.agent % FOLDS
    linear = offset.copy()
    for number in range(FOLDS):
        held_out = fold == number
        linear[held_out] += scaled[held_out] @ fit_logistic(scaled, rows.draw, offset, ~held_out)
    gain = _log_score(linear, rows.draw) - _log_score(offset, rows.draw)
    return gain, np.clip(logistic(linear), 0.01, 0.99)


def _log_score(linear: Floats, draw: Ints) -> float:
    return float(-np.logaddexp(0, np.where(draw == 1, -linear, linear)).mean())


def _show_gain(gain: float) -> str:
    return (
        "no better on people left out"
        if gain <= 0
        else f"better by {show_fixed(1000 * gain, 2)} nats per 1,000 rows left out"
    )


def _shift(rows: Rows, fitted: Floats) -> Size:
    """The effect with fitted propensities minus that with the recorded ones or those by state."""
    known = np.isfinite(rows.outcome)
    use = rows.with_outcome
    (adjusted,) = estimate_effects(
        use.outcome, use.draw, fitted[known], use.controls, use.agent, use.history.n_agents, corrected=use.corrected
    )
    return Size.of(adjusted.minus(effect_by_propensity(use)))


def examine_hidden_reasons(rows: Rows) -> Finding:
    """Whether people who fared better or worse than others in their state were acted on more often; and E-values."""
    use = rows.with_outcome
    if not _drawn(use):
        return Finding(HIDDEN, statistic="There is no row in which acting was uncertain.")
    test = score_test(rows.draw, rows.propensity, fared_before(rows)[:, None], _cells(rows))
    pooled, within = effect_by_propensity(use), effect_within(use)
    difference = Size.of(within.minus(pooled)) if math.isfinite(within.value) else Size()
    estimate, nearest = e_values(pooled, float(np.std(use.residual)))
    words = "more" if test.z[0] > 0 else "less"
    shown = "" if not math.isfinite(difference.value) else (
        f"The effect within the same person and state differs from that over all people by {difference.show()}. "
    )  # fmt: skip
    return Finding(
        HIDDEN,
        statistic=f"People who had fared better than others in their state were acted on {words} often than their propensity "
        f"says: z = {show_fixed(abs(float(test.z[0])), 2)}, {show_p(test.p)}.",
        consequence=f"{shown}To explain the effect away, a hidden reason must make both acting and a good outcome at least "
        f"{show_fixed(estimate, 2)} times as likely (E-value; {show_fixed(nearest, 2)} for the near end of the interval).",
        size=difference,
        p=test.p,
        unrejected=HOLDS if rows.recorded else CANNOT_TELL,
        numbers={"e_value": estimate, "e_value_of_interval": nearest, "z": float(test.z[0])},
    )


def fared_before(rows: Rows) -> Floats:
    """The mean residual of each person's earlier rows, shrunk to 0 where there are few."""
    first = np.flatnonzero(np.diff(rows.agent, prepend=-1))
    start = np.repeat(first, np.diff(np.append(first, rows.agent.size)))
    total = np.concatenate([[0.0], np.cumsum(rows.residual)])
    number = np.arange(rows.agent.size)
    return np.asarray((total[number] - total[start]) / (number - start + 5.0))


def e_values(effect: Estimate, spread: float) -> tuple[float, float]:
    """VanderWeele and Ding's (2017) E-value RR + √(RR (RR − 1)) of an effect and of the near end of its interval.

    The risk ratio of a difference d in standard deviations is exp(0.91 d), as they propose.

    >>> [round(each, 2) for each in e_values(Estimate(0.5, 0.1, 0.3, 0.7), 1.0)]
    [2.53, 1.96]
    """
    near = 0.0 if effect.low <= 0 <= effect.high else min(abs(effect.low), abs(effect.high))
    ratios = [math.exp(min(50.0, 0.91 * abs(part) / max(spread, 1e-12))) for part in (effect.value, near)]
    one, two = (ratio + math.sqrt(ratio * (ratio - 1)) for ratio in ratios)
    return one, two


def examine_influence(rows: Rows) -> Finding:
    """Whether draws of other people in the group predict a person's outcome in the same round.

    Every other person of a group, by position, is observed, with own draws as they were; the draws of the others are the
    ones whose randomisation is used (a conditional randomisation test; Athey, Eckles and Imbens 2018).
    """
    group = rows.history.group
    if group is None or not (group >= 0).any():
        return Finding(INFLUENCE, statistic="The history has no column `group`.")
    observed = _every_other(rows)
    cell = group * (rows.history.n_rounds + 1) + rows.history.round
    cell = np.unique(cell, return_inverse=True)[1]
    inside = group >= 0
    watched, others = inside & observed, inside & ~observed
    residual = np.bincount(cell[watched], rows.residual[watched], int(cell.max()) + 1)
    n_others = np.maximum(np.bincount(cell[inside], minlength=residual.size) - 1, 1)
    score = (residual / n_others)[cell]  # what one more draw in the group is compared with
    columns = score[others][:, None]
    strata = rows.history.round[others] * rows.history.n_states + rows.state[others]
    test = score_test(rows.draw[others], rows.propensity[others], columns, strata)
    slope = _slope(rows, cell, watched, others, n_others, test)
    size = Size.of(slope, 0.1)
    return Finding(
        INFLUENCE,
        statistic=f"{show_count(int(np.unique(group[inside]).size), 'group')}: own outcome against the share of others "
        f"acted on in the same round: z = {show_fixed(float(test.z[0]), 2)}, {show_p(test.p)}.",
        consequence="Acting on ten of a hundred more of a person's group changes the person's own reward by "
        f"{size.show()}.",
        size=size,
        p=test.p if test.freedom else None,
        numbers={"slope": as_numbers(slope)},
    )


def _every_other(rows: Rows) -> Bools:
    """Half of the people of each group."""
    assert rows.history.group is not None
    groups = np.full(rows.history.n_agents, -1)
    groups[rows.agent] = rows.history.group
    order = np.argsort(groups, kind="stable")
    first = np.flatnonzero(np.diff(groups[order], prepend=-2))
    within = np.arange(order.size) - np.repeat(first, np.diff(np.append(first, order.size)))
    half = np.empty(order.size, bool)
    half[order] = within % 2 == 0
    return half[rows.agent]


def _slope(rows: Rows, cell: Ints, watched: Bools, others: Bools, n_others: Ints, test: ScoreTest) -> Estimate:
    """The change of the own outcome with the share of others acted on: the score over Σ var(share acted on)."""
    variance = np.bincount(cell[others], (rows.propensity * (1 - rows.propensity))[others], n_others.size) / n_others**2
    scale = float(variance[cell[watched]].sum())
    if scale <= 0:
        return Estimate(math.nan, math.nan, math.nan, math.nan)
    slope, error = float(test.z[0] * test.scale[0]) / scale, float(test.scale[0]) / scale
    return Estimate(slope, error, slope - 1.96 * error, slope + 1.96 * error)


def _drawn(rows: Rows) -> bool:
    return bool(0 < rows.draw.sum() < rows.draw.size)
