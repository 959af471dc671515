"""How likely each agent is chosen when priorities hold bell-shaped luck, and groups have places of their own.

mean, luck  [N]  priority = mean + luck · Z, with Z from `randomness.bell`, one for each agent
group       [N]  the group of each agent, −1 for none; groups from G on have no places of their own
minimum     [G]  places of each group's own, at most its size; their sum is at most `budget`, and that at most N

Chosen are the `minimum[g]` best of each group g, then, for the rest of the budget, the best of all that are left. Given
the luck of the others an agent is chosen exactly when it beats a bar: the last place of its group or the last place of
the rest, both as they would be without it, whichever is lower. So the luck of everybody is drawn a few times, and what
is averaged is not who was chosen but how likely each agent's own luck lifts it above its bar. That is smooth, so few
draws do, fewer the more agents there are, but more for an agent whose luck is small beside how far its bar moves from
draw to draw. Agents without luck are counted as they are, ties shared.
"""

from typing import NamedTuple

import numpy as np

from restive.kernels.jit import compiled
from restive.kernels.rng import bell, fold
from restive.kernels.top_k import find_bar
from restive.types import Bools, Floats, Ints

_ROOT = 3.0**0.5
# The luck of `bell` goes no further than 2 √3.
_FURTHEST = 4.0


class Places(NamedTuple):
    """By group, then of the rest, then of no group, where −1 leads: who gets the last place, who is next in line."""

    last: Floats  # [G + 2] the priority of the last that gets a place, plus infinity where there is none
    after: Floats  # [G + 2] the priority of the next, minus infinity where nobody is left
    tied: Floats  # [G + 2] the share of a place for each of those who are level with the last


@compiled
def bell_above(x: float) -> float:
    """P(bell > x): four uniform numbers added up have the law of Irwin and Hall, here with mean 0 and variance 1.

    >>> bell_above(0.0), round(bell_above(3.0**0.5) * 24, 9), bell_above(4.0)  # one of 24 corners of a cube
    (0.5, 1.0, 0.0)
    """
    rest = 2.0 - abs(x) / _ROOT
    if rest <= 0.0:
        tail = 0.0
    else:
        beyond = max(rest - 1.0, 0.0)
        square, beyond_square = rest * rest, beyond * beyond
        tail = (square * square - 4.0 * beyond_square * beyond_square) / 24.0
    return tail if x >= 0.0 else 1.0 - tail


@compiled
def inclusion_probabilities(
    mean: Floats, luck: Floats, group: Ints, minimum: Ints, budget: int, key: np.uint64, agents: Ints, draws: int
) -> Floats:
    """The probability that each agent is chosen, [N]; `key` and the agents' numbers say which luck is drawn.

    average over draws of  P(mean + luck · Z > bar),  or for an agent without luck 1 above the last place, 0 below it,
    and at it an equal share of the places left

    >>> nobody, key = np.full(3, -1), np.uint64(1)
    >>> inclusion_probabilities(np.array([2.0, 1.0, 1.0]), np.zeros(3), nobody, np.zeros(0, np.int64), 2, key, np.arange(3), 1)
    array([1. , 0.5, 0.5])
    >>> own = np.array([0, 0, 1])  # one place for group 1, whoever is in it
    >>> inclusion_probabilities(np.array([2.0, 2.0, 0.0]), np.zeros(3), own, np.array([0, 1]), 2, key, np.arange(3), 1)
    array([0.5, 0.5, 1. ])
    """
    steady = _mark_steady(mean, luck)
    times = 1 if steady.all() else draws
    chance, priority = np.zeros(mean.size), np.empty(mean.size)
    order, first = _sort_groups(group, minimum)
    for draw in range(times):
        below = fold(key, draw)
        for n in range(mean.size):
            priority[n] = mean[n] if steady[n] else mean[n] + luck[n] * bell(fold(below, agents[n]))
        places = _find_places(priority, minimum, budget, order, first)
        _add_probabilities(mean, luck, steady, priority, group, places, chance)
    return chance / times


@compiled
def _mark_steady(mean: Floats, luck: Floats) -> Bools:
    """Whose priority luck cannot move: there is none, or it is lost in rounding, or the mean is infinite."""
    steady = np.empty(mean.size, np.bool_)
    for n in range(mean.size):
        steady[n] = mean[n] + _FURTHEST * luck[n] == mean[n]
    return steady


@compiled
def _sort_groups(group: Ints, minimum: Ints) -> tuple[Ints, Ints]:
    """The places of agents group by group, those without places of their own last; where each group begins, [G + 2]."""
    groups = minimum.size
    sizes = np.zeros(groups + 2, np.int64)
    for n in range(group.size):
        sizes[1 + _room(group[n], minimum)] += 1
    for g in range(groups + 1):
        sizes[g + 1] += sizes[g]
    first, following, order = sizes, sizes.copy(), np.empty(group.size, np.int64)
    if minimum.sum() > 0:
        for n in range(group.size):
            room = _room(group[n], minimum)
            order[following[room]] = n
            following[room] += 1
    return order, first


@compiled
def _room(group: int, minimum: Ints) -> int:
    """The group of an agent if that has places of its own, else G, the rest."""
    return group if 0 <= group < minimum.size and minimum[group] > 0 else minimum.size


@compiled
def _find_places(priority: Floats, minimum: Ints, budget: int, order: Ints, first: Ints) -> Places:
    """Fill the places of the groups, then those of the rest."""
    rest, own = minimum.size, minimum.sum()
    last, after, tied = np.full(rest + 2, np.inf), np.full(rest + 2, -np.inf), np.zeros(rest + 2)
    if own == 0:
        last[rest], after[rest], tied[rest] = _last_place(priority, budget)
        return Places(last, after, tied)
    left, kept = np.empty(priority.size - own), 0
    for g in range(rest):
        if minimum[g] > 0:
            inside = _gather(priority, order, first[g], first[g + 1])
            last[g], after[g], tied[g] = _last_place(inside, minimum[g])
            kept = _keep_left(inside, minimum[g], last[g], left, kept)
    left[kept:] = _gather(priority, order, first[rest], first[rest + 1])
    last[rest], after[rest], tied[rest] = _last_place(left, budget - own)
    return Places(last, after, tied)


@compiled
def _gather(priority: Floats, order: Ints, begin: int, end: int) -> Floats:
    inside = np.empty(end - begin)
    for m in range(inside.size):
        inside[m] = priority[order[begin + m]]
    return inside


@compiled
def _keep_left(inside: Floats, wanted: int, bar: float, left: Floats, kept: int) -> int:
    """Append all but the `wanted` best to `left`; of those at the bar it does not matter who."""
    for m in range(inside.size):
        wanted -= inside[m] > bar
    for m in range(inside.size):
        if inside[m] == bar and wanted > 0:
            wanted -= 1
        elif inside[m] <= bar:
            left[kept] = inside[m]
            kept += 1
    return kept


@compiled
def _last_place(values: Floats, places: int) -> tuple[float, float, float]:
    """The last value that gets one of `places`, the next in line, and the share of a place for those level with it."""
    if places == 0:
        return np.inf, values.max() if values.size > 0 else -np.inf, 0.0
    bar = find_bar(values, places)
    share = (places - bar.above) / bar.level
    if share < 1.0:
        return bar.value, bar.value, share
    following = -np.inf
    for m in range(values.size):
        following = max(following, values[m] if values[m] < bar.value else -np.inf)
    return bar.value, following, share


@compiled
def _share(value: float, last: float, tied: float) -> float:
    return 1.0 if value > last else tied if value == last else 0.0


@compiled
def _add_probabilities(
    mean: Floats, luck: Floats, steady: Bools, priority: Floats, group: Ints, places: Places, chance: Floats
) -> None:
    """Add how likely each agent is chosen, given the luck of the others."""
    rest = places.last.size - 2
    last, after, tied = places.last[rest], places.after[rest], places.tied[rest]
    for n in range(mean.size):
        own, value = group[n] if group[n] < rest else -1, priority[n]
        own_last = places.last[own]
        if steady[n]:
            share = _share(value, own_last, places.tied[own])
            chance[n] += share + (1.0 - share) * _share(value, last, tied)
        else:
            # Without the agent the next in line has its place. If that was one of the group's, the rest loses whom the
            # group takes instead: then the bar is that one, or if it had a place in the rest, the next in line there.
            if value >= own_last:
                bar = min(places.after[own], after)
            elif value >= last:
                bar = after
            else:
                bar = min(own_last, last)
            chance[n] += bell_above((bar - mean[n]) / luck[n])
