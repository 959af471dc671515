"""Selection where acting on some people costs more than on others, and the budget is an amount; arrays are [M].

People on the must list come first. The others are taken in the order of their priority, which is per unit of cost, ties
in random order: for each group with a minimum share until so much of the budget is spent on it, then all; people who
cost more than what is left are skipped (`restive.kernels.spending`). Without rules this is the choice of the simulation, bit
for bit. When a round explores, the order is random.

Probabilities are exact where neither ties nor noise nor exploration matter. Elsewhere they are frequencies over repeated
draws, with a standard error of at most 0.5 / √draws; people who are alike in priority, cost and group share theirs. Of
people in the control group it is recorded whether they would have been chosen if they alone were in the program.
"""

import math
from collections.abc import Mapping

import numpy as np

from restive.contract import Draws, Estimate, Ranking
from restive.desk.events import FREE, IN_CONTROL, ON_MUST
from restive.desk.selection import (
    MIN_PROBABILITY,
    REDRAWN,
    Choice,
    Rules,
    lift_rules,
)
from restive.kernels import rng
from restive.kernels.spending import Groups, sort_agents, spend, spending_probabilities
from restive.types import Bools, Floats, Ints

# Ties and noise are drawn again more often for few people.
MIN_DRAWS, MAX_DRAWS, DRAWN_NUMBERS = 64, 4096, 2**22


def choose_by_cost(ranking: Ranking, estimate: Estimate, rules: Rules, draws: Draws) -> Choice:
    """The choice of one round; `ranking` and `estimate` are [1, M], over all present agents."""
    free, must, control = rules.free(), rules.exclusion == ON_MUST, rules.exclusion == IN_CONTROL
    asked = np.zeros(free.size, np.bool_) if rules.as_treated is None else control & (rules.as_treated == FREE)
    priority, least, explore = ranking.priority[0], float(ranking.least(draws)[0]), float(ranking.explore[0])
    random = bool(_left(rules) > 0 and rng.uniform(draws.branch(rng.EXPLORE), np.zeros(1, np.int64))[0, 0] < explore)
    ranked, cutoff = (np.zeros(free.size), -math.inf) if random else (priority, least)
    found = _take(_order(ranked, draws), ranked, cutoff, rules, asked)
    taken = found & free
    noise, mean, even = np.ascontiguousarray(estimate.noise[0]), priority, least
    by_noise = np.zeros(free.size, np.bool_)
    if noise[free].any():
        # Up to a constant, a priority is this mean and noise; the mean is 0 at break-even.
        mean, even = np.ascontiguousarray(estimate.expected_priority()[0]), -math.inf if least == -math.inf else 0.0
        by_noise = taken & ~_take(_order(mean, draws), mean, even, rules, asked)
    often, error = _average(mean[free], noise[free], explore, even, rules, draws)
    probability = must.astype(np.float64)
    probability[free] = np.where(
        taken[free], np.maximum(often, MIN_PROBABILITY), np.minimum(often, 1 - MIN_PROBABILITY)
    )
    spread = np.zeros(free.size)
    spread[free] = error
    worth = np.ones(free.size, np.bool_) if least == -math.inf else priority > least
    would_act = must | found
    if rules.as_treated is not None:
        would_act |= control & (rules.as_treated == ON_MUST)
    return Choice(must | taken, probability, random, by_noise, free & ~(worth | taken), would_act, spread)


def count_displaced_by_cost(
    priority: Floats, tie: Floats, rules: Rules, group_names: Mapping[int, str], least: float = -math.inf
) -> dict[str, int]:
    """For each rule, how many people of the list would give way to others without it; the best by priority, then by `tie`.

    >>> rules = Rules(np.array([0, 0, 2]), np.full(3, -1), {}, budget=3, cost=np.array([2.0, 1.0, 3.0]))
    >>> count_displaced_by_cost(np.array([0.25, 0.5, 2.0]), np.zeros(3), rules, {})
    {'never list': 2}
    """
    order, nobody = np.lexsort((-tie, -priority)), np.zeros(priority.size, np.bool_)
    even = least if rules.at_most else -math.inf

    def find(some: Rules) -> Bools:
        must: Bools = some.exclusion == ON_MUST
        return _take(order, priority, even, some, nobody) | must

    listed, lifted = find(rules), lift_rules(rules, group_names)
    return {name: int((listed & ~find(without)).sum()) for name, without in lifted.items()}


def _costs(rules: Rules) -> Floats:
    return np.ones(rules.exclusion.size) if rules.cost is None else rules.cost


def _left(rules: Rules) -> float:
    """The budget that the people on the must list leave."""
    return max(rules.budget - float(_costs(rules)[rules.exclusion == ON_MUST].sum()), 0.0)


def _minimums(rules: Rules) -> Floats:
    """What is spent on each group first, [G]: its share of what can be spent, without those on the must list."""
    cost, must = _costs(rules), rules.exclusion == ON_MUST
    whole = min(float(rules.budget), float(cost[must | rules.free()].sum()))
    minimum = np.zeros(max([*rules.shares, -1]) + 1)
    for code, share in rules.shares.items():
        minimum[code] = max(share * whole - float(cost[must & (rules.group == code)].sum()), 0.0)
    return minimum


def _order(priority: Floats, draws: Draws) -> Ints:
    """All positions from the highest priority to the lowest, ties in random order."""
    ordered: Ints = sort_agents(priority[None], draws.branch(rng.TIE), draws.agents)[0]
    return ordered


def _take(order: Ints, priority: Floats, least: float, rules: Rules, asked: Bools) -> Bools:
    """The free people whom the budget is spent on in this order, and those asked about who would be among them."""
    some = order[(rules.free() | asked)[order]]
    groups, action = Groups(rules.group.astype(np.int64), _minimums(rules)), np.empty((1, order.size), np.int64)
    costs = np.ascontiguousarray(_costs(rules)[None])
    spend(some[None], priority[None], np.array([least]), costs, _left(rules), groups, action, asked)
    taken: Bools = action[0] == 1
    return taken


def _average(
    mean: Floats, noise: Floats, explore: float, break_even: float, rules: Rules, draws: Draws
) -> tuple[Floats, Floats]:
    """The probability of each free agent, over exploration, ties and noise, and its standard error."""
    free, number = rules.free(), int(np.clip(DRAWN_NUMBERS // max(mean.size, 1), MIN_DRAWS, MAX_DRAWS))
    groups = Groups(rules.group[free].astype(np.int64), _minimums(rules))
    rest = draws.branch(REDRAWN)[0], np.ascontiguousarray(draws.agents[free]), number
    return spending_probabilities(mean, noise, explore, break_even, _costs(rules)[free], _left(rules), groups, *rest)
