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

Sums over agents are by block, [B, ...] (`restive.kernels.block_sums`), so that they can be added up over partitions of
agents. What precedes the agents in a sum is added to the first block, if `first`.
"""

from typing import NamedTuple

import numpy as np

from restive.kernels.block_sums import SHIFT, add_blocks, count_blocks
from restive.kernels.hierarchical_prior import agent_correlation, next_weight, prior_correlation
from restive.kernels.jit import compiled, inlined
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


class Types(NamedTuple):
    """What an EM iteration finds of the types."""

    rows: Floats  # [A, S, S, K]
    log_ratio: Floats  # [A, S, S, K] of the rows to those of the pool
    log_share: Floats  # [K] of the share of agents


@inlined
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
    iterations = 1
    used = responsibility[0].sum() > 0.0
    row = divide_pool(pool, used, weight)
    own = find_gains(moves, seen, row, weight) if search and not used else np.empty(0)
    evidence = add_blocks(add_evidence(own, seen))
    required = find_required(evidence, actions, states)
    if search and not used and evidence[1] > required:
        explained = np.zeros(agents)
        for k in range(N_TYPES):
            n = int(np.argmax(own - explained))
            explain(
                moves, seen, weight, compare_with_pool(moves[n], seen[n], row, weight), k, responsibility, explained
            )
        normalise(responsibility)
        used, iterations = True, INITIAL_ITERATIONS
    rows = np.zeros((actions, states, states, N_TYPES))
    if used:
        gain = 0.0
        for left in range(iterations - 1, -1, -1):
            before = gain
            types = find_types(add_blocks(add_types(moves, seen, row, responsibility, weight, True)), agents, row)
            rows = types.rows
            gain = add_blocks(e_step(moves, seen, types, weight, responsibility))[0]
            update_weight(add_blocks(add_correlations(moves, seen, rows, responsibility, weight, True)), weight)
            if is_hopeless(gain, before, left, iterations, required):
                break
        used = gain > required
    fill_posterior(moves, pool, rows, used, responsibility, weight, posterior)


@compiled
def divide_pool(pool: Floats, used: bool, weight: Floats) -> Floats:
    """The rows of the pool, [A, S, S]; if no mixture is used, its weights become those of the agents."""
    row = np.empty_like(pool)
    for a in range(pool.shape[0]):
        for s in range(pool.shape[1]):
            total = pool[a, s].sum()
            for t in range(pool.shape[2]):
                row[a, s, t] = pool[a, s, t] / total
            if not used:
                weight[a, s] = total
    return row


@compiled
def find_gains(moves: Floats, seen: Floats, row: Floats, weight: Floats) -> Floats:
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
def add_evidence(own: Floats, seen: Floats) -> Floats:
    """All moves, and what the agents' own rows gain if that is known, by block, [B, 2]."""
    agents, actions, states = seen.shape
    parts = np.zeros((count_blocks(agents), 2))
    for n in range(agents):
        for a in range(actions):
            for s in range(states):
                parts[n >> SHIFT, 0] += seen[n, a, s]
    for n in range(own.size):
        parts[n >> SHIFT, 1] += max(own[n], 0.0)
    return parts


@compiled
def find_required(evidence: Floats, actions: int, states: int) -> float:
    """The gain from which on a mixture is used, given the sums of `add_evidence`."""
    return float(PENALTY * (N_TYPES - 1) * actions * states * (states - 1) * np.log(max(evidence[0], 1.0)))


@compiled
def is_hopeless(gain: float, before: float, left: int, iterations: int, required: float) -> bool:
    """Whether a mixture would not be used even if each iteration left gained twice as much as the last."""
    return left < iterations - 1 and gain + (2.0 ** (left + 1) - 2.0) * (gain - before) < required


@compiled
def _count_for(weight: float, seen: float) -> float:
    """What each move of an agent counts for in its likelihood: less with more moves, since agents of a type differ."""
    return (weight + 1.0) / (weight + max(seen, 1.0))


@compiled
def compare_with_pool(moves: Floats, seen: Floats, row: Floats, weight: Floats) -> Floats:
    """log(row of an agent / row of the pool), [A, S, S], given the agent's moves [A, S, S] and how often it was where."""
    actions, states, _ = moves.shape
    log_ratio = np.empty((actions, states, states))
    for a in range(actions):
        for s in range(states):
            for t in range(states):
                own = (moves[a, s, t] + weight[a, s] * row[a, s, t]) / (seen[a, s] + weight[a, s])
                log_ratio[a, s, t] = np.log(own / row[a, s, t])
    return log_ratio


@compiled
def explain(
    moves: Floats,
    seen: Floats,
    weight: Floats,
    log_ratio: Floats,
    k: int,
    responsibility: Floats,
    explained: Floats,
) -> None:
    """Start type k from one agent, of which the log-ratios are: fill the log-likelihood ratios of all agents.

    explained [N]: the largest of an agent under the pool and the types so far. The next type starts from the agent whose
    moves these explain worst.
    """
    for n in range(moves.shape[0]):
        responsibility[n, k] = _log_likelihood(moves, seen, weight, n, log_ratio)
        explained[n] = max(explained[n], responsibility[n, k])


@inlined
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
def normalise(responsibility: Floats) -> None:
    """Turn the log-likelihood ratios of all agents into probabilities."""
    for n in range(responsibility.shape[0]):
        _normalise(responsibility[n])


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
def add_types(moves: Floats, seen: Floats, row: Floats, responsibility: Floats, weight: Floats, first: bool) -> Floats:
    """The weighted moves of the agents of each type after some of the pool, and the agents of each type, [B, (A·S·S + 1) · K]."""
    agents, actions, states, _ = moves.shape
    parts = np.zeros((count_blocks(agents), (actions * states * states + 1) * N_TYPES))
    for a in range(actions):
        for s in range(states):
            place = (a * states + s) * states * N_TYPES
            if first:
                for t in range(states):
                    for k in range(N_TYPES):
                        parts[0, place + t * N_TYPES + k] = POOL_MOVES / (1.0 + weight[a, s]) * row[a, s, t]
            for n in range(agents):
                if seen[n, a, s] == 0.0:
                    continue
                trust = 1.0 / (weight[a, s] + seen[n, a, s])
                for t in range(states):
                    if moves[n, a, s, t] != 0.0:
                        for k in range(N_TYPES):
                            part = trust * moves[n, a, s, t] * responsibility[n, k]
                            parts[n >> SHIFT, place + t * N_TYPES + k] += part
    place = actions * states * states * N_TYPES
    for n in range(agents):
        for k in range(N_TYPES):
            parts[n >> SHIFT, place + k] += responsibility[n, k]
    return parts


@compiled
def find_types(sums: Floats, agents: int, row: Floats) -> Types:
    """The M-step: the types, given the sums of `add_types` over so many agents."""
    actions, states, _ = row.shape
    rows = sums[: row.size * N_TYPES].reshape(actions, states, states, N_TYPES).copy()
    log_ratio, log_share, total = np.empty_like(rows), np.empty(N_TYPES), np.empty(N_TYPES)
    for a in range(actions):
        for s in range(states):
            total[:] = 0.0
            for t in range(states):
                for k in range(N_TYPES):
                    total[k] += rows[a, s, t, k]
            for t in range(states):
                for k in range(N_TYPES):
                    rows[a, s, t, k] /= total[k]
                    log_ratio[a, s, t, k] = np.log(rows[a, s, t, k] / row[a, s, t])
    for k in range(N_TYPES):
        log_share[k] = np.log((sums[row.size * N_TYPES + k] + PSEUDO_AGENTS) / (agents + PSEUDO_AGENTS * N_TYPES))
    return Types(rows, log_ratio, log_share)


@compiled
def e_step(moves: Floats, seen: Floats, types: Types, weight: Floats, responsibility: Floats) -> Floats:
    """Fill the responsibilities; returns the log-likelihood gain over the pooled model by block, [B, 1]."""
    agents, actions, states, _ = moves.shape
    parts = np.zeros((count_blocks(agents), 1))
    for n in range(agents):
        for k in range(N_TYPES):
            responsibility[n, k] = types.log_share[k]
        for a in range(actions):
            for s in range(states):
                if seen[n, a, s] == 0.0:
                    continue
                discount = _count_for(weight[a, s], seen[n, a, s])
                for t in range(states):
                    if moves[n, a, s, t] != 0.0:
                        for k in range(N_TYPES):
                            responsibility[n, k] += discount * moves[n, a, s, t] * types.log_ratio[a, s, t, k]
        parts[n >> SHIFT, 0] += _normalise(responsibility[n])
    return parts


@compiled
def add_correlations(
    moves: Floats, seen: Floats, rows: Floats, responsibility: Floats, weight: Floats, first: bool
) -> Floats:
    """The intra-agent correlation around the agents' prior rows, weighted, and its weight, by block, [B, A · S · 2]."""
    agents, actions, states, _ = moves.shape
    parts = np.zeros((count_blocks(agents), actions * states * 2))
    for a in range(actions):
        for s in range(states):
            place = (a * states + s) * 2
            if first:
                parts[0, place], parts[0, place + 1] = prior_correlation(weight[a, s], states)
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
                parts[n >> SHIFT, place] += found
                parts[n >> SHIFT, place + 1] += trust
    return parts


@compiled
def update_weight(sums: Floats, weight: Floats) -> None:
    """Update the weight of an agent's prior row from the sums of `add_correlations`."""
    actions, states = weight.shape
    for a in range(actions):
        for s in range(states):
            place = (a * states + s) * 2
            weight[a, s] = next_weight(weight[a, s], sums[place] / sums[place + 1])


@compiled
def fill_posterior(
    moves: Floats, pool: Floats, rows: Floats, used: bool, responsibility: Floats, weight: Floats, posterior: Floats
) -> None:
    """Fill the posterior from the rows of the types; if no mixture is used, from the pool, with its weights."""
    agents, actions, states, _ = moves.shape
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
