"""The figure of a program: mean rewards by round in the program and in the control group, and the lift below.

Bands are 95% intervals by round. Colours and labels are those of `restive.plotting`.
"""

from os import PathLike
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from restive.desk.explanations import capitalize, rounded
from restive.desk.status import Status
from restive.errors import InputError
from restive.plotting import BOUND, COLOURS, RULE, SOFT, check_ending, label_ends, write_figure
from restive.stats import Band
from restive.types import Bools, Floats, Ints

PROGRAM, CONTROL, LIFT = COLOURS[0], COLOURS[1], COLOURS[2]
MAX_DOTS = 40  # with more rounds the lines have no markers
MAX_WIDTH = 3.0  # bands wider than this multiple of the median may leave the axes


def draw_status(status: Status, path: str | PathLike[str]) -> None:
    """Write the figure to a .png, .svg or .pdf file."""
    file = Path(path)
    check_ending(file)
    write_figure(make_figure(status), file)


def make_figure(status: Status) -> Figure:
    """The figure as a Matplotlib object."""
    curve = status.curve
    if curve is None or not np.isfinite(curve.treated.mean).any():
        raise InputError(f"{status.name}: there is nothing to plot before the outcomes of the first round.")
    compared = bool(np.isfinite(curve.lift.mean).any())
    figure = Figure(figsize=(9, 6.4 if compared else 4.2), layout="constrained")
    axes = figure.subplots(2 if compared else 1, 1, sharex=True, squeeze=False, height_ratios=[3, 2][: 1 + compared])
    rounds = np.arange(curve.first, curve.first + curve.treated.mean.size)
    sides = [(curve.treated, "in the program", PROGRAM, "-")]
    if compared:
        sides.append((curve.control, "control group", CONTROL, "--"))
    _frame(axes[0, 0], rounds, [band for band, *_ in sides], f"{status.words.reward_unit}\nper {status.words.person}")
    ends = [_draw_band(axes[0, 0], rounds, *side) for side in sides]
    axes[0, 0].set_title(capitalize(status.title or status.name), loc="left", fontsize=11, parse_math=False)
    if compared:
        _frame(axes[1, 0], rounds, [curve.lift], "lift:\nprogram − control")
        axes[1, 0].set_title(_overall(status), loc="left", fontsize=9, color=BOUND)
        axes[1, 0].axhline(0, color=BOUND, linewidth=1.0)
        lift = _draw_band(axes[1, 0], rounds, curve.lift, "lift", LIFT, "-")
    axes[-1, 0].set_xlabel(f"round (one a {status.words.every})" if status.words.every != "round" else "round")
    figure.supxlabel(describe_source(status), fontsize=7, color=SOFT, x=0.01, ha="left", parse_math=False)
    figure.draw_without_rendering()  # the positions of labels depend on the layout
    label_ends(axes[0, 0], ends)
    if compared:
        label_ends(axes[1, 0], [lift])
    return figure


def describe_source(status: Status) -> str:
    """The source of the numbers in one line."""
    people = f"{status.people.active:,} {status.words.people}, {status.people.control:,} of them in the control group"
    return f"{status.name}: {status.policy}, seed {status.seed}, {people}; bands are 95%; restive {status.version}"


def _overall(status: Status) -> str:
    """The lift over all rounds, if it is known."""
    lift = status.lift
    if lift is None or not np.isfinite(lift.high):
        return ""
    digits = (lift.high - lift.low) / 20
    mean, low, high = (rounded(value, digits)[0] for value in (lift.mean, lift.low, lift.high))
    return f"over all rounds {mean} (95% interval from {low} to {high})"


def _draw_band(axes: Axes, rounds: Ints, band: Band, label: str, colour: str, style: str) -> tuple[float, str, str]:
    """Draw a line with its band; returns the last value, label and colour."""
    dots = "o" if rounds.size <= MAX_DOTS else ""
    axes.plot(rounds, band.mean, style, marker=dots, markersize=3, color=colour, linewidth=1.6)
    axes.fill_between(rounds, band.low, band.high, color=colour, alpha=0.15, linewidth=0)
    isolated = _isolated(np.isfinite(band.low))
    axes.vlines(rounds[isolated], band.low[isolated], band.high[isolated], color=colour, alpha=0.5, linewidth=1.6)
    known = band.mean[np.isfinite(band.mean)]
    return float(known[-1]), label, colour


def _isolated(known: Bools) -> Bools:
    """Rounds without a known neighbour, where a filled band has no width."""
    padded = np.concatenate([[False], known, [False]])
    isolated: Bools = known & ~padded[:-2] & ~padded[2:]
    return isolated


def _frame(axes: Axes, rounds: Ints, bands: list[Band], label: str) -> None:
    axes.set_ylabel(label, parse_math=False)
    axes.set_xlim(rounds[0] - 0.5, rounds[-1] + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=RULE, linewidth=0.6)
    low, high = _scale(bands)
    margin = 0.05 * (high - low) or 0.5
    axes.set_ylim(low - margin, high + margin)


def _scale(bands: list[Band]) -> tuple[float, float]:
    """The range of all bands, except those so wide that they would flatten the rest."""
    parts: list[Floats] = []
    for band in bands:
        width = band.high - band.low
        median = np.median(width[np.isfinite(width)]) if np.isfinite(width).any() else np.nan
        fits = width <= MAX_WIDTH * median
        parts += [band.mean, np.where(fits, band.low, np.nan), np.where(fits, band.high, np.nan)]
    known = np.concatenate(parts)
    known = known[np.isfinite(known)]
    return float(known.min()), float(known.max())
