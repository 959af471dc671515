"""The solution of a problem with a known model: benefits, Whittle indices, threshold and fluid bound."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from restive.errors import InputError
from restive.problem import AT_MOST, Problem
from restive.solvers.fluid import Plan, plan
from restive.solvers.fluid_bounds import bound_changing, bound_every_step
from restive.solvers.myopic import benefit, phi
from restive.solvers.whittle import whittle_indices
from restive.types import Bools, Floats, Ints
from restive.version import __version__
from restive.world import World, first_distribution


@dataclass(frozen=True, eq=False)
class Solution:
    """What the solvers return for one problem."""

    problem: Problem
    phi: Floats  # [N, S, A] expected reward on arrival
    benefit: Floats  # [N, S] what acting adds to the expected reward on arrival
    index: Floats  # [N, S] the Whittle index
    indexable: Bools  # [N]
    discount: float
    threshold: float  # the largest threshold that assumption 4.2 allows
    fluid: Plan

    @property
    def bound(self) -> float:
        """An upper bound on the expected reward per step of any policy over the horizon, summed over agents."""
        return float(self.fluid.bound) / len(self.fluid.price)

    def rows(self) -> Iterator[tuple[int, str, float, float, float, float, str]]:
        """One row for each agent and state: agent, state, phi of both actions, benefit, index, indexable."""
        agents, states = self.problem.shape
        for n in range(agents):
            for s in range(states):
                name = self.problem.states[s] if self.problem.states else str(s)
                wait, act = map(float, self.phi[n, s])
                known = "yes" if self.indexable[n] else "no"
                yield n, name, wait, act, float(self.benefit[n, s]), float(self.index[n, s]), known

    def sentences(self) -> list[str]:
        """Statements about the whole problem."""
        agents = self.problem.shape[0]
        kind = "average reward" if self.discount == 1 else f"discount {self.discount:g}"
        horizon = len(self.fluid.price)
        return [
            f"{int(self.indexable.sum())} of {agents} agents are indexable ({kind}).",
            f"Largest threshold allowed by assumption 4.2 for B = {self.problem.budget}: {self.threshold:.6f}.",
            f"Fluid bound over {horizon} steps: {self.bound:.6f} reward per step at most "
            f"(duality gap {100 * self.fluid.gap:.2g}%).",
        ]

    def as_json(self) -> dict[str, Any]:
        """The same numbers as plain data."""
        horizon = len(self.fluid.price)
        return {
            "version": __version__,
            "problem": self.problem.name,
            "states": list(self.problem.states),
            "budget": self.problem.budget,
            "phi": self.phi.tolist(),
            "benefit": self.benefit.tolist(),
            "whittle_index": self.index.tolist(),
            "discount": self.discount,
            "indexable": self.indexable.tolist(),
            "largest_threshold": self.threshold if np.isfinite(self.threshold) else None,
            "horizon": horizon,
            "fluid_bound_per_step": self.bound,
            "fluid_value_per_step": float(self.fluid.value) / horizon,
        }


def reward_bounds(problem: Problem, steps: Ints) -> Floats:
    """The cumulative reward that no policy can expect to exceed after each of these numbers of steps."""
    start, rules = first_distribution(problem), (problem.cost, problem.spend == AT_MOST)
    if problem.drift is None:
        model = problem.transition, problem.reward, problem.budget, int(steps.max()), start
        return bound_every_step(*model, *rules)[steps - 1]
    changes = problem.drift.changes
    models = [problem.at(int(step)) for step in changes]
    transition, reward = np.stack([each.transition for each in models]), np.stack([each.reward for each in models])
    return bound_changing(transition, reward, changes, problem.budget, steps, start, *rules)


def solve(problem: Problem, horizon: int = 1000, discount: float = 0.9) -> Solution:
    """Run all solvers on one problem whose dynamics do not change."""
    if problem.drift is not None:
        raise InputError("the dynamics of the problem change; solve those of one step, problem.at(step).")
    benefits = benefit(problem.transition, problem.reward)
    indices = whittle_indices(problem.transition, problem.reward, discount)
    model = problem.transition, problem.reward, problem.budget, horizon, first_distribution(problem)
    fluid = plan(*model, cost=problem.cost, at_most=problem.spend == AT_MOST)
    return Solution(
        problem,
        phi(problem.transition, problem.reward),
        benefits,
        indices.value,
        indices.indexable,
        discount,
        float(World(problem).threshold[0]),
        fluid,
    )
