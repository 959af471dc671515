"""`random`: B agents drawn uniformly, regardless of their states: the lower reference of every comparison."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from restive.contract import Draws, Ranking, Shape
from restive.policies.base import Learner
from restive.types import Ints


class NoBelief(NamedTuple):
    """An empty belief."""


@dataclass(frozen=True)
class Random(Learner[NoBelief]):
    """Choose B agents uniformly at random."""

    name: ClassVar[str] = "random"

    def start(self, shape: Shape) -> NoBelief:
        """Nothing to remember."""
        return NoBelief()

    def rank(self, belief: NoBelief, state: Ints, draws: Draws) -> Ranking:
        """Equal priorities; always explore."""
        return Ranking(np.zeros(state.shape), np.ones(state.shape[0]))
