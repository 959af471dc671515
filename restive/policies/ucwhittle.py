"""`ucwhittle`: optimistic Whittle indices in the value form, UCWhittle-Pv of Wang, Xu, Taneja and Tambe (AAAI 2023).

Every `every` steps, for each agent: the transitions within a box around the observed frequencies that maximise the
agent's value at the current price of an action, then the Whittle index of that model; the price becomes the B-th
largest index.

    radius = C √(2 S log(2 S A N t⁴ / delta) / max(1, visits))

C = 1 is the source's; the eps-GT authors' code of related work has 0.1, in its scripts also 0.5, but their paper keeps
the algorithm as it is.
Departures: no commercial solver, because the box is rectangular and extended value iteration is exact; no episodes
with resets, there is one run, so t counts steps (the authors' code counts episodes, and plans at every step); the
exact index over the whole line; rewards are estimated (the mean seen by the agent, else by all agents), while the
original assumes that they are known; acting may do harm, which the authors' code rules out.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from restive.contract import Draws, Estimate, Ranking, Shape, rank_index, without_noise
from restive.policies.base import Learner, Presets, check_setting
from restive.policies.index_table import look_up
from restive.policies.transition_counts import Counts, count_moves, mean_rewards, mean_transitions, no_counts
from restive.solvers.optimistic_mdp import optimistic_model
from restive.solvers.whittle import whittle_indices
from restive.types import Floats, Ints


class UCWhittleBelief(NamedTuple):
    """Counts, and the indices of the current plan."""

    counts: Counts
    indices: Floats  # [R, N, S] Whittle indices of the optimistic model
    values: Floats  # [R, N, S] of the optimistic model, the start of the next iteration
    price: Floats  # [R]
    planned: Ints  # [] the step of the current plan, −1 before the first


@dataclass(frozen=True)
class UCWhittle(Learner[UCWhittleBelief]):
    """Whittle indices of the optimistic model within the confidence box."""

    name: ClassVar[str] = "ucwhittle"
    discount: float = 0.9
    delta: float = 1e-3
    every: int = 20
    C: float = 1.0
    presets: ClassVar[Presets] = {"printed": {"C": 1.0}, "authors": {"C": 1.0}}

    def __post_init__(self) -> None:
        super().__post_init__()
        check_setting(0 < self.discount < 1, self, "discount", "between 0 and 1")
        check_setting(0 < self.delta < 1, self, "delta", "between 0 and 1")
        check_setting(self.every >= 1, self, "every", "1 or more")
        check_setting(0 <= self.C < np.inf, self, "C", "0 or more")

    def start(self, shape: Shape) -> UCWhittleBelief:
        """No data, no plan."""
        cells = (shape.runs, shape.agents, shape.states)
        return UCWhittleBelief(no_counts(shape), np.zeros(cells), np.zeros(cells), np.zeros(shape.runs), np.array(-1))

    def rank(self, belief: UCWhittleBelief, state: Ints, draws: Draws) -> Ranking:
        """The current indices; every `every` steps they are computed again and the price is updated."""
        if draws.step % self.every == 0 and belief.planned != draws.step:
            self._plan(belief, max(draws.step, 1), draws.cost)
            belief.planned[...] = draws.step
        ranking = rank_index(look_up(belief.indices, np.arange(len(state)), state), draws)
        if draws.step % self.every == 0 and draws.budget > 0:
            places = draws.budget if draws.cost is None else int(draws.budget / draws.cost.mean())
            belief.price[:] = np.sort(ranking.priority, axis=1)[:, -min(max(places, 1), state.shape[1])]
        return ranking

    def estimate(self, belief: UCWhittleBelief, state: Ints) -> Estimate:
        """The current index, which is optimistic, and 0 before the first plan; its error is unknown."""
        return without_noise(look_up(belief.indices, np.arange(len(state)), state))

    def learn(self, belief: UCWhittleBelief, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        """Count."""
        count_moves(*belief.counts, state, action, reward, after)

    def _plan(self, belief: UCWhittleBelief, step: int, cost: Floats | None) -> None:
        runs, agents, actions, states, _ = belief.counts.moves.shape
        estimate, visits = mean_transitions(belief.counts.moves)
        confidence = 2 * states * (np.log(2 * states * actions * agents / self.delta) + 4 * np.log(step))
        radius = self.C * np.sqrt(confidence / np.maximum(visits, 1.0))
        batch = runs * agents
        reward = mean_rewards(belief.counts).reshape(batch, states)
        model, values = optimistic_model(
            estimate.reshape(batch, actions, states, states),
            radius.reshape(batch, actions, states),
            reward,
            np.repeat(belief.price, agents) * (1.0 if cost is None else cost.ravel()),
            self.discount,
            values=belief.values.reshape(batch, states),
        )
        belief.values[:] = values.reshape(runs, agents, states)
        belief.indices[:] = whittle_indices(model, reward, self.discount, threads=1).value.reshape(runs, agents, states)
