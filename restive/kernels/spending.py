"""Selection under a budget that need not be spent, or when acting on some agents costs more than on others.

priority    [R, N]  as in `restive.kernels.top_k`; with costs it is meant per unit of cost
break_even  [R]     agents of this priority or a lower one are expected to lose and are left out; −inf leaves out nobody
cost        [R, N]  of acting on each agent, above 0
group       [N]     the group of each agent, −1 for none
minimum     [G]     the part of the budget that is spent on each group first

Agents are taken in order of priority, ties in random order, as long as the budget allows; an agent whose cost exceeds
what is left is skipped. A run that explores takes them in random order instead and leaves out nobody. With costs of 1
and no break-even this is `top_k.choose`, bit for bit. Inclusion probabilities are exact if all costs are 1; with other
costs they are frequencies over repeated draws of ties and noise, with a standard error of √(p (1 − p) / draws).
"""

from typing import NamedTuple

import numpy as np

from restive.kernels import rng
from restive.kernels.inclusion import find_standard_errors
from restive.kernels.jit import compiled
from restive.kernels.rng import fold, near_normal
from restive.kernels.top_k import find_cutoff
from restive.types import Bools, Floats, Ints, Keys

# Sums of costs may exceed the budget by rounding, relative to the budget.
ROUNDING = 1e-9
# Draws of priorities that are made at once.
MAX_DRAWN = 2**20


class Groups(NamedTuple):
    """The groups of agents, and what is spent on each of them first; see the module."""

    group: Ints
    minimum: Floats


NO_GROUPS = Groups(np.empty(0, np.int64), np.empty(0))
NOBODY = np.empty(0, np.bool_)


@compiled
def spend(
    order: Ints,
    priority: Floats,
    break_even: Floats,
    cost: Floats,
    budget: float,
    groups: Groups,
    action: Ints,
    asked: Bools = NOBODY,
) -> None:
    """Fill `action` with 1 for the agents in `order` [R, N] that the budget is spent on, first for each group's minimum.

    Agents that are only `asked` about, [N] or empty, get 1 if they would be chosen, and nothing is spent on them.

    >>> action, cost = np.zeros((1, 4), np.int64), np.array([[3.0, 2.0, 4.0, 1.0]])
    >>> spend(np.arange(4)[None], np.zeros((1, 4)), np.array([-np.inf]), cost, 4, NO_GROUPS, action)
    >>> action  # after the first, only the last fits
    array([[1, 0, 0, 1]])
    """
    group, rounding = groups.group, ROUNDING * budget
    for r in range(order.shape[0]):
        left, wanted = budget + rounding, groups.minimum.copy()
        action[r, :] = 0
        for stage in range(0 if wanted.size > 0 else 1, 2):
            for n in order[r]:
                worth = priority[r, n] > break_even[r] or break_even[r] == -np.inf
                needed = stage == 1 or (0 <= group[n] < wanted.size and wanted[group[n]] > rounding)
                if worth and needed and action[r, n] == 0 and cost[r, n] <= left:
                    action[r, n] = 1
                    if asked.size > 0 and asked[n]:
                        continue
                    left -= cost[r, n]
                    if stage == 0:
                        wanted[group[n]] -= cost[r, n]


def sort_agents(priority: Floats, tie_keys: Keys, agents: Ints) -> Ints:
    """Positions from the highest priority to the lowest, [R, N], ties in random order."""
    return np.lexsort((-rng.uniform(tie_keys, agents), -priority), axis=-1)


def choose_within(
    priority: Floats,
    explore: Floats,
    break_even: Floats,
    cost: Floats,
    budget: float,
    explore_keys: Keys,
    tie_keys: Keys,
    agents: Ints,
    groups: Groups = NO_GROUPS,
) -> Ints:
    """The chosen agents as 1, [R, N]; priorities must not be NaN. The keys are those of `top_k.choose`."""
    exploring = rng.uniform(explore_keys, np.zeros(1, np.int64))[:, 0] < explore
    ranked = np.where(exploring[:, None], 0.0, priority)
    action = np.empty(priority.shape, np.int64)
    order = sort_agents(ranked, tie_keys, agents)
    spend(order, ranked, np.where(exploring, -np.inf, break_even), cost, budget, groups, action)
    return action


@compiled
def inclusion_within(priority: Floats, explore: Floats, break_even: Floats, budget: int) -> Floats:
    """The probability that `choose_within` chooses each agent if all costs are 1, [R, N].

    >>> inclusion_within(np.array([[2.0, 1.0, 0.0, 0.0]]), np.array([0.5]), np.array([0.0]), 3)
    array([[0.875, 0.875, 0.375, 0.375]])
    """
    runs, size = priority.shape
    probability = np.zeros((runs, size))
    for r in range(runs):
        worth = 0
        for n in range(size):
            worth += priority[r, n] > break_even[r] or break_even[r] == -np.inf
        places = min(budget, worth)
        cutoff = find_cutoff(priority[r], max(places, 1))
        share = (places - cutoff.above) / cutoff.tied
        for n in range(size):
            best = 1.0 if priority[r, n] > cutoff.value else share if priority[r, n] == cutoff.value else 0.0
            probability[r, n] = explore[r] * min(budget, size) / size + (1.0 - explore[r]) * best
    return probability


def spending_frequencies(
    mean: Floats,
    noise: Floats,
    break_even: float,
    cost: Floats,
    budget: float,
    groups: Groups,
    key: np.uint64,
    agents: Ints,
    draws: int,
) -> tuple[Floats, Floats]:
    """How often each agent is chosen, [N], in so many draws of ties and noise, and its error; one draw if nothing is random.

    mean, noise [N]: priority = mean + noise · Z, as in `restive.kernels.inclusion`. Agents that are alike in these, in
    cost and in group have the same probability, so they share the mean of their frequencies; their error is that of one
    of them, which is not too small, since of those who are alike one is chosen in place of another.
    """
    if not noise.any() and np.unique(mean).size == mean.size:
        draws = 1
    frequency = np.zeros(mean.size)
    for first in range(0, draws if mean.size else 0, max(1, MAX_DRAWN // max(mean.size, 1))):
        keys = rng.run_keys(0, np.arange(first, min(draws, first + max(1, MAX_DRAWN // mean.size)))) ^ key
        priority, action = np.empty((keys.size, mean.size)), np.empty((keys.size, mean.size), np.int64)
        _draw_priorities(mean, noise, rng.branch(keys, rng.NOISE, 0), agents, priority)
        order = sort_agents(priority, rng.branch(keys, rng.TIE, 0), agents)
        costs = np.broadcast_to(cost, priority.shape)
        spend(order, priority, np.full(keys.size, break_even), costs, budget, groups, action)
        frequency += action.sum(axis=0)
    alike = _number_alike(mean, noise, cost, groups.group)
    shared: Floats = (np.bincount(alike, frequency) / np.bincount(alike))[alike]
    return shared / draws, find_standard_errors(shared, shared, np.ones(mean.size, np.bool_), draws)


def _number_alike(*columns: Floats | Ints) -> Ints:
    """A number for each agent, the same for agents that agree in all columns; an empty column says nothing."""
    alike = np.zeros(columns[0].size, np.int64)
    for column in columns:
        if column.size:
            found = np.unique(column, return_inverse=True)[1]
            alike = np.unique(alike * (int(found.max()) + 1) + found, return_inverse=True)[1]
    return alike


def spending_probabilities(
    mean: Floats,
    noise: Floats,
    explore: float,
    break_even: float,
    cost: Floats,
    budget: float,
    groups: Groups,
    key: np.uint64,
    agents: Ints,
    draws: int,
) -> tuple[Floats, Floats]:
    """The probability that each agent is chosen, [N], over exploration, ties and noise, and its standard error.

    See `spending_frequencies`.
    """
    rest, nothing = (cost, budget, groups, key, agents, draws), np.zeros(mean.size)
    probability, error = np.zeros(mean.size), np.zeros(mean.size)
    if explore > 0:
        often, spread = spending_frequencies(nothing, nothing, -np.inf, *rest)
        probability, error = explore * often, explore * spread
    if explore < 1:
        often, spread = spending_frequencies(mean, noise, break_even, *rest)
        probability, error = probability + (1 - explore) * often, np.hypot(error, (1 - explore) * spread)
    return probability, error


@compiled
def _draw_priorities(mean: Floats, noise: Floats, keys: Keys, agents: Ints, priority: Floats) -> None:
    for r in range(keys.size):
        for n in range(mean.size):
            drawn = noise[n] * near_normal(fold(keys[r], agents[n])) if noise[n] > 0.0 else 0.0
            priority[r, n] = mean[n] + drawn
