"""Gibbs sampler of a hierarchical model of people: the transition rows of all agents, with their uncertainty.

moves     [N, A, S, S]  how often each agent moved from s to t under a
features  [N, F]        fixed numbers of each agent, standardised

The row of an agent is a chain of choices: the most frequent next state or not, if not the second most frequent or not,
and so on. C = S (S − 1) such choices, each with a logit for waiting and one for acting, which belong together:

    logits(n, c) ~ Normal(type_mean(k, c) + Σ_f features(n, f) · slope(f, c), within(c))     type k of n ~ share
    type_mean(k, c) ~ Normal(mean(c), between)        mean(c) ~ Normal(pooled(c), shift)      slope(f, c) ~ Normal(0, bend)

So it is learned from those on whom was acted how acting goes with waiting, and those on whom was not acted are not taken
to be like them in the rest. All covariances are 2 by 2 with inverse Wishart priors; those within types have a common
scale, which is learned. pooled(c) is the logit of all moves under either action: until acting was tried in a state, it
is about like waiting. All is drawn from conditional distributions given Pólya-gamma
variates for the logits (Polson, Scott and Windle 2013), types and means with the logits integrated out, and covariances
also by Metropolis steps. pooled(c) is no estimate of mean(c): where agents differ more, means are farther from 0.
"""

import math
from typing import NamedTuple

import numpy as np

from restive.kernels.jit import compiled, inlined
from restive.kernels.variates import (
    TINY,
    Symmetric,
    draw_dirichlet,
    draw_normal,
    draw_pair,
    draw_polya_gamma,
    draw_uniform,
    draw_wishart,
    invert,
)
from restive.types import Bools, Floats, Ints, Keys

N_TYPES = 10
# Pseudo-agents, over all types: less than one each, so that types are used only if the data need them.
PSEUDO_AGENTS = 8.0
# Degrees of freedom and scales of the inverse Wishart priors of covariances.
FREEDOM, WITHIN_FREEDOM = 4.0, 5.0
SCALE_FREEDOM = 3.0
BETWEEN_SCALE, BEND_SCALE = 3.0, 0.1
# The scale within types is about this a priori, and more with few states: about that of uniform rows.
WITHIN_SCALE, MORE_PER_STATE = 2.0, 8.0
# Variances of the mean logits of waiting around the pooled ones, and of those of acting around those of waiting.
WAIT_SHIFT, ACT_SHIFT = 4.0, 2.0
# Steps of stretches are normal, with standard deviations from this one down to a hundredth of it.
MAX_STRETCH, MIN_STRETCH_LOG = 0.5, 4.6


class Data(NamedTuple):
    """The observations of one run; what agents share is learned from the first `teachers` of them."""

    teachers: int
    order: Ints  # [S, S] next states of each state, the most frequent one first
    trials: Floats  # [N, C, A] how often a choice was met
    excess: Floats  # [N, C, A] how often it was taken, less half of `trials`
    features: Floats  # [N, F]


class Sample(NamedTuple):
    """One draw of everything, updated in place; covariances are the triples of symmetric matrices."""

    kind: Ints  # [N]
    share: Floats  # [K]
    logit: Floats  # [N, C, A]
    offset: Floats  # [N, C, A] of the features
    precision: Floats  # [N, C, A] of the augmented observations of logits
    information: Floats  # [N, C, 3] of these observations on the means, logits integrated out, and
    pull: Floats  # [N, C, A] information times observation
    pooled: Floats  # [C]
    mean: Floats  # [C, A]
    type_mean: Floats  # [K, C, A]
    slope: Floats  # [F, C, A]
    within: Floats  # [C, 3] inverse covariance
    covariance: Floats  # [2, 3] between, bend: inverse covariances
    scale: Floats  # [3] common scale of the covariances within types


@compiled
def gather(moves: Floats, teachers: int, features: Floats) -> Data:
    """The observations of one run from its moves, [N, A, S, S]."""
    agents, actions, states, _ = moves.shape
    order = np.empty((states, states), np.int64)
    trials, excess = (
        np.zeros((agents, states * (states - 1), actions)),
        np.zeros((agents, states * (states - 1), actions)),
    )
    for s in range(states):
        frequency = np.zeros(states)
        for n in range(agents):
            frequency += moves[n, 0, s] + moves[n, 1, s]
        order[s] = np.argsort(-frequency, kind="mergesort")
        for n in range(agents):
            for a in range(actions):
                left = moves[n, a, s].sum()
                for j in range(states - 1):
                    taken = moves[n, a, s, order[s, j]]
                    trials[n, s * (states - 1) + j, a] = left
                    excess[n, s * (states - 1) + j, a] = taken - left / 2.0
                    left -= taken
    return Data(teachers, order, trials, excess, features)


@inlined
def begin(stream: Keys, data: Data) -> Sample:
    """A first sample: types at random, and logits as of the pooled moves."""
    agents, choices, actions = data.trials.shape
    pooled, mean = np.empty(choices), np.empty((choices, actions))
    for c in range(choices):
        met, beyond = 1.0, 0.0
        for n in range(data.teachers):
            for a in range(actions):
                met += data.trials[n, c, a]
                beyond += data.excess[n, c, a]
        pooled[c] = math.log((met / 2.0 + beyond) / (met / 2.0 - beyond))
        mean[c] = pooled[c]
    type_mean, logit = np.empty((N_TYPES, choices, actions)), np.empty((agents, choices, actions))
    type_mean[:] = mean
    logit[:] = mean
    kind = np.empty(agents, np.int64)
    for n in range(agents):
        kind[n] = int(draw_uniform(stream) * N_TYPES)
    within, covariance = np.zeros((choices, 3)), np.zeros((2, 3))
    within[:, 0] = within[:, 2] = covariance[:, 0] = covariance[:, 2] = 1.0
    scale = find_prior_scale(data) * np.array([1.0, 0.0, 1.0])
    empty = np.zeros((3, agents, choices, actions))
    return Sample(
        kind, np.full(N_TYPES, 1.0 / N_TYPES), logit, empty[0], empty[1], np.zeros((agents, choices, 3)), empty[2],
        pooled, mean, type_mean, np.zeros((data.features.shape[1], choices, actions)), within, covariance,
        scale,
    )  # fmt: skip


@compiled
def find_prior_scale(data: Data) -> float:
    """The scale of the covariances within types that is expected before anything is observed."""
    return float(WITHIN_SCALE + MORE_PER_STATE / data.order.shape[0])


@compiled
def sweep(stream: Keys, data: Data, sample: Sample, agents: int) -> None:
    """One sweep over what agents share and over the first `agents`, at least the teachers."""
    _observe(stream, data, sample, agents)
    _draw_types(stream, data, sample, agents)
    _draw_type_means(stream, data, sample)
    _draw_slopes(stream, data, sample)
    _draw_logits(stream, data, sample, agents)
    _draw_within(stream, data, sample)
    move = int(draw_uniform(stream) * 6.0)
    _stretch(stream, data, sample, move // 3, move % 3)


@inlined
def _observe(stream: Keys, data: Data, sample: Sample, agents: int) -> None:
    """Draw the augmented observations of all logits, and find what they say on the means."""
    _, choices, actions = data.trials.shape
    precision, pull = sample.precision, sample.pull
    for n in range(agents):
        for c in range(choices):
            for a in range(actions):
                met = data.trials[n, c, a]
                precision[n, c, a] = draw_polya_gamma(stream, met, sample.logit[n, c, a]) if met > 0.0 else 0.0
            wait, act = precision[n, c]
            p, q, r = sample.within[c]
            e, f, g = invert(p + wait, q, r + act)
            one, two = data.excess[n, c]
            sample.information[n, c] = wait - wait * e * wait, -wait * f * act, act - act * g * act
            pull[n, c] = one - wait * (e * one + f * two), two - act * (f * one + g * two)


@inlined
def _draw_types(stream: Keys, data: Data, sample: Sample, agents: int) -> None:
    choices = data.trials.shape[1]
    number, score = np.full(N_TYPES, PSEUDO_AGENTS / N_TYPES), np.empty(N_TYPES)
    for n in range(agents):
        for k in range(N_TYPES):
            score[k] = math.log(sample.share[k] + TINY)
            for c in range(choices):
                p, q, r = sample.information[n, c]
                if p + r > 0.0:
                    x = sample.type_mean[k, c, 0] + sample.offset[n, c, 0]
                    y = sample.type_mean[k, c, 1] + sample.offset[n, c, 1]
                    score[k] += x * sample.pull[n, c, 0] + y * sample.pull[n, c, 1]
                    score[k] -= 0.5 * (p * x * x + r * y * y) + q * x * y
        sample.kind[n] = _draw_index(stream, score)
        if n < data.teachers:
            number[sample.kind[n]] += 1.0
    draw_dirichlet(stream, number, sample.share)


@inlined
def _draw_index(stream: Keys, score: Floats) -> int:
    """An index by probabilities whose logarithms are given up to a constant."""
    best, total = score.max(), 0.0
    for k in range(score.size):
        score[k] = math.exp(score[k] - best)
        total += score[k]
    rest, k = draw_uniform(stream) * total - score[0], 0
    while rest > 0.0 and k < score.size - 1:
        k += 1
        rest -= score[k]
    return k


@inlined
def _draw_type_means(stream: Keys, data: Data, sample: Sample) -> None:
    """Draw the means of types, logits of agents integrated out, and the means around which they lie."""
    _, choices, _ = data.trials.shape
    known, pull = np.zeros((N_TYPES, choices, 3)), np.zeros((N_TYPES, choices, 2))
    used = np.zeros(N_TYPES, np.bool_)
    for n in range(data.teachers):
        k = sample.kind[n]
        used[k] = True
        for c in range(choices):
            p, q, r = sample.information[n, c]
            x, y = sample.offset[n, c]
            known[k, c, 0] += p
            known[k, c, 1] += q
            known[k, c, 2] += r
            pull[k, c, 0] += sample.pull[n, c, 0] - p * x - q * y
            pull[k, c, 1] += sample.pull[n, c, 1] - q * x - r * y
    a, b, d = sample.covariance[0]
    between = np.zeros(3)
    for c in range(choices):
        x, y = sample.mean[c]
        for k in range(N_TYPES):
            p, q, r = known[k, c]
            pulled = (pull[k, c, 0] + a * x + b * y, pull[k, c, 1] + b * x + d * y)
            sample.type_mean[k, c] = draw_pair(stream, (p + a, q + b, r + d), pulled)
        _draw_mean(stream, sample, used, c)
        for k in range(N_TYPES):
            if used[k]:
                x, y = sample.type_mean[k, c]
                _add_square(between, x - sample.mean[c, 0], y - sample.mean[c, 1])
    sample.covariance[0] = draw_inverse(stream, FREEDOM + choices * used.sum(), BETWEEN_SCALE, between)
    a, b, d = sample.covariance[0]
    for k in range(N_TYPES):
        if not used[k]:
            for c in range(choices):
                x, y = sample.mean[c]
                sample.type_mean[k, c] = draw_pair(stream, (a, b, d), (a * x + b * y, b * x + d * y))


@inlined
def _draw_mean(stream: Keys, sample: Sample, used: Bools, c: int) -> None:
    """Draw the mean of a choice from the means of the types that are used."""
    a, b, d = sample.covariance[0]
    p, q, r = invert(WAIT_SHIFT, WAIT_SHIFT, WAIT_SHIFT + ACT_SHIFT)
    one, two, number = (p + q) * sample.pooled[c], (q + r) * sample.pooled[c], 0.0
    for k in range(N_TYPES):
        if used[k]:
            x, y = sample.type_mean[k, c]
            one, two, number = one + a * x + b * y, two + b * x + d * y, number + 1.0
    sample.mean[c] = draw_pair(stream, (p + number * a, q + number * b, r + number * d), (one, two))


@compiled
def _add_square(total: Floats, x: float, y: float) -> None:
    total[0] += x * x
    total[1] += x * y
    total[2] += y * y


@compiled
def draw_inverse(stream: Keys, freedom: float, scale: float, squares: Floats) -> Symmetric:
    """The inverse of a covariance with an inverse Wishart prior of this scale, given sums of squares."""
    return draw_wishart(stream, freedom, invert(squares[0] + scale, squares[1], squares[2] + scale))


@inlined
def _draw_slopes(stream: Keys, data: Data, sample: Sample) -> None:
    """Draw what features add to the means, one feature after the other."""
    agents, choices, _ = data.trials.shape
    bend = np.zeros(3)
    for f in range(data.features.shape[1]):
        a, b, d = sample.covariance[1]
        for c in range(choices):
            known, one, two = (a, b, d), 0.0, 0.0
            first, second = sample.slope[f, c]
            for n in range(data.teachers):
                z = data.features[n, f]
                p, q, r = sample.information[n, c]
                x = sample.type_mean[sample.kind[n], c, 0] + sample.offset[n, c, 0] - z * first
                y = sample.type_mean[sample.kind[n], c, 1] + sample.offset[n, c, 1] - z * second
                known = (known[0] + z * z * p, known[1] + z * z * q, known[2] + z * z * r)
                one += z * (sample.pull[n, c, 0] - p * x - q * y)
                two += z * (sample.pull[n, c, 1] - q * x - r * y)
            x, y = draw_pair(stream, known, (one, two))
            sample.slope[f, c] = x, y
            _add_square(bend, x, y)
            for n in range(agents):
                sample.offset[n, c, 0] += data.features[n, f] * (x - first)
                sample.offset[n, c, 1] += data.features[n, f] * (y - second)
    if data.features.shape[1] > 0:
        sample.covariance[1] = draw_inverse(stream, FREEDOM + choices * data.features.shape[1], BEND_SCALE, bend)


@inlined
def _draw_logits(stream: Keys, data: Data, sample: Sample, agents: int) -> None:
    choices = data.trials.shape[1]
    for n in range(agents):
        for c in range(choices):
            p, q, r = sample.within[c]
            x = sample.type_mean[sample.kind[n], c, 0] + sample.offset[n, c, 0]
            y = sample.type_mean[sample.kind[n], c, 1] + sample.offset[n, c, 1]
            one, two = data.excess[n, c]
            known = (p + sample.precision[n, c, 0], q, r + sample.precision[n, c, 1])
            sample.logit[n, c] = draw_pair(stream, known, (one + p * x + q * y, two + q * x + r * y))


@inlined
def _draw_within(stream: Keys, data: Data, sample: Sample) -> None:
    """Draw the covariances within types, and the scale that they share."""
    choices = sample.within.shape[0]
    total = np.zeros(3)
    for c in range(choices):
        total += sample.within[c]
    prior = SCALE_FREEDOM / find_prior_scale(data)
    known = (prior + total[0], total[1], prior + total[2])
    sample.scale[:] = draw_wishart(stream, SCALE_FREEDOM + WITHIN_FREEDOM * choices, invert(*known))
    for c in range(choices):
        squares = sample.scale.copy()
        for n in range(data.teachers):
            x = sample.logit[n, c, 0] - sample.type_mean[sample.kind[n], c, 0] - sample.offset[n, c, 0]
            y = sample.logit[n, c, 1] - sample.type_mean[sample.kind[n], c, 1] - sample.offset[n, c, 1]
            _add_square(squares, x, y)
        sample.within[c] = draw_inverse(stream, WITHIN_FREEDOM + data.teachers, 0.0, squares)


@inlined
def _stretch(stream: Keys, data: Data, sample: Sample, level: int, kind: int) -> None:
    """Stretch or shear all deviations of one level together with their covariances, by a Metropolis step.

    Where little was observed, deviations and covariances hold each other fast if they are drawn in turn; this moves both
    (a group move, Liu and Sabatti 2000). level: 0 for agents around types, 1 for types around means; kind: 0 and 1
    stretch the deviations of waiting and of acting, 2 adds a part of those of waiting to those of acting.
    """
    step = draw_normal(stream) * MAX_STRETCH * math.exp(-MIN_STRETCH_LOG * draw_uniform(stream))
    p = math.exp(step) if kind == 0 else 1.0
    q = step if kind == 2 else 0.0
    r = math.exp(step) if kind == 1 else 1.0
    change = 0.0
    for n in range(data.teachers):
        for c in range(data.trials.shape[1]):
            if data.trials[n, c, 0] + data.trials[n, c, 1] > 0.0:
                x, y = _deviation(sample, level, n, c)
                change += _log_odds(data, sample, n, c, 0, (p - 1.0) * x)
                change += _log_odds(data, sample, n, c, 1, q * x + (r - 1.0) * y)
    a, b, d = sample.scale
    if level == 1:
        a, b, d = sample.covariance[0]
        a, b, d = invert(a, b, d)
    moved = (p * p * a, p * (q * a + r * b), q * q * a + 2.0 * q * r * b + r * r * d)
    change += 3.0 * math.log(p * r)
    if level == 0:
        change -= 0.5 * SCALE_FREEDOM / find_prior_scale(data) * (moved[0] - a + moved[2] - d)
    else:
        e, _, f = invert(*moved)
        change -= (FREEDOM + 3.0) * math.log(p * r)
        change -= 0.5 * BETWEEN_SCALE * (e + f - sample.covariance[0, 0] - sample.covariance[0, 2])
    if math.log(draw_uniform(stream)) < change:
        _move(data, sample, level, p, q, r)


@compiled
def _deviation(sample: Sample, level: int, n: int, c: int) -> tuple[float, float]:
    k = sample.kind[n]
    x, y = sample.type_mean[k, c]
    if level == 0:
        return sample.logit[n, c, 0] - x - sample.offset[n, c, 0], sample.logit[n, c, 1] - y - sample.offset[n, c, 1]
    return x - sample.mean[c, 0], y - sample.mean[c, 1]


@compiled
def _log_odds(data: Data, sample: Sample, n: int, c: int, a: int, step: float) -> float:
    """How a step of a logit changes the log-likelihood of what was observed of it."""
    trials, logit = data.trials[n, c, a], sample.logit[n, c, a]
    if trials == 0.0 or step == 0.0:
        return 0.0
    before, after = abs(logit), abs(logit + step)
    spread = 0.5 * (after - before) + math.log1p(math.exp(-after)) - math.log1p(math.exp(-before))
    return float(data.excess[n, c, a] * step - trials * spread)


@inlined
def _move(data: Data, sample: Sample, level: int, p: float, q: float, r: float) -> None:
    """Apply the map (x, y) → (p x, q x + r y) to all deviations of a level, and to their covariances."""
    choices = data.trials.shape[1]
    for c in range(choices):
        for n in range(data.teachers):
            x, y = _deviation(sample, level, n, c)
            sample.logit[n, c, 0] += (p - 1.0) * x
            sample.logit[n, c, 1] += q * x + (r - 1.0) * y
        if level == 0:
            sample.within[c] = _map_inverse(sample.within[c], p, q, r)
        else:
            for k in range(N_TYPES):
                x, y = sample.type_mean[k, c, 0] - sample.mean[c, 0], sample.type_mean[k, c, 1] - sample.mean[c, 1]
                sample.type_mean[k, c, 0] += (p - 1.0) * x
                sample.type_mean[k, c, 1] += q * x + (r - 1.0) * y
    if level == 0:
        a, b, d = sample.scale
        sample.scale[:] = p * p * a, p * (q * a + r * b), q * q * a + 2.0 * q * r * b + r * r * d
    else:
        sample.covariance[0] = _map_inverse(sample.covariance[0], p, q, r)


@compiled
def _map_inverse(precision: Floats, p: float, q: float, r: float) -> Symmetric:
    """The inverse covariance of (p x, q x + r y), given that of (x, y)."""
    a, b, d = precision
    u, v = 1.0 / p, -q / (p * r)
    return u * u * a + 2.0 * u * v * b + v * v * d, (u * b + v * d) / r, d / (r * r)


@inlined
def fill_rows(data: Data, sample: Sample, n: int, rows: Floats) -> None:
    """Fill the transition rows of an agent, [A, S, S], from its logits."""
    actions, states, _ = rows.shape
    for a in range(actions):
        for s in range(states):
            left = 1.0
            for j in range(states - 1):
                taken = left / (1.0 + math.exp(-sample.logit[n, s * (states - 1) + j, a]))
                rows[a, s, data.order[s, j]] = taken
                left -= taken
            rows[a, s, data.order[s, states - 1]] = max(left, 0.0)
