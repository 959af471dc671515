"""`threshold-oracle`: the reference policy of the regret in the eps-GT paper, its π^b.

It draws B of the agents whose true benefit reaches the threshold gamma; when there are fewer than B of them, it takes
the B largest benefits. Both at once: rank by min(benefit, gamma), ties at random. gamma=None is the largest threshold
of each instance under which acting never has to cost anything (assumption 4.2).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from restive.contract import Model, Shape
from restive.policies.base import check_setting
from restive.policies.index_table import TableOracle
from restive.solvers.myopic import benefit, largest_threshold
from restive.types import Floats


@dataclass(frozen=True)
class ThresholdOracle(TableOracle):
    """Act on anyone whose true benefit reaches a threshold."""

    name: ClassVar[str] = "threshold-oracle"
    gamma: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_setting(self.gamma is None or not np.isnan(self.gamma), self, "gamma", "a number, or None")

    def tabulate(self, shape: Shape, model: Model) -> Floats:
        """min(I(s), gamma)."""
        gain = benefit(model.transition, model.reward)
        given = self.gamma
        gamma = [largest_threshold(each, shape.budget) if given is None else given for each in gain]
        table: Floats = np.minimum(gain, np.array(gamma)[:, None, None])
        return table
