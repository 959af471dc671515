"""Trust in a history: the probability that an agent still moves under an action as it did there.

past   [N, A, S, S]  moves of the history
fresh  [N, A, S, S]  moves since
prior  [N, A, S, S]  pseudo-counts of an agent without a history
trust  [N, A]        the probability that the history of an agent under an action holds

The rows of an agent under an action are Dirichlet with parameters prior + past if its history holds, and prior if it
does not; it holds with probability 1 − wrong, where the share of wrong histories is common to all agents and unknown,
one of SHARES with probabilities FIRST. What is found for waiting, of all agents and of each, makes the same likely for
acting, of which less is seen. So a history that is wrong for all agents is given up after few moves of each,
and one that is wrong for some only for those (robust mixture prior, Schmidli et al. 2014, with a learned share).
"""

import math

import numpy as np

from restive.kernels.jit import compiled, inlined
from restive.types import Floats

SHARES = (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98)
FIRST = (0.4, 0.2, 0.1, 0.1, 0.05, 0.05, 0.1)
# How far a wrong history under the first action makes that under another one unlikely.
LINK = 0.75
# A product below this is replaced by its logarithm; so is one of more factors than these.
SMALL, MAX_FACTORS = 1e-100, 20


@inlined
def learn_trust(past: Floats, fresh: Floats, prior: Floats, trust: Floats) -> None:
    """Fill `trust` with the probability that the history of each agent holds, given the moves since.

    >>> past, fresh, trust = np.zeros((2, 1, 2, 2)), np.zeros((2, 1, 2, 2)), np.empty((2, 1))
    >>> past[:, 0, 0], fresh[:, 0, 0] = [0, 20], [[0, 3], [3, 0]]  # one agent moves as before, the other does not
    >>> learn_trust(past, fresh, np.ones((2, 1, 2, 2)), trust)
    >>> trust.round(2).tolist()
    [[0.6], [0.01]]
    """
    agents, actions = trust.shape
    likely, unlikely = np.empty(agents), np.empty(agents)  # with the history and without it, the larger one is 1
    chance, first = np.empty(len(SHARES)), np.array(FIRST)
    for a in range(actions):
        for n in range(agents):
            ratio = _log_ratio(past[n, a], fresh[n, a], prior[n, a])
            likely[n], unlikely[n] = math.exp(min(ratio, 0.0)), math.exp(-max(ratio, 0.0))
        for k in range(len(SHARES)):
            chance[k], product = math.log(first[k]), 1.0
            for n in range(agents):
                holds = _holds(SHARES[k], trust[n, 0], a)
                product *= holds * likely[n] + (1.0 - holds) * unlikely[n]
                if product < SMALL:  # a logarithm of each factor would take most of the time
                    chance[k], product = chance[k] + math.log(product), 1.0
            chance[k] += math.log(product)
        chance = np.exp(chance - chance.max())
        chance /= chance.sum()
        for n in range(agents):
            held = 0.0
            for k in range(len(SHARES)):
                holds = _holds(SHARES[k], trust[n, 0], a)
                held += chance[k] * holds * likely[n] / (holds * likely[n] + (1.0 - holds) * unlikely[n])
            trust[n, a] = held
        first = (np.array(FIRST) + chance) / 2.0


@compiled
def _holds(wrong: float, first_trust: float, action: int) -> float:
    """The probability that a history holds under an action, before the moves; `first_trust` is that of action 0."""
    return (1.0 - wrong) * (1.0 - LINK * (1.0 - first_trust)) if action > 0 else 1.0 - wrong


@inlined
def _log_ratio(past: Floats, fresh: Floats, prior: Floats) -> float:
    """The log-likelihood of moves [S, S] with the history minus that without it."""
    total, product = 0.0, 1.0
    for s in range(past.shape[0]):
        before, since, weight = 0.0, 0.0, 0.0
        for t in range(past.shape[1]):
            before, since, weight = before + past[s, t], since + fresh[s, t], weight + prior[s, t]
        if before <= 0.0 or since <= 0.0:
            continue
        if since > MAX_FACTORS:
            total += _log_rising(weight, since) - _log_rising(weight + before, since)
            for t in range(past.shape[1]):
                total += _log_rising(prior[s, t] + past[s, t], fresh[s, t]) - _log_rising(prior[s, t], fresh[s, t])
            continue
        product *= _rising_ratio(weight, before, since)
        for t in range(past.shape[1]):
            if fresh[s, t] > 0.0 and past[s, t] > 0.0:
                product /= _rising_ratio(prior[s, t], past[s, t], fresh[s, t])
        if not SMALL < product < 1.0 / SMALL:
            total, product = total + math.log(product), 1.0
    return total + math.log(product)


@compiled
def _rising_ratio(x: float, more: float, times: float) -> float:
    """Γ(x + times) / Γ(x) divided by the same with x + more: a product, since moves are whole numbers."""
    product = 1.0
    for step in range(int(times)):
        product *= (x + step) / (x + more + step)
    return product


@compiled
def _log_rising(x: float, times: float) -> float:
    """log Γ(x + times) / Γ(x)."""
    return math.lgamma(x + times) - math.lgamma(x)
