"""What a policy observes of a simulated world: some states are unknown in a step, and outcomes come late.

    missing  the probability that the state of an agent is unknown in a step; all are known in the first
    delay    the number of steps after which the outcome of a step, its reward, is reported

A policy ranks agents by their last known states, and learns from the moves whose both states are known (`learn_some`),
as soon as their rewards are reported. The same agents are unknown in all runs. The true states and rewards do not
depend on what is observed. This is how the desk treats people without a state in a round, and outcomes that are
reported late.
"""

from typing import Any

import numpy as np

from restive.contract import Draws
from restive.kernels import rng
from restive.kernels.step import Outcome
from restive.policies.base import Policy
from restive.types import Bools, Ints, Keys
from restive.world import World

MISSING = 2**32 + 1  # a random stream beyond those of the policies


class Observation:
    """The last known states, and the outcomes of the last `delay` steps, which are not reported yet."""

    def __init__(self, world: World, state: Ints) -> None:
        self.world = world
        self.seen = state.copy()
        waiting = (world.delay, *state.shape)
        self.late: dict[str, Any] = {
            "known": np.zeros((world.delay, state.shape[1]), np.bool_),
            "state": np.zeros(waiting, np.int64),
            "action": np.zeros(waiting, np.int64),
            "reward": np.zeros(waiting),
            "after": np.zeros(waiting, np.int64),
        }

    def see(self, state: Ints, step: int) -> Ints:
        """The last known states at a step, [R, N]."""
        if not self.world.missing:
            return state
        known = self._known(step)
        self.seen[:, known] = state[:, known]
        return self.seen.copy()

    def _known(self, step: int) -> Bools:
        """Whether the state of each agent is known at a step, [N]."""
        world = self.world
        if not world.missing or step == 0:
            return np.ones(world.shape.agents, np.bool_)
        keys: Keys = rng.branch(world.common_key, MISSING, step)
        known: Bools = rng.uniform(keys, world.agents)[0] >= world.missing
        return known

    def learn(
        self, policy: Policy[Any], belief: Any, state: Ints, action: Ints, outcome: Outcome, draws: Draws
    ) -> None:
        """Let a policy learn from the outcomes that are reported at the end of a step; `state` as `see` returned it."""
        if not self.world.missing and not self.world.delay:
            return policy.learn(belief, state, action, outcome.reward, outcome.after)
        known = self._known(draws.step) & self._known(draws.step + 1)
        news: dict[str, Any] = {
            "known": known,
            "state": state,
            "action": action,
            "reward": outcome.reward,
            "after": outcome.after,
        }
        if self.world.delay:
            slot = draws.step % self.world.delay
            old = {name: array[slot].copy() for name, array in self.late.items()}
            for name, array in self.late.items():
                array[slot] = news[name]
            if draws.step < self.world.delay:
                return
            news = old
        agents, parts = np.flatnonzero(news.pop("known")), list(news.values())
        if agents.size == self.world.shape.agents:
            policy.learn(belief, *parts)
        elif agents.size:
            policy.learn_some(belief, agents, *(np.ascontiguousarray(part[:, agents]) for part in parts))

    def arrays(self) -> dict[str, Any]:
        """All arrays by name, to save; those of a world that observes everything at once are left out."""
        seen = {"seen": self.seen} if self.world.missing else {}
        return seen | ({f"late.{name}": array for name, array in self.late.items()} if self.world.delay else {})

    def restore(self, arrays: dict[str, Any]) -> None:
        """Restore the arrays that `arrays` returned."""
        self.seen = arrays.get("seen", self.seen)
        self.late = {name: arrays.get(f"late.{name}", array) for name, array in self.late.items()}
