"""`wiql`: Whittle-index Q-learning of Biswas, Aggarwal, Varakantham and Tambe (IJCAI 2021).

One Q-table for each agent, no model:  Q(s, a) += (r + discount · max_b Q(t, b) − Q(s, a)) / (visits(s, a) + 1), the
visits counted with this one; priority Q(s, 1) − Q(s, 0); with probability N / (N + t) the B agents are drawn uniformly.
With unseen="first" the priority is infinite until both actions were seen in a state, as in the eps-GT authors' code.
Departures: the reward is the one received on arrival; the discount is 0.9, as the eps-GT paper found it better than the
original 1.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from restive.contract import Draws, Estimate, Ranking, Shape, rank_index, without_noise
from restive.kernels.jit import compiled
from restive.policies.base import Learner, Presets, check_setting
from restive.types import Floats, Ints


class WiqlBelief(NamedTuple):
    """Q-tables and visits."""

    q: Floats  # [R, N, S, A] the Q-tables
    visits: Floats  # [R, N, S, A]


@dataclass(frozen=True)
class Wiql(Learner[WiqlBelief]):
    """One Q-table for each agent; rank by Q(s, 1) − Q(s, 0)."""

    name: ClassVar[str] = "wiql"
    discount: float = 0.9
    unseen: str = "zero"
    presets: ClassVar[Presets] = {
        "printed": {"unseen": "zero"},
        "authors": {"unseen": "first"},
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        check_setting(0 <= self.discount <= 1, self, "discount", "between 0 and 1")
        check_setting(self.unseen in ("zero", "first"), self, "unseen", "'zero' or 'first'")

    def start(self, shape: Shape) -> WiqlBelief:
        """All values are 0."""
        empty = np.zeros((shape.runs, shape.agents, shape.states, 2))
        return WiqlBelief(empty, empty.copy())

    def rank(self, belief: WiqlBelief, state: Ints, draws: Draws) -> Ranking:
        """The difference of the Q-values; exploration decreases with the steps."""
        priority = np.empty(state.shape)
        _rank(belief.q, belief.visits, state, self.unseen == "first", priority)
        agents = state.shape[1]
        explore = np.full(state.shape[0], agents / (agents + draws.step))
        return rank_index(priority, draws)._replace(explore=explore)

    def estimate(self, belief: WiqlBelief, state: Ints) -> Estimate:
        """The difference of the Q-values; its error is unknown."""
        benefit = np.empty(state.shape)
        _rank(belief.q, belief.visits, state, False, benefit)
        return without_noise(benefit)

    def learn(self, belief: WiqlBelief, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        """One step of Q-learning for every agent."""
        _learn(belief.q, belief.visits, self.discount, state, action, reward, after)


@compiled
def _rank(q: Floats, visits: Floats, state: Ints, unseen_first: bool, priority: Floats) -> None:
    for r in range(state.shape[0]):
        for n in range(state.shape[1]):
            s = state[r, n]
            priority[r, n] = q[r, n, s, 1] - q[r, n, s, 0]
            if unseen_first and min(visits[r, n, s, 0], visits[r, n, s, 1]) == 0.0:
                priority[r, n] = np.inf


@compiled
def _learn(q: Floats, visits: Floats, discount: float, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
    for r in range(state.shape[0]):
        for n in range(state.shape[1]):
            s, a, then = state[r, n], action[r, n], after[r, n]
            visits[r, n, s, a] += 1.0
            target = reward[r, n] + discount * max(q[r, n, then, 0], q[r, n, then, 1])
            q[r, n, s, a] += (target - q[r, n, s, a]) / (visits[r, n, s, a] + 1.0)
