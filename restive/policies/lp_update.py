"""`lp-update`: model predictive control on the posterior mean, after Narasimha and Gast (2025), arXiv 2511.08097.

In every step the finite-horizon linear program of the fluid bound (`restive.solvers.fluid`) is solved over the next
`tau` steps from the current states, and its first decision is taken. With agents in known states the program acts on a
whole number of agents but for a few ties, so the `budget` largest fractions are acted on. The source knows the model;
here the model is the posterior mean of each agent's transitions (Dirichlet, the same prior as `cet-whittle`), so the
two differ in the decision rule alone. Like that control it never explores.

Departures: the largest fractions instead of randomized rounding; with `every` above 1 the next decisions of a plan are
taken too, each for the states that were reached; the program is solved to a relative gap of `gap`. Rewards are the
means that the agent has seen, else those of all agents.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, NamedTuple

import numpy as np

from restive.contract import Draws, Ranking, Shape
from restive.policies.base import Learner, check_setting
from restive.policies.cet_whittle import mean_rows
from restive.policies.index_table import look_up
from restive.policies.transition_counts import Counts, count_moves, mean_rewards, no_counts
from restive.solvers.fluid import plan
from restive.types import Floats, Ints

NO_PLAN = -1


class LpUpdateBelief(NamedTuple):
    """Counts, and the decisions of the current plan."""

    counts: Counts
    fractions: Floats  # [R, every, N, S] the share of each pair that the plan acts on
    planned: Ints  # [] the step in which it was made


@dataclass(frozen=True)
class LpUpdate(Learner[LpUpdateBelief]):
    """Solve the fluid program of the posterior mean over a few steps again and again; it never explores."""

    name: ClassVar[str] = "lp-update"
    agent_axes: ClassVar[Mapping[str, int | None]] = {"fractions": 2}
    tau: int = 5
    every: int = 1
    prior: float = 1.0
    gap: float = 1e-2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_setting(self.tau >= 1, self, "tau", "1 or more steps")
        check_setting(1 <= self.every <= self.tau, self, "every", "from 1 step to tau steps")
        check_setting(0 < self.prior < np.inf, self, "prior", "above 0, the pseudo-count of each move")
        check_setting(0 < self.gap < 1, self, "gap", "between 0 and 1")

    def start(self, shape: Shape) -> LpUpdateBelief:
        """No data, no plan."""
        fractions = np.zeros((shape.runs, self.every, shape.agents, shape.states))
        return LpUpdateBelief(no_counts(shape), fractions, np.array(NO_PLAN))

    def rank(self, belief: LpUpdateBelief, state: Ints, draws: Draws) -> Ranking:
        """The fraction of each agent's state, 0 where acting would not gain; a new plan is made first when the last one is used up."""
        if belief.planned == NO_PLAN or not 0 <= draws.step - int(belief.planned) < self.every:
            self._plan(belief, state, draws)
        decision = np.ascontiguousarray(belief.fractions[:, draws.step - int(belief.planned)])
        fraction = look_up(decision, np.arange(len(state)), state)
        return Ranking(fraction, np.zeros(len(state)), np.zeros(len(state)))

    def learn(self, belief: LpUpdateBelief, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        """Count."""
        count_moves(*belief.counts, state, action, reward, after)

    def _plan(self, belief: LpUpdateBelief, state: Ints, draws: Draws) -> None:
        model, reward = mean_rows(belief.counts.moves, self.prior), mean_rewards(belief.counts)
        for run, start in enumerate(np.eye(reward.shape[-1])[state]):
            cost = None if draws.cost is None else draws.cost[run]
            task = model[run], reward[run], draws.budget, self.tau, start
            made = plan(*task, gap=self.gap, cost=cost, at_most=draws.at_most)
            belief.fractions[run] = list(islice(made.fractions(), self.every))
        belief.planned[...] = draws.step
