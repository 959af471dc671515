"""A policy as an agent for Gymnasium environments.

One step of `Simulation` in two calls: `act` ranks and chooses, the environment advances, and `learn` learns.
"""

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import ArrayLike, NDArray

from restive.contract import as_ranking
from restive.errors import InputError
from restive.gym.envs import Environment, Episode, VectorEnvironment, require_episode
from restive.gym.spaces import write_marks
from restive.policies import make_policy
from restive.policies.base import Policy
from restive.types import Ints


class PolicyAgent:
    """A policy that acts in an environment, and starts again whenever the environment is reset.

    It uses the random numbers of the environment's world, as `simulate` does; a learner gets the shape, the observed
    states and the observed rewards, nothing else.

    Parameters
    ----------
    policy
        A policy, or its name with settings; see `make_policy`.
    environment
        An `Environment` or `VectorEnvironment`, wrapped or not.

    Examples
    --------

    >>> environment = Environment("two-state-v1", agents=5, budget=2)
    >>> agent = PolicyAgent("egt", environment)
    >>> observation, info = environment.reset(seed=7)
    >>> for _ in range(3):
    ...     observation, reward, terminated, truncated, info = environment.step(agent.act(observation))
    ...     agent.learn(observation, info)
    """

    def __init__(
        self, policy: str | Policy[Any], environment: gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any]
    ) -> None:
        base = environment.unwrapped
        if not isinstance(base, Environment | VectorEnvironment):
            raise InputError(f"{environment} is not an environment of restive.gym.")
        self.policy = make_policy(policy)
        self.environment = base
        self.episode: Episode | None = None
        self.belief: Any = None
        self.choice: tuple[Ints, Ints] | None = None

    def act(self, observation: ArrayLike) -> NDArray[Any]:
        """The action for `step` in these states."""
        episode = require_episode(self.environment.episode)
        world = episode.world
        if episode is not self.episode:
            self.episode, self.belief = episode, self.policy.begin(world.shape, world.model)
        state, draws = self._states(observation), world.draws(episode.step)
        # A step after the horizon only resets the environment, and a policy may not be able to rank in it.
        ranked = np.zeros(state.shape) if episode.over else self.policy.rank(self.belief, state, draws)
        ranking = as_ranking(ranked, world.shape, self.policy.name)
        self.choice = state, world.choose(ranking, draws)
        return write_marks(self.environment.action_space, self.choice[1])

    def learn(self, observation: ArrayLike, info: Mapping[str, Any]) -> None:
        """Learn from what `step` returned after the last `act`; a step that only reset the environment is skipped."""
        if self.choice is None:
            raise InputError("call act and step before learn, once for each step.")
        (state, action), self.choice = self.choice, None
        if self.environment.episode is self.episode:
            reward = np.array(info["reward"], np.float64).reshape(state.shape)
            self.policy.learn(self.belief, state, action, reward, self._states(observation))

    def _states(self, observation: ArrayLike) -> Ints:
        state = np.array(observation)
        space, problem = self.environment.observation_space, self.environment.settings.problem
        if not space.contains(state):
            raise InputError(
                f"the observation does not fit this environment: it must have shape {list(space.shape or ())} and "
                f"hold states, whole numbers from 0 to {problem.shape[1] - 1}."
            )
        return state.astype(np.int64).reshape(-1, problem.shape[0])
