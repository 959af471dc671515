"""`lagrange`: value iteration under a hierarchical model with a Lagrange price for the action. Our own policy.

It counts the moves of each agent and estimates from all agents a prior for their transition rows
(`restive.kernels.hierarchical_prior`), with a mixture of agent types where that explains the moves better
(`restive.kernels.mixture`). Values are updated incrementally: in every second step each agent gets one sweep of value
iteration under its posterior mean, in which acting costs a price that all agents share:

    value(s)  = reward(s) + discount · max(wait(s), act(s) − price)   of arriving in s, relative to the other states
    wait(s)   = Σ_t row(t) · value(t),  row = posterior / Σ posterior, posterior = prior + moves; act(s) in the same way
    priority  = act(s) − price − wait(s) + curiosity · (bonus of acting − bonus of waiting)
    error²    = posterior variance of act(s) or wait(s): Var_row(value) / (Σ posterior + 1)
    bonus     = error · g, with g² = max(1, 2 x^¼ − 3.2) and x = 3 · visits of s / (Σ posterior + 1)

So both actions are tried where they are uncertain, and the more the rarer an action is among the agent's visits of a
state: g is close to the index of a normal arm with horizon x (Brezzi and Lai 2002), and needs no logarithm. Waiting
comes by itself at first, so its least g² is steps / (steps + 30) instead of 1. The price rises while acting has a
positive net benefit for more agents than were acted on, and falls while for fewer. If acting on agents costs more or
less, the price is one per unit of cost: acting costs price · cost, and the priority is that of the benefit and bonus
per unit of cost. If the budget need not be spent, the price is not below 0, and agents whose benefit and bonus add up
to 0 or less are left out. The horizon is not used. Rewards are estimated for each agent and shrunk towards the mean of
all agents. Where the dynamics change, older moves are forgotten (`restive.kernels.forgetting`); features of agents
enter their priors (`restive.kernels.feature_prior`).

From a history (`warm_start`) it starts with the moves of the agents there, and with priors, values and price that
follow from them. In the first steps these moves count as those that may be outdated: they are forgotten as soon as
agents move otherwise, so that a wrong history costs little.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from restive.contract import Benefits, Draws, Estimate, Past, Ranking, Shape
from restive.kernels.block_sums import LAST, SHIFT, add_blocks, add_rows, count_blocks
from restive.kernels.feature_prior import FIRST_VARIANCE, standardise, tilt
from restive.kernels.hierarchical_prior import FIRST_BASE_WEIGHT, Levels, first_shares, learn_rewards
from restive.kernels.jit import compiled
from restive.kernels.mixture import N_TYPES
from restive.kernels.priced_values import price_step, settle, sweep
from restive.kernels.run_priors import (
    forget_runs,
    hold_against_histories,
    learn_feature_priors,
    learn_mixtures,
    learn_pools,
    use_pools,
)
from restive.policies.base import Learner, check_setting
from restive.policies.benefits import estimate_benefits
from restive.policies.transition_counts import Counts, no_counts
from restive.problem import AT_MOST
from restive.types import Bools, Floats, Ints

# Priors and rewards are estimated in each of the first steps, then whenever the steps have grown by 1 / this number.
STEPS_PER_PAUSE = 10
# A mixture is fitted after this many steps, and if none is found again after twice as many.
FIRST_SEARCH = 50
# With a half-life there are at least so many estimates in it; what has changed is forgotten from this step on.
ESTIMATES_PER_HALF_LIFE, FIRST_FORGETTING = 8, 50
MAX_PAUSE = 10**9
# A history is held against the first steps, so many; its priors are estimated so often, each time closer.
TRIAL_STEPS, PAST_ESTIMATES = 49, 12
# Values are swept in each of these first steps, then in every second one, or every S / 2 with more states.
DENSE_SWEEPS = 20
# A row that was seen in one of x visits is uncertain as if the horizon were RARITY · x.
RARITY = 3.0
# Waiting gets its whole bonus only after many times this number of steps.
WAIT_BONUS_STEPS = 30.0
# The prior rows of types are at least this share of the pool's.
MIN_SHARE = 1e-6
UNOBSERVED = -1  # the state of an agent that was not observed in a step
# `rank` does not ask for the parts of the priorities.
NO_PARTS = np.empty((3, 0, 0))


class LagrangeBelief(NamedTuple):
    """Counts, priors, values and the price."""

    counts: Counts
    squared_deviations: Floats  # [R] sum of squared deviations of rewards from the mean of their agent and state
    levels: Levels  # [R, ...] of the prior of all agents
    responsibility: Floats  # [R, N, K] probability of each agent type, 0 while no mixture is used
    weight: Floats  # [R, A, S] weight of an agent's prior row, in moves
    posterior: Floats  # [R, N, A, S, S] moves plus pseudo-counts of the agent's types or of the pool
    reward: Floats  # [R, N, S] estimates, relative to the other states
    value: Floats  # [R, N, S] of arriving in a state, relative to the other states
    price: Floats  # [R] of an action, per unit of cost
    at_most: Bools  # [R] whether the budget need not be spent
    cost: Floats  # [R, N] of acting on an agent, as of the last ranking
    step: Ints  # [] number of steps learnt from
    next_estimate: Ints  # [] the step at which priors and rewards are estimated next
    next_search: Ints  # [] the step from which a mixture is fitted next
    last_estimate: Ints  # [] the step of the last estimate
    known: Floats  # [R, N, A, S, S] the moves as of then, or those of a history
    trial: Ints  # [] the step until which they are those of a history
    trust: Floats  # [R, N, A] 1 where the moves of the history count, 0 where they are not believed any more
    features: Floats  # [R, N, F] of agents
    coefficients: Floats  # [R, A, S, S, F] of features in the log of a prior row
    variance: Floats  # [R, F] of these coefficients


class Scores(NamedTuple):
    """The arrays that priorities depend on; see `LagrangeBelief`."""

    posterior: Floats
    weight: Floats
    value: Floats
    price: Floats
    cost: Floats
    least_wait: float  # the least squared factor of the error in the bonus of waiting


class Plan(NamedTuple):
    """What an estimate does, besides estimating rewards."""

    trial: bool = False  # whether the moves of a history are held against those since
    forget: bool = False  # whether older moves are forgotten as far as they no longer predict
    factor: float = 1.0  # of older moves in any case
    prior: bool = False  # whether priors are estimated
    search: bool = False  # whether a mixture is fitted if there is none
    renew: bool = False  # whether all moves count as older ones from now on


class Observed(NamedTuple):
    """One step of all agents, [R, N] each; the state of agents that were not observed is UNOBSERVED."""

    state: Ints
    action: Ints
    reward: Floats
    after: Ints


@dataclass(frozen=True)
class Lagrange(Learner[LagrangeBelief]):
    """Rank by the value of acting beyond its price, under a model that agents share as far as they are similar."""

    name: ClassVar[str] = "lagrange"
    version: ClassVar[int] = 5
    agent_axes: ClassVar[Mapping[str, int | None]] = {
        "weight": None,
        "levels.pool": None,
        "levels.agent_weight": None,
        "levels.base_weight": None,
        "levels.base_share": None,
        "coefficients": None,
        "variance": None,
    }
    discount: float = 0.95
    curiosity: float = 1.0
    prior: float | None = None
    mixture: bool = True
    memory: float | None = None
    features: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_setting(0 <= self.discount < 1, self, "discount", "from 0 to below 1")
        check_setting(0 <= self.curiosity <= 1e6, self, "curiosity", "from 0 to 1e6, the bonus per unit of error")
        valid = self.prior is None or 0 < self.prior <= 1e9
        check_setting(
            valid, self, "prior", "above 0 and at most 1e9, the pseudo-count of each move, or None to estimate it"
        )
        valid = self.memory is None or self.memory >= 1
        check_setting(valid, self, "memory", "1 or more, a half-life in steps, or None to estimate it")

    def start(self, shape: Shape) -> LagrangeBelief:
        """No data; acting is free."""
        runs, agents, states = shape.runs, shape.agents, shape.states
        rows, pseudo_count = (2, states, states), 1.0 if self.prior is None else float(self.prior)
        features = shape.known_features()[..., : None if self.features else 0]
        return LagrangeBelief(
            counts=no_counts(shape),
            squared_deviations=np.zeros(runs),
            levels=Levels(
                pool=np.full((runs, *rows), pseudo_count),
                agent_weight=np.full((runs, 2, states), pseudo_count * states),
                base_weight=np.full((runs, 1), FIRST_BASE_WEIGHT * states),
                base_share=np.tile(first_shares(), (runs, 1)),
            ),
            responsibility=np.zeros((runs, agents, N_TYPES)),
            weight=np.full((runs, 2, states), pseudo_count * states),
            posterior=np.full((runs, agents, *rows), pseudo_count),
            reward=np.zeros((runs, agents, states)),
            value=np.zeros((runs, agents, states)),
            price=np.zeros(runs),
            at_most=np.full(runs, shape.spend == AT_MOST),
            cost=np.ones((runs, agents)) if shape.cost is None else shape.cost.copy(),
            step=np.array(0),
            next_estimate=np.array(1),
            next_search=np.array(FIRST_SEARCH),
            last_estimate=np.array(0),
            known=np.zeros((runs, agents, *rows)),
            trial=np.array(0),
            trust=np.ones((runs, agents, 2)),
            features=features.copy(),
            coefficients=np.zeros((runs, *rows, features.shape[2])),
            variance=np.full((runs, features.shape[2]), FIRST_VARIANCE),
        )

    def warm_start(self, belief: LagrangeBelief, shape: Shape, past: Past) -> None:
        """Start from the moves of a history; its rewards count as one observation in each state that was visited."""
        counts, arrived = belief.counts, past.moves.sum(axis=(2, 3)) > 0.0
        counts.moves[:], counts.arrivals[:], counts.total[:] = past.moves, arrived, arrived * past.value[:, None]
        belief.known[:] = past.moves
        belief.posterior[:] += past.moves
        for left in range(PAST_ESTIMATES - 1, -1, -1):
            _estimate(belief, Plan(prior=self.prior is None, search=self.mixture and left == 0))
        belief.step[...], belief.trial[...], belief.next_search[...] = 1, TRIAL_STEPS, FIRST_SEARCH
        belief.next_estimate[...] = 2
        visits = past.moves.sum(axis=(2, 4)) + 1.0 / shape.states
        where = belief.cost, belief.at_most, belief.value, belief.price
        settle(belief.posterior, belief.reward, visits, float(self.discount), float(shape.budget), *where)

    def rank(self, belief: LagrangeBelief, state: Ints, draws: Draws) -> Ranking:
        """The net benefit of acting, with a bonus for what is not known of acting, less that of waiting.

        Costs and whether the budget must be spent are those of this step; the sweeps that follow use them.
        """
        belief.at_most[:] = draws.at_most
        if draws.cost is not None:
            belief.cost[:] = draws.cost
        priority = self._rank(belief, state, NO_PARTS)
        # Before the first step nothing is known, also not who would lose.
        break_even = -belief.price if belief.step > 0 else np.full(len(state), -np.inf)
        return Ranking(priority, np.zeros(len(state)), break_even)

    def estimate(self, belief: LagrangeBelief, state: Ints) -> Estimate:
        """What acting adds beyond waiting, and the parts of the priority: priority = center − price.

        Before the first step all values are 0, which makes the error 0 by its formula; it is reported as infinite.
        """
        runs, agents = state.shape
        parts = np.empty((3, runs, agents))
        self._rank(belief, state, parts)
        benefit, error, center = parts
        error = error if belief.step > 0 else np.full(state.shape, np.inf)
        return Estimate(benefit, error, np.zeros(state.shape), center)

    def benefits(self, belief: LagrangeBelief, shape: Shape, agents: Ints) -> Benefits:
        """Benefits and errors to show, from another model than the one that decides (`restive.policies.benefits`)."""
        price = belief.price[:, None] * belief.cost
        features = belief.features if belief.features.shape[-1] else None
        return estimate_benefits(belief.counts, belief.squared_deviations, price, self.discount, agents, features)

    def _rank(self, belief: LagrangeBelief, state: Ints, parts: Floats) -> Floats:
        least_wait = float(belief.step / (belief.step + WAIT_BONUS_STEPS))
        scores = Scores(belief.posterior, belief.weight, belief.value, belief.price, belief.cost, least_wait)
        priority = np.empty(state.shape)
        _rank(scores, state, float(self.curiosity), priority, parts)
        return priority

    def learn_some(
        self, belief: LagrangeBelief, agents: Ints, state: Ints, action: Ints, reward: Floats, after: Ints
    ) -> None:
        """Learn from the observed agents; the values of the others are swept too."""
        runs, everyone = belief.value.shape[:2]
        if agents.size == everyone:
            return self.learn(belief, state, action, reward, after)
        here, done, there = (np.full((runs, everyone), UNOBSERVED) for _ in range(3))
        full = Observed(here, done, np.zeros((runs, everyone)), there)
        for target, part in zip(full, (state, action, reward, after), strict=True):
            target[:, agents] = part
        self.learn(belief, *full)

    def learn(self, belief: LagrangeBelief, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        """Count, update values and price, and from time to time the priors and rewards."""
        _count(*belief.counts, belief.posterior, belief.squared_deviations, Observed(state, action, reward, after))
        plan = self.next_step(belief)
        if plan is not None:
            _estimate(belief, plan)
        if self.sweeps(belief):
            self._sweep(belief, state, action)

    def _sweep(self, belief: LagrangeBelief, state: Ints, action: Ints) -> None:
        seen = belief.posterior, belief.reward, state, action, float(self.discount), price_step(int(belief.step))
        sweep(*seen, belief.cost, belief.at_most, belief.value, belief.price)

    def next_step(self, belief: LagrangeBelief) -> Plan | None:
        """Count a step; what to estimate in it, None for nothing."""
        belief.step[...] += 1
        step = int(belief.step)
        if step < belief.next_estimate:
            return None
        belief.next_estimate[...] = step + max(1, min(step // STEPS_PER_PAUSE, self._max_pause()))
        return self._plan(belief)

    def sweeps(self, belief: LagrangeBelief) -> bool:
        """Whether values are swept in this step."""
        step = int(belief.step)
        return step < DENSE_SWEEPS or step % max(2, belief.value.shape[2] // 2) == 0

    def call_slowest(self, belief: LagrangeBelief) -> None:
        """Estimate the prior of all agents, and sweep values, which `learn` comes to last."""
        learn_pools(belief.counts.moves, belief.levels)
        nobody = np.zeros(belief.value.shape[:2], dtype=np.int64)
        self._sweep(belief, nobody, nobody)

    def welcome(self, belief: LagrangeBelief, newcomers: int) -> None:
        """Give new agents the prior, the pooled rewards and the mean values of the others."""
        present = belief.value.shape[1] - newcomers
        if belief.step == 0 or present == 0:
            return
        reward = belief.reward.copy()
        _estimate_rewards(belief.counts.arrivals, belief.counts.total, belief.squared_deviations, reward)
        belief.reward[:, present:] = reward[:, present:]
        sums = np.stack([add_blocks(add_known(belief, run, present)) for run in range(len(reward))])
        self.introduce(belief, newcomers, sums / present)

    def introduce(self, belief: LagrangeBelief, newcomers: int, means: Floats) -> None:
        """Give the last agents the prior of the others and, with the sums of `add_known` as means, their values and types."""
        runs, agents, states = belief.value.shape
        first, rows = agents - newcomers, 2 * states * states
        value, types, posterior, moves = np.split(means, np.cumsum([states, N_TYPES, rows]), axis=1)
        belief.value[:, first:] = value[:, None]
        if self.prior is None:
            belief.responsibility[:, first:] = types[:, None]
            # The rows of the types are not stored, but they are the posterior minus the moves, up to rounding.
            priors = _prior_rows(belief, types, (posterior - moves).reshape(runs, 2, states, states))
            repeated = np.repeat(priors[:, None], newcomers, axis=1)
            _tilt_rows(belief.features, belief.coefficients, repeated)
            belief.posterior[:, first:] = repeated

    def _max_pause(self) -> int:
        """The largest number of steps between two estimates."""
        return MAX_PAUSE if self.memory is None else int(min(self.memory / ESTIMATES_PER_HALF_LIFE, MAX_PAUSE))

    def _plan(self, belief: LagrangeBelief) -> Plan:
        """What to estimate in this step; with a half-life rewards are discounted here."""
        step = int(belief.step)
        trial, factor = step <= int(belief.trial), 1.0
        if self.memory is not None and not trial:
            factor = 0.5 ** ((step - int(belief.last_estimate)) / self.memory)
            for array in (belief.counts.arrivals, belief.counts.total, belief.squared_deviations):
                array *= factor
        search = self.prior is None and self.mixture and step >= int(belief.next_search)
        if search:
            belief.next_search[...] = 2 * step
        renew = bool(belief.next_estimate > belief.trial)
        if renew:
            belief.last_estimate[...] = step
        forget = self.memory is None and not trial and step >= FIRST_FORGETTING
        return Plan(trial, forget, factor, self.prior is None, search, renew)


def add_known(belief: LagrangeBelief, run: int, agents: int) -> Floats:
    """Values, types, posterior and moves of the first agents of a run, by block, [B, S + K + 2 · A · S · S]."""
    known = belief.value, belief.responsibility, belief.posterior, belief.counts.moves
    return np.hstack([add_rows(array[run, :agents].reshape(agents, -1)) for array in known])


def _prior_rows(belief: LagrangeBelief, types: Floats, mixed: Floats) -> Floats:
    """Pseudo-counts for an agent without data, [R, A, S, S]: the pool, or `mixed` if there are types."""
    pool, weight = belief.levels.pool, belief.weight[..., None]
    mixed = np.maximum(mixed, MIN_SHARE * pool)
    mixed *= weight / mixed.sum(axis=-1, keepdims=True)
    rows: Floats = np.where((types.sum(axis=-1) > 0.0)[:, None, None, None], mixed, pool)
    return rows


@compiled
def _rank(scores: Scores, state: Ints, curiosity: float, priority: Floats, parts: Floats) -> None:
    """Fill the priorities and, if `parts` [3, R, N] is not empty, benefit, error and center."""
    posterior, weight, value, price = scores.posterior, scores.weight, scores.value, scores.price
    asked = parts.size > 0
    # Up to these x, 2 x^¼ − 3.2 is at most the least squared factor.
    never_rare_wait, never_rare_act = (0.5 * scores.least_wait + 1.6) ** 4, 2.1**4
    for r in range(state.shape[0]):
        for n in range(state.shape[1]):
            s = state[r, n]
            waited, acted, wait, act, wait_square, act_square = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for t in range(value.shape[2]):
                there = value[r, n, t]
                low, high = posterior[r, n, 0, s, t], posterior[r, n, 1, s, t]
                waited, wait, wait_square = waited + low, wait + low * there, wait_square + low * there * there
                acted, act, act_square = acted + high, act + high * there, act_square + high * there * there
            # One division for all: divisions and roots take most of the time.
            once = 1.0 / (waited * (waited + 1.0) * acted * (acted + 1.0))
            per_wait, per_act = once * acted * (acted + 1.0), once * waited * (waited + 1.0)
            wait, wait_square = wait * per_wait * (waited + 1.0), wait_square * per_wait * (waited + 1.0)
            act, act_square = act * per_act * (acted + 1.0), act_square * per_act * (acted + 1.0)
            wait_variance = max(wait_square - wait * wait, 0.0) * per_wait * waited
            act_variance = max(act_square - act * act, 0.0) * per_act * acted
            visits = max(waited + acted - weight[r, 0, s] - weight[r, 1, s], 0.0)
            wait_factor, act_factor = scores.least_wait, 1.0
            # Of the action that was taken more often, x is below 6.
            if acted < waited:
                act_factor = _squared_factor(visits, acted, act_factor, never_rare_act)
            else:
                wait_factor = _squared_factor(visits, waited, wait_factor, never_rare_wait)
            bonus = np.sqrt(act_variance * act_factor) - np.sqrt(wait_variance * wait_factor)
            center = (act - wait + curiosity * bonus) / scores.cost[r, n]
            priority[r, n] = center - price[r]
            if asked:
                error = np.sqrt(wait_variance + act_variance)
                parts[0, r, n], parts[1, r, n], parts[2, r, n] = act - wait, error, center


@compiled
def _squared_factor(visits: float, known: float, least: float, never_rare: float) -> float:
    """The squared factor of an error in the bonus: `least`, and more where an action is much rarer than its state.

    2 x^¼ − 3.2 is 2 l − log l − log 16π with l = log x, to a tenth or two up to x = 1000.
    """
    if RARITY * visits <= never_rare * (known + 1.0):
        return least
    return float(2.0 * np.sqrt(np.sqrt(RARITY * visits / (known + 1.0))) - 3.2)


@compiled
def _count(
    moves: Floats, arrivals: Floats, total: Floats, posterior: Floats, squared_deviations: Floats, step: Observed
) -> None:
    parts = count_observed(moves, arrivals, total, posterior, squared_deviations, step)
    for r in range(squared_deviations.size):
        squared_deviations[r] = add_blocks(parts[r])[0]


@compiled
def count_observed(
    moves: Floats, arrivals: Floats, total: Floats, posterior: Floats, before: Floats, step: Observed
) -> Floats:
    """Count the moves of a step; returns the squared deviations of rewards by block, [R, B, 1], after those `before`, [R]."""
    runs, agents = step.state.shape
    parts = np.empty((runs, count_blocks(agents), 1))
    for r in range(runs):
        squared_deviations = before[r]
        for n in range(agents):
            here, done, there = step.state[r, n], step.action[r, n], step.after[r, n]
            if here >= 0:
                reward, seen = step.reward[r, n], arrivals[r, n, there]
                if seen > 0.0:
                    squared_deviations += (reward - total[r, n, there] / seen) ** 2 * seen / (seen + 1.0)
                moves[r, n, done, here, there] += 1.0
                posterior[r, n, done, here, there] += 1.0
                arrivals[r, n, there] += 1.0
                total[r, n, there] += reward
            if n & LAST == LAST or n == agents - 1:
                parts[r, n >> SHIFT, 0], squared_deviations = squared_deviations, 0.0
    return parts


@compiled
def _estimate_rewards(arrivals: Floats, total: Floats, squared_deviations: Floats, reward: Floats) -> None:
    for r in range(reward.shape[0]):
        learn_rewards(arrivals[r], total[r], squared_deviations[r], reward[r])
        center_rewards(reward[r])


@compiled
def center_rewards(reward: Floats) -> None:
    """Subtract each agent's mean: only differences matter, and a large level would cost precision in the variances."""
    agents, states = reward.shape
    for n in range(agents):
        mean = 0.0
        for s in range(states):
            mean += reward[n, s]
        mean /= states
        for s in range(states):
            reward[n, s] -= mean


def _estimate(belief: LagrangeBelief, plan: Plan) -> None:
    """Update rewards, and by the plan priors and what is known; kernels that the plan does not need are not compiled."""
    moves, known, posterior = belief.counts.moves, belief.known, belief.posterior
    if plan.trial:
        hold_against_histories(moves, known, posterior, belief.trust)
    if plan.forget or plan.factor < 1.0:
        forget_runs(moves, known, posterior, np.nan if plan.forget else plan.factor)
    _estimate_rewards(belief.counts.arrivals, belief.counts.total, belief.squared_deviations, belief.reward)
    if plan.prior:
        learn_pools(moves, belief.levels)
        prior = belief.levels.pool, belief.weight, posterior
        if plan.search or belief.responsibility[:, 0].any():
            learn_mixtures(moves, *prior, belief.responsibility, plan.search)
        else:
            use_pools(moves, *prior)
        if belief.variance.size > 0:
            learn_feature_priors(belief.features, moves, belief.coefficients, belief.variance, belief.weight, posterior)
    if plan.renew:
        known[:] = moves


@compiled
def _tilt_rows(features: Floats, coefficients: Floats, rows: Floats) -> None:
    """Give the last M of all agents the prior rows [R, M, A, S, S] that their features imply."""
    runs, newcomers, actions, states, _ = rows.shape
    for r in range(runs):
        known = standardise(features[r])[features.shape[1] - newcomers :]
        for n in range(newcomers):
            for a in range(actions):
                for s in range(states):
                    weight = rows[r, n, a, s].sum()
                    tilt(known[n], coefficients[r, a, s], rows[r, n, a, s])
                    for t in range(states):
                        rows[r, n, a, s, t] *= weight
