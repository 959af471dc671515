"""R(MA)²B explores uniformly, then commits to the plan of the most hopeful model."""

import numpy as np
import pytest

from restive import InputError, Simulation, World, make_policy, make_problems, simulate
from restive.policies.fluid_schedule import INDICES, indices_at
from restive.policies.rma2b import Rma2b
from restive.policies.transition_counts import mean_rewards
from restive.solvers.fluid import plan


def test_exploring_to_the_end_is_the_random_policy_bit_for_bit() -> None:
    problems = make_problems("two-state-v1", instances=2, agents=9, budget=3, seed=2)
    explorer, random = (simulate(problems, name, 50, runs=3, seed=6) for name in ("rma2b:explore=50", "random"))
    np.testing.assert_array_equal(explorer.reward, random.reward)


def test_it_explores_for_a_tenth_of_the_horizon_by_default() -> None:
    problems = make_problems("two-state-v1", agents=9, budget=3, seed=2)
    default, given = (simulate(problems, name, 95, runs=3, seed=6) for name in ("rma2b", "rma2b:explore=10"))
    np.testing.assert_array_equal(default.reward, given.reward)


@pytest.mark.parametrize("width", [1.0, 2.0, 0.0])
def test_the_plan_is_that_of_the_counts_and_radii_when_exploration_ends(width: float) -> None:
    world = World(make_problems("two-state-v1", agents=5, budget=2, seed=3)[0], runs=2, seed=1, horizon=60)
    simulation = Simulation(world, Rma2b(explore=20, width=width, index="share"))
    simulation.advance(20)
    counts, state = simulation.belief.counts, simulation.state
    moves, rewards = counts.moves.copy(), mean_rewards(counts)
    simulation.advance()
    for run in range(2):
        visits = moves[run].sum(axis=-1)
        estimate = np.where(visits[..., None] > 0, moves[run] / np.maximum(visits, 1)[..., None], 0.5)
        radius = width * np.sqrt(np.log(4 * 2 * 2 * 5 * 20 / 1e-3) / (2 * np.maximum(visits, 1)))
        expected = plan(estimate, rewards[run], 2, 40, np.eye(2)[state[run]], radius, gap=1e-2)
        np.testing.assert_array_equal(
            indices_at(simulation.belief.plans, 0, "share")[run], np.round(next(expected.fractions()), 9)
        )


@pytest.mark.parametrize("index", INDICES)
def test_priorities_are_the_indices_of_the_plan(index: str) -> None:
    world = World(make_problems("many-state-v1", agents=5, budget=2, seed=3, states=3)[0], runs=2, seed=1, horizon=60)
    simulation = Simulation(world, Rma2b(explore=20, index=index))
    simulation.advance(25)
    plans, state = simulation.belief.plans, simulation.state
    shares = indices_at(plans._replace(block=np.array(-1), table=plans.table.copy()), 5, "share")
    acting = np.einsum("rnst,rnt->rns", plans.transition[:, :, 1], plans.reward)
    weight = {"reward": acting, "state": plans.reward, "share": np.ones_like(acting)}[index]
    run, agent = np.arange(2)[:, None], np.arange(5)
    expected = (shares * weight)[run, agent, state]
    np.testing.assert_allclose(simulation.decide()[0].priority, expected, rtol=1e-14)


def test_without_a_box_the_plan_is_that_of_the_observed_frequencies() -> None:
    assert make_policy("rma2b:printed") == Rma2b(width=0.0)
    assert make_policy("rma2b:authors") == Rma2b(index="state")


def test_it_beats_random_once_it_has_explored() -> None:
    problems = make_problems("two-state-v1", instances=4, agents=20, budget=4, seed=8)
    explorer, random = (simulate(problems, name, 400, runs=3, seed=6) for name in ("rma2b", "random"))
    assert explorer.reward[:, 200:].mean() > random.reward[:, 200:].mean() + 0.5


def test_without_a_horizon_it_says_so() -> None:
    with pytest.raises(InputError, match="rma2b plans up to the horizon; give it one"):
        Simulation(World(make_problems("two-state-v1")[0]), make_policy("rma2b"))


@pytest.mark.parametrize(
    "settings", ["explore=-1", "explore=1.5", "delta=0", "delta=1", "gap=0", "index=rank", "width=-1", "width=nan"]
)
def test_invalid_settings_are_refused(settings: str) -> None:
    with pytest.raises(InputError, match="rma2b: "):
        make_policy(f"rma2b:{settings}")
