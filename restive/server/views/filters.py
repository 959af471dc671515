"""Jinja filters that format numbers, shares, times and intervals; an unknown value is a dash."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from restive.desk.config import Words
from restive.desk.explanations import capitalize, count_people, how_sure, reward_noun, rounded
from restive.desk.explanations import show_benefit as format_benefit
from restive.formats import UNKNOWN

DIGITS = 3


def show_number(value: float | None) -> str:
    """A number with three significant digits; integers are shown in full.

    >>> show_number(4.2431), show_number(1234), show_number(None), show_number(0.0)
    ('4.24', '1,234', '–', '0')
    """
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if isinstance(value, int) or not value:
        return f"{int(value):,}"
    decimals = max(0, DIGITS - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}".replace("-", "−")


def show_plain(value: float | None) -> str:
    """A number as it was reported, without trailing zeros.

    >>> show_plain(3.0), show_plain(0.25), show_plain(None)
    ('3', '0.25', '–')
    """
    return UNKNOWN if value is None or not math.isfinite(value) else f"{value:,.6g}".replace("-", "−")


def show_share(value: float | None) -> str:
    """A share in percent; only exact values are shown as 0% and 100%.

    >>> show_share(0.904), show_share(0.001), show_share(0.999), show_share(1.0)
    ('90%', '<1%', '>99%', '100%')
    """
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return "<1%" if 0 < value < 0.01 else ">99%" if 0.99 < value < 1 else f"{value:.0%}"


def show_time(value: str | None) -> str:
    """A time to the minute.

    >>> show_time("2026-03-02T08:15:59.123456+00:00")
    '2026-03-02 08:15'
    """
    return value[:16].replace("T", " ") if value else UNKNOWN


def show_day(value: str | None) -> str:
    """The day of a time."""
    return value[:10] if value else UNKNOWN


def show_whole(value: float | None) -> str:
    """A number rounded to an integer."""
    return UNKNOWN if value is None else f"{value:,.0f}"


def show_benefit(row: Mapping[str, Any]) -> str:
    """The benefit of a row with its margin of error."""
    return format_benefit(*_benefit(row)).replace("-", "−")


def show_sure(row: Mapping[str, Any]) -> str:
    """The confidence in the benefit of a row."""
    return how_sure(*_benefit(row))


def show_range(value: Mapping[str, Any]) -> str:
    """The ends of an interval, rounded to two significant digits of its width.

    >>> show_range({"low": -0.24713, "high": -0.1163})
    '−0.247 to −0.116'
    """
    low, high = value["low"], value["high"]
    if low is None or high is None:
        return UNKNOWN
    digits = (high - low) / 20
    return f"{rounded(low, digits)[0]} to {rounded(high, digits)[0]}".replace("-", "−")


def show_middle(value: Mapping[str, Any]) -> str:
    """The mean of an interval, with as many digits as its ends."""
    if value["mean"] is None:
        return UNKNOWN
    digits = (value["high"] - value["low"]) / 20 if value["high"] is not None else math.nan
    return rounded(value["mean"], digits)[0].replace("-", "−")


def show_things(words: Mapping[str, str]) -> str:
    """The unit of rewards, in the words of a program."""
    return reward_noun(Words(**words))


def show_count(number: int, words: Mapping[str, str]) -> str:
    """A number of people, in the words of a program."""
    return count_people(number, Words(**words))


def _benefit(row: Mapping[str, Any]) -> tuple[float, float]:
    benefit, error = row.get("benefit"), row.get("standard_error")
    return (
        math.nan if benefit is None else benefit,
        math.inf if benefit is None else math.nan if error is None else error,
    )


FILTERS: Mapping[str, Callable[..., str]] = {
    "capital": capitalize,
    "count": show_count,
    "day": show_day,
    "benefit": show_benefit,
    "middle": show_middle,
    "number": show_number,
    "plain": show_plain,
    "range": show_range,
    "share": show_share,
    "sure": show_sure,
    "things": show_things,
    "time": show_time,
    "whole": show_whole,
}
