"""Simulation tasks record sums that agree with the simulator, in any chunks; the regret is the cost below a threshold."""

from typing import ClassVar

import numpy as np
import pytest

from restive import make_problems, simulate
from restive.contract import Draws, Ranking, Shape
from restive.paper.jobs import run_job
from restive.paper.regret import logarithmic, square_root
from restive.paper.tasks import TASKS, simulation
from restive.paper.tasks.simulation import (
    TheoryEgt,
    bound,
    episodes,
    follow,
    gaps,
    play,
    recorded_steps,
    regret,
    thresholds,
)
from restive.policies.base import Learner
from restive.policies.egt import Egt
from restive.solvers.fluid import plan
from restive.solvers.myopic import benefit, largest_threshold
from restive.types import Ints
from restive.version import __version__
from restive.world import World, first_distribution

SIZES = {"instances": 3, "agents": 6, "budget": 2, "seed": 5}


def test_a_play_is_the_sums_of_its_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = simulate(make_problems("two-state-v1", **SIZES), "egt", 50, runs=4, seed=9, noise=0.3)
    for chunk in (12, 1, 4):
        monkeypatch.setattr(simulation, "fitting_runs", lambda shape, chunk=chunk: chunk)
        columns = play("two-state-v1", SIZES, "egt", 50, runs=4, seed=9, noise=0.3)
        steps = recorded_steps(50)
        for name, values in (("reward", trace.reward), ("cost", trace.cost)):
            sums = trace.by_instance(np.cumsum(values, axis=1))[:, steps - 1]
            np.testing.assert_allclose(columns[name].reshape(3, -1), sums, rtol=1e-12, atol=1e-12)
    assert columns["step"].tolist() == steps.tolist() * 3
    assert columns["instance"].tolist() == np.repeat([0, 1, 2], steps.size).tolist()


@pytest.mark.parametrize("horizon", [1, 7, 20, 100, 1000, 2000, 100_000])
def test_the_kept_steps_rise_to_the_horizon_and_have_the_round_ones(horizon: int) -> None:
    steps = recorded_steps(horizon)
    assert (np.diff(steps) > 0).all()
    assert steps[0] == 1
    assert steps[-1] == horizon
    assert set(range(1, min(20, horizon) + 1)) <= set(steps.tolist())
    if horizon >= 100:
        assert {horizon // 100, horizon // 10, horizon // 2, horizon - horizon // 10} <= set(steps.tolist())


class Watcher(Learner[Ranking]):
    """Sees where the agents are, and in which step."""

    name = "watcher"
    seen: ClassVar[list[tuple[int, list[int]]]] = []

    def start(self, shape: Shape) -> Ranking:
        return Ranking(np.zeros((shape.runs, shape.agents)), np.zeros(shape.runs))

    def rank(self, belief: Ranking, state: Ints, draws: Draws) -> Ranking:
        self.seen.append((draws.step, state[0].tolist()))
        return belief


def test_after_each_episode_all_agents_are_back_where_they_started() -> None:
    world = World(make_problems("two-state-v1", instances=1, agents=30, budget=2, seed=5), 1, 3, horizon=12)
    Watcher.seen.clear()
    follow(world, Watcher(), np.array([4, 6, 8, 12]), episode=4)
    assert [step for step, _ in Watcher.seen] == list(range(12))
    starts = [states for step, states in Watcher.seen if step % 4 == 0]
    assert starts == [world.first_states()[0].tolist()] * 3
    assert Watcher.seen[1][1] != starts[0]


def test_episodes_keep_what_was_learnt() -> None:
    columns = episodes("two-state-v1", {**SIZES, "instances": 20}, "egt", length=30, episodes=8, runs=4, seed=1)
    reward = columns["reward"].reshape(20, 8)
    first, last = reward[:, 0].mean(), (reward[:, -1] - reward[:, -2]).mean()
    assert last > first + 1.0


def test_the_bound_is_above_what_any_policy_collects_and_below_the_plans_of_the_whole() -> None:
    columns = bound("two-state-v1", SIZES, horizon=60)
    bounds = columns["reward"].reshape(3, -1)
    for number, problem in enumerate(make_problems("two-state-v1", **SIZES)):
        whole = plan(problem.transition, problem.reward, problem.budget, 60, first_distribution(problem)).bound
        assert bounds[number, -1] == pytest.approx(whole, rel=5e-3)
    played = play("two-state-v1", SIZES, "whittle-oracle", 60, runs=400, seed=2)
    late = columns["step"] >= 5
    assert (played["reward"][late] < columns["reward"][late] * 1.02).all()


def test_every_task_says_who_did_it_and_how_long_it_took() -> None:
    made = run_job(
        "play", {"family": "two-state-v1", "sizes": SIZES, "policy": "random", "horizon": 5, "runs": 2, "seed": 0}
    )
    assert made.version == __version__
    assert made.seconds > 0
    assert set(made.columns) == {"instance", "step", "reward", "cost"}
    assert TASKS["play"] is play


GAINS = np.array([[[0.9, 0.8], [0.1, 0.5]]])


def test_ordered_instances_have_one_agent_better_in_all_states() -> None:
    for problem in make_problems("ordered-v1", instances=50, seed=3):
        better, weaker = benefit(problem.transition, problem.reward)
        assert better.min() >= weaker.max()
        assert weaker[1] - weaker[0] >= 0.15
        assert (problem.transition > 0).all()


def test_an_ordered_instance_stays_the_same_when_more_are_asked_for() -> None:
    few, many = (make_problems("ordered-v1", instances=count, seed=3) for count in (2, 9))
    assert [one.transition.tolist() for one in few] == [one.transition.tolist() for one in many[:2]]


@pytest.mark.parametrize(("share", "threshold", "gap"), [(0.1, 0.14, 0.36), (0.5, 0.3, 0.2), (0.9, 0.46, 0.04)])
def test_thresholds_lie_between_the_weaker_benefits(share: float, threshold: float, gap: float) -> None:
    assert thresholds(GAINS, share) == pytest.approx([threshold])
    assert gaps(GAINS, thresholds(GAINS, share)) == pytest.approx([gap])


def test_eps_gt_by_the_theorem_is_eps_gt_with_its_settings_instance_by_instance() -> None:
    problems = make_problems("ordered-v1", instances=3, seed=1)
    columns = regret(0.5, "egt", instances=3, horizon=200, runs=4, seed=1, theory=True)
    costs = columns["cost"].reshape(3, -1)
    steps = columns["step"][columns["instance"] == 0]
    for number, problem in enumerate(problems):
        gains = benefit(problem.transition, problem.reward)[None]
        gamma = float(thresholds(gains, 0.5)[0])
        player = Egt.theory(2, 1, gap=float(gaps(gains, np.array([gamma]))[0]), gamma=gamma)
        # Alone, an instance would be number 0 and get other random numbers: it is simulated in its place among the others.
        whole = simulate(problems, player, 200, runs=4, seed=1, threshold=gamma)
        own = np.cumsum(whole.cost[whole.instance == number], axis=1).mean(axis=0)
        np.testing.assert_allclose(costs[number], own[steps - 1], rtol=1e-12)


def test_less_exploration_is_a_larger_gap_in_its_formula() -> None:
    world = World(make_problems("ordered-v1", instances=2, seed=1), 2)
    usual, less = (TheoryEgt(0.5, scale).begin(world.shape, world.model) for scale in (1.0, 0.1))
    np.testing.assert_allclose(less.gap_squared, 10 * usual.gap_squared)


def test_nothing_costs_where_all_that_is_acted_on_is_good() -> None:
    problems = make_problems("ordered-v1", instances=4, seed=2)
    gains = np.stack([benefit(problem.transition, problem.reward) for problem in problems])
    for share in (0.1, 0.5, 0.9):
        assert all(
            gamma <= largest_threshold(gain, 1) for gamma, gain in zip(thresholds(gains, share), gains, strict=True)
        )
        assert regret(share, "threshold-oracle", 4, 100, 2, 2)["cost"].max() == 0.0


def test_the_bounds_are_those_of_the_proof_by_hand() -> None:
    steps = np.array([10, 1000])
    by_hand = [0.2 * (2 * 2 * 16 * np.log(step) / 0.2**2 + 12 * 3) for step in steps]
    np.testing.assert_allclose(logarithmic(GAINS, 0.5, steps)[0], by_hand)
    by_hand = [1.0 * np.sqrt(1 * 2 * 16 * 2 * 1 * step * np.log(step)) for step in steps]
    np.testing.assert_allclose(square_root(GAINS, 0.5, steps)[0], by_hand)
