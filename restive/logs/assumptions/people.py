"""Do people differ: Tarone's test of their rows, and the spread of what acting does to them.

Rows. For the moves of person i from a symbol, n_i in all and x_it to state t, with shares p_t over everybody,
D_i = Σ_t (x_it − n_i p_t)² / p_t − (S − 1) n_i has mean 0 if people are alike (Tarone 1979, for two states). How often a
person comes to a state depends on its moves, so the usual error of Tarone's z is not exact; here it is √Σ D_i², after
a correction for the estimated shares.

Effects. h_it = (A − e) / (e (1 − e)) · (y − m_s) − effect_s has mean 0 given the past, for any differences between people,
unless effects differ; so Σ_i Σ_t h_it Σ_{u<t} h_iu has mean 0 too, and over Σ_i T_i (T_i − 1) / 2 it estimates the variance of
effects between people in the same state.
"""

import math

import numpy as np

from restive.formats import show_fixed, show_percent
from restive.logs.assumptions.estimators import Estimate, cell_means
from restive.logs.assumptions.finding import Finding, Size, as_numbers
from restive.logs.assumptions.questions import PEOPLE
from restive.logs.assumptions.rows import Rows
from restive.logs.history import History
from restive.types import Floats

MIN_EXPECTED = 5  # moves to a state from a symbol; rarer ones are left out


def examine_people(rows: Rows) -> Finding:
    """Whether people differ, and what choosing whom to act on can win at most."""
    history = rows.all.history
    difference, spread = tarone(history)
    if not math.isfinite(difference.value):
        return Finding(PEOPLE, statistic="No person moved twice from the same state.")
    z = _correct_skewness(difference)
    effects = spread_of_effects(rows)
    share = float(rows.draw.mean()) if rows.draw.size else math.nan
    winning = _winning(effects, share)
    return Finding(
        PEOPLE,
        statistic=f"Tarone's z = {show_fixed(z, 1)}; probabilities of moves differ between people by a standard deviation of "
        f"{show_fixed(spread, 3)}.",
        consequence=_describe(effects, winning, share),
        size=winning,
        p=0.5 * math.erfc(z / math.sqrt(2)),
        numbers={
            "tarone_z": z,
            "spread_of_probabilities": spread,
            "variance_of_effects": as_numbers(effects),
        },
    )


def tarone(history: History) -> tuple[Estimate, float]:
    """The mean of D_i with its error, and the standard deviation between people of a probability of moving."""
    counts = history.counts.reshape(history.n_agents, 2 * history.n_states, history.n_states)
    visits = counts.sum(axis=-1)
    moves, total = counts.sum(axis=0), visits.sum(axis=0)
    share = moves / np.maximum(total, 1)[:, None]
    used = (moves >= MIN_EXPECTED) & (moves < total[:, None])
    weight = np.where(used, 1 / np.where(used, share, 1.0), 0.0)
    surplus = counts - visits[:, :, None] * share
    own = np.einsum("ist,st->i", surplus**2, weight) - visits @ ((1 - share) * used).sum(axis=-1)
    pairs = float((visits * (visits - 1)).sum(axis=0) @ ((1 - share) * used).sum(axis=-1))
    if pairs <= 0:
        return Estimate(math.nan, math.nan, math.nan, math.nan), math.nan
    # d/dp of Σ_i D_i: −2 Σ_i n_i surplus_i / p − Σ_i surplus_i² / p² + Σ_i n_i; times the error of the share in each person
    slope = (
        -2 * np.einsum("is,ist->st", visits, surplus) * weight
        - np.einsum("ist,st->st", surplus**2, weight**2)
        + total[:, None] * used
    )
    influence = own + np.einsum("ist,st->i", surplus, slope / np.maximum(total, 1)[:, None])
    excess = float(own.sum()) / pairs  # of the variance between people over p (1 − p)
    typical = float((share * (1 - share) * used * total[:, None]).sum() / max(1.0, (used * total[:, None]).sum()))
    scale = influence / pairs
    return Estimate.of(excess, scale), math.sqrt(max(0.0, excess) * typical)


def _correct_skewness(estimate: Estimate) -> float:
    """Johnson's (1978) modified t: z + g (1 + 2 z²) / (6 √n), with the skewness g of what n people contribute."""
    assert estimate.influence is not None
    own = estimate.influence[estimate.influence != 0]
    centred = own - own.mean()
    z = estimate.value / estimate.error
    skewness = float((centred**3).mean()) / max(float((centred**2).mean()), 1e-300) ** 1.5
    return float(z + skewness * (1 + 2 * min(z * z, 4.0)) / (6 * math.sqrt(own.size)))


def spread_of_effects(rows: Rows) -> Estimate:
    """The variance of the effect of acting between people in the same state."""
    use = rows.with_outcome
    nothing = Estimate(math.nan, math.nan, math.nan, math.nan)
    if not 0 < use.draw.sum() < use.draw.size:
        return nothing
    surprise = pseudo_effects(use)
    first = np.flatnonzero(np.diff(use.agent, prepend=-1))
    length = np.diff(np.append(first, use.agent.size))
    start = np.repeat(first, length)
    running = np.concatenate([[0.0], np.cumsum(surprise)])
    earlier = running[: surprise.size] - running[start]
    earlier = earlier - cell_means(earlier[:, None], use.state, np.ones(surprise.size))[:, 0]
    pairs = float((length * (length - 1)).sum()) / 2
    if pairs <= 0:
        return nothing
    influence = np.bincount(use.agent, surprise * earlier, use.history.n_agents) / pairs
    value = float(influence.sum())
    return Estimate.of(
        value, influence - value / max(1, first.size) * (np.bincount(use.agent, minlength=influence.size) > 0)
    )


def pseudo_effects(use: Rows) -> Floats:
    """For each row, a number whose mean given the past is the person's effect minus that of everybody in the state."""
    e = use.propensity
    inverse = np.where(use.draw == 1, 1 / e, 1 / (1 - e))
    means = [
        cell_means(use.outcome[:, None], use.state, inverse * (use.draw == a))[:, 0] for a in (0, 1)
    ]  # by state, of each draw
    middle = (1 - e) * means[1] + e * means[0]
    noisy = (use.draw - e) / (e * (1 - e)) * (use.outcome - middle)
    return np.asarray(noisy - cell_means(noisy[:, None], use.state, np.ones(e.size))[:, 0])


def _winning(variance: Estimate, share: float) -> Size:
    """What acting on the `share` who gain most adds to each action, compared with acting at random: sd · φ(z) / share."""
    if not math.isfinite(variance.value) or not 0 < share < 1:
        return Size()
    from scipy.special import ndtri

    factor = math.exp(-0.5 * float(ndtri(share)) ** 2) / math.sqrt(2 * math.pi) / share
    value, low, high = (math.sqrt(max(0.0, part)) * factor for part in (variance.value, variance.low, variance.high))
    return Size(value, low, high, math.sqrt(2.8 * variance.error) * factor)


def _describe(variance: Estimate, winning: Size, share: float) -> str:
    if not math.isfinite(winning.value):
        return "What targeting can win is not known."
    return (
        f"If the people who gain most were known, choosing {show_percent(share)} of them would add at most {winning.show()} to "
        f"each action, compared with acting at random in the same states."
    )
