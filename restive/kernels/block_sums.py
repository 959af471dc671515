"""Sums over agents that do not depend on how agents are divided over threads, files or machines, bit for bit.

Agents are added one after the other within blocks of BLOCK agent numbers, and blocks in the order of a fixed binary
tree: blocks 2i and 2i + 1, then pairs of pairs, and so on. Whoever has whole blocks can add them up to a few nodes of
the tree. Sums of up to BLOCK agents are plain sums.
"""

import numpy as np

from restive.kernels.jit import compiled
from restive.types import Floats

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
