"""`random`: B agents drawn uniformly, whatever their states. The floor of every comparison."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from restive.contract import Draws, Ranking, Shape
from restive.policies.base import Learner
from restive.types import Ints


class Nothing(NamedTuple):
    """A belief that remembers nothing."""


@dataclass(frozen=True)
class Random(Learner[Nothing]):
    """Choose B agents uniformly at random."""

    name: ClassVar[str] = "random"

    def start(self, shape: Shape) -> Nothing:
        """Nothing to remember."""
        return Nothing()

    def rank(self, belief: Nothing, state: Ints, draws: Draws) -> Ranking:
        """All alike, always exploring."""
        return Ranking(np.zeros(state.shape), np.ones(state.shape[0]))
