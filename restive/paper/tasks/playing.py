"""Policies played on instances of a family, kept as sums up to certain steps: one row for each instance and step.

A row has the reward and the cost cumulated up to and including its step, means over the instance's runs. So a result is
small whatever the runs and the horizon, and running means, late rewards and regrets are differences of rows.
"""

import hashlib
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from restive.errors import InputError
from restive.files import Columns
from restive.policies import make_policy
from restive.policies.base import Policy
from restive.problem import Problem
from restive.problems import make_problems
from restive.simulation import MAX_CHUNK_AGENTS, Simulation
from restive.solvers.fluid_bounds import bound_every_step
from restive.stats import mean_by
from restive.types import Floats, Ints
from restive.world import World, first_distribution

FIRST, EVENLY, BY_FACTOR = 20, 100, 40
_ONE_AT_A_TIME = threading.Lock()  # a file of a user's own is a module, and half of one is of no use to another thread


def play(
    family: str,
    sizes: Mapping[str, int],
    policy: str,
    horizon: int,
    runs: int,
    seed: int,
    noise: float = 0.0,
    file: str = "",
) -> Columns:
    """Play one policy on the instances that `make_problems(family, **sizes)` gives; `file` is the seal of its own."""
    world = World(make_problems(family, **sizes), runs, seed, noise, horizon=horizon)
    return follow(world, _make_sealed(policy, file), kept_steps(horizon))


def seal(policy: str) -> dict[str, str]:
    """What has to be added to the settings of work for a policy from a file: the digest of what is in it.

    >>> seal("egt:eta=0.5")
    {}
    """
    path = policy.partition(":")[0]
    return {"file": hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]} if path.endswith(".py") else {}


def _make_sealed(policy: str, file: str) -> Policy[Any]:
    """The policy, if its file is still the one that was sealed."""
    if not file:
        return make_policy(policy)
    with _ONE_AT_A_TIME:
        player = make_policy(policy)
        if seal(policy) != {"file": file}:
            raise InputError(f"{policy.partition(':')[0]}: was changed while it was to be played; run again.")
    return player


def episodes(
    family: str, sizes: Mapping[str, int], policy: str, length: int, episodes: int, runs: int, seed: int
) -> Columns:
    """Play one policy over episodes: after each, all agents go back to their start, and the policy keeps its belief."""
    world = World(make_problems(family, **sizes), runs, seed, horizon=length * episodes)
    return follow(world, make_policy(policy), length * np.arange(1, episodes + 1), length)


def follow(world: World, policy: Policy[Any], steps: Ints, episode: int | None = None) -> Columns:
    """Let the policy go on to the last of the steps; with an `episode`, all agents go back to their start after it."""
    runs, agents = world.shape.runs, world.shape.agents
    sums = np.empty((2, runs, steps.size))
    size = max(1, MAX_CHUNK_AGENTS // agents)
    for first in range(0, runs, size):
        part = world.chunk(first, min(runs, first + size))
        sums[:, first : first + size] = _go_on(Simulation(part, policy), steps, episode)
    reward, cost = (mean_by(world.model.instance, each) for each in sums)
    return tabulate(steps, reward=reward, cost=cost)


def _go_on(simulation: Simulation, steps: Ints, episode: int | None) -> Floats:
    """Reward and cost of each run up to each of the steps, [2, R, steps]."""
    sums = np.zeros((2, simulation.world.shape.runs, steps.size))
    total = np.zeros(sums.shape[:2])
    for place, step in enumerate(steps):
        while simulation.step < step:
            ends = step if episode is None else min(step, (simulation.step // episode + 1) * episode)
            total += [part.sum(axis=1) for part in simulation.advance(int(ends - simulation.step))]
            if episode is not None and simulation.step % episode == 0:
                simulation.state = simulation.world.first_states()
        sums[:, :, place] = total
    return sums


def kept_steps(horizon: int) -> Ints:
    """The first steps one by one, then evenly and by factors, up to the horizon.

    >>> kept_steps(1000)[18:24]
    array([19, 20, 22, 27, 30, 32])
    """
    evenly = np.linspace(0, horizon, EVENLY + 1)[1:]
    by_factor = np.geomspace(1, horizon, BY_FACTOR + 1)
    steps = np.concatenate([np.arange(1, FIRST + 1), evenly, by_factor])
    return np.unique(np.clip(np.rint(steps), 1, horizon).astype(np.int64))


def tabulate(steps: Ints, **values: Floats) -> Columns:
    """Arrays over instances and steps, [I, steps], as columns of I · steps rows.

    >>> tabulate(np.array([1, 5]), reward=np.array([[2.0, 9.0]]))
    {'instance': array([0, 0]), 'step': array([1, 5]), 'reward': array([2., 9.])}
    """
    instances = len(next(iter(values.values())))
    rows = {"instance": np.repeat(np.arange(instances), steps.size), "step": np.tile(steps, instances)}
    return rows | {name: np.ascontiguousarray(array).ravel() for name, array in values.items()}


def bound(family: str, sizes: Mapping[str, int], horizon: int) -> Columns:
    """What no policy can collect on average up to each step: the fluid bound of each instance."""
    problems, steps = make_problems(family, **sizes), kept_steps(horizon)
    return tabulate(steps, reward=np.stack([_bound(problem, horizon)[steps - 1] for problem in problems]))


def _bound(problem: Problem, horizon: int) -> Floats:
    start = first_distribution(problem)
    return bound_every_step(problem.transition, problem.reward, problem.budget, horizon, start)
