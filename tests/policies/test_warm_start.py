"""A learner that starts from a history: what it knows, when it forgets it, and that runs stay reproducible."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from restive.agent import Agent
from restive.contract import Past, Shape
from restive.errors import InputError
from restive.policies.belief import flatten, grow
from restive.policies.lagrange import Lagrange
from restive.problems import make_problems
from restive.simulation import Simulation, simulate
from restive.types import Floats
from restive.world import World

PROBLEMS = make_problems("two-state-v1", instances=3, agents=20, budget=4, seed=8)


@dataclass(frozen=True)
class Moves:
    """A history that is as long as it is exact: a hundred visits of each state under each action."""

    counts: Floats
    power: float = 1.0

    @property
    def value(self) -> Floats:
        return np.array([0.0, 1.0])


RIGHT = [Moves(np.rint(100 * problem.transition)) for problem in PROBLEMS]
WRONG = [Moves(np.rint(100 * problem.transition[:, :, :, ::-1])) for problem in PROBLEMS]


def simulated(history: Moves | list[Moves] | None, policy: str = "lagrange", threads: int = 1) -> Floats:
    return simulate(PROBLEMS, policy, horizon=60, runs=2, seed=3, threads=threads, history=history).reward


def test_a_right_history_helps_from_the_first_round_on_and_a_wrong_one_is_given_up() -> None:
    cold, right, wrong = (simulated(history).mean(axis=0) for history in (None, RIGHT, WRONG))
    oracle = simulate(PROBLEMS, "whittle-oracle", horizon=60, runs=2, seed=3).reward.mean(axis=0)
    assert right[:10].mean() > cold[:10].mean() + 0.5 * (oracle - cold)[:10].mean()
    assert right.mean() > 0.97 * oracle.mean()
    assert wrong.mean() > 0.96 * cold.mean()


def test_it_starts_with_the_moves_and_the_values_that_follow_from_them() -> None:
    policy, shape = Lagrange(), World(PROBLEMS[0]).shape
    belief = policy.start(shape)
    policy.warm_start(belief, shape, Past.of_runs(RIGHT[:1], shape))
    np.testing.assert_array_equal(belief.counts.moves[0], RIGHT[0].counts)
    rows = belief.posterior[0] / belief.posterior[0].sum(axis=-1, keepdims=True)
    assert np.abs(rows - PROBLEMS[0].transition).max() < 0.03
    wait, act = np.moveaxis(np.einsum("nast,nt->nas", rows, belief.value[0]), 1, 0)
    best = np.maximum(wait, act - belief.price[0])
    expected = np.array([-0.5, 0.5]) + 0.95 * (best - best.mean(axis=-1, keepdims=True))
    np.testing.assert_allclose(belief.value[0], expected, atol=0.01)


def test_trust_falls_only_where_agents_move_otherwise() -> None:
    mixed = np.where((np.arange(20) < 5)[:, None, None, None], WRONG[0].counts, RIGHT[0].counts)
    simulation = Simulation(World(PROBLEMS[0], seed=5), Lagrange(), Moves(mixed))
    simulation.advance(40)
    wait = simulation.belief.trust[0, :, 0]
    assert wait[:5].mean() < 0.5
    assert wait[5:].mean() > 0.9
    simulation.advance(60)
    assert simulation.belief.known.sum() > 20 * 60  # the moves so far are now those that may be outdated


@pytest.mark.parametrize("policy", ["lagrange", "lagrange:memory=30", "lagrange:prior=1", "lagrange:mixture=false"])
def test_runs_are_the_same_in_any_number_of_threads(policy: str) -> None:
    np.testing.assert_array_equal(simulated(RIGHT, policy), simulated(RIGHT, policy, threads=4))
    assert not np.array_equal(simulated(RIGHT, policy), simulated(None, policy))
    assert np.array_equal(simulated([RIGHT[0]] * 3, policy), simulated(RIGHT[0], policy))


def test_a_saved_simulation_continues_bit_for_bit(tmp_path: object) -> None:
    path = f"{tmp_path}/half.npz"
    world = World(PROBLEMS, seed=4)
    whole, half = Simulation(world, Lagrange(), RIGHT), Simulation(world, Lagrange(), RIGHT)
    reward, _ = whole.advance(30)
    half.advance(10)
    half.save(path)
    np.testing.assert_array_equal(Simulation.load(path, world).advance(20)[0], reward[:, 10:])


def test_an_agent_with_a_history_acts_as_the_simulation() -> None:
    problem = PROBLEMS[0]
    agent = Agent("lagrange", agents=20, states=2, budget=4, seed=6, history=RIGHT[0])
    simulation = Simulation(World(problem, seed=6), Lagrange(), RIGHT[0])
    _, action = simulation.decide()
    assert agent.act(simulation.state[0]) == np.flatnonzero(action[0]).tolist()


def test_newcomers_get_the_prior_of_the_history() -> None:
    policy, shape = Lagrange(), World(PROBLEMS[0]).shape
    belief = policy.start(shape)
    policy.warm_start(belief, shape, Past.of_runs(RIGHT[:1], shape))
    grown = grow(policy, belief, shape._replace(agents=23))
    np.testing.assert_array_equal(grown.posterior[0, 20], grown.posterior[0, 22])
    row = grown.posterior[0, 20] / grown.posterior[0, 20].sum(axis=-1, keepdims=True)
    assert np.abs(row - PROBLEMS[0].transition.mean(axis=0)).max() < 0.1


def test_a_power_counts_moves_less_and_keeps_them_whole() -> None:
    shape = World(PROBLEMS[0]).shape
    past = Past.of_runs([replace(RIGHT[0], power=0.1)], shape)
    assert (past.moves == np.rint(past.moves)).all()
    assert past.moves.sum() == pytest.approx(RIGHT[0].counts.sum() / 10, abs=5)
    nothing = Past.of_runs([replace(RIGHT[0], power=0.0)], shape)
    assert not nothing.moves.any()


def test_a_history_of_nobody_changes_nothing_that_matters() -> None:
    belief = Lagrange().start(World(PROBLEMS[0]).shape)
    shape = World(PROBLEMS[0]).shape
    Lagrange().warm_start(belief, shape, Past.of_runs([Moves(np.zeros((20, 2, 2, 2)))], shape))
    assert all(np.isfinite(array).all() for array in flatten(belief).values())


def test_histories_of_other_sizes_and_policies_that_cannot_use_them_are_refused() -> None:
    with pytest.raises(InputError, match="The history has 19 people and 2 states, the program 20 and 2"):
        simulated(Moves(np.ones((19, 2, 2, 2))))
    with pytest.raises(InputError, match="egt cannot start from a history; lagrange can"):
        simulated(RIGHT, "egt")
    shape = Shape(1, 20, 2, 4, None, np.ones(1))
    assert Past.of_runs(RIGHT[:1], shape).moves.shape == (1, 20, 2, 2, 2)
