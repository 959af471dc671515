"""Top-k selection: exactly `budget` agents of highest priority, ties broken at random, or a uniform draw.

priority  [R, N]  any real number, minus and plus infinity included; NaN is an error
explore   [R]     the probability that a run ignores the priorities in this step and draws `budget` agents uniformly
action    [R, N]  0 or 1, exactly `budget` ones in every run

Learners start with all priorities equal, so choosing ties by position would be a bias. Ties are ordered by a random
number for each agent, drawn only where a tie has to be broken. Counting the values above a candidate has no branches to
mispredict, and is four times as fast for fifty agents as Hoare's selection.
"""

import math
from typing import NamedTuple

import numpy as np

from restive.kernels.jit import compiled, inlined
from restive.kernels.rng import fold, unit
from restive.types import Floats, Ints, Keys

# For more values than this a sample first brackets the cutoff.
MAX_SCAN, SAMPLE_SIZE = 4096, 16384
MAX_CUTS = 6  # of an interval into four


class Cutoff(NamedTuple):
    """The k-th largest value, the number of larger values, and the number of values equal to it."""

    value: float
    above: int
    tied: int


@compiled
def find_cutoff(values: Floats, k: int) -> Cutoff:
    """The k-th largest of `values`, k from 1 to their number.

    >>> value, above, tied = find_cutoff(np.array([3.0, 1.0, 2.0, 2.0]), 2)
    >>> float(value), above, tied
    (2.0, 1, 2)
    """
    if values.size > MAX_SCAN:
        low, high = _bracket(values, k)
        above, inside = _between(values, low, high)
        if above < k <= above + inside.size:
            cutoff = _scan(inside, k - above)
            return Cutoff(cutoff.value, cutoff.above + above, cutoff.tied)
    return _scan(values, k)


@compiled
def _scan(values: Floats, k: int) -> Cutoff:
    """Try the values in turn; each that is not the k-th largest narrows the interval that holds it."""
    low, high = -np.inf, np.inf
    position, stride = 0, _stride(values.size)
    for _ in range(values.size):
        candidate = values[position]
        position += stride if position + stride < values.size else stride - values.size
        if (low < candidate) & (candidate < high):
            above, least = _count(values, candidate)
            if above >= k:
                low = candidate
            elif least >= k:
                return Cutoff(candidate, above, least - above)
            else:
                high = candidate
    above, least = _count(values, np.inf)
    if least >= k:
        return Cutoff(np.inf, above, least)
    above, least = _count(values, -np.inf)
    return Cutoff(-np.inf, above, least - above)


@inlined
def _stride(size: int) -> int:
    """A step that visits every position once in a scattered order, because values may be sorted."""
    stride = 1 if size < 64 else int(0.618 * size)
    while math.gcd(stride, size) > 1:
        stride += 1
    return stride


@compiled
def _count(values: Floats, candidate: float) -> tuple[int, int]:
    """The number of values above the candidate, and the number at or above it."""
    above, least = 0, 0
    for m in range(values.size):
        above += values[m] > candidate
        least += values[m] >= candidate
    return above, least


@inlined
def _bracket(values: Floats, k: int) -> tuple[float, float]:
    """Two values that very likely bracket the k-th largest, from a systematic sample."""
    stride = max(1, values.size // SAMPLE_SIZE)
    sample = values[::stride].copy()
    middle = sample.size * (k - 0.5) / values.size
    reach = 4.0 * np.sqrt(middle * max(0.0, 1.0 - middle / sample.size)) + 4.0
    first, last = int(middle - reach), int(middle + reach) + 1
    high = _scan(sample, first).value if first >= 1 else np.inf
    low = _scan(sample, last).value if last <= sample.size else -np.inf
    return low, high


@inlined
def _between(values: Floats, low: float, high: float) -> tuple[int, Floats]:
    """The number of values above `high`, and the values from `low` to `high`."""
    above, _ = _count(values, high)
    _, least = _count(values, low)
    inside = np.empty(least - above)
    count = 0
    for m in range(values.size):
        if (low <= values[m]) & (values[m] <= high):
            inside[count] = values[m]
            count += 1
    return above, inside


@compiled
def _separate(values: Floats, k: int) -> float:
    """A number that exactly k values are above, found by cutting their interval into four several times; NaN: none found.

    There is none if the k-th largest value is tied with the next. It is not looked for among infinite values.
    """
    low, high = _extremes(values)
    if low == -np.inf or high == np.inf:
        return np.nan
    for _ in range(MAX_CUTS):
        second = 0.5 * low + 0.5 * high
        first, third = 0.5 * low + 0.5 * second, 0.5 * second + 0.5 * high
        most, many, few = _count_thrice(values, first, second, third)
        if (most == k) | (many == k) | (few == k):
            return first if most == k else second if many == k else third
        low, high = (
            third if few > k else second if many > k else first if most > k else low,
            high if few > k else third if many > k else second if most > k else first,
        )
    return np.nan


@compiled
def _extremes(values: Floats) -> tuple[float, float]:
    """The smallest and the largest value, two at a time, because each comparison waits for the one before."""
    low, high, low_2, high_2 = np.inf, -np.inf, np.inf, -np.inf
    for m in range(0, values.size - 1, 2):
        value, value_2 = values[m], values[m + 1]
        low, low_2 = value if value < low else low, value_2 if value_2 < low_2 else low_2
        high, high_2 = value if value > high else high, value_2 if value_2 > high_2 else high_2
    last = values[values.size - 1]
    return min(low, low_2, last), max(high, high_2, last)


@compiled
def _count_thrice(values: Floats, first: float, second: float, third: float) -> tuple[int, int, int]:
    """The numbers of values above three candidates."""
    most, many, few = 0, 0, 0
    for m in range(values.size):
        most += values[m] > first
        many += values[m] > second
        few += values[m] > third
    return most, many, few


@compiled
def _mark_at_random(key: np.uint64, agents: Ints, tied: Ints, wanted: int, marks: Ints) -> None:
    """Mark `wanted` of the positions in `tied`, all subsets of that size equally likely."""
    drawn = np.empty(tied.size)
    for m in range(tied.size):
        drawn[m] = unit(fold(key, agents[tied[m]]))
    cutoff = find_cutoff(drawn, wanted)
    for m in range(tied.size):
        # Two 53-bit numbers may be equal, but exactly `wanted` are marked.
        if drawn[m] >= cutoff.value and wanted > 0:
            marks[tied[m]] = 1
            wanted -= 1


@inlined
def _mark_highest(priority: Floats, budget: int, key: np.uint64, agents: Ints, marks: Ints) -> None:
    """Mark the `budget` highest; `budget` is at least 1."""
    if priority.size <= MAX_SCAN:
        border = _separate(priority, budget)
        if border == border:
            for n in range(priority.size):
                marks[n] = priority[n] > border
            return
    cutoff = find_cutoff(priority, budget)
    if cutoff.above + cutoff.tied == budget:
        for n in range(priority.size):
            marks[n] = priority[n] >= cutoff.value
    else:
        for n in range(priority.size):
            marks[n] = priority[n] > cutoff.value
        tied, found = np.empty(cutoff.tied, np.int64), 0
        for n in range(priority.size):
            if priority[n] == cutoff.value:
                tied[found] = n
                found += 1
        _mark_at_random(key, agents, tied, budget - cutoff.above, marks)


@compiled
def choose(
    priority: Floats, explore: Floats, budget: int, explore_keys: Keys, tie_keys: Keys, agents: Ints, action: Ints
) -> int:
    """Fill `action`; return the first run that has a NaN priority, or −1 if there is none.

    explore_keys, tie_keys [R]: the keys of the runs for the streams EXPLORE and TIE in this step.
    """
    everyone = np.arange(priority.shape[1])
    for r in range(priority.shape[0]):
        missing = 0
        for n in range(priority.shape[1]):
            missing += np.isnan(priority[r, n])
        if missing > 0:
            return r
        if budget == 0:
            action[r, :] = 0
        elif explore[r] > 0.0 and unit(fold(explore_keys[r], 0)) < explore[r]:
            action[r, :] = 0
            _mark_at_random(tie_keys[r], agents, everyone, budget, action[r])
        else:
            _mark_highest(priority[r], budget, tie_keys[r], agents, action[r])
    return -1


@compiled
def inclusion(priority: Floats, explore: Floats, budget: int) -> Floats:
    """The probability that each agent is chosen, given the priorities, [R, N].

    explore · budget / N + (1 − explore) · (1 above the cutoff, an equal share of the places left at it, 0 below)

    >>> inclusion(np.array([[2.0, 1.0, 1.0, 0.0]]), np.array([0.2]), 2)
    array([[0.9, 0.5, 0.5, 0.1]])
    """
    runs, size = priority.shape
    probability = np.zeros((runs, size))
    if budget == 0:
        return probability
    for r in range(runs):
        cutoff = find_cutoff(priority[r], budget)
        share = (budget - cutoff.above) / cutoff.tied
        for n in range(size):
            greedy = 1.0 if priority[r, n] > cutoff.value else share if priority[r, n] == cutoff.value else 0.0
            probability[r, n] = explore[r] * budget / size + (1.0 - explore[r]) * greedy
    return probability
