"""Kinds of agents, found from how they move: where a few kinds explain the moves, each kind has rows of its own.

moves      [N, A, S, S]  how often each agent went from s to t under a
pool       [A, S, S]     what all agents have in common (`restive.kernels.hierarchical_prior`)
share      [N, K]        how likely each agent is of each kind; all 0 while no kinds are used
weight     [A, S]        how many moves the prior row, of its kinds or of the pool, is worth to an agent
posterior  [N, A, S, S]  moves + weight · (rows of the kinds by the agent's shares, or else the row of the pool)

A mixture of kinds, by rounds of expectation and maximisation. Agents of one kind may still differ: n moves of an agent
out of a state count as (weight + 1) / (weight + n) · n in telling its kind. Kinds begin as agents that are unlike the
pool and unlike each other. They are used while the moves are likelier with them than with the pool alone by more than
the numbers that they add can earn by chance, half of log(moves) for each (the criterion of Schwarz 1978).
"""

import numpy as np

from restive.kernels.hierarchical_prior import LEAST, UNSEEN, agreement, guess_excess, next_weight
from restive.kernels.jit import compiled
from restive.types import Floats

# How many kinds are sought: a number known beforehand is what makes the loops over kinds fast.
KINDS = 4
# Rounds of expectation and maximisation when kinds are sought.
ROUNDS = 8
# As many moves of the pool are added to each row of a kind: a kind of which little is known is like all.
FROM_THE_POOL = 10.0
# Half an agent of every kind, so that none dies out.
SPARE = 0.5


@compiled
def learn_kinds(moves: Floats, pool: Floats, seek: bool, share: Floats, weight: Floats, posterior: Floats) -> None:
    """Bring shares, weights and the posterior up to date with the moves; shares of 0 mean that no kinds are used.

    Kinds in use are followed by one round; where there are none they are sought, from scratch, if `seek` says so.
    """
    agents, actions, states, _ = moves.shape
    seen = _count_rows(moves)
    row = np.empty_like(pool)
    rounds = 1
    used = share[0].sum() > 0.0
    if not used:
        _weigh_pool(seen, pool, weight)
    for a in range(actions):
        for s in range(states):
            row[a, s] = pool[a, s] / pool[a, s].sum()
    if seek and not used:
        _seed_kinds(moves, seen, row, weight, share)
        used, rounds = True, ROUNDS
    rows = np.zeros((actions, states, states, KINDS))
    if used:
        gained = 0.0
        for _ in range(rounds):
            _find_rows(moves, seen, row, share, weight, rows)
            gained = _tell_kinds(moves, seen, row, rows, weight, share)
            _weigh_kinds(moves, seen, rows, share, weight)
        extra = (KINDS - 1) * actions * states * (states - 1)
        used = gained > 0.5 * extra * np.log(max(seen.sum(), 1.0))
        if not used:
            share[:] = 0.0
            _weigh_pool(seen, pool, weight)
    for n in range(agents):
        for a in range(actions):
            for s in range(states):
                for t in range(states):
                    likely = _mixed(rows, share, n, a, s, t) if used else row[a, s, t]
                    posterior[n, a, s, t] = moves[n, a, s, t] + weight[a, s] * likely


@compiled
def _weigh_pool(seen: Floats, pool: Floats, weight: Floats) -> None:
    """How many moves the pool's row is worth to an agent: less than its weight where the pool itself knows little.

    The row is as uncertain as an agent's own is around it, divided by W = Σ n / (weight + n) over agents: that makes
    (weight + 1) · W / (W + 1) moves, the guess with which a row begins counted as moves.
    """
    for a in range(pool.shape[0]):
        for s in range(pool.shape[1]):
            alike = pool[a, s].sum()
            whole = UNSEEN * pool.shape[1] / (1.0 + alike)
            for n in range(seen.shape[0]):
                whole += seen[n, a, s] / (alike + seen[n, a, s])
            weight[a, s] = max((alike + 1.0) * whole / (whole + 1.0) - 1.0, LEAST)


@compiled
def _count_rows(moves: Floats) -> Floats:
    """How often each agent was in s and had a done to it, [N, A, S]."""
    agents, actions, states, _ = moves.shape
    seen = np.zeros((agents, actions, states))
    for n in range(agents):
        for a in range(actions):
            for s in range(states):
                for t in range(states):
                    seen[n, a, s] += moves[n, a, s, t]
    return seen


@compiled
def _seed_kinds(moves: Floats, seen: Floats, row: Floats, weight: Floats, share: Floats) -> None:
    """Begin with agents that are unlike the pool and unlike each other, each of them one kind."""
    agents, actions, states, _ = moves.shape
    own = np.zeros(agents)  # how much likelier an agent's moves are by its own rows than by the pool, as logs
    explained = np.zeros(agents)
    likelier = np.empty((actions, states, states))
    for n in range(agents):
        own[n] = _set_apart(moves, seen, row, weight, n, likelier)
    for k in range(KINDS):
        seed = int(np.argmax(own - explained))
        _set_apart(moves, seen, row, weight, seed, likelier)
        for n in range(agents):
            share[n, k] = _say(moves, seen, weight, n, likelier)
            explained[n] = max(explained[n], share[n, k])
    for n in range(agents):
        _normalise(share[n])


@compiled
def _set_apart(moves: Floats, seen: Floats, row: Floats, weight: Floats, n: int, likelier: Floats) -> float:
    """Fill `likelier` with log(row of agent n / row of the pool), and return how much likelier that makes its moves."""
    _, actions, states, _ = moves.shape
    for a in range(actions):
        for s in range(states):
            for t in range(states):
                chance = (moves[n, a, s, t] + weight[a, s] * row[a, s, t]) / (seen[n, a, s] + weight[a, s])
                likelier[a, s, t] = np.log(chance / row[a, s, t])
    return _say(moves, seen, weight, n, likelier)


@compiled
def _say(moves: Floats, seen: Floats, weight: Floats, n: int, likelier: Floats) -> float:
    """The sum of `likelier` over the moves of agent n, each counted as far as an agent of a kind may differ from it."""
    total = 0.0
    for a in range(seen.shape[1]):
        for s in range(seen.shape[2]):
            part = 0.0
            for t in range(seen.shape[2]):
                part += moves[n, a, s, t] * likelier[a, s, t]
            total += part * (weight[a, s] + 1.0) / (weight[a, s] + max(seen[n, a, s], 1.0))
    return total


@compiled
def _normalise(score: Floats) -> float:
    """Turn logs into shares that sum to one; returns the log of what they summed to."""
    best, whole = score[0], 0.0
    for k in range(1, KINDS):
        best = max(best, score[k])
    for k in range(KINDS):
        score[k] = np.exp(score[k] - best)
        whole += score[k]
    for k in range(KINDS):
        score[k] /= whole
    return float(best + np.log(whole))


@compiled
def _mixed(rows: Floats, share: Floats, n: int, a: int, s: int, t: int) -> float:
    """How likely agent n goes from s to t under a, by the kinds that it may be of."""
    chance = 0.0
    for k in range(KINDS):
        chance += share[n, k] * rows[a, s, t, k]
    return chance


@compiled
def _find_rows(moves: Floats, seen: Floats, row: Floats, share: Floats, weight: Floats, rows: Floats) -> None:
    """Fill the rows of the kinds, [A, S, S, K]: those of their agents, by how much counts say, and some of the pool."""
    agents, actions, states, _ = moves.shape
    whole = np.empty(KINDS)
    for a in range(actions):
        for s in range(states):
            for t in range(states):
                rows[a, s, t, :] = FROM_THE_POOL / (1.0 + weight[a, s]) * row[a, s, t]
            for n in range(agents):
                trust = 1.0 / (weight[a, s] + seen[n, a, s])
                for t in range(states):
                    for k in range(KINDS):
                        rows[a, s, t, k] += trust * moves[n, a, s, t] * share[n, k]
            whole[:] = 0.0
            for t in range(states):
                whole += rows[a, s, t]
            for t in range(states):
                rows[a, s, t] /= whole


@compiled
def _tell_kinds(moves: Floats, seen: Floats, row: Floats, rows: Floats, weight: Floats, share: Floats) -> float:
    """Write how likely each agent is of each kind; returns how much likelier, as logs, that makes all moves."""
    agents, actions, states, _ = moves.shape
    likelier = np.empty_like(rows)
    for a in range(actions):
        for s in range(states):
            for t in range(states):
                likelier[a, s, t] = np.log(rows[a, s, t] / row[a, s, t])
    common = np.empty(KINDS)
    for k in range(KINDS):
        common[k] = np.log((share[:, k].sum() + SPARE) / (agents + SPARE * KINDS))
    gained = 0.0
    for n in range(agents):
        for k in range(KINDS):
            share[n, k] = common[k]
        for a in range(actions):
            for s in range(states):
                say = (weight[a, s] + 1.0) / (weight[a, s] + max(seen[n, a, s], 1.0))
                for t in range(states):
                    for k in range(KINDS):
                        share[n, k] += say * moves[n, a, s, t] * likelier[a, s, t, k]
        gained += _normalise(share[n])
    return gained


@compiled
def _weigh_kinds(moves: Floats, seen: Floats, rows: Floats, share: Floats, weight: Floats) -> None:
    """Bring up to date how many moves the row of its kinds is worth to an agent."""
    agents, actions, states, _ = moves.shape
    for a in range(actions):
        for s in range(states):
            excess, whole = guess_excess(weight[a, s], states)
            for n in range(agents):
                pairs, common, chance = 0.0, 0.0, 0.0
                for t in range(states):
                    likely, times = _mixed(rows, share, n, a, s, t), moves[n, a, s, t]
                    pairs += times * (times - 1.0)
                    common += times * likely
                    chance += likely * likely
                if seen[n, a, s] > 1.0:
                    found, trust = agreement(seen[n, a, s], pairs, common, chance, weight[a, s])
                    excess, whole = excess + found, whole + trust
            weight[a, s] = next_weight(weight[a, s], excess / whole)
