"""Who may be chosen in a round, who is, with what probability, and what each rule costs; arrays are [M].

Selection: those who must be are; then from each group with a minimum its best, until the minimum is reached; then the
best of all that are left, until the budget is used. Without such rules this is the choice of the simulation, bit for
bit. While exploring, "the best" are drawn by lot instead. The probability of each agent follows in closed form

    probability = explore · lot + (1 − explore) · best,   best = first + (1 − first) · rest

where first and rest are 1 above a bar, the places left shared equally at it, and 0 below; where priorities hold luck of
their own it is averaged over that luck (`restive.kernels.inclusion`).
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from restive.contract import Draws, Estimate, Ranking
from restive.kernels import rng
from restive.kernels.inclusion import inclusion_probabilities
from restive.kernels.top_k import choose, find_cutoff, inclusion
from restive.types import Bools, Floats, Ints

# Streams of the desk's own, beyond any that a policy takes.
CONTROL, GROUPS, REDRAWN = (2**32 + stream for stream in range(3))
# Why an agent could not be chosen.
FREE, IN_CONTROL, ON_NEVER, COOLING, ON_MUST, GONE = range(6)
BARS = ("", "control group", "never list", "cooling down", "must list", "gone since")
# How often luck is drawn again to average over it: often for few agents, whose bar moves much from draw to draw.
MIN_DRAWS, MAX_DRAWS, DRAWN_NUMBERS = 32, 512, 2**16
# An average over a few draws can miss what did happen.
UNLIKELY = 1e-4


class Rules(NamedTuple):
    """What holds in a round beside the priorities."""

    exclusion: Ints  # [M] why an agent is not free to be chosen, see BARS
    group: Ints  # [M] −1 for none
    shares: Mapping[int, float]  # the least share of the budget for some groups
    budget: int

    def free(self) -> Bools:
        """Who can be chosen by priority."""
        free: Bools = self.exclusion == FREE
        return free

    def places(self) -> int:
        """How many are chosen: all of the budget, if there are so many."""
        return min(self.budget, int(((self.exclusion == FREE) | (self.exclusion == ON_MUST)).sum()))


class Choice(NamedTuple):
    """Who is chosen."""

    chosen: Bools
    probability: Floats
    by_lot: bool
    by_luck: Bools  # chosen, but not if the priorities held no luck


def in_control(seed: int, share: float, numbers: Ints) -> Bools:
    """Whether agents are in the control group: a function of the seed and of each agent's own number."""
    keys = rng.branch(rng.run_keys(seed, np.zeros(1, np.int64)), CONTROL, 0)
    drawn: Bools = rng.uniform(keys, numbers)[0] < share
    return drawn


def choose_agents(ranking: Ranking, estimate: Estimate, rules: Rules, draws: Draws) -> Choice:
    """The choice of one round; `ranking` and `estimate` are [1, M], over all present agents."""
    free, must = np.flatnonzero(rules.free()), rules.exclusion == ON_MUST
    places = rules.places() - int(must.sum())
    group = rules.group[free]
    minimum = _minimums(rules, must, group, places)
    part = draws._replace(agents=np.ascontiguousarray(draws.agents[free]), budget=places)
    priority, explore = np.ascontiguousarray(ranking.priority[0, free]), ranking.explore
    taken = _take(priority, explore, group, minimum, part)
    chosen, probability, lucky = must.copy(), must.astype(np.float64), np.zeros(must.size, np.bool_)
    chosen[free] = taken
    by_lot = bool(places and rng.uniform(draws.branch(rng.EXPLORE), np.zeros(1, np.int64))[0, 0] < explore[0])
    luck, mean = np.ascontiguousarray(estimate.noise[0, free]), np.ascontiguousarray(estimate.benefit[0, free])
    if luck.any():
        best = _average_luck(mean, luck, group, minimum, part)
        best = np.where(taken, np.maximum(best, UNLIKELY), np.minimum(best, 1 - UNLIKELY))
        lucky[free] = taken & ~_take(mean, np.zeros(1), group, minimum, part)
    else:
        best = _best(priority, group, minimum, part)
    probability[free] = explore[0] * _lot(group, minimum, places) + (1 - explore[0]) * best
    return Choice(chosen, probability, by_lot, lucky)


def price_rules(benefit: Floats, rules: Rules, group_names: Mapping[int, str]) -> dict[str, float]:
    """What each rule costs: the expected benefit of the best list without it, less that of the best list with all.

    >>> rules = Rules(np.array([FREE, FREE, ON_NEVER]), np.full(3, -1), {}, budget=1)
    >>> price_rules(np.array([0.25, 0.5, 2.0]), rules, {})
    {'never list': 1.5}
    """
    worth = np.where(np.isfinite(benefit), benefit, 0.0)
    kept = _value(worth, rules)
    prices = {}
    for code, barred in enumerate(np.bincount(rules.exclusion).tolist()):
        if code == FREE or not barred:
            continue
        lifted = rules._replace(exclusion=np.where(rules.exclusion == code, FREE, rules.exclusion))
        prices[BARS[code]] = max(0.0, _value(worth, lifted) - kept)
    for code in rules.shares:
        others = {other: share for other, share in rules.shares.items() if other != code}
        prices[f"share of {group_names[code]}"] = max(0.0, _value(worth, rules._replace(shares=others)) - kept)
    return prices


def _value(worth: Floats, rules: Rules) -> float:
    """The sum of what the best list under these rules is worth, exact whatever the order of its agents."""
    free, must = np.flatnonzero(rules.free()), rules.exclusion == ON_MUST
    places = rules.places() - int(must.sum())
    group, values = rules.group[free], np.ascontiguousarray(worth[free])
    minimum = _minimums(rules, must, group, places)
    left = np.ones(free.size, np.bool_)
    for code, wanted in enumerate(minimum):
        members = np.flatnonzero(group == code)
        if wanted:
            left[members[np.argpartition(-values[members], wanted - 1)[:wanted]]] = False
    rest = values[left]
    remaining = places - int(minimum.sum())
    best = -np.partition(-rest, remaining - 1)[:remaining] if 0 < remaining <= rest.size else rest[:0]
    return math.fsum(np.concatenate([worth[must], values[~left], best]))


def _minimums(rules: Rules, must: Bools, group: Ints, places: int) -> Ints:
    """How many free agents of each group are chosen first, [G]: what its share asks for beyond those who must be."""
    size = max([*rules.shares, -1]) + 1
    minimum = np.zeros(size, np.int64)
    for code, share in rules.shares.items():
        asked = math.ceil(share * (places + int(must.sum())) - 1e-9) - int((must & (rules.group == code)).sum())
        minimum[code] = min(max(asked, 0), int((group == code).sum()))
    while minimum.sum() > places:
        minimum[minimum.argmax()] -= 1
    return minimum


def _take(priority: Floats, explore: Floats, group: Ints, minimum: Ints, draws: Draws) -> Bools:
    """Who is chosen of the free agents."""
    taken = np.zeros(priority.size, np.bool_)
    for code, wanted in enumerate(minimum):
        if wanted:
            members = np.flatnonzero(group == code)
            taken[members] = _choose(priority[members], explore, int(wanted), draws, draws.agents[members], GROUPS)
    if taken.any():
        left = np.flatnonzero(~taken)
        remaining = draws.budget - int(minimum.sum())
        taken[left] = _choose(priority[left], explore, remaining, draws, draws.agents[left], rng.TIE)
    else:
        taken = _choose(priority, explore, draws.budget, draws, draws.agents, rng.TIE)
    return taken


def _choose(priority: Floats, explore: Floats, budget: int, draws: Draws, agents: Ints, ties: int) -> Bools:
    """The choice of the simulation; one coin says for all stages whether the round explores."""
    action = np.empty((1, priority.size), np.int64)
    coins = draws.branch(rng.EXPLORE)
    choose(priority[None], explore, budget, coins, draws.branch(ties), np.ascontiguousarray(agents), action)
    taken: Bools = action[0] == 1
    return taken


def _lot(group: Ints, minimum: Ints, places: int) -> Floats:
    """The probability of each agent when all is drawn by lot.

    >>> _lot(np.array([0, 0, -1, -1]), np.array([1]), 2).round(3)  # one of two, then one of the three left
    array([0.667, 0.667, 0.333, 0.333])
    """
    first = np.zeros(group.size)
    for code, wanted in enumerate(minimum):
        if wanted:
            first[group == code] = wanted / (group == code).sum()
    left = group.size - int(minimum.sum())
    rest = (places - int(minimum.sum())) / left if left else 0.0
    return first + (1 - first) * rest


def _best(priority: Floats, group: Ints, minimum: Ints, draws: Draws) -> Floats:
    """The probability of each agent when the best are chosen, ties at random."""
    if not minimum.any():
        whole: Floats = inclusion(priority[None], np.zeros(1), draws.budget)[0]
        return whole
    first, left = np.zeros(priority.size), np.ones(priority.size, np.bool_)
    for code, wanted in enumerate(minimum):
        members = np.flatnonzero(group == code)
        if wanted:
            first[members] = inclusion(priority[members][None], np.zeros(1), int(wanted))[0]
            left[members] = ~_choose(priority[members], np.zeros(1), int(wanted), draws, draws.agents[members], GROUPS)
    remaining = draws.budget - int(minimum.sum())
    if remaining == 0:
        return first
    # Which of equals are left is luck, how many is not: so the bar of the rest is the same in any case.
    bar = find_cutoff(np.ascontiguousarray(priority[left]), remaining)
    share = (remaining - bar.above) / bar.tied
    rest = np.where(priority > bar.value, 1.0, np.where(priority == bar.value, share, 0.0))
    return first + (1 - first) * rest


def _average_luck(mean: Floats, luck: Floats, group: Ints, minimum: Ints, draws: Draws) -> Floats:
    """The probability of each agent over all the luck that its priority might have held."""
    if draws.budget == 0:
        return np.zeros(mean.size)
    number = int(np.clip(DRAWN_NUMBERS // max(mean.size, 1), MIN_DRAWS, MAX_DRAWS))
    key = draws.branch(REDRAWN)[0]
    estimated: Floats = inclusion_probabilities(
        mean, luck, group.astype(np.int64), minimum, draws.budget, key, draws.agents, number
    )
    return estimated
