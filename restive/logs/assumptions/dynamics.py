"""Is one step of memory enough, and do people's rows change with time: both by shuffled paths.

For each question several statistics are computed on the observed and on all shuffled paths. Each becomes a tail probability
by a gamma distribution with the same mean and variance; the smallest of them is the statistic whose rank among the
shuffles is the p-value. So the p-value is exact whatever the quality of that approximation. For change it is combined
with that of the trend, whose errors by person see a slow drift more often than shuffles, by Cauchy's distribution (Liu
and Xie 2020): p = 1/2 − arctan(mean of tan((1/2 − p) π)) / π, which holds whatever their dependence.

The size is the root mean square of what the state before, or the period, adds to the expected reward. What shuffles
show by chance is subtracted.
"""

import math

import numpy as np

from restive.formats import show_count, show_mean
from restive.logs.assumptions.estimators import Estimate, cell_means, estimate_effects, score_test
from restive.logs.assumptions.finding import Finding, Question, Size, as_numbers, show_p
from restive.logs.assumptions.path_shuffles import PERIODS, Shuffled
from restive.logs.assumptions.questions import CHANGE, MEMORY
from restive.logs.assumptions.rows import Rows
from restive.types import Floats

MAX_P = 0.99  # in a combination: 1 would outweigh anything
MAX_ROUND_Z = 3.0


def examine_memory(rows: Rows, shuffled: Shuffled) -> Finding:
    """Whether the symbol before predicts the next state, given the present symbol and the person."""
    history = rows.all.history
    value, states = history.value, history.n_states
    table = shuffled.memory
    if not _varies(table):
        return _nothing_to_shuffle(MEMORY)
    by_state = table.reshape(-1, 2, states, 2 * states, states).sum(axis=1)
    by_action = table.reshape(-1, 2, states, 2 * states, states).sum(axis=2)
    expected = table @ value  # the rewards that followed, [., before, now]
    previous = np.tile(value - value.mean(), 2)
    acted = np.repeat([0.0, 1.0], states)
    statistics = (
        _chi_squared(by_state),
        _chi_squared(by_action),
        _chi_squared(np.einsum("rbn,b->r", expected, previous)[:, None]),
        _chi_squared(np.einsum("rbn,b->r", expected, acted)[:, None]),
    )
    size = _root_mean_square(by_state @ value, by_state[0].sum(axis=-1))
    p = rank_smallest(statistics)
    return Finding(
        MEMORY,
        statistic=f"Exact test by {show_count(table.shape[0] - 1, 'shuffle')} of each person's path that keep "
        f"{'all its moves' if shuffled.chained else 'what followed each state and action'}: {show_p(p)}.",
        consequence=f"The state before shifts the expected reward by {size.show()}, typically.",
        size=size,
        p=p,
        numbers={"shuffles": table.shape[0] - 1, "rows": shuffled.rows},
    )


def examine_change(rows: Rows, shuffled: Shuffled) -> Finding:
    """Whether the period predicts the next state, given the present symbol and the person."""
    history = rows.all.history
    table = shuffled.change
    if not _varies(table):
        return _nothing_to_shuffle(CHANGE)
    by_period = table @ history.value  # [., period, now] rewards beyond those expected
    trend = Size.of(shuffled.slope)
    if _acts_steadily(rows):
        p = combine((shuffled.slope.p, rank_smallest(_change_statistics(table, by_period))))
        size = _root_mean_square(by_period, shuffled.in_period)
        shuffles = f"exact test by {show_count(table.shape[0] - 1, 'shuffle')} of each person's path"
        test = f"Trend, errors by person, and {shuffles}, combined"
        parts = f"; single states and periods are off by {size.show()}, typically"
    else:
        p, size, parts = shuffled.slope.p, trend, ""
        test = "People are acted on more or less often over the rounds, so the trend alone is tested, errors by person"
    effect = effect_over_time(rows)
    return Finding(
        CHANGE,
        statistic=f"{test}: {show_p(p)}.{_describe_effect(effect, rows.over or 'round')}",
        consequence=f"The expected reward of the same person in the same state changes by {trend.show()} from the first "
        f"round to the last{parts}.",
        size=size,
        p=p,
        numbers={
            "trend": as_numbers(shuffled.slope),
            "effect_over_time": None if effect is None else [[each.value, each.error] for each in effect],
        },
    )


def _describe_effect(effect: list[Estimate] | None, over: str) -> str:
    if effect is None:
        return ""
    first, change = (show_mean(each.value, each.error) for each in effect)
    return f" The effect of acting over everybody is {first} at {over} 0 and changes by {change} with each {over}."


def _change_statistics(table: Floats, by_period: Floats) -> tuple[Floats, ...]:
    """Trends of single symbols; all partial sums over periods; trends of single moves; everything."""
    middle = np.linspace(-1.0, 1.0, PERIODS) * (PERIODS - 1) / 2
    so_far = np.cumsum(by_period, axis=1)[:, :-1]
    return (
        _chi_squared(np.einsum("rpn,p->rn", by_period, middle)),
        _chi_squared(so_far.sum(axis=-1)),  # as in Nyblom's test: the sum of squares of partial sums
        _chi_squared(np.einsum("rpns,p->rns", table, middle)),
        _chi_squared(table),
    )


def _acts_steadily(rows: Rows) -> bool:
    """Whether people in the same state are acted on as often early as late: shuffles need that."""
    action, state = rows.history.action.astype(np.float64), rows.state
    rate = cell_means(action[:, None], state, np.ones(state.size))[:, 0]
    test = score_test(rows.history.action, rate, rows.history.round.astype(np.float64)[:, None], state)
    return abs(float(test.z[0])) < MAX_ROUND_Z


def effect_over_time(rows: Rows) -> list[Estimate] | None:
    """The effect of acting in the first round and its change in each round, by weighted and centred least squares."""
    use = rows.with_outcome
    if use.history.n_rounds < 4 or not 0 < use.draw.sum() < use.draw.size:
        return None
    time = use.time[:, None]
    moderators = np.hstack([np.ones_like(time), time])
    controls = np.hstack([use.controls, time])
    return estimate_effects(
        use.outcome, use.draw, use.propensity, controls, use.agent, use.history.n_agents,
        moderators, use.corrected,
    )  # fmt: skip


def combine(p: tuple[float, ...]) -> float:
    """One p-value of several, by Cauchy's distribution.

    >>> round(combine((0.04, 0.04)), 4), round(combine((0.01, 0.5)), 4)
    (0.04, 0.02)
    """
    mean = float(np.mean([math.tan((0.5 - min(each, MAX_P)) * math.pi) for each in p]))
    return 0.5 - math.atan(mean) / math.pi


def rank_smallest(statistics: tuple[Floats, ...]) -> float:
    """The p-value of the smallest tail probability among several statistics, [1 + shuffles] each, the observed first.

    >>> rank_smallest((np.array([9.0, 1, 2, 3]), np.array([1.0, 1, 2, 1])))
    0.5
    """
    from scipy.special import gammaincc

    tails = []
    for statistic in statistics:
        mean, variance = statistic.mean(), statistic.var()
        if variance > 0:
            tails.append(gammaincc(mean**2 / variance, statistic * mean / variance))
    if not tails:
        return 1.0
    smallest = np.min(tails, axis=0)
    return float((smallest <= smallest[0] * (1 + 1e-12)).mean())


def _chi_squared(table: Floats) -> Floats:
    """The sum over cells of squared deviations from the mean over all shuffles, in standard deviations; [1 + shuffles]."""
    flat = table.reshape(table.shape[0], -1)
    deviation = flat - flat.mean(axis=0)
    scale = deviation.std(axis=0)
    used = scale > 1e-9
    return np.asarray(((deviation[:, used] / scale[used]) ** 2).sum(axis=1))


def _root_mean_square(rewards: Floats, rows: Floats) -> Size:
    """The root mean square over rows of the shift of the mean reward in each cell, without what shuffles show."""
    use = rows > 0
    flat = rewards[:, use]
    weight = 1 / rows[use]
    squares = ((flat - flat.mean(axis=0)) ** 2 @ weight) / rows.sum()
    noise, spread = squares[1:].mean(), squares[1:].std()
    freedom = max(1.0, 2 * noise**2 / max(spread**2, 1e-300))
    excess = squares[0] - noise
    error = math.sqrt(spread**2 + 4 * max(excess, 0.0) * noise / freedom)
    low, middle, high = (math.sqrt(max(0.0, excess + 1.96 * sign * error)) for sign in (-1, 0, 1))
    return Size(middle, low, high, math.sqrt(2.8 * spread))


def _varies(table: Floats) -> bool:
    return bool(table.size and (table != table[:1]).any())


def _nothing_to_shuffle(question: Question) -> Finding:
    return Finding(question, "No person's path can be shuffled: it is too short, or its moves fix their order.")
