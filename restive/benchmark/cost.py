"""Cost of a step: nanoseconds per agent and step, measured side by side on one thread of this machine.

A step includes the simulation of the world: the cost of `random` is the cost of that. Policies take turns, round after
round, and the best time of each counts, since every disturbance makes a measurement longer. Costs depend on the
machine, so they are measured in each call and never cached.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from restive.benchmark.scenarios import CANDIDATE
from restive.paper.curves import HORIZON
from restive.paper.jobs import Size
from restive.policies import make_policy
from restive.policies.base import Policy
from restive.problems import make_problems
from restive.simulation import Simulation
from restive.world import World

REFERENCE = "egt"
ROUNDS = 5
MAX_SECONDS = 1.0  # a policy that has used so much time gets no further round,
MIN_ROUNDS = {CANDIDATE: 3}  # except those that a claim is about
WARM_UP_STEPS = 30  # steps that compile kernels
RUNS = 8
FAMILIES = {2: ("two-state-v1", 10, 10), 10: ("many-state-v1", 10, 5)}  # by states: family, instances full and quick


class Costs(NamedTuple):
    """Nanoseconds per agent and step, by number of states and policy."""

    nanoseconds: dict[int, dict[str, float]]

    def ratio(self, states: int, policy: str) -> float:
        """The cost relative to eps-GT, measured in the same rounds."""
        taken = self.nanoseconds[states]
        return taken[policy] / taken[REFERENCE]

    def as_json(self) -> list[dict[str, Any]]:
        """The costs as plain data."""
        return [
            {
                "policy": policy,
                "states": states,
                "nanoseconds_per_agent_step": round(taken, 1),
                "ratio_to_egt": round(self.ratio(states, policy), 2),
            }
            for states, policies in self.nanoseconds.items()
            for policy, taken in policies.items()
        ]


def measure_costs(policies: Iterable[str], size: Size, report: Callable[[str], None] = lambda line: None) -> Costs:
    """Measure all policies in turns; nothing else should run meanwhile."""
    measured = {policy: make_policy(policy) for policy in dict.fromkeys((REFERENCE, *policies))}
    nanoseconds = {}
    for states, (family, full, quick) in FAMILIES.items():
        report(f"cost of a step, S = {states}")
        problems = make_problems(family, instances=size.pick(full, quick), seed=size.seed)
        nanoseconds[states] = _take_turns(World(problems, RUNS, size.seed, horizon=HORIZON), measured)
    return Costs(nanoseconds)


def _take_turns(world: World, policies: dict[str, Policy[Any]]) -> dict[str, float]:
    cells = world.shape.runs * world.shape.agents * HORIZON
    spent: dict[str, list[float]] = {name: [] for name in policies}
    for policy in policies.values():
        Simulation(world, policy).advance(WARM_UP_STEPS)
    for _ in range(ROUNDS):
        for name, policy in policies.items():
            if sum(spent[name]) < MAX_SECONDS or len(spent[name]) < MIN_ROUNDS.get(name, 1):
                spent[name].append(_time(world, policy))
    return {name: 1e9 * min(seconds) / cells for name, seconds in spent.items()}


def _time(world: World, policy: Policy[Any]) -> float:
    simulation = Simulation(world, policy)
    begun = time.perf_counter()
    simulation.advance(HORIZON)
    return time.perf_counter() - begun
