"""Simulated references of what a learner could reach: policies that know the family that the agents were drawn from.

Both know the true rewards and the distribution of agents, and follow the Whittle indices of the posterior mean of each
agent's transitions (certainty equivalence, discount 0.9 as the Whittle oracle):

    full information   every step every agent shows a draw of its next state under BOTH actions
    informed prior     only the moves that were played are observed

The first is what estimation alone costs. Neither is a bound: certainty equivalence is not the best use of a posterior,
and the informed prior does not explore on purpose. Priors are as simple as the family allows:

    Dirichlet   exact for rows that are uniform on the simplex; for normalised uniform rows its weight has their variance
    sample      agents drawn from the family with another seed, weighted by the likelihood of an agent's moves; if the
                states of an agent are drawn independently, each state has its own weights
    own types   few-types-v1: the types of the instance itself, which is generous; the type of an agent is unknown

Indices are computed in each of the first ten steps, and then whenever the number of steps has grown by a twentieth.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from restive.contract import Draws, Model, Shape
from restive.files import Columns
from restive.kernels import rng
from restive.paper.tasks.simulation import follow, recorded_steps
from restive.policies.base import Oracle
from restive.policies.index_table import look_up
from restive.problems import make_problems
from restive.solvers.whittle import whittle_indices
from restive.types import Floats, Ints
from restive.world import World

EXACT_DIRICHLET = ("two-state-v1", "many-state-v1", "own-rewards-v1")
MATCHED_DIRICHLET = ("normalized-rows-v1",)
INDEPENDENT_STATES = ("sticky-v1", "harmful-v1", "helpful-v1", "ladder-v1")
OWN_TYPES = ("few-types-v1",)
SAMPLE_INSTANCES, SAMPLE_AGENTS = 10, 100
SEED_SHIFT = 1_000_003  # from the seed of the instances to that of the sample
GROWTH = 1.05
DISCOUNT = 0.9
TINY = 1e-30  # instead of 0 in a logarithm
BLOCK = 4  # agents: products so small start no threads of BLAS, which would compete with those of the jobs
NEGLIGIBLE = -40.0  # relative log-likelihood of agents that no longer count


class Prior(Protocol):
    """What is known of an agent before its first move."""

    def mean(self, moves: Floats) -> Floats:
        """The posterior mean of the transitions after these moves, both [n, A, S, S]."""


class DirichletPrior(NamedTuple):
    """Independent rows with the same weight in every cell."""

    weight: float

    def mean(self, moves: Floats) -> Floats:
        """(weight + moves) / Σ (weight + moves), row by row."""
        weighted = moves + self.weight
        rows: Floats = weighted / weighted.sum(axis=-1, keepdims=True)
        return rows


class SamplePrior(NamedTuple):
    """M agents, equally likely unless they have weights."""

    agents: Floats  # [M, A, S, S]
    share: Floats  # [M]
    by_state: bool  # whether states are independent

    def mean(self, moves: Floats) -> Floats:
        """The mean of the sampled agents, weighted by share · Π agents^moves."""
        if not self.by_state:
            return self._weigh(moves, self.agents)
        states = moves.shape[2]
        parts = [self._weigh(moves[:, :, [s]], self.agents[:, :, [s]]) for s in range(states)]
        return np.concatenate(parts, axis=2)

    def _weigh(self, moves: Floats, agents: Floats) -> Floats:
        flat = agents.reshape(len(agents), -1).astype(np.float32)  # enough, and twice as fast
        blocks = -(-len(moves) // BLOCK)
        counts = np.zeros((blocks * BLOCK, flat.shape[1]), np.float32)
        counts[: len(moves)] = moves.reshape(len(moves), -1)
        likelihood = counts.reshape(blocks, BLOCK, -1) @ np.log(np.maximum(flat, TINY)).T
        likelihood += np.log(self.share, dtype=np.float32)
        likelihood -= likelihood.max(axis=-1, keepdims=True)
        # Products with numbers that are nearly 0 are a hundred times as slow as others.
        likelihood[likelihood < NEGLIGIBLE] = -np.inf
        mean = (np.exp(likelihood) @ flat).reshape(-1, *agents.shape[1:])[: len(moves)].astype(np.float64)
        rows: Floats = mean / mean.sum(axis=-1, keepdims=True)
        return rows


def match_dirichlet(rows: Floats) -> DirichletPrior:
    """The symmetric Dirichlet distribution with the mean variance of the cells of these rows, [..., S].

    S · weight + 1 = m (1 − m) / variance,  m = 1 / S
    """
    states = rows.shape[-1]
    variance = float(np.square(rows - 1 / states).mean())
    return DirichletPrior(((states - 1) / states**2 / variance - 1) / states)


def sample_agents(family: str, sizes: Mapping[str, int]) -> Floats:
    """Agents of the family that are not among its instances of this seed, [M, A, S, S]."""
    seed = (sizes["seed"] + SEED_SHIFT) % rng.MAX_SEED
    drawn = make_problems(family, instances=SAMPLE_INSTANCES, agents=SAMPLE_AGENTS, budget=1, seed=seed)
    return np.concatenate([problem.transition for problem in drawn])


def make_prior(family: str, sizes: Mapping[str, int]) -> Prior | None:
    """The prior of a family; None if each instance has its own."""
    if family in OWN_TYPES:
        return None
    if family in EXACT_DIRICHLET:
        return DirichletPrior(1.0)
    agents = sample_agents(family, sizes)
    if family in MATCHED_DIRICHLET:
        return match_dirichlet(agents)
    return weigh_sample(agents, family in INDEPENDENT_STATES)


def weigh_sample(agents: Floats, by_state: bool = False) -> SamplePrior:
    """A prior from these agents, equal ones only once with their share."""
    distinct, counts = np.unique(agents, axis=0, return_counts=True)
    return SamplePrior(distinct, counts / len(agents), by_state)


class InformedBelief(NamedTuple):
    """Moves, indices of the posterior mean, and the true model."""

    moves: Floats  # [R, N, A, S, S]
    indices: Floats  # [R, N, S]
    shown: Ints  # [R, N, A] the drawn next state under each action, with full information
    due: Ints  # [] the step at which indices are computed next
    cumulative: Floats  # [I, N, A, S, S]
    reward: Floats  # [I, N, S]
    types: Floats  # [I, N, A, S, S] the agents of each instance, for a prior of its own
    instance: Ints  # [R]


@dataclass(frozen=True)
class Informed(Oracle[InformedBelief]):
    """Whittle indices of the posterior mean under the prior of the family."""

    name: ClassVar[str] = "informed"
    prior: object = None  # a Prior; None for the agents of each instance
    full: bool = False

    def start(self, shape: Shape, model: Model) -> InformedBelief:
        """No moves."""
        cells = (shape.runs, shape.agents)
        return InformedBelief(
            moves=np.zeros((*cells, 2, shape.states, shape.states)),
            indices=np.zeros((*cells, shape.states)),
            shown=np.zeros((*cells, 2), np.int64),
            due=np.zeros((), np.int64),
            cumulative=np.cumsum(model.transition, axis=-1),
            reward=model.reward,
            types=model.transition,
            instance=model.instance,
        )

    def rank(self, belief: InformedBelief, state: Ints, draws: Draws) -> Floats:
        """The indices; with full information also draw what both actions would lead to, which is learned afterwards."""
        if draws.step >= belief.due:
            self._plan(belief)
            belief.due[...] = max(draws.step + 1, int(np.ceil(GROWTH * draws.step)) if draws.step > 10 else 0)
        if self.full:
            for action in (0, 1):
                rows = belief.cumulative[belief.instance[:, None], np.arange(state.shape[1]), action, state]
                drawn = draws.uniform(rng.OWN + action)[..., None] >= rows[..., :-1]
                belief.shown[..., action] = drawn.sum(axis=-1)
        return look_up(belief.indices, np.arange(len(state)), state)

    def learn(self, belief: InformedBelief, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        """Count the move, and with full information also the one that the other action would have led to."""
        run, agent = np.ogrid[: state.shape[0], : state.shape[1]]
        belief.moves[run, agent, action, state, after] += 1
        if self.full:
            belief.moves[run, agent, 1 - action, state, belief.shown[run, agent, 1 - action]] += 1

    def _plan(self, belief: InformedBelief) -> None:
        for i, (types, reward) in enumerate(zip(belief.types, belief.reward, strict=True)):
            runs = np.flatnonzero(belief.instance == i)
            moves = belief.moves[runs]
            prior: Prior = weigh_sample(types) if self.prior is None else self.prior  # type: ignore[assignment]
            mean = prior.mean(moves.reshape(-1, *moves.shape[2:]))
            rewards = np.broadcast_to(reward, (len(runs), *reward.shape)).reshape(len(mean), -1)
            indices = whittle_indices(mean, rewards, DISCOUNT, threads=1).value
            belief.indices[runs] = indices.reshape(len(runs), *reward.shape)


def reference(family: str, sizes: Mapping[str, int], horizon: int, runs: int, seed: int, full: bool) -> Columns:
    """Simulate a policy that knows the prior of the family, with full information or with what it played."""
    world = World(make_problems(family, **sizes), runs, seed, horizon=horizon)
    return follow(world, Informed(make_prior(family, sizes), full), recorded_steps(horizon))
