"""Episodic Whittle policies: a model is guessed at the start of each episode, and its Whittle indices are followed.

The episodes are those of RB-TSDE, Akbarzadeh and Mahajan (2023): one ends when it is longer than the one before, or
when the visits of any agent to any state and action have doubled since it began. A subclass defines how a model is made
from the counted moves, [R, N, A, S, S]; rewards are the observed means.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from restive.contract import Draws, Estimate, Ranking, Shape, rank_index, without_noise
from restive.kernels.jit import compiled
from restive.policies.base import Learner, check_setting
from restive.policies.index_table import look_up
from restive.policies.transition_counts import Counts, count_moves, mean_rewards, no_counts
from restive.solvers.whittle import whittle_indices
from restive.types import Bools, Floats, Ints


class EpisodicBelief(NamedTuple):
    """Counts, and the episode of each run."""

    counts: Counts
    indices: Floats  # [R, N, S] Whittle indices of the current model
    visits: Floats  # [R, N, A, S]
    before: Floats  # [R, N, A, S] the visits when the episode began
    age: Ints  # [R] steps since it began
    limit: Ints  # [R] its maximal age
    over: Bools  # [R]


@dataclass(frozen=True)
class EpisodicWhittle(Learner[EpisodicBelief]):
    """Whittle indices of a model that is made again at the start of every episode."""

    discount: float = 0.9
    prior: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_setting(0 < self.discount <= 1, self, "discount", "above 0, and at most 1 for the average reward")
        check_setting(0 < self.prior < np.inf, self, "prior", "above 0, the pseudo-count of each move")

    @abstractmethod
    def guess(self, moves: Floats, due: Ints, draws: Draws) -> Floats:
        """The model to follow in the runs `due`, shaped like their `moves`, [len(due), N, A, S, S]."""

    def start(self, shape: Shape) -> EpisodicBelief:
        """No data; the first episode is due."""
        cells = (shape.runs, shape.agents, shape.states)
        visits = np.zeros((shape.runs, shape.agents, 2, shape.states))
        age, over = np.zeros(shape.runs, np.int64), np.ones(shape.runs, np.bool_)
        return EpisodicBelief(no_counts(shape), np.zeros(cells), visits, visits.copy(), age, age.copy(), over)

    def rank(self, belief: EpisodicBelief, state: Ints, draws: Draws) -> Ranking:
        """The indices of the current model; runs whose episode is over make a new one first."""
        due = np.flatnonzero(belief.over)
        if due.size:
            self._begin_episode(belief, due, draws)
        return rank_index(look_up(belief.indices, np.arange(len(state)), state), draws)

    def estimate(self, belief: EpisodicBelief, state: Ints) -> Estimate:
        """The current index, 0 before the first model; its error is unknown."""
        return without_noise(look_up(belief.indices, np.arange(len(state)), state))

    def learn(self, belief: EpisodicBelief, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        """Count, and mark the episodes that are over."""
        count_moves(*belief.counts, state, action, reward, after)
        belief.age[:] += 1
        belief.over[:] = belief.age > belief.limit
        _mark_doubled(belief.visits, belief.before, state, action, belief.over)

    def _begin_episode(self, belief: EpisodicBelief, due: Ints, draws: Draws) -> None:
        counts = Counts(*(array[due] for array in belief.counts))
        runs, agents, actions, states, _ = counts.moves.shape
        model = self.guess(counts.moves, due, draws).reshape(runs * agents, actions, states, states)
        reward = mean_rewards(counts).reshape(runs * agents, states)
        indices = whittle_indices(model, reward, self.discount, threads=1)
        belief.indices[due] = indices.value.reshape(runs, agents, states)
        belief.before[due] = belief.visits[due]
        belief.limit[due], belief.age[due], belief.over[due] = belief.age[due], 0, False


@compiled
def _mark_doubled(visits: Floats, before: Floats, state: Ints, action: Ints, over: Bools) -> None:
    for r in range(state.shape[0]):
        for n in range(state.shape[1]):
            a, s = action[r, n], state[r, n]
            visits[r, n, a, s] += 1.0
            if visits[r, n, a, s] > 2.0 * before[r, n, a, s]:
                over[r] = True
