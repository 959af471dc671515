"""Gymnasium environments: one run of a problem, or a vector of runs in one world.

observation  [N]  the state of each agent; a vector environment has an axis R in front, here and below
action       [B]  the agents to act on, B different numbers in any order: an element of `AgentSets`; or [N], a 1 for
                  each of them and a 0 for the others, an element of `MultiBinary`
reward            the sum over agents of the observed rewards, noise included
info              after a step: "reward" [N] as observed, "expected_reward" and "cost", both summed over agents, and
                  "acted" [N], 1 for each agent that was acted on

A run is never terminated; it is truncated at the horizon. `MultiBinary` is for libraries that know only standard
spaces, and holds actions of any number of agents. Exactly B are acted on nevertheless: with more than B ones, B of them
drawn at random; with fewer, all of them and others drawn at random. If the budget is a limit, agents with a 1 are taken
in random order as far as it allows; others, only if it has to be spent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import MultiBinary, MultiDiscrete, Space
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from restive.contract import Ranking
from restive.errors import InputError, check_whole
from restive.gym.spaces import AgentSets, read_marks
from restive.kernels.rng import MAX_SEED
from restive.kernels.step import Outcome
from restive.problem import EXACTLY, Problem
from restive.problems import PROBLEMS, make_problems
from restive.types import Bools, Floats, Ints
from restive.world import World

DEFAULT_HORIZON = 1000  # the paper's
METADATA = {"render_modes": ["ansi"], "render_fps": 1}
VECTOR_METADATA = {**METADATA, "autoreset_mode": AutoresetMode.NEXT_STEP}


class Episode:
    """The time from one reset to the next: a world of R runs, the present states, and the number of steps."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.seed = seed
        self.state = world.first_states()
        self.reward = np.zeros(world.shape.runs)
        self.acted = np.zeros(self.state.shape, np.int64)
        self.step = 0

    @property
    def over(self) -> bool:
        """Whether the horizon is reached."""
        return self.step == self.world.shape.horizon

    def advance(self, marks: Ints) -> Outcome:
        """Act on the agents that have a 1 in `marks`, [R, N], as far as the budget allows it; all runs advance."""
        draws = self.world.draws(self.step)
        # Marks are priorities, and ties are broken at random. If the budget need not be spent, nobody without a 1 gains.
        ranking = Ranking(marks.astype(np.float64), np.zeros(len(marks)), np.zeros(len(marks)))
        self.acted = self.world.choose(ranking, draws)
        outcome = self.world.advance(self.state, self.acted, draws)
        # Summed in the order of the kernel: without noise this is the expected reward to the last bit.
        self.reward = np.cumsum(outcome.reward, axis=1)[:, -1]
        self.state, self.step = outcome.after, self.step + 1
        return outcome


@dataclass(frozen=True)
class EpisodeSettings:
    """What all episodes of an environment have in common."""

    problem: Problem
    runs: int
    horizon: int | None
    noise: float
    threshold: float | None

    def __post_init__(self) -> None:
        self.begin(0, None)  # invalid settings fail here rather than at the first reset

    def begin(self, seed: int, options: Mapping[str, Any] | None) -> Episode:
        """A new episode; options["start"], [N], replaces the problem's own start."""
        problem = self.problem
        if unknown := set(options or ()) - {"start"}:
            raise InputError(
                f"unknown option {min(map(str, unknown))!r}; the only option is 'start', the first states."
            )
        if options:
            problem = problem.replace(start=options["start"])
        return Episode(World(problem, self.runs, seed, self.noise, self.threshold, self.horizon), seed)

    def describe(self, episode: Episode) -> tuple[str, ...]:
        """A line for each run: the step, the number of agents in each state, and the last reward."""
        names = self.problem.states or tuple(f"state {state}" for state in range(self.problem.shape[1]))
        lines = []
        for state, reward in zip(episode.state, episode.reward, strict=True):
            sizes = np.bincount(state, minlength=len(names))
            tally = ", ".join(f"{name} {size}" for name, size in zip(names, sizes, strict=True))
            lines.append(f"step {episode.step}: {tally}" + (f"; reward {reward:.6g}" if episode.step else ""))
        return tuple(lines)


class Environment(gymnasium.Env[Ints, NDArray[Any]]):
    """One run of a problem.

    Parameters
    ----------
    problem
        A `Problem`, or the id of a family such as "two-state-v1".
    horizon
        The number of steps after which a run is truncated; None for never.
    noise
        The variance of the Gaussian noise added to each observed reward.
    threshold
        The benefit below which acting has a cost; by default as in `simulate`.
    render_mode
        "ansi" to render steps as text, or None.
    action_space
        "sets" for `AgentSets`, which holds exactly the valid actions, or "multibinary" for Gymnasium's `MultiBinary`.
    instance_seed
        The seed of the instance of a family.
    settings
        The other settings of the family, such as agents=20.

    Examples
    --------
    >>> stay, leave = [[1, 0], [0, 1]], [[0, 1], [1, 0]]
    >>> environment = Environment(Problem([[stay, leave]] * 2, [0, 1], budget=1, start=[0, 0]))
    >>> environment.reset(seed=7)
    (array([0, 0]), {})
    >>> environment.step([1])[:4]
    (array([0, 1]), 1.0, False, False)
    """

    metadata = METADATA

    def __init__(
        self,
        problem: Problem | str,
        horizon: int | None = DEFAULT_HORIZON,
        noise: float = 0.0,
        threshold: float | None = None,
        render_mode: str | None = None,
        action_space: str = "sets",
        instance_seed: int = 0,
        **settings: int,
    ) -> None:
        self.settings = EpisodeSettings(_find_problem(problem, instance_seed, settings), 1, horizon, noise, threshold)
        self.render_mode = _check_render_mode(render_mode)
        self.observation_space = _make_observation_space(self.settings.problem)
        self.action_space = _make_action_space(action_space, self.settings.problem)
        self.episode: Episode | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Ints, dict[str, Any]]:
        """Start an episode: run 0 of `simulate` with this seed, or with one drawn from `np_random`."""
        super().reset(seed=seed)
        self.episode = self.settings.begin(_draw_seed(self.np_random) if seed is None else seed, options)
        return self.episode.state[0].copy(), {}

    def step(self, action: ArrayLike) -> tuple[Ints, float, bool, bool, dict[str, Any]]:
        """Act on these agents; the others wait."""
        episode = require_episode(self.episode)
        if episode.over:
            raise ResetNeeded(f"the episode ended after {episode.step} steps; call reset.")
        outcome = episode.advance(read_marks(self.action_space, action)[np.newaxis])
        info = {
            "reward": outcome.reward[0],
            "expected_reward": float(outcome.total[0]),
            "cost": float(outcome.cost[0]),
            "acted": episode.acted[0].astype(np.int8),
        }
        return outcome.after[0].copy(), float(episode.reward[0]), False, episode.over, info

    def render(self) -> str | None:
        """The last step as a line of text, if the render mode is "ansi"."""
        return None if self.render_mode is None else self.settings.describe(require_episode(self.episode))[0]


class VectorEnvironment(VectorEnv[Ints, NDArray[Any], NDArray[Any]]):
    """`num_envs` runs of a problem in one world; the other parameters are those of `Environment`.

    All runs reach the horizon together. The step after that ignores its actions and starts an episode with a seed drawn
    from `np_random`: it returns the first states, rewards of 0 and an empty info (Gymnasium's NEXT_STEP autoreset).
    """

    metadata = VECTOR_METADATA

    def __init__(
        self,
        problem: Problem | str,
        num_envs: int = 1,
        horizon: int | None = DEFAULT_HORIZON,
        noise: float = 0.0,
        threshold: float | None = None,
        render_mode: str | None = None,
        action_space: str = "sets",
        instance_seed: int = 0,
        **settings: int,
    ) -> None:
        self.num_envs = check_whole("num_envs", num_envs, 1)
        self.settings = EpisodeSettings(
            _find_problem(problem, instance_seed, settings), self.num_envs, horizon, noise, threshold
        )
        self.render_mode = _check_render_mode(render_mode)
        self.single_observation_space = _make_observation_space(self.settings.problem)
        self.single_action_space = _make_action_space(action_space, self.settings.problem)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.episode: Episode | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Ints, dict[str, Any]]:
        """Start an episode: runs 0 to `num_envs` − 1 of `simulate` with this seed, or one drawn from `np_random`."""
        super().reset(seed=seed)
        self.episode = self.settings.begin(_draw_seed(self.np_random) if seed is None else seed, options)
        return self.episode.state.copy(), {}

    def step(self, actions: ArrayLike) -> tuple[Ints, Floats, Bools, Bools, dict[str, Any]]:
        """Act on one set of agents in each run, [R, B]."""
        episode = require_episode(self.episode)
        info: dict[str, Any] = {}
        if episode.over:
            self.reset()
            episode = require_episode(self.episode)
        else:
            outcome = episode.advance(read_marks(self.action_space, actions))
            results = {"reward": outcome.reward, "expected_reward": outcome.total, "cost": outcome.cost}
            for key, value in {**results, "acted": episode.acted.astype(np.int8)}.items():
                info |= {key: value, f"_{key}": np.ones(self.num_envs, np.bool_)}
        never, truncated = np.zeros(self.num_envs, np.bool_), np.full(self.num_envs, episode.over)
        return episode.state.copy(), episode.reward.copy(), never, truncated, info

    def render(self) -> tuple[str, ...] | None:
        """The last step as a line of text for each run, if the render mode is "ansi"."""
        return None if self.render_mode is None else self.settings.describe(require_episode(self.episode))


def _find_problem(problem: Problem | str, instance_seed: int, settings: Mapping[str, int]) -> Problem:
    if isinstance(problem, Problem):
        if given := [*settings, *(["instance_seed"] if instance_seed else [])]:
            raise InputError(f"{given[0]} is a setting of a family of problems; a Problem has no settings.")
        return problem
    if not isinstance(problem, str):
        raise InputError(f"problem is {problem!r}; it must be a Problem or one of {', '.join(PROBLEMS)}.")
    if given := [name for name in settings if name in ("seed", "instances")]:
        raise InputError(f"{given[0]} is not a setting of an environment: it has one instance, that of instance_seed.")
    seed = {"seed": instance_seed} if instance_seed else {}  # fixed families have no seed
    return make_problems(problem, **settings, **seed)[0]


def _make_observation_space(problem: Problem) -> Space[Ints]:
    """The state of each agent."""
    agents, states = problem.shape
    return MultiDiscrete(np.full(agents, states))


def _make_action_space(kind: str, problem: Problem) -> Space[Any]:
    """The sets of agents that the budget allows, or a 0 or 1 for each agent."""
    if kind not in ("sets", "multibinary"):
        raise InputError(f"action_space is {kind!r}; it must be 'sets' or 'multibinary'.")
    if kind == "sets" and (problem.cost is not None or problem.spend != EXACTLY):
        raise InputError("a problem with costs or spend='at most' has no sets of one size; use 'multibinary'.")
    agents = problem.shape[0]
    return AgentSets(agents, problem.budget) if kind == "sets" else MultiBinary(agents)


def _check_render_mode(mode: str | None) -> str | None:
    if mode not in (None, "ansi"):
        raise InputError(f"render_mode is {mode!r}; it must be 'ansi' or None.")
    return mode


def _draw_seed(generator: np.random.Generator) -> int:
    return int(generator.integers(MAX_SEED, endpoint=True))


def require_episode(episode: Episode | None) -> Episode:
    """The episode, or ResetNeeded if there was no reset."""
    if episode is None:
        raise ResetNeeded("call reset first.")
    return episode
