"""Limits: the policy that WIQL tends to, and Whittle's policy as the number of equal agents grows.

WIQL learns Q* of each agent by itself, without a price for acting, so it tends to ranking by Q*(s, 1) − Q*(s, 0):

    Q*(s, a) = Σ_t transition[a, s, t] · (reward[t] + discount · max_b Q*(t, b))

For N equal agents with S states the joint state is the counts of agents in each state. An index policy serves the
states in the order of their indices. The distribution of the next counts is a product of multinomials, by Fourier
transforms; the stationary distribution of this chain gives the average reward, and a linear program over the occupancy
of one agent the bound that no policy can exceed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np

from restive.contract import Model, Shape
from restive.files import Columns
from restive.paper.tasks.simulation import follow, recorded_steps
from restive.policies.index_table import TableOracle
from restive.problems import make_problems
from restive.solvers.myopic import phi
from restive.solvers.whittle import whittle_indices
from restive.types import Floats, Ints
from restive.world import World

TOLERANCE = 1e-10


def action_values(transition: Floats, reward: Floats, discount: float) -> Floats:
    """Q* [..., S, A] of agents with transition [..., A, S, S] and reward [..., S], by value iteration.

    >>> stay, leave = [[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]
    >>> action_values(np.array([stay, leave]), np.array([0.0, 1.0]), 0.5)  # to be in state 1 for ever is worth 2
    array([[1., 2.],
           [2., 1.]])
    """
    now = phi(transition, reward)
    values, before = now, np.full_like(now, np.inf)
    while np.abs(values - before).max() > TOLERANCE:
        best = values.max(axis=-1)
        before, values = values, now + discount * phi(transition, best)
    return values


@dataclass(frozen=True)
class ActionValueOracle(TableOracle):
    """Rank by Q*(s, 1) − Q*(s, 0) of each agent without a price for acting."""

    name: ClassVar[str] = "action-value-oracle"
    discount: float = 0.9

    def tabulate(self, shape: Shape, model: Model) -> Floats:
        """The difference of the action values."""
        values = action_values(model.transition, model.reward, self.discount)
        difference: Floats = values[..., 1] - values[..., 0]
        return difference


def wiql_limit(family: str, sizes: Mapping[str, int], discount: float, horizon: int, runs: int, seed: int) -> Columns:
    """Simulate the policy that WIQL with this discount tends to."""
    world = World(make_problems(family, **sizes), runs, seed, horizon=horizon)
    return follow(world, ActionValueOracle(discount=discount), recorded_steps(horizon))


def many_equal_agents(agents: int, share: float, states: int, types: int, seed: int) -> Columns:
    """Average rewards per agent of Whittle's policy and of random choice, and the bound, for random types of agents."""
    (problem,) = make_problems("many-state-v1", agents=types, budget=0, states=states, seed=seed)
    indices = whittle_indices(problem.transition, problem.reward, discount=1.0)
    budget = round(share * agents)
    rows = []
    for kind in np.flatnonzero(indices.indexable):
        transition, reward = problem.transition[kind], problem.reward[kind]
        served = average_reward(transition, reward, indices.value[kind], agents, budget)
        mixed = (1 - share) * transition[0] + share * transition[1]
        rows.append((kind, served, _stationary(mixed) @ reward, occupancy_bound(transition, reward, share)))
    columns = np.array(rows).T
    names = ("type", "whittle", "random", "bound")
    return dict(zip(names, columns, strict=True))


def average_reward(transition: Floats, reward: Floats, index: Floats, agents: int, budget: int) -> float:
    """The average reward per agent of acting on `budget` of N equal agents in the order of their state's index."""
    counts = _list_counts(agents, reward.size)
    acted = _serve(counts, index, budget)
    probability = _move_counts(transition, counts, acted, agents)
    return float(_stationary(probability) @ (counts @ reward)) / agents


def _list_counts(agents: int, states: int) -> Ints:
    """All counts of agents in each state that sum to N, [K, S]."""
    first = (counts for counts in product(range(agents + 1), repeat=states - 1) if sum(counts) <= agents)
    return np.array([(*counts, agents - sum(counts)) for counts in first])


def _serve(counts: Ints, index: Floats, budget: int) -> Ints:
    """The agents acted on in each state, [K, S], highest index first.

    >>> _serve(np.array([[2, 3]]), np.array([0.1, 0.9]), budget=4)
    array([[1, 3]])
    """
    acted, left = np.zeros_like(counts), np.full(len(counts), budget)
    for state in np.argsort(-index, kind="stable"):
        acted[:, state] = np.minimum(counts[:, state], left)
        left -= acted[:, state]
    return acted


def _move_counts(transition: Floats, counts: Ints, acted: Ints, agents: int) -> Floats:
    """The probabilities of the next counts, [K, K], through their characteristic functions."""
    states = counts.shape[1]
    waves = np.exp(-2j * np.pi * np.arange(agents + 1) / (agents + 1))
    axes = np.meshgrid(*[waves] * (states - 1), indexing="ij")
    point = np.stack([*axes, np.ones_like(axes[0])])  # the last state needs no count of its own
    one = np.tensordot(transition, point, axes=1)  # [A, S, ...]
    powers = one[None] ** np.arange(agents + 1).reshape(-1, *[1] * one.ndim)  # [N + 1, A, S, ...]
    places = tuple(counts[:, state] for state in range(states - 1))
    rows = []
    for total, served in zip(counts, acted, strict=True):
        factors = [powers[served[s], 1, s] * powers[total[s] - served[s], 0, s] for s in range(states)]
        rows.append(np.fft.ifftn(np.prod(factors, axis=0)).real[places])
    return np.array(rows)


def _stationary(probability: Floats) -> Floats:
    """The stationary distribution of a chain with one closed class.

    >>> _stationary(np.array([[0.5, 0.5], [0.25, 0.75]])).round(6)
    array([0.333333, 0.666667])
    """
    size = len(probability)
    balance = probability.T - np.eye(size)
    balance[-1] = 1.0
    distribution: Floats = np.linalg.solve(balance, np.eye(size)[-1])
    return distribution


def occupancy_bound(transition: Floats, reward: Floats, share: float) -> float:
    """The largest average reward of one agent that is acted on in a `share` of the steps: a linear program."""
    from scipy.optimize import linprog

    states = reward.size
    flow = np.concatenate([np.eye(states) - transition[0].T, np.eye(states) - transition[1].T], axis=1)
    total, acting = np.ones(2 * states), np.repeat([0.0, 1.0], states)
    equal = np.vstack([flow[:-1], total, acting])
    found = linprog(-np.tile(reward, 2), A_eq=equal, b_eq=[*np.zeros(states - 1), 1.0, share])
    return -float(found.fun)
