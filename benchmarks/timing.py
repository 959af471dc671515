"""What every benchmark shares: the row it reports, and the shortest of several times."""

import time
from collections.abc import Callable
from typing import NamedTuple


class Row(NamedTuple):
    what: str
    against: str
    ours: float
    theirs: float
    wanted: str  # "≥ 40": at least so many times as fast; "≤ 4": at most so many times as long


def best_of(work: Callable[[], object], repeats: int) -> float:
    """The shortest of several times in seconds: the one least disturbed by the rest of the machine."""
    return min(_clock(work) for _ in range(repeats))


def _clock(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun
