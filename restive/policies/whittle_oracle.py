"""`whittle-oracle`: the B agents with the largest true Whittle index (Whittle 1988).

The index of a state is the price of an action at which acting and waiting are equally good in it. discount=0.9 is the
eps-GT paper's oracle; discount=1 maximises the average reward (its appendix B). Indices may be negative, and are exact.
An agent that is not indexable is ranked by the first price at which waiting becomes optimal.
"""

from dataclasses import dataclass
from typing import ClassVar

from restive.contract import Model, Shape
from restive.policies.base import check_setting
from restive.policies.index_table import TableOracle
from restive.solvers.whittle import whittle_indices
from restive.types import Floats


@dataclass(frozen=True)
class WhittleOracle(TableOracle):
    """Rank by the true Whittle index."""

    name: ClassVar[str] = "whittle-oracle"
    discount: float = 0.9

    def __post_init__(self) -> None:
        super().__post_init__()
        check_setting(0 < self.discount <= 1, self, "discount", "above 0, and at most 1 for the average reward")

    def tabulate(self, shape: Shape, model: Model) -> Floats:
        """The Whittle index."""
        instances, agents, _, states, _ = model.transition.shape
        flat = model.transition.reshape(instances * agents, 2, states, states)
        indices = whittle_indices(flat, model.reward.reshape(instances * agents, states), self.discount, threads=1)
        return indices.value.reshape(instances, agents, states)
