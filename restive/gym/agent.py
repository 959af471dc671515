"""A policy of ours in an environment: the other half of the loop, when Gymnasium keeps the world.

What `Simulation` does in one step is cut in two: `act` ranks and chooses, the environment advances, `learn` learns.
"""

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import ArrayLike

from restive.contract import as_ranking
from restive.errors import InputError
from restive.gym.envs import Environment, Episode, VectorEnvironment, begun
from restive.policies import make_policy
from restive.policies.base import Policy
from restive.types import Ints


class Player:
    """A policy of ours that plays an environment from outside, and begins anew whenever the environment does.

    It decides with the luck of the environment's world, as `simulate` does; a learner gets the shape, the observed
    states and the observed rewards, nothing else.

    >>> environment = Environment("two-state-v1", agents=5, budget=2)
    >>> player = Player("egt", environment)
    >>> observation, info = environment.reset(seed=7)
    >>> for _ in range(3):
    ...     observation, reward, terminated, truncated, info = environment.step(player.act(observation))
    ...     player.learn(observation, info)
    """

    def __init__(
        self, policy: str | Policy[Any], environment: gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any]
    ) -> None:
        base = environment.unwrapped
        if not isinstance(base, Environment | VectorEnvironment):
            raise InputError(f"{environment} is not an environment of restive.gym; a player plays no others.")
        self.policy = make_policy(policy)
        self.environment = base
        self.episode: Episode | None = None
        self.belief: Any = None
        self.choice: tuple[Ints, Ints] | None = None

    def act(self, observation: ArrayLike) -> Ints:
        """Whom to act on in these states: an action for `step`."""
        episode = begun(self.environment.episode)
        world = episode.world
        if episode is not self.episode:
            self.episode, self.belief = episode, self.policy.begin(world.shape, world.model)
        state, draws = self._states(observation), world.draws(episode.step)
        # A step after the horizon only begins anew, whatever the action; a policy's plan may have no row for it.
        ranked = np.zeros(state.shape) if episode.over else self.policy.rank(self.belief, state, draws)
        ranking = as_ranking(ranked, world.shape, self.policy.name)
        self.choice = state, world.choose(ranking, draws)
        return self.environment.action_space.sets(self.choice[1])

    def learn(self, observation: ArrayLike, info: Mapping[str, Any]) -> None:
        """Take in what `step` returned for the last `act`; a step that only began anew has nothing to teach."""
        if self.choice is None:
            raise InputError("learn comes after act and step, once for each step.")
        (state, action), self.choice = self.choice, None
        if self.environment.episode is self.episode:
            reward = np.array(info["reward"], np.float64).reshape(state.shape)
            self.policy.learn(self.belief, state, action, reward, self._states(observation))

    def _states(self, observation: ArrayLike) -> Ints:
        state = np.array(observation)
        space, problem = self.environment.observation_space, self.environment.game.problem
        if not space.contains(state):
            raise InputError(
                f"the observation is not one of this environment: it must have shape {list(space.shape or ())} and "
                f"hold states, whole numbers from 0 to {problem.shape[1] - 1}."
            )
        return state.astype(np.int64).reshape(-1, problem.shape[0])
