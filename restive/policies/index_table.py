"""An oracle whose priority is a fixed number for each agent and state; greedy, threshold and Whittle differ in it."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from restive.contract import Draws, Model, Shape
from restive.kernels.jit import compiled
from restive.policies.base import Oracle
from restive.types import Floats, Ints


class Table(NamedTuple):
    """What such an oracle knows."""

    worth: Floats  # [I, N, S]
    instance: Ints  # [R]


@dataclass(frozen=True)
class TableOracle(Oracle[Table]):
    """Rank every agent by the number its state has in a table of the truth."""

    @abstractmethod
    def tabulate(self, shape: Shape, model: Model) -> Floats:
        """The priority of each agent and state, [I, N, S]."""

    def start(self, shape: Shape, model: Model) -> Table:
        """Make the table once."""
        return Table(np.ascontiguousarray(self.tabulate(shape, model)), model.instance)

    def rank(self, belief: Table, state: Ints, draws: Draws) -> Floats:
        """Look it up."""
        return look_up(belief.worth, belief.instance, state)


@compiled
def look_up(worth: Floats, instance: Ints, state: Ints) -> Floats:
    """The number of each agent's state in the table of its run: worth [I, N, S], instance [R], state [R, N]."""
    priority = np.empty(state.shape)
    for r in range(state.shape[0]):
        for n in range(state.shape[1]):
            priority[r, n] = worth[instance[r], n, state[r, n]]
    return priority
