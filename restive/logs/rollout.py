"""Programs played on draws of a fitted model: what each policy adds to acting on nobody, draw by draw.

The lift of a policy is counted action by action, not reward by reward (the performance difference lemma of Kakade and
Langford 2002), with V the value of never acting again:

    lift = E[ Σ_t Σ_i A_it · gain_t(i, s_it) ],   gain_t(i, s) = Σ_j (P_i1 − P_i0)(s, j) · (value(j) + V_i,t+1(j))

Its mean is that of the difference in rewards, without the noise of what happens to people by themselves. The rewards of
acting on nobody and the lift of acting at random are exact. Each draw is played as often as time allows, a fifth of
them at least twice, so that the noise that is left within a draw is known.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from restive.contract import Draws, Model, Ranking, Shape
from restive.errors import InputError
from restive.logs.model import FittedModel
from restive.parallel import available_processors, map_chunks
from restive.policies import make_policy
from restive.policies.base import Learner, Oracle, Policy
from restive.policies.belief import flatten, unflatten
from restive.policies.index_table import TableOracle
from restive.policies.random import NoBelief
from restive.simulation import Simulation, fitting_runs
from restive.solvers.fluid import bound_at, plan
from restive.solvers.fluid_kernels import Agents, Workspace, backward_block, propagate
from restive.solvers.whittle import whittle_indices
from restive.types import Floats, Ints
from restive.world import World

# Draws are played again up to this number of agent-steps of all draws; one in five at least twice.
MAX_STEPS, REPEATED_SHARE = 10_000_000, 5
# The prices of the fluid bound are planned on at most so many people.
MAX_PLANNED, PLAN_GAP, PLAN_SWEEPS = 1_000, 3e-3, 20
INDEX_DISCOUNT = 0.95


class Programs(NamedTuple):
    """What is played: every policy with every budget."""

    policies: tuple[Policy[Any], ...]
    budgets: tuple[int, ...]
    rounds: int
    draws: int = 100
    seed: int = 0
    runs: int = 8  # each draw is played at most so often
    warm: bool = True  # whether learners that can start from the history do
    bounds: int = 40  # the number of draws whose fluid bound is computed


class Played(NamedTuple):
    """Totals over all rounds, for R draws, P policies and B budgets."""

    nobody: Floats  # [R] expected reward if nobody is acted on
    at_random: Floats  # [B, R] expected lift of acting at random
    lift: Floats  # [P, B, R, K] of each run of a draw, NaN for those that were not played
    reward: Floats  # [P, B, R] as it happened in the first run
    bound: Floats  # [B, F] the lift that no policy can exceed, in the first F draws
    worth: Floats  # [B, F] what one more action in every round adds to it, in all


@dataclass(frozen=True)
class AsNow(Learner[NoBelief]):
    """Act as the logged program did: in each state with the share that was acted on, scaled to the budget."""

    name: ClassVar[str] = "as now"
    share: tuple[float, ...] = ()

    def start(self, shape: Shape) -> NoBelief:
        """Nothing to remember."""
        return NoBelief()

    def rank(self, belief: NoBelief, state: Ints, draws: Draws) -> Ranking:
        """Weighted sampling without replacement (Efraimidis and Spirakis 2006): the largest log(uniform) / share."""
        share = np.array(self.share)[state]
        with np.errstate(divide="ignore"):
            return Ranking(np.log(draws.uniform()) / share, np.zeros(len(state)))


@dataclass(frozen=True)
class Informed(TableOracle):
    """Rank by the Whittle index of the rows expected after the history; never learn more."""

    name: ClassVar[str] = "informed"
    indices: Any = None  # [N, S], or [I, N, S] if draws have different people

    def tabulate(self, shape: Shape, model: Model) -> Floats:
        """The given indices in every draw: they are of what is known, not of the truth."""
        return np.ascontiguousarray(np.broadcast_to(self.indices, model.reward.shape))


@dataclass(frozen=True)
class SeesPresent(Policy[Any]):
    """A policy among people whose states are pairs: it sees the present state only."""

    name: ClassVar[str] = "sees the present"
    policy: Any = None
    states: int = 1

    def begin(self, shape: Shape, model: Model) -> Any:
        """The belief of the policy about people with S states."""
        return self.policy.begin(
            shape._replace(states=self.states), model._replace(reward=model.reward[..., : self.states].copy())
        )

    def rank(self, belief: Any, state: Ints, draws: Draws) -> Ranking | Floats:
        """As the policy ranks by present states."""
        ranking: Ranking | Floats = self.policy.rank(belief, state % self.states, draws)
        return ranking

    def learn(self, belief: Any, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        """As the policy learns from present states."""
        self.policy.learn(belief, state % self.states, action, reward, after % self.states)


def make_informed(model: FittedModel) -> Informed:
    """The index policy of what a history says about each person."""
    reward = np.tile(model.value, (len(model.counts), 1))
    return Informed(whittle_indices(model.posterior_mean(), reward, INDEX_DISCOUNT).value)


def find_policy(model: FittedModel, given: str | Policy[Any]) -> Policy[Any]:
    """A policy by name: a learner, one's own file, "informed" or "as now"."""
    if given == Informed.name:
        return make_informed(model)
    if given == AsNow.name:
        return AsNow(tuple(map(float, model.logged.probability)))
    policy = make_policy(given)
    if isinstance(policy, Oracle) and not isinstance(policy, Informed):
        raise InputError(
            f"{policy.name} knows the truth, which nobody does; a forecast is of policies that learn, of "
            f"{Informed.name!r}, which ranks by what the history says, or of {AsNow.name!r}."
        )
    return policy


def gains_of_acting(transition: Floats, reward: Floats, rounds: int) -> tuple[Floats, Floats]:
    """What one action adds if nobody is acted on afterwards, [T, N, S], and the reward of acting on nobody, [N, S].

    The reward is that of arriving in a state, [N, S] or [S].

    >>> stay, climb = [[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]  # state 1 pays 1 and is never left
    >>> gain, nobody = gains_of_acting(np.array([[stay, climb]]), np.array([0.0, 1.0]), rounds=3)
    >>> gain[:, 0, 0], nobody
    (array([3., 2., 1.]), array([[0., 3.]]))
    """
    transition = np.require(transition, requirements=("C", "W"))
    agents, _, states, _ = transition.shape
    reward = np.array(np.broadcast_to(reward, (agents, states)), order="C")
    people = Agents(transition, np.empty((agents, 2, 0)), reward, np.ones(agents))
    gain, nobody = np.empty((rounds, agents, states)), np.zeros((agents, states))
    unused = np.empty((0, agents, states))
    work = Workspace(unused, gain, unused.astype(np.int64), np.empty((0, 0), np.int64), transition, unused[:, :, 0])
    backward_block(people, np.full(rounds, np.inf), nobody, work)  # nobody pays an infinite price
    return gain, nobody


def play(
    model: FittedModel,
    programs: Programs,
    threads: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    people: FittedModel | None = None,
) -> Played:
    """Play all programs on draws of the model, with the same random numbers for all of them.

    With `people`, programs start from what the model says and meet draws of that other model, which has the same states, or
    pairs of them. Progress gets the number of chunks of draws that are done, and of all chunks.
    """
    people = people or model
    (agents, _, states, _), draws = people.counts.shape, programs.draws
    runs = min(programs.runs, max(1, MAX_STEPS // (draws * agents * programs.rounds)))
    shape = len(programs.policies), len(programs.budgets), draws
    bounds = len(programs.budgets), min(draws, programs.bounds)
    lift = np.full((*shape, max(2, runs)), np.nan)
    played = Played(np.empty(draws), np.empty(shape[1:]), lift, np.empty(shape), *np.empty((2, *bounds)))
    beliefs = [
        [start_warm(model, policy, programs, budget) for budget in programs.budgets] for policy in programs.policies
    ]
    seen = programs
    if states != len(model.states):
        seen = programs._replace(policies=tuple(SeesPresent(each, len(model.states)) for each in programs.policies))
    jobs = _cut(draws, runs, fitting_runs(Shape(1, agents, states, 0, None, np.ones(1))))
    done: list[int] = []

    def work(first: int, last: int) -> None:
        for job in jobs[first:last]:
            _play_chunk(people, seen, beliefs, *job, played)
            done.append(1)
            progress(len(done), len(jobs))

    map_chunks(work, len(jobs), len(jobs), threads or available_processors())
    return played


def _cut(draws: int, runs: int, size: int) -> list[tuple[int, int, int]]:
    """Chunks of draws that fit the cache: the first, the one after the last, and how often each is played.

    >>> _cut(10, 1, 4)
    [(0, 2, 2), (2, 6, 1), (6, 10, 1)]
    """
    jobs, repeated = [], -(-draws // REPEATED_SHARE)
    for begin, end, times in ((0, repeated, max(2, runs)), (repeated, draws, runs)):
        stride = max(1, size // times)
        jobs += [(first, min(first + stride, end), times) for first in range(begin, end, stride)]
    return jobs


def _play_chunk(
    model: FittedModel, programs: Programs, beliefs: list[list[Any]], first: int, last: int, runs: int, played: Played
) -> None:
    """Play all programs on the draws from `first` up to, but not including, `last`."""
    seed, rounds, budgets = programs.seed, programs.rounds, programs.budgets
    problems = [model.problem(0, number, seed) for number in range(first, last)]
    world = World(problems, runs, seed, horizon=rounds, first_instance=first)
    draws, agents, _, states, _ = world.model.transition.shape
    flat = world.model.transition.reshape(draws * agents, 2, states, states)
    gain, nobody = gains_of_acting(flat, world.model.reward.reshape(draws * agents, states), rounds)
    gain = gain.reshape(rounds, draws, agents, states)
    start = world.model.start
    played.nobody[first:last] = (nobody.reshape(start.shape) * start).sum(axis=(1, 2))
    for b, budget in enumerate(budgets):
        for draw in range(draws):
            rows, here = world.model.transition[draw], first + draw
            played.at_random[b, here] = _lift_at_random(rows, gain[:, draw], start[draw], budget / agents)
            if here < played.bound.shape[1]:
                bound, price = _bound(rows, world.model.reward[draw], start[draw], budget, rounds)
                played.bound[b, here], played.worth[b, here] = bound - played.nobody[here], price
        for p, policy in enumerate(programs.policies):
            lift, reward = play_world(world.with_budget(budget), policy, rounds, gain, beliefs[p][b])
            played.lift[p, b, first:last, :runs] = lift.reshape(draws, runs)
            played.reward[p, b, first:last] = reward.reshape(draws, runs)[:, 0]


def play_world(
    world: World, policy: Policy[Any], rounds: int, gain: Floats, belief: Any = None
) -> tuple[Floats, Floats]:
    """The lift, counted by `gain` [T, I, N, S], and the reward of each run, [R] each.

    Each run starts from a belief of one run, if that is given.
    """
    simulation = Simulation(world, policy)
    if belief is not None:
        simulation.belief = _repeat(belief, world.shape.runs)
    lift, reward = np.zeros((2, world.shape.runs))
    for step in range(rounds):
        state, action, outcome = simulation.take_step()
        run, agent = np.nonzero(action)
        gained = gain[step, world.model.instance[run], agent, state[run, agent]]
        lift += np.bincount(run, gained, world.shape.runs)
        reward += outcome.total
    return lift, reward


def can_start_warm(policy: Policy[Any]) -> bool:
    """Whether a policy can start from a history."""
    return type(policy).warm_start is not Policy.warm_start


def start_warm(model: FittedModel, policy: Policy[Any], programs: Programs, budget: int) -> Any:
    """The belief of one run after the history, if the policy learns from it: the same for all draws."""
    if not programs.warm or not can_start_warm(policy):
        return None
    world = World(model.problem(budget), horizon=programs.rounds)
    return Simulation(world, policy, history=model).belief


def _repeat(belief: Any, runs: int) -> Any:
    """A belief of one run for so many runs."""
    arrays = {
        name: np.repeat(array, runs, axis=0) if array.ndim else array.copy() for name, array in flatten(belief).items()
    }
    return unflatten(belief, arrays)


def _lift_at_random(transition: Floats, gain: Floats, start: Floats, share: float) -> float:
    """The expected lift if everybody is acted on with the same probability in every round."""
    mass, fraction, nothing = start.copy(), np.full(start.shape, share), np.zeros(start.shape)
    total = 0.0
    for each in gain:
        total += share * float((mass * each).sum())
        propagate(transition, nothing, fraction, mass)
    return total


def _bound(transition: Floats, reward: Floats, start: Floats, budget: int, rounds: int) -> tuple[float, float]:
    """The reward that no policy can exceed, and the prices of one action in every round, summed.

    Prices are planned on evenly spaced people if there are many; any prices give a bound for all of them.
    """
    agents = len(start)
    some = np.linspace(0, agents - 1, min(agents, MAX_PLANNED)).astype(np.int64)
    share = budget * some.size / agents
    best = plan(transition[some], reward[some], share, rounds, start[some], gap=PLAN_GAP, sweeps=PLAN_SWEEPS)
    whole = best.bound if some.size == agents else bound_at(best.price, transition, reward, budget, start)
    return float(whole), float(best.price.sum())
