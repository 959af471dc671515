"""Sums over agents that do not depend on how agents are divided over threads, files or machines, bit for bit.

Agents are added one after the other within blocks of BLOCK agent numbers, and blocks in the order of a fixed binary
tree: blocks 2i and 2i + 1, then pairs of pairs, and so on. Whoever has whole blocks can add them up to a few nodes of
the tree. Sums of up to BLOCK agents are plain sums.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from restive.kernels.jit import compiled
from restive.types import Floats, Ints

BLOCK = 1024
# n >> SHIFT is the block of agent n, which is the last of its block if n & LAST == LAST. Kernels loop over n from 0 on and
# write their sums at the end of each block: loops from other starts are slower, since numba then allows for negative n.
SHIFT, LAST = 10, BLOCK - 1


@compiled
def count_blocks(agents: int) -> int:
    """The number of blocks of so many agents, at least 1.

    >>> count_blocks(0), count_blocks(1024), count_blocks(1025)
    (1, 1, 2)
    """
    return max((agents + BLOCK - 1) // BLOCK, 1)


@compiled
def add_rows(rows: Floats) -> Floats:
    """The sums [B, K] over the agents of each block of their rows [N, K].

    >>> add_rows(np.ones((1025, 1))).tolist()
    [[1024.0], [1.0]]
    """
    parts = np.zeros((count_blocks(rows.shape[0]), rows.shape[1]))
    for n in range(rows.shape[0]):
        for k in range(rows.shape[1]):
            parts[n >> SHIFT, k] += rows[n, k]
    return parts


@compiled
def add_blocks(parts: Floats) -> Floats:
    """The sums [K] over blocks of their sums [B, K], which are overwritten.

    >>> add_blocks(np.array([[1.0], [1e17], [-1e17]]))  # (1 + 1e17) - 1e17
    array([0.])
    """
    size = parts.shape[0]
    while size > 1:
        half = (size + 1) // 2
        for b in range(half):
            for k in range(parts.shape[1]):
                right = parts[2 * b + 1, k] if 2 * b + 1 < size else 0.0
                parts[b, k] = parts[2 * b, k] + right
        size = half
    total: Floats = parts[0]
    return total


class Nodes(NamedTuple):
    """Some nodes of the tree, M of them."""

    level: Ints  # [M] 0 for blocks
    place: Ints  # [M] among the nodes of its level
    sums: Floats  # [M, K]


def climb(parts: Floats, first: int, blocks: int) -> Nodes:
    """The fewest nodes of the tree over `blocks` blocks that hold the sums [B, K] of those from block `first` on.

    >>> climb(np.ones((6, 1)), first=1, blocks=9).sums.tolist()  # block 1, blocks 2 and 3, blocks 4 and 5, block 6
    [[1.0], [1.0], [2.0], [2.0]]
    """
    found: list[tuple[int, int, Floats]] = []
    level, low, high = 0, first, first + len(parts)
    while low < high:
        if blocks == 1:
            found.append((level, 0, parts[0]))
            break
        if low % 2:
            found.append((level, low, parts[0]))
            parts, low = parts[1:], low + 1
        if low < high and high % 2 and high < blocks:
            found.append((level, high - 1, parts[-1]))
            parts, high = parts[:-1], high - 1
        if len(parts) % 2:  # the last node of a level has no sibling
            parts = np.concatenate([parts, np.zeros((1, parts.shape[1]))])
        parts = parts[0::2] + parts[1::2]
        level, low, high, blocks = level + 1, low // 2, (high + 1) // 2, (blocks + 1) // 2
    levels, places, sums = zip(*found, strict=True)
    return Nodes(np.array(levels), np.array(places), np.stack(sums))


def join_nodes(given: Iterable[Nodes], blocks: int) -> Floats:
    """The sums [K] over all blocks, bit for bit those of `add_blocks`; the nodes must hold each block once.

    >>> parts = np.array([[1.0], [1e17], [-1e17]])
    >>> join_nodes([climb(parts[:2], 0, 3), climb(parts[2:], 2, 3)], 3)
    array([0.])
    """
    known: dict[tuple[int, int], Floats] = {
        (int(level), int(place)): sums for nodes in given for level, place, sums in zip(*nodes, strict=True)
    }
    level = 0
    while blocks > 1:
        for place in sorted({place // 2 for at, place in known if at == level}):
            left, pair = known.pop((level, 2 * place)), 2 * place + 1
            known[level + 1, place] = left + (known.pop((level, pair)) if pair < blocks else 0.0)
        level, blocks = level + 1, (blocks + 1) // 2
    total: Floats = known[level, 0]
    return total
