"""What templates show: filters that format numbers, shares, times and intervals, and the data of the charts.

An unknown value is a dash. Charts get curves that are rounded to the digits that a screen can show, and a description
in words.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

from jinja2 import pass_context
from jinja2.runtime import Context

from restive.desk.config import Words
from restive.desk.display import NAME, find_name, phone_link
from restive.desk.explanations import capitalize, count_people, describe_effect, reward_noun, rounded, show_amount
from restive.desk.schedule import mention_round, show_time, tick_label
from restive.formats import UNKNOWN, show_date

DIGITS, PLOT_DIGITS = 3, 5
MAX_BARS = 52

Curve = Mapping[str, Any]
Rounds = Sequence[Mapping[str, Any]]  # with the label of each round


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


@pass_context
def show_local_time(context: Context, value: str | None) -> str:
    """A time to the minute in the time zone of the program that the page is about, otherwise in UTC."""
    return show_time(value, ((context.get("data") or {}).get("program") or {}).get("timezone", "UTC"))


def show_day(value: str | None) -> str:
    """The day of a time, in UTC."""
    return show_date(date.fromisoformat(value[:10])) if value else UNKNOWN


def show_whole(value: float | None) -> str:
    """A number rounded to an integer."""
    return UNKNOWN if value is None else f"{value:,.0f}"


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


def show_header(name: str) -> str:
    """The name of a display column in words.

    >>> show_header("phone_number")
    'phone number'
    """
    return name.replace("_", " ")


def show_count(number: int, words: Mapping[str, str]) -> str:
    """A number of people, in the words of a program."""
    return count_people(number, Words(**words))


def show_effect(words: Mapping[str, str]) -> str:
    """The effect that is estimated for each state, in the words of a program."""
    return describe_effect(Words(**words))


def place_effect(effect: Mapping[str, Any], reach: float) -> dict[str, float]:
    """An interval on a scale of 0 to 100 with 0 in the middle and `reach` at the right end.

    >>> place_effect({"mean": 1.0, "low": -1.0, "high": 2.0}, 2.0)
    {'mean': 75.0, 'low': 25.0, 'high': 100.0}
    """
    return {name: round(50 + 50 * effect[name] / reach, 1) for name in ("mean", "low", "high")}


def plot_rewards(curve: Curve, rounds: Rounds, scale: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Mean rewards by round of the program and, if there is one, of the control group, on the range of rewards."""
    sides = [_side("in the program", "accent", curve["treated"])]
    if _without_none(curve["control"]["mean"]):
        sides.append(_side("control group", "control", curve["control"]))
    return _plot(curve, rounds, sides, zero=False) | {"range": None if scale is None else [scale["low"], scale["high"]]}


def plot_lift(curve: Curve, rounds: Rounds) -> dict[str, Any]:
    """Lift by round, with a line at zero."""
    return _plot(curve, rounds, [_side("lift", "lift", curve["lift"])], zero=True)


def plot_states(rounds: Sequence[Mapping[str, Any]], side: str, states: Sequence[str]) -> list[dict[str, Any]]:
    """Bars of the shares of people by state, a bar for each round, on a scale of 0 to 100; the best state is at the bottom.

    Shares are of all active people, also of those without a known state. With many rounds every second, third ... is shown,
    always with the last one.
    """
    step = -(-len(rounds) // MAX_BARS) or 1
    shown = [*rounds[::-1][::step]][::-1]
    return [
        {
            "round": each["round"],
            "tick": tick_label(each["label"]),
            "parts": _stack(each[side], states, f"{each['label']} (round {each['round']})"),
        }
        for each in shown
    ]


def _stack(counts: Mapping[str, Any], states: Sequence[str], name: str) -> list[dict[str, Any]]:
    whole = sum(counts["reported"]) + sum(counts["carried_over"]) + counts["unknown"]
    parts: list[dict[str, Any]] = []
    top, shades = 100.0, [shade for _, shade in shade_states(states)]
    for place in reversed(range(len(states))):
        for kind in ("reported", "carried_over"):
            what = f"{states[place]}{', carried over' if kind == 'carried_over' else ''}"
            parts.append({"kind": kind, "shade": shades[place], "many": counts[kind][place], "what": what})
    parts.append({"kind": "unknown", "shade": 0, "many": counts["unknown"], "what": "not known"})
    for part in parts:
        part["height"] = round(100 * part["many"] / whole, 2) if whole else 0.0
        top -= part["height"]
        part["y"] = round(max(top, 0.0), 2)
    shown = [part for part in parts if part["many"]]
    for part in shown:
        share = show_share(part["many"] / whole)
        part["title"] = f"{name}: {part['many']:,} of {whole:,} {part['what']} ({share})"
    return shown


def shade_states(states: Sequence[str]) -> list[tuple[str, float]]:
    """The states with the shades of their bars."""
    return [(state, round(0.12 + 0.88 * place / max(1, len(states) - 1), 2)) for place, state in enumerate(states)]


def has_lift(curve: Curve | None) -> bool:
    """Whether the lift of any round is known."""
    return curve is not None and bool(_without_none(curve["lift"]["mean"]))


def describe_curve(curve: Curve, name: str, rounds: Rounds) -> str:
    """A curve in words: first, last, lowest and highest value.

    >>> band = {"mean": [1.0, 3.0, 2.0], "low": [0.0, 2.0, 1.0], "high": [2.0, 4.0, 3.0]}
    >>> rounds = [{"round": 1, "label": "June 2026"}, {"round": 2, "label": "July 2026"}, {"round": 3, "label": "August 2026"}]
    >>> describe_curve({"first": 1, "lift": band}, "lift", rounds)
    'From 1 in June 2026 (round 1) to 2 in August 2026 (round 3) (95% interval 1 to 3); lowest 1, highest 3.'
    """
    band = curve[name]
    places = [place for place, value in enumerate(band["mean"]) if value is not None]
    if not places:
        return "Not known yet."
    first, last, known = places[0], places[-1], _without_none(band["mean"])
    low, high = band["low"][last], band["high"][last]
    within = f" (95% interval {_format(low)} to {_format(high)})" if low is not None else ""
    began, now = (
        f"{_format(band['mean'][place])} in {mention_round(rounds[place]['label'], rounds[place]['round'])}"
        for place in (first, last)
    )
    if first == last:
        return f"{now[0].upper()}{now[1:]}{within}."
    return f"From {began} to {now}{within}; lowest {_format(min(known))}, highest {_format(max(known))}."


def _plot(curve: Curve, rounds: Rounds, sides: list[dict[str, Any]], zero: bool) -> dict[str, Any]:
    first = curve["first"]
    return {
        "x": [*range(first, first + len(curve["treated"]["mean"]))],
        "labels": [row["label"] for row in rounds],
        "ticks": [tick_label(row["label"]) for row in rounds],
        "sides": sides,
        "zero": zero,
    }


def _side(name: str, kind: str, band: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, "kind": kind} | {
        part: [_round(value) for value in band[part]] for part in ("mean", "low", "high")
    }


def _round(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{PLOT_DIGITS}g}")


def _format(value: float) -> str:
    return f"{value:.3g}".replace("-", "−")


def _without_none(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


FILTERS: Mapping[str, Callable[..., object]] = {
    "amount": show_amount,
    "capital": capitalize,
    "count": show_count,
    "day": show_day,
    "effect": show_effect,
    "mention": mention_round,
    "middle": show_middle,
    "header": show_header,
    "number": show_number,
    "name_of": find_name,
    "names_people": lambda header: bool(NAME.search(header)),
    "phone_link": lambda cell, header: phone_link(header, cell),
    "plain": show_plain,
    "range": show_range,
    "share": show_share,
    "things": show_things,
    "tick": tick_label,
    "time": show_local_time,
    "whole": show_whole,
}
PLOTS: Mapping[str, Callable[..., Any]] = {
    "plot_rewards": plot_rewards,
    "plot_lift": plot_lift,
    "plot_states": plot_states,
    "shade_states": shade_states,
    "has_lift": has_lift,
    "place_effect": place_effect,
}
