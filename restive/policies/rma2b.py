"""`rma2b`: R(MA)²B of Xiong, Li and Singh (2022): explore, then follow the plan of the optimistic model.

For `explore` steps the B agents are drawn uniformly; then a fluid plan for the remaining steps is made, optimistic
within a box around the observed transition frequencies, and its index is followed to the end, as in `omr-oracle`.

    radius = width · √(log(4 S A N explore / delta) / (2 max(1, visits)))

Departures: the original assumes that every state and action can be sampled freely; here, as in the eps-GT paper,
exploration ends after a fixed number of steps. That number and the radius' constant are ours; width=0 plans for the
frequencies themselves. Rewards are estimated (the mean seen by the agent, else by all agents), the original assumes
that they are known. explore=None is a tenth of the horizon.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from restive.contract import Draws, Estimate, Ranking, Shape, rank_index, without_noise
from restive.policies.base import Learner, Presets, check_setting
from restive.policies.fluid_schedule import PLAN_AXES, FluidSchedule, blank, check_index, indices_at, known_horizon, put
from restive.policies.index_table import look_up
from restive.policies.transition_counts import Counts, count_moves, mean_rewards, mean_transitions, no_counts
from restive.solvers.fluid import plan
from restive.types import Floats, Ints


class Rma2bBelief(NamedTuple):
    """Counts of the exploration, and the plan of each run afterwards."""

    counts: Counts
    plans: FluidSchedule
    explore: Ints  # [] steps of exploration


@dataclass(frozen=True)
class Rma2b(Learner[Rma2bBelief]):
    """Explore for a number of steps, then follow the fluid plan of the optimistic model."""

    name: ClassVar[str] = "rma2b"
    version: ClassVar[int] = 2
    agent_axes: ClassVar[Mapping[str, int | None]] = {f"plans.{name}": axis for name, axis in PLAN_AXES.items()}
    explore: int | None = None
    index: str = "reward"
    width: float = 1.0
    delta: float = 1e-3
    gap: float = 1e-2
    presets: ClassVar[Presets] = {
        "printed": {"index": "reward", "width": 0.0},
        "authors": {"index": "state", "width": 1.0},
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        check_setting(self.explore is None or self.explore >= 0, self, "explore", "0 or more steps, or None")
        check_index(self, self.index)
        check_setting(0 <= self.width < np.inf, self, "width", "0 or more")
        check_setting(0 < self.delta < 1, self, "delta", "between 0 and 1")
        check_setting(0 < self.gap < 1, self, "gap", "between 0 and 1")

    def start(self, shape: Shape) -> Rma2bBelief:
        """No data, no plan."""
        horizon = known_horizon(shape, self.name)
        explore = -(-horizon // 10) if self.explore is None else min(self.explore, horizon)
        plans = blank(shape.runs, shape, max(1, horizon - explore), optimistic=True)
        return Rma2bBelief(no_counts(shape), plans, np.array(explore))

    def rank(self, belief: Rma2bBelief, state: Ints, draws: Draws) -> Ranking:
        """A uniform draw while exploring, then the index of the plan."""
        step = draws.step - int(belief.explore)
        if step < 0:
            return Ranking(np.zeros(state.shape), np.ones(state.shape[0]))
        if step == 0:
            self._plan(belief, state, draws)
        return rank_index(look_up(indices_at(belief.plans, step, self.index), np.arange(len(state)), state), draws)

    def estimate(self, belief: Rma2bBelief, state: Ints) -> Estimate:
        """The index at the start of the current block of steps; NaN before there is a plan."""
        indices = np.ascontiguousarray(belief.plans.table[:, 0])
        benefit = look_up(indices, np.arange(len(state)), state)
        return without_noise(benefit if belief.plans.block >= 0 else np.full(state.shape, np.nan))

    def learn(self, belief: Rma2bBelief, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        """Count."""
        count_moves(*belief.counts, state, action, reward, after)

    def _plan(self, belief: Rma2bBelief, state: Ints, draws: Draws) -> None:
        """Make one plan for each run, for the remaining steps, from the current states."""
        estimate, visits = mean_transitions(belief.counts.moves)
        _, agents, actions, states = visits.shape
        confidence = np.log(4 * states * actions * agents * max(1, int(belief.explore)) / self.delta)
        radius = self.width * np.sqrt(confidence / (2 * np.maximum(visits, 1.0)))
        reward = mean_rewards(belief.counts)
        horizon = belief.plans.ranking.shape[1]
        for run, start in enumerate(np.eye(states)[state]):
            model = estimate[run], reward[run], draws.budget, horizon, start, radius[run]
            cost = None if draws.cost is None else draws.cost[run]
            put(belief.plans, run, plan(*model, self.gap, cost=cost, at_most=draws.at_most))
