"""Figures of the report: boards in the paper's layout, lines in one panel, and numbers with intervals in rows.

A board has three budgets side by side, noiseless above noisy, one line for each policy. Lines are named at their right
ends, so that no legend has to be looked up. All places are computed beforehand, in inches: a layout that is solved anew
at every save takes longer than the drawing.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import NamedTuple, TypeAlias

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.textpath import TextPath
from matplotlib.ticker import MaxNLocator, NullFormatter

from restive.comparison import landmarks
from restive.paper.curves import BUDGETS, Board, Scene
from restive.plotting import BOUND, COLOURS, RULE, SOFT, label_ends, readable
from restive.stats import band
from restive.types import Floats, Ints
from restive.version import __version__

Dashes: TypeAlias = tuple[float, tuple[float, ...]]

BLUE, RED, GREEN, PINK, ORANGE, SKY, BLACK, GREY = COLOURS
OFTEN: Dashes = (0, (2.5, 1.5))
SELDOM: Dashes = (0, (6, 3))
# A learner and the oracle that it tends to share a colour; oracles are dashed.
LOOKS: Mapping[str, tuple[str, str | Dashes]] = {
    "egt": (RED, "-"),
    "greedy-oracle": (RED, OFTEN),
    "wiql": (BLUE, "-"),
    "ucwhittle": (GREEN, "-"),
    "rma2b": (PINK, "-"),
    "omr-oracle": (PINK, OFTEN),
    "thompson-whittle": (ORANGE, "-"),
    "cet-whittle": (SKY, "-"),
    "lagrange": (BLACK, "-"),
    "whittle-oracle": (BLACK, OFTEN),
    "threshold-oracle": (SKY, OFTEN),
    "random": (GREY, "-"),
}
SIZE = 8.0  # of letters, in points
LUCK = 10  # steps before which a running mean is luck, and not for the scale


class Line(NamedTuple):
    """A line of a figure with its band; colour and style are chosen where they are not given."""

    label: str
    x: Floats | Ints  # [G]
    mean: Floats  # [G]
    low: Floats  # [G]
    high: Floats  # [G]
    colour: str = ""
    style: str | Dashes = ""


class Dot(NamedTuple):
    """A number with its interval."""

    label: str
    value: float
    low: float
    high: float
    colour: str
    hollow: bool = False


class Frame(NamedTuple):
    """A panel and the room around it, in inches."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float


def draw_board(board: Board, policies: tuple[str, ...], title: str) -> Figure:
    """The running means of all policies in all settings, with their 95% bands over instances, and the fluid bound."""
    panels = {setting: _board_lines(board, policies, *setting) for setting in board.scene.settings()}
    frame = Frame(2.65, 2.35, 0.5, 0.2 + _longest(line.label for line in next(iter(panels.values()))), 0.3, 0.2)
    figure, grid = _lay_out(frame, 2, len(BUDGETS), title, _origin(board.scene, policies))
    for axes, ((budget, noise), lines) in zip(grid, panels.items(), strict=True):
        axes.set_title(board.scene.name(budget, noise), fontsize=SIZE + 1, loc="left")
        axes.set_xlim(0, board.scene.horizon)
        axes.set_ylim(_scale([each for (other, _), each in panels.items() if other == budget]))
        _draw(axes, lines, faint=0.07)
    for axes in grid[:: len(BUDGETS)]:
        axes.set_ylabel("mean reward per step so far, all agents", fontsize=SIZE)
        axes.yaxis.set_label_coords(-0.55 / frame.width, 0.5)
    for axes in grid[len(BUDGETS) :]:
        axes.set_xlabel("step", fontsize=SIZE)
    return figure


def draw_lines(lines: Sequence[Line], xlabel: str, ylabel: str, title: str, log_x: bool = False) -> Figure:
    """One panel of lines with their bands, each named at its right end."""
    frame = Frame(6.2, 3.8, 0.7, 0.2 + _longest(line.label for line in lines), 0.1, 0.3)
    figure, (axes,) = _lay_out(frame, 1, 1, title)
    chosen = [_dress(number, line) for number, line in enumerate(lines)]
    _scale_across(axes, np.concatenate([line.x for line in chosen]), log_x)
    axes.set_ylim(_span([part for line in chosen for part in (line.mean, line.low, line.high)]))
    _draw(axes, chosen, faint=0.12)
    axes.set_xlabel(xlabel, fontsize=SIZE + 1)
    axes.set_ylabel(ylabel, fontsize=SIZE + 1)
    return figure


def draw_grid(
    panels: Mapping[str, Sequence[Line]],
    columns: int,
    limits: tuple[float, float],
    names: tuple[str, str],
    title: str,
    caption: str,
) -> Figure:
    """Panels of lines over a logarithmic axis, row by row, each on a scale of its own within the limits.

    names: of the axis across and of the axis up
    """
    frame = Frame(2.65, 2.35, 0.5, 0.2 + _longest(line.label for lines in panels.values() for line in lines), 0.3, 0.2)
    figure, grid = _lay_out(frame, -(-len(panels) // columns), columns, title, caption)
    for axes in grid[len(panels) :]:
        axes.remove()
    for number, (axes, (name, lines)) in enumerate(zip(grid, panels.items(), strict=False)):
        axes.set_title(name, fontsize=SIZE + 1, loc="left", parse_math=False)
        _scale_across(axes, np.concatenate([line.x for line in lines]), log_x=True)
        first, last = axes.get_xlim()
        axes.set_xticks([step for step in landmarks(int(last)) if step >= first], minor=False)
        axes.xaxis.set_minor_formatter(NullFormatter())
        low, high = _scale([lines])
        axes.set_ylim(max(low, limits[0]), min(high, limits[1]))
        _draw(axes, lines, faint=0.07)
        if number % columns == 0:
            axes.set_ylabel(names[1], fontsize=SIZE)
            axes.yaxis.set_label_coords(-0.55 / frame.width, 0.5)
        if number + columns >= len(panels):
            axes.set_xlabel(names[0], fontsize=SIZE)
    return figure


def draw_strips(rows: Mapping[str, Sequence[Dot]], xlabel: str, limits: tuple[float, float], caption: str) -> Figure:
    """Rows of dots with their intervals, one under the other in each row, and their names in their colours above."""
    dots = next(iter(rows.values()))
    deep = 0.11 * len(dots) + 0.12  # of a row, in inches
    frame = Frame(6.2, deep * len(rows), 0.1 + _longest(rows), 0.2, 0.35, 0.3)
    figure, (axes,) = _lay_out(frame, 1, 1, caption=caption)
    axes.grid(axis="x", color=RULE, linewidth=0.6)
    axes.grid(visible=False, axis="y")
    axes.set_ylim(len(rows), 0)
    axes.set_yticks(np.arange(len(rows)) + 0.5, list(rows), parse_math=False)
    axes.tick_params(axis="y", length=0)
    axes.hlines(range(1, len(rows)), 0, 1, transform=axes.get_yaxis_transform(), color=RULE, linewidth=0.6)
    for row, each in enumerate(rows.values()):
        for number, dot in enumerate(each):
            place = row + (0.115 + 0.11 * number) / deep
            axes.plot([dot.low, dot.high], [place] * 2, color=dot.colour, linewidth=1.4, solid_capstyle="butt")
            fill = "white" if dot.hollow else dot.colour
            shown = min(max(dot.value, limits[0]), limits[1])
            axes.plot(shown, place, "o", color=dot.colour, markerfacecolor=fill, markersize=3.6)
    every = [np.array(dot[1:4]) for each in rows.values() for dot in each]
    low, high = _span([*every, np.array([0.0, 1.0])])
    axes.set_xlim(max(low, limits[0] - 0.02), min(high, limits[1] + 0.02))
    axes.set_xlabel(xlabel, fontsize=SIZE + 1)
    _name_dots(axes, dots, frame.width)
    return figure


def _name_dots(axes: Axes, dots: Sequence[Dot], width: float) -> None:
    """The names of the dots in a line above the panel, the letters smaller where there is no room for them."""
    widths = [_longest([dot.label]) + 0.14 for dot in dots]
    small = min(1.0, width / sum(widths))
    inch = axes.figure.dpi / axes.get_window_extent().height
    across = 0.0
    for dot, wide in zip(dots, widths, strict=True):
        text = axes.text(across / width, 1 + 0.12 * inch, dot.label, transform=axes.transAxes, size=SIZE * small)
        text.set(color=readable(dot.colour), va="bottom", parse_math=False)
        across += wide * small


def draw_dots(rows: Sequence[tuple[str, float, float, float]], xlabel: str, reference: Mapping[str, float]) -> Figure:
    """Numbers with their intervals, one row (label, value, low, high) each, and named values to compare them with."""
    left = 0.2 + _longest(label for label, *_ in rows)
    frame = Frame(5.2, 0.3 * len(rows) + 0.2, left, 0.3, 0.1 + 0.17 * len(reference), 0.3)
    figure, (axes,) = _lay_out(frame, 1, 1)
    axes.grid(False)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_yticks(range(len(rows)), [label for label, *_ in rows])
    axes.tick_params(axis="y", length=0)
    axes.hlines(range(len(rows)), 0, 1, transform=axes.get_yaxis_transform(), color=RULE, linewidth=0.6)
    axes.hlines(range(len(rows)), *zip(*(row[2:] for row in rows), strict=True), color=BLUE, linewidth=2.0)
    axes.plot([row[1] for row in rows], range(len(rows)), "o", color=BLUE, markersize=5)
    axes.set_xlim(_span([np.array([*reference.values(), *(part for row in rows for part in row[1:])])]))
    axes.set_xlabel(xlabel, fontsize=SIZE + 1)
    _name_references(axes, reference)
    return figure


def _board_lines(board: Board, policies: tuple[str, ...], budget: int, noise: float) -> list[Line]:
    chosen, lines = looks(policies), []
    for policy in policies:
        curve = board.curve(policy, budget, noise)
        kept = _spaced(curve.steps)
        mean, _, low, high = band(curve.running_mean()[:, kept])
        label = "egt (default)" if policy == "egt" and chosen[policy] != LOOKS[policy] else policy
        lines.append(Line(label, curve.steps[kept], mean, low, high, *chosen[policy]))
    bound = board.bound(budget)[kept]
    return [*lines, Line("fluid bound", curve.steps[kept], bound, bound, bound, BOUND, SELDOM)]


def _spaced(steps: Ints) -> list[int]:
    """The places of steps far enough apart to be told apart in a panel, and of the last."""
    kept = [0]
    for place, step in enumerate(steps):
        if step - steps[kept[-1]] >= steps[-1] / 100:
            kept.append(place)
    return kept if kept[-1] == steps.size - 1 else [*kept, steps.size - 1]


def looks(policies: tuple[str, ...]) -> dict[str, tuple[str, str | Dashes]]:
    """Colour and style of each; variants of eps-GT go from dark to light, their dashes in turn where they coincide."""
    free = (look for look in map(_chosen, count()) if look not in LOOKS.values())
    chosen = {policy: LOOKS.get(policy) or next(free) for policy in policies}
    variants = [policy for policy in policies if policy.partition(":")[0] == "egt"]
    ramp = colormaps["plasma"](np.linspace(0.0, 0.8, len(variants)))
    if len(variants) > 1:
        dashes = [(11.0 * k / len(variants), (6.0, 5.0)) for k in range(len(variants))]
        chosen |= {
            policy: (to_hex(ramp[k]), "-" if policy == "egt" else dashes[k]) for k, policy in enumerate(variants)
        }
    return chosen


def _chosen(number: int) -> tuple[str, str | Dashes]:
    styles = ("-", OFTEN, SELDOM)
    return COLOURS[number % len(COLOURS)], styles[number // len(COLOURS) % len(styles)]


def _dress(number: int, line: Line) -> Line:
    """The line with a colour and a style, its own or the next."""
    colour, style = _chosen(number)
    return line._replace(colour=line.colour or colour, style=line.style or style)


def _origin(scene: Scene, policies: tuple[str, ...]) -> str:
    """Where the numbers of a board come from, in a line."""
    fewer = [f"{policy} {_times(scene.fewer_runs[policy], 'run')}" for policy in policies if policy in scene.fewer_runs]
    played = f"{_times(scene.instances, 'instance')} × {_times(scene.runs, 'run')}"
    return (
        f"{scene.family}, {played}{''.join(f' ({each})' for each in fewer)}, seed {scene.seed}, restive {__version__}. "
        "Bands are 95% intervals of the mean over instances. No policy can expect more than the fluid bound."
    )


def _times(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _lay_out(frame: Frame, rows: int, columns: int, title: str = "", caption: str = "") -> tuple[Figure, list[Axes]]:
    """A figure of panels of one size, row by row, with a title above and a caption below."""
    across, down = frame.left + frame.width + frame.right, frame.top + frame.height + frame.bottom
    above, below = 0.3 if title else 0.05, 0.5 if caption else 0.2
    side = 0.2  # for the name of the axis up
    width, height = side + columns * across, above + rows * down + below
    figure = Figure(figsize=(width, height))
    if title:
        figure.text(0.12 / width, 1 - 0.1 / height, title, fontsize=SIZE + 3, weight="bold", va="top", parse_math=False)
    figure.text(0.12 / width, 0.1 / height, caption, fontsize=SIZE - 1, color=SOFT, parse_math=False)
    places = [
        (side + column * across + frame.left, below + (rows - 1 - row) * down + frame.bottom)
        for row in range(rows)
        for column in range(columns)
    ]
    grid = [figure.add_axes((x / width, y / height, frame.width / width, frame.height / height)) for x, y in places]
    for axes in grid:
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(SOFT)
        axes.tick_params(labelsize=SIZE, color=SOFT, length=3)
        axes.grid(axis="y", color=RULE, linewidth=0.6)
    return figure, grid


def _longest(labels: Iterable[str]) -> float:
    """How wide the longest of some labels is, in inches."""
    paths = (TextPath((0, 0), label.replace("$", "S") or " ", SIZE) for label in labels)  # a $ would begin a formula
    return max(float(path.get_extents().width) for path in paths) / 72


def _draw(axes: Axes, lines: Sequence[Line], faint: float) -> None:
    """Lines above all bands, so that none is hidden, and their names."""
    for line in lines:
        if (line.low < line.high).any():
            axes.fill_between(line.x, line.low, line.high, color=line.colour, alpha=faint, linewidth=0)
        axes.plot(line.x, line.mean, linestyle=line.style, color=line.colour, linewidth=1.4)
    known = [(line.mean[np.isfinite(line.mean)], line) for line in lines]
    label_ends(axes, [(float(mean[-1]), line.label, line.colour) for mean, line in known if mean.size], SIZE)


def _scale_across(axes: Axes, x: Floats, log_x: bool) -> None:
    """An axis from the first to the last, with ticks at whole numbers where all are whole."""
    whole = bool((x == np.rint(x)).all())
    if log_x:
        axes.set_xscale("log")
        axes.tick_params(axis="x", which="minor", color=SOFT, length=2)
        axes.xaxis.set_major_formatter("{x:,.0f}" if whole else "{x:g}")
    else:
        axes.xaxis.set_major_locator(MaxNLocator(integer=whole))
    axes.set_xlim(x.min(), x.max())


def _scale(panels: Iterable[Sequence[Line]]) -> tuple[float, float]:
    return _span([line.mean[line.x >= min(LUCK, line.x[-1])] for lines in panels for line in lines])


def _span(values: Sequence[Floats]) -> tuple[float, float]:
    """The least and the greatest finite number with some room around them."""
    finite = [each[np.isfinite(each)] for each in values]
    low, high = (
        min(float(each.min()) for each in finite if each.size),
        max(float(each.max()) for each in finite if each.size),
    )
    room = 0.04 * (high - low) or 0.5
    return low - room, high + room


def _name_references(axes: Axes, reference: Mapping[str, float]) -> None:
    """A thin line for each named value, up to its name above the panel.

    Names run towards the middle, and the nearer to it the lower: so no line crosses the name of another.
    """
    middle = sum(axes.get_xlim()) / 2
    inch = axes.figure.dpi / axes.get_window_extent().height
    above = axes.get_xaxis_transform()
    for level, (name, value) in enumerate(sorted(reference.items(), key=lambda each: abs(each[1] - middle))):
        colour, top = COLOURS[1 + level % 3], 1 + (0.16 + 0.17 * level) * inch
        axes.plot([value] * 2, [0, top], color=colour, linewidth=1.2, transform=above, clip_on=False, zorder=1)
        text = axes.text(value, top, f" {name} ", transform=above, size=SIZE, va="top", parse_math=False)
        text.set(color=readable(colour), ha="left" if value < middle else "right")
