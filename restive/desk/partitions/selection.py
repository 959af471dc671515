"""The exact top k of priorities that are divided into partitions, by histograms of a few bins each.

A priority becomes an unsigned integer of the same order. Each pass asks every partition for the keys between two
bounds: the distinct ones with their counts if they are few, otherwise a histogram of BINS bins. The bin that holds the
k-th largest key becomes the bounds of the next pass, so a pass narrows the bounds by a factor of BINS or ends the search.
Ties at the cutoff are broken as in `restive.kernels.top_k`: by the largest random draw, then by the lowest number.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from restive.kernels import rng
from restive.types import Bools, Floats, Ints, Keys

KeyArray = npt.NDArray[np.uint64]
BINS, MAX_DISTINCT = 64, 32
_SIGN, _MAX = np.uint64(1 << 63), (1 << 64) - 1
_DRAWS = 1 << 53  # different draws; they are multiples of 1 / _DRAWS


class Window(NamedTuple):
    """The keys of a partition from `low` to `high`, both included."""

    above: int  # the number of keys above the window
    keys: KeyArray | None  # the distinct ones in it, ascending; None if they are many
    counts: npt.NDArray[np.int32]  # of these, or of the bins


class KthLargest(NamedTuple):
    """The k-th largest key of all partitions."""

    key: int
    above: int
    tied: int
    passes: int


def order_keys(priority: Floats) -> KeyArray:
    """Integers in the order of finite or infinite priorities; −0 and 0 are equal.

    >>> order_keys(np.array([-np.inf, -1.0, -0.0, 0.0, 2.0])).argsort(kind="stable").tolist()
    [0, 1, 2, 3, 4]
    >>> keys = order_keys(np.array([-0.0, 0.0]))
    >>> bool(keys[0] == keys[1])
    True
    """
    bits = (priority + 0.0).view(np.uint64)
    flipped: KeyArray = np.where(bits & _SIGN, ~bits, bits | _SIGN)
    return flipped


def bin_width(low: int, high: int) -> int:
    """The width of BINS bins that cover a window."""
    return (high - low) // BINS + 1


def look(keys: KeyArray, low: int, high: int) -> Window:
    """What one partition says of a window."""
    inside = keys[(keys >= np.uint64(low)) & (keys <= np.uint64(high))]
    above = int((keys > np.uint64(high)).sum())
    binned = (inside - np.uint64(low)) // np.uint64(bin_width(low, high))
    counts = np.bincount(binned.astype(np.int64), minlength=BINS)
    if inside.size:
        distinct, times = np.unique(inside, return_counts=True)
        if distinct.size <= MAX_DISTINCT:
            return Window(above, distinct, times.astype(np.int32))
        return Window(above, None, counts.astype(np.int32))
    return Window(above, inside, np.zeros(0, np.int32))


def find_kth(ask: Callable[[int, int], Sequence[Window]], k: int, low: int = 0, high: int = _MAX) -> KthLargest:
    """The k-th largest key; `ask(low, high)` returns the windows of all partitions, k is from 1 to the number of keys.

    low, high: bounds of all keys

    >>> parts = [order_keys(np.array(part)) for part in ([3.0, 1.0], [2.0, 2.0])]
    >>> found = find_kth(lambda low, high: [look(part, low, high) for part in parts], 2)
    >>> found.above, found.tied, found.key == int(order_keys(np.array([2.0]))[0])
    (1, 2, True)
    """
    passes = 0
    while True:
        windows, passes = ask(low, high), passes + 1
        above = sum(window.above for window in windows)
        known = [(window.keys, window.counts) for window in windows if window.keys is not None]
        if len(known) == len(windows):
            keys = np.concatenate([keys for keys, _ in known])
            distinct, place = np.unique(keys, return_inverse=True)
            counts = np.bincount(place, np.concatenate([counts for _, counts in known]), distinct.size).astype(np.int64)
            where, before = _find_bin(counts, k - above)
            return KthLargest(int(distinct[where]), above + before, int(counts[where]), passes)
        width, total = bin_width(low, high), np.zeros(BINS, np.int64)
        for window in windows:
            if window.keys is None:
                total += window.counts
            else:
                places = ((window.keys - np.uint64(low)) // np.uint64(width)).astype(np.int64)
                np.add.at(total, places, window.counts)
        where, _ = _find_bin(total, k - above)
        low, high = low + where * width, min(low + (where + 1) * width - 1, high)


def _find_bin(counts: Ints, k: int) -> tuple[int, int]:
    """The bin of the k-th largest, and the number in the bins above it."""
    from_top = np.cumsum(counts[::-1])
    place = int(np.searchsorted(from_top, k))
    return counts.size - 1 - place, int(from_top[place] - counts[counts.size - 1 - place])


class Cut(NamedTuple):
    """The last place of a selection, by the keys of priority, tie draw and number; 0 where all that are tied are chosen."""

    keys: tuple[int, int, int]
    above: int  # the number of agents of higher priority than the last
    tied: int  # of the same priority
    wanted: int
    passes: int

    @property
    def share(self) -> float:
        """The probability of each agent with the priority of the last place, if ties are broken at random."""
        return (self.wanted - self.above) / self.tied


# The windows of all partitions: of the keys that follow some keys, those of higher levels, between two bounds.
Ask = Callable[[tuple[int, ...], int, int], Sequence[Window]]


def find_cut(ask: Ask, k: int, low: int = 0, high: int = _MAX) -> Cut:
    """The last place if k agents are chosen, k from 1 to their number; priorities have keys from `low` to `high`."""
    keys, left, passes, first = [0, 0, 0], k, 0, None
    for level, bounds in enumerate(((low, high), (0, _DRAWS - 1), (0, _MAX))):
        chosen = tuple(keys[:level])
        found = find_kth(lambda low, high, chosen=chosen: ask(chosen, low, high), left, *bounds)  # type: ignore[misc]
        first = first or found
        keys[level], passes, left = found.key, passes + found.passes, left - found.above
        if found.tied == left:
            break
    assert first is not None
    return Cut((keys[0], keys[1], keys[2]), first.above, first.tied, k, passes)


class Agents(NamedTuple):
    """Some agents of a partition: their priorities and numbers, and the key of the stream that breaks ties."""

    priority: Floats
    number: Ints
    ties: Keys

    def keys(self, above: tuple[int, ...]) -> KeyArray:
        """The keys of those whose keys of higher levels are these."""
        keys = order_keys(self.priority)
        if not above:
            return keys
        number = self.number[keys == np.uint64(above[0])]
        drawn = self.draw(number)
        return drawn if len(above) == 1 else ~number[drawn == np.uint64(above[1])].astype(np.uint64)

    def draw(self, number: Ints) -> KeyArray:
        """The keys of tie draws."""
        drawn: KeyArray = (rng.uniform(self.ties, np.ascontiguousarray(number))[0] * _DRAWS).astype(np.uint64)
        return drawn

    def mark(self, cut: Cut) -> Bools:
        """Those that are chosen."""
        keys, (first, second, third) = order_keys(self.priority), cut.keys
        chosen: Bools = keys > np.uint64(first)
        tied = np.flatnonzero(keys == np.uint64(first))
        drawn, number = self.draw(self.number[tied]), ~self.number[tied].astype(np.uint64)
        last = (drawn == np.uint64(second)) & (number >= np.uint64(third))
        chosen[tied] = (drawn > np.uint64(second)) | last
        return chosen
