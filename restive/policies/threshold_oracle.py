"""`threshold-oracle`: the reference policy of the regret in the eps-GT paper, its π^b.

It draws B of the agents whose true benefit reaches the threshold gamma; if there are fewer than B, it takes the B
largest benefits. Both follow from ranking by min(benefit, gamma) with random ties. gamma=None is the largest threshold
of each instance at which acting never has a cost (assumption 4.2). It spends the whole budget in any case.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from restive.contract import UNKNOWN, Draws, Model, Ranking, Shape
from restive.policies.base import check_setting
from restive.policies.index_table import IndexTable, TableOracle
from restive.solvers.myopic import benefit, largest_threshold
from restive.types import Floats, Ints


@dataclass(frozen=True)
class ThresholdOracle(TableOracle):
    """Rank by the true benefit, capped at a threshold."""

    name: ClassVar[str] = "threshold-oracle"
    gamma: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_setting(self.gamma is None or not np.isnan(self.gamma), self, "gamma", "a number, or None")

    def tabulate(self, shape: Shape, model: Model) -> Floats:
        """min(I(s), gamma)."""
        benefits = benefit(model.transition, model.reward)
        given = self.gamma
        gamma = [largest_threshold(each, shape.places) if given is None else given for each in benefits]
        table: Floats = np.minimum(benefits, np.array(gamma)[:, None, None])
        return table

    def rank(self, belief: IndexTable, state: Ints, draws: Draws) -> Ranking:
        """Look up the index, which is not the benefit where it is capped, so that it does not tell who would lose."""
        return super().rank(belief, state, draws)._replace(break_even=UNKNOWN)
