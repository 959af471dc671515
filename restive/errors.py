"""The one error for input that makes no sense: a sentence that names the place and says what is allowed.

Two kinds of it are told apart, because a caller elsewhere acts differently on them: what is not there, and what was
right to ask but has been settled otherwise.
"""

import math
from numbers import Integral, Real


class InputError(ValueError):
    """What the user gave does not fit; the command prints the sentence and exits with 2."""


class NotThere(InputError):  # noqa: N818 - a kind of input error, as its name says
    """There is no program, round or agent of that name."""


class Conflict(InputError):  # noqa: N818
    """What is asked for does not go with what is on record."""


def check_whole(name: str, value: object, low: int, high: int | None = None) -> int:
    """The whole number `value`; refuse what is not one, or not from `low` to `high` (no end when None)."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    number = int(value) if whole else low - 1  # type: ignore[call-overload]
    if number < low or (high is not None and number > high):
        allowed = f"from {low} on" if high is None else f"from {low} to {high}"
        raise InputError(f"{name} is {value!r}; it must be a whole number {allowed}.")
    return number


def check_number(name: str, value: object, must: str, low: float = -math.inf, high: float = math.inf) -> float:
    """The number `value`; refuse what is not one, NaN, or not from `low` to `high`; `must` says what is allowed."""
    number = float(value) if isinstance(value, Real) else math.nan
    if not low <= number <= high:
        raise InputError(f"{name} is {value!r}; {must}.")
    return number
