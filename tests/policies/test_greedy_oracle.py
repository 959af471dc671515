"""The greedy oracle: no other set of agents brings more in the next step, tried one by one."""

from itertools import combinations

import numpy as np
import pytest

from restive import Problem, World, make_problems
from restive.contract import as_ranking
from restive.policies.greedy_oracle import GreedyOracle
from restive.types import Ints


@pytest.mark.parametrize("states", [2, 4])
def test_no_other_set_brings_more_in_the_next_step(states: int) -> None:
    problems = make_problems("many-state-v1", instances=4, agents=6, budget=2, states=states, seed=3)
    world, policy = World(problems, runs=5, seed=1), GreedyOracle()
    belief, state, draws = policy.begin(world.shape, world.model), world.first_states(), world.draws(0)
    action = world.choose(as_ranking(policy.rank(belief, state, draws), world.shape, policy.name), draws)
    for r in range(20):
        problem, here = problems[world.model.instance[r]], state[r]

        def worth(chosen: set[int], problem: Problem = problem, here: Ints = here) -> float:
            rows = (problem.transition[n, int(n in chosen), here[n]] for n in range(6))
            return sum(float(row @ problem.reward[n]) for n, row in enumerate(rows))

        best = max(worth(set(pair)) for pair in combinations(range(6), 2))
        assert worth(set(np.flatnonzero(action[r]).tolist())) == pytest.approx(best, abs=1e-12)


def test_it_never_explores_and_never_learns() -> None:
    world, policy = World(make_problems("two-state-v1", agents=6, budget=2)[0], runs=2), GreedyOracle()
    belief, state = policy.begin(world.shape, world.model), world.first_states()
    before = [array.copy() for array in belief]
    assert (as_ranking(policy.rank(belief, state, world.draws(0)), world.shape, "").explore == 0).all()
    outcome = world.advance(state, np.ones_like(state), world.draws(0))
    policy.learn(belief, state, np.ones_like(state), outcome.reward, outcome.after)
    assert all(np.array_equal(one, other) for one, other in zip(before, belief, strict=True))
