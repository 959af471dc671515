"""`thompson-whittle`: posterior sampling with Whittle indices, RB-TSDE of Akbarzadeh and Mahajan (2023).

At the start of an episode one model for each agent is drawn from the posterior of its transitions (Dirichlet, uniform
prior), and its Whittle indices are followed until the episode ends; see `restive.policies.episodic`.
Departures: discounted indices by default (discount=1 for the average reward of the original); rewards are estimated,
while the original assumes that they are known.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from restive.contract import Draws
from restive.kernels import rng
from restive.kernels.dirichlet import sample_rows
from restive.policies.episodic import EpisodicWhittle
from restive.types import Floats, Ints


@dataclass(frozen=True)
class ThompsonWhittle(EpisodicWhittle):
    """Whittle indices of a model sampled from the posterior in every episode."""

    name: ClassVar[str] = "thompson-whittle"

    def guess(self, moves: Floats, due: Ints, draws: Draws) -> Floats:
        """A sample of the posterior: rows ~ Dirichlet(prior + moves)."""
        drawn = np.empty_like(moves)
        sample_rows(moves, self.prior, draws.branch(rng.POSTERIOR)[due], draws.agents, drawn)
        return drawn
