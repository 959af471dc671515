"""The one error for input that makes no sense: a sentence that names the place and says what is allowed."""

from numbers import Integral


class InputError(ValueError):
    """What the user gave does not fit; the command prints the sentence and exits with 2."""


def check_whole(name: str, value: object, low: int, high: int | None = None) -> None:
    """Refuse what is not a whole number from `low` to `high` (no end when None)."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or int(value) < low or (high is not None and int(value) > high):  # type: ignore[call-overload]
        allowed = f"from {low} on" if high is None else f"from {low} to {high}"
        raise InputError(f"{name} is {value!r}; it must be a whole number {allowed}.")
