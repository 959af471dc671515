import copy
import doctest
import importlib
import json
import runpy
import subprocess
import sys
import venv
import warnings
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import MultiBinary, flatdim, flatten, flatten_space, unflatten
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import batch_differing_spaces, batch_space, concatenate, create_empty_array, iterate
from gymnasium.wrappers import RecordEpisodeStatistics
from gymnasium.wrappers.vector import DictInfoToList
from gymnasium.wrappers.vector import RecordEpisodeStatistics as RecordVectorStatistics

from restive import PROBLEMS, InputError, Problem, make_policy, make_problems, simulate
from restive.contract import Draws, Model, Shape
from restive.gym import AgentSets, Environment, PolicyAgent, VectorEnvironment
from restive.policies.base import Learner, Policy
from restive.types import Floats, Ints

ROOT = Path(__file__).parents[1]
SMALL: dict[str, Any] = {"agents": 6, "budget": 2}
LIMITED = ["some-harmed-at-most-v1", "visits-v1"]
ENVIRONMENTS = [name for name in PROBLEMS if name not in LIMITED]


def small_problem(**settings: int) -> Problem:
    return make_problems("two-state-v1", **{**SMALL, **settings})[0]


@dataclass(frozen=True)
class Watched(Policy[Any]):
    """Another policy, and all that it was shown."""

    name: ClassVar[str] = "watched"
    inner: Policy[Any]
    seen: list[tuple[Ints, Ints, Floats, Ints]]

    def __post_init__(self) -> None:
        """Its fields are no settings."""

    def settings(self) -> dict[str, Any]:
        return {}

    def begin(self, shape: Shape, model: Model) -> Any:
        return self.inner.begin(shape, model)

    def rank(self, belief: Any, state: Ints, draws: Draws) -> Any:
        return self.inner.rank(belief, state, draws)

    def learn(self, belief: Any, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        self.seen.append((state.copy(), action.copy(), reward.copy(), after.copy()))
        self.inner.learn(belief, state, action, reward, after)


def watch(policy: str) -> Watched:
    return Watched(make_policy(policy), [])


def assert_saw_the_same(one: Watched, other: Watched) -> None:
    assert len(one.seen) == len(other.seen)
    for mine, theirs in zip(one.seen, other.seen, strict=True):
        for part, same in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(part, same)


def play(
    agent: PolicyAgent, environment: gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any], steps: int, seed: int
) -> list[tuple[Any, ...]]:
    results = []
    observation, info = environment.reset(seed=seed)
    for _ in range(steps):
        observation, reward, terminated, truncated, info = environment.step(agent.act(observation))
        agent.learn(observation, info)
        results.append((reward, terminated, truncated, info))
    return results


# --- the environments


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_problem_passes_the_checker_of_gymnasium_without_a_warning(name: str) -> None:
    environment = gymnasium.make(f"restive/{name}")
    assert isinstance(environment.unwrapped, Environment)
    check_env(environment.unwrapped)


@pytest.mark.parametrize("budget", [0, 6])
def test_acting_on_nobody_and_on_everybody_passes_the_checker(budget: int) -> None:
    check_env(gymnasium.make("restive/two-state-v1", agents=6, budget=budget, noise=1.0).unwrapped)


@pytest.mark.parametrize("budget", [0, 4])
def test_a_user_problem_passes_the_checker(budget: int) -> None:
    problem = make_problems("counterexample-heterogeneous-v1")[0].with_budget(budget)
    check_env(Environment(problem, horizon=5), skip_render_check=True)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_problem_has_a_native_vector_environment(name: str) -> None:
    environment = gymnasium.make_vec(f"restive/{name}", num_envs=3, horizon=4)
    assert isinstance(environment, VectorEnvironment)
    agents, states = make_problems(name)[0].shape
    observation, _ = environment.reset(seed=1)
    assert observation.shape == (3, agents)
    for _ in range(10):
        observation, reward, terminated, truncated, _ = environment.step(environment.action_space.sample())
        assert observation in environment.observation_space
        assert observation.max() < states
        assert [part.dtype for part in (reward, terminated, truncated)] == [float, bool, bool]
        assert reward.shape == terminated.shape == truncated.shape == (3,)
        assert not terminated.any()


def test_settings_reach_the_family_and_the_instance_seed_picks_the_instance() -> None:
    settings: dict[str, Any] = {"agents": 20, "budget": 4, "states": 3, "horizon": 1000, "noise": 0.0}
    environment = gymnasium.make("restive/many-state-v1", instance_seed=5, **settings).unwrapped
    assert isinstance(environment, Environment)
    (wanted,) = make_problems("many-state-v1", agents=20, budget=4, states=3, seed=5)
    np.testing.assert_array_equal(environment.settings.problem.transition, wanted.transition)
    assert environment.action_space == AgentSets(20, 4)
    vector = gymnasium.make_vec("restive/many-state-v1", num_envs=13, instance_seed=5, **settings)
    assert isinstance(vector, VectorEnvironment)
    np.testing.assert_array_equal(vector.settings.problem.transition, wanted.transition)
    assert vector.action_space == AgentSets(20, 4, batch=(13,)) == batch_space(vector.single_action_space, 13)


def test_without_an_instance_seed_it_is_the_familys_instance_0() -> None:
    (wanted,) = make_problems("two-state-v1", **SMALL, seed=0)
    np.testing.assert_array_equal(Environment("two-state-v1", **SMALL).settings.problem.transition, wanted.transition)


@pytest.mark.parametrize("noise", [0.0, 1.0])
@pytest.mark.parametrize("policy", ["egt", "wiql", "random", "greedy-oracle"])
def test_an_environment_gives_a_policy_the_same_run_as_simulate(policy: str, noise: float) -> None:
    problem, outside, inside = small_problem(seed=3), watch(policy), watch(policy)
    trace = simulate(problem, inside, horizon=60, seed=11, noise=noise, threads=1)
    environment = Environment(problem, horizon=60, noise=noise)
    results = play(PolicyAgent(outside, environment), environment, 60, seed=11)
    assert_saw_the_same(outside, inside)
    assert [info["expected_reward"] for *_, info in results] == trace.reward[0].tolist()
    assert [info["cost"] for *_, info in results] == trace.cost[0].tolist()
    assert [truncated for _, _, truncated, _ in results] == [False] * 59 + [True]


@pytest.mark.parametrize("noise", [0.0, 1.0])
@pytest.mark.parametrize("policy", ["egt", "wiql", "random", "greedy-oracle"])
def test_a_vector_environment_gives_a_policy_the_same_runs_as_simulate(policy: str, noise: float) -> None:
    problem, outside, inside = small_problem(seed=3), watch(policy), watch(policy)
    trace = simulate(problem, inside, horizon=60, runs=5, seed=11, noise=noise, threads=1)
    environment = VectorEnvironment(problem, num_envs=5, horizon=60, noise=noise)
    results = play(PolicyAgent(outside, environment), environment, 60, seed=11)
    assert_saw_the_same(outside, inside)
    np.testing.assert_array_equal(np.stack([info["expected_reward"] for *_, info in results], axis=1), trace.reward)
    np.testing.assert_array_equal(np.stack([info["cost"] for *_, info in results], axis=1), trace.cost)
    assert [truncated.all() for _, _, truncated, _ in results] == [False] * 59 + [True]


def test_a_policy_gets_no_horizon_if_there_is_none() -> None:
    environment = Environment(small_problem(), horizon=None)
    agent = PolicyAgent("egt", environment)
    results = play(agent, environment, 1100, seed=0)
    assert not any(truncated for _, _, truncated, _ in results)
    assert agent.belief.horizon == 0


@pytest.mark.parametrize("name", ["two-state-v1", "wireless-v1"])
def test_the_reward_is_the_sum_of_what_was_observed(name: str) -> None:
    settings: dict[str, Any] = {"agents": 50, "budget": 10}
    for noise in (0.0, 1.0):
        environment = Environment(name, noise=noise, **settings)
        vector = VectorEnvironment(name, num_envs=3, noise=noise, **settings)
        single_results = play(PolicyAgent("random", environment), environment, 20, seed=2)
        vector_results = play(PolicyAgent("random", vector), vector, 20, seed=2)
        for (reward, _, _, info), (rewards, _, _, infos) in zip(single_results, vector_results, strict=True):
            assert isinstance(reward, float)
            assert (reward, info["expected_reward"]) == (rewards[0], infos["expected_reward"][0])
            assert reward == pytest.approx(info["reward"].sum(), rel=1e-12)
            np.testing.assert_allclose(rewards, infos["reward"].sum(axis=1), rtol=1e-12)
            assert (reward == info["expected_reward"]) == (noise == 0.0)


def test_the_cost_is_measured_against_the_threshold_given() -> None:
    problem = small_problem()
    environment = Environment(problem, threshold=0.7)
    results = play(PolicyAgent("random", environment), environment, 10, seed=2)
    trace = simulate(problem, "random", horizon=10, seed=2, threshold=0.7)
    assert [info["cost"] for *_, info in results] == trace.cost[0].tolist()
    assert trace.cost.sum() > 0


def test_resetting_without_a_seed_draws_one_from_the_environments_generator() -> None:
    environment = Environment("two-state-v1", agents=40, budget=4)
    first, _ = environment.reset(seed=9)
    second, _ = environment.reset()
    third, _ = environment.reset()
    assert not np.array_equal(first, second)
    assert not np.array_equal(second, third)
    np.testing.assert_array_equal(environment.reset(seed=9)[0], first)
    np.testing.assert_array_equal(environment.reset()[0], second)
    assert environment.episode is not None
    np.testing.assert_array_equal(environment.reset(seed=environment.episode.seed)[0], second)


def test_two_environments_never_seeded_differ() -> None:
    one, other = (Environment("two-state-v1", agents=200, budget=4) for _ in range(2))
    assert not np.array_equal(one.reset()[0], other.reset()[0])


@pytest.mark.parametrize("vector", [False, True])
def test_the_option_start_sets_the_first_states(vector: bool) -> None:
    problem, start = small_problem(), [1, 0, 0, 1, 1, 0]
    begun = Problem(problem.transition, problem.reward, problem.budget, start)
    environment = VectorEnvironment(problem, 3) if vector else Environment(problem)
    reference = VectorEnvironment(begun, 3) if vector else Environment(begun)
    observation, _ = environment.reset(seed=4, options={"start": np.array(start)})
    np.testing.assert_array_equal(observation, np.broadcast_to(start, observation.shape))
    np.testing.assert_array_equal(observation, reference.reset(seed=4)[0])
    action = environment.action_space.sample()
    np.testing.assert_array_equal(environment.step(action)[0], reference.step(action)[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": [0, 1]}, r"start has shape \[2\]; it must be \[6\]"),
        ({"start": [0, 1, 2, 0, 0, 0]}, "start of agent 2 is 2; states are whole numbers from 0 to 1"),
        ({"begin": 1}, "unknown option 'begin'; the only option is 'start'"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, Any], message: str) -> None:
    for environment in (Environment(small_problem()), VectorEnvironment(small_problem(), 2)):
        with pytest.raises(InputError, match=message):
            environment.reset(options=options)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ([0, 6], r"names agent 6; it must be whole numbers of shape \[2\], 2 of the agents 0 to 5, none twice"),
        ([-1, 0], "names agent -1;"),
        ([3, 3], "names agent 3 twice;"),
        ([0], r"has shape \[1\]; it must be whole numbers of shape \[2\]"),
        ([[0, 1]], r"has shape \[1, 2\];"),
        ([0.0, 1.0], "is of type float64;"),
        ([[0], [1, 2]], "is not an array;"),
        (None, r"has shape \[\];"),
    ],
)
def test_an_action_that_is_no_set_of_agents_is_refused(action: Any, message: str) -> None:
    environment = gymnasium.make("restive/two-state-v1", **SMALL)
    before, _ = environment.reset(seed=0)
    assert action not in environment.action_space
    with pytest.raises(InputError, match=message):
        environment.step(action)
    base = environment.unwrapped
    assert isinstance(base, Environment)
    assert base.episode is not None
    assert base.episode.step == 0
    np.testing.assert_array_equal(base.episode.state[0], before)


def test_a_batch_of_actions_with_one_bad_set_is_refused() -> None:
    environment = VectorEnvironment(small_problem(), 3)
    environment.reset(seed=0)
    with pytest.raises(InputError, match=r"names agent 4 twice; .* \[3, 2\], in each row 2 of the agents 0 to 5"):
        environment.step([[0, 1], [4, 4], [1, 2]])
    with pytest.raises(InputError, match=r"has shape \[2\]; .* of shape \[3, 2\]"):
        environment.step([0, 1])


def test_the_order_of_an_action_does_not_matter() -> None:
    one, other = Environment(small_problem()), Environment(small_problem())
    one.reset(seed=0)
    other.reset(seed=0)
    for _ in range(20):
        np.testing.assert_array_equal(one.step([4, 1])[0], other.step([1, 4])[0])


def test_acting_on_an_agent_is_what_moves_it() -> None:
    stay, leave = [[1, 0], [0, 1]], [[0, 1], [1, 0]]
    environment = VectorEnvironment(Problem([[stay, leave]] * 3, [0, 1], budget=1, start=[0, 1, 0]), num_envs=2)
    environment.reset(seed=0)
    observation, reward, *_ = environment.step([[0], [1]])
    assert observation.tolist() == [[1, 1, 0], [0, 0, 0]]
    assert reward.tolist() == [2.0, 0.0]


def test_observations_belong_to_the_caller() -> None:
    for environment in (Environment(small_problem()), VectorEnvironment(small_problem(), 2)):
        shown = environment.reset(seed=0)[0]
        for _ in range(3):
            assert environment.episode is not None
            truth = environment.episode.state.copy()
            shown[...] = 1 - shown
            np.testing.assert_array_equal(environment.episode.state, truth)
            shown = environment.step(environment.action_space.sample())[0]


def test_a_copied_environment_continues_the_same_way() -> None:
    environment = Environment(small_problem(), noise=1.0)
    play(PolicyAgent("random", environment), environment, 5, seed=0)
    copied = copy.deepcopy(environment)
    assert environment.step([0, 1])[1] == copied.step([0, 1])[1]


def test_an_episode_ends_at_its_horizon_and_not_before_a_reset() -> None:
    environment = Environment(small_problem(), horizon=2)
    with pytest.raises(gymnasium.error.ResetNeeded, match="call reset first"):
        environment.step([0, 1])
    environment.reset(seed=0)
    assert [environment.step([0, 1])[3] for _ in range(2)] == [False, True]
    with pytest.raises(gymnasium.error.ResetNeeded, match="ended after 2 steps"):
        environment.step([0, 1])
    environment.reset()
    assert not environment.step([0, 1])[3]


def test_a_vector_environment_resets_in_the_step_after_truncation() -> None:
    environment = gymnasium.make_vec("restive/two-state-v1", num_envs=3, horizon=2, agents=40, budget=4)
    assert environment.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    first, _ = environment.reset(seed=5)
    action = environment.action_space.sample()
    assert not environment.step(action)[3].any()
    last, reward, terminated, truncated, info = environment.step(action)
    assert truncated.all()
    assert not terminated.any()
    assert (reward > 0).all()
    assert info["_reward"].all()
    again, reward, terminated, truncated, info = environment.step(np.full((3, 4), -1))  # ignored, whatever it is
    assert (reward.tolist(), info) == ([0.0] * 3, {})
    assert not terminated.any()
    assert not truncated.any()
    assert not np.array_equal(again, first)
    assert not np.array_equal(again, last)
    # It is the episode that a reset without a seed would have begun.
    by_hand = VectorEnvironment("two-state-v1", num_envs=3, horizon=2, agents=40, budget=4)
    by_hand.reset(seed=5)
    np.testing.assert_array_equal(again, by_hand.reset()[0])
    for _ in range(2):
        mine, theirs = environment.step(action), by_hand.step(action)
        for part, same in zip(mine[:4], theirs[:4], strict=True):
            np.testing.assert_array_equal(part, same)
    assert mine[3].all()


def test_a_vector_environment_agrees_with_gymnasiums_own_on_when_episodes_end() -> None:
    settings: dict[str, Any] = {"num_envs": 2, "horizon": 3, **SMALL}
    native = gymnasium.make_vec("restive/two-state-v1", **settings)
    synced = gymnasium.make_vec("restive/two-state-v1", vectorization_mode="sync", **settings)
    assert isinstance(synced, SyncVectorEnv)
    assert synced.action_space == native.action_space
    assert synced.observation_space == native.observation_space
    native.reset(seed=0)
    synced.reset(seed=0)
    for _ in range(12):
        action = native.action_space.sample()
        mine, theirs = native.step(action), synced.step(action)
        np.testing.assert_array_equal(mine[3], theirs[3])
        assert set(mine[4]) == set(theirs[4])
        assert mine[4] or not (mine[1].any() or theirs[1].any())
        for key, value in mine[4].items():
            assert (value.dtype, value.shape) == (theirs[4][key].dtype, theirs[4][key].shape)


def test_wrappers_of_gymnasium_count_steps_and_rewards() -> None:
    single = RecordEpisodeStatistics(gymnasium.make("restive/two-state-v1", horizon=4, **SMALL))
    results = play(PolicyAgent("random", single), single, 4, seed=1)
    assert results[-1][3]["episode"]["l"] == 4
    assert results[-1][3]["episode"]["r"] == pytest.approx(sum(reward for reward, *_ in results))
    vector = RecordVectorStatistics(gymnasium.make_vec("restive/two-state-v1", num_envs=3, horizon=4, **SMALL))
    results = play(PolicyAgent("random", vector), vector, 9, seed=1)
    assert results[3][3]["episode"]["l"].tolist() == [4, 4, 4]
    assert results[8][3]["episode"]["l"].tolist() == [4, 4, 4]
    np.testing.assert_allclose(results[8][3]["episode"]["r"], sum(reward for reward, *_ in results[5:]))
    listed: Any = DictInfoToList(VectorEnvironment(small_problem(), 3))
    listed.reset(seed=1)
    infos = listed.step(listed.action_space.sample())[4]
    assert [set(info) for info in infos] == [{"reward", "expected_reward", "cost", "acted"}] * 3


def test_rendering_shows_how_many_agents_are_in_each_state() -> None:
    problem = Problem([np.eye(3)[np.newaxis].repeat(2, axis=0)] * 4, [0, 1, 2.5], budget=1, start=[2, 0, 2, 1])
    environment = Environment(problem, render_mode="ansi")
    environment.reset(seed=0)
    assert environment.render() == "step 0: state 0 1, state 1 1, state 2 2"
    environment.step([0])
    assert environment.render() == "step 1: state 0 1, state 1 1, state 2 2; reward 6"
    vector = gymnasium.make_vec("restive/two-state-v1", num_envs=2, render_mode="ansi", agents=1, budget=1)
    vector.reset(seed=0, options={"start": [1]})
    assert vector.render() == ("step 0: bad 0, good 1",) * 2
    assert Environment(problem).render() is None


def test_frames_can_be_collected() -> None:
    environment = gymnasium.make("restive/two-state-v1", render_mode="ansi_list", **SMALL)
    environment.reset(seed=0)
    environment.step([0, 1])
    frames: Any = environment.render()
    assert [frame.split(":")[0] for frame in frames] == ["step 0", "step 1"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"problem": "two-sate-v1"}, "did you mean 'two-state-v1'"),
        ({"problem": 7}, "problem is 7; it must be a Problem or one of two-state-v1"),
        ({"problem": "two-state-v1", "people": 3}, "two-state-v1 has no setting 'people'"),
        ({"problem": "two-state-v1", "seed": 3}, "seed is not a setting of an environment: .* instance_seed"),
        ({"problem": "two-state-v1", "instances": 3}, "instances is not a setting of an environment"),
        ({"problem": "counterexample-three-state-v1", "instance_seed": 1}, "none, it is fixed"),
        ({"problem": "two-state-v1", "horizon": 0}, "horizon is 0; it must be a whole number from 1 on"),
        ({"problem": "two-state-v1", "noise": -1.0}, "noise is -1.0; it is a variance"),
        ({"problem": "two-state-v1", "render_mode": "human"}, "render_mode is 'human'; it must be 'ansi' or None"),
        (
            {"problem": "two-state-v1", "action_space": "box"},
            "action_space is 'box'; it must be 'sets' or 'multibinary'",
        ),
    ],
)
def test_invalid_settings_are_refused_at_once(settings: dict[str, Any], message: str) -> None:
    for kind in (Environment, VectorEnvironment):
        with pytest.raises(InputError, match=message):
            kind(**settings)


def test_a_problem_has_no_family_settings() -> None:
    with pytest.raises(InputError, match="agents is a setting of a family"):
        Environment(small_problem(), agents=3)
    with pytest.raises(InputError, match="instance_seed is a setting of a family"):
        VectorEnvironment(small_problem(), instance_seed=3)
    with pytest.raises(InputError, match="num_envs is 0; it must be a whole number from 1 on"):
        VectorEnvironment(small_problem(), num_envs=0)
    with pytest.raises(InputError, match="seed is 9223372036854775808; it must be a whole number from 0 to"):
        Environment(small_problem()).reset(seed=2**63)


# --- zeros and ones as actions


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_problem_takes_zeros_and_ones_and_passes_the_checker_of_gymnasium(name: str) -> None:
    environment = gymnasium.make(f"restive/{name}", action_space="multibinary").unwrapped
    assert environment.action_space == MultiBinary(make_problems(name)[0].shape[0])
    check_env(environment)


@pytest.mark.parametrize("noise", [0.0, 1.0])
@pytest.mark.parametrize("runs", [None, 3])
def test_zeros_and_ones_lead_to_the_same_rewards_as_sets(runs: int | None, noise: float) -> None:
    settings: dict[str, Any] = {"horizon": 30, "noise": noise}
    one, other = (
        Environment(small_problem(), **settings, action_space=kind)
        if runs is None
        else VectorEnvironment(small_problem(), runs, **settings, action_space=kind)
        for kind in ("sets", "multibinary")
    )
    for mine, theirs in zip(
        play(PolicyAgent("egt", one), one, 30, seed=4), play(PolicyAgent("egt", other), other, 30, seed=4), strict=True
    ):
        np.testing.assert_array_equal(mine[0], theirs[0])
        np.testing.assert_array_equal(mine[3]["acted"], theirs[3]["acted"])


@pytest.mark.parametrize("ones", range(7))
def test_exactly_the_budget_is_acted_on_however_many_ones_there_are(ones: int) -> None:
    single = Environment("two-state-v1", action_space="multibinary", **SMALL)
    vector = VectorEnvironment("two-state-v1", 4, action_space="multibinary", **SMALL)
    single.reset(seed=3)
    vector.reset(seed=3)
    marks, tally = np.random.default_rng(0).permutation(np.arange(6) < ones).astype(np.int8), np.zeros(6)
    for _ in range(400):
        acted = single.step(marks)[4]["acted"]
        every = vector.step(np.tile(marks, (4, 1)))[4]["acted"]
        np.testing.assert_array_equal(every[0], acted)
        assert acted.dtype == np.int8
        assert every.sum(axis=1).tolist() == [2] * 4
        assert (acted <= marks).all() if ones >= 2 else (acted >= marks).all()
        tally += acted
    # Who is drawn is random: the shares have a standard deviation of at most 0.025.
    shares = np.full(6, 2 / max(ones, 2)) * marks if ones >= 2 else np.where(marks == 1, 1.0, (2 - ones) / (6 - ones))
    np.testing.assert_allclose(tally / 400, shares, atol=0.1)


@pytest.mark.parametrize("policy", ["egt", "whittle-oracle"])
@pytest.mark.parametrize("name", LIMITED)
def test_a_budget_that_is_a_limit_is_spent_as_in_a_simulation(name: str, policy: str) -> None:
    (problem,) = make_problems(name)
    environment = VectorEnvironment(problem, 2, horizon=15, action_space="multibinary")
    results = play(PolicyAgent(policy, environment), environment, 15, seed=5)
    expected = simulate(problem, policy, horizon=15, runs=2, seed=5)
    np.testing.assert_array_equal(np.stack([info["expected_reward"] for *_, info in results], axis=1), expected.reward)
    everybody = np.ones((2, problem.shape[0]), np.int8)
    environment.reset(seed=5)
    acted = environment.step(everybody)[4]["acted"]
    cost = np.ones(problem.shape[0]) if problem.cost is None else problem.cost
    assert (acted @ cost > 0).all()
    assert (acted @ cost <= problem.budget).all()
    nobody = environment.step(0 * everybody)[4]["acted"]
    assert nobody.any() == (problem.spend == "exactly")
    with pytest.raises(InputError, match="has no sets of one size; use 'multibinary'"):
        Environment(name)


@pytest.mark.parametrize("action", [[1, 0], [2, 0, 0, 0, 0, 0], [0.5] * 6, "ones", [[1], [1, 2]], None])
def test_other_actions_than_zeros_and_ones_are_refused(action: Any) -> None:
    environment = Environment(small_problem(), action_space="multibinary")
    environment.reset(seed=0)
    with pytest.raises(InputError, match=r"the action is not valid; it must be 0 or 1 for each agent, of shape \[6\]"):
        environment.step(action)


@pytest.mark.soak
def test_a_library_of_reinforcement_learning_accepts_and_learns_in_the_environment() -> None:
    """Stable-Baselines3 brings PyTorch, 6 GB, so it gets a virtual environment of its own, which is removed again."""
    with TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", f"{ROOT}[gym]", "stable-baselines3"], check=True)
        script = ROOT / "examples" / "gym_stable_baselines.py"
        done = subprocess.run([python, "-W", "error", script], capture_output=True, text=True, check=True, cwd=folder)
    checked, untrained, trained = done.stdout.splitlines()
    assert checked == "the checker of Stable-Baselines3 accepts the environment"
    assert float(trained.split()[1]) > float(untrained.split()[1])


# --- the agent


def test_an_agent_starts_again_with_every_episode() -> None:
    problem, watched = small_problem(), watch("egt")
    environment = VectorEnvironment(problem, num_envs=2, horizon=10)
    agent = PolicyAgent(watched, environment)
    play(agent, environment, 21, seed=6)  # ten steps, one that only resets, ten more
    assert environment.episode is not None
    assert agent.belief.visits.sum() == 10 * 2 * 6
    halves = []
    for seed in (6, environment.episode.seed):
        again = watch("egt")
        simulate(problem, again, horizon=10, runs=2, seed=seed, threads=1)
        halves += again.seen
    assert_saw_the_same(watched, Watched(watched.inner, halves))


def test_a_policy_is_not_asked_about_a_step_after_the_horizon() -> None:
    asked: list[int] = []

    class Planner(Learner[Any]):
        name = "planner"

        def start(self, shape: Shape) -> Any:
            return None

        def rank(self, belief: Any, state: Ints, draws: Draws) -> Floats:
            asked.append(draws.step)
            return np.zeros(state.shape)

    environment = VectorEnvironment(small_problem(), num_envs=2, horizon=3)
    play(PolicyAgent(Planner(), environment), environment, 8, seed=0)
    assert asked == [0, 1, 2, 0, 1, 2]


def test_an_agent_uses_only_the_observed_rewards_of_the_info() -> None:
    problem = small_problem()
    outcomes = []
    for keys in (("reward",), ("reward", "expected_reward", "cost")):
        environment = Environment(problem, noise=1.0)
        agent = PolicyAgent("egt", environment)
        observation, _ = environment.reset(seed=8)
        for _ in range(50):
            observation, _, _, _, info = environment.step(agent.act(observation))
            agent.learn(observation, {key: info[key] for key in keys})
        outcomes.append(agent.belief)
    for one, other in zip(*outcomes, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_learner_is_given_the_shape_alone() -> None:
    given: list[tuple[object, ...]] = []

    class Curious(Learner[Any]):
        name = "curious"

        def start(self, *everything: object) -> Any:
            given.append(everything)

        def rank(self, belief: Any, state: Ints, draws: Draws) -> Floats:
            return np.zeros(state.shape)

    environment = VectorEnvironment(small_problem(), num_envs=3, horizon=7)
    play(PolicyAgent(Curious(), environment), environment, 2, seed=0)
    ((shape,),) = given
    assert isinstance(shape, Shape)
    assert shape[:5] == (3, 6, 2, 2, 7)
    assert shape.reward_range.tolist() == [1.0] * 3


def test_an_agent_works_through_wrappers_but_only_with_our_environments() -> None:
    environment = gymnasium.make("restive/two-state-v1", max_episode_steps=3, **SMALL)
    results = play(PolicyAgent("wiql", environment), environment, 3, seed=0)
    assert results[-1][2] is True
    with pytest.raises(InputError, match=r"is not an environment of restive\.gym"):
        PolicyAgent("wiql", gymnasium.make("CartPole-v1"))


def test_an_agent_refuses_calls_out_of_order_and_invalid_observations() -> None:
    environment = Environment(small_problem())
    agent = PolicyAgent("egt", environment)
    with pytest.raises(gymnasium.error.ResetNeeded, match="call reset first"):
        agent.act(np.zeros(6, np.int64))
    observation, _ = environment.reset(seed=0)
    with pytest.raises(InputError, match="call act and step before learn"):
        agent.learn(observation, {"reward": np.zeros(6)})
    for strange in (np.zeros(5, np.int64), np.full(6, 2), np.zeros(6)):
        with pytest.raises(InputError, match=r"it must have shape \[6\] and hold states, whole numbers from 0 to 1"):
            agent.act(strange)
    observation, _, _, _, info = environment.step(agent.act(observation))
    agent.learn(observation, info)
    with pytest.raises(InputError, match="once for each step"):
        agent.learn(observation, info)


# --- the action space


@pytest.mark.parametrize(("agents", "budget"), [(5, 2), (5, 0), (5, 5), (1, 1), (1, 0)])
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
def test_samples_are_sets_in_increasing_order_that_survive_every_round_trip(
    agents: int, budget: int, batch: tuple[int, ...]
) -> None:
    space = AgentSets(agents, budget, batch, seed=0)
    for _ in range(20):
        sample = space.sample()
        assert sample in space
        assert sample.dtype == np.int64
        assert sample.shape == (*batch, budget)
        assert (np.diff(sample, axis=-1) > 0).all()
        (back,) = space.from_jsonable(json.loads(json.dumps(space.to_jsonable([sample]))))
        np.testing.assert_array_equal(back, sample)
        assert back.dtype == np.int64
        flat: Any = flatten(space, sample)
        assert flat.size == flatdim(space)
        assert flat in flatten_space(space)
        np.testing.assert_array_equal(unflatten(space, flat), sample)
        assert budget == 0 or sample[..., ::-1] in space


def test_a_set_flattens_to_marks() -> None:
    assert np.asarray(flatten(AgentSets(4, 2), np.array([3, 1]))).tolist() == [0, 1, 0, 1]
    with pytest.raises(InputError, match="3 agents are marked; it must be exactly 2 of 4"):
        unflatten(AgentSets(4, 2), np.array([1, 1, 1, 0]))
    with pytest.raises(InputError, match=r"marks have shape \[3\]; they must be \[4\]"):
        AgentSets(4, 2).sets([1, 1, 0])


def test_all_sets_are_equally_likely() -> None:
    space = AgentSets(5, 2, (20_000,), seed=1)
    drawn, tally = np.unique(space.sample(), axis=0, return_counts=True)
    assert [tuple(pair) for pair in drawn.tolist()] == list(combinations(range(5), 2))
    # Ten pairs of 2,000 expected each: their standard deviation is √(20,000 · 0.1 · 0.9) = 42.
    assert np.abs(tally - 2000).max() < 4 * 42


def test_a_mask_restricts_the_sample() -> None:
    mask = np.array([[1, 0, 1, 0, 1], [0, 1, 0, 1, 0]], np.int8)
    batched = AgentSets(5, 2, (2,), seed=1)
    seen = {tuple(batched.sample(mask=mask)[1]) for _ in range(50)}
    assert seen == {(1, 3)}
    single = AgentSets(5, 2, seed=1)
    assert {tuple(single.sample(mask=mask[0]).tolist()) for _ in range(50)} == {(0, 2), (0, 4), (2, 4)}
    assert AgentSets(5, 0).sample(mask=np.zeros(5, np.int8)).shape == (0,)


def test_probabilities_are_those_of_drawing_without_replacement() -> None:
    probability = np.array([0.5, 0.3, 0.2, 0.0])
    sample = AgentSets(4, 2, (20_000,), seed=1).sample(probability=probability)
    pairs, tally = np.unique(sample, axis=0, return_counts=True)
    wanted = [
        probability[i] * probability[j] * (1 / (1 - probability[i]) + 1 / (1 - probability[j]))
        for i, j in ((0, 1), (0, 2), (1, 2))
    ]
    assert pairs.tolist() == [[0, 1], [0, 2], [1, 2]]
    # A share of 20,000 has a standard deviation of at most 0.0036.
    np.testing.assert_allclose(tally / 20_000, wanted, atol=4 * 0.0036)
    likely = np.where(np.arange(5000) % 5 == 3, 1e-3, 1e-40)
    np.testing.assert_array_equal(AgentSets(5000, 1000, seed=1).sample(probability=likely), np.arange(3, 5000, 5))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mask": [1, 0, 0, 0]}, "mask leaves fewer than 2 agents"),
        ({"mask": [1, 1, 2, 0]}, "mask must be 0 or 1"),
        ({"mask": [1, 1]}, r"mask has shape \[2\]; it must be \[4\]"),
        ({"probability": [0.5, 0.4, 0.0, 0.0]}, "sum to 1"),
        ({"probability": [1.5, -0.5, 0.0, 0.0]}, "0 or more"),
        ({"probability": [1.0, 0.0, 0.0, 0.0]}, "probability leaves fewer than 2 agents"),
        ({"mask": [1, 1, 1, 1], "probability": [0.25] * 4}, "not both"),
    ],
)
def test_a_sample_that_is_impossible_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        AgentSets(4, 2).sample(**arguments)


def test_the_same_seed_samples_the_same_sets() -> None:
    one, other = AgentSets(50, 5, seed=3), AgentSets(50, 5)
    other.seed(3)
    firsts = [one.sample().tolist() for _ in range(5)]
    assert firsts == [other.sample().tolist() for _ in range(5)]
    other.seed(3)
    batched = batch_space(other, 2)
    assert batched.sample().tolist() == batch_space(other, 2).sample().tolist()
    assert firsts == [other.sample().tolist() for _ in range(5)]
    other.seed(4)
    assert firsts != [other.sample().tolist() for _ in range(5)]


def test_spaces_are_equal_when_their_sets_are() -> None:
    space = AgentSets(5, 2, (3,))
    assert space == AgentSets(5, 2, (3,), seed=1)
    assert all(space != other for other in (AgentSets(6, 2, (3,)), AgentSets(5, 1, (3,)), AgentSets(5, 2), 5))
    assert (repr(AgentSets(5, 2)), repr(space)) == ("AgentSets(5, 2)", "AgentSets(5, 2, batch=(3,))")
    assert eval(repr(space)) == space == copy.deepcopy(space)
    with pytest.raises(InputError, match="budget is 6; it must be a whole number from 0 to 5"):
        AgentSets(5, 6)


def test_sets_can_be_batched_and_taken_apart_again() -> None:
    space = AgentSets(5, 2, seed=0)
    batched = batch_space(space, 3)
    assert batched == AgentSets(5, 2, (3,)) == batch_differing_spaces([space] * 3)
    items = [space.sample() for _ in range(3)]
    out: Any = create_empty_array(space, 3)
    together: Any = concatenate(space, items, out)
    assert together is out
    assert together in batched
    assert [item.tolist() for item in iterate(batched, together)] == [item.tolist() for item in items]
    with pytest.raises(InputError, match=r"AgentSets\(5, 2\) cannot be batched with"):
        batch_differing_spaces([space, AgentSets(5, 3)])


# --- around it


def test_without_gymnasium_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    monkeypatch.delitem(sys.modules, "restive.gym")
    with pytest.raises(ImportError, match=r"^restive\.gym needs Gymnasium: pip install 'restive\[gym\]'$"):
        importlib.import_module("restive.gym")


def test_the_documentation_page_is_correct() -> None:
    result = doctest.testfile(str(ROOT / "docs/how-to/gym.md"), module_relative=False)
    assert result.attempted > 20
    assert result.failed == 0


def test_the_example_shows_that_the_rewards_agree(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        runpy.run_path(str(ROOT / "examples" / "gym_random_agent.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["egt", "egt", "random", "egt"]
    assert lines[-1] == "egt agrees in every step: True"
