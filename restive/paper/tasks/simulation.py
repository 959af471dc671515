"""Tasks that simulate policies on instances of a family, recorded as sums up to certain steps.

A result has one row for each instance and step: reward and cost cumulated up to and including the step, means over the
instance's runs. So a result is small whatever the runs and the horizon, and running means, late rewards and regrets are
differences of rows.

The regret of the paper is the cost of acting below a threshold. On instances of `ordered-v1` the threshold is
share · I(1) + (1 − share) · I(0) of the weaker agent, so that its state 0 is the one bad pair, and the gap Δ of theorem
4.4 is the distance from the threshold to the least benefit above it.
"""

import hashlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from restive.contract import Draws, Model, Ranking, Shape
from restive.errors import InputError
from restive.files import Columns
from restive.policies import make_policy
from restive.policies.base import Oracle, Policy
from restive.policies.egt import Egt, EgtBelief
from restive.problems import make_problems
from restive.simulation import Simulation, fitting_runs
from restive.solution import reward_bounds
from restive.solvers.myopic import benefit
from restive.stats import mean_by
from restive.types import Floats, Ints
from restive.world import World

FIRST_STEPS, EVEN_STEPS, FACTOR_STEPS = 20, 100, 40
_LOADING = threading.Lock()  # a policy file is loaded as a module, which other threads must not see half loaded


def play(
    family: str,
    sizes: Mapping[str, int],
    policy: str,
    horizon: int,
    runs: int,
    seed: int,
    noise: float = 0.0,
    file: str = "",
    missing: float = 0.0,
    delay: int = 0,
) -> Columns:
    """Simulate a policy on the instances `make_problems(family, **sizes)`; `file` is the digest of its own file, if any."""
    problems = make_problems(family, **sizes)
    world = World(problems, runs, seed, noise, horizon=horizon, missing=missing, delay=delay)
    return follow(world, _load_policy(policy, file), recorded_steps(horizon))


def file_digest(policy: str) -> dict[str, str]:
    """An extra setting for the job of a policy from a file: the digest of its content.

    >>> file_digest("egt:eta=0.5")
    {}
    """
    path = policy.partition(":")[0]
    return {"file": hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]} if path.endswith(".py") else {}


def _load_policy(policy: str, file: str) -> Policy[Any]:
    """The policy, if its file still has that digest."""
    if not file:
        return make_policy(policy)
    with _LOADING:
        simulated = make_policy(policy)
        if file_digest(policy) != {"file": file}:
            raise InputError(f"{policy.partition(':')[0]}: changed during the run; run again.")
    return simulated


def episodes(
    family: str, sizes: Mapping[str, int], policy: str, length: int, episodes: int, runs: int, seed: int
) -> Columns:
    """Simulate a policy over episodes: after each, agents return to their start, and the policy keeps its belief."""
    world = World(make_problems(family, **sizes), runs, seed, horizon=length * episodes)
    return follow(world, make_policy(policy), length * np.arange(1, episodes + 1), length)


def follow(world: World, policy: Policy[Any], steps: Ints, episode: int | None = None) -> Columns:
    """Simulate a policy up to the last of the steps; agents return to their start after each `episode` steps, if given."""
    runs, size = world.shape.runs, fitting_runs(world.shape)
    sums = np.empty((2, runs, steps.size))
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


def recorded_steps(horizon: int) -> Ints:
    """The first steps one by one, then evenly and by factors, up to the horizon.

    >>> recorded_steps(1000)[18:24]
    array([19, 20, 22, 27, 30, 32])
    """
    evenly = np.linspace(0, horizon, EVEN_STEPS + 1)[1:]
    by_factor = np.geomspace(1, horizon, FACTOR_STEPS + 1)
    steps = np.concatenate([np.arange(1, FIRST_STEPS + 1), evenly, by_factor])
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
    """The fluid bound of each instance: the mean reward up to each step that no policy can exceed."""
    problems, steps = make_problems(family, **sizes), recorded_steps(horizon)
    return tabulate(steps, reward=np.stack([reward_bounds(problem, steps) for problem in problems]))


def regret(
    share: float,
    policy: str,
    instances: int,
    horizon: int,
    runs: int,
    seed: int,
    theory: bool = False,
    scale: float = 1.0,
) -> Columns:
    """The cost of a policy on the instances of the regret curve.

    With `theory` eps-GT has D, gamma and eta as theorem 4.4 sets them; `scale` makes it explore so many times as much.
    """
    problems = make_problems("ordered-v1", instances=instances, seed=seed)
    gains = np.stack([benefit(problem.transition, problem.reward) for problem in problems])
    world = World(problems, runs, seed, threshold=list(thresholds(gains, share)), horizon=horizon)
    simulated = TheoryEgt(share, scale, policy) if theory else make_policy(policy)
    return follow(world, simulated, recorded_steps(horizon))


def thresholds(gains: Floats, share: float) -> Floats:
    """The threshold of each instance, [I], from its benefits [I, 2, S]: the second agent is the weaker one.

    >>> thresholds(np.array([[[0.9, 0.8], [0.1, 0.5]]]), share=0.5)
    array([0.3])
    """
    weaker = gains[:, 1]
    between: Floats = share * weaker[:, 1] + (1 - share) * weaker[:, 0]
    return between


def gaps(gains: Floats, threshold: Floats) -> Floats:
    """Δ of each instance, [I]: from the threshold to the least benefit that reaches it.

    >>> gaps(np.array([[[0.9, 0.8], [0.1, 0.5]]]), np.array([0.25]))
    array([0.25])
    """
    above = gains - threshold[:, None, None]
    least: Floats = np.where(above >= 0, above, np.inf).min(axis=(1, 2))
    return least


@dataclass(frozen=True)
class TheoryEgt(Oracle[EgtBelief]):
    """eps-GT with gamma and eta of theorem 4.4, which are each instance's threshold and gap, taken from its model."""

    name: ClassVar[str] = "egt-theory"
    share: float = 0.5
    scale: float = 1.0
    policy: str = "egt"

    def start(self, shape: Shape, model: Model) -> EgtBelief:
        """An empty belief with gamma and eta of each instance as the theorem sets them."""
        gains = benefit(model.transition, model.reward)
        gamma = thresholds(gains, self.share)
        gap_squared = np.minimum(gaps(gains, gamma) ** 2, 0.5) / self.scale
        empty = _player(self.policy).start(shape)
        return empty._replace(gamma=gamma[model.instance], gap_squared=gap_squared[model.instance])

    def rank(self, belief: EgtBelief, state: Ints, draws: Draws) -> Ranking:
        """As eps-GT."""
        return _player(self.policy).rank(belief, state, draws)

    def learn(self, belief: EgtBelief, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        """As eps-GT."""
        _player(self.policy).learn(belief, state, action, reward, after)


@cache
def _player(policy: str) -> Egt:
    """eps-GT with the part of the theorem's settings that all instances share, its D."""
    player = make_policy(policy)
    assert isinstance(player, Egt)
    return replace(player, D="theory")
