"""A step of `lagrange` whose agents are divided into partitions: what each adds up, and what follows for its agents.

Agents share few numbers: the price, the levels of the prior, the weight of rewards, the types of a mixture. Each of them
follows from sums over all agents, some of which depend on others: the variance of rewards between agents on their
mean, the pool on what is forgotten, the price on the pool. So a step is some passes over the agents:

    count the moves          Σ squared deviations of rewards, Σ arrivals and rewards, Σ gains of forgetting
    forget                   Σ squared deviations between agents, Σ pairs of moves
                             Σ rewards, each agent shrunk, Σ gains of the agents' own rows
    start the types          for each type, the agent that those before explain worst; only if a mixture is fitted
    M-step, for each         Σ moves by type
    E-step, iteration        Σ gains, Σ correlations of moves around the rows of types
    fill rewards, posterior  Σ net benefits after a sweep of values, from which the next price follows

`learn_in_passes` is the step of one partition: it yields what adds up sums by block and is sent the sums over all
partitions (`restive.kernels.block_sums`), so every partition ends with the same shared numbers. Kernels and formulas are
those of `Lagrange.learn`, which equals it bit for bit for every division of agents into whole blocks. A process that
repeats earlier passes from their known sums does not add them up again. A partition of one agent that is never observed,
and adds up nothing, follows the shared numbers.
"""

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from restive.kernels import mixture
from restive.kernels.block_sums import BLOCK, Nodes, climb, count_blocks, join_nodes
from restive.kernels.forgetting import add_gains, best_factor, forget
from restive.kernels.hierarchical_prior import (
    Levels,
    add_arrivals,
    add_between,
    add_pairs,
    add_shrunk,
    as_pairs,
    fill_rewards,
    learn_levels,
    weigh_rewards,
)
from restive.kernels.priced_values import next_price, price_step, sweep_values
from restive.policies.lagrange import (
    Lagrange,
    LagrangeBelief,
    Observed,
    Plan,
    add_known,
    center_rewards,
    count_observed,
)
from restive.types import Floats


class Pass(NamedTuple):
    """What a partition does in one pass."""

    add: Callable[[], Floats]  # the sums of its blocks, [B, K]; or its own candidate, [1, K]
    largest: bool = (
        False  # whether all are sent the candidate with the largest first number, and the first of equal ones
    )
    last: bool = False  # whether the arrays of its agents are those after the step, once this was added up

    def nodes(self, first: int, agents: int) -> Nodes:
        """What the partition that starts with agent `first` reports of so many agents."""
        parts = self.add()
        if self.largest:
            return Nodes(np.zeros(1, np.int64), np.array([first]), parts)
        return climb(parts, first // BLOCK, count_blocks(agents))

    def join(self, given: Sequence[Nodes], agents: int) -> Floats:
        """What all are sent, from the reports of all partitions in order."""
        if self.largest:
            return max((nodes.sums[0] for nodes in given), key=lambda candidate: float(candidate[0]))
        return join_nodes(given, count_blocks(agents))


Passes = Generator[Pass, Floats, None]


def learn_in_passes(
    policy: Lagrange, belief: LagrangeBelief, observed: Observed, agents: int, first: bool = False
) -> Passes:
    """Learn from a step of one partition, `observed` [1, N].

    agents  the number of agents of all partitions
    first   whether it is the first partition, which adds what was summed before
    """
    before = belief.squared_deviations if first else np.zeros(1)
    squares: Floats = count_observed(*belief.counts, belief.posterior, before, observed)[0]
    plan = policy.next_step(belief)
    sweeps = policy.sweeps(belief)
    if plan is not None:
        yield from _estimate(belief, plan, squares, agents, first)
        squares = squares[:, :0]

    def sweep() -> Floats:
        if not sweeps:
            return squares
        here = observed.state, observed.action, float(policy.discount), belief.cost, belief.value, belief.price
        swept: Floats = sweep_values(belief.posterior, belief.reward, *here)[0]
        return np.hstack([squares, swept])

    sums = yield Pass(sweep, last=True)
    if plan is None:
        belief.squared_deviations[0] = sums[0]
    if sweeps:
        state = price_step(int(belief.step)), bool(belief.at_most[0]), float(belief.price[0])
        belief.price[0] = next_price(sums[squares.shape[1] :], agents, *state)


def welcome_in_passes(policy: Lagrange, belief: LagrangeBelief, agents: int) -> Passes:
    """Welcome newcomers to partitions of so many agents; the agent that follows the shared numbers becomes one of them."""
    arrived, reward = (belief.counts.arrivals[0], belief.counts.total[0]), belief.reward[0]
    states = reward.shape[1]
    sums = yield Pass(lambda: np.hstack([add_arrivals(*arrived), add_known(belief, 0, len(reward))]))
    totals, known = sums[: 4 * states].reshape(4, states), sums[4 * states :]
    between = yield Pass(lambda: add_between(*arrived, totals))
    weight = weigh_rewards(totals, float(between[0]), float(belief.squared_deviations[0]))
    shrunk = yield Pass(lambda: add_shrunk(*arrived, weight))
    fill_rewards(*arrived, weight, shrunk.reshape(2, states), reward)
    center_rewards(reward)
    policy.introduce(belief, 1, known[None] / agents)


def _estimate(belief: LagrangeBelief, plan: Plan, squares: Floats, agents: int, first: bool) -> Passes:
    """The passes of an estimate: rewards, and by the plan priors and what is forgotten."""
    moves, known, posterior = belief.counts.moves[0], belief.known[0], belief.posterior[0]
    arrived, reward = (belief.counts.arrivals[0], belief.counts.total[0]), belief.reward[0]
    states, nothing = reward.shape[1], squares[:, :0]
    used = np.full((len(squares), 1), belief.responsibility[0, 0].any())

    def add_totals() -> Floats:
        gains = add_gains(moves, known, posterior) if plan.forget else nothing
        return np.hstack([squares, used, add_arrivals(*arrived), gains])

    sums = yield Pass(add_totals)
    belief.squared_deviations[0] = sums[0] * plan.factor
    mixed, totals = sums[1] > 0.0, sums[2 : 2 + 4 * states].reshape(4, states)
    factor = best_factor(sums[2 + 4 * states :]) if plan.forget else plan.factor
    if factor < 1.0:
        forget(moves, known, posterior, factor)
    levels = Levels(*(level[0] for level in belief.levels))
    seen, pairs = add_pairs(moves, levels.agent_weight) if plan.prior else (nothing, nothing)
    sums = yield Pass(lambda: np.hstack([add_between(*arrived, totals), pairs]))
    weight = weigh_rewards(totals, float(sums[0]), float(belief.squared_deviations[0]))
    if plan.prior:
        learn_levels(as_pairs(sums[1:], *levels.agent_weight.shape), levels)
    fit = _Fit(belief, moves, seen, levels.pool, mixed, plan.search, first) if plan.prior else None
    sums = yield Pass(lambda: np.hstack([add_shrunk(*arrived, weight), fit.add_evidence() if fit else nothing]))
    fill_rewards(*arrived, weight, sums[: 2 * states].reshape(2, states), reward)
    center_rewards(reward)
    if fit:
        yield from fit.learn(sums[2 * states :], agents)
    if plan.renew:
        known[:] = moves


class _Fit:
    """`restive.kernels.mixture.learn_mixture` in passes.

    Responsibilities follow from the moves of an agent and from shared numbers, so only those that a pass needs are filled.
    """

    def __init__(
        self, belief: LagrangeBelief, moves: Floats, seen: Floats, pool: Floats, used: bool, search: bool, first: bool
    ) -> None:
        self.moves, self.seen, self.pool, self.used, self.search = moves, seen, pool, used, search and not used
        self.responsibility, self.weight, self.posterior = (
            array[0] for array in (belief.responsibility, belief.weight, belief.posterior)
        )
        self.row, self.first = mixture.divide_pool(pool, used, self.weight), first

    def add_evidence(self) -> Floats:
        """What decides whether a mixture is fitted and used; nothing if none is in use or to be fitted."""
        if not self.used and not self.search:
            return np.zeros((count_blocks(len(self.moves)), 0))
        return mixture.add_evidence(self._find_gains() if self.search else np.zeros(0), self.seen)

    def learn(self, evidence: Floats, agents: int) -> Passes:
        """Update the mixture, or fit one, given the sums of the evidence."""
        used, iterations, required, rows = self.used, 1, 0.0, np.zeros((*self.row.shape, mixture.N_TYPES))
        fill: Callable[[], object] = _keep
        if used or self.search:
            required = mixture.find_required(evidence, *self.weight.shape)
        if self.search and evidence[1] > required:
            used, iterations, firsts = True, mixture.INITIAL_ITERATIONS, list[Floats]()
            for _ in range(mixture.N_TYPES):
                agent = yield Pass(partial(self._find_worst, firsts), largest=True)
                moves, seen = np.split(agent[1:], [self.row.size])
                shaped = moves.reshape(self.row.shape), seen.reshape(self.weight.shape)
                firsts.append(mixture.compare_with_pool(*shaped, self.row, self.weight))
            fill = partial(self._start_types, firsts, self.weight.copy())
        gain = 0.0
        for left in range(iterations - 1, -1, -1) if used else ():
            before, weight = gain, self.weight.copy()
            types = mixture.find_types((yield Pass(partial(self._add_types, fill, weight))), agents, self.row)
            fill, rows = partial(self._e_step, types, weight), types.rows
            sums = yield Pass(partial(self._add_gains, types, weight))
            gain = float(sums[0])
            mixture.update_weight(sums[1:], self.weight)
            if mixture.is_hopeless(gain, before, left, iterations, required):
                break
        fill()
        used = used and gain > required
        mixture.fill_posterior(self.moves, self.pool, rows, used, self.responsibility, self.weight, self.posterior)

    def _find_gains(self) -> Floats:
        return mixture.find_gains(self.moves, self.seen, self.row, self.weight)

    def _explain(self, firsts: Sequence[Floats], weight: Floats) -> Floats:
        """Compare all agents with the first ones of types."""
        explained = np.zeros(len(self.moves))
        for k, log_ratio in enumerate(firsts):
            mixture.explain(self.moves, self.seen, weight, log_ratio, k, self.responsibility, explained)
        return explained

    def _find_worst(self, firsts: Sequence[Floats]) -> Floats:
        """The agent that the types so far explain worst: by how much, its moves, and how often it was where."""
        left = self._find_gains() - self._explain(firsts, self.weight)
        n = int(np.argmax(left))
        return np.concatenate([left[n : n + 1], self.moves[n].ravel(), self.seen[n].ravel()])[None]

    def _start_types(self, firsts: Sequence[Floats], weight: Floats) -> None:
        self._explain(firsts, weight)
        mixture.normalise(self.responsibility)

    def _add_types(self, fill: Callable[[], object], weight: Floats) -> Floats:
        fill()
        return mixture.add_types(self.moves, self.seen, self.row, self.responsibility, weight, self.first)

    def _e_step(self, types: mixture.Types, weight: Floats) -> Floats:
        return mixture.e_step(self.moves, self.seen, types, weight, self.responsibility)

    def _add_gains(self, types: mixture.Types, weight: Floats) -> Floats:
        gains = self._e_step(types, weight)
        around = types.rows, self.responsibility, weight, self.first
        return np.hstack([gains, mixture.add_correlations(self.moves, self.seen, *around)])


def _keep() -> None:
    """Leave the responsibilities as they are."""
