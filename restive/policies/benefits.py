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
from restive.kernels.feature_prior import standardise
from restive.kernels.gibbs import Data, begin, fill_rows, gather, sweep
from restive.kernels.jit import compiled, inlined
from restive.kernels.reward_sampler import Rewards, begin_rewards, draw_reward, draw_rewards
from restive.kernels.rng import run_keys
from restive.policies.transition_counts import Counts
from restive.types import Bools, Floats, Ints, Keys

# Agents that must have been seen in a state under each action.
MIN_TRIED = 5
# Sweeps before the first draw and between draws.
FIRST_SWEEPS, SWEEPS_PER_DRAW = 300, 3
# Sweeps over agents from whom nothing common is drawn, before the first draw.
LATER_SWEEPS = 5
# Draws: fewer for more agents, because that is what takes the time.
MIN_DRAWS, MAX_DRAWS, DRAWN_BENEFITS = 20, 200, 200_000
# Agents from whom the common parts are drawn, spread evenly over all.
MAX_SHARED = 500
SEED = 20_240_229


def estimate_benefits(
    counts: Counts,
    squared_deviations: Floats,
    price: Floats,
    discount: float,
    agents: Ints | None = None,
    features: Floats | None = None,
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
    features
        [R, N, F] fixed numbers of the agents.
    """
    runs, everyone, _, states, _ = counts.moves.shape
    asked = np.arange(everyone) if agents is None else np.asarray(agents, np.int64)
    benefit, error = np.full((2, runs, asked.size, states), np.nan)
    mean, mean_error = np.full((2, runs, states), np.nan)
    for r in range(runs):
        known = find_known(counts.moves[r])
        if asked.size == 0 or not known.any():
            continue
        drawn = _draw(counts, squared_deviations, price, discount, asked, features, r)
        benefit[r] = np.where(known, drawn.mean(axis=0), np.nan)
        error[r] = np.where(known, drawn.std(axis=0, ddof=1), np.nan)
        means = drawn.mean(axis=1)
        mean[r] = np.where(known, means.mean(axis=0), np.nan)
        mean_error[r] = np.where(known, means.std(axis=0, ddof=1), np.nan)
    return Benefits(benefit, error, mean, mean_error)


def find_known(moves: Floats) -> Bools:
    """The states, [S], in which enough agents were seen under both actions; moves: [N, A, S, S]."""
    tried = (moves.sum(axis=-1) > 0).sum(axis=0)
    known: Bools = (tried >= MIN_TRIED).all(axis=0)
    return known


def _draw(
    counts: Counts,
    squared_deviations: Floats,
    price: Floats,
    discount: float,
    asked: Ints,
    features: Floats | None,
    run: int,
) -> Floats:
    """Draws of the benefits of the agents asked for, [D, M, S]."""
    everyone = counts.moves.shape[1]
    teachers = np.unique(np.linspace(0, everyone - 1, min(everyone, MAX_SHARED)).astype(np.int64))
    taken = np.concatenate([teachers, np.setdiff1d(asked, teachers)])
    place = np.empty(everyone, np.int64)
    place[taken] = np.arange(taken.size)
    moves, arrivals, total = (np.ascontiguousarray(array[run][taken]) for array in counts[:3])
    moves = np.rint(moves)  # counts of a policy that forgets are not whole
    repeated = [np.maximum(array - 1, 0).sum() for array in (counts.arrivals[run], arrivals[: teachers.size])]
    share = repeated[1] / repeated[0] if repeated[0] > 0 else 0.0
    known = np.zeros((everyone, 0)) if features is None else standardise(features[run])
    data = gather(moves, teachers.size, known[taken])
    rewards = Rewards(arrivals, total, float(squared_deviations[run] * share))
    draws = int(np.clip(DRAWN_BENEFITS // asked.size, MIN_DRAWS, MAX_DRAWS))
    rest = place[asked], price[run][asked], float(discount), draws
    drawn: Floats = _draw_benefits(run_keys(SEED, np.arange(2)), data, rewards, *rest)
    return drawn


@compiled
def _draw_benefits(
    stream: Keys, data: Data, rewards: Rewards, asked: Ints, price: Floats, discount: float, draws: int
) -> Floats:
    """Draws of the benefits of the agents at some positions, [D, M, S]."""
    agents, states = rewards.arrivals.shape
    teaching = Rewards(rewards.arrivals[: data.teachers], rewards.total[: data.teachers], rewards.squared_deviations)
    sample, (level, variance) = begin(stream, data), begin_rewards(teaching)
    for _ in range(FIRST_SWEEPS):
        sweep(stream, data, sample, data.teachers)
        draw_rewards(stream, teaching, level, variance)
    if agents > data.teachers:
        for _ in range(LATER_SWEEPS):
            sweep(stream, data, sample, agents)
    drawn = np.empty((draws, asked.size, states))
    rows, reward, worth = np.empty((2, states, states)), np.empty(states), np.zeros((2, states))
    for draw in range(draws):
        for _ in range(SWEEPS_PER_DRAW):
            sweep(stream, data, sample, agents)
            draw_rewards(stream, teaching, level, variance)
        for m in range(asked.size):
            fill_rows(data, sample, asked[m], rows)
            for s in range(states):
                reward[s] = draw_reward(stream, rewards, level, variance, asked[m], s)
            _solve(rows, reward, price[m], discount, worth)
            drawn[draw, m] = worth[1] - worth[0]
    return drawn


@inlined
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


@inlined
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
