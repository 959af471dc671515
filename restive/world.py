"""The simulated world: R runs of instances of one shape, and how all their agents move in a step.

Runs come instance by instance: with k runs for each instance, run r is repetition r % k of instance r // k. Its luck
depends on these two numbers and the seed, not on k, and a world may hold only some of the runs (a chunk): what happens
in a run does not depend on which others there are.
"""

import hashlib
from collections.abc import Iterable, Sequence
from copy import copy
from typing import NamedTuple

import numpy as np

from restive.errors import InputError, check_number, check_whole
from restive.kernels import rng
from restive.kernels.step import advance, first_states
from restive.kernels.top_k import choose, inclusion
from restive.policies.base import Draws, Model, Ranking, Shape
from restive.problem import Problem
from restive.solvers.myopic import benefit, largest_threshold
from restive.types import Floats, Ints

MAX_SEED = rng.MAX_SEED
REPETITIONS = 2**32


class Outcome(NamedTuple):
    """What a step led to."""

    after: Ints  # [R, N]
    reward: Floats  # [R, N] as observed, with noise
    total: Floats  # [R] expected reward, summed over agents
    cost: Floats  # [R] acting below the threshold, summed over agents


class World:
    """The agents of all runs: where they start, and where they go."""

    def __init__(
        self,
        problems: Problem | Sequence[Problem],
        runs: int = 1,
        seed: int = 0,
        noise: float = 0.0,
        threshold: float | Sequence[float] | None = None,
        horizon: int | None = None,
    ) -> None:
        problems = _alike(problems)
        runs = check_whole("runs", runs, 1)
        seed = check_whole("seed", seed, 0, MAX_SEED)
        horizon = None if horizon is None else check_whole("horizon", horizon, 1)
        noise = check_number("noise", noise, "it is a variance, a finite number from 0 on", 0, np.finfo(float).max)
        agents, states = problems[0].shape
        reward = np.stack([problem.reward for problem in problems])
        span = np.repeat(np.ptp(reward, axis=(1, 2)), runs)
        self.shape = Shape(len(problems) * runs, agents, states, problems[0].budget, horizon, span)
        self.model = Model(
            np.stack([problem.transition for problem in problems]),
            reward,
            np.stack([first_distribution(problem) for problem in problems]),
            np.repeat(np.arange(len(problems)), runs),
        )
        self.fixed_start = None if problems[0].start is None else np.stack([_fixed(p) for p in problems])
        self.benefit = benefit(self.model.transition, reward)
        self.threshold = _thresholds(threshold, self.benefit, self.shape.budget)
        self.cumulative = _cumulate(self.model.transition)
        self.keys = rng.run_keys(seed, _numbers(len(problems), runs))
        self.agents = np.arange(agents)
        self.first_run = 0
        self.spread = float(np.sqrt(noise))

    def chunk(self, first: int, last: int) -> "World":
        """The runs from `first` up to, not including, `last`, as a world of their own."""
        part = copy(self)
        instance = self.model.instance[first:last]
        low, high = int(instance[0]), int(instance[-1]) + 1
        part.shape = self.shape._replace(runs=last - first, reward_range=self.shape.reward_range[first:last])
        transition, reward, start, _ = self.model
        part.model = Model(transition[low:high], reward[low:high], start[low:high], instance - low)
        part.fixed_start = None if self.fixed_start is None else self.fixed_start[low:high]
        part.benefit, part.threshold = self.benefit[low:high], self.threshold[low:high]
        part.cumulative, part.keys = self.cumulative[low:high], self.keys[first:last]
        part.first_run = self.first_run + first
        return part

    def permute(self, order: Ints) -> "World":
        """The same agents with the same luck, in another order."""
        turned = copy(self)
        transition, reward, start, instance = self.model
        transition, reward, start = (np.take(part, order, axis=1) for part in (transition, reward, start))
        turned.model = Model(transition, reward, start, instance)
        turned.fixed_start = None if self.fixed_start is None else np.take(self.fixed_start, order, axis=1)
        turned.benefit, turned.cumulative = (np.take(part, order, axis=1) for part in (self.benefit, self.cumulative))
        turned.agents = self.agents[order]
        return turned

    def fingerprint(self) -> str:
        """What sets this world apart: its agents, runs, luck, budget and noise."""
        digest = hashlib.sha256(f"{self.shape.budget} {self.spread}".encode())
        for array in (*self.model, self.keys, self.agents):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()[:16]

    def first_states(self) -> Ints:
        """Where the agents are before the first step, [R, N]."""
        if self.fixed_start is not None:
            return np.ascontiguousarray(self.fixed_start[self.model.instance])
        return first_states(self.shape.states, rng.branch(self.keys, rng.START, 0), self.agents)

    def draws(self, step: int) -> Draws:
        """The luck of a step."""
        return Draws(self.keys, self.agents, step, self.shape.budget)

    def choose(self, ranking: Ranking, draws: Draws) -> Ints:
        """Exactly the budget of ones in every run, [R, N]."""
        action = np.empty(ranking.priority.shape, np.int64)
        coins, ties = draws.branch(rng.EXPLORE), draws.branch(rng.TIE)
        failed = choose(ranking.priority, ranking.explore, draws.budget, coins, ties, self.agents, action)
        if failed >= 0:
            agent = int(np.isnan(ranking.priority[failed]).argmax())
            raise InputError(
                f"the priority of agent {agent} is NaN in step {draws.step} of run {self.first_run + failed}; "
                "it must be a number, minus and plus infinity included."
            )
        return action

    def inclusion(self, ranking: Ranking, draws: Draws) -> Floats:
        """The probability that `choose` takes each agent, [R, N]: exploration and ties counted."""
        return inclusion(ranking.priority, ranking.explore, draws.budget)

    def advance(self, state: Ints, action: Ints, draws: Draws) -> Outcome:
        """Where the actions lead."""
        outcome = Outcome(
            np.empty_like(state), np.empty(state.shape), np.empty(state.shape[0]), np.empty(state.shape[0])
        )
        moves, noises = draws.branch(rng.TRANSITION), draws.branch(rng.NOISE)
        model = self.model
        advance(
            state, action, model.instance, self.cumulative, model.reward, self.benefit, self.threshold,
            self.spread, moves, noises, self.agents, *outcome,
        )  # fmt: skip
        return outcome


def _alike(problems: Problem | Sequence[Problem]) -> Sequence[Problem]:
    """The instances as a list, all of one shape."""
    listed = list(problems) if isinstance(problems, Iterable) else [problems]
    if not listed or not all(isinstance(problem, Problem) for problem in listed):
        raise InputError("problems must be one Problem or a list of at least one.")
    first = listed[0]
    for number, problem in enumerate(listed):
        if (problem.shape, problem.budget, problem.start is None) != (first.shape, first.budget, first.start is None):
            raise InputError(
                f"problem {number} is {problem!r}, problem 0 is {first!r}; instances must agree in agents, states, "
                "budget, and in whether they have a start."
            )
    return listed


def _thresholds(given: float | Sequence[float] | None, gains: Floats, budget: int) -> Floats:
    """One for each instance, [I]: as given, or the largest of each that costs nothing."""
    if given is None:
        return np.array([largest_threshold(gain, budget) for gain in gains])
    several = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str)
    listed = list(given) if several else [given] * len(gains)  # type: ignore[arg-type]
    if len(listed) != len(gains):
        raise InputError(f"threshold has {len(listed)} numbers for {len(gains)} instances; give one, or one for each.")
    must = "it must be a number, or None for the largest that costs nothing"
    return np.array([check_number("threshold", each, must) for each in listed])


def _numbers(instances: int, runs: int) -> Ints:
    """A number for each run that stays its own when there are more instances or repetitions."""
    return (np.arange(instances)[:, None] * REPETITIONS + np.arange(runs)).ravel()


def _fixed(problem: Problem) -> Ints:
    assert problem.start is not None
    return problem.start


def first_distribution(problem: Problem) -> Floats:
    """How likely each agent is to begin in each state, [N, S]."""
    agents, states = problem.shape
    if problem.start is None:
        return np.full((agents, states), 1.0 / states)
    return np.eye(states)[problem.start]


def _cumulate(transition: Floats) -> Floats:
    """Cumulated rows in which rounding cannot reach a state of probability zero."""
    cumulative = np.cumsum(transition, axis=-1)
    left = np.cumsum(transition[..., ::-1], axis=-1)[..., ::-1]
    cumulative[..., :-1][left[..., 1:] == 0.0] = 2.0
    return cumulative
