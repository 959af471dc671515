"""What agents have in common, learnt from all of them: a row for each action and state, and shrunken rewards.

moves  [N, A, S, S]  how often each agent went from s to t under a
pool   [A, S, S]     pseudo-counts: pool[a, s] = weight · row, with a row that sums to one

Rows of agents are taken as Dirichlet numbers around the pool's row. Two moves of one agent out of the same state agree
more often than two moves of different agents, by a share 1 / (weight + 1) of what there is to disagree about; so the
weight follows from counting pairs, without iteration (the method of moments for the Dirichlet-multinomial law). Agents
enter by how much their counts say: n / (weight + n) for the row, the square of that for the weight. Rewards are
shrunken in the same manner, by the variance within agents against the variance between them (one-way random effects).
"""

import numpy as np

from restive.kernels.jit import compiled
from restive.types import Floats

# A row begins as if each of its moves had been seen this often: half of them uniform, half as under the other action.
UNSEEN, UNIFORM = 3.0, 0.5
# How many agents the guess that agents differ as uniform rows do is worth, each with so many moves.
GUESSED, MOVES_OF_A_GUESS = 2.0, 10.0
# Beyond these weights agents have either nothing in common or nothing of their own.
LEAST, MOST = 0.2, 200.0
# Rewards whose variance between agents is this small beside all of it are the same for all, worth so many rewards.
ALIKE, SAME = 1e-9, 1e9


@compiled
def learn_pool(moves: Floats, pool: Floats) -> None:
    """Bring the pool up to date with the moves, from the weights that it had.

    >>> pool = np.ones((2, 2, 2))
    >>> always = np.tile([[0.0, 20.0], [20.0, 0.0]], (30, 2, 1, 1))  # thirty agents that always go to the other state
    >>> for _ in range(9):
    ...     learn_pool(always, pool)
    >>> float((pool[0, 0, 1] / pool[0, 0].sum()).round(2)), bool(pool[0, 0].sum() > 100)  # where to, and all alike
    (1.0, True)
    """
    agents, actions, states, _ = moves.shape
    for a in range(actions):
        for s in range(states):
            weight = pool[a, s].sum()
            _pool_row(moves, a, s, weight, pool[1 - a, s], pool[a, s])
            chance = 0.0
            for t in range(states):
                chance += pool[a, s, t] ** 2
            excess, whole = guess_excess(weight, states)
            for n in range(agents):
                seen, pairs, common = 0.0, 0.0, 0.0
                for t in range(states):
                    times = moves[n, a, s, t]
                    seen += times
                    pairs += times * (times - 1.0)
                    common += times * pool[a, s, t]
                if seen > 1.0:
                    found, trust = agreement(seen, pairs, common, chance, weight)
                    excess, whole = excess + found, whole + trust
            weight = next_weight(weight, excess / whole)
            for t in range(states):
                pool[a, s, t] *= weight


@compiled
def guess_excess(weight: float, states: int) -> tuple[float, float]:
    """What the guess that agents differ as uniform rows do adds to the agreement of pairs, and to its weight."""
    trust = GUESSED * (MOVES_OF_A_GUESS / (MOVES_OF_A_GUESS + weight)) ** 2
    return trust / (states + 1.0), trust


@compiled
def agreement(seen: float, pairs: float, common: float, chance: float, weight: float) -> tuple[float, float]:
    """How much more an agent's moves agree than by a row, as a share of all disagreement, times trust; and the trust.

    seen, pairs: its moves, and the ordered pairs of them that agree; common: how often a move of it agrees with one by
    the row, added up over its moves; chance: how often two moves by the row agree
    """
    trust = (seen / (weight + seen)) ** 2
    excess = pairs / (seen * (seen - 1.0)) - 2.0 * common / seen + chance
    return trust * excess / max(1.0 - chance, 1e-12), trust


@compiled
def next_weight(weight: float, share: float) -> float:
    """Half the way, in logarithms, from a weight to the one that a share of agreement speaks for: 1 / share − 1."""
    wanted = min(max(1.0 / share - 1.0, LEAST), MOST) if share > 0.0 else MOST
    return float(np.sqrt(weight * wanted))


@compiled
def _pool_row(moves: Floats, a: int, s: int, weight: float, other: Floats, pool: Floats) -> None:
    """Fill `pool` with the row [a, s] that agents have in common; `other` is that of the other action."""
    agents, states = moves.shape[0], moves.shape[2]
    unseen, whole_other = UNSEEN / (1.0 + weight), other.sum()
    for t in range(states):
        pool[t] = unseen * (UNIFORM + (1.0 - UNIFORM) * states * other[t] / whole_other)
    whole = unseen * states
    for n in range(agents):
        seen = 0.0
        for t in range(states):
            seen += moves[n, a, s, t]
        trust = 1.0 / (weight + seen)
        for t in range(states):
            pool[t] += trust * moves[n, a, s, t]
        whole += trust * seen
    for t in range(states):
        pool[t] /= whole


@compiled
def learn_rewards(arrivals: Floats, total: Floats, spread: float, reward: Floats) -> None:
    """Fill `reward` [N, S] with each agent's mean reward in each state, drawn towards that of all agents.

    arrivals, total [N, S]: how often each agent arrived in s, and the rewards then, added up
    spread: the squared deviations of rewards from the mean of their agent and state, added up
    """
    agents, states = arrivals.shape
    weight = _reward_weight(arrivals, total, spread)
    known, places = 0.0, 0
    for s in range(states):
        sums, whole = 0.0, 0.0
        for n in range(agents):
            if arrivals[n, s] > 0.0:
                sums += total[n, s] / (weight + arrivals[n, s])
                whole += arrivals[n, s] / (weight + arrivals[n, s])
        common = sums / whole if whole > 0.0 else np.nan
        if whole > 0.0:
            known, places = known + common, places + 1
        for n in range(agents):
            # Of an agent that was never there nothing is known but what holds for all.
            seen = arrivals[n, s] > 0.0
            reward[n, s] = (weight * common + total[n, s]) / (weight + arrivals[n, s]) if seen else common
    for s in range(states):
        if np.isnan(reward[0, s]):  # a state where nobody was is taken for an average one
            reward[:, s] = known / max(places, 1)


@compiled
def _reward_weight(arrivals: Floats, total: Floats, spread: float) -> float:
    """How many rewards what holds for all is worth: the variance within agents over that between them."""
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
    within = spread / count if count > 0.0 else between / max(cells, 1)
    excess = between - cells * within
    if room <= 0.0 or excess <= ALIKE * (between + within):
        return SAME
    return min(within * room / excess, SAME)
