"""Errors as data: what is wrong, where, and what can be done about it.

A layer states the fact in `message`; the command line, the API and the pages each word their own advice from `code` and
`hint`. Nobody searches in a message or rewrites one.
"""

import difflib
import math
from collections.abc import Iterable, Sequence
from enum import StrEnum
from numbers import Integral, Real
from pathlib import Path


class Hint(StrEnum):
    """What the caller can do so that the same request is accepted."""

    AGAIN = "again"  # decide another round although the states are the same as in the last one
    NEW = "new"  # accept new agents whose ids look like known ones
    CORRECT = "correct"  # replace recorded values by the given ones
    CANCEL = "cancel"  # cancel the earlier round first
    COLUMNS = "columns"  # say which header is which column
    OVERWRITE = "overwrite"  # replace an existing file


class InputError(ValueError):
    """Input that cannot be used; the command prints the message and exits with 2.

    Parameters
    ----------
    message
        What is wrong and what is allowed, in one sentence.
    code
        A stable identifier of the kind of error, for programs; by default that of the class.
    location
        Where the error is: a table, setting or program, or the path of a file, which the API does not answer.
    hint
        What the caller can do so that the request is accepted.

    Examples
    --------
    >>> error = InputError("budget is -1; it must be a whole number from 0 on.", location="budget")
    >>> str(error), error.code, error.location
    ('budget is -1; it must be a whole number from 0 on.', 'invalid_input', 'budget')
    """

    code = "invalid_input"

    def __init__(
        self, message: str, *, code: str | None = None, location: str | Path | None = None, hint: Hint | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.location = location
        self.hint = hint


class NotFound(InputError):  # noqa: N818 - a kind of input error, as its base says
    """A program, round or agent that does not exist."""

    code = "not_found"


class Conflict(InputError):  # noqa: N818
    """A request that contradicts what is recorded."""

    code = "conflict"


def check_whole(name: str, value: object, low: int, high: int | None = None) -> int:
    """`value` as an integer from `low` to `high` (unbounded if None)."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    number = int(value) if whole else low - 1  # type: ignore[call-overload]
    if number < low or (high is not None and number > high):
        allowed = f"from {low} on" if high is None else f"from {low} to {high}"
        raise InputError(f"{name} is {value!r}; it must be a whole number {allowed}.", location=name)
    return number


def check_number(name: str, value: object, must: str, low: float = -math.inf, high: float = math.inf) -> float:
    """`value` as a float from `low` to `high`, not NaN; `must` describes the allowed range."""
    number = float(value) if isinstance(value, Real) else math.nan
    if not low <= number <= high:
        raise InputError(f"{name} is {value!r}; {must}.", location=name)
    return number


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the most similar known one, or a full stop.

    >>> did_you_mean("gama", ["eta", "gamma"]), did_you_mean("x", ["eta", "gamma"])
    ("; did you mean 'gamma'?", '.')
    """
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else "."


def parse_pairs(texts: Sequence[str], option: str, may_be_empty: bool = False) -> dict[str, str]:
    """Pairs such as agent=customer_id.

    >>> parse_pairs(["agent=customer_id", "group ="], "column", may_be_empty=True)
    {'agent': 'customer_id', 'group': ''}
    """
    pairs = [text.partition("=") for text in texts]
    for name, sign, value in pairs:
        if not (name.strip() and sign and (may_be_empty or value.strip())):
            raise InputError(f"{name + sign + value!r} is not a pair; write it like name=value.", location=option)
    return {name.strip(): value.strip() for name, _, value in pairs}
