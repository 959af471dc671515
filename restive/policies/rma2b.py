"""`rma2b`: R(MA)²B of Xiong, Li and Singh (2022): explore, then follow the plan of the most hopeful model.

For `explore` steps the B agents are drawn uniformly; then the fluid plan for the remaining steps is made, each agent
free to move as it likes within a box around the observed shares, and its activation shares are followed to the end.

    radius = √(log(4 S A N explore / delta) / (2 max(1, visits)))

Departures: the original assumes that every state and action can be sampled at will; here, as in the eps-GT paper,
exploration ends after a fixed number of steps. That number and the radius' constant are ours. Rewards are estimated
(the mean seen by the agent, else by all agents), the original assumes that they are known. explore=None is a tenth of
the horizon.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from restive.contract import Draws, Estimate, Ranking, Shape, without_noise
from restive.policies.base import Learner, check_setting
from restive.policies.fluid_schedule import PLAN_AXES, Plans, blank, known_horizon, put, shares_at
from restive.policies.index_table import look_up
from restive.policies.transition_counts import Counts, count_moves, mean_rewards, mean_transitions, no_counts
from restive.solvers.fluid import plan
from restive.types import Floats, Ints


class Commitment(NamedTuple):
    """What was counted while exploring, and the plan of each run after that."""

    counts: Counts
    plans: Plans
    explore: Ints  # [] steps of exploration


@dataclass(frozen=True)
class Rma2b(Learner[Commitment]):
    """Explore for a while, then act as the fluid plan of the most hopeful model does."""

    name: ClassVar[str] = "rma2b"
    agent_axes: ClassVar[Mapping[str, int | None]] = {f"plans.{name}": axis for name, axis in PLAN_AXES.items()}
    explore: int | None = None
    delta: float = 1e-3
    gap: float = 1e-2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_setting(self.explore is None or self.explore >= 0, self, "explore", "0 or more steps, or None")
        check_setting(0 < self.delta < 1, self, "delta", "between 0 and 1")
        check_setting(0 < self.gap < 1, self, "gap", "between 0 and 1")

    def start(self, shape: Shape) -> Commitment:
        """Nothing counted, no plan."""
        horizon = known_horizon(shape, self.name)
        explore = -(-horizon // 10) if self.explore is None else min(self.explore, horizon)
        plans = blank(shape.runs, shape, max(1, horizon - explore), optimistic=True)
        return Commitment(no_counts(shape), plans, np.array(explore))

    def rank(self, belief: Commitment, state: Ints, draws: Draws) -> Ranking | Floats:
        """At random while exploring, then by the share of the plan."""
        step = draws.step - int(belief.explore)
        if step < 0:
            return Ranking(np.zeros(state.shape), np.ones(state.shape[0]))
        if step == 0:
            self._plan(belief, state, draws.budget)
        return look_up(shares_at(belief.plans, step), np.arange(len(state)), state)

    def estimate(self, belief: Commitment, state: Ints) -> Estimate:
        """The share with which the plan acts as the block of steps in force begins; NaN while there is no plan."""
        shares = np.ascontiguousarray(belief.plans.table[:, 0])
        benefit = look_up(shares, np.arange(len(state)), state)
        return without_noise(benefit if belief.plans.block >= 0 else np.full(state.shape, np.nan))

    def learn(self, belief: Commitment, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        """Count."""
        count_moves(*belief.counts, state, action, reward, after)

    def _plan(self, belief: Commitment, state: Ints, budget: int) -> None:
        """One plan for each run, for the steps that are left, from the states of now."""
        estimate, visits = mean_transitions(belief.counts.moves)
        _, agents, actions, states = visits.shape
        doubt = np.log(4 * states * actions * agents * max(1, int(belief.explore)) / self.delta)
        radius = np.sqrt(doubt / (2 * np.maximum(visits, 1.0)))
        reward = mean_rewards(belief.counts)
        horizon = belief.plans.ranking.shape[1]
        for run, here in enumerate(np.eye(states)[state]):
            put(belief.plans, run, plan(estimate[run], reward[run], budget, horizon, here, radius[run], self.gap))
