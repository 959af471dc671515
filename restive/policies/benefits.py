"""The model that explains: what acting brings to each agent, with its error.

The model that decides (`lagrange`) is chosen for its decisions; its benefits rank people well, but they are not
calibrated. This one is computed from the same counts, independently of how agents were chosen: posterior draws of the
transition rows and rewards of every agent (`restive.kernels.gibbs`), each solved for its optimal values at the given price:

    value(s)   = reward(s) + discount · max(wait(s), act(s) − price)
    benefit(s) = act(s) − wait(s),   wait(s) = Σ_t row(t) · value(t), act(s) in the same way

The benefit is the mean over draws, the error their standard deviation. Where fewer than MIN_TRIED agents were seen in a
state under either action, the benefit is not known: NaN, rather than a number that rests on the prior. The draws are a
pure function of the counts. Many agents share a sample: what they have in common is drawn from at most MAX_SHARED of them.
"""

import numpy as np

from restive.contract import Benefits
from restive.kernels.gibbs import Data, Sample, begin, draw_dirichlet, draw_reward, draw_type, sweep
from restive.kernels.jit import compiled
from restive.kernels.rng import run_keys
from restive.policies.transition_counts import Counts
from restive.types import Bools, Floats, Ints, Keys

# Agents that must have been seen in a state under each action.
MIN_TRIED = 5
# Sweeps before the first draw and between draws.
FIRST_SWEEPS, SWEEPS_PER_DRAW = 150, 2
# Draws: fewer for more agents, because that is what takes the time.
MIN_DRAWS, MAX_DRAWS, DRAWN_BENEFITS = 20, 100, 200_000
# Agents from whom the common parts are drawn, spread evenly over all.
MAX_SHARED = 500
SEED = 20_240_229


def estimate_benefits(
    counts: Counts, squared_deviations: Floats, price: Floats, discount: float, agents: Ints | None = None
) -> Benefits:
    """The benefits of some agents by their positions, or of all, with errors from posterior draws.

    Parameters
    ----------
    counts
        Moves and rewards of all agents.
    squared_deviations
        [R] sum of squared deviations of rewards from the mean of their agent and state.
    price
        [R, N] what acting on an agent costs.
    discount
        The discount of future rewards.
    agents
        Positions of the agents asked for, [M].
    """
    runs, everyone, _, states, _ = counts.moves.shape
    asked = np.arange(everyone) if agents is None else np.asarray(agents, np.int64)
    benefit, error = np.full((2, runs, asked.size, states), np.nan)
    mean, mean_error = np.full((2, runs, states), np.nan)
    shared = np.unique(np.linspace(0, everyone - 1, min(everyone, MAX_SHARED)).astype(np.int64))
    for r in range(runs):
        known = find_known(counts.moves[r])
        if asked.size == 0 or not known.any():
            continue
        common, own = (_take(counts, r, some, float(squared_deviations[r])) for some in (shared, asked))
        draws = int(np.clip(DRAWN_BENEFITS // asked.size, MIN_DRAWS, MAX_DRAWS))
        drawn, means = _draw_benefits(
            run_keys(SEED, np.arange(2)), common, own, price[r][asked], float(discount), draws
        )
        benefit[r], error[r] = np.where(known, drawn, np.nan)
        mean[r] = np.where(known, means.mean(axis=0), np.nan)
        mean_error[r] = np.where(known, means.std(axis=0, ddof=1), np.nan)
    return Benefits(benefit, error, mean, mean_error)


def find_known(moves: Floats) -> Bools:
    """The states, [S], in which enough agents were seen under both actions; moves: [N, A, S, S]."""
    tried = (moves.sum(axis=-1) > 0).sum(axis=0)
    known: Bools = (tried >= MIN_TRIED).all(axis=0)
    return known


def _take(counts: Counts, run: int, agents: Ints, squared_deviations: float) -> Data:
    """The observations of some agents; their share of the squared deviations is by the number of repeated rewards."""
    moves, arrivals, total = (np.ascontiguousarray(array[run][agents]) for array in counts[:3])
    moves = np.rint(moves)  # counts of a policy that forgets are not whole
    everything, part = (np.maximum(array - 1, 0).sum() for array in (counts.arrivals[run], arrivals))
    share = part / everything if everything > 0 else 0.0
    return Data(moves, moves.sum(axis=-1), arrivals, total, squared_deviations * share)


@compiled
def _draw_benefits(
    stream: Keys, shared: Data, asked: Data, price: Floats, discount: float, draws: int
) -> tuple[Floats, Floats]:
    """Mean and standard deviation of the benefits over draws, [2, M, S], and the mean over agents of each draw, [D, S]."""
    agents, actions, states, _ = asked.moves.shape
    sample = begin(stream, shared)
    for _ in range(FIRST_SWEEPS):
        sweep(stream, shared, sample)
    drawn, means = np.zeros((2, agents, states)), np.zeros((draws, states))
    row, reward, shape = np.empty((actions, states, states)), np.empty(states), np.empty(states)
    worth = np.zeros((2, states))
    for draw in range(draws):
        for _ in range(SWEEPS_PER_DRAW):
            sweep(stream, shared, sample)
        for n in range(agents):
            _draw_agent(stream, asked, sample, n, shape, row, reward)
            _solve(row, reward, price[n], discount, worth)
            for s in range(states):
                benefit = worth[1, s] - worth[0, s]
                means[draw, s] += benefit / agents
                change = benefit - drawn[0, n, s]
                drawn[0, n, s] += change / (draw + 1)
                drawn[1, n, s] += change * (benefit - drawn[0, n, s])
    drawn[1] = np.sqrt(drawn[1] / (draws - 1))
    return drawn, means


@compiled
def _draw_agent(stream: Keys, data: Data, sample: Sample, n: int, shape: Floats, row: Floats, reward: Floats) -> None:
    """Fill rows and rewards of an agent, given what agents share."""
    actions, states, _ = row.shape
    k = draw_type(stream, data.moves[n], sample)
    for a in range(actions):
        for s in range(states):
            for t in range(states):
                shape[t] = sample.weight[a, s] * sample.type_row[k, a, s, t] + data.moves[n, a, s, t]
            draw_dirichlet(stream, shape, row[a, s])
    for s in range(states):
        reward[s] = draw_reward(stream, data, sample, n, s)


@compiled
def _solve(row: Floats, reward: Floats, price: float, discount: float, worth: Floats) -> None:
    """Fill `worth` [A, S] with wait(s) and act(s) under optimal values, by policy iteration from its last policy."""
    states = reward.size
    acts = np.empty(states, np.bool_)
    for s in range(states):
        acts[s] = worth[1, s] - price > worth[0, s]
    matrix, value = np.empty((states, states)), np.empty(states)
    for _ in range(100):
        for s in range(states):
            for t in range(states):
                matrix[s, t] = -discount * row[int(acts[s]), s, t]
            matrix[s, s] += 1.0
            value[s] = reward[s] - discount * price * acts[s]
        _eliminate(matrix, value)
        changed = False
        for s in range(states):
            for a in range(2):
                worth[a, s] = 0.0
                for t in range(states):
                    worth[a, s] += row[a, s, t] * value[t]
            net = worth[1, s] - price - worth[0, s]
            rounding = 1e-10 * (abs(worth[0, s]) + abs(price))
            if (net > rounding and not acts[s]) or (net < -rounding and acts[s]):
                acts[s], changed = not acts[s], True
        if not changed:
            break


@compiled
def _eliminate(matrix: Floats, value: Floats) -> None:
    """Solve matrix · x = value in place; no pivots, because the matrix is diagonally dominant."""
    states = value.size
    for i in range(states):
        for j in range(i + 1, states):
            factor = matrix[j, i] / matrix[i, i]
            for t in range(i, states):
                matrix[j, t] -= factor * matrix[i, t]
            value[j] -= factor * value[i]
    for i in range(states - 1, -1, -1):
        for t in range(i + 1, states):
            value[i] -= matrix[i, t] * value[t]
        value[i] /= matrix[i, i]
