"""Who gets the action: exactly `budget` agents of highest priority, ties at random, or anyone at all while exploring.

priority  [R, N]  any real number, minus and plus infinity included; NaN is an error
explore   [R]     the probability that a run ignores the priorities in this step and draws `budget` agents uniformly
action    [R, N]  0 or 1, exactly `budget` ones in every run

Ties matter: learners start with all priorities equal, and taking agents in their order would be a bias. Equal agents
are ordered by a random number of their own, which is drawn only where a tie has to be broken.
Priorities are random numbers to the processor, so a selection that moves them about mispredicts at every turn; counting
how many lie above a candidate does not branch, and is four times as fast for fifty agents as Hoare's selection.
"""

import math
from typing import NamedTuple

import numpy as np

from restive.kernels.jit import compiled
from restive.kernels.rng import fold, unit
from restive.types import Floats, Ints, Keys

# From here on a sample first says roughly where the bar is, so that few values need a closer look.
MANY, SAMPLE = 4096, 16384


class Bar(NamedTuple):
    """The k-th largest value, how many lie above it, and how many are equal to it."""

    value: float
    above: int
    level: int


@compiled
def find_bar(values: Floats, k: int) -> Bar:
    """The k-th largest of `values`, k from 1 to their number.

    >>> value, above, level = find_bar(np.array([3.0, 1.0, 2.0, 2.0]), 2)
    >>> float(value), above, level
    (2.0, 1, 2)
    """
    if values.size > MANY:
        low, high = _bracket(values, k)
        above, inside = _between(values, low, high)
        if above < k <= above + inside.size:
            bar = _scan(inside, k - above)
            return Bar(bar.value, bar.above + above, bar.level)
    return _scan(values, k)


@compiled
def _scan(values: Floats, k: int) -> Bar:
    """Try the values in turn; each one that is not the k-th largest says on which side of it that is."""
    low, high = -np.inf, np.inf
    place, stride = 0, _stride(values.size)
    for _ in range(values.size):
        candidate = values[place]
        place += stride if place + stride < values.size else stride - values.size
        if (low < candidate) & (candidate < high):
            above, least = _count(values, candidate)
            if above >= k:
                low = candidate
            elif least >= k:
                return Bar(candidate, above, least - above)
            else:
                high = candidate
    above, least = _count(values, np.inf)
    if least >= k:
        return Bar(np.inf, above, least)
    above, least = _count(values, -np.inf)
    return Bar(-np.inf, above, least - above)


@compiled
def _stride(size: int) -> int:
    """A step that visits every place once, and far from its neighbours: values may come sorted, one side first."""
    stride = 1 if size < 64 else int(0.618 * size)
    while math.gcd(stride, size) > 1:
        stride += 1
    return stride


@compiled
def _count(values: Floats, candidate: float) -> tuple[int, int]:
    """How many values lie above the candidate, and how many at least reach it."""
    above, least = 0, 0
    for place in range(values.size):
        above += values[place] > candidate
        least += values[place] >= candidate
    return above, least


@compiled
def _bracket(values: Floats, k: int) -> tuple[float, float]:
    """Two values that very likely have the k-th largest between them, from a sample at equal distances."""
    stride = max(1, values.size // SAMPLE)
    sample = values[::stride].copy()
    middle = sample.size * (k - 0.5) / values.size
    reach = 4.0 * np.sqrt(middle * max(0.0, 1.0 - middle / sample.size)) + 4.0
    first, last = int(middle - reach), int(middle + reach) + 1
    high = _scan(sample, first).value if first >= 1 else np.inf
    low = _scan(sample, last).value if last <= sample.size else -np.inf
    return low, high


@compiled
def _between(values: Floats, low: float, high: float) -> tuple[int, Floats]:
    """How many values lie above `high`, and those from `low` to `high`."""
    above, _ = _count(values, high)
    _, least = _count(values, low)
    inside = np.empty(least - above)
    kept = 0
    for place in range(values.size):
        if (low <= values[place]) & (values[place] <= high):
            inside[kept] = values[place]
            kept += 1
    return above, inside


@compiled
def _mark_at_random(key: np.uint64, agents: Ints, tied: Ints, wanted: int, marks: Ints) -> None:
    """Mark `wanted` of the places in `tied`, all sets of that size equally likely."""
    luck = np.empty(tied.size)
    for m in range(tied.size):
        luck[m] = unit(fold(key, agents[tied[m]]))
    bar = find_bar(luck, wanted)
    for m in range(tied.size):
        # Two equal 53-bit numbers are possible, if unlikely; exactly `wanted` is promised.
        if luck[m] >= bar.value and wanted > 0:
            marks[tied[m]] = 1
            wanted -= 1


@compiled
def _mark_highest(priority: Floats, budget: int, key: np.uint64, agents: Ints, marks: Ints) -> None:
    """Mark the `budget` highest; `budget` is at least 1."""
    bar = find_bar(priority, budget)
    if bar.above + bar.level == budget:
        for n in range(priority.size):
            marks[n] = priority[n] >= bar.value
    else:
        for n in range(priority.size):
            marks[n] = priority[n] > bar.value
        _mark_at_random(key, agents, np.flatnonzero(priority == bar.value), budget - bar.above, marks)


@compiled
def choose(priority: Floats, explore: Floats, budget: int, coins: Keys, ties: Keys, agents: Ints, action: Ints) -> int:
    """Write the choice of every run into `action`; return the run of the first NaN, or −1 when there is none.

    coins, ties: the keys of the runs for the streams EXPLORE and TIE in this step.
    """
    everyone = np.arange(priority.shape[1])
    for r in range(priority.shape[0]):
        faults = 0
        for n in range(priority.shape[1]):
            faults += np.isnan(priority[r, n])
        if faults > 0:
            return r
        if budget == 0:
            action[r, :] = 0
        elif explore[r] > 0.0 and unit(fold(coins[r], 0)) < explore[r]:
            action[r, :] = 0
            _mark_at_random(ties[r], agents, everyone, budget, action[r])
        else:
            _mark_highest(priority[r], budget, ties[r], agents, action[r])
    return -1


@compiled
def inclusion(priority: Floats, explore: Floats, budget: int) -> Floats:
    """The probability that each agent is chosen, given the priorities, [R, N].

    explore · budget / N + (1 − explore) · (1 above the bar, the places left shared equally at it, 0 below)

    >>> inclusion(np.array([[2.0, 1.0, 1.0, 0.0]]), np.array([0.2]), 2)
    array([[0.9, 0.5, 0.5, 0.1]])
    """
    runs, size = priority.shape
    chance = np.zeros((runs, size))
    if budget == 0:
        return chance
    for r in range(runs):
        bar = find_bar(priority[r], budget)
        share = (budget - bar.above) / bar.level
        for n in range(size):
            greedy = 1.0 if priority[r, n] > bar.value else share if priority[r, n] == bar.value else 0.0
            chance[r, n] = explore[r] * budget / size + (1.0 - explore[r]) * greedy
    return chance
