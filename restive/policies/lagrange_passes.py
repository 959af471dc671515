"""A step of `lagrange` whose agents are divided into partitions: what each adds up, and what follows for its agents.

Agents share few numbers: the price, the levels of the prior, the weight of rewards. Each of them follows from sums over
all agents, some of which depend on others: the variance of rewards between agents on their mean, the pool on what is
forgotten, the price on the pool. So a step is up to four passes over the agents:

    count the moves          Σ squared deviations of rewards, Σ arrivals and rewards, Σ gains of forgetting
    forget                   Σ squared deviations between agents, Σ pairs of moves
                             Σ rewards, each agent shrunk
    fill rewards, posterior  Σ net benefits after a sweep of values, from which the next price follows

`learn_in_passes` is the step of one partition: it yields sums by block and is sent the sums over all partitions
(`restive.kernels.block_sums`), so every partition ends with the same shared numbers. Kernels and formulas are those of
`Lagrange.learn`, which equals it bit for bit for every division of agents into whole blocks. A partition of one agent
that is never observed, whose sums nobody adds, follows the shared numbers.
"""

from collections.abc import Generator
from typing import NamedTuple

import numpy as np

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
from restive.kernels.mixture import learn_mixture
from restive.kernels.priced_values import next_price, price_step, sweep_values
from restive.policies.lagrange import Lagrange, LagrangeBelief, Observed, Plan, center_rewards, count_observed
from restive.types import Floats


class Pass(NamedTuple):
    """What a partition adds up in one pass."""

    parts: Floats  # [B, K] by block
    last: bool  # whether the arrays of its agents are those after the step


Passes = Generator[Pass, Floats, None]


def learn_in_passes(
    policy: Lagrange, belief: LagrangeBelief, observed: Observed, agents: int, first: bool = False
) -> Passes:
    """Learn from a step of one partition, `observed` [1, N]; yields its sums by block and is sent those of all.

    agents  the number of agents of all partitions
    first   whether it is the first partition, which adds what was summed before
    """
    before = belief.squared_deviations if first else np.zeros(1)
    squares = count_observed(*belief.counts, belief.posterior, before, observed)[0]
    plan = policy.next_step(belief)
    sweeps = policy.sweeps(belief)
    if plan is not None:
        yield from _estimate(belief, plan, squares)
        squares = squares[:, :0]
    swept = _sweep(policy, belief, observed) if sweeps else squares[:, :0]
    sums = yield Pass(np.hstack([squares, swept]), last=True)
    if plan is None:
        belief.squared_deviations[0] = sums[0]
    if sweeps:
        state = price_step(int(belief.step)), bool(belief.at_most[0]), float(belief.price[0])
        belief.price[0] = next_price(sums[squares.shape[1] :], agents, *state)


def _sweep(policy: Lagrange, belief: LagrangeBelief, observed: Observed) -> Floats:
    here = observed.state, observed.action, float(policy.discount), belief.cost, belief.value, belief.price
    parts: Floats = sweep_values(belief.posterior, belief.reward, *here)[0]
    return parts


def _estimate(belief: LagrangeBelief, plan: Plan, squares: Floats) -> Passes:
    """The passes of an estimate: rewards, and by the plan priors and what is forgotten."""
    moves, known, posterior = belief.counts.moves[0], belief.known[0], belief.posterior[0]
    arrived, reward = (belief.counts.arrivals[0], belief.counts.total[0]), belief.reward[0]
    states = reward.shape[1]
    gains = add_gains(moves, known, posterior) if plan.forget else squares[:, :0]
    sums = yield Pass(np.hstack([squares, add_arrivals(*arrived), gains]), last=False)
    belief.squared_deviations[0] = sums[0] * plan.factor
    totals = sums[1 : 1 + 4 * states].reshape(4, states)
    factor = best_factor(sums[1 + 4 * states :]) if plan.forget else plan.factor
    if factor < 1.0:
        forget(moves, known, posterior, factor)
    levels = Levels(*(level[0] for level in belief.levels))
    seen, pairs = add_pairs(moves, levels.agent_weight) if plan.prior else (squares, squares[:, :0])
    sums = yield Pass(np.hstack([add_between(*arrived, totals), pairs]), last=False)
    weight = weigh_rewards(totals, float(sums[0]), float(belief.squared_deviations[0]))
    if plan.prior:
        learn_levels(as_pairs(sums[1:], *levels.agent_weight.shape), levels)
    shrunk = yield Pass(add_shrunk(*arrived, weight), last=False)
    fill_rewards(*arrived, weight, shrunk.reshape(2, states), reward)
    center_rewards(reward)
    if plan.prior:
        prior = belief.responsibility[0], belief.weight[0], posterior
        learn_mixture(moves, seen, levels.pool, False, *prior)
    if plan.renew:
        known[:] = moves
