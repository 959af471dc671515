"""What a step costs: nanoseconds for each agent and step, measured side by side on one thread of this machine.

A step is one of a simulation, the world's own move included: what `random` takes is what that move takes. Policies take
turns, round after round, and the best of each counts, since all that disturbs a measurement makes it longer. Costs
depend on the machine, so they are measured anew each time and never kept with the results.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from restive.paper.curves import HORIZON
from restive.paper.experiment import Size
from restive.policies import make_policy
from restive.policies.base import Policy
from restive.problems import make_problems
from restive.simulation import Simulation
from restive.world import World

REFERENCE = "egt"
ROUNDS, PATIENCE = 5, 1.0  # no further round for a policy that has had so many seconds
WARM = 30  # steps that compile what has to be compiled
RUNS = 8
FAMILIES = {2: ("two-state-v1", 10, 10), 10: ("many-state-v1", 10, 5)}  # by states: family, instances full and quick

Told = Callable[[str], None]


class Costs(NamedTuple):
    """Nanoseconds per agent and step, by number of states and policy."""

    nanoseconds: dict[int, dict[str, float]]

    def ratio(self, states: int, policy: str) -> float:
        """To eps-GT, measured in the same rounds."""
        taken = self.nanoseconds[states]
        return taken[policy] / taken[REFERENCE]

    def as_json(self) -> list[dict[str, Any]]:
        """As plain data."""
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


def measure_costs(policies: Iterable[str], size: Size, told: Told = lambda line: None) -> Costs:
    """Let all policies play in turns; nothing else should run meanwhile."""
    players = {policy: make_policy(policy) for policy in dict.fromkeys((REFERENCE, *policies))}
    nanoseconds = {}
    for states, (family, full, quick) in FAMILIES.items():
        told(f"cost of a step, S = {states}")
        problems = make_problems(family, instances=size.pick(full, quick), seed=size.seed)
        nanoseconds[states] = _take_turns(World(problems, RUNS, size.seed, horizon=HORIZON), players)
    return Costs(nanoseconds)


def _take_turns(world: World, players: dict[str, Policy[Any]]) -> dict[str, float]:
    cells = world.shape.runs * world.shape.agents * HORIZON
    spent: dict[str, list[float]] = {policy: [] for policy in players}
    for player in players.values():
        Simulation(world, player).advance(WARM)
    for _ in range(ROUNDS):
        for policy, player in players.items():
            if sum(spent[policy]) < PATIENCE:
                spent[policy].append(_play(world, player))
    return {policy: 1e9 * min(seconds) / cells for policy, seconds in spent.items()}


def _play(world: World, player: Policy[Any]) -> float:
    simulation = Simulation(world, player)
    begun = time.perf_counter()
    simulation.advance(HORIZON)
    return time.perf_counter() - begun
