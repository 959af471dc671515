"""The simulation loop: rank, choose, advance and learn for many runs in lock step; chunks of runs go to threads.

A `Simulation` holds one chunk of runs and can stop and continue at any step; `simulate` splits all runs into chunks and
collects a `Trace`. Every draw is a function of seed, run, step, agent and stream, so the result is the same bit for bit
for any number of chunks and threads.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import Any

import numpy as np
import polars as pl

from restive import checkpoint
from restive.contract import Draws, KnownMoves, Past, Ranking, Shape, as_ranking
from restive.display import Displayed
from restive.errors import InputError, check_whole
from restive.kernels.step import Outcome
from restive.observation import Observation
from restive.parallel import available_processors, map_chunks
from restive.policies import make_policy
from restive.policies.base import Policy
from restive.problem import Problem
from restive.trace import Trace, describe
from restive.types import Floats, Ints
from restive.world import World

# Enough agents that the kernels outweigh a step's Python, few enough agent-states that the belief fits the cache.
MIN_CHUNK_AGENTS, MAX_CHUNK_CELLS = 4_000, 40_000
# With fewer agent-states, threads wait for each other's Python longer than their kernels run.
MIN_THREAD_CELLS = 8_000

Progress = Callable[[int], None]


class Simulation(Displayed):
    """A policy in a world, at one step: the loop with all its state.

    Parameters
    ----------
    world
        The runs to simulate.
    policy
        The policy that decides in all of them.
    history
        What the policy starts from, one history for each instance of the world or the same for all.

    Attributes
    ----------
    belief
        What the policy knows.
    state
        The current states, [R, N].
    step
        The number of steps done.

    Raises
    ------
    InputError
        If the history does not fit the world, or the policy cannot start from one.

    Examples
    --------
    >>> stay, leave = [[1, 0], [0, 1]], [[0, 1], [1, 0]]
    >>> world = World(Problem([[stay, leave]], [0, 1], budget=1, start=[0]))
    >>> simulation = Simulation(world, make_policy("random"))
    >>> simulation.advance(3)[0], simulation.step, simulation.state
    (array([[1., 0., 1.]]), 3, array([[1]]))
    """

    def __init__(
        self, world: World, policy: Policy[Any], history: KnownMoves | Sequence[KnownMoves] | None = None
    ) -> None:
        self.world = world
        self.policy = policy
        self.belief = policy.begin(world.shape, world.model)
        if history is not None:
            known = list(history) if isinstance(history, Sequence) else [history] * len(world.model.transition)
            past = Past.of_runs([known[instance] for instance in world.model.instance], world.shape)
            policy.warm_start(self.belief, world.shape, past)
        self.state = world.first_states()
        self.step = 0
        self.observation = Observation(world, self.state)

    def facts(self) -> dict[str, object]:
        """Policy, size and step."""
        shape = self.world.shape
        sizes = {"runs": shape.runs, "agents": shape.agents, "states": shape.states, "budget": shape.budget}
        return {"policy": self.policy, **sizes, "step": self.step}

    def to_frame(self) -> pl.DataFrame:
        """The present state of each agent of each run: `run`, `agent` and `state`."""
        runs, agents = self.state.shape
        places = {"run": np.repeat(np.arange(runs), agents), "agent": np.tile(np.arange(agents), runs)}
        return pl.DataFrame({**places, "state": self.state.ravel()})

    def decide(self) -> tuple[Ranking, Ints]:
        """The policy's ranking in this step, and the actions, [R, N]."""
        return self._decide(self.observation.see(self.state, self.step), self.world.draws(self.step))

    def _decide(self, seen: Ints, draws: Draws) -> tuple[Ranking, Ints]:
        ranked = self.policy.rank(self.belief, seen, draws)
        ranking = as_ranking(ranked, self.world.shape, self.policy.name)
        try:
            return ranking, self.world.choose(ranking, draws)
        except InputError as error:
            raise InputError(f"{self.policy.name}: {error}") from None

    def take_step(self) -> tuple[Ints, Ints, Outcome]:
        """Simulate one step: the states before it, the actions and the outcome."""
        state, draws = self.state, self.world.draws(self.step)
        seen = self.observation.see(state, self.step)
        _, action = self._decide(seen, draws)
        outcome = self.world.advance(state, action, draws)
        self.observation.learn(self.policy, self.belief, seen, action, outcome, draws)
        self.state, self.step = outcome.after, self.step + 1
        return state, action, outcome

    def advance(self, steps: int = 1) -> tuple[Floats, Floats]:
        """Simulate `steps` more steps and return their expected rewards and costs, [R, steps] each."""
        reward, cost = np.empty((2, self.world.shape.runs, check_whole("steps", steps, 0)))
        for t in range(steps):
            _, _, outcome = self.take_step()
            reward[:, t], cost[:, t] = outcome.total, outcome.cost
        return reward, cost

    def save(self, path: str | PathLike[str]) -> None:
        """Write policy, belief, states and step to the file `path`; of the world only its fingerprint is in it."""
        facts = {"step": self.step, "world": self.world.fingerprint()}
        arrays = {"state": self.state, **self.observation.arrays()}
        checkpoint.save(path, self.policy, self.belief, arrays, **facts)

    @classmethod
    def load(cls, path: str | PathLike[str], world: World, policy: type[Policy[Any]] | None = None) -> "Simulation":
        """Continue from a checkpoint in the same world.

        Parameters
        ----------
        path
            A file written by `save`.
        world
            The world of the saved simulation, made again from its problem and seed.
        policy
            The class of a policy that is not registered.

        Raises
        ------
        InputError
            If the file is damaged, or was written in another world.
        """
        saved = checkpoint.load(path, policy)
        if saved.header.get("world") != world.fingerprint():
            raise InputError(
                f"{path}: a checkpoint of another world; problem, budget, noise, runs and seed must be the same."
            )
        simulation = cls(world, saved.policy)
        arrays = {"state": simulation.state, **simulation.observation.arrays()}
        belief = saved.restore(path, simulation.belief, "in this world", **arrays)
        state, step = saved.extra["state"], saved.header.get("step")
        if not isinstance(step, int) or step < 0 or state.min() < 0 or state.max() >= world.shape.states:
            raise InputError(
                f"{path}: a damaged checkpoint; states go from 0 to {world.shape.states - 1}, steps from 0 on."
            )
        simulation.belief, simulation.state, simulation.step = belief, state, step
        simulation.observation.restore(saved.extra)
        return simulation


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
    missing: float = 0.0,
    delay: int = 0,
    history: KnownMoves | Sequence[KnownMoves] | None = None,
) -> Trace:
    """Simulate a policy: `runs` runs of `horizon` steps on each problem.

    Parameters
    ----------
    problem
        A problem, or several instances of one shape and budget.
    policy
        A policy, or its name with settings, such as "egt:eta=0.5"; see `make_policy`.
    horizon
        The number of steps.
    runs
        The number of runs on each problem.
    seed
        The seed of all random numbers; every policy meets the same ones.
    noise
        The variance of the Gaussian noise added to each observed reward; the trace has the expected reward.
    threshold
        The benefit below which acting has a cost; by default the largest that assumption 4.2 allows.
    threads
        The maximal number of chunks at once; by default the number of processors.
    progress
        Called with the number of run-steps done since its last call, from any thread, one call at a time.
    missing
        The probability that the state of an agent is unknown to the policy in a step; see `restive.observation`.
    delay
        The number of steps after which the outcome of a step is reported to the policy.
    history
        What the learner starts from, such as the model of `restive.fit`, for all problems or one for each: it knows
        the moves in it, and forgets them as soon as agents move otherwise.

    Returns
    -------
    Trace
        Rewards and costs, [R, T], and the specification of the simulation.

    Raises
    ------
    InputError
        If an argument is not valid, the problems differ in shape, or the policy ranks by something that is no number.

    Examples
    --------
    >>> stay, leave = [[1, 0], [0, 1]], [[0, 1], [1, 0]]
    >>> simulate(Problem([[stay, leave]], [0, 1], budget=1, start=[0]), "random", horizon=3).reward
    array([[1., 0., 1.]])
    """
    chosen = make_policy(policy)
    problems = list(problem) if isinstance(problem, Iterable) else problem
    horizon = check_whole("horizon", horizon, 1)
    world = World(problems, runs, seed, noise, threshold, horizon, missing, delay)
    workers = check_whole("threads", available_processors() if threads is None else threads, 1)
    reward, cost = np.empty((world.shape.runs, horizon)), np.empty((world.shape.runs, horizon))
    report, halt = _one_at_a_time(progress), threading.Event()

    def simulate_chunk(first: int, last: int) -> None:
        part = world.model.instance[first:last]
        known = history[part[0] : part[-1] + 1] if isinstance(history, Sequence) else history
        simulation = Simulation(world.chunk(first, last), chosen, known)
        stride = max(1, horizon // 100)
        for begin in range(0, horizon, stride):
            if halt.is_set():
                return
            end = min(horizon, begin + stride)
            reward[first:last, begin:end], cost[first:last, begin:end] = simulation.advance(end - begin)
            report((last - first) * (end - begin))

    map_chunks(simulate_chunk, world.shape.runs, _count_chunks(world.shape, workers), workers, halt=halt.set)
    return Trace(reward, cost, world.model.instance, describe(problems, chosen, world, runs, seed, noise))


def _count_chunks(shape: Shape, workers: int) -> int:
    """The number of chunks: one for each worker if they are large enough, none much larger than fits the cache."""
    worthwhile = max(1, shape.runs * shape.agents * shape.states // MIN_THREAD_CELLS)
    fitting = -(-shape.runs // fitting_runs(shape))
    chunks = max(min(workers, worthwhile), -(-fitting // workers) * workers if fitting > 1 else 1)
    return min(shape.runs, chunks)


def fitting_runs(shape: Shape) -> int:
    """The number of runs of a chunk that fits the cache."""
    return max(1, max(MIN_CHUNK_AGENTS, MAX_CHUNK_CELLS // shape.states) // shape.agents)


def _one_at_a_time(progress: Progress | None) -> Progress:
    if progress is None:
        return lambda steps: None
    lock = threading.Lock()

    def report(steps: int) -> None:
        with lock:
            progress(steps)

    return report
