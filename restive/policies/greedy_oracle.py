"""`greedy-oracle`: the B agents to whom acting adds most in the next step, by the true benefit.

Optimal for two-state agents that are all alike (theorem 3.1 of the eps-GT paper), and where eps-GT is heading.
"""

from dataclasses import dataclass
from typing import ClassVar

from restive.contract import Model, Shape
from restive.policies.index_table import TableOracle
from restive.solvers.myopic import benefit
from restive.types import Floats


@dataclass(frozen=True)
class GreedyOracle(TableOracle):
    """Act where the true one-step benefit is largest."""

    name: ClassVar[str] = "greedy-oracle"

    def tabulate(self, shape: Shape, model: Model) -> Floats:
        """The benefit I(s)."""
        return benefit(model.transition, model.reward)
