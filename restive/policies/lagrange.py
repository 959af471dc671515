"""`lagrange`: a price for the action, values of a shared model at that price, and a little curiosity. Our own.

For each agent it keeps counts of moves, and for all agents a prior that says what their rows have in common and how far
they differ, learnt from the data (`restive.kernels.hierarchical_prior`), with kinds of agents
where a few kinds explain the moves
(`restive.kernels.mixture`). Values are not planned anew but kept: every second step each agent's take one sweep of value
iteration under the mean of its posterior, in which acting costs a price that all agents share:

    worth(s)  = reward(s) + discount · max(wait(s), act(s) − price)   of arriving in s, relative to the other states
    wait(s)   = Σ_t row(t) · worth(t),  row = posterior / Σ posterior, posterior = prior + moves; act(s) likewise
    priority  = act(s) − price − wait(s) + curiosity · own · error · luck
    error²    = what the posterior leaves open of act(s) − wait(s): Var_row(worth) / (Σ posterior + 1) of both rows
    own       = Σ moves / Σ posterior of both rows: how much of what is known of the agent is its own
    luck      a number of mean 0 and variance 1, fresh for each agent and step

An agent that is often in a state will profit often from what is learnt there: so its own moves make it worth exploring.
The price rises while more agents are worth it in their states than were acted on, and falls while fewer are.
The horizon is not used. Rewards are estimated for each agent, drawn towards those of all as far as agents are alike.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from restive.contract import Draws, Estimate, Shape
from restive.kernels import rng
from restive.kernels.hierarchical_prior import learn_pool, learn_rewards
from restive.kernels.jit import compiled
from restive.kernels.mixture import KINDS, learn_kinds
from restive.kernels.rng import bell, fold
from restive.policies.base import Learner, check_setting
from restive.policies.transition_counts import Counts, no_counts
from restive.types import Floats, Ints, Keys

# What agents share is estimated after each of the first steps, then whenever the steps have grown by a twelfth.
OFTEN = 12
# Kinds are sought after this many steps, and where there are none again after twice as many.
FIRST_SEARCH = 50
# Values are swept in every step at first, then in every second one; the price follows at this pace, slowing down.
EVERY_STEP = 20
PACE, SLOWING = 0.6, 0.02
# Agents that are alike differ by how sums were rounded. A trace of luck parts them, and so small a gain is none.
TRACE, ROUNDING = 1e-6, 1e-12
# The state of an agent that was not seen in a step: below 0, which is how kernels tell.
UNSEEN = -1
# Ranking alone asks for no estimates.
NO_PARTS = np.empty((3, 0, 0))


class Market(NamedTuple):
    """What was seen, what agents share, and what arriving and acting are worth."""

    counts: Counts
    spread: Floats  # [R] squared deviations of rewards from the mean of their agent and state, added up
    pool: Floats  # [R, A, S, S] what all agents have in common, as pseudo-counts
    share: Floats  # [R, N, K] how likely each agent is of each kind, 0 where no kinds are used
    weight: Floats  # [R, A, S] how many moves the prior row is worth to an agent
    posterior: Floats  # [R, N, A, S, S] moves, and pseudo-counts from the agent's kinds or from the pool
    reward: Floats  # [R, N, S] as estimated, relative to the other states
    worth: Floats  # [R, N, S] of arriving in a state, relative to the other states
    price: Floats  # [R] of an action
    step: Ints  # [] how many steps were learnt from
    due: Ints  # [] after how many of them what agents share is estimated next
    search: Ints  # [] after how many of them kinds are sought next


@dataclass(frozen=True)
class Lagrange(Learner[Market]):
    """Who gains most from acting beyond its price, under a model that agents share as far as they are alike."""

    name: ClassVar[str] = "lagrange"
    agent_axes: ClassVar[Mapping[str, int | None]] = {"pool": None, "weight": None}
    discount: float = 0.95
    curiosity: float = 0.5
    prior: float | None = None
    kinds: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_setting(0 <= self.discount < 1, self, "discount", "from 0 to below 1")
        check_setting(0 <= self.curiosity <= 1e6, self, "curiosity", "from 0 to 1e6, how much of the error is luck")
        sane = self.prior is None or 0 < self.prior <= 1e9
        check_setting(
            sane, self, "prior", "above 0 and at most 1e9, the weight of each unseen move, or None to learn it"
        )

    def start(self, shape: Shape) -> Market:
        """Nothing seen, acting is free."""
        runs, agents, states = shape.runs, shape.agents, shape.states
        rows, unseen = (2, states, states), 1.0 if self.prior is None else float(self.prior)
        return Market(
            counts=no_counts(shape),
            spread=np.zeros(runs),
            pool=np.ones((runs, *rows)),
            share=np.zeros((runs, agents, KINDS)),
            weight=np.full((runs, 2, states), unseen * states),
            posterior=np.full((runs, agents, *rows), unseen),
            reward=np.zeros((runs, agents, states)),
            worth=np.zeros((runs, agents, states)),
            price=np.zeros(runs),
            step=np.array(0),
            due=np.array(1),
            search=np.array(FIRST_SEARCH),
        )

    def rank(self, belief: Market, state: Ints, draws: Draws) -> Floats:
        """By the gain from acting beyond its price, with some luck where little is known."""
        return self._rank(belief, state, draws.branch(rng.POSTERIOR), draws.agents, NO_PARTS)

    def estimate(self, belief: Market, state: Ints) -> Estimate:
        """What acting leads to beyond waiting, as `rank` has it: priority = benefit − price + luck · bell.

        Before the first step all values are 0, and so is the error by their formula; it is infinite in truth.
        """
        runs, agents = state.shape
        parts = np.empty((3, runs, agents))
        self._rank(belief, state, np.zeros(runs, np.uint64), np.arange(agents), parts)
        benefit, error, luck = parts
        return Estimate(benefit, error if belief.step > 0 else np.full(state.shape, np.inf), luck)

    def _rank(self, belief: Market, state: Ints, keys: Keys, agents: Ints, parts: Floats) -> Floats:
        priority = np.empty(state.shape)
        _rank(
            belief.posterior, belief.weight, belief.worth, belief.price, state, float(self.curiosity), keys, agents,
            priority, parts,
        )  # fmt: skip
        return priority

    def learn_some(self, belief: Market, agents: Ints, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        """Learn from all agents, of whom those not among `agents` were in no state: only their values are swept."""
        runs, everyone = belief.worth.shape[:2]
        if agents.size == everyone:
            return self.learn(belief, state, action, reward, after)
        unseen = (np.full((runs, everyone), UNSEEN) for _ in range(3))
        full = (*unseen, np.zeros((runs, everyone)))
        for place, part in zip(full, (state, action, after, reward), strict=True):
            place[:, agents] = part
        self.learn(belief, full[0], full[1], full[3], full[2])

    def learn(self, belief: Market, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        """Count, sweep the values, let the price follow; now and then see again what agents share."""
        _learn(*belief.counts, belief.posterior, belief.spread, state, action, reward, after)
        belief.step[...] += 1
        step = int(belief.step)
        if step >= belief.due:
            belief.due[...] = step + max(1, step // OFTEN)
            _estimate_rewards(belief.counts.arrivals, belief.counts.total, belief.spread, belief.reward)
            if self.prior is None:
                self._learn_prior(belief)
        if step < EVERY_STEP or step % 2 == 0:
            pace = PACE / (1.0 + SLOWING * step)
            _sweep(
                belief.posterior, belief.reward, state, action, float(self.discount), pace, belief.worth, belief.price
            )

    def welcome(self, belief: Market, newcomers: int) -> None:
        """Newcomers begin with what the others have taught: the prior, pooled rewards, and the mean worth of states."""
        veterans = belief.worth.shape[1] - newcomers
        if belief.step == 0 or veterans == 0:
            return
        belief.worth[:, veterans:] = belief.worth[:, :veterans].mean(axis=1, keepdims=True)
        reward = belief.reward.copy()
        _estimate_rewards(belief.counts.arrivals, belief.counts.total, belief.spread, reward)
        belief.reward[:, veterans:] = reward[:, veterans:]
        if self.prior is None:
            belief.share[:, veterans:] = belief.share[:, :veterans].mean(axis=1, keepdims=True)
            belief.posterior[:, veterans:] = _prior_rows(belief, veterans)[:, None]

    def _learn_prior(self, belief: Market) -> None:
        seek = self.kinds and bool(belief.step >= belief.search)
        if seek:
            belief.search[...] = 2 * belief.step
        _share(belief.counts.moves, belief.pool, seek, belief.share, belief.weight, belief.posterior)


def _prior_rows(belief: Market, veterans: int) -> Floats:
    """Pseudo-counts for an agent of whom nothing is known, [R, A, S, S]: the pool, or kinds as common as they are."""
    weight = belief.weight[..., None]
    pooled = weight * belief.pool / belief.pool.sum(axis=-1, keepdims=True)
    moves, posterior = belief.counts.moves[:, :veterans], belief.posterior[:, :veterans]
    # The rows of kinds are not kept, but they are what the posterior has beyond the moves, up to rounding.
    mixed = np.maximum(posterior.mean(axis=1) - moves.mean(axis=1), TRACE * pooled)
    mixed *= weight / mixed.sum(axis=-1, keepdims=True)
    used = belief.share[:, 0].sum(axis=-1) > 0.0
    rows: Floats = np.where(used[:, None, None, None], mixed, pooled)
    return rows


@compiled
def _rank(
    posterior: Floats, weight: Floats, worth: Floats, price: Floats, state: Ints, curiosity: float, keys: Keys,
    agents: Ints, priority: Floats, parts: Floats,
) -> None:  # fmt: skip
    """Fill the priorities and, where `parts` is [3, R, N] and not empty, benefit, error and luck that they are of."""
    asked = parts.size > 0
    for r in range(state.shape[0]):
        for n in range(state.shape[1]):
            s = state[r, n]
            waited, acted, wait, act, wait_square, act_square = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for t in range(worth.shape[2]):
                there = worth[r, n, t]
                low, high = posterior[r, n, 0, s, t], posterior[r, n, 1, s, t]
                waited, wait, wait_square = waited + low, wait + low * there, wait_square + low * there * there
                acted, act, act_square = acted + high, act + high * there, act_square + high * there * there
            wait, act = wait / waited, act / acted
            error = max(wait_square / waited - wait * wait, 0.0) / (waited + 1.0)
            error += max(act_square / acted - act * act, 0.0) / (acted + 1.0)
            own = max(1.0 - (weight[r, 0, s] + weight[r, 1, s]) / (waited + acted), TRACE)
            luck = curiosity * own * np.sqrt(error)
            priority[r, n] = act - price[r] - wait + luck * bell(fold(keys[r], agents[n]))
            if asked:
                parts[0, r, n], parts[1, r, n], parts[2, r, n] = act - wait, np.sqrt(error), luck


@compiled
def _sweep(
    posterior: Floats, reward: Floats, state: Ints, action: Ints, discount: float, pace: float, worth: Floats,
    price: Floats,
) -> None:  # fmt: skip
    """One sweep of value iteration for all agents; the price follows how many of them are worth it."""
    runs, agents, states = worth.shape
    best, gain = np.empty(states), np.empty(states)
    for r in range(runs):
        seen, acted, above, size = 0, 0, 0, 0.0
        for n in range(agents):
            mean = 0.0
            for s in range(states):
                waited, acting, wait, act = 0.0, 0.0, 0.0, 0.0
                for t in range(states):
                    there = worth[r, n, t]
                    low, high = posterior[r, n, 0, s, t], posterior[r, n, 1, s, t]
                    waited, wait = waited + low, wait + low * there
                    acting, act = acting + high, act + high * there
                wait, act = wait / waited, act / acting - price[r]
                best[s], gain[s] = max(wait, act), act - wait
                mean += best[s]
            mean /= states
            for s in range(states):
                worth[r, n, s] = reward[r, n, s] + discount * (best[s] - mean)
            here = state[r, n]
            if here >= 0:
                seen += 1
                acted += action[r, n]
                above += gain[here] > ROUNDING * (abs(price[r]) + abs(worth[r, n, here]))
                size += abs(gain[here])
        # When all were seen, acting on nobody or on everybody says nothing of what an action is worth.
        if 0 < seen < agents or 0 < acted < agents:
            price[r] += pace * size / seen * (above - acted) / agents


@compiled
def _learn(
    moves: Floats, arrivals: Floats, total: Floats, posterior: Floats, spread: Floats, state: Ints, action: Ints,
    reward: Floats, after: Ints,
) -> None:  # fmt: skip
    for r in range(state.shape[0]):
        for n in range(state.shape[1]):
            here, done, there = state[r, n], action[r, n], after[r, n]
            if here < 0:
                continue
            seen = arrivals[r, n, there]
            if seen > 0.0:
                spread[r] += (reward[r, n] - total[r, n, there] / seen) ** 2 * seen / (seen + 1.0)
            moves[r, n, done, here, there] += 1.0
            posterior[r, n, done, here, there] += 1.0
            arrivals[r, n, there] += 1.0
            total[r, n, there] += reward[r, n]


@compiled
def _estimate_rewards(arrivals: Floats, total: Floats, spread: Floats, reward: Floats) -> None:
    for r in range(arrivals.shape[0]):
        learn_rewards(arrivals[r], total[r], spread[r], reward[r])
        for n in range(arrivals.shape[1]):
            # Only differences matter, and squares of what all states have in common would drown them.
            reward[r, n] -= reward[r, n].mean()


@compiled
def _share(moves: Floats, pool: Floats, seek: bool, share: Floats, weight: Floats, posterior: Floats) -> None:
    for r in range(moves.shape[0]):
        learn_pool(moves[r], pool[r])
        learn_kinds(moves[r], pool[r], seek, share[r], weight[r], posterior[r])
