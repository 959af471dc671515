"""One step of the simulated world: every agent of every run moves to its next state and earns its reward.

state, action  [R, N]  the current states, and 1 for the agents acted on
"""

from typing import NamedTuple

import numpy as np

from restive.kernels.jit import compiled, inlined
from restive.kernels.rng import fold, normal_quantile, unit, unit_open
from restive.types import Floats, Ints, Keys

# Rows longer than this are searched by bisection.
MAX_LINEAR_SEARCH = 24


class Dynamics(NamedTuple):
    """How the agents of I instances move and what they earn; run r plays instance[r]."""

    instance: Ints  # [R]
    cumulative: Floats  # [I, N, A, S, S] cumulative rows of the transition probabilities
    reward: Floats  # [I, N, S] expected reward on arrival
    benefit: Floats  # [I, N, S] what acting adds to the expected reward, I(s)
    threshold: Floats  # [I]
    agents: Ints  # [N] the numbers by which agents enter the random draws
    noise_std: float  # of the observed reward


class Outcome(NamedTuple):
    """The result of a step."""

    after: Ints  # [R, N] the next states
    reward: Floats  # [R, N] as observed, with noise
    total: Floats  # [R] expected reward, summed over agents
    cost: Floats  # [R] threshold − benefit, summed over the agents acted on below the threshold


@inlined
def land(cumulative: Floats, i: int, n: int, a: int, s: int, draw: float) -> int:
    """The state that a uniform `draw` selects from the cumulative row [i, n, a, s].

    >>> land(np.array([0.2, 0.5, 1.0]).reshape(1, 1, 1, 1, 3), 0, 0, 0, 0, 0.4)
    1
    """
    last = cumulative.shape[4] - 1
    state = 0
    if last < MAX_LINEAR_SEARCH:
        # Counting has no branch to mispredict, and a misprediction costs more than the whole loop.
        for j in range(last):
            state += draw >= cumulative[i, n, a, s, j]
        return state
    while state < last:
        middle = (state + last) >> 1
        if draw >= cumulative[i, n, a, s, middle]:
            state = middle + 1
        else:
            last = middle
    return state


@compiled
def advance(state: Ints, action: Ints, dynamics: Dynamics, move_keys: Keys, noise_keys: Keys, outcome: Outcome) -> None:
    """Move every agent of every run by one step and fill `outcome`.

    move_keys, noise_keys [R]: the keys of the runs for the streams TRANSITION and NOISE in this step.
    """
    agents = dynamics.agents
    for r in range(state.shape[0]):
        i = dynamics.instance[r]
        total, cost = 0.0, 0.0
        for n in range(state.shape[1]):
            here, done = state[r, n], action[r, n]
            there = land(dynamics.cumulative, i, n, done, here, unit(fold(move_keys[r], agents[n])))
            reward = dynamics.reward[i, n, there]
            outcome.after[r, n] = there
            outcome.reward[r, n] = reward
            total += reward
            cost += max(0.0, dynamics.threshold[i] - dynamics.benefit[i, n, here]) if done == 1 else 0.0
        if dynamics.noise_std > 0.0:
            for n in range(state.shape[1]):
                normal = normal_quantile(unit_open(fold(noise_keys[r], agents[n])))
                outcome.reward[r, n] += dynamics.noise_std * normal
        outcome.total[r] = total
        outcome.cost[r] = cost


@compiled
def first_states(states: int, start_keys: Keys, agents: Ints) -> Ints:
    """Uniformly random first states, [R, N]; start_keys [R]: the keys of the runs for the stream START."""
    drawn = np.empty((start_keys.size, agents.size), np.int64)
    for r in range(start_keys.size):
        for n in range(agents.size):
            drawn[r, n] = int(unit(fold(start_keys[r], agents[n])) * states)
    return drawn
