"""Oracles that rank by a fixed index for each agent and state; greedy, threshold and Whittle differ in the index."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from restive.contract import Draws, Model, Ranking, Shape, rank_index
from restive.kernels.jit import compiled
from restive.policies.base import Oracle
from restive.types import Floats, Ints


class IndexTable(NamedTuple):
    """The index of every agent and state of each instance, and the instance of each run.

    If the dynamics change there is a table for each of their G segments.
    """

    indices: Floats  # [G · I, N, S]
    instance: Ints  # [R]
    changes: Ints  # [G] the first step of each segment


@dataclass(frozen=True)
class TableOracle(Oracle[IndexTable]):
    """Rank every agent by the index of its state in a table of the true model."""

    @abstractmethod
    def tabulate(self, shape: Shape, model: Model) -> Floats:
        """The index of each agent and state, [I, N, S]."""

    def start(self, shape: Shape, model: Model) -> IndexTable:
        """Compute the tables once."""
        tables = [self.tabulate(shape, model.at(segment)) for segment in range(model.changes.size)]
        return IndexTable(np.concatenate(tables), model.instance, model.changes)

    def rank(self, belief: IndexTable, state: Ints, draws: Draws) -> Ranking:
        """Look up the index in the table of the step."""
        segment = int(np.searchsorted(belief.changes, draws.step, side="right")) - 1
        first = segment * (len(belief.indices) // belief.changes.size)
        return rank_index(look_up(belief.indices, first + belief.instance, state), draws)


@compiled
def look_up(index: Floats, instance: Ints, state: Ints) -> Floats:
    """The index of each agent's state, [R, N]; index [I, N, S], instance [R], state [R, N]."""
    priority = np.empty(state.shape)
    for r in range(state.shape[0]):
        for n in range(state.shape[1]):
            priority[r, n] = index[instance[r], n, state[r, n]]
    return priority
