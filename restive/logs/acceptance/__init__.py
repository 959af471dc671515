"""Acceptance checks of everything that is said from logs: figures on histories whose truth is known.

Each module of this package registers checks; `restive check-logs` runs them, `--quick` in a small form.
"""

from collections.abc import Callable
from typing import NamedTuple


class Result(NamedTuple):
    """One figure, with what was wanted; a share also counts towards that of its `pool` over several checks."""

    what: str
    wanted: str
    reached: str
    holds: bool
    note: str = ""
    pool: str = ""
    held: int = 0
    of: int = 0


class Check(NamedTuple):
    """A named check: `run(quick)` simulates and returns its figures; the same seed gives the same figures."""

    name: str
    run: Callable[[bool], list[Result]]
