"""The parts of an estimate of `lagrange`, each for all runs: what is forgotten, and the priors of agents.

moves, known, posterior  [R, N, A, S, S]  as in `restive.kernels.forgetting`
pool, weight             [R, A, S, ...]   as in `restive.kernels.mixture`

Each part is a kernel of its own, because a kernel takes seconds to compile and few programs need all of them.
"""

import numpy as np

from restive.kernels.feature_prior import learn_feature_prior, standardise
from restive.kernels.forgetting import find_factor, forget
from restive.kernels.hierarchical_prior import Levels, learn_pool
from restive.kernels.jit import compiled, inlined
from restive.kernels.mixture import learn_mixture
from restive.kernels.trust import learn_trust
from restive.types import Floats


@compiled
def hold_against_histories(moves: Floats, past: Floats, posterior: Floats, trust: Floats) -> None:
    """Hold the histories of all runs against the moves since; `trust` is [R, N, A]."""
    for r in range(moves.shape[0]):
        _hold_against_history(moves[r], past[r], posterior[r], trust[r])


@inlined
def _hold_against_history(moves: Floats, past: Floats, posterior: Floats, trust: Floats) -> None:
    """Take the moves of a history out, or in again, where the moves since make it unlikely, or likely, that it holds."""
    agents, actions, states, _ = moves.shape
    fresh, prior = np.empty_like(moves), np.empty_like(moves)
    for n in range(agents):
        for a in range(actions):
            for s in range(states):
                for t in range(states):
                    prior[n, a, s, t] = posterior[n, a, s, t] - moves[n, a, s, t]
                    fresh[n, a, s, t] = max(moves[n, a, s, t] - trust[n, a] * past[n, a, s, t], 0.0)
    learn_trust(past, fresh, prior, trust)
    for n in range(agents):
        for a in range(actions):
            trust[n, a] = 1.0 if trust[n, a] > 0.5 else 0.0  # whole moves, as the weights of priors need
            for s in range(states):
                for t in range(states):
                    moves[n, a, s, t] = fresh[n, a, s, t] + trust[n, a] * past[n, a, s, t]
                    posterior[n, a, s, t] = prior[n, a, s, t] + moves[n, a, s, t]


@compiled
def forget_runs(moves: Floats, known: Floats, posterior: Floats, factor: float) -> None:
    """Multiply the older moves of all runs by a factor, or if it is NaN by what each run suggests."""
    for r in range(moves.shape[0]):
        own = find_factor(moves[r], known[r], posterior[r]) if np.isnan(factor) else factor
        if own < 1.0:
            forget(moves[r], known[r], posterior[r], own)


@compiled
def learn_pools(moves: Floats, levels: Levels) -> None:
    """Update the prior of all agents of each run."""
    for r in range(moves.shape[0]):
        learn_pool(
            moves[r], Levels(levels.pool[r], levels.agent_weight[r], levels.base_weight[r], levels.base_share[r])
        )


@compiled
def use_pools(moves: Floats, pool: Floats, weight: Floats, posterior: Floats) -> None:
    """Fill weights and posterior from the prior of all agents: what `learn_mixtures` does where there is no mixture."""
    runs, agents, actions, states, _ = moves.shape
    for r in range(runs):
        for a in range(actions):
            for s in range(states):
                total = 0.0
                for t in range(states):
                    total += pool[r, a, s, t]
                weight[r, a, s] = total
        for n in range(agents):
            for a in range(actions):
                for s in range(states):
                    for t in range(states):
                        posterior[r, n, a, s, t] = moves[r, n, a, s, t] + pool[r, a, s, t]


@compiled
def learn_mixtures(
    moves: Floats, pool: Floats, weight: Floats, posterior: Floats, responsibility: Floats, search: bool
) -> None:
    """Update the mixture of each run, or fit one if `search`; `responsibility` is [R, N, K]."""
    runs, agents, actions, states, _ = moves.shape
    seen = np.empty((agents, actions, states))
    for r in range(runs):
        for n in range(agents):
            for a in range(actions):
                for s in range(states):
                    number = 0.0
                    for t in range(states):
                        number += moves[r, n, a, s, t]
                    seen[n, a, s] = number
        learn_mixture(moves[r], seen, pool[r], search, responsibility[r], weight[r], posterior[r])


@compiled
def learn_feature_priors(
    features: Floats, moves: Floats, coefficients: Floats, variance: Floats, weight: Floats, posterior: Floats
) -> None:
    """Update what the features of agents, [R, N, F], say of their priors."""
    for r in range(moves.shape[0]):
        known = standardise(features[r])
        learn_feature_prior(known, moves[r], coefficients[r], variance[r], weight[r], posterior[r])
