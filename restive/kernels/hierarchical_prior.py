"""Empirical-Bayes priors: a Dirichlet prior for each row of transitions, and shrinkage of rewards.

moves  [N, A, S, S]  how often each agent moved from s to t under a
pool   [A, S, S]     pseudo-counts: pool[a, s] = weight · row, where row sums to one

The rows of agents are modelled as Dirichlet draws around the pool's row. Two moves of one agent from the same state
agree more often than two moves of different agents, by the intra-agent correlation 1 / (weight + 1); so the weight
follows from counting agreeing pairs, without iteration (the method of moments for the Dirichlet-multinomial
distribution). Agents are weighted by how much their counts say: n / (weight + n) for the row, and its square for the
weight. Rewards are shrunk by the variance within agents over the variance between them (one-way random effects).
"""

import numpy as np

from restive.kernels.jit import compiled
from restive.types import Floats

# Pseudo-observations of each entry of a row: a share of them uniform, the rest as under the other action.
PRIOR_MOVES, UNIFORM_SHARE = 3.0, 0.5
# Pseudo-agents, with this many moves each, that differ as much as uniformly distributed rows do.
PRIOR_AGENTS, MOVES_OF_PRIOR_AGENT = 2.0, 10.0
# Outside this range agents have practically nothing in common, or no individual differences.
MIN_WEIGHT, MAX_WEIGHT = 0.2, 200.0
# Below this share of variance between agents, rewards count as equal for all agents, with the largest weight.
MIN_VARIANCE_SHARE, MAX_REWARD_WEIGHT = 1e-9, 1e9


@compiled
def learn_pool(moves: Floats, pool: Floats) -> None:
    """Update the pool from the moves, starting from its present weights.

    >>> pool = np.ones((2, 2, 2))
    >>> always = np.tile([[0.0, 20.0], [20.0, 0.0]], (30, 2, 1, 1))  # thirty agents that always change their state
    >>> for _ in range(9):
    ...     learn_pool(always, pool)
    >>> float((pool[0, 0, 1] / pool[0, 0].sum()).round(2)), bool(pool[0, 0].sum() > 100)
    (1.0, True)
    """
    agents, actions, states, _ = moves.shape
    for a in range(actions):
        for s in range(states):
            weight = pool[a, s].sum()
            _pool_row(moves, a, s, weight, pool[1 - a, s], pool[a, s])
            square = 0.0
            for t in range(states):
                square += pool[a, s, t] ** 2
            correlation, total = prior_correlation(weight, states)
            for n in range(agents):
                seen, pairs, cross = 0.0, 0.0, 0.0
                for t in range(states):
                    times = moves[n, a, s, t]
                    seen += times
                    pairs += times * (times - 1.0)
                    cross += times * pool[a, s, t]
                if seen > 1.0:
                    found, trust = agent_correlation(seen, pairs, cross, square, weight)
                    correlation, total = correlation + found, total + trust
            weight = next_weight(weight, correlation / total)
            for t in range(states):
                pool[a, s, t] *= weight


@compiled
def prior_correlation(weight: float, states: int) -> tuple[float, float]:
    """Prior pseudo-observations of the intra-agent correlation: its weighted sum and the weight."""
    trust = PRIOR_AGENTS * (MOVES_OF_PRIOR_AGENT / (MOVES_OF_PRIOR_AGENT + weight)) ** 2
    return trust / (states + 1.0), trust


@compiled
def agent_correlation(seen: float, pairs: float, cross: float, square: float, weight: float) -> tuple[float, float]:
    """Weighted intra-agent correlation of an agent's destinations, and its weight.

    seen: the agent's moves; pairs: ordered pairs of them with one destination; cross: Σ_t moves(t) · row(t);
    square: Σ_t row(t)²
    """
    trust = (seen / (weight + seen)) ** 2
    excess = pairs / (seen * (seen - 1.0)) - 2.0 * cross / seen + square
    return trust * excess / max(1.0 - square, 1e-12), trust


@compiled
def next_weight(weight: float, correlation: float) -> float:
    """The geometric mean of a weight and the weight that a correlation implies, 1 / correlation − 1."""
    wanted = min(max(1.0 / correlation - 1.0, MIN_WEIGHT), MAX_WEIGHT) if correlation > 0.0 else MAX_WEIGHT
    return float(np.sqrt(weight * wanted))


@compiled
def _pool_row(moves: Floats, a: int, s: int, weight: float, other: Floats, pool: Floats) -> None:
    """Fill `pool` with the normalised row [a, s] of all agents; `other` is the pool of the other action."""
    agents, states = moves.shape[0], moves.shape[2]
    unseen, other_total = PRIOR_MOVES / (1.0 + weight), other.sum()
    for t in range(states):
        pool[t] = unseen * (UNIFORM_SHARE + (1.0 - UNIFORM_SHARE) * states * other[t] / other_total)
    total = unseen * states
    for n in range(agents):
        seen = 0.0
        for t in range(states):
            seen += moves[n, a, s, t]
        trust = 1.0 / (weight + seen)
        for t in range(states):
            pool[t] += trust * moves[n, a, s, t]
        total += trust * seen
    for t in range(states):
        pool[t] /= total


@compiled
def learn_rewards(arrivals: Floats, total: Floats, squared_deviations: float, reward: Floats) -> None:
    """Fill `reward` [N, S] with each agent's mean reward in each state, shrunk towards the mean of all agents.

    arrivals, total [N, S]: the number of arrivals of each agent in s, and the sum of their rewards
    squared_deviations: the sum of squared deviations of rewards from the mean of their agent and state
    """
    agents, states = arrivals.shape
    weight = _reward_weight(arrivals, total, squared_deviations)
    known, places = 0.0, 0
    for s in range(states):
        sums, norm = 0.0, 0.0
        for n in range(agents):
            if arrivals[n, s] > 0.0:
                sums += total[n, s] / (weight + arrivals[n, s])
                norm += arrivals[n, s] / (weight + arrivals[n, s])
        common = sums / norm if norm > 0.0 else np.nan
        if norm > 0.0:
            known, places = known + common, places + 1
        for n in range(agents):
            seen = arrivals[n, s] > 0.0
            reward[n, s] = (weight * common + total[n, s]) / (weight + arrivals[n, s]) if seen else common
    for s in range(states):
        if np.isnan(reward[0, s]):  # a state that no agent has visited gets the average of the others
            reward[:, s] = known / max(places, 1)


@compiled
def _reward_weight(arrivals: Floats, total: Floats, squared_deviations: float) -> float:
    """The weight of the common mean, in observations: the variance within agents over that between them."""
    agents, states = arrivals.shape
    between, room, cells, count = 0.0, 0.0, 0, 0.0
    for s in range(states):
        whole, squares, sums, there = 0.0, 0.0, 0.0, 0
        for n in range(agents):
            whole += arrivals[n, s]
            squares += arrivals[n, s] ** 2
            sums += total[n, s]
            there += arrivals[n, s] > 0.0
        if there == 0:
            continue
        for n in range(agents):
            if arrivals[n, s] > 0.0:
                between += arrivals[n, s] * (total[n, s] / arrivals[n, s] - sums / whole) ** 2
        room += whole - squares / whole
        cells += there - 1
        count += whole - there
    within = squared_deviations / count if count > 0.0 else between / max(cells, 1)
    excess = between - cells * within
    if room <= 0.0 or excess <= MIN_VARIANCE_SHARE * (between + within):
        return MAX_REWARD_WEIGHT
    return min(within * room / excess, MAX_REWARD_WEIGHT)
