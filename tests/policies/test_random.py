"""Random choice: all sets alike, whatever the states, and unrelated from step to step."""

from collections import Counter
from itertools import combinations

import numpy as np
from scipy import stats

from restive import World, make_problems
from restive.kernels.top_k import inclusion
from restive.policies.random import Random


def choices(runs: int, steps: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Actions, [steps, runs, N = 5], of which 2 are ones."""
    world, policy = World(make_problems("two-state-v1", agents=5, budget=2, seed=2)[0], runs=runs, seed=7), Random()
    belief, state = policy.begin(world.shape, world.model), world.first_states()
    taken = []
    for step in range(steps):
        draws = world.draws(step)
        taken.append(world.choose(policy.rank(belief, state, draws), draws))
        state = world.advance(state, taken[-1], draws).after
    return np.stack(taken)


def test_all_sets_are_equally_likely() -> None:
    counts = Counter(tuple(np.flatnonzero(row).tolist()) for row in choices(1000, 10).reshape(-1, 5))
    assert set(counts) == set(combinations(range(5), 2))
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3


def test_steps_are_unrelated() -> None:
    taken = choices(1000, 10)
    one, other = taken[1:].ravel(), taken[:-1].ravel()
    assert abs(np.corrcoef(one, other)[0, 1]) < 4 / np.sqrt(one.size)


def test_everyone_is_included_by_budget_over_agents() -> None:
    world, policy = World(make_problems("two-state-v1", agents=5, budget=2)[0], runs=2), Random()
    ranking = policy.rank(policy.begin(world.shape, world.model), world.first_states(), world.draws(0))
    assert (inclusion(*ranking[:2], 2) == 0.4).all()
