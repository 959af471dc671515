"""The one loop: rank, choose, advance, learn, for many runs in lock step; chunks of runs go to threads.

A simulation holds a chunk of runs and can stop and go on at any step; `simulate` splits all runs into chunks and puts
what they gave into a `Trace`. Every draw is a function of seed, run, step, agent and stream, so the result is the same
bit for bit whatever the chunks and the number of threads.
"""

import threading
from collections.abc import Callable, Iterable
from os import PathLike
from typing import Any

import numpy as np

from restive import checkpoint
from restive.errors import InputError, check_whole
from restive.parallel import available_processors, spread
from restive.policies import make_policy
from restive.policies.base import Policy, Ranking, Shape, as_ranking
from restive.policies.belief import flatten
from restive.problem import Problem
from restive.trace import Trace, describe
from restive.types import Floats, Ints
from restive.world import World

# Enough agents that a step's Python is small beside its kernels, few enough that a chunk's belief stays in the cache.
AGENTS_IN_A_CHUNK = 20_000
# With fewer agent-states than this the threads wait for each other's Python longer than their kernels run.
CELLS_WORTH_A_THREAD = 8_000

Progress = Callable[[int], None]


class Simulation:
    """A policy in a world: the loop, and everything it needs to stop and go on."""

    def __init__(self, world: World, policy: Policy[Any]) -> None:
        self.world = world
        self.policy = policy
        self.belief = policy.begin(world.shape, world.model)
        self.state = world.first_states()
        self.step = 0

    def decide(self) -> tuple[Ranking, Ints]:
        """The policy's ranking in this step, and who is chosen by it, [R, N]."""
        draws = self.world.draws(self.step)
        ranked = self.policy.rank(self.belief, self.state, draws)
        ranking = as_ranking(ranked, self.world.shape, self.policy.name)
        try:
            return ranking, self.world.choose(ranking, draws)
        except InputError as error:
            raise InputError(f"{self.policy.name}: {error}") from None

    def advance(self, steps: int = 1) -> tuple[Floats, Floats]:
        """Go on for so many steps; returns the expected reward and the cost of each, [R, steps]."""
        reward, cost = np.empty((2, self.world.shape.runs, check_whole("steps", steps, 0)))
        for t in range(steps):
            _, action = self.decide()
            outcome = self.world.advance(self.state, action, self.world.draws(self.step))
            self.policy.learn(self.belief, self.state, action, outcome.reward, outcome.after)
            self.state, self.step = outcome.after, self.step + 1
            reward[:, t], cost[:, t] = outcome.total, outcome.cost
        return reward, cost

    def save(self, path: str | PathLike[str]) -> None:
        """Write policy, belief and states to a snapshot; the world is made again from its problem and seed."""
        about = {"step": self.step, "world": self.world.fingerprint()}
        checkpoint.save(path, self.policy, self.belief, {"state": self.state}, **about)

    @classmethod
    def load(cls, path: str | PathLike[str], world: World, policy: type[Policy[Any]] | None = None) -> "Simulation":
        """Go on where `save` stopped, in the same world; `policy` is the class of one that is not registered."""
        saved = checkpoint.load(path, policy)
        if saved.header.get("world") != world.fingerprint():
            raise InputError(
                f"{path}: a snapshot of another world; problem, budget, noise, runs and seed must be the same."
            )
        simulation = cls(world, saved.policy)
        fits = _same_kinds(flatten(saved.belief), flatten(simulation.belief))
        state, step = saved.extra.get("state"), saved.header.get("step")
        if (
            not fits
            or state is None
            or not _same_kinds({"": state}, {"": simulation.state})
            or not isinstance(step, int)
        ):
            raise InputError(
                f"{path}: a damaged snapshot; its arrays are not those of {saved.policy.name} in this world."
            )
        if step < 0 or state.min() < 0 or state.max() >= world.shape.states:
            raise InputError(
                f"{path}: a damaged snapshot; states go from 0 to {world.shape.states - 1}, steps from 0 on."
            )
        simulation.belief, simulation.state, simulation.step = saved.belief, state, step
        return simulation


def _same_kinds(given: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Whether these are arrays of the same names, shapes and kinds."""
    kinds = [{name: (np.shape(value), value.dtype) for name, value in arrays.items()} for arrays in (given, wanted)]
    return kinds[0] == kinds[1]


def simulate(
    problem: Problem | Iterable[Problem],
    policy: str | Policy[Any],
    horizon: int,
    runs: int = 1,
    seed: int = 0,
    noise: float = 0.0,
    threshold: float | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Trace:
    """Let a policy play: `runs` runs of `horizon` steps on each problem.

    noise      variance of the Gaussian added to each observed reward; the trace keeps the expected one
    threshold  what the cost of acting is measured against; by default the largest that assumption 4.2 allows
    threads    at most this many chunks at once; by default one for each processor
    progress   called with the number of run-steps done since it was last called, from any thread, one call at a time

    >>> stay, leave = [[1, 0], [0, 1]], [[0, 1], [1, 0]]
    >>> simulate(Problem([[stay, leave]], [0, 1], budget=1, start=[0]), "random", horizon=3).reward
    array([[1., 0., 1.]])
    """
    player = make_policy(policy)
    played = list(problem) if isinstance(problem, Iterable) else problem  # a generator can be read but once
    horizon = check_whole("horizon", horizon, 1)
    world = World(played, runs, seed, noise, threshold, horizon)
    workers = check_whole("threads", available_processors() if threads is None else threads, 1)
    reward, cost = np.empty((world.shape.runs, horizon)), np.empty((world.shape.runs, horizon))
    report, halt = _one_at_a_time(progress), threading.Event()

    def play(first: int, last: int) -> None:
        simulation = Simulation(world.chunk(first, last), player)
        stride = max(1, horizon // 100)
        for begin in range(0, horizon, stride):
            if halt.is_set():
                return
            end = min(horizon, begin + stride)
            reward[first:last, begin:end], cost[first:last, begin:end] = simulation.advance(end - begin)
            report((last - first) * (end - begin))

    spread(play, world.shape.runs, _chunks(world.shape, workers), workers, halt=halt.set)
    return Trace(reward, cost, world.model.instance, describe(played, player, world, runs, seed, noise))


def _chunks(shape: Shape, workers: int) -> int:
    """Into how many chunks: one for each worker if they are worth a thread, none much larger than the cache likes."""
    worth = max(1, shape.runs * shape.agents * shape.states // CELLS_WORTH_A_THREAD)
    fitting = -(-shape.runs * shape.agents // AGENTS_IN_A_CHUNK)
    chunks = max(min(workers, worth), -(-fitting // workers) * workers if fitting > 1 else 1)
    return min(shape.runs, chunks)


def _one_at_a_time(progress: Progress | None) -> Progress:
    if progress is None:
        return lambda steps: None
    lock = threading.Lock()

    def report(steps: int) -> None:
        with lock:
            progress(steps)

    return report
