"""The exact top k of priorities that are divided into partitions, by histograms of a few hundred bytes each.

A priority becomes an unsigned integer of the same order. Each pass asks every partition for the keys between two
bounds: the distinct ones with their counts if they are few, otherwise a histogram of BINS bins. The bin that holds the
k-th largest key becomes the bounds of the next pass, so a pass narrows the bounds by a factor of BINS or ends the search.
Ties at the cutoff are broken as in `restive.kernels.top_k`: by the largest random draw, then by the lowest number.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from restive.types import Bools, Floats, Ints

KeyArray = npt.NDArray[np.uint64]
BINS = 256
_SIGN, _MAX = np.uint64(1 << 63), (1 << 64) - 1


class Window(NamedTuple):
    """The keys of a partition from `low` to `high`, both included."""

    above: int  # the number of keys above the window
    keys: KeyArray | None  # the distinct ones in it, ascending; None if they are many
    counts: Ints  # of these, or of the bins


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
        if distinct.size <= BINS // 2:
            return Window(above, distinct, times)
        return Window(above, None, counts)
    return Window(above, inside, np.zeros(0, np.int64))


def find_kth(ask: Callable[[int, int], Sequence[Window]], k: int) -> KthLargest:
    """The k-th largest key; `ask(low, high)` returns the windows of all partitions, k is from 1 to the number of keys.

    >>> parts = [order_keys(np.array(part)) for part in ([3.0, 1.0], [2.0, 2.0])]
    >>> found = find_kth(lambda low, high: [look(part, low, high) for part in parts], 2)
    >>> found.above, found.tied, found.key == int(order_keys(np.array([2.0]))[0])
    (1, 2, True)
    """
    low, high, passes = 0, _MAX, 0
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


def mark_top(parts: Sequence[tuple[Floats, Floats, Ints]], k: int) -> list[Bools]:
    """Mark the k highest of all partitions; a partition is the priorities, tie draws and numbers of its agents."""
    chosen: list[Bools] = [np.zeros(priority.size, np.bool_) for priority, _, _ in parts]
    candidates = [np.ones(priority.size, np.bool_) for priority, _, _ in parts]
    levels: list[list[Any]] = [
        [order_keys(priority) for priority, _, _ in parts],
        [order_keys(draw) for _, draw, _ in parts],
        [~number.astype(np.uint64) for _, _, number in parts],
    ]
    for keys in levels:
        if k == 0:
            break
        some = [key[left] for key, left in zip(keys, candidates, strict=True)]
        found = find_kth(lambda low, high, some=some: [look(each, low, high) for each in some], k)  # type: ignore[misc]
        whole, cutoff = found.above + found.tied == k, np.uint64(found.key)
        for mark, key, left in zip(chosen, keys, candidates, strict=True):
            mark |= left & ((key >= cutoff) if whole else (key > cutoff))
            left &= key == cutoff
        k -= found.above + (found.tied if whole else 0)
    return chosen
