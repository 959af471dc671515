"""Does acting matter, are states missing at random, and was the advice followed: effects by weighted and centred least squares."""

import math

import numpy as np

from restive.formats import show_count, show_fixed, show_interval, show_percent
from restive.logs.assumptions.estimators import Estimate, estimate_effects, estimate_within
from restive.logs.assumptions.finding import HOLDS, Finding, Size, as_numbers, show_estimate
from restive.logs.assumptions.questions import ADVICE, EFFECT, MISSING
from restive.logs.assumptions.rows import Rows
from restive.types import Bools, Floats, Ints


def examine_effect(rows: Rows, trusted: bool) -> Finding:
    """The effect of a draw on the reward; `trusted` if draws depend on nothing but state and recorded propensity."""
    use = rows.with_outcome
    if not 0 < use.draw.sum() < use.draw.size:
        everybody = rows.all.draw.size and rows.all.draw.min() == 1
        who = "Everybody was acted on" if everybody else "Nobody was acted on, or acting was certain in every state"
        return Finding(EFFECT, statistic=f"{who}: the effect of acting cannot be estimated.")
    centred, within = effect_by_propensity(use), effect_within(use)
    main = centred if trusted or not math.isfinite(within.value) else within
    share = float(use.draw.mean())
    what = "Advising" if rows.advised else "Acting"
    source = "recorded" if rows.recorded else "estimated by state"
    given = ", ".join(rows.control_names) or "the state"
    values = rows.all.history.value
    relative = ""
    if values.max() - values.min() > 0:
        relative = (
            f", {show_percent(abs(main.value) / (values.max() - values.min()))} of the way from worst to best state"
        )
    return Finding(
        EFFECT,
        statistic=f"By propensities ({source}), given {given}: {show_fixed(centred.value, 4)} (standard "
        f"error {show_fixed(centred.error, 4)}); within the same person in the same state (Mantel-Haenszel): {show_estimate(within)}. "
        f"{show_count(use.draw.size, 'row')}, "
        f"{show_percent(share)} acted on, errors by person.",
        consequence=f"{what} once adds {show_estimate(main)} to the reward of the round{relative}; at random on "
        f"{show_percent(share)} of the people this is {show_fixed(share * main.value, 4)} a person and round.",
        size=Size.of(main),
        p=main.p,
        numbers={
            "by_propensity": as_numbers(centred),
            "within_person": as_numbers(within),
            "used": "propensity" if main is centred else "within person",
            "share_acted_on": share,
        },
    )


def effect_by_propensity(rows: Rows, outcome: Floats | None = None) -> Estimate:
    """The mean effect of the draw over rows, by weighted and centred least squares with the state as control."""
    y = rows.outcome if outcome is None else outcome
    (estimate,) = estimate_effects(
        y, rows.draw, rows.propensity, rows.controls, rows.agent, rows.history.n_agents, corrected=rows.corrected
    )
    return estimate


def effect_within(rows: Rows) -> Estimate:
    """The effect of the draw within the same person in the same state."""
    return estimate_within(
        rows.outcome, rows.draw, rows.agent, rows.state, rows.history.n_agents, rows.history.n_states
    )


def examine_missing(rows: Rows) -> Finding:
    """Whether next states are missing by action or by the reward before, and bounds on the effect if they are."""
    from scipy.special import chdtrc

    last = rows.all.history.n_rounds
    use = rows.select(rows.history.round < last)
    missing = ~np.isfinite(use.outcome)
    if not missing.any():
        return Finding(
            MISSING,
            statistic=f"All {show_count(missing.size, 'next state')} before the last round {'is' if missing.size == 1 else 'are'} known.",
            consequence="Nothing is lost.",
            verdict=HOLDS,
            numbers={"missing": 0.0},
        )
    gone = missing.astype(float)
    by_draw = effect_by_propensity(use, gone)
    before = _regress_on_before(use, gone)
    z = [each.value / each.error for each in (by_draw, before) if each.error > 0]
    p = float(chdtrc(len(z), sum(each**2 for each in z))) if z else 1.0
    bounds = lee_bounds(use, missing)
    rates = [f"{name} {show_percent(float(gone[use.state == s].mean()))}"
             for s, name in enumerate(use.history.states) if (use.state == s).any()]  # fmt: skip
    return Finding(
        MISSING,
        statistic=f"{show_percent(float(gone.mean()))} of next states are missing ({', '.join(rates)}). Acting adds "
        f"{show_estimate(by_draw)} to that share; a reward of one more in the round before adds {show_estimate(before)}.",
        consequence=f"The effect of acting among people seen either way lies between {show_fixed(bounds.low, 3)} and "
        f"{show_fixed(bounds.high, 3)} (Lee's bounds); as if missing at random it is {show_fixed(bounds.value, 3)}.",
        size=Size(bounds.high - bounds.low, 0.0, bounds.high - bounds.low),
        p=p,
        numbers={
            "missing": float(gone.mean()),
            "by_action": as_numbers(by_draw),
            "by_reward_before": as_numbers(before),
            "bounds": [bounds.low, bounds.high],
        },
    )


def _regress_on_before(rows: Rows, gone: Floats) -> Estimate:
    """What the reward of the round before adds to the share that is missing, given state and draw; errors by person."""
    before = np.where(rows.previous >= 0, rows.all.outcome[np.maximum(rows.previous, 0)], np.nan)
    known = np.isfinite(before)
    part = rows.select(known)
    cell = 2 * part.state + part.draw
    x, y = (_centre(column[known], cell) for column in (before, gone))
    scale = float(x @ x)
    if scale <= 0:
        return Estimate(math.nan, math.nan, math.nan, math.nan)
    slope = float(x @ y) / scale
    influence = np.bincount(part.agent, x * (y - slope * x), rows.history.n_agents) / scale
    return Estimate.of(slope, influence)


def _centre(column: Floats, cell: Ints) -> Floats:
    seen = np.maximum(np.bincount(cell), 1)
    return np.asarray(column - (np.bincount(cell, column) / seen)[cell])


def lee_bounds(rows: Rows, missing: Bools) -> Size:
    """Lee's (2009) bounds on the effect, by state, and the effect as if missing at random.

    In each state the arm with more known outcomes is trimmed to the share of the other: of its best outcomes for one
    bound, of its worst for the other.
    """
    low = middle = high = total = 0.0
    for s in range(rows.history.n_states):
        here = rows.state == s
        arms = [here & (rows.draw == a) for a in (0, 1)]
        known = [arm & ~missing for arm in arms]
        if not all(part.any() for part in known):
            continue
        shares = [known[a].sum() / arms[a].sum() for a in (0, 1)]
        outcomes = [np.sort(rows.outcome[part]) for part in known]
        keep = [min(1.0, shares[1 - a] / shares[a]) for a in (0, 1)]
        lowest = [_trimmed_mean(outcomes[a], keep[a]) for a in (0, 1)]
        highest = [-_trimmed_mean(-outcomes[a][::-1], keep[a]) for a in (0, 1)]
        weight = float(here.sum())
        low += weight * (lowest[1] - highest[0])
        high += weight * (highest[1] - lowest[0])
        middle += weight * float(outcomes[1].mean() - outcomes[0].mean())
        total += weight
    if not total:
        return Size(math.nan, math.nan, math.nan)
    return Size(middle / total, low / total, high / total)


def _trimmed_mean(rising: Floats, share: float) -> float:
    """The mean of the smallest `share` of sorted numbers; the number at the edge counts in part."""
    kept = share * rising.size
    whole = int(kept)
    edge = rising[whole] * (kept - whole) if whole < rising.size else 0.0
    return float((rising[:whole].sum() + edge) / kept)


def examine_advice(rows: Rows) -> Finding:
    """How often the advice was followed, what advising and acting bring, and whether departures are selective."""
    if not rows.advised:
        return Finding(
            ADVICE, statistic="The history has no column `advised`.", consequence="What was done is what counts."
        )
    use = rows.with_outcome
    use = use.select(use.history.action >= 0)
    if not 0 < use.draw.sum() < use.draw.size:
        return Finding(ADVICE, "There is no row in which the advice was uncertain and the outcome is known.")
    done = use.history.action.astype(float)
    followed = float((done == use.draw).mean())
    itt = effect_by_propensity(use)
    taken = effect_by_propensity(use, done)
    wald = itt.value / taken.value if taken.value else math.nan
    low, high = anderson_rubin(itt, taken)
    selective = _as_treated_minus_wald(use, done, itt, taken)
    by_state = [f"{name} {show_percent(float((done == use.draw)[use.state == s].mean()))}"
                for s, name in enumerate(use.history.states) if (use.state == s).any()]  # fmt: skip
    bounded = math.isfinite(low) and math.isfinite(high)
    acting = show_interval(wald, low, high, 3) if bounded else f"{show_fixed(wald, 3)}, without a bounded interval"
    return Finding(
        ADVICE,
        statistic=f"The advice was followed in {show_percent(followed)} of rows ({', '.join(by_state)}); it adds "
        f"{show_estimate(taken)} to the share acted on.",
        consequence=f"Advising adds {show_estimate(itt)} (intention to treat), acting on advice {acting} (Wald, Anderson-Rubin "
        f"interval). Comparing by what was done is off by {show_estimate(selective)}.",
        size=Size.of(selective),
        p=selective.p,
        numbers={
            "followed": followed,
            "intention_to_treat": as_numbers(itt),
            "acted_on": as_numbers(taken),
            "wald": {"value": wald, "low": low if bounded else None, "high": high if bounded else None},
        },
    )


def anderson_rubin(outcome: Estimate, taken: Estimate, z: float = 1.96) -> tuple[float, float]:
    """All effects b of acting for which outcome − b · taken has a draw's effect of 0 within its error; may be unbounded.

    >>> effect = Estimate(1.0, 0.1, 0, 0, np.array([0.1, 0.0])), Estimate(0.5, 0.01, 0, 0, np.array([0.0, 0.01]))
    >>> [round(end, 2) for end in anderson_rubin(*effect)]
    [1.6, 2.4]
    """
    assert outcome.influence is not None
    assert taken.influence is not None
    square = taken.value**2 - z**2 * taken.error**2
    middle = outcome.value * taken.value - z**2 * float(outcome.influence @ taken.influence)
    rest = outcome.value**2 - z**2 * outcome.error**2
    inside = middle**2 - square * rest
    if square <= 0 or inside < 0:
        return -math.inf, math.inf
    return (middle - math.sqrt(inside)) / square, (middle + math.sqrt(inside)) / square


def _as_treated_minus_wald(use: Rows, done: Floats, itt: Estimate, taken: Estimate) -> Estimate:
    """The effect by what was done, given the state, minus the effect by advice (Durbin, Wu and Hausman)."""
    acted = done.astype(np.int64)
    rate = np.bincount(use.state, done) / np.maximum(np.bincount(use.state), 1)
    rate = rate[use.state]
    inside = (rate > 0) & (rate < 1)
    part = use.select(inside)
    if not inside.any() or not taken.value:
        return Estimate(math.nan, math.nan, math.nan, math.nan)
    (treated,) = estimate_effects(
        part.outcome,
        acted[inside],
        rate[inside],
        part.controls,
        part.agent,
        part.history.n_agents,
        corrected=part.corrected,
    )
    assert itt.influence is not None
    assert taken.influence is not None
    assert treated.influence is not None
    wald = itt.value / taken.value
    influence = (itt.influence - wald * taken.influence) / taken.value
    return Estimate.of(treated.value - wald, treated.influence - influence)
