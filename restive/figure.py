"""The running mean of the reward over time, one line for each policy, with its 95% band over instances."""

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from restive.comparison import Comparison
from restive.errors import InputError

# Okabe and Ito's palette (2008): told apart with any kind of colour vision; line styles tell apart what is left.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
STYLES = ("-", "--", ":")
BOUND = "#444444"
BANDS = 5  # with more policies than this the bands would hide each other, and the lines


def draw(comparison: Comparison, path: str | PathLike[str]) -> None:
    """Draw the comparison into a file, whole or not at all; its ending says how: png, svg or pdf."""
    place = Path(path)
    check_ending(place)
    part = place.with_name(place.name + ".part")
    make_figure(comparison).savefig(part, dpi=160, format=place.suffix[1:].lower())
    part.replace(place)


def check_ending(path: Path) -> None:
    """Refuse a file that is no figure before any work is done for it."""
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InputError(f"{path}: a figure ends in .png, .svg or .pdf.")


def make_figure(comparison: Comparison) -> Figure:
    """The figure as an object, for whoever wants to put it elsewhere."""
    figure = Figure(figsize=(9, 5.4), layout="constrained")
    axes = figure.add_subplot()
    ends = []
    for number, row in enumerate(comparison.rows):
        colour, style = COLOURS[number % len(COLOURS)], STYLES[number // len(COLOURS) % len(STYLES)]
        band = row.trace.bands()
        steps = np.arange(1, band.mean.size + 1)
        axes.plot(steps, band.mean, style, color=colour, linewidth=1.6)
        if np.isfinite(band.low).all() and len(comparison.rows) <= BANDS:
            axes.fill_between(steps, band.low, band.high, color=colour, alpha=0.15, linewidth=0)
        ends.append((float(band.mean[-1]), row.label, colour))
    if comparison.bound is not None:
        axes.axhline(comparison.bound, color=BOUND, linewidth=1.0, linestyle=(0, (6, 3)))
        ends.append((comparison.bound, "fluid bound", BOUND))
    _frame(axes, comparison)
    _label_ends(axes, ends)
    figure.supxlabel(caption(comparison.spec), fontsize=7, color="#666666", x=0.01, ha="left", parse_math=False)
    return figure


def caption(spec: dict[str, Any]) -> str:
    """Where the numbers come from, in a line."""
    noise = f"noise variance {spec['noise']:g}" if spec["noise"] else "noiseless"
    played = f"{_times(spec['instances'], 'instance')} × {_times(spec['runs'], 'run')}"
    return (
        f"{spec['problem'] or 'own problem'}, N = {spec['agents']}, S = {spec['states']}, B = {spec['budget']}, "
        f"{noise}, {played}, seed {spec['seed']}, restive {spec['version']}"
    )


def _times(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _frame(axes: Axes, comparison: Comparison) -> None:
    axes.set_xlabel("step")
    axes.set_ylabel("mean reward per step so far, all agents")
    axes.set_xlim(1, max(2, comparison.rows[0].trace.reward.shape[1]))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    # The first steps are luck: a scale that shows them hides the rest.
    settled = [row.trace.bands().mean[min(4, row.trace.reward.shape[1] - 1) :] for row in comparison.rows]
    low, high = min(map(np.min, settled)), max([*map(np.max, settled), comparison.bound or -np.inf])
    room = 0.04 * (high - low) or 0.5
    axes.set_ylim(low - room, high + room)


def _label_ends(axes: Axes, ends: list[tuple[float, str, str]]) -> None:
    """Name each line at its right end, pushed apart where they would overlap."""
    low, high = axes.get_ylim()
    ends = sorted(ends)
    places = push_apart([value for value, _, _ in ends], gap=0.045 * (high - low), ceiling=high)
    for (value, label, colour), place in zip(ends, places, strict=True):
        axes.annotate(
            label, (1.0, value), xytext=(1.03, place), xycoords=("axes fraction", "data"), parse_math=False,
            textcoords=("axes fraction", "data"), color=colour, fontsize=8.5, va="center", annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.6, "relpos": (0.0, 0.5), "shrinkB": 0},
        )  # fmt: skip


def push_apart(values: list[float], gap: float, ceiling: float) -> list[float]:
    """Rising places as near to rising `values` as may be, at least `gap` apart and none above the ceiling.

    >>> push_apart([1.0, 1.1, 4.9, 5.0], gap=0.5, ceiling=5.0)
    [1.0, 1.5, 4.5, 5.0]
    """
    places: list[float] = []
    for value in values:
        places.append(max(value, places[-1] + gap) if places else value)
    for k in range(len(places) - 1, -1, -1):
        places[k] = min(places[k], places[k + 1] - gap if k + 1 < len(places) else ceiling)
    return places
