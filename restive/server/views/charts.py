"""Data of the charts: curves rounded to the digits that a screen can show, and a description in words."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

DIGITS = 5

Curve = Mapping[str, Any]


def plot_rewards(curve: Curve) -> dict[str, Any]:
    """Mean rewards by round of the program and, if there is one, of the control group."""
    sides = [_side("in the program", "accent", curve["treated"])]
    if _without_none(curve["control"]["mean"]):
        sides.append(_side("control group", "control", curve["control"]))
    return _plot(curve, sides, zero=False)


def plot_lift(curve: Curve) -> dict[str, Any]:
    """Lift by round, with a line at zero."""
    return _plot(curve, [_side("lift", "lift", curve["lift"])], zero=True)


def has_lift(curve: Curve | None) -> bool:
    """Whether the lift of any round is known."""
    return curve is not None and bool(_without_none(curve["lift"]["mean"]))


def describe_curve(curve: Curve, name: str) -> str:
    """A curve in words: first, last, lowest and highest value.

    >>> band = {"mean": [1.0, 3.0, 2.0], "low": [0.0, 2.0, 1.0], "high": [2.0, 4.0, 3.0]}
    >>> describe_curve({"first": 1, "lift": band}, "lift")
    'From 1 in round 1 to 2 in round 3 (95% interval 1 to 3); lowest 1, highest 3.'
    """
    band = curve[name]
    places = [place for place, value in enumerate(band["mean"]) if value is not None]
    if not places:
        return "Not known yet."
    first, last, known = places[0], places[-1], _without_none(band["mean"])
    low, high = band["low"][last], band["high"][last]
    within = f" (95% interval {_format(low)} to {_format(high)})" if low is not None else ""
    began, now = (f"{_format(band['mean'][place])} in round {curve['first'] + place}" for place in (first, last))
    if first == last:
        return f"{now[0].upper()}{now[1:]}{within}."
    return f"From {began} to {now}{within}; lowest {_format(min(known))}, highest {_format(max(known))}."


def _plot(curve: Curve, sides: list[dict[str, Any]], zero: bool) -> dict[str, Any]:
    rounds = len(curve["treated"]["mean"])
    return {"x": [*range(curve["first"], curve["first"] + rounds)], "name": "Round", "sides": sides, "zero": zero}


def _side(name: str, kind: str, band: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, "kind": kind} | {
        part: [_round(value) for value in band[part]] for part in ("mean", "low", "high")
    }


def _round(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")


def _format(value: float) -> str:
    return f"{value:.3g}".replace("-", "−")


def _without_none(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


PLOTS: Mapping[str, Callable[..., Any]] = {"plot_rewards": plot_rewards, "plot_lift": plot_lift, "has_lift": has_lift}
