"""The simulated world: R runs of instances of one shape.

Runs are ordered by instance: with k runs for each instance, run r is repetition r % k of instance r // k. Its random
numbers depend on these two numbers and the seed, not on k, and a world may hold only some of the runs (a chunk): a run
is the same whichever others there are.
"""

import hashlib
from collections.abc import Iterable, Sequence
from copy import copy

import numpy as np

from restive.contract import Draws, Model, Ranking, Shape, select_actions
from restive.errors import InputError, check_number, check_whole
from restive.kernels import rng
from restive.kernels.spending import NO_GROUPS, inclusion_within, spending_probabilities
from restive.kernels.step import Dynamics, Outcome, advance, first_states
from restive.kernels.top_k import inclusion
from restive.problem import EXACTLY, Drift, Problem
from restive.solvers.myopic import benefit, largest_threshold
from restive.types import Floats, Ints

MAX_REPETITIONS = 2**32
MAX_MISSING, MAX_DELAY = 0.999, 10_000
NO_RUN = np.array([-1])
NO_SEGMENT: tuple[int, tuple[Floats, Floats, Floats]] = (-1, (np.empty(0), np.empty(0), np.empty(0)))
# With costs, inclusion probabilities are frequencies over so many draws: their standard error is below 0.008.
INCLUSION_DRAWS, INCLUSION_STREAM = 4096, 2**32 + 3


class World:
    """The agents of all runs: their first states, and their moves in response to actions.

    Parameters
    ----------
    problems
        A problem, or several instances that agree in agents, states, budget, how it is spent, and in whether they have
        costs and a start.
    runs
        The number of runs of each instance.
    seed
        The seed of all random numbers of the world.
    noise
        The variance of the Gaussian noise added to each observed reward.
    threshold
        The benefit below which acting has a cost, one number or one for each instance; None for the largest threshold
        that assumption 4.2 allows.
    horizon
        The number of steps, for policies that plan ahead; None if it is not known.
    missing
        The probability that the state of an agent is unknown to the policy in a step; see `restive.observation`.
    delay
        The number of steps after which the outcome of a step is reported to the policy.
    first_instance
        The number of the first problem: a world of some of many instances has the random numbers of the whole one.

    Raises
    ------
    InputError
        If the instances differ in shape, or a number is not valid.

    Examples
    --------
    >>> stay, leave = [[1, 0], [0, 1]], [[0, 1], [1, 0]]
    >>> world = World(Problem([[stay, leave]] * 2, [0, 1], budget=1, start=[0, 1]))
    >>> world.advance(world.first_states(), np.array([[1, 0]]), world.draws(step=0)).after
    array([[1, 1]])
    """

    def __init__(
        self,
        problems: Problem | Sequence[Problem],
        runs: int = 1,
        seed: int = 0,
        noise: float = 0.0,
        threshold: float | Sequence[float] | None = None,
        horizon: int | None = None,
        missing: float = 0.0,
        delay: int = 0,
        first_instance: int = 0,
    ) -> None:
        problems = _require_alike(problems)
        runs = check_whole("runs", runs, 1)
        seed = check_whole("seed", seed, 0, rng.MAX_SEED)
        horizon = None if horizon is None else check_whole("horizon", horizon, 1)
        noise = check_number("noise", noise, "it is a variance, a finite number from 0 on", 0, np.finfo(float).max)
        self.missing = check_number("missing", missing, "it is a probability below 1", 0, MAX_MISSING)
        self.delay = check_whole("delay", delay, 0, MAX_DELAY)
        agents, states = problems[0].shape
        reward = np.stack([problem.reward for problem in problems])
        drift = _stack_drift(problems)
        rewards = reward if drift is None else np.concatenate([reward, drift.reward], axis=2)
        reward_range = np.repeat(np.ptp(rewards, axis=(1, 2)), runs)
        sizes = (len(problems) * runs, agents, states, problems[0].budget)
        costs = [problem.cost for problem in problems if problem.cost is not None]
        cost = np.repeat(np.stack(costs), runs, axis=0) if costs else None
        known = _stack_features(problems, runs), cost, problems[0].spend
        self.shape = Shape(*sizes, horizon, reward_range, *known)
        self.model = Model(
            np.stack([problem.transition for problem in problems]),
            reward,
            np.stack([first_distribution(problem) for problem in problems]),
            np.repeat(np.arange(len(problems)), runs),
            drift,
        )
        starts = [problem.start for problem in problems if problem.start is not None]
        self.fixed_start = np.stack(starts) if starts else None
        self.benefit = benefit(self.model.transition, reward)
        self.threshold = _thresholds(threshold, self.benefit, self.shape.places)
        self.cumulative = _cumulate(self.model.transition)
        self.keys = rng.run_keys(seed, first_instance * MAX_REPETITIONS + _run_numbers(len(problems), runs))
        self.common_key = rng.run_keys(seed, NO_RUN)  # of draws that all runs share
        self.agents = np.arange(agents)
        self.first_run = 0
        self.segment = NO_SEGMENT  # of a drift: its number, and its transitions, rewards and benefits
        self.noise_std = float(np.sqrt(noise))

    def chunk(self, first: int, last: int) -> "World":
        """The world of the runs from `first` up to, but not including, `last`."""
        part = copy(self)
        instance = self.model.instance[first:last]
        low, high = int(instance[0]), int(instance[-1]) + 1
        shape, some = self.shape, slice(first, last)
        part.shape = shape._replace(
            runs=last - first,
            reward_range=shape.reward_range[some],
            features=None if shape.features is None else shape.features[some],
            cost=None if shape.cost is None else shape.cost[some],
        )
        part.model = self.model.convert(lambda array: array[low:high])._replace(instance=instance - low)
        part.fixed_start = None if self.fixed_start is None else self.fixed_start[low:high]
        part.benefit, part.threshold = self.benefit[low:high], self.threshold[low:high]
        part.cumulative, part.keys = self.cumulative[low:high], self.keys[first:last]
        part.segment = NO_SEGMENT
        part.first_run = self.first_run + first
        return part

    def with_budget(self, budget: int) -> "World":
        """The same agents and random numbers with another `budget`; the thresholds stay."""
        changed = copy(self)
        changed.shape = self.shape._replace(budget=budget)
        return changed

    def permute(self, order: Ints) -> "World":
        """The same agents with the same random numbers; `order` has the number of the agent at each place."""
        permuted = copy(self)
        permuted.model = self.model.convert(lambda array: np.take(array, order, axis=1))
        permuted.segment = NO_SEGMENT
        if self.shape.features is not None:
            permuted.shape = self.shape._replace(features=np.take(self.shape.features, order, axis=1))
        permuted.fixed_start = None if self.fixed_start is None else np.take(self.fixed_start, order, axis=1)
        permuted.benefit, permuted.cumulative = (
            np.take(part, order, axis=1) for part in (self.benefit, self.cumulative)
        )
        if self.shape.cost is not None:
            permuted.shape = permuted.shape._replace(cost=np.take(self.shape.cost, order, axis=1))
        permuted.agents = self.agents[order]
        return permuted

    def fingerprint(self) -> str:
        """A digest of the agents, runs, random numbers, budget and noise."""
        observed = f" {self.missing} {self.delay}" if self.missing or self.delay else ""
        spend = "" if self.shape.spend == EXACTLY else f" {self.shape.spend}"
        digest = hashlib.sha256(f"{self.shape.budget} {self.noise_std}{observed}{spend}".encode())
        known = self.shape.known_features(), *(() if self.shape.cost is None else (self.shape.cost,))
        for array in (*self.model[:4], *(self.model.drift or ()), self.keys, self.agents, *known):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()[:16]

    def first_states(self) -> Ints:
        """The states before the first step, [R, N]."""
        if self.fixed_start is not None:
            return np.ascontiguousarray(self.fixed_start[self.model.instance])
        return first_states(self.shape.states, rng.branch(self.keys, rng.START, 0), self.agents)

    def draws(self, step: int) -> Draws:
        """The random numbers of a `step`, counted from 0."""
        return Draws(self.keys, self.agents, step, self.shape.budget, self.shape.cost, self.shape.spend)

    def choose(self, ranking: Ranking, draws: Draws) -> Ints:
        """The actions, [R, N]: 1 for exactly `budget` agents of every run, those of highest priority in `ranking`.

        `draws` are the random numbers of the step, for exploration and ties. With costs, for those that the budget
        allows; if it need not be spent, for those above break-even only.
        """
        return select_actions(ranking, draws, self.first_run)

    def inclusion(self, ranking: Ranking, draws: Draws) -> Floats:
        """The probability that `choose` selects each agent by `ranking`, [R, N], over exploration and ties.

        `draws` are the random numbers of the step. With costs it is a frequency over INCLUSION_DRAWS draws, except where nothing is random.
        """
        if draws.cost is not None:
            return self._inclusion_by_draws(ranking, draws, draws.cost)
        if draws.at_most:
            return inclusion_within(ranking.priority, ranking.explore, ranking.least(draws), draws.budget)
        return inclusion(ranking.priority, ranking.explore, draws.budget)

    def _inclusion_by_draws(self, ranking: Ranking, draws: Draws, cost: Floats) -> Floats:
        probability, keys, nothing = np.zeros(cost.shape), draws.branch(INCLUSION_STREAM), np.zeros(cost.shape[1])
        for r, (explore, break_even) in enumerate(zip(ranking.explore, ranking.least(draws), strict=True)):
            rest = cost[r], draws.budget, NO_GROUPS, keys[r], self.agents, INCLUSION_DRAWS
            probability[r], _ = spending_probabilities(ranking.priority[r], nothing, explore, break_even, *rest)
        return probability

    def advance(self, state: Ints, action: Ints, draws: Draws) -> Outcome:
        """Move all agents by one step, from `state` under `action`, [R, N] each, with the random numbers `draws`."""
        runs = state.shape[0]
        outcome = Outcome(np.empty_like(state), np.empty(state.shape), np.empty(runs), np.empty(runs))
        dynamics = Dynamics(
            self.model.instance, *self._segment_at(draws.step), self.threshold, self.agents, self.noise_std
        )
        moves = draws.branch(rng.TRANSITION)
        noise = draws.branch(rng.NOISE) if self.noise_std > 0.0 else moves  # not used without noise
        advance(state, action, dynamics, moves, noise, outcome)
        return outcome

    def _segment_at(self, step: int) -> tuple[Floats, Floats, Floats]:
        """Cumulative transitions, rewards and benefits at a step."""
        if self.model.drift is None:
            return self.cumulative, self.model.reward, self.benefit
        number = int(np.searchsorted(self.model.changes, step, side="right")) - 1
        if number != self.segment[0]:
            transition, reward = self.model.at(number)[:2]
            self.segment = number, (_cumulate(transition), reward, benefit(transition, reward))
        return self.segment[1]


def _stack_drift(problems: Sequence[Problem]) -> Drift | None:
    drifts = [problem.drift for problem in problems if problem.drift is not None]
    if not drifts:
        return None
    transition, reward = (np.stack([drift[part] for drift in drifts]) for part in (0, 1))
    return Drift(transition, reward, *drifts[0][2:])


def _stack_features(problems: Sequence[Problem], runs: int) -> Floats | None:
    """The features of each run, [R, N, F]."""
    features = [problem.features for problem in problems if problem.features is not None]
    return np.repeat(np.stack(features), runs, axis=0) if features else None


def _require_alike(problems: Problem | Sequence[Problem]) -> Sequence[Problem]:
    """The instances as a list, all of one shape."""
    listed = list(problems) if isinstance(problems, Iterable) else [problems]
    if not listed or not all(isinstance(problem, Problem) for problem in listed):
        raise InputError("problems must be one Problem or a list of at least one.")
    first = listed[0]
    for number, problem in enumerate(listed):
        if _kind(problem) != _kind(first):
            raise InputError(
                f"problem {number} is {problem!r}, problem 0 is {first!r}; instances must agree in agents, states, "
                "budget, how it is spent, in whether they have costs and a start, in the number of features, and in the "
                "steps at which they change."
            )
    return listed


def _kind(problem: Problem) -> tuple[object, ...]:
    steps = () if problem.drift is None else problem.drift[2:]
    features = 0 if problem.features is None else problem.features.shape[1]
    costs = problem.spend, problem.cost is None
    return problem.shape, problem.budget, problem.start is None, steps, features, costs


def _thresholds(given: float | Sequence[float] | None, benefits: Floats, budget: int) -> Floats:
    """One threshold for each instance, [I]: as given, or the largest that assumption 4.2 allows."""
    if given is None:
        return np.array([largest_threshold(each, budget) for each in benefits])
    several = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str)
    listed = list(given) if several else [given] * len(benefits)  # type: ignore[arg-type]
    if len(listed) != len(benefits):
        raise InputError(
            f"threshold has {len(listed)} numbers for {len(benefits)} instances; give one, or one for each."
        )
    must = "it must be a number, or None for the largest that costs nothing"
    return np.array([check_number("threshold", each, must) for each in listed])


def _run_numbers(instances: int, runs: int) -> Ints:
    """A number for each run that does not depend on how many instances or repetitions there are."""
    return (np.arange(instances)[:, None] * MAX_REPETITIONS + np.arange(runs)).ravel()


def first_distribution(problem: Problem) -> Floats:
    """The distribution of each agent's first state, [N, S]."""
    agents, states = problem.shape
    if problem.start is None:
        return np.full((agents, states), 1.0 / states)
    return np.eye(states)[problem.start]


def _cumulate(transition: Floats) -> Floats:
    """Cumulative rows in which rounding cannot reach a state of probability zero."""
    cumulative = np.cumsum(transition, axis=-1)
    left = np.cumsum(transition[..., ::-1], axis=-1)[..., ::-1]
    cumulative[..., :-1][left[..., 1:] == 0.0] = 2.0
    return cumulative
