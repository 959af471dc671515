"""`omr-oracle`: the occupancy-measured-reward index of Xiong, Li and Singh (2022), with the true model.

The finite-horizon linear program over occupancy measures, with the budget met on average, gives the share of each
agent's time in a state and step in which it is acted on; the index is that share times the reward of acting (see
`fluid_schedule` for other readings). The program is solved by dual decomposition to a relative gap of `gap`, or for at
most 200 sweeps. States that the plan never visits get the share that their advantage at the plan's price implies: 1
above it, 0 below (the source leaves it open). Equal indices (shares to nine digits) are ordered at random.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from restive.contract import Draws, Model, Ranking, Shape, rank_index
from restive.errors import InputError
from restive.policies.base import Oracle, Presets, check_setting
from restive.policies.fluid_schedule import FluidSchedule, blank, check_index, indices_at, known_horizon, put
from restive.policies.index_table import look_up
from restive.problem import AT_MOST
from restive.solvers.fluid import plan
from restive.types import Ints


class OmrBelief(NamedTuple):
    """The plan of each instance, and the instance of each run."""

    plans: FluidSchedule
    instance: Ints  # [R]


@dataclass(frozen=True)
class OmrOracle(Oracle[OmrBelief]):
    """Follow the fluid plan of the true model."""

    name: ClassVar[str] = "omr-oracle"
    index: str = "reward"
    gap: float = 1e-3
    presets: ClassVar[Presets] = {"printed": {"index": "reward"}, "authors": {"index": "state"}}

    def __post_init__(self) -> None:
        super().__post_init__()
        check_index(self, self.index)
        check_setting(0 < self.gap < 1, self, "gap", "between 0 and 1")

    def start(self, shape: Shape, model: Model) -> OmrBelief:
        """One plan for each instance."""
        horizon = known_horizon(shape, self.name)
        if model.drift is not None:
            raise InputError(f"{self.name}: it plans for one model, and the dynamics of this problem change.")
        plans = blank(len(model.reward), shape, horizon, optimistic=False)
        for world, (transition, reward, start) in enumerate(
            zip(model.transition, model.reward, model.start, strict=True)
        ):
            cost = None if shape.cost is None else shape.cost[np.argmax(model.instance == world)]
            at_most = shape.spend == AT_MOST
            best = plan(transition, reward, shape.budget, horizon, start, gap=self.gap, cost=cost, at_most=at_most)
            put(plans, world, best)
        return OmrBelief(plans, model.instance)

    def rank(self, belief: OmrBelief, state: Ints, draws: Draws) -> Ranking:
        """The index of the plan, which is 0 where the plan waits."""
        return rank_index(look_up(indices_at(belief.plans, draws.step, self.index), belief.instance, state), draws)
