"""Compilation in other processes: while a first start compiles what it needs first, others compile what it needs last.

Kernels are cached on disk (`restive.kernels.jit`), so a process that comes to a kernel which another one has compiled
loads it. Nothing is started unless something has to be compiled, and results do not depend on it: the other processes
only call kernels on a few agents, and what they compute is thrown away.
"""

import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import numpy as np

from restive.kernels.jit import at_first_compilation
from restive.parallel import available_processors
from restive.policies import POLICIES
from restive.policies.base import Policy
from restive.problem import Drift, Problem
from restive.simulation import Simulation
from restive.solution import reward_bounds
from restive.world import World

# Processes that compile beside this one, agents that they call kernels on, and steps after which all are called.
MAX_PROCESSES, AGENTS, STEPS = 3, 20, 64
# Policies whose kernels take longest are compiled first.
SLOWEST = ("lagrange",)
COMMAND = [sys.executable, "-c", "from restive.precompile import run_tasks; run_tasks()"]

Task = Callable[[], object]


@contextmanager
def compile_ahead(
    problem: Problem, policies: Sequence[Policy[Any]], bound: int | None = None, newcomers: int = 0
) -> Iterator[None]:
    """Compile the kernels of policies in other processes too, if anything is compiled in this context.

    Parameters
    ----------
    problem
        A problem of the kind to be simulated.
    policies
        The policies in the order of their use; others begin with the last.
    bound
        The horizon of the fluid bound, if it is computed at the end.
    newcomers
        The number of agents that join later, if any do.
    """
    started: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        known = [policy for policy in reversed(policies) if type(policy) in POLICIES.values()]
        known.sort(key=lambda policy: policy.name not in SLOWEST)
        tasks: list[Task] = [partial(exercise, *_cut(problem), policy, newcomers) for policy in known]
        if bound is not None:
            tasks.insert(bool(known) and known[0].name in SLOWEST, partial(exercise_bound, *_cut(problem), bound))
        started.extend(_start_processes(tasks))

    try:
        with at_first_compilation(start):
            yield
    finally:
        for process in started:
            process.kill()  # a cached kernel is a whole file or none
            process.wait()


def _start_processes(tasks: Sequence[Task]) -> Iterator[subprocess.Popen[bytes]]:
    """Processes that share the tasks, as many as there are processors left."""
    processes = min(available_processors() - 1, MAX_PROCESSES, len(tasks))
    for number in range(processes):
        nowhere = subprocess.DEVNULL
        process = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere)
        with suppress(OSError):  # it ended, and compiles nothing
            assert process.stdin is not None
            process.stdin.write(pickle.dumps(tasks[number::processes]))
            process.stdin.close()
        yield process


def run_tasks() -> None:
    """Run the pickled tasks on standard input; one that fails here fails with a message where it is needed."""
    for task in pickle.load(sys.stdin.buffer):
        with suppress(Exception):
            task()


def _cut(problem: Problem) -> tuple[dict[str, Any], int]:
    """The arguments of a problem of few agents of the same kind, and its budget."""
    drift = problem.drift
    parts = {name: getattr(problem, name) for name in ("transition", "reward", "start", "features", "cost")}
    few = {name: array[:AGENTS] for name, array in parts.items() if array is not None}
    if drift is not None:
        few["drift"] = Drift(drift.transition[:AGENTS], drift.reward[:AGENTS], *drift[2:])
    return {**few, "spend": problem.spend}, min(problem.budget, len(few["transition"]) // 2)


def exercise(arguments: dict[str, Any], budget: int, policy: Policy[Any], newcomers: int = 0) -> None:
    """Call the kernels of a policy on a problem: those that learn first, since who decides compiles the others first."""
    world = World(Problem(**arguments, budget=budget), horizon=STEPS)
    simulation = Simulation(world, policy)
    policy.call_slowest(simulation.belief)
    state, nothing = simulation.state, np.zeros(simulation.state.shape)
    policy.learn(simulation.belief, state, np.zeros_like(state), nothing, state)
    if newcomers > 0:
        policy.welcome(simulation.belief, 1)
    Simulation(world, policy).advance(STEPS)


def exercise_bound(arguments: dict[str, Any], budget: int, horizon: int) -> None:
    """Call the kernels of the fluid bound."""
    reward_bounds(Problem(**arguments, budget=budget), np.array([horizon]))
