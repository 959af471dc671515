"""Gibbs sampler of rewards: those of agents around the mean of their state, observed with noise.

arrivals  [N, S]  how often each agent arrived in s, and `total` [N, S] the sum of its rewards there

    reward(n, s) ~ Normal(level(s), spread)        observed with variance `noise`

level [S] and variance [2] (spread between agents, noise within agents) are updated in place.
"""

import math
from typing import NamedTuple

import numpy as np

from restive.kernels.jit import compiled, inlined
from restive.kernels.variates import TINY, draw_gamma, draw_normal, draw_uniform
from restive.types import Floats, Keys


class Rewards(NamedTuple):
    """The observed rewards of the agents."""

    arrivals: Floats  # [N, S]
    total: Floats  # [N, S]
    squared_deviations: float  # of rewards from the mean of their agent and state


@inlined
def begin_rewards(data: Rewards) -> tuple[Floats, Floats]:
    """Mean rewards of the states and moment estimates of both variances, of which none is exactly 0."""
    arrivals, total = data.arrivals, data.total
    agents, states = arrivals.shape
    overall = total.sum() / max(arrivals.sum(), 1.0)
    level = np.empty(states)
    for s in range(states):
        visits = arrivals[:, s].sum()
        level[s] = total[:, s].sum() / visits if visits > 0.0 else overall
    cells, repeated, spread = 0.0, 0.0, 0.0
    for n in range(agents):
        for s in range(states):
            if arrivals[n, s] > 0.0:
                cells, repeated = cells + 1.0, repeated + arrivals[n, s] - 1.0
                spread += (total[n, s] / arrivals[n, s] - level[s]) ** 2
    noise = data.squared_deviations / max(repeated, 1.0)
    smallest = 1e-10 * (level.var() + spread / max(cells, 1.0) + noise) + TINY
    return level, np.array([max(spread / max(cells, 1.0) - noise, 0.1 * noise) + smallest, noise + smallest])


@compiled
def draw_rewards(stream: Keys, data: Rewards, level: Floats, variance: Floats) -> None:
    """Draw the mean reward of each state and both variances; flat priors on means and on the variance between."""
    arrivals, total = data.arrivals, data.total
    agents, states = arrivals.shape
    known = np.zeros(states, np.bool_)
    for s in range(states):
        sums, precision = 0.0, 0.0
        for n in range(agents):
            if arrivals[n, s] > 0.0:
                trust = 1.0 / (variance[0] + variance[1] / arrivals[n, s])
                sums, precision = sums + trust * total[n, s] / arrivals[n, s], precision + trust
        known[s] = precision > 0.0
        if known[s]:
            level[s] = sums / precision + draw_normal(stream) / math.sqrt(precision)
    if known.any() and not known.all():
        others = level[known]
        for s in range(states):
            if not known[s]:
                level[s] = others.mean() + others.std() * draw_normal(stream)
    smallest = 1e-10 * (level.var() + variance.sum()) + TINY
    before = _log_likelihood(data, level, variance[0], variance[1])
    for _ in range(2):
        proposed = variance[0] * math.exp(2.0 * draw_normal(stream)) + smallest
        after = _log_likelihood(data, level, proposed, variance[1])
        if math.log(draw_uniform(stream) + TINY) < after - before + math.log(proposed / variance[0]):
            variance[0], before = proposed, after
    squares, count = data.squared_deviations, 0.0
    for n in range(agents):
        for s in range(states):
            if arrivals[n, s] > 0.0:
                reward = draw_reward(stream, data, level, variance, n, s)
                squares += arrivals[n, s] * (reward - total[n, s] / arrivals[n, s]) ** 2
                count += arrivals[n, s]
    variance[1] = (squares / 2.0 + smallest) / draw_gamma(stream, (1.0 + count) / 2.0)


@compiled
def _log_likelihood(data: Rewards, level: Floats, spread: float, noise: float) -> float:
    """The log-likelihood of the mean rewards of agents, rewards of agents integrated out."""
    value = 0.0
    agents, states = data.arrivals.shape
    for n in range(agents):
        for s in range(states):
            if data.arrivals[n, s] > 0.0:
                variance = spread + noise / data.arrivals[n, s]
                deviation = data.total[n, s] / data.arrivals[n, s] - level[s]
                value -= 0.5 * (math.log(variance) + deviation**2 / variance)
    return value


@compiled
def draw_reward(stream: Keys, data: Rewards, level: Floats, variance: Floats, n: int, s: int) -> float:
    """The reward of agent n in state s."""
    spread, noise = variance
    precision = 1.0 / spread + data.arrivals[n, s] / noise
    center = (level[s] / spread + data.total[n, s] / noise) / precision
    return float(center + draw_normal(stream) / math.sqrt(precision))
