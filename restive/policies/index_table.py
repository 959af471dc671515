"""Oracles that rank by a fixed index for each agent and state; greedy, threshold and Whittle differ in the index."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from restive.contract import Draws, Model, Shape
from restive.kernels.jit import compiled
from restive.policies.base import Oracle
from restive.types import Floats, Ints


class IndexTable(NamedTuple):
    """The index of every agent and state of each instance, and the instance of each run."""

    indices: Floats  # [I, N, S]
    instance: Ints  # [R]


@dataclass(frozen=True)
class TableOracle(Oracle[IndexTable]):
    """Rank every agent by the index of its state in a table of the true model."""

    @abstractmethod
    def tabulate(self, shape: Shape, model: Model) -> Floats:
        """The index of each agent and state, [I, N, S]."""

    def start(self, shape: Shape, model: Model) -> IndexTable:
        """Compute the table once."""
        return IndexTable(np.ascontiguousarray(self.tabulate(shape, model)), model.instance)

    def rank(self, belief: IndexTable, state: Ints, draws: Draws) -> Floats:
        """Look up the index."""
        return look_up(belief.indices, belief.instance, state)


@compiled
def look_up(index: Floats, instance: Ints, state: Ints) -> Floats:
    """The index of each agent's state, [R, N]; index [I, N, S], instance [R], state [R, N]."""
    priority = np.empty(state.shape)
    for r in range(state.shape[0]):
        for n in range(state.shape[1]):
            priority[r, n] = index[instance[r], n, state[r, n]]
    return priority
