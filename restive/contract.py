"""The types that policies, worlds and the desk exchange, and the choice that follows from a ranking.

Every array has a leading axis of runs. In every shape R is runs, N agents, S states, A actions and I instances.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from restive.errors import InputError
from restive.kernels import rng
from restive.kernels.spending import choose_within
from restive.kernels.top_k import choose
from restive.problem import AT_MOST, EXACTLY, Drift
from restive.types import Bools, Floats, Ints, Keys

# Agents are numbered from 0, so draws for a whole run use a number that no agent has.
NO_AGENT = np.array([-1])


class Shape(NamedTuple):
    """The sizes of a problem: all that a learner knows before it starts."""

    runs: int
    agents: int
    states: int
    budget: int
    horizon: int | None
    reward_range: Floats
    """[R] largest minus smallest reward."""
    features: Floats | None = None
    """[R, N, F] fixed numbers of each agent, NaN where unknown; None if there are none."""
    cost: Floats | None = None
    """[R, N] what acting on each agent takes of the budget; None if it is 1 for all of them."""
    spend: str = EXACTLY
    """Whether the budget is spent "exactly", or "at most": only on agents that are expected to gain."""

    def known_features(self) -> Floats:
        """The features, with F = 0 if there are none."""
        return np.zeros((self.runs, self.agents, 0)) if self.features is None else self.features

    @property
    def places(self) -> int:
        """The number of agents that the budget suffices for, whichever they are."""
        return self.budget if self.cost is None else min(self.agents, int(self.budget / float(self.cost.max())))


class Model(NamedTuple):
    """The true dynamics and rewards, for oracles: I instances of one shape, and the instance of each run."""

    transition: Floats  # [I, N, A, S, S]
    reward: Floats  # [I, N, S]
    start: Floats  # [I, N, S] the distribution of the first state
    instance: Ints  # [R]
    drift: Drift | None = None  # of all instances, [I, ...]; None if the dynamics do not change

    @property
    def changes(self) -> Ints:
        """The step with which each segment of constant dynamics begins, [G]."""
        return np.zeros(1, np.int64) if self.drift is None else self.drift.changes

    def at(self, segment: int) -> "Model":
        """The model of one segment, without drift."""
        if self.drift is None:
            return self
        transition, reward = self.drift.mix(segment, self.transition, self.reward)
        return self._replace(transition=transition, reward=reward, drift=None)

    def convert(self, function: Callable[[Floats], Floats]) -> "Model":
        """The model with a function applied to each of its arrays over instances and agents."""
        drift = self.drift
        if drift is not None:
            drift = drift._replace(transition=function(drift.transition), reward=function(drift.reward))
        transition, reward, start = (function(array) for array in self[:3])
        return Model(transition, reward, start, self.instance, drift)


class KnownMoves(Protocol):
    """What a learner can start from, such as a model that was fitted to a history; all N agents are in it."""

    @property
    def counts(self) -> Floats:
        """[N, A, S, S] how often each agent moved from s to t under a; 0 for agents without a history."""

    @property
    def value(self) -> Floats:
        """[S] the expected reward on arriving in each state."""

    @property
    def power(self) -> float:
        """What a move of the history counts, from 0 to 1."""


class Past(NamedTuple):
    """What a history says of the agents of each run."""

    moves: Floats  # [R, N, A, S, S] as they count
    value: Floats  # [R, S] the expected reward on arriving in each state

    @classmethod
    def of_runs(cls, histories: Sequence[KnownMoves], shape: Shape) -> "Past":
        """The past of runs with one history each."""
        for each in histories:
            if each.counts.shape != (shape.agents, 2, shape.states, shape.states):
                agents, states = each.counts.shape[0], each.counts.shape[-1]
                raise InputError(
                    f"The history has {agents} people and {states} states, the program {shape.agents} and "
                    f"{shape.states}; they must be the same.",
                    location="history",
                )
        moves = np.stack([scale_counts(each.counts, each.power) for each in histories])
        return cls(moves, np.stack([np.asarray(each.value, np.float64) for each in histories]))


def scale_counts(counts: Floats, power: float) -> Floats:
    """Counts [N, ...] times a power, rounded to whole numbers whose sums over agents are right."""
    totals = np.rint(np.cumsum(power * counts, axis=0))
    return np.diff(totals, axis=0, prepend=np.zeros((1, *counts.shape[1:])))


class Draws(NamedTuple):
    """The random numbers of one step, a pure function of seed, run, step, agent and stream; and the step's budget."""

    keys: Keys  # [R]
    agents: Ints  # [N]
    step: int
    budget: int
    cost: Floats | None = None  # [R, N] as in `Shape`
    spend: str = EXACTLY

    @property
    def at_most(self) -> bool:
        """Whether the budget need not be spent."""
        return self.spend == AT_MOST

    def per_cost(self, index: Floats) -> Floats:
        """An index [R, N] per unit of cost: the order in which a limited budget gains most."""
        return index if self.cost is None else index / self.cost

    def branch(self, stream: int) -> Keys:
        """The key of each run for one stream in this step, [R], as compiled kernels take it."""
        return rng.branch(self.keys, stream, self.step)

    def uniform(self, stream: int = rng.OWN) -> Floats:
        """Uniform numbers in [0, 1), [R, N]; streams from `rng.OWN` on are free for your own policies."""
        return rng.uniform(self.branch(stream), self.agents)

    def uniform_by_run(self, stream: int = rng.OWN) -> Floats:
        """One uniform number in [0, 1) for each run, [R]."""
        return rng.uniform(self.branch(stream), NO_AGENT)[:, 0]


# The break-even of a policy that cannot tell who would lose.
UNKNOWN = np.array(-np.inf)


class Ranking(NamedTuple):
    """A policy's priorities in one step."""

    priority: Floats  # [R, N] the highest are chosen, ties broken at random
    explore: Floats  # [R] the probability of ignoring the priorities and choosing uniformly at random
    break_even: Floats = UNKNOWN  # [R] with this priority or a lower one acting is not expected to gain

    def least(self, draws: Draws) -> Floats:
        """The break-even of each run, [R], above which agents are chosen: minus infinity if the budget is to be spent."""
        known = self.break_even if draws.at_most else UNKNOWN
        return np.ascontiguousarray(np.broadcast_to(known, len(self.priority)))


def rank_index(index: Floats, draws: Draws) -> Ranking:
    """The ranking by an index [R, N] that is above 0 where acting gains, such as Whittle's; per unit of cost."""
    return Ranking(draws.per_cost(index), np.zeros(len(index)), np.zeros(len(index)))


class Estimate(NamedTuple):
    """What a policy decides by, for inclusion probabilities and lists; `Benefits` are for explanations."""

    benefit: Floats  # [R, N] what acting now adds to the reward, NaN where unknown
    error: Floats  # [R, N] its standard error, NaN where unknown, infinite where nothing was observed
    noise: Floats  # [R, N] the standard deviation of the random term in the priority, 0 where there is none
    center: Floats | None = None
    """[R, N] the priority without its random term, up to a constant of each run; None if it is the benefit."""

    def expected_priority(self) -> Floats:
        """The priority without its random term, up to a constant of each run, [R, N]."""
        return self.benefit if self.center is None else self.center


class Benefits(NamedTuple):
    """What acting brings to M agents in each state, for explanations; NaN where it is not known."""

    benefit: Floats  # [R, M, S] what acting in a state adds to the reward
    error: Floats  # [R, M, S] its standard error, NaN if the policy does not state one, infinite where nothing was observed
    mean: Floats  # [R, S] of the benefits over these agents
    mean_error: Floats  # [R, S] its standard error; agents share what is uncertain, so it is not that of a sample


def without_noise(benefit: Floats) -> Estimate:
    """The estimate of a policy that ranks by `benefit` without noise and does not know its error."""
    return Estimate(benefit, np.full(benefit.shape, np.nan), np.zeros(benefit.shape))


def as_ranking(ranked: Ranking | Floats, shape: Shape, name: str) -> Ranking:
    """Validate what the `rank` of policy `name` returned, as a `Ranking` of contiguous float arrays."""
    given = ranked if isinstance(ranked, Ranking) else Ranking(ranked, np.zeros(shape.runs))
    try:
        priority, explore, break_even = (np.asarray(part, np.float64) for part in given)
        if break_even.ndim == 0:
            break_even = np.full(shape.runs, break_even)
        ranking = Ranking(*map(np.ascontiguousarray, (priority, explore, break_even)))
    except (TypeError, ValueError):
        raise InputError(
            f"{name}: rank did not return a full array of numbers; priorities are [R, N], runs by agents."
        ) from None
    if ranking.priority.shape != (shape.runs, shape.agents):
        raise InputError(
            f"{name}: rank returned priorities of shape {list(np.shape(given.priority))}; "
            f"they must be [{shape.runs}, {shape.agents}], runs by agents."
        )
    for part, what in (("explore", "probability"), ("break_even", "priority")):
        if getattr(ranking, part).shape != (shape.runs,):
            raise InputError(
                f"{name}: rank returned {part} of shape {list(np.shape(getattr(given, part)))}; "
                f"it must be [{shape.runs}], one {what} for each run."
            )
    if not (ranking.explore.min() >= 0 and ranking.explore.max() <= 1):
        wrong = ranking.explore[~((ranking.explore >= 0) & (ranking.explore <= 1))][0]
        raise InputError(f"{name}: rank returned explore {wrong}; it is a probability, from 0 to 1.")
    if np.isnan(ranking.break_even).any():
        raise InputError(f"{name}: rank returned a break-even that is NaN; it is a priority, or minus infinity.")
    return ranking


def select_actions(ranking: Ranking, draws: Draws, first_run: int = 0) -> Ints:
    """The actions, [R, N]: 1 for exactly `draws.budget` agents of every run, those of highest priority.

    With costs, for those that the budget allows; if it need not be spent, for those above break-even only. Errors
    number the runs from `first_run` on.
    """
    priority, explore, budget = ranking.priority, ranking.explore, draws.budget
    keys, limited = (draws.branch(rng.EXPLORE), draws.branch(rng.TIE)), draws.cost is not None or draws.at_most
    action = np.empty(priority.shape, np.int64)
    if limited:
        failed = int(np.append(np.isnan(priority).any(axis=1), True).argmax())
    else:
        failed = choose(priority, explore, budget, *keys, draws.agents, action)
    if 0 <= failed < len(priority):
        agent = int(np.isnan(priority[failed]).argmax())
        raise InputError(
            f"the priority of agent {agent} is NaN in step {draws.step} of run {first_run + failed}; "
            "it must be a number, minus and plus infinity included."
        )
    if limited:
        cost = np.ones(priority.shape) if draws.cost is None else draws.cost
        action = choose_within(priority, explore, ranking.least(draws), cost, budget, *keys, draws.agents)
    return action


def reach_cutoff(priority: Floats, tie: Floats, chosen: Bools) -> Bools:
    """Whether each agent ranks at least as high as the last one chosen, by priority and then by the draw `tie`.

    So it is known of agents that could not be chosen whether they would have been; arrays are [..., N].

    >>> chosen = np.array([True, True, False, False, False])
    >>> reach_cutoff(np.array([3.0, 2.0, 2.5, 2.0, 1.0]), np.array([0.1, 0.5, 0.2, 0.4, 0.9]), chosen)
    array([ True,  True,  True, False, False])
    """
    last = np.where(chosen, priority, np.inf).min(axis=-1, keepdims=True, initial=np.inf)
    tied = np.where(chosen & (priority == last), tie, np.inf).min(axis=-1, keepdims=True, initial=np.inf)
    reached: Bools = (priority > last) | ((priority == last) & (tie >= tied))
    return reached
