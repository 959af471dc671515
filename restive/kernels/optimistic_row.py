"""The best row of probabilities within a box around an estimate: the inner step of optimistic planning.

max Σ_j row_j · value_j   over   max(0, estimate_j − radius) ≤ row_j ≤ min(1, estimate_j + radius),  Σ_j row_j = 1.

A greedy assignment is exact: give every entry its minimum, then the rest to the entries of highest value first
(Strehl and Littman 2008, section 3; Jaksch, Ortner and Auer 2010, figure 2, for the L1 ball).
"""

from restive.kernels.jit import compiled
from restive.types import Floats, Ints


@compiled
def sort_descending(value: Floats, order: Ints) -> None:
    """Fill `order` with the positions of `value` from the largest entry to the smallest; the sort is stable."""
    for j in range(value.size):
        k = j
        while k > 0 and value[order[k - 1]] < value[j]:
            order[k] = order[k - 1]
            k -= 1
        order[k] = j


@compiled
def best_row(estimate: Floats, radius: float, order: Ints, row: Floats) -> None:
    """Fill `row` with the distribution in the box that puts the most weight on the first positions of `order`.

    >>> best_row(np.array([0.5, 0.5]), 0.2, np.array([1, 0]), row := np.empty(2))
    >>> row
    array([0.3, 0.7])
    """
    left = 1.0
    for j in range(estimate.size):
        row[j] = max(0.0, estimate[j] - radius)
        left -= row[j]
    for j in order:
        extra = min(left, min(1.0, estimate[j] + radius) - row[j])
        row[j] += extra
        left -= extra
