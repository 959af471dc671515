"""OMR follows the activation shares of the fluid plan, times the reward or alone, step by step."""

import numpy as np
import pytest

from restive import InputError, Problem, Simulation, World, make_policy, make_problems, simulate
from restive.policies.fluid_schedule import INDICES, indices_at
from restive.policies.omr_oracle import OmrOracle
from restive.solvers.fluid import plan


@pytest.mark.parametrize("index", INDICES)
def test_priorities_are_the_indices_of_the_plan_at_every_step(index: str) -> None:
    problems = make_problems("many-state-v1", instances=2, agents=5, budget=2, seed=1, states=3)
    world = World(problems, runs=2, horizon=37)
    policy = OmrOracle(index=index)
    belief = policy.start(world.shape, world.model)
    plans = [plan(p.transition, p.reward, 2, 37, gap=1e-3).fractions() for p in problems]
    state = world.first_states()
    for step in range(37):
        shares = np.round(np.stack([next(each) for each in plans]), 9)
        expected = np.empty((4, 5))
        for run, n in np.ndindex(4, 5):
            problem, s = problems[run // 2], state[run, n]
            acting = problem.transition[n, 1, s] @ problem.reward[n]
            weight = {"reward": acting, "state": problem.reward[n, s], "share": 1.0}[index]
            expected[run, n] = shares[run // 2, n, s] * weight
        np.testing.assert_allclose(policy.rank(belief, state, world.draws(step)).priority, expected, rtol=1e-15)


def test_after_the_last_step_the_last_indices_hold() -> None:
    world = World(make_problems("two-state-v1", agents=4, budget=1)[0], horizon=10)
    belief = OmrOracle().start(world.shape, world.model)
    last = indices_at(belief.plans, 9, "reward").copy()
    np.testing.assert_array_equal(indices_at(belief.plans, 25, "reward"), last)


def test_it_stays_between_random_and_the_fluid_bound() -> None:
    problems = make_problems("two-state-v1", instances=3, agents=30, budget=6, seed=5)
    omr, random = (simulate(problems, name, 300, runs=5, seed=1) for name in ("omr-oracle", "random"))
    bound = np.mean([plan(p.transition, p.reward, 6, 300).bound / 300 for p in problems])
    assert random.reward.mean() < omr.reward.mean() < bound + 3 * float(omr.mean_reward().error)
    assert omr.reward.mean() > 0.95 * bound


def test_indices_by_hand() -> None:
    # Acting leads to state 1, waiting to state 0: the plan acts on the agent that gains 10, never on the one that gains 1.
    rows = [[[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]]
    world = World(Problem([rows, rows], [[2.0, 3.0], [1.0, 11.0]], 1), horizon=4)
    for index, expected in (("share", [1.0, 1.0]), ("state", [1.0, 11.0]), ("reward", [11.0, 11.0])):
        belief = OmrOracle(index=index).start(world.shape, world.model)
        assert indices_at(belief.plans, 0, index)[0].tolist() == [[0.0, 0.0], expected]


def test_another_index_is_refused() -> None:
    with pytest.raises(InputError, match="omr-oracle: index is 'rank'; it must be 'reward', 'state' or 'share'"):
        make_policy("omr-oracle:index=rank")


def test_without_a_horizon_it_says_so() -> None:
    world = World(make_problems("two-state-v1")[0])
    with pytest.raises(InputError, match="omr-oracle plans up to the horizon; give it one"):
        Simulation(world, make_policy("omr-oracle"))


def test_the_plan_begins_where_the_agents_do() -> None:
    free = make_problems("two-state-v1", agents=6, budget=1, seed=3)[0]
    bound = Problem(free.transition, free.reward, 1, start=[0, 1, 0, 1, 0, 1])
    world = World(bound, horizon=5)
    belief = OmrOracle(index="share").start(world.shape, world.model)
    expected = plan(free.transition, free.reward, 1, 5, np.eye(2)[bound.start])
    np.testing.assert_array_equal(indices_at(belief.plans, 0, "share")[0], np.round(next(expected.fractions()), 9))
    assert not np.array_equal(expected.level, plan(free.transition, free.reward, 1, 5).level)
