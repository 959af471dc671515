"""What every benchmark shares: the row it reports, and how a time is taken."""

import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

Result = TypeVar("Result")


class Row(NamedTuple):
    what: str
    against: str
    ours: float
    theirs: float
    wanted: str  # "≥ 40": at least so many times as fast; "≤ 4": at most so many times as long


def clock(work: Callable[[], Result]) -> tuple[float, Result]:
    """The seconds that some work takes, and what it gives."""
    begun = time.perf_counter()
    result = work()
    return time.perf_counter() - begun, result


def best_of(work: Callable[[], object], repeats: int) -> float:
    """The shortest of several times in seconds: the one least disturbed by the rest of the machine."""
    return min(clock(work)[0] for _ in range(repeats))
