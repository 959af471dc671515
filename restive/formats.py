"""Numbers and dates as people read them, for terminals, reports and pages: a dash for what is not known, and a real minus sign."""

import math
from collections.abc import Iterable
from datetime import date

UNKNOWN = "–"
MINUS = "\u2212"
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)  # not by strftime, whose names depend on the locale of the process


def finite_or_none(value: float | None) -> float | None:
    """The number, or None for NaN and infinities, which JSON does not have."""
    return value if value is not None and math.isfinite(value) else None


def show_number(value: float | None, digits: int = 3) -> str:
    """A number to three significant digits; whole numbers are never cut.

    >>> show_number(4.2431), show_number(1234), show_number(-1234.5), show_number(None), show_number(0.0)
    ('4.24', '1,234', '−1,234', '–', '0')
    """
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if isinstance(value, int) or not value:
        return typeset(f"{int(value):,}")
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return typeset(f"{value:,.{decimals}f}")


def show_percent(share: float | None) -> str:
    """A share in percent; almost none and almost all are not rounded to 0% and 100%.

    >>> show_percent(0.904), show_percent(0.001), show_percent(0.999), show_percent(1.0), show_percent(math.nan)
    ('90%', '<1%', '>99%', '100%', '–')
    """
    if share is None or not math.isfinite(share):
        return UNKNOWN
    return "<1%" if 0 < share < 0.01 else ">99%" if 0.99 < share < 1 else typeset(f"{share:.0%}")


def show_fixed(value: float, decimals: int = 2) -> str:
    """A number to a fixed number of decimals, without a negative zero.

    >>> show_fixed(-0.004), show_fixed(-0.126), show_fixed(math.nan)
    ('0.00', '−0.13', '–')
    """
    return typeset(f"{round(value, decimals) + 0.0:.{decimals}f}") if math.isfinite(value) else UNKNOWN


def show_interval(mean: float, low: float, high: float, decimals: int = 2) -> str:
    """A mean with its confidence interval, if there is one.

    >>> show_interval(0.761, -0.002, 0.9), show_interval(0.5, math.nan, math.nan), show_interval(math.nan, 0.0, 1.0)
    ('0.76 [0.00, 0.90]', '0.50', '–')
    """
    shown = show_fixed(mean, decimals)
    if shown == UNKNOWN or math.isnan(low) or math.isnan(high):
        return shown
    return f"{shown} [{show_fixed(low, decimals)}, {show_fixed(high, decimals)}]"


def show_mean(mean: float, error: float) -> str:
    """A mean and its standard error, with at least three decimals and as many as keep the error from rounding to zero.

    >>> show_mean(31.25, 0.5), show_mean(0.00425, 0.00012), show_mean(7.0, math.nan)
    ('31.250 ± 0.500', '0.00425 ± 0.00012', '7.000')
    """
    decimals = 3
    while decimals < 12 and 0 < (error if error > 0 else abs(mean)) * 10**decimals < 9.95:
        decimals += 1
    shown = show_fixed(mean, decimals)
    return shown if math.isnan(error) else f"{shown} ± {show_fixed(error, decimals)}"


def show_date(day: date) -> str:
    """A date with the short name of its month.

    >>> show_date(date(2026, 11, 3))
    '3 Nov 2026'
    """
    return f"{day.day} {MONTHS[day.month - 1][:3]} {day.year}"


def show_count(number: int, singular: str, plural: str = "") -> str:
    """A count and its noun.

    >>> show_count(1, "run"), show_count(1200, "run"), show_count(2, "person", "people")
    ('1 run', '1,200 runs', '2 people')
    """
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def enumerate_words(words: Iterable[str]) -> str:
    """Words as an enumeration.

    >>> enumerate_words(["a"]), enumerate_words(["a", "b"]), enumerate_words(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def typeset(number: str) -> str:
    """A formatted number with a real minus sign."""
    return number.replace("-", MINUS)
