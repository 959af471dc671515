"""The paper's regret: the cost of acting below a threshold that lies between the two benefits of the weaker agent.

On instances of `ordered-v1` the threshold is share · I(1) + (1 − share) · I(0) of the weaker agent, so that its state 0
is the one bad pair, and the gap Δ of theorem 4.4 is the distance from the threshold to the least benefit above it.
"""

from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np

from restive.contract import Draws, Model, Ranking, Shape
from restive.files import Columns
from restive.paper.tasks.playing import follow, kept_steps
from restive.policies import make_policy
from restive.policies.base import Oracle
from restive.policies.egt import Egt, EgtBelief
from restive.problems import make_problems
from restive.solvers.myopic import benefit
from restive.types import Floats, Ints
from restive.world import World

THEORY = "theory"


def regret(
    share: float, policy: str, instances: int, horizon: int, runs: int, seed: int, scale: float = 1.0
) -> Columns:
    """The cost of a policy on the instances of the regret curve.

    "theory" is eps-GT as theorem 4.4 sets it; `scale` makes it explore so many times as much.
    """
    problems = make_problems("ordered-v1", instances=instances, seed=seed)
    gains = np.stack([benefit(problem.transition, problem.reward) for problem in problems])
    world = World(problems, runs, seed, threshold=list(thresholds(gains, share)), horizon=horizon)
    player = TheoryEgt(share, scale) if policy == THEORY else make_policy(policy)
    return follow(world, player, kept_steps(horizon))


def thresholds(gains: Floats, share: float) -> Floats:
    """The threshold of each instance, [I], from its benefits [I, 2, S]: the second agent is the weaker one.

    >>> thresholds(np.array([[[0.9, 0.8], [0.1, 0.5]]]), share=0.5)
    array([0.3])
    """
    weaker = gains[:, 1]
    between: Floats = share * weaker[:, 1] + (1 - share) * weaker[:, 0]
    return between


def gaps(gains: Floats, threshold: Floats) -> Floats:
    """Δ of each instance, [I]: from the threshold to the least benefit that reaches it.

    >>> gaps(np.array([[[0.9, 0.8], [0.1, 0.5]]]), np.array([0.25]))
    array([0.25])
    """
    above = gains - threshold[:, None, None]
    least: Floats = np.where(above >= 0, above, np.inf).min(axis=(1, 2))
    return least


@dataclass(frozen=True)
class TheoryEgt(Oracle[EgtBelief]):
    """eps-GT with the settings of theorem 4.4, which need each instance's threshold and gap, taken from its model."""

    name: ClassVar[str] = "egt-theory"
    share: float = 0.5
    scale: float = 1.0

    def start(self, shape: Shape, model: Model) -> EgtBelief:
        """Nothing seen; gamma and eta of each instance as the theorem sets them."""
        gains = benefit(model.transition, model.reward)
        gamma = thresholds(gains, self.share)
        gap_squared = np.minimum(gaps(gains, gamma) ** 2, 0.5) / self.scale
        empty = _player(shape.agents, shape.budget).start(shape)
        return empty._replace(gamma=gamma[model.instance], gap_squared=gap_squared[model.instance])

    def rank(self, belief: EgtBelief, state: Ints, draws: Draws) -> Ranking:
        """As eps-GT."""
        return _player(state.shape[1], draws.budget).rank(belief, state, draws)

    def learn(self, belief: EgtBelief, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        """As eps-GT."""
        _player(state.shape[1], 1).learn(belief, state, action, reward, after)


@cache
def _player(agents: int, budget: int) -> Egt:
    """The part of the theorem's settings that all instances share: D and p."""
    return Egt.theory(agents, budget, gap=1.0, gamma=0.0)
