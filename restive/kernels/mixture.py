"""A mixture of agent types, fitted by expectation-maximisation: each type has transition rows of its own.

moves           [N, A, S, S]  how often each agent moved from s to t under a
seen            [N, A, S]     how often each agent was in s under a
pool            [A, S, S]     pseudo-counts of the prior of all agents (`restive.kernels.hierarchical_prior`)
responsibility  [N, K]        the probability that each agent is of each type; all 0 while no mixture is used
weight          [A, S]        the weight of an agent's prior row, in moves
posterior       [N, A, S, S]  moves + weight · (rows of the types by responsibility, or else the row of the pool)

Agents of one type may still differ: n moves of an agent from a state count as n · (weight + 1) / (weight + n) in its
likelihood. Types are initialised as agents that differ from the pool and from each other. The mixture is used while its
log-likelihood exceeds that of the pool by more than ¼ log(moves) for each added parameter, half of what the Bayesian
information criterion asks (Schwarz 1978): the pool's rows help types of which little was seen.
"""

import numpy as np

from restive.kernels.hierarchical_prior import agent_correlation, next_weight, prior_correlation
from restive.kernels.jit import compiled
from restive.types import Floats

# The number of types; a constant, because that makes the loops over types fast.
N_TYPES = 5
# EM iterations of a new mixture; a mixture in use gets one in each update.
INITIAL_ITERATIONS = 8
# Moves of the pool added to each row of a type: a type with little data is like all agents.
POOL_MOVES = 10.0
# The mixture is used while it gains this many times log(moves) for each added parameter.
PENALTY = 0.25
# Pseudo-agents of each type, so that none vanishes.
PSEUDO_AGENTS = 0.5


@compiled
def learn_mixture(
    moves: Floats,
    seen: Floats,
    pool: Floats,
    search: bool,
    responsibility: Floats,
    weight: Floats,
    posterior: Floats,
) -> None:
    """Update responsibilities, weights and posterior; responsibilities of 0 mean that no mixture is used.

    A mixture in use gets one EM iteration; otherwise one is fitted from scratch if `search`, unless even the agents'
    own rows explain the moves too little better than the pool.
    """
    agents, actions, states, _ = moves.shape
    row = np.empty_like(pool)
    iterations = 1
    used = responsibility[0].sum() > 0.0
    for a in range(actions):
        for s in range(states):
            total = pool[a, s].sum()
            row[a, s] = pool[a, s] / total
            if not used:
                weight[a, s] = total
    required = PENALTY * (N_TYPES - 1) * actions * states * (states - 1) * np.log(max(seen.sum(), 1.0))
    if search and not used:
        own = _gains(moves, seen, row, weight)
        if np.maximum(own, 0.0).sum() > required:
            _initialise(moves, seen, row, weight, own, responsibility)
            used, iterations = True, INITIAL_ITERATIONS
    rows = np.zeros((actions, states, states, N_TYPES))
    if used:
        gain = 0.0
        for left in range(iterations - 1, -1, -1):
            before = gain
            m_step(moves, seen, row, responsibility, weight, rows)
            gain = e_step(moves, seen, row, rows, weight, responsibility)
            _update_weight(moves, seen, rows, responsibility, weight)
            # Give up early if it would not be used even if each further iteration gained twice as much as the last.
            if left < iterations - 1 and gain + (2.0 ** (left + 1) - 2.0) * (gain - before) < required:
                break
        used = gain > required
        if not used:
            responsibility[:] = 0.0
            for a in range(actions):
                for s in range(states):
                    weight[a, s] = pool[a, s].sum()
    for n in range(agents):
        for a in range(actions):
            for s in range(states):
                for t in range(states):
                    prior = weight[a, s] * _mix(rows, responsibility, n, a, s, t) if used else pool[a, s, t]
                    posterior[n, a, s, t] = moves[n, a, s, t] + prior


@compiled
def _gains(moves: Floats, seen: Floats, row: Floats, weight: Floats) -> Floats:
    """The log-likelihood ratio of each agent's own rows to the pool's, [N]: about the most that types can gain."""
    agents, actions, states, _ = moves.shape
    gains = np.zeros(agents)
    for n in range(agents):
        for a in range(actions):
            for s in range(states):
                if seen[n, a, s] == 0.0:
                    continue
                part, norm = 0.0, 1.0 / (seen[n, a, s] + weight[a, s])
                for t in range(states):
                    times = moves[n, a, s, t]
                    if times > 0.0:
                        part += times * np.log((times / row[a, s, t] + weight[a, s]) * norm)
                gains[n] += part * _count_for(weight[a, s], seen[n, a, s])
    return gains


@compiled
def _count_for(weight: float, seen: float) -> float:
    """What each move of an agent counts for in its likelihood: less with more moves, since agents of a type differ."""
    return (weight + 1.0) / (weight + max(seen, 1.0))


@compiled
def _initialise(moves: Floats, seen: Floats, row: Floats, weight: Floats, own: Floats, responsibility: Floats) -> None:
    """Start each type from one agent: the one whose moves the pool and the types before it explain worst.

    own [N]: the log-likelihood ratio of an agent's own rows to the pool's
    """
    agents, actions, states, _ = moves.shape
    explained = np.zeros(agents)
    log_ratio = np.empty((actions, states, states))
    for k in range(N_TYPES):
        _compare_with_pool(moves, seen, row, weight, int(np.argmax(own - explained)), log_ratio)
        for n in range(agents):
            responsibility[n, k] = _log_likelihood(moves, seen, weight, n, log_ratio)
            explained[n] = max(explained[n], responsibility[n, k])
    for n in range(agents):
        _normalise(responsibility[n])


@compiled
def _compare_with_pool(moves: Floats, seen: Floats, row: Floats, weight: Floats, n: int, log_ratio: Floats) -> None:
    """Fill log(row of agent n / row of the pool)."""
    _, actions, states, _ = moves.shape
    for a in range(actions):
        for s in range(states):
            for t in range(states):
                own = (moves[n, a, s, t] + weight[a, s] * row[a, s, t]) / (seen[n, a, s] + weight[a, s])
                log_ratio[a, s, t] = np.log(own / row[a, s, t])


@compiled
def _log_likelihood(moves: Floats, seen: Floats, weight: Floats, n: int, log_ratio: Floats) -> float:
    """The sum of `log_ratio` over the moves of agent n, as far as they count."""
    total = 0.0
    for a in range(seen.shape[1]):
        for s in range(seen.shape[2]):
            if seen[n, a, s] == 0.0:
                continue
            part = 0.0
            for t in range(seen.shape[2]):
                part += moves[n, a, s, t] * log_ratio[a, s, t]
            total += part * _count_for(weight[a, s], seen[n, a, s])
    return total


@compiled
def _normalise(score: Floats) -> float:
    """Turn log-weights into probabilities and return the log of their sum (log-sum-exp)."""
    best, total = score[0], 0.0
    for k in range(1, N_TYPES):
        best = max(best, score[k])
    for k in range(N_TYPES):
        score[k] = np.exp(score[k] - best)
        total += score[k]
    for k in range(N_TYPES):
        score[k] /= total
    return float(best + np.log(total))


@compiled
def _mix(rows: Floats, responsibility: Floats, n: int, a: int, s: int, t: int) -> float:
    """The probability that agent n moves from s to t under a, averaged over its types."""
    probability = 0.0
    for k in range(N_TYPES):
        probability += responsibility[n, k] * rows[a, s, t, k]
    return probability


@compiled
def m_step(moves: Floats, seen: Floats, row: Floats, responsibility: Floats, weight: Floats, rows: Floats) -> None:
    """Fill the rows of the types, [A, S, S, K]: the weighted moves of their agents, and some of the pool."""
    agents, actions, states, _ = moves.shape
    total = np.empty(N_TYPES)
    for a in range(actions):
        for s in range(states):
            for t in range(states):
                rows[a, s, t, :] = POOL_MOVES / (1.0 + weight[a, s]) * row[a, s, t]
            for n in range(agents):
                if seen[n, a, s] == 0.0:
                    continue
                trust = 1.0 / (weight[a, s] + seen[n, a, s])
                for t in range(states):
                    if moves[n, a, s, t] != 0.0:
                        for k in range(N_TYPES):
                            rows[a, s, t, k] += trust * moves[n, a, s, t] * responsibility[n, k]
            total[:] = 0.0
            for t in range(states):
                total += rows[a, s, t]
            for t in range(states):
                rows[a, s, t] /= total


@compiled
def e_step(moves: Floats, seen: Floats, row: Floats, rows: Floats, weight: Floats, responsibility: Floats) -> float:
    """Fill the responsibilities and return the log-likelihood gain over the pooled model."""
    agents, actions, states, _ = moves.shape
    log_ratio = np.empty_like(rows)
    for a in range(actions):
        for s in range(states):
            for t in range(states):
                log_ratio[a, s, t] = np.log(rows[a, s, t] / row[a, s, t])
    log_share = np.empty(N_TYPES)
    for k in range(N_TYPES):
        log_share[k] = np.log((responsibility[:, k].sum() + PSEUDO_AGENTS) / (agents + PSEUDO_AGENTS * N_TYPES))
    gain = 0.0
    for n in range(agents):
        for k in range(N_TYPES):
            responsibility[n, k] = log_share[k]
        for a in range(actions):
            for s in range(states):
                if seen[n, a, s] == 0.0:
                    continue
                discount = _count_for(weight[a, s], seen[n, a, s])
                for t in range(states):
                    if moves[n, a, s, t] != 0.0:
                        for k in range(N_TYPES):
                            responsibility[n, k] += discount * moves[n, a, s, t] * log_ratio[a, s, t, k]
        gain += _normalise(responsibility[n])
    return gain


@compiled
def _update_weight(moves: Floats, seen: Floats, rows: Floats, responsibility: Floats, weight: Floats) -> None:
    """Update the weight of an agent's prior row from the intra-agent correlation around it."""
    agents, actions, states, _ = moves.shape
    for a in range(actions):
        for s in range(states):
            correlation, total = prior_correlation(weight[a, s], states)
            for n in range(agents):
                if seen[n, a, s] <= 1.0:
                    continue
                pairs, cross, square = 0.0, 0.0, 0.0
                for t in range(states):
                    probability, times = _mix(rows, responsibility, n, a, s, t), moves[n, a, s, t]
                    pairs += times * (times - 1.0)
                    cross += times * probability
                    square += probability * probability
                found, trust = agent_correlation(seen[n, a, s], pairs, cross, square, weight[a, s])
                correlation, total = correlation + found, total + trust
            weight[a, s] = next_weight(weight[a, s], correlation / total)
