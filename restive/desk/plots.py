"""The figure of a program: mean rewards by round in the program and in the control group, and the lift below.

Bands are 95% intervals by round. Colours and labels are those of `restive.plotting`.
"""

from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from restive.api.status import LiftCurve, Status
from restive.desk.explanations import capitalize, show_estimate
from restive.desk.schedule import tick_label
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
    curve, words = status["curve"], status["words"]
    treated, control, lift = (_read_band(curve, name) for name in ("treated", "control", "lift"))
    if curve is None or not np.isfinite(treated.mean).any():
        raise InputError(f"{status['name']}: there is nothing to plot before the outcomes of the first round.")
    panels = [[(treated, "in the program", PROGRAM, "-")]]
    if np.isfinite(lift.mean).any():
        panels[0].append((control, "control group", CONTROL, "--"))
        panels.append([(lift, "lift", LIFT, "-")])
    figure = Figure(figsize=(9, (4.2, 6.4)[len(panels) - 1]), layout="constrained")
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False, height_ratios=[3, 2][: len(panels)])[:, 0]
    rounds = np.arange(curve["first"], curve["first"] + treated.mean.size)
    labels = (f"{words['reward_unit']}\nper {words['person']}", "lift:\nprogram − control")
    scales = [_reward_scale(status), *([_lift_scale(lift)] if len(panels) == 2 else [])]
    for each, scale, label in zip(axes, scales, labels, strict=False):
        _frame(each, rounds, scale, label)
    ends = [[_draw_band(each, rounds, *line) for line in lines] for each, lines in zip(axes, panels, strict=True)]
    axes[0].set_title(capitalize(status["title"] or status["name"]), loc="left", fontsize=11, parse_math=False)
    if len(panels) == 2:
        axes[1].set_title(_overall(status), loc="left", fontsize=9, color=BOUND)
        axes[1].axhline(0, color=BOUND, linewidth=1.0)
    axes[-1].set_xlabel({"week": "week of", "month": "month"}.get(words["every"], ""))
    ticks = {row["round"]: tick_label(row["label"]) for row in status["rounds"]}
    axes[-1].xaxis.set_major_formatter(lambda place, _: ticks.get(round(place), ""))
    figure.supxlabel(describe_source(status), fontsize=7, color=SOFT, x=0.01, ha="left", parse_math=False)
    figure.draw_without_rendering()  # the positions of labels depend on the layout
    for each, ended in zip(axes, ends, strict=True):
        label_ends(each, ended)
    return figure


def describe_source(status: Status) -> str:
    """The source of the numbers in one line."""
    people, shown = status["people"], status["words"]["people"]
    counts = f"{people['active']:,} {shown}, {people['control']:,} of them in the control group"
    policy = f"{status['name']}: {status['policy']}, seed {status['seed']}"
    return f"{policy}, {counts}; bands are 95%; restive {status['version']}"


def _overall(status: Status) -> str:
    """The lift over all rounds, if it is known."""
    lift = status["lift"]
    shown = show_estimate(lift["mean"], lift["low"], lift["high"]) if lift else None
    return f"over all rounds {shown[0]} (95% interval from {shown[1]} to {shown[2]})" if shown else ""


def _read_band(curve: LiftCurve | None, name: Literal["treated", "control", "lift"]) -> Band:
    """A band as arrays, NaN where it is not known."""
    columns: Any = () if curve is None else curve[name]
    return Band(*(np.array(columns[part] if columns else [], float) for part in Band._fields))


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


def _reward_scale(status: Status) -> tuple[float, float]:
    """The range of rewards: a curve that fills the axes is one that reaches both ends of what is possible."""
    scale = status["reward_range"]
    assert scale is not None  # with an outcome there is a reward
    return scale["low"], scale["high"]


def _frame(axes: Axes, rounds: Ints, scale: tuple[float, float], label: str) -> None:
    axes.set_ylabel(label, parse_math=False)
    axes.set_xlim(rounds[0] - 0.5, rounds[-1] + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, nbins=7))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=RULE, linewidth=0.6)
    low, high = scale
    margin = 0.05 * (high - low) or 0.5
    axes.set_ylim(low - margin, high + margin)


def _lift_scale(band: Band) -> tuple[float, float]:
    """0 and the range of the band, except where it is so wide that it would flatten the rest."""
    width = band.high - band.low
    fits = width <= MAX_WIDTH * np.median(width[np.isfinite(width)]) if np.isfinite(width).any() else np.isnan(width)
    parts: list[Floats] = [np.zeros(1), band.mean, np.where(fits, band.low, np.nan), np.where(fits, band.high, np.nan)]
    known = np.concatenate(parts)
    known = known[np.isfinite(known)]
    return float(known.min()), float(known.max())
