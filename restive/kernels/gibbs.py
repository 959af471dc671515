"""Gibbs sampler of a hierarchical model of people: transition rows and rewards of all agents, with their uncertainty.

moves     [N, A, S, S]  how often each agent moved from s to t under a
arrivals  [N, S]        how often each agent arrived in s, and `total` [N, S] the sum of its rewards there

Each agent has a type k out of K, and its rows lie around those of its type; the rows of types lie around a common row:

    row(n, a, s)    ~ Dirichlet(weight(a, s) · type_row(k, a, s))        type of n ~ share
    type_row(k,a,s) ~ Dirichlet(spread(a) · common(a, s))                common(a, s) ~ Dirichlet(BASE_WEIGHT · pooled(s))
    reward(n, s)    ~ Normal(mean(s), between)                           observed with variance `within`

pooled(s) are the relative frequencies of all moves from s under either action: until acting was tried in a state, it is
taken to be like waiting, with the uncertainty of two moves. A weight is about `scale(s)`, the weight at which cells
other than the most frequent one are distributed like exponential variables (uniform rows for two states), times a factor
that all rows share and that is learned. Everything but `between` (a Metropolis step) is drawn from its exact conditional
distribution, with rows integrated out and the numbers of tables of a Chinese restaurant as auxiliary variables (Teh,
Jordan, Beal and Blei 2006, hierarchical Dirichlet processes; Escobar and West 1995 for the weights).
"""

import math
from typing import NamedTuple

import numpy as np

from restive.kernels.jit import compiled
from restive.kernels.rng import fold, normal_quantile, unit_open
from restive.types import Floats, Ints, Keys

N_TYPES = 10
# The common rows rest on this many moves of the pooled row; a small number, so that data decide.
BASE_WEIGHT = 2.0
# Shape of the gamma distribution of weights around their common factor, and shape and rate of that of the factor.
WEIGHT_SHAPE, FACTOR_SHAPE, FACTOR_RATE = 3.0, 2.0, 2.0
# The spread of types around the common row is exponential with this rate a priori.
SPREAD_RATE = 0.1
# Pseudo-agents, over all types: less than one each, so that types are used only if the data need them.
PSEUDO_AGENTS = 8.0
MIN_WEIGHT, MAX_WEIGHT = 0.05, 1e4
# The smallest share of moves to other states that the scale of a weight distinguishes.
MIN_OTHER_SHARE = 1e-3
TINY = 1e-300


class Data(NamedTuple):
    """The observations of one run."""

    moves: Floats  # [N, A, S, S]
    seen: Floats  # [N, A, S] moves from s under a
    arrivals: Floats  # [N, S]
    total: Floats  # [N, S]
    squared_deviations: float  # of rewards from the mean of their agent and state


class Sample(NamedTuple):
    """One draw of everything that agents share, updated in place, and the type of each agent."""

    kind: Ints  # [N]
    share: Floats  # [K]
    weight: Floats  # [A, S]
    type_row: Floats  # [K, A, S, S]
    common: Floats  # [A, S, S]
    spread: Floats  # [A]
    pooled: Floats  # [S, S]
    scale: Floats  # [S]
    factor: Floats  # [1]
    mean: Floats  # [S] of rewards over agents
    variance: Floats  # [2] of rewards: between agents, and within agents


@compiled
def draw_uniform(stream: Keys) -> float:
    """The next uniform number between 0 and 1 of a stream, [2]: its key, and how many numbers were drawn from it."""
    stream[1] += np.uint64(1)
    return unit_open(fold(stream[0], stream[1]))


@compiled
def draw_normal(stream: Keys) -> float:
    """The next standard normal number of a stream."""
    return normal_quantile(draw_uniform(stream))


@compiled
def draw_gamma(stream: Keys, shape: float) -> float:
    """A gamma variate of scale 1, by rejection (Marsaglia and Tsang 2000); for shapes below 1 by a power of a uniform."""
    if shape < 1.0:
        return draw_gamma_above(stream, shape + 1.0) * math.exp(math.log(draw_uniform(stream)) / shape)
    return draw_gamma_above(stream, shape)


@compiled
def draw_gamma_above(stream: Keys, shape: float) -> float:
    """A gamma variate of scale 1 and of a shape of at least 1."""
    d = shape - 1.0 / 3.0
    while True:
        x = draw_normal(stream)
        v = (1.0 + x / math.sqrt(9.0 * d)) ** 3
        if v > 0.0 and math.log(draw_uniform(stream)) < 0.5 * x * x + d - d * v + d * math.log(v):
            return d * v


@compiled
def begin(stream: Keys, data: Data) -> Sample:
    """A first sample: all agents of one type, and rows as the pooled moves."""
    agents, actions, states, _ = data.moves.shape
    pooled, scale = np.empty((states, states)), np.empty(states)
    for s in range(states):
        pooled[s] = 1.0 / states
        for n in range(agents):
            for a in range(actions):
                pooled[s] += data.moves[n, a, s]
        pooled[s] /= pooled[s].sum()
        scale[s] = _find_scale(pooled[s])
    type_row, common = np.empty((N_TYPES, actions, states, states)), np.empty((actions, states, states))
    for k in range(N_TYPES):
        for a in range(actions):
            common[a] = pooled
            type_row[k, a] = pooled
    mean, variance = _begin_rewards(data)
    weight = np.empty((actions, states))
    weight[:] = scale
    return Sample(
        np.zeros(agents, np.int64), np.full(N_TYPES, 1.0 / N_TYPES), weight, type_row, common, np.full(actions, 5.0),
        pooled, scale, np.ones(1), mean, variance,
    )  # fmt: skip


@compiled
def _find_scale(row: Floats) -> float:
    """The weight at which the cells of a row other than its largest are spread like exponential variables.

    The effective number of these cells (the exponential of their entropy) over their sum: 2 for a row of 1/2 and 1/2,
    S for a uniform row, 40 for a row of 1/40 and 39/40.
    """
    top = int(np.argmax(row))
    others, entropy = max(1.0 - row[top], MIN_OTHER_SHARE), 0.0
    for t in range(row.size):
        if t != top and row[t] > 0.0:
            entropy -= row[t] / others * np.log(row[t] / others)
    return float(np.exp(max(entropy, 0.0)) / others)


@compiled
def _begin_rewards(data: Data) -> tuple[Floats, Floats]:
    """Mean rewards of the states and moment estimates of both variances, of which none is exactly 0."""
    arrivals, total = data.arrivals, data.total
    agents, states = arrivals.shape
    overall = total.sum() / max(arrivals.sum(), 1.0)
    mean = np.empty(states)
    for s in range(states):
        visits = arrivals[:, s].sum()
        mean[s] = total[:, s].sum() / visits if visits > 0.0 else overall
    cells, repeated, between = 0.0, 0.0, 0.0
    for n in range(agents):
        for s in range(states):
            if arrivals[n, s] > 0.0:
                cells, repeated = cells + 1.0, repeated + arrivals[n, s] - 1.0
                between += (total[n, s] / arrivals[n, s] - mean[s]) ** 2
    within = data.squared_deviations / max(repeated, 1.0)
    smallest = 1e-10 * (mean.var() + between / max(cells, 1.0) + within) + TINY
    return mean, np.array([max(between / max(cells, 1.0) - within, 0.1 * within) + smallest, within + smallest])


@compiled
def sweep(stream: Keys, data: Data, sample: Sample) -> None:
    """One sweep over everything that agents share, and the types of the agents."""
    _draw_types(stream, data, sample)
    tables = np.zeros(sample.type_row.shape)
    _draw_weights(stream, data, sample, tables)
    _draw_type_rows(stream, sample, tables)
    _draw_rewards(stream, data, sample)


@compiled
def draw_dirichlet(stream: Keys, shape: Floats, row: Floats) -> None:
    """Fill `row` with a Dirichlet draw; if all gamma variates underflow, the largest cell gets everything."""
    total = 0.0
    for t in range(shape.size):
        row[t] = draw_gamma(stream, shape[t]) if shape[t] > 0.0 else 0.0
        total += row[t]
    if total > TINY:
        row /= total
    else:
        row[:] = 0.0
        row[np.argmax(shape)] = 1.0


@compiled
def _log_rising(x: float, times: float) -> float:
    """log Γ(x + times) / Γ(x) for a whole number of times."""
    if times > 4.0:
        return math.lgamma(x + times) - math.lgamma(x)
    product = 1.0
    for i in range(int(times)):
        product *= x + i
    return math.log(max(product, TINY))


@compiled
def draw_type(stream: Keys, moves: Floats, sample: Sample) -> int:
    """A type for an agent with these moves, [A, S, S], by its posterior probability."""
    actions, states, _ = moves.shape
    score = np.empty(N_TYPES)
    for k in range(N_TYPES):
        score[k] = math.log(sample.share[k] + TINY)
        for a in range(actions):
            for s in range(states):
                for t in range(states):
                    if moves[a, s, t] > 0.0:
                        shape = sample.weight[a, s] * sample.type_row[k, a, s, t] + 1e-12
                        score[k] += _log_rising(shape, moves[a, s, t])
    best, total = score.max(), 0.0
    for k in range(N_TYPES):
        score[k] = math.exp(score[k] - best)
        total += score[k]
    rest, k = draw_uniform(stream) * total - score[0], 0
    while rest > 0.0 and k < N_TYPES - 1:
        k += 1
        rest -= score[k]
    return k


@compiled
def _draw_types(stream: Keys, data: Data, sample: Sample) -> None:
    number = np.full(N_TYPES, PSEUDO_AGENTS / N_TYPES)
    for n in range(sample.kind.size):
        sample.kind[n] = draw_type(stream, data.moves[n], sample)
        number[sample.kind[n]] += 1.0
    draw_dirichlet(stream, number, sample.share)


@compiled
def _draw_tables(stream: Keys, customers: float, weight: float) -> float:
    """The number of tables of a Chinese restaurant: how many of the moves are not repetitions."""
    if customers < 1.0:
        return 0.0
    tables = 1.0
    for seated in range(1, int(customers)):
        tables += draw_uniform(stream) * (weight + seated) < weight
    return tables


@compiled
def _draw_auxiliary(stream: Keys, weight: float, seen: float) -> tuple[float, float]:
    """The auxiliary variables of a weight: minus the logarithm of a beta variate, and a coin."""
    one, other = draw_gamma(stream, weight + 1.0), draw_gamma(stream, seen)
    coin = 1.0 if draw_uniform(stream) * (seen + weight) < seen else 0.0
    return -math.log(max(one, TINY) / (one + other)), coin


@compiled
def _draw_weights(stream: Keys, data: Data, sample: Sample, tables: Floats) -> None:
    """Draw the weights and their common factor; fill `tables` [K, A, S, S], the moves that teach the rows of types."""
    agents, actions, states, _ = data.moves.shape
    relative = 0.0
    for a in range(actions):
        for s in range(states):
            weight, shape, rate = sample.weight[a, s], WEIGHT_SHAPE, WEIGHT_SHAPE * sample.factor[0] / sample.scale[s]
            for n in range(agents):
                if data.seen[n, a, s] > 0.0:
                    k = sample.kind[n]
                    more, coin = _draw_auxiliary(stream, weight, data.seen[n, a, s])
                    rate, shape = rate + more, shape - coin
                    for t in range(states):
                        drawn = _draw_tables(stream, data.moves[n, a, s, t], weight * sample.type_row[k, a, s, t])
                        tables[k, a, s, t] += drawn
                        shape += drawn
            sample.weight[a, s] = min(max(draw_gamma(stream, shape) / rate, MIN_WEIGHT), MAX_WEIGHT)
            relative += sample.weight[a, s] / sample.scale[s]
    shape = FACTOR_SHAPE + WEIGHT_SHAPE * actions * states
    sample.factor[0] = draw_gamma(stream, shape) / (FACTOR_RATE + WEIGHT_SHAPE * relative)


@compiled
def _draw_type_rows(stream: Keys, sample: Sample, tables: Floats) -> None:
    """Draw the common rows, the spread of types around them, and the rows of types."""
    _, actions, states, _ = tables.shape
    for a in range(actions):
        shape, rate = 1.0, SPREAD_RATE
        for s in range(states):
            learned = BASE_WEIGHT * sample.pooled[s]
            for k in range(N_TYPES):
                seen = tables[k, a, s].sum()
                if seen > 0.0:
                    more, coin = _draw_auxiliary(stream, sample.spread[a], seen)
                    rate, shape = rate + more, shape - coin
                    for t in range(states):
                        drawn = _draw_tables(stream, tables[k, a, s, t], sample.spread[a] * sample.common[a, s, t])
                        learned[t] += drawn
                        shape += drawn
            draw_dirichlet(stream, learned, sample.common[a, s])
        sample.spread[a] = min(max(draw_gamma(stream, shape) / rate, MIN_WEIGHT), MAX_WEIGHT)
        for k in range(N_TYPES):
            for s in range(states):
                draw_dirichlet(
                    stream, sample.spread[a] * sample.common[a, s] + tables[k, a, s], sample.type_row[k, a, s]
                )


@compiled
def _draw_rewards(stream: Keys, data: Data, sample: Sample) -> None:
    """Draw the mean reward of each state and both variances; flat priors on means and on the variance between."""
    arrivals, total, variance = data.arrivals, data.total, sample.variance
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
            sample.mean[s] = sums / precision + draw_normal(stream) / math.sqrt(precision)
    if known.any() and not known.all():
        others = sample.mean[known]
        for s in range(states):
            if not known[s]:
                sample.mean[s] = others.mean() + others.std() * draw_normal(stream)
    smallest = 1e-10 * (sample.mean.var() + variance.sum()) + TINY
    before = _log_likelihood(data, sample.mean, variance[0], variance[1])
    for _ in range(2):
        proposed = variance[0] * math.exp(2.0 * draw_normal(stream)) + smallest
        after = _log_likelihood(data, sample.mean, proposed, variance[1])
        if math.log(draw_uniform(stream) + TINY) < after - before + math.log(proposed / variance[0]):
            variance[0], before = proposed, after
    squares, count = data.squared_deviations, 0.0
    for n in range(agents):
        for s in range(states):
            if arrivals[n, s] > 0.0:
                reward = draw_reward(stream, data, sample, n, s)
                squares += arrivals[n, s] * (reward - total[n, s] / arrivals[n, s]) ** 2
                count += arrivals[n, s]
    variance[1] = (squares / 2.0 + smallest) / draw_gamma(stream, (1.0 + count) / 2.0)


@compiled
def _log_likelihood(data: Data, mean: Floats, between: float, within: float) -> float:
    """The log-likelihood of the mean rewards of agents, rewards of agents integrated out."""
    value = 0.0
    for n in range(data.arrivals.shape[0]):
        for s in range(data.arrivals.shape[1]):
            if data.arrivals[n, s] > 0.0:
                variance = between + within / data.arrivals[n, s]
                deviation = data.total[n, s] / data.arrivals[n, s] - mean[s]
                value -= 0.5 * (math.log(variance) + deviation**2 / variance)
    return value


@compiled
def draw_reward(stream: Keys, data: Data, sample: Sample, n: int, s: int) -> float:
    """The reward of agent n in state s."""
    between, within = sample.variance[0], sample.variance[1]
    precision = 1.0 / between + data.arrivals[n, s] / within
    center = (sample.mean[s] / between + data.total[n, s] / within) / precision
    return float(center + draw_normal(stream) / math.sqrt(precision))
