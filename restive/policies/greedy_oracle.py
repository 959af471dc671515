"""`greedy-oracle`: the B agents with the largest true benefit of acting in the next step.

Optimal for identical two-state agents (theorem 3.1 of the eps-GT paper), and the limit of eps-GT.
"""

from dataclasses import dataclass
from typing import ClassVar

from restive.contract import Model, Shape
from restive.policies.index_table import TableOracle
from restive.solvers.myopic import benefit
from restive.types import Floats


@dataclass(frozen=True)
class GreedyOracle(TableOracle):
    """Rank by the true one-step benefit."""

    name: ClassVar[str] = "greedy-oracle"

    def tabulate(self, shape: Shape, model: Model) -> Floats:
        """The benefit I(s)."""
        return benefit(model.transition, model.reward)
