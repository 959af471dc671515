"""R runs of a problem behind Gymnasium's reset and step: one run, or a vector of them in one world.

observation  [N]  the state of each agent; a vector environment has an axis R in front, here and below
action       [B]  the agents to act on, B different numbers in any order: an element of `AgentSets`
reward            the sum over agents of the rewards as observed, noise included
info              after a step: "reward" [N] as observed, "expected_reward" and "cost", both summed over agents

A run is never terminated; it is truncated at the horizon.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import MultiDiscrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from restive.errors import InputError, check_whole
from restive.gym.spaces import AgentSets
from restive.kernels.rng import MAX_SEED
from restive.kernels.step import Outcome
from restive.problem import Problem
from restive.problems import PROBLEMS, make_problems
from restive.types import Bools, Floats, Ints
from restive.world import World

HORIZON = 1000  # the paper's; an environment made without a word about its length should end all the same
METADATA = {"render_modes": ["ansi"], "render_fps": 1}
VECTOR_METADATA = {**METADATA, "autoreset_mode": AutoresetMode.NEXT_STEP}


class Episode:
    """From one reset to the next: a world of R runs, where its agents are, and how many steps were made."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.seed = seed
        self.state = world.first_states()
        self.reward = np.zeros(world.shape.runs)
        self.step = 0

    @property
    def over(self) -> bool:
        """Whether the horizon is reached."""
        return self.step == self.world.shape.horizon

    def advance(self, action: Ints) -> Outcome:
        """One step of all runs; `action` is 0 or 1, [R, N]."""
        outcome = self.world.advance(self.state, action, self.world.draws(self.step))
        # Added up agent by agent as the kernel does: without noise this is the expected reward to the last bit.
        self.reward = np.cumsum(outcome.reward, axis=1)[:, -1]
        self.state, self.step = outcome.after, self.step + 1
        return outcome


@dataclass(frozen=True)
class Game:
    """What stays the same from episode to episode."""

    problem: Problem
    runs: int
    horizon: int | None
    noise: float
    threshold: float | None

    def __post_init__(self) -> None:
        self.begin(0, None)  # what makes no sense is refused here rather than at the first reset

    def begin(self, seed: int, options: Mapping[str, Any] | None) -> Episode:
        """A new episode; options["start"], [N], takes the place of the problem's own start."""
        problem = self.problem
        if unknown := set(options or ()) - {"start"}:
            raise InputError(f"options has no entry {min(map(str, unknown))!r}; it may have 'start', the first states.")
        if options:
            start = options["start"]
            problem = Problem(problem.transition, problem.reward, problem.budget, start, problem.states, problem.name)
        return Episode(World(problem, self.runs, seed, self.noise, self.threshold, self.horizon), seed)

    def describe(self, episode: Episode) -> tuple[str, ...]:
        """A line for each run: the step, how many agents are in each state, and the last reward."""
        names = self.problem.states or tuple(f"state {state}" for state in range(self.problem.shape[1]))
        lines = []
        for state, reward in zip(episode.state, episode.reward, strict=True):
            sizes = np.bincount(state, minlength=len(names))
            tally = ", ".join(f"{name} {size}" for name, size in zip(names, sizes, strict=True))
            lines.append(f"step {episode.step}: {tally}" + (f"; reward {reward:.6g}" if episode.step else ""))
        return tuple(lines)


class Environment(gymnasium.Env[Ints, Ints]):
    """One run of a problem.

    problem        a `Problem`, or the id of a family such as "two-state-v1"
    horizon        after how many steps a run is truncated; None for never
    noise          variance of the Gaussian added to each observed reward
    threshold      what the cost is measured against; by default as in `simulate`
    instance_seed  which instance of the family; `settings` are its others, such as agents=20

    >>> stay, leave = [[1, 0], [0, 1]], [[0, 1], [1, 0]]
    >>> environment = Environment(Problem([[stay, leave]] * 2, [0, 1], budget=1, start=[0, 0]))
    >>> environment.reset(seed=7)
    (array([0, 0]), {})
    >>> environment.step([1])[:4]
    (array([0, 1]), 1.0, False, False)
    """

    metadata = METADATA
    action_space: AgentSets

    def __init__(
        self,
        problem: Problem | str,
        horizon: int | None = HORIZON,
        noise: float = 0.0,
        threshold: float | None = None,
        render_mode: str | None = None,
        instance_seed: int = 0,
        **settings: int,
    ) -> None:
        self.game = Game(_find_problem(problem, instance_seed, settings), 1, horizon, noise, threshold)
        self.render_mode = _check_render_mode(render_mode)
        self.observation_space, self.action_space = _make_spaces(self.game.problem)
        self.episode: Episode | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Ints, dict[str, Any]]:
        """Begin anew: run 0 of `simulate` with this seed, or with one drawn from `np_random`."""
        super().reset(seed=seed)
        self.episode = self.game.begin(_draw_seed(self.np_random) if seed is None else seed, options)
        return self.episode.state[0].copy(), {}

    def step(self, action: ArrayLike) -> tuple[Ints, float, bool, bool, dict[str, Any]]:
        """Act on these agents, wait with the others."""
        episode = begun(self.episode)
        if episode.over:
            raise ResetNeeded(f"the episode ended after {episode.step} steps; call reset.")
        outcome = episode.advance(self.action_space.marks(action)[np.newaxis])
        info = {
            "reward": outcome.reward[0],
            "expected_reward": float(outcome.total[0]),
            "cost": float(outcome.cost[0]),
        }
        return outcome.after[0].copy(), float(episode.reward[0]), False, episode.over, info

    def render(self) -> str | None:
        """The last step as a line of text, if the render mode is "ansi"."""
        return None if self.render_mode is None else self.game.describe(begun(self.episode))[0]


class VectorEnvironment(VectorEnv[Ints, Ints, NDArray[Any]]):
    """`num_envs` runs of a problem in one world; the other parameters are those of `Environment`.

    All runs reach the horizon together. The step after that ignores its actions and begins anew, with a seed drawn from
    `np_random`: it returns the first states, rewards of 0 and an empty info (Gymnasium's NEXT_STEP autoreset).
    """

    metadata = VECTOR_METADATA
    action_space: AgentSets

    def __init__(
        self,
        problem: Problem | str,
        num_envs: int = 1,
        horizon: int | None = HORIZON,
        noise: float = 0.0,
        threshold: float | None = None,
        render_mode: str | None = None,
        instance_seed: int = 0,
        **settings: int,
    ) -> None:
        self.num_envs = check_whole("num_envs", num_envs, 1)
        self.game = Game(_find_problem(problem, instance_seed, settings), self.num_envs, horizon, noise, threshold)
        self.render_mode = _check_render_mode(render_mode)
        self.single_observation_space, self.single_action_space = _make_spaces(self.game.problem)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = AgentSets(self.game.problem.shape[0], self.game.problem.budget, (self.num_envs,))
        self.episode: Episode | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Ints, dict[str, Any]]:
        """Begin anew: runs 0 to `num_envs` − 1 of `simulate` with this seed, or with one drawn from `np_random`."""
        super().reset(seed=seed)
        self.episode = self.game.begin(_draw_seed(self.np_random) if seed is None else seed, options)
        return self.episode.state.copy(), {}

    def step(self, actions: ArrayLike) -> tuple[Ints, Floats, Bools, Bools, dict[str, Any]]:
        """Act on one set of agents in each run, [R, B]."""
        episode = begun(self.episode)
        info: dict[str, Any] = {}
        if episode.over:
            self.reset()
            episode = begun(self.episode)
        else:
            outcome = episode.advance(self.action_space.marks(actions))
            for key, value in (("reward", outcome.reward), ("expected_reward", outcome.total), ("cost", outcome.cost)):
                info |= {key: value, f"_{key}": np.ones(self.num_envs, np.bool_)}
        never, truncated = np.zeros(self.num_envs, np.bool_), np.full(self.num_envs, episode.over)
        return episode.state.copy(), episode.reward.copy(), never, truncated, info

    def render(self) -> tuple[str, ...] | None:
        """The last step as a line of text for each run, if the render mode is "ansi"."""
        return None if self.render_mode is None else self.game.describe(begun(self.episode))


def _find_problem(problem: Problem | str, instance_seed: int, settings: Mapping[str, int]) -> Problem:
    if isinstance(problem, Problem):
        if given := [*settings, *(["instance_seed"] if instance_seed else [])]:
            raise InputError(f"{given[0]} is a setting of a family of problems; a Problem has none.")
        return problem
    if not isinstance(problem, str):
        raise InputError(f"problem is {problem!r}; it must be a Problem or one of {', '.join(PROBLEMS)}.")
    if given := [name for name in settings if name in ("seed", "instances")]:
        raise InputError(f"{given[0]} is no setting of an environment: it plays one instance, that of instance_seed.")
    seed = {"seed": instance_seed} if instance_seed else {}  # fixed families have none; the others start at 0 too
    return make_problems(problem, **settings, **seed)[0]


def _make_spaces(problem: Problem) -> tuple[MultiDiscrete[np.int64], AgentSets]:
    agents, states = problem.shape
    return MultiDiscrete(np.full(agents, states)), AgentSets(agents, problem.budget)


def _check_render_mode(mode: str | None) -> str | None:
    if mode not in (None, "ansi"):
        raise InputError(f"render_mode is {mode!r}; it must be 'ansi' or None.")
    return mode


def _draw_seed(generator: np.random.Generator) -> int:
    return int(generator.integers(MAX_SEED, endpoint=True))


def begun(episode: Episode | None) -> Episode:
    """The episode, if there was a reset."""
    if episode is None:
        raise ResetNeeded("call reset first.")
    return episode
