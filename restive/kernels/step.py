"""How the simulated world moves: every agent of every run goes to its next state, and what that is worth.

state, action, after  [R, N]         now, what is done, and where that leads
cumulative            [I, N, A, S, S]  cumulated rows of the transitions of each instance; run r belongs to instance[r]
reward, benefit       [I, N, S]      expected reward on arrival; what acting adds to it, I(s)
seen                  [R, N]         the reward as observed: expected plus Gaussian noise
total, cost           [R]            Σ over agents of the expected reward; of (threshold − benefit) acted on below it
"""

import numpy as np

from restive.kernels.jit import compiled
from restive.kernels.rng import fold, normal_quantile, unit, unit_open
from restive.types import Floats, Ints, Keys

FEW = 24


@compiled
def land(cumulative: Floats, i: int, n: int, a: int, s: int, luck: float) -> int:
    """The state whose share of the cumulated row [i, n, a, s] holds `luck`.

    >>> land(np.array([0.2, 0.5, 1.0]).reshape(1, 1, 1, 1, 3), 0, 0, 0, 0, 0.4)
    1
    """
    last = cumulative.shape[4] - 1
    state = 0
    if last < FEW:
        # Counting does not branch: the processor cannot guess luck, and a wrong guess costs more than all of this.
        for j in range(last):
            state += luck >= cumulative[i, n, a, s, j]
        return state
    while state < last:
        middle = (state + last) >> 1
        if luck >= cumulative[i, n, a, s, middle]:
            state = middle + 1
        else:
            last = middle
    return state


@compiled
def advance(
    state: Ints,
    action: Ints,
    instance: Ints,
    cumulative: Floats,
    reward: Floats,
    benefit: Floats,
    threshold: Floats,
    spread: float,
    moves: Keys,
    noises: Keys,
    agents: Ints,
    after: Ints,
    seen: Floats,
    total: Floats,
    cost: Floats,
) -> None:
    """Move every agent of every run by one step; moves, noises: the runs' keys for these streams in this step."""
    for r in range(state.shape[0]):
        i = instance[r]
        gained, lost = 0.0, 0.0
        for n in range(state.shape[1]):
            here, done = state[r, n], action[r, n]
            there = land(cumulative, i, n, done, here, unit(fold(moves[r], agents[n])))
            worth = reward[i, n, there]
            after[r, n] = there
            seen[r, n] = worth
            gained += worth
            lost += max(0.0, threshold[i] - benefit[i, n, here]) if done == 1 else 0.0
        if spread > 0.0:
            for n in range(state.shape[1]):
                seen[r, n] += spread * normal_quantile(unit_open(fold(noises[r], agents[n])))
        total[r] = gained
        cost[r] = lost


@compiled
def first_states(states: int, starts: Keys, agents: Ints) -> Ints:
    """Uniformly random first states, [R, N]; starts: the runs' keys for the stream START."""
    drawn = np.empty((starts.size, agents.size), np.int64)
    for r in range(starts.size):
        for n in range(agents.size):
            drawn[r, n] = int(unit(fold(starts[r], agents[n])) * states)
    return drawn
