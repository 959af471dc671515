"""What a task keeps of a play is what the whole play says, however it is cut into chunks and episodes."""

from typing import ClassVar

import numpy as np
import pytest

from restive import make_problems, simulate
from restive.contract import Draws, Ranking, Shape
from restive.paper.tasks import TASKS, carry_out, playing
from restive.paper.tasks.playing import bound, episodes, follow, kept_steps, play
from restive.policies.base import Learner
from restive.solvers.fluid import plan
from restive.types import Ints
from restive.version import __version__
from restive.world import World, first_distribution

SIZES = {"instances": 3, "agents": 6, "budget": 2, "seed": 5}


def test_a_play_is_the_sums_of_its_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = simulate(make_problems("two-state-v1", **SIZES), "egt", 50, runs=4, seed=9, noise=0.3)
    for chunk in (20_000, 6, 25):
        monkeypatch.setattr(playing, "MAX_CHUNK_AGENTS", chunk)
        columns = play("two-state-v1", SIZES, "egt", 50, runs=4, seed=9, noise=0.3)
        steps = kept_steps(50)
        for name, values in (("reward", trace.reward), ("cost", trace.cost)):
            sums = trace.by_instance(np.cumsum(values, axis=1))[:, steps - 1]
            np.testing.assert_allclose(columns[name].reshape(3, -1), sums, rtol=1e-12, atol=1e-12)
    assert columns["step"].tolist() == steps.tolist() * 3
    assert columns["instance"].tolist() == np.repeat([0, 1, 2], steps.size).tolist()


@pytest.mark.parametrize("horizon", [1, 7, 20, 100, 1000, 2000, 100_000])
def test_the_kept_steps_rise_to_the_horizon_and_have_the_round_ones(horizon: int) -> None:
    steps = kept_steps(horizon)
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
    made = carry_out(
        "play", {"family": "two-state-v1", "sizes": SIZES, "policy": "random", "horizon": 5, "runs": 2, "seed": 0}
    )
    assert made.version == __version__
    assert made.seconds > 0
    assert set(made.columns) == {"instance", "step", "reward", "cost"}
    assert TASKS["play"] is play
