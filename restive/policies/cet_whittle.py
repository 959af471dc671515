"""`cet-whittle`: certainty equivalence with Whittle indices, a control that shows the effect of exploration.

It is `thompson-whittle` without the random draw: at the start of an episode each agent's model is the mean of its
posterior, and the Whittle indices of that model are followed as if it were true. It never explores. Certainty
equivalence is the oldest rule of adaptive control (Mandl 1974); the episodes are those of Akbarzadeh and Mahajan
(2023), see `restive.policies.episodic`, so that the two policies differ in the draw alone.
"""

from dataclasses import dataclass
from typing import ClassVar

from restive.contract import Draws
from restive.policies.episodic import EpisodicWhittle
from restive.types import Floats, Ints


@dataclass(frozen=True)
class CetWhittle(EpisodicWhittle):
    """Whittle indices of the posterior mean, taken for the true model; it never explores."""

    name: ClassVar[str] = "cet-whittle"

    def guess(self, moves: Floats, due: Ints, draws: Draws) -> Floats:
        """The posterior mean, without randomness."""
        return mean_rows(moves, self.prior)


def mean_rows(moves: Floats, prior: float) -> Floats:
    """The mean of Dirichlet(prior + moves): (prior + moves) / (S · prior + Σ moves), row by row.

    >>> mean_rows(np.array([[0.0, 0.0], [0.0, 2.0]]), 1.0).tolist()
    [[0.5, 0.5], [0.25, 0.75]]
    """
    weight = moves + prior
    rows: Floats = weight / weight.sum(axis=-1, keepdims=True)
    return rows
