"""Selection of a round: who may be chosen, who is, with what probability, and what each rule changes; arrays are [M].

People on the must list come first; then the best of each group with a minimum share, until the minimum is reached; then
the best of all others, until the budget is used. Without rules this is the choice of the simulation, bit for bit. When
a round explores, "the best" are drawn at random instead. The probability of each agent has a closed form:

    probability = explore · random + (1 − explore) · best,   best = first + (1 − first) · rest

where first and rest are 1 above a cutoff, share the remaining places equally at the cutoff, and are 0 below it. If the
priorities contain noise, the probability is averaged over the noise (`restive.kernels.inclusion`), and has a standard
error. If the budget need
not be spent, people at or below the policy's break-even are left out, also of the minimum of their group, except when a
round explores; of the people on the must list nobody is left out.

Of people in the control group it is recorded whether they would have been chosen in the program: whether they rank, by
priority and then by the draw that breaks ties, at least as high as the last one chosen.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from restive.contract import Draws, Estimate, Ranking, reach_cutoff
from restive.desk.events import COOLING, EXCLUSIONS, FREE, IN_CONTROL, ON_MUST, ON_NEVER, DecisionInput
from restive.desk.projection import Projection
from restive.kernels import rng
from restive.kernels.inclusion import inclusion_probabilities
from restive.kernels.top_k import choose, find_cutoff, inclusion
from restive.problem import AT_MOST
from restive.types import Bools, Floats, Ints

# Random streams, beyond those of the policies and of the control group.
GROUPS, REDRAWN = 2**32 + 1, 2**32 + 2
# The stages of a choice: for the minimum of a group, and of all others.
NOT_RANKED, FIRST, REST = -1, 1, 2
# Noise is redrawn more often for few agents, whose cutoff varies more from draw to draw.
MIN_DRAWS, MAX_DRAWS, DRAWN_NUMBERS = 32, 512, 2**16
# An average over a few draws can be 0 or 1 although the opposite happened.
MIN_PROBABILITY = 1e-4


class Rules(NamedTuple):
    """The rules of a round."""

    exclusion: Ints  # [M] why an agent cannot be chosen by priority, an index of EXCLUSIONS
    group: Ints  # [M] −1 for none
    shares: Mapping[int, float]  # the minimum share of the budget of some groups
    budget: int
    at_most: bool = False  # whether the budget need not be spent
    as_treated: Ints | None = None  # [M] the exclusion if nobody were in the control group; None if nobody is
    cost: Floats | None = None  # [M] what acting on each takes of the budget; None: everybody costs 1

    def free(self) -> Bools:
        """Agents that can be chosen by priority."""
        free: Bools = self.exclusion == FREE
        return free

    def places(self) -> int:
        """The number of agents to choose: the budget, or fewer if fewer are available."""
        return min(self.budget, int(((self.exclusion == FREE) | (self.exclusion == ON_MUST)).sum()))


class Choice(NamedTuple):
    """The choice of a round."""

    chosen: Bools
    probability: Floats
    random: bool  # whether the round explores
    by_noise: Bools  # chosen only because of the noise in the priorities
    left_out: Bools  # free, but not expected to gain, and the budget need not be spent
    would_act: Bools  # chosen, or in the control group, but would have been chosen
    error: Floats  # standard error of the probability, 0 where that is exact


def find_rules(projection: Projection, round_: int, given: DecisionInput) -> Rules:
    """The rules of a round; the must list overrides the cool-down."""
    agents, config, present = projection.agents, projection.config, given.states
    control = agents.control[present.number] & config.has_control(round_)
    cooling = round_ - agents.last_action[present.number] < config.cool_down
    never, must = (np.isin(present.number, some) for some in (given.never, given.must))
    exclusion, as_treated = find_exclusions(cooling, never, must, control)
    known = {name: code for code, name in enumerate(projection.groups)}
    shares = {known[name]: share for name, share in config.shares.items() if name in known and share > 0}
    rest = given.budget, config.spend == AT_MOST, as_treated, given.cost
    return Rules(exclusion, agents.group[present.number], shares, *rest)


def find_exclusions(cooling: Bools, never: Bools, must: Bools, control: Bools) -> tuple[Ints, Ints | None]:
    """Why agents cannot be chosen by priority, [M], and why if nobody were in the control group, None if nobody is."""
    exclusion = np.full(cooling.size, FREE)
    for code, excluded in ((COOLING, cooling), (ON_NEVER, never), (ON_MUST, must)):
        exclusion[excluded] = code
    as_treated = exclusion.copy() if control.any() else None
    exclusion[control] = IN_CONTROL
    return exclusion, as_treated


def choose_agents(ranking: Ranking, estimate: Estimate, rules: Rules, draws: Draws) -> Choice:
    """The choice of one round; `ranking` and `estimate` are [1, M], over all present agents."""
    free, must = np.flatnonzero(rules.free()), rules.exclusion == ON_MUST
    places = rules.places() - int(must.sum())
    group = rules.group[free]
    minimum = _minimums(rules, must, group, places)
    least = float(ranking.least(draws)[0])
    part = draws._replace(agents=np.ascontiguousarray(draws.agents[free]), budget=places)
    priority, explore = np.ascontiguousarray(ranking.priority[0, free]), ranking.explore
    random = bool(places and rng.uniform(draws.branch(rng.EXPLORE), np.zeros(1, np.int64))[0, 0] < explore[0])
    worth = np.ones(free.size, np.bool_) if least == -math.inf else priority > least
    if random or worth.all():
        stage = _take(priority, explore, group, minimum, part)
    else:
        stage = _take_worth(priority, worth, group, rules, must, part)
    taken = stage > 0
    chosen, probability, by_noise = must.copy(), must.astype(np.float64), np.zeros(must.size, np.bool_)
    chosen[free] = taken
    error = np.zeros(must.size)
    noise, mean = (np.ascontiguousarray(each[0, free]) for each in (estimate.noise, estimate.expected_priority()))
    if noise.any():
        # Up to a constant, a priority is this mean and noise; the mean is 0 at break-even.
        best, spread = _average_noise(mean, noise, group, minimum, part, -math.inf if least == -math.inf else 0.0)
        error[free] = (1 - explore[0]) * spread
        best = np.where(taken, np.maximum(best, MIN_PROBABILITY), np.minimum(best, 1 - MIN_PROBABILITY))
        gaining = np.ones(free.size, np.bool_) if least == -math.inf else mean > 0
        by_noise[free] = taken & (_take_worth(mean, gaining, group, rules, must, part) == 0)
    else:
        best = np.zeros(free.size)
        fewer, narrow = _narrow(worth, group, rules, must, part)
        best[worth] = _best(np.ascontiguousarray(priority[worth]), group[worth], fewer, narrow)
    probability[free] = explore[0] * _random(group, minimum, places) + (1 - explore[0]) * best
    left_out = np.zeros(must.size, np.bool_)
    left_out[free] = ~(worth | taken)
    ranked = ranking.priority[0], random, -math.inf if random else least
    would_act = chosen | _would_act(*ranked, rules, free, stage, draws)
    return Choice(chosen, probability, random, by_noise, left_out, would_act, error)


def _would_act(
    priority: Floats, random: bool, least: float, rules: Rules, free: Ints, stage: Ints, draws: Draws
) -> Bools:
    """Whether people of the control group would have been chosen, in the first stage or in the second."""
    found = np.zeros(priority.size, np.bool_)
    if rules.as_treated is None:
        return found
    control = rules.exclusion == IN_CONTROL
    found[control & (rules.as_treated == ON_MUST)] = True
    waiting = control & (rules.as_treated == FREE) & (priority > least)
    if not waiting.any():
        return found
    priority = np.zeros(priority.size) if random else priority
    stages = np.full(priority.size, NOT_RANKED)
    stages[free] = np.where((stage == 0) & (priority[free] <= least), NOT_RANKED, stage)
    must = rules.exclusion == ON_MUST
    ranked = rules.group[stages >= 0]
    left = rules.budget - int(must.sum())
    places = min(left, free.size + 1)  # with one person more
    minimum = {code: int(_minimums(rules, must, np.append(ranked, code), places)[code]) for code in rules.shares}
    parts = [(rules.group == code, GROUPS, FIRST, room) for code, room in minimum.items()]
    everybody = np.ones(priority.size, np.bool_)
    for among, stream, number, room in (*parts, (everybody, rng.TIE, REST, left)):
        some = np.flatnonzero((waiting | (stages >= 0)) & among)
        tie = rng.uniform(draws.branch(stream), draws.agents[some])[0]
        taken = stages[some] == number if number == FIRST else stages[some] > 0
        reached = reach_cutoff(priority[some], tie, stages[some] == number) | (taken.sum() < room)
        found[some] |= waiting[some] & reached
    return found


def _narrow(worth: Bools, group: Ints, rules: Rules, must: Bools, draws: Draws) -> tuple[Ints, Draws]:
    """The minimum of each group, and the draws, if only some of the free agents are worth acting on."""
    fewer = _minimums(rules, must, group[worth], draws.budget)
    agents = np.ascontiguousarray(draws.agents[worth])
    return fewer, draws._replace(agents=agents, budget=min(draws.budget, agents.size))


def _take_worth(priority: Floats, worth: Bools, group: Ints, rules: Rules, must: Bools, draws: Draws) -> Ints:
    """The stages of `_take`, without exploring, if only some of the free agents are worth acting on."""
    taken, (minimum, narrow) = np.zeros(worth.size, np.int64), _narrow(worth, group, rules, must, draws)
    taken[worth] = _take(np.ascontiguousarray(priority[worth]), np.zeros(1), group[worth], minimum, narrow)
    return taken


def count_displaced(
    priority: Floats, tie: Floats, rules: Rules, group_names: Mapping[int, str], least: float = -math.inf
) -> dict[str, int]:
    """For each rule, how many places of the list would go to other people without it; the best by priority, then by `tie`.

    >>> rules = Rules(np.array([FREE, FREE, ON_NEVER]), np.full(3, -1), {}, budget=1)
    >>> count_displaced(np.array([0.25, 0.5, 2.0]), np.zeros(3), rules, {})
    {'never list': 1}
    """
    lifted = lift_rules(rules, group_names)
    if not lifted:
        return {}
    worth = priority > least if rules.at_most else np.ones(priority.size, np.bool_)
    listed = _find_best(priority, tie, worth, rules)
    return {name: int((listed & ~_find_best(priority, tie, worth, without)).sum()) for name, without in lifted.items()}


def lift_rules(rules: Rules, group_names: Mapping[int, str]) -> dict[str, Rules]:
    """The rules without each of them that holds for somebody."""
    lifted = {
        EXCLUSIONS[code]: rules._replace(exclusion=np.where(rules.exclusion == code, FREE, rules.exclusion))
        for code, excluded in enumerate(np.bincount(rules.exclusion).tolist())
        if code != FREE and excluded
    }
    for code in rules.shares:
        others = {other: share for other, share in rules.shares.items() if other != code}
        lifted[f"share of {group_names[code]}"] = rules._replace(shares=others)
    return lifted


def _find_best(priority: Floats, tie: Floats, worth: Bools, rules: Rules) -> Bools:
    """The best list under these rules, [M], by priority, then by `tie`; who is not worth acting on is left out."""
    must: Bools = rules.exclusion == ON_MUST
    listed = must.copy()
    free = np.flatnonzero(rules.free() & worth)
    places = min(rules.places() - int(must.sum()), free.size)
    group = rules.group[free]
    minimum = _minimums(rules, must, group, places)
    for code, wanted in enumerate(minimum):
        listed[_first(free[group == code], int(wanted), priority, tie)] = True
    left = free[~listed[free]]
    listed[_first(left, places - int(minimum.sum()), priority, tie)] = True
    return listed


def _first(some: Ints, wanted: int, *orders: Floats) -> Ints:
    """Those that are highest in the first order, of equal ones in the next, then by their position.

    >>> _first(np.array([0, 1, 3]), 2, np.array([5.0, 7.0, 9.0, 5.0]), np.array([0.1, 0.2, 0.3, 0.4])).tolist()
    [1, 3]
    """
    if not 0 < wanted < some.size or not orders:
        return some[:wanted]
    values = orders[0][some]
    cutoff = np.partition(values, some.size - wanted)[some.size - wanted]
    above = some[values > cutoff]
    return np.concatenate([above, _first(some[values == cutoff], wanted - above.size, *orders[1:])])


def _minimums(rules: Rules, must: Bools, group: Ints, places: int) -> Ints:
    """The number of free agents of each group that are chosen first, [G]."""
    listed = np.bincount(rules.group[must] + 1)
    return find_minimums(rules.shares, np.bincount(group + 1), listed, places)


def find_minimums(shares: Mapping[int, float], free: Ints, must: Ints, places: int) -> Ints:
    """The number of agents of each group that are chosen first, [G]: its share without those on the must list.

    free, must: how many are free, or on the must list, of no group and of each group; the last ones may be left out
    """
    minimum = np.zeros(max([*shares, -1]) + 1, np.int64)
    for code, share in shares.items():
        available, listed = (int(counts[code + 1]) if code + 1 < counts.size else 0 for counts in (free, must))
        minimum[code] = min(max(math.ceil(share * (places + int(must.sum())) - 1e-9) - listed, 0), available)
    while minimum.sum() > places:
        minimum[minimum.argmax()] -= 1
    return minimum


def _take(priority: Floats, explore: Floats, group: Ints, minimum: Ints, draws: Draws) -> Ints:
    """The stage in which each of the free agents is chosen: FIRST, for its group, or REST; 0 if it is not."""
    stage = np.zeros(priority.size, np.int64)
    for code, wanted in enumerate(minimum):
        if wanted:
            members = np.flatnonzero(group == code)
            stage[members] = _choose(priority[members], explore, int(wanted), draws, draws.agents[members], GROUPS)
    left = np.flatnonzero(stage == 0)
    remaining = draws.budget - int(minimum.sum())
    stage[left] = REST * _choose(priority[left], explore, remaining, draws, draws.agents[left], rng.TIE)
    return stage


def _choose(priority: Floats, explore: Floats, budget: int, draws: Draws, agents: Ints, ties: int) -> Bools:
    """The choice of the simulation; one draw decides for all stages whether the round explores."""
    action = np.empty((1, priority.size), np.int64)
    coins = draws.branch(rng.EXPLORE)
    choose(priority[None], explore, budget, coins, draws.branch(ties), np.ascontiguousarray(agents), action)
    taken: Bools = action[0] == 1
    return taken


def _random(group: Ints, minimum: Ints, places: int) -> Floats:
    """The probability of each agent when all places are drawn at random.

    >>> _random(np.array([0, 0, -1, -1]), np.array([1]), 2).round(3)  # one of two, then one of the three left
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
    """The probability of each agent when the best are chosen, with ties broken at random."""
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
    # Which tied agents are left is random, how many is not, so the cutoff of the rest is always the same.
    cutoff = find_cutoff(np.ascontiguousarray(priority[left]), remaining)
    share = (remaining - cutoff.above) / cutoff.tied
    rest = np.where(priority > cutoff.value, 1.0, np.where(priority == cutoff.value, share, 0.0))
    return first + (1 - first) * rest


def _average_noise(
    mean: Floats, noise: Floats, group: Ints, minimum: Ints, draws: Draws, break_even: float
) -> tuple[Floats, Floats]:
    """The probability of each agent, averaged over the noise in the priorities, and its standard error."""
    if draws.budget == 0:
        return np.zeros(mean.size), np.zeros(mean.size)
    number = int(np.clip(DRAWN_NUMBERS // max(mean.size, 1), MIN_DRAWS, MAX_DRAWS))
    key = draws.branch(REDRAWN)[0]
    rest = draws.budget, key, draws.agents, number, break_even
    averaged: tuple[Floats, Floats] = inclusion_probabilities(mean, noise, group.astype(np.int64), minimum, *rest)
    return averaged
