"""Who gets the action: exactly `budget` agents of highest priority, ties at random, or anyone at all while exploring.

priority  [R, N]  any real number, minus and plus infinity included; NaN is an error
explore   [R]     the probability that a run ignores the priorities in this step and draws `budget` agents uniformly
action    [R, N]  0 or 1, exactly `budget` ones in every run

Ties matter: learners start with all priorities equal, and taking agents in their order would be a bias. Equal agents
are ordered by a random number of their own, which is drawn only where a tie has to be broken.
"""

import numpy as np

from restive.kernels.compiled import compiled
from restive.kernels.randomness import fold, unit
from restive.types import Floats, Ints, Keys


@compiled
def kth_largest(values: Floats, k: int) -> float:
    """The k-th largest of `values` (k from 1), which are reordered: Hoare's selection with a median of three.

    >>> float(kth_largest(np.array([3.0, 1.0, 2.0, 2.0]), 3))
    2.0
    """
    low, high, place = 0, values.size - 1, k - 1
    while low < high:
        middle = (low + high) >> 1
        first, second, third = values[low], values[middle], values[high]
        pivot = max(min(first, second), min(max(first, second), third))
        i, j = low, high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if place <= j:
            high = j
        elif place >= i:
            low = i
        else:
            return float(pivot)
    return float(values[place])


@compiled
def _mark_at_random(
    key: np.uint64, agents: Ints, member: Ints, members: int, wanted: int, luck: Floats, marks: Ints
) -> None:
    """Mark `wanted` of the first `members` places in `member`, all sets of that size equally likely."""
    if wanted == members:
        for m in range(members):
            marks[member[m]] = 1
    elif wanted > 0:
        for m in range(members):
            luck[m] = unit(fold(key, agents[member[m]]))
        bar = kth_largest(luck[:members], wanted)
        for m in range(members):
            # Two equal 53-bit numbers are possible, if unlikely; exactly `wanted` is promised.
            if wanted > 0 and unit(fold(key, agents[member[m]])) >= bar:
                marks[member[m]] = 1
                wanted -= 1


@compiled
def choose(priority: Floats, explore: Floats, budget: int, coins: Keys, ties: Keys, agents: Ints, action: Ints) -> int:
    """Write the choice of every run into `action`; return the run of the first NaN, or −1 when there is none.

    coins, ties: the keys of the runs for the streams EXPLORE and TIE in this step.
    """
    runs, size = priority.shape
    work, member = np.empty(size), np.empty(size, np.int64)
    for r in range(runs):
        action[r, :] = 0
        tied, left = 0, budget
        if explore[r] > 0.0 and unit(fold(coins[r], 0)) < explore[r]:
            for n in range(size):
                member[n] = n
            tied = size
        else:
            for n in range(size):
                if np.isnan(priority[r, n]):
                    return r
                work[n] = priority[r, n]
            bar = kth_largest(work, budget) if budget > 0 else np.inf
            for n in range(size):
                if priority[r, n] > bar and left > 0:
                    action[r, n] = 1
                    left -= 1
                elif priority[r, n] == bar:
                    member[tied] = n
                    tied += 1
        _mark_at_random(ties[r], agents, member, tied, left, work, action[r])
    return -1


@compiled
def inclusion(priority: Floats, explore: Floats, budget: int) -> Floats:
    """The probability that each agent is chosen, given the priorities, [R, N].

    explore · budget / N + (1 − explore) · (1 above the bar, the places left shared equally at it, 0 below)

    >>> inclusion(np.array([[2.0, 1.0, 1.0, 0.0]]), np.array([0.2]), 2)
    array([[0.9, 0.5, 0.5, 0.1]])
    """
    runs, size = priority.shape
    chance = np.empty((runs, size))
    for r in range(runs):
        bar = kth_largest(priority[r].copy(), budget) if budget > 0 else np.inf
        above, level = 0, 0
        for n in range(size):
            above += priority[r, n] > bar
            level += priority[r, n] == bar
        share = min(1.0, (budget - above) / level) if level > 0 else 0.0
        for n in range(size):
            greedy = 1.0 if priority[r, n] > bar else share if priority[r, n] == bar else 0.0
            chance[r, n] = explore[r] * budget / size + (1.0 - explore[r]) * greedy
    return chance
