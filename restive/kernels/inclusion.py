"""Inclusion probabilities when priorities hold random noise and groups have quotas.

mean, noise  [N]  priority = mean + noise · Z, with Z from `rng.near_normal`, one for each agent
group        [N]  the group of each agent, −1 for none; groups from G on have no quota
quota        [G]  places reserved for each group, at most its size; their sum is at most `budget`, and that at most N

The `quota[g]` best agents of each group g are chosen, then, for the rest of the budget, the best of all others; agents
whose priority is `break_even` or less are never chosen, if it is not minus infinity. Given
the noise of the others, an agent is chosen exactly when it exceeds a cutoff: the lower of the last place of its group
and the last place of the rest, both without the agent itself. So the noise of all agents is drawn a few times, and the
probability that an agent's own noise lifts it above its cutoff is averaged over these draws. This is smooth, so few
draws suffice: fewer with more agents, more for an agent whose noise is small beside the variation of its cutoff. Agents
without noise are counted as they are, and ties share the places left. An average over draws has a standard error.
"""

from typing import NamedTuple

import numpy as np

from restive.kernels.jit import compiled, inlined
from restive.kernels.rng import fold, near_normal
from restive.kernels.top_k import find_cutoff
from restive.types import Bools, Floats, Ints

_ROOT = 3.0**0.5
# `near_normal` is bounded by 2 √3.
_MAX_NOISE = 4.0


class Places(NamedTuple):
    """Who gets the last place: by group, then of the rest, then of no group (index −1)."""

    last: Floats  # [G + 2] the priority of the last agent that gets a place, plus infinity if there is none
    after: Floats  # [G + 2] the priority of the next one, minus infinity if there is none
    tied: Floats  # [G + 2] the probability of a place for those tied with the last


@inlined
def near_normal_above(x: float) -> float:
    """P(Z > x) for Z from `rng.near_normal`: the Irwin-Hall distribution of four uniforms, standardised.

    >>> near_normal_above(0.0), round(near_normal_above(3.0**0.5) * 24, 9), near_normal_above(4.0)
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
    mean: Floats,
    noise: Floats,
    group: Ints,
    quota: Ints,
    budget: int,
    key: np.uint64,
    agents: Ints,
    draws: int,
    break_even: float = -np.inf,
) -> tuple[Floats, Floats]:
    """The probability that each agent is chosen, [N], and its standard error, [N]; `key` and `agents` define the draws.

    Average over draws of  P(mean + noise · Z > cutoff);  without noise it is 1 above the last place, 0 below it, and an
    equal share of the places left at it. If nobody has noise, it is exact: the error is 0.

    >>> none, key = np.full(3, -1), np.uint64(1)
    >>> inclusion_probabilities(np.array([2.0, 1.0, 1.0]), np.zeros(3), none, np.zeros(0, np.int64), 2, key, np.arange(3), 1)
    (array([1. , 0.5, 0.5]), array([0., 0., 0.]))
    >>> group = np.array([0, 0, 1])  # one place is reserved for group 1
    >>> inclusion_probabilities(np.array([2.0, 2.0, 0.0]), np.zeros(3), group, np.array([0, 1]), 2, key, np.arange(3), 1)
    (array([0.5, 0.5, 1. ]), array([0., 0., 0.]))
    """
    fixed = _mark_fixed(mean, noise)
    times = 1 if fixed.all() else draws
    total, squares, priority = np.zeros(mean.size), np.zeros(mean.size), np.empty(mean.size)
    order, first = _sort_groups(group, quota)
    for draw in range(times):
        below = fold(key, draw)
        for n in range(mean.size):
            priority[n] = mean[n] if fixed[n] else mean[n] + noise[n] * near_normal(fold(below, agents[n]))
        places = _find_places(priority, quota, budget, order, first, break_even)
        _add_probabilities(mean, noise, fixed, priority, group, places, total, squares)
    return total / times, find_standard_errors(total, squares, fixed, times)


@compiled
def find_standard_errors(total: Floats, squares: Floats, fixed: Bools, draws: int) -> Floats:
    """The standard errors of means, [N], from sums and sums of squares over draws; 0 if there is only one draw.

    Agents that are chosen or not in a draw (`fixed`) are at least as uncertain as if one draw in 2 (draws + 1) had been
    the other way: that all draws agree does not prove that the next one does.

    >>> find_standard_errors(np.array([2.0, 0.0]), np.array([2.0, 0.0]), np.ones(2, np.bool_), 4).round(3)
    array([0.289, 0.158])
    """
    error = np.zeros(total.size)
    if draws > 1:
        for n in range(total.size):
            mean = total[n] / draws
            variance = max(squares[n] - draws * mean * mean, 0.0) / (draws - 1)
            if fixed[n]:
                variance = max(variance, 0.5 / (draws + 1))
            error[n] = np.sqrt(variance / draws)
    return error


@inlined
def _mark_fixed(mean: Floats, noise: Floats) -> Bools:
    """The agents whose priority noise cannot change: it is 0 or lost in rounding, or the mean is infinite."""
    fixed = np.empty(mean.size, np.bool_)
    for n in range(mean.size):
        fixed[n] = mean[n] + _MAX_NOISE * noise[n] == mean[n]
    return fixed


@inlined
def _sort_groups(group: Ints, quota: Ints) -> tuple[Ints, Ints]:
    """The positions of agents by group, those without a quota last; and where each group begins, [G + 2]."""
    groups = quota.size
    sizes = np.zeros(groups + 2, np.int64)
    for n in range(group.size):
        sizes[1 + _quota_group(group[n], quota)] += 1
    for g in range(groups + 1):
        sizes[g + 1] += sizes[g]
    first, following, order = sizes, sizes.copy(), np.empty(group.size, np.int64)
    if quota.sum() > 0:
        for n in range(group.size):
            own = _quota_group(group[n], quota)
            order[following[own]] = n
            following[own] += 1
    return order, first


@compiled
def _quota_group(group: int, quota: Ints) -> int:
    """The group of an agent if that has a quota, else G, the rest."""
    return group if 0 <= group < quota.size and quota[group] > 0 else quota.size


@inlined
def _find_places(priority: Floats, quota: Ints, budget: int, order: Ints, first: Ints, break_even: float) -> Places:
    """Fill the places of the groups, then those of the rest."""
    rest, reserved = quota.size, quota.sum()
    last, after, tied = np.full(rest + 2, np.inf), np.full(rest + 2, -np.inf), np.zeros(rest + 2)
    if reserved == 0:
        last[rest], after[rest], tied[rest] = _last_place(priority, budget, break_even)
        return Places(last, after, tied)
    left, count, taken = np.empty(priority.size), 0, 0
    for g in range(rest):
        if quota[g] > 0:
            inside = _gather(priority, order, first[g], first[g + 1])
            last[g], after[g], tied[g] = _last_place(inside, quota[g], break_even)
            before, count = count, _append_left(inside, quota[g], last[g], break_even, left, count)
            taken += inside.size - (count - before)
    others = _gather(priority, order, first[rest], first[rest + 1])
    left[count : count + others.size] = others
    last[rest], after[rest], tied[rest] = _last_place(left[: count + others.size], budget - taken, break_even)
    return Places(last, after, tied)


@compiled
def _gather(priority: Floats, order: Ints, begin: int, end: int) -> Floats:
    inside = np.empty(end - begin)
    for m in range(inside.size):
        inside[m] = priority[order[begin + m]]
    return inside


@inlined
def _append_left(inside: Floats, wanted: int, cutoff: float, break_even: float, left: Floats, count: int) -> int:
    """Append all but the `wanted` best to `left` and return its new length; ties at the cutoff are interchangeable."""
    for m in range(inside.size):
        wanted -= inside[m] > cutoff
    for m in range(inside.size):
        if inside[m] == cutoff and wanted > 0 and (cutoff > break_even or break_even == -np.inf):
            wanted -= 1
        elif inside[m] <= cutoff:
            left[count] = inside[m]
            count += 1
    return count


@compiled
def _last_place(values: Floats, places: int, break_even: float) -> tuple[float, float, float]:
    """The last value that gets one of `places`, the next one, and the probability of a place for ties at the last.

    Values get a place only above break-even, so that neither of the first two is below it.
    """
    if places == 0:
        return np.inf, max(values.max(), break_even) if values.size > 0 else break_even, 0.0
    cutoff = find_cutoff(values, places)
    if break_even > -np.inf and cutoff.value <= break_even:
        return break_even, break_even, 0.0
    share = (places - cutoff.above) / cutoff.tied
    if share < 1.0:
        return cutoff.value, cutoff.value, share
    following = break_even
    for m in range(values.size):
        following = max(following, values[m] if values[m] < cutoff.value else -np.inf)
    return cutoff.value, following, share


@compiled
def _share(value: float, last: float, tied: float) -> float:
    return 1.0 if value > last else tied if value == last else 0.0


@inlined
def _add_probabilities(
    mean: Floats, noise: Floats, fixed: Bools, priority: Floats, group: Ints, places: Places, total: Floats,
    squares: Floats,
) -> None:  # fmt: skip
    """Add the probability that each agent is chosen, given the noise of the others, and its square."""
    rest = places.last.size - 2
    last, after, tied = places.last[rest], places.after[rest], places.tied[rest]
    for n in range(mean.size):
        own, value = group[n] if group[n] < rest else -1, priority[n]
        own_last = places.last[own]
        if fixed[n]:
            share = _share(value, own_last, places.tied[own])
            probability = share + (1.0 - share) * _share(value, last, tied)
        else:
            # Without the agent, the next one gets its place. If that was a place of the group, the rest loses the
            # agent that moves up in the group: the cutoff is then that agent, or the next one of the rest.
            if value >= own_last:
                cutoff = min(places.after[own], after)
            elif value >= last:
                cutoff = after
            else:
                cutoff = min(own_last, last)
            probability = near_normal_above((cutoff - mean[n]) / noise[n])
        total[n] += probability
        squares[n] += probability * probability
