"""Model predictive control takes the first decision of a plan for the posterior mean, and makes a new one when due."""

import numpy as np
import pytest

from restive import InputError, Problem, World, make_policy, make_problems, simulate
from restive.policies.lp_update import LpUpdate
from restive.policies.transition_counts import mean_rewards
from restive.simulation import Simulation
from restive.solvers.fluid import plan

STAY, CLIMB, FALL = [[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]


def test_an_agent_that_is_lifted_for_good_goes_before_one_that_must_be_held_up() -> None:
    """All are in the bad state. Acting lifts the first for good, the second for a step, and the third not at all."""
    problem = Problem([[STAY, CLIMB], [FALL, CLIMB], [STAY, STAY]], [0.0, 1.0], 1, start=[0, 0, 0])
    world = World(problem, runs=1)
    policy = LpUpdate(tau=6)
    belief = policy.start(world.shape)
    belief.counts.moves[0] = 1e6 * problem.transition
    belief.counts.arrivals[:], belief.counts.total[..., 1] = 1.0, 1.0
    priority = policy.rank(belief, np.zeros((1, 3), np.int64), world.draws(0)).priority
    assert priority.round(3).tolist() == [[1.0, 0.0, 0.0]]
    priority = policy.rank(belief, np.array([[1, 0, 0]]), world.draws(1)).priority
    assert priority.round(3).tolist() == [[0.0, 1.0, 0.0]]


@pytest.mark.parametrize(("tau", "chosen"), [(1, [1.0, 0.0]), (6, [0.0, 1.0])])
def test_a_longer_plan_prefers_the_smaller_reward_that_lasts(tau: int, chosen: list[float]) -> None:
    problem = Problem([[FALL, CLIMB], [STAY, CLIMB]], [[0.0, 1.0], [0.0, 0.6]], 1, start=[0, 0])
    world, policy = World(problem, runs=1), LpUpdate(tau=tau)
    belief = policy.start(world.shape)
    belief.counts.moves[0], belief.counts.arrivals[:] = 1e6 * problem.transition, 1.0
    belief.counts.total[0] = problem.reward
    assert policy.rank(belief, np.zeros((1, 2), np.int64), world.draws(0)).priority.round(3).tolist() == [chosen]


def test_priorities_are_the_first_fractions_of_the_plan_for_the_posterior_mean() -> None:
    world = World(make_problems("many-state-v1", agents=6, budget=2, states=3, seed=2)[0], runs=2, seed=4)
    game = Simulation(world, LpUpdate(tau=4, prior=2.0))
    game.advance(25)
    moves, reward = game.belief.counts.moves, mean_rewards(game.belief.counts)
    ranking, _ = game.decide()
    model = (moves + 2.0) / (moves + 2.0).sum(axis=-1, keepdims=True)
    for run in range(2):
        made = plan(model[run], reward[run], 2, 4, np.eye(3)[game.state[run]], gap=1e-2)
        wanted = next(made.fractions())[np.arange(6), game.state[run]]
        np.testing.assert_allclose(ranking.priority[run], wanted, atol=1e-12)
        assert wanted.sum() == pytest.approx(2.0)


def test_a_plan_is_followed_for_as_many_steps_as_it_is_asked_to_be() -> None:
    world = World(make_problems("two-state-v1", agents=6, budget=2, seed=2)[0], runs=2, seed=4)
    game = Simulation(world, LpUpdate(tau=5, every=3))
    planned = []
    for _ in range(8):
        game.advance(1)
        planned.append(int(game.belief.planned))
    assert planned == [0, 0, 0, 3, 3, 3, 6, 6]


def test_it_learns() -> None:
    problems = make_problems("two-state-v1", instances=4, agents=20, budget=4, seed=7)
    reward = {
        name: simulate(problems, name, horizon=100, runs=2, seed=1).mean_reward().mean
        for name in ("random", "lp-update", "whittle-oracle")
    }
    assert reward["random"] + 0.5 * (reward["whittle-oracle"] - reward["random"]) < reward["lp-update"]


@pytest.mark.parametrize("settings", ["tau=0", "every=0", "every=6", "prior=0", "gap=0", "gap=1"])
def test_settings_out_of_range_are_refused(settings: str) -> None:
    with pytest.raises(InputError, match="lp-update: "):
        make_policy(f"lp-update:{settings}")
