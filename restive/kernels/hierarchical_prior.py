"""Empirical-Bayes priors: a hierarchical Dirichlet prior for the rows of transitions, and shrinkage of rewards.

moves         [N, A, S, S]  how often each agent moved from s to t under a
seen          [N, A, S]     how often each agent was in s under a
pool          [A, S, S]     pseudo-counts for an agent without data
agent_weight  [A, S]        weight of the common row for an agent, in moves
base_weight   [1]           weight of the base row for a common row, in moves
base_share    [K]           shares of the candidates in the base row

The rows of agents are modelled as Dirichlet draws around a common row with weight `agent_weight`, and the common rows
as draws around a base row with weight `base_weight`. The base row is a mixture of candidates: uniform; staying; the
same displacement as from other states; the same destinations as from other states; the same row as under the other
action. So rows with little data borrow from rows with much, in the way in which the rows with much data resemble each
other.

Two moves of one agent from the same state agree more often than two moves of different agents, by the intra-agent
correlation 1 / (weight + 1); so the weights follow from counting agreeing pairs, without iteration (the method of
moments for the Dirichlet-multinomial distribution). n moves of an agent count as n · (weight + 1) / (weight + n) for
the common row, and as (n / (weight + n))² for the weight. Rewards are shrunk by the variance within agents over the
variance between them (one-way random effects).
"""

from typing import NamedTuple

import numpy as np

from restive.kernels.block_sums import LAST, SHIFT, add_blocks, count_blocks
from restive.kernels.jit import compiled, inlined
from restive.types import Floats

# Candidates of the base row, their first shares, and the pseudo-moves that keep each from vanishing.
UNIFORM, STAY, DISPLACEMENT, DESTINATION, OTHER_ACTION, N_CANDIDATES = 0, 1, 2, 3, 4, 5
FIRST_UNIFORM_SHARE, UNIFORM_MOVES, CANDIDATE_MOVES = 0.6, 1.0, 0.1
# Each iteration of expectation-maximisation for the shares brings them closer; the next update goes on from there.
SHARE_ITERATIONS = 2
# The first base weight for each state, the pseudo-rows that have it, and how large a base weight makes them count less.
FIRST_BASE_WEIGHT, BASE_PSEUDO_ROWS, BASE_TRUST = 2.0, 2.0, 20.0
# Uniform pseudo-moves of each common row.
UNIFORM_ROW_MOVES = 4.0
# Pseudo-agents that differ as uniformly distributed rows do, and pseudo-agents by which each row's weight is drawn
# towards that of all rows.
PRIOR_AGENTS, SHARED_AGENTS = 0.6, 5.0
# Pseudo-agents, with this many moves each, for the weight around rows other than the common ones.
PSEUDO_AGENTS, MOVES_OF_PSEUDO_AGENT = 2.0, 10.0
# Outside this range agents, or common rows, have practically nothing in common, or nothing of their own.
MIN_WEIGHT, MAX_WEIGHT = 0.2, 500.0
MIN_BASE_WEIGHT, MAX_BASE_WEIGHT = 1.0, 5000.0
# A candidate row without data has this many uniform moves.
CANDIDATE_ROW_MOVES = 0.1
# Below this share of variance between agents, rewards count as equal for all agents, with the largest weight.
MIN_VARIANCE_SHARE, MAX_REWARD_WEIGHT = 1e-9, 1e9


class Levels(NamedTuple):
    """The levels of the prior of one run; see the top of the module."""

    pool: Floats
    agent_weight: Floats
    base_weight: Floats
    base_share: Floats


class Pairs(NamedTuple):
    """What the moves of all agents say of the common rows and of their weights, summed over agents."""

    common: Floats  # [A, S, S] moves, those of each agent counted for what they say of the common row
    size: Floats  # [A, S] their sums
    trust: Floats  # [A, S] what agents with two moves or more say of the weight
    agree: Floats  # [A, S] the share of an agent's pairs of moves with one destination, times trust
    share: Floats  # [A, S, S] the share of each destination in an agent's moves, times trust


def first_shares() -> Floats:
    """The shares of the candidates in the base row before there are data, [K]."""
    shares = np.full(N_CANDIDATES, (1.0 - FIRST_UNIFORM_SHARE) / (N_CANDIDATES - 1))
    shares[UNIFORM] = FIRST_UNIFORM_SHARE
    return shares


@inlined
def learn_pool(moves: Floats, levels: Levels) -> Floats:
    """Update all levels of the prior from the moves, starting from their present weights and shares; returns `seen`."""
    seen, parts = add_pairs(moves, levels.agent_weight)
    learn_levels(as_pairs(add_blocks(parts), moves.shape[1], moves.shape[2]), levels)
    return seen


@compiled
def learn_levels(pairs: Pairs, levels: Levels) -> None:
    """Update all levels of the prior from what all agents say."""
    pool, agent_weight, base_weight, base_share = levels
    common, size = pairs.common, pairs.size
    candidates = _find_candidates(common, size)
    for _ in range(SHARE_ITERATIONS):
        _update_shares(common, size, base_weight[0], candidates, base_share)
    for a in range(pool.shape[0]):
        for s in range(pool.shape[1]):
            for t in range(pool.shape[2]):
                pool[a, s, t] = _mix_candidates(candidates, base_share, a, s, t)
    base_weight[0] = _next_base_weight(common, size, pool, base_weight[0])
    rest = base_weight[0] + UNIFORM_ROW_MOVES
    for a in range(pool.shape[0]):
        for s in range(pool.shape[1]):
            for t in range(pool.shape[2]):
                likely = base_weight[0] * pool[a, s, t] + UNIFORM_ROW_MOVES / pool.shape[2]
                pool[a, s, t] = (likely + common[a, s, t]) / (rest + size[a, s])
    _update_agent_weight(pairs, pool, agent_weight)
    for a in range(pool.shape[0]):
        for s in range(pool.shape[1]):
            weight = _pool_weight(agent_weight[a, s], base_weight[0] + size[a, s])
            for t in range(pool.shape[2]):
                pool[a, s, t] *= weight


@compiled
def as_pairs(sums: Floats, actions: int, states: int) -> Pairs:
    """The sums [K] of a row of `add_pairs`, by what they are."""
    rows = actions * states
    wide = rows * states
    return Pairs(
        sums[:wide].reshape(actions, states, states),
        sums[wide : wide + rows].reshape(actions, states),
        sums[wide + rows : wide + 2 * rows].reshape(actions, states),
        sums[wide + 2 * rows : wide + 3 * rows].reshape(actions, states),
        sums[wide + 3 * rows :].reshape(actions, states, states),
    )


@compiled
def add_pairs(moves: Floats, agent_weight: Floats) -> tuple[Floats, Floats]:
    """How often each agent was in s under a, [N, A, S], and what the agents of each block say, [B, K], in one pass."""
    agents, actions, states, _ = moves.shape
    seen, width = np.zeros((agents, actions, states)), actions * states * (2 * states + 3)
    parts, sums = np.zeros((count_blocks(agents), width)), np.zeros(width)
    common, size, trust, agree, share = as_pairs(sums, actions, states)
    for n in range(agents):
        for a in range(actions):
            for s in range(states):
                number, squares = 0.0, 0.0
                for t in range(states):
                    number += moves[n, a, s, t]
                    squares += moves[n, a, s, t] ** 2
                if number == 0.0:
                    continue
                seen[n, a, s] = number
                per = 1.0 / (agent_weight[a, s] + number)
                counted = (agent_weight[a, s] + 1.0) * per
                size[a, s] += counted * number
                trusted = number * per * per if number > 1.0 else 0.0  # for each move
                if number > 1.0:
                    trust[a, s] += trusted * number
                    agree[a, s] += trusted * (squares - number) / (number - 1.0)
                for t in range(states):
                    common[a, s, t] += counted * moves[n, a, s, t]
                    share[a, s, t] += trusted * moves[n, a, s, t]
        if n & LAST == LAST or n == agents - 1:
            for k in range(width):
                parts[n >> SHIFT, k], sums[k] = sums[k], 0.0
    return seen, parts


@inlined
def _find_candidates(common: Floats, size: Floats) -> Floats:
    """Rows that the common row [a, s] may resemble, found from other rows than itself, [A, S, S, K]."""
    actions, states, _ = common.shape
    candidates = np.zeros((actions, states, states, N_CANDIDATES))
    shift, tried, column = np.empty(2 * states - 1), np.empty(2 * states - 1), np.empty(states)
    for a in range(actions):
        for place in range(2 * states - 1):
            shift[place], tried[place] = 0.0, 0.0
        for t in range(states):
            column[t] = 0.0
        for s in range(states):
            for t in range(states):
                shift[t - s + states - 1] += common[a, s, t]
                tried[t - s + states - 1] += size[a, s]
                column[t] += common[a, s, t]
        for s in range(states):
            for t in range(states):
                place = t - s + states - 1
                moved, possible = shift[place] - common[a, s, t], tried[place] - size[a, s]
                if possible <= 1e-9:  # no other state has that displacement: take the opposite one
                    moved, possible = shift[2 * states - 2 - place], tried[2 * states - 2 - place]
                unseen = CANDIDATE_ROW_MOVES / states
                row = candidates[a, s, t]
                row[UNIFORM], row[STAY] = 1.0 / states, 1.0 if t == s else 0.0
                row[DISPLACEMENT] = (max(moved, 0.0) + unseen) / (max(possible, 0.0) + CANDIDATE_ROW_MOVES)
                row[DESTINATION] = max(column[t] - common[a, s, t], 0.0) + unseen
                row[OTHER_ACTION] = common[1 - a, s, t] + unseen
            for k in range(DISPLACEMENT, N_CANDIDATES):
                total = 0.0
                for t in range(states):
                    total += candidates[a, s, t, k]
                for t in range(states):
                    candidates[a, s, t, k] /= total
    return candidates


@compiled
def _mix_candidates(candidates: Floats, base_share: Floats, a: int, s: int, t: int) -> float:
    probability = 0.0
    for k in range(N_CANDIDATES):
        probability += base_share[k] * candidates[a, s, t, k]
    return probability


@inlined
def _update_shares(common: Floats, size: Floats, base_weight: float, candidates: Floats, base_share: Floats) -> None:
    """One iteration of expectation-maximisation for the shares of the candidates."""
    actions, states, _ = common.shape
    found = np.empty(N_CANDIDATES)
    for k in range(N_CANDIDATES):
        found[k] = UNIFORM_MOVES if k == UNIFORM else CANDIDATE_MOVES
    for a in range(actions):
        for s in range(states):
            trust = (base_weight + 1.0) / (base_weight + max(size[a, s], 1.0))
            for t in range(states):
                if common[a, s, t] > 0.0:
                    part = trust * common[a, s, t] / _mix_candidates(candidates, base_share, a, s, t)
                    for k in range(N_CANDIDATES):
                        found[k] += part * base_share[k] * candidates[a, s, t, k]
    total = found.sum()
    for k in range(N_CANDIDATES):
        base_share[k] = found[k] / total


@inlined
def _next_base_weight(common: Floats, size: Floats, base: Floats, base_weight: float) -> float:
    """The base weight that the distances of the common rows from the base rows imply, approached by half."""
    actions, states, _ = common.shape
    total = BASE_PSEUDO_ROWS / states * (BASE_TRUST / (BASE_TRUST + base_weight)) ** 2
    correlation = total / (FIRST_BASE_WEIGHT * states + 1.0)
    for a in range(actions):
        for s in range(states):
            if size[a, s] > 1.5:
                distance, agree, square = 0.0, 0.0, 0.0
                for t in range(states):
                    row = common[a, s, t] / size[a, s]
                    distance += (row - base[a, s, t]) ** 2
                    agree += row * row
                    square += base[a, s, t] ** 2
                trust = (size[a, s] / (base_weight + size[a, s])) ** 2
                excess = distance - (1.0 - agree) / (size[a, s] - 1.0)
                correlation += trust * excess / max(1.0 - square, 1e-9)
                total += trust
    return next_weight(base_weight, correlation / total, MIN_BASE_WEIGHT, MAX_BASE_WEIGHT)


@inlined
def _update_agent_weight(pairs: Pairs, row: Floats, agent_weight: Floats) -> None:
    """Update the weight of each common row from the intra-agent correlation around it, and around all rows.

    The correlation of each row is the trusted mean over agents of what `agent_correlation` gives for one of them.
    """
    actions, states = agent_weight.shape
    correlation = np.zeros((actions, states))
    for a in range(actions):
        for s in range(states):
            square, cross = 0.0, 0.0
            for t in range(states):
                square += row[a, s, t] ** 2
                cross += row[a, s, t] * pairs.share[a, s, t]
            excess = pairs.agree[a, s] - 2.0 * cross + pairs.trust[a, s] * square
            correlation[a, s] = excess / max(1.0 - square, 1e-12)
    everywhere = (correlation.sum() + PRIOR_AGENTS / (states + 1.0)) / (pairs.trust.sum() + PRIOR_AGENTS)
    for a in range(actions):
        for s in range(states):
            own = (correlation[a, s] + SHARED_AGENTS * everywhere) / (pairs.trust[a, s] + SHARED_AGENTS)
            agent_weight[a, s] = next_weight(agent_weight[a, s], own)


@inlined
def _pool_weight(agent_weight: float, known: float) -> float:
    """The weight of the common row for an agent, less while the row rests on few moves, `known`.

    The row's uncertainty is that of an agent's row around it divided by k = known / (agent_weight + 1) agents, which
    makes (agent_weight + 1) · k / (k + 1) moves, prior moves of the row included.
    """
    agents = known / (agent_weight + 1.0)
    return max((agent_weight + 1.0) * agents / (agents + 1.0) - 1.0, MIN_WEIGHT)


@inlined
def prior_correlation(weight: float, states: int) -> tuple[float, float]:
    """Pseudo-observations of the intra-agent correlation: its weighted sum and the weight."""
    trust = PSEUDO_AGENTS * (MOVES_OF_PSEUDO_AGENT / (MOVES_OF_PSEUDO_AGENT + weight)) ** 2
    return trust / (states + 1.0), trust


@inlined
def agent_correlation(seen: float, pairs: float, cross: float, square: float, weight: float) -> tuple[float, float]:
    """Weighted intra-agent correlation of an agent's destinations, and its weight.

    seen: the agent's moves; pairs: ordered pairs of them with one destination; cross: Σ_t moves(t) · row(t);
    square: Σ_t row(t)²
    """
    trust = (seen / (weight + seen)) ** 2
    excess = pairs / (seen * (seen - 1.0)) - 2.0 * cross / seen + square
    return trust * excess / max(1.0 - square, 1e-12), trust


@compiled
def next_weight(weight: float, correlation: float, lowest: float = MIN_WEIGHT, highest: float = MAX_WEIGHT) -> float:
    """The geometric mean of a weight and the weight that a correlation implies, 1 / correlation − 1."""
    wanted = min(max(1.0 / correlation - 1.0, lowest), highest) if correlation > 0.0 else highest
    return float(np.sqrt(weight * wanted))


@inlined
def learn_rewards(arrivals: Floats, total: Floats, squared_deviations: float, reward: Floats) -> None:
    """Fill `reward` [N, S] with each agent's mean reward in each state, shrunk towards the mean of all agents.

    arrivals, total [N, S]: the number of arrivals of each agent in s, and the sum of their rewards
    squared_deviations: the sum of squared deviations of rewards from the mean of their agent and state
    """
    states = arrivals.shape[1]
    sums = add_blocks(add_arrivals(arrivals, total)).reshape(4, states)
    between = add_blocks(add_between(arrivals, total, sums))[0]
    weight = weigh_rewards(sums, between, squared_deviations)
    shrunk = add_blocks(add_shrunk(arrivals, total, weight)).reshape(2, states)
    fill_rewards(arrivals, total, weight, shrunk, reward)


@compiled
def add_arrivals(arrivals: Floats, total: Floats) -> Floats:
    """For each state the arrivals, their squares, the rewards, and the agents that arrived, by block, [B, 4 · S]."""
    agents, states = arrivals.shape
    parts = np.empty((count_blocks(agents), 4 * states))
    for s in range(states):
        whole, squares, rewards, there = 0.0, 0.0, 0.0, 0
        for n in range(agents):
            whole += arrivals[n, s]
            squares += arrivals[n, s] ** 2
            rewards += total[n, s]
            there += arrivals[n, s] > 0.0
            if n & LAST == LAST or n == agents - 1:
                b = n >> SHIFT
                parts[b, s], parts[b, states + s] = whole, squares
                parts[b, 2 * states + s], parts[b, 3 * states + s] = rewards, there
                whole, squares, rewards, there = 0.0, 0.0, 0.0, 0
    return parts


@compiled
def add_between(arrivals: Floats, total: Floats, sums: Floats) -> Floats:
    """The squared deviations of agents' mean rewards from those of all agents, `sums` [4, S], by block, [B, 1]."""
    agents, states = arrivals.shape
    parts = np.zeros((count_blocks(agents), 1))
    for s in range(states):
        mean, between = sums[2, s] / max(sums[0, s], 1e-300), parts[0, 0]
        for n in range(agents):
            if arrivals[n, s] > 0.0:
                between += arrivals[n, s] * (total[n, s] / arrivals[n, s] - mean) ** 2
            if n & LAST == LAST or n == agents - 1:
                parts[n >> SHIFT, 0] = between
                between = parts[(n >> SHIFT) + 1, 0] if n < agents - 1 else 0.0
    return parts


@compiled
def weigh_rewards(sums: Floats, between: float, squared_deviations: float) -> float:
    """The weight of the common mean, in observations: the variance within agents over that between them."""
    room, cells, count = 0.0, 0.0, 0.0
    for s in range(sums.shape[1]):
        whole, squares, there = sums[0, s], sums[1, s], sums[3, s]
        if there > 0.0:
            room += whole - squares / whole
            cells += there - 1.0
            count += whole - there
    within = squared_deviations / count if count > 0.0 else between / max(cells, 1.0)
    excess = between - cells * within
    if room <= 0.0 or excess <= MIN_VARIANCE_SHARE * (between + within):
        return MAX_REWARD_WEIGHT
    return min(within * room / excess, MAX_REWARD_WEIGHT)


@compiled
def add_shrunk(arrivals: Floats, total: Floats, weight: float) -> Floats:
    """For each state the rewards and arrivals of agents, each agent counted for what it says, by block, [B, 2 · S]."""
    agents, states = arrivals.shape
    parts = np.empty((count_blocks(agents), 2 * states))
    for s in range(states):
        rewards, norm = 0.0, 0.0
        for n in range(agents):
            if arrivals[n, s] > 0.0:
                rewards += total[n, s] / (weight + arrivals[n, s])
                norm += arrivals[n, s] / (weight + arrivals[n, s])
            if n & LAST == LAST or n == agents - 1:
                parts[n >> SHIFT, s], parts[n >> SHIFT, states + s] = rewards, norm
                rewards, norm = 0.0, 0.0
    return parts


@compiled
def fill_rewards(arrivals: Floats, total: Floats, weight: float, shrunk: Floats, reward: Floats) -> None:
    """Fill `reward` [N, S], given the sums `shrunk` [2, S]; a state that no agent visited has the mean of the others."""
    agents, states = arrivals.shape
    known, places = 0.0, 0
    for s in range(states):
        if shrunk[1, s] > 0.0:
            known, places = known + shrunk[0, s] / shrunk[1, s], places + 1
    for s in range(states):
        common = shrunk[0, s] / shrunk[1, s] if shrunk[1, s] > 0.0 else known / max(places, 1)
        for n in range(agents):
            seen = arrivals[n, s] > 0.0
            reward[n, s] = (weight * common + total[n, s]) / (weight + arrivals[n, s]) if seen else common
