"""Figures of all reports: lines with bands in one panel or many, dots with intervals, and their files and inline SVG.

Lines are named at their right ends. The layout is Matplotlib's constrained layout, solved once for each figure: a
figure with a layout engine of its own would be drawn twice for each file.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, NullFormatter

from restive.comparison import Comparison, landmarks
from restive.errors import InputError
from restive.files import write_atomic
from restive.report.tables import describe_spec
from restive.stats import Band
from restive.types import Floats, Ints

Dashes: TypeAlias = tuple[float, tuple[float, ...]]

# Okabe and Ito's palette (2008), distinguishable with any kind of colour vision; dashes distinguish the rest.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
BLUE, RED, GREEN, PINK, ORANGE, SKY, BLACK, GREY = COLOURS
BOUND, SOFT, RULE = "#444444", "#666666", "#dddddd"
CSS_VARIABLES = {BLACK: "--ink", BOUND: "--soft", SOFT: "--soft", RULE: "--line"}
SHORT_DASHES: Dashes = (0, (2.5, 1.5))
LONG_DASHES: Dashes = (0, (6, 3))
# A learner and the oracle that it converges to share a colour; oracles are dashed.
LOOKS: Mapping[str, tuple[str, str | Dashes]] = {
    "egt": (RED, "-"),
    "greedy-oracle": (RED, SHORT_DASHES),
    "wiql": (BLUE, "-"),
    "ucwhittle": (GREEN, "-"),
    "rma2b": (PINK, "-"),
    "omr-oracle": (PINK, SHORT_DASHES),
    "thompson-whittle": (ORANGE, "-"),
    "cet-whittle": (SKY, "-"),
    "lagrange": (BLACK, "-"),
    "whittle-oracle": (BLACK, SHORT_DASHES),
    "threshold-oracle": (SKY, SHORT_DASHES),
    "random": (GREY, "-"),
}
MAX_BANDS = 5  # with more policies in a panel, bands would hide each other and the lines
FONT_SIZE = 8.0
NOISY_STEPS = 10  # running means of fewer steps are mostly noise, and do not set the scale
FORMATS = ("png", "svg", "pdf")
ONE_PANEL: Mapping[str, Any] = {"size": (8.6, 4.9), "opacity": 0.14}  # of a figure with a single panel
TWO_PANELS: Mapping[str, Any] = {"size": (6.0, 4.4), "opacity": 0.14}


class Line(NamedTuple):
    """A line with its band; colour and style are chosen where they are not given."""

    label: str
    x: Floats | Ints  # [G]
    mean: Floats  # [G]
    low: Floats  # [G]
    high: Floats  # [G]
    colour: str = ""
    style: str | Dashes = ""

    @classmethod
    def of(cls, label: str, x: Floats | Ints, band: Band, colour: str = "", style: str | Dashes = "") -> "Line":
        """A line from means with their intervals."""
        return cls(label, x, band.mean, band.low, band.high, colour, style)


class Dot(NamedTuple):
    """A number with its interval."""

    label: str
    value: float
    low: float
    high: float
    colour: str
    hollow: bool = False


def check_ending(path: Path) -> None:
    """Refuse a file that is not a figure, before any work is done."""
    if path.suffix.lower()[1:] not in FORMATS:
        raise InputError(f"{path}: a figure ends in .png, .svg or .pdf.")


class Picture(NamedTuple):
    """A figure that is drawn: for a page, in words, and as files."""

    svg: str  # an element of an HTML page; see `inline_svg`
    width: float  # in inches
    labels: tuple[str, ...]  # of the axes
    names: tuple[str, ...]  # of the lines
    files: Mapping[str, bytes]  # by format

    @classmethod
    def of(cls, figure: "Figure | Picture", formats: Iterable[str] = ()) -> "Picture":
        """A figure drawn for a page and in some formats; a picture stays as it is."""
        if isinstance(figure, Picture):
            return figure
        names = [text.get_text().strip() for axes in figure.axes for text in axes.texts]
        names += [text.get_text() for legend in figure.legends for text in legend.get_texts()]
        labels = [name for axes in figure.axes for name in (axes.get_ylabel(), axes.get_xlabel()) if name]
        files = {kind: _draw(figure, kind) for kind in formats}
        return cls(_draw_svg(figure), figure.get_figwidth(), _unique(labels), _unique(names), files)


def _unique(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))


def write_figure(figure: Figure, path: Path) -> None:
    """Write a figure, whole or not at all, in the format of the ending; the same figure gives the same bytes."""
    check_ending(path)
    write_atomic(path, _draw(figure, path.suffix[1:].lower()))


def _draw(figure: Figure, kind: str) -> bytes:
    content = BytesIO()
    undated = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[kind]
    with rc_context({"svg.hashsalt": "restive"}):
        figure.savefig(content, dpi=160, format=kind, metadata=undated)
    return content.getvalue()


def write_figures(figures: "Mapping[str, Figure | Picture]", folder: Path) -> None:
    """Write pictures in the formats they were drawn in, and figures in every format, by name."""
    for name, figure in figures.items():
        for kind, content in Picture.of(figure, FORMATS).files.items():
            write_atomic(folder / f"{name}.{kind}", content)


def parse_formats(text: str) -> tuple[str, ...]:
    """The formats of a text such as "png,pdf"; "none" has none.

    >>> parse_formats("png,pdf"), parse_formats("none")
    (('png', 'pdf'), ())
    """
    formats = () if text == "none" else _unique(part.strip().lower() for part in text.split(","))
    for kind in formats:
        if kind not in FORMATS:
            raise InputError(f"formats is {text!r}; it must be {', '.join(FORMATS)} with commas between, or none.")
    return formats


def inline_svg(figure: Figure | Picture, name: str) -> str:
    """A figure as an element of an HTML page, with text in the font of the page.

    Greys become the variables --ink, --soft and --line of the page, so that the figure is light or dark as the page is.
    Ids begin with `name`, which keeps the figures of a page apart. Coordinates are cut to hundredths of a point, which
    halves the size.
    """
    return _rename_ids(Picture.of(figure).svg, name)


def _draw_svg(figure: Figure) -> str:
    content = BytesIO()
    bare = dict.fromkeys(("Type", "Format", "Creator", "Date"))
    with rc_context({"svg.hashsalt": "restive", "svg.fonttype": "none"}):
        figure.savefig(content, format="svg", metadata=bare, transparent=True)
    drawn = content.getvalue().decode().partition("<svg")[2]
    drawn = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", drawn, flags=re.DOTALL)  # it would style the whole page
    drawn = re.sub(r" font-family: [^;\"]*;", "", drawn)
    drawn = re.sub(r' (?:d|x|y|transform)="[^"]*"', lambda found: _shorten(found[0]), drawn)
    return "<svg" + re.sub(r">\s+<", "><", _use_variables(drawn))


def _use_variables(drawn: str) -> str:
    """Greys as variables, and coloured text mixed with the ink: darker on a light page, lighter on a dark one."""
    for grey, variable in CSS_VARIABLES.items():
        drawn = drawn.replace(grey, f"var({variable})")
    return re.sub(r'(<text style="[^"]*?fill: )(#\w{6})', r"\1color-mix(in srgb, \2 70%, var(--ink))", drawn)


def _shorten(numbers: str) -> str:
    """Coordinates with two decimals; a path without curves needs no letter before each point."""
    flat = re.sub(r"(\.\d\d)\d+", r"\1", numbers.replace("\n", ""))
    return flat if "C" in flat or "Q" in flat else flat.replace(" L ", " ")


def _rename_ids(drawn: str, name: str) -> str:
    """Referenced ids as `name-0`, `name-1` and so on; the others are removed."""
    used = dict.fromkeys(re.findall(r'(?:url\(|href=")#(\w+)', drawn))
    names = {old: f"{name}-{number}" for number, old in enumerate(used)}
    drawn = re.sub(r' id="([^"]+)"', lambda found: f' id="{names[found[1]]}"' if found[1] in names else "", drawn)
    return re.sub(r'(url\(|href=")#(\w+)', lambda found: f"{found[1]}#{names[found[2]]}", drawn)


def draw_comparison(comparison: Comparison) -> Figure:
    """Paired differences from the best learner, and beside them the running means of all policies and the fluid bound.

    Bands of 95% over instances are those of differences, which are narrower, because all policies meet the same random
    numbers. With one policy, or a single run, there are no differences, and bands are those of the means.
    """
    rows, best = comparison.rows, comparison.reference
    curves = _as_lines({row.label: row.trace.bands() for row in rows})
    if comparison.bound is not None:
        bound = np.full(2, comparison.bound)
        ends = curves[0].x[[0, -1]]
        curves.append(Line("fluid bound", ends, bound, bound, bound, BOUND, LONG_DASHES))
    labels, caption = ("step", "mean reward per step so far, all agents"), describe_spec(comparison.spec)
    if len(rows) == 1 or len(best.trace.reward) == 1:
        return draw_panels({"": (curves, _settled(curves))}, 1, labels, "", caption, **ONE_PANEL)
    leads = _as_lines({row.label: row.trace.lead(best.trace) for row in rows})
    plain = [line._replace(low=line.mean, high=line.mean) for line in curves]  # bands over instances would hide them
    panels = {f"minus {best.label}, on the same random numbers": leads, "each policy": plain}
    limits = {name: (lines, _settled(lines, with_bands=lines is leads)) for name, lines in panels.items()}
    return draw_panels(limits, 2, labels, "", caption, **TWO_PANELS)


def _as_lines(bands: Mapping[str, Band]) -> list[Line]:
    """A line for each policy; without bands if there are many."""
    looks = choose_looks(tuple(bands))
    if len(bands) > MAX_BANDS:
        bands = {label: band._replace(low=band.mean, high=band.mean) for label, band in bands.items()}
    steps = np.arange(1, next(iter(bands.values())).mean.size + 1)
    return [Line.of(label, steps, band, *looks[label]) for label, band in bands.items()]


def _settled(lines: Sequence[Line], with_bands: bool = False) -> tuple[float, float]:
    """The limits of the vertical axis: the first steps, mostly noise, do not count, nor bands where they are still wide."""
    first, tenth = min(4, lines[0].mean.size - 1), lines[0].mean.size // 10
    parts = [line.mean[min(first, line.mean.size - 1) :] for line in lines]
    if with_bands:
        parts += [part[max(first, tenth) :] for line in lines for part in (line.low, line.high)]
    return span(parts)


def draw_lines(lines: Sequence[Line], xlabel: str, ylabel: str, title: str, log_x: bool = False) -> Figure:
    """One panel of lines with their bands."""
    limits = span([part for line in lines for part in (line.mean, line.low, line.high)])
    dressed = [_choose_look(number, line) for number, line in enumerate(lines)]
    return draw_panels({"": (dressed, limits)}, 1, (xlabel, ylabel), title, "", log_x, **ONE_PANEL)


def draw_panels(
    panels: Mapping[str, tuple[Sequence[Line], tuple[float, float]]],
    columns: int,
    axis_labels: tuple[str, str],
    title: str,
    caption: str,
    log_x: bool = False,
    size: tuple[float, float] = (4.3, 2.9),
    opacity: float = 0.07,
) -> Figure:
    """Panels of lines, row by row: by title, the lines and the limits of the vertical axis."""
    rows = -(-len(panels) // columns)
    figure, grid = _make_axes(rows, columns, size, title, caption)
    for axes in grid[len(panels) :]:
        axes.remove()
    drawn, letters = {}, FONT_SIZE + (columns == 1)
    for number, (axes, (name, (lines, limits))) in enumerate(zip(grid, panels.items(), strict=False)):
        axes.set_title(name, fontsize=FONT_SIZE + 1, loc="left", parse_math=False)
        _scale_x(axes, np.concatenate([line.x for line in lines]), log_x)
        axes.set_ylim(limits)
        _plot(axes, lines, opacity)
        if number % columns == 0:
            axes.set_ylabel(axis_labels[1], fontsize=letters)
        if number + columns >= len(panels):
            axes.set_xlabel(axis_labels[0], fontsize=letters)
        drawn[axes] = lines
    _name_lines(figure, drawn)
    return figure


def draw_dots(
    rows: Mapping[str, Sequence[Dot]],
    xlabel: str,
    references: Mapping[str, float],
    caption: str = "",
    ends: Sequence[float] = (),
    limits: tuple[float, float] = (-np.inf, np.inf),
) -> Figure:
    """Rows of dots with their intervals, the dots of a row below each other, and vertical lines of named references.

    The axis reaches from one of the `ends` to the other at least, and beyond the `limits` nowhere.
    """
    height = 1 + max(map(len, rows.values()))
    figure, (axes,) = _make_axes(1, 1, (8.6, 1.4 + max(0.3, 0.11 * height) * len(rows)), "", caption)
    axes.grid(axis="x", color=RULE, linewidth=0.6)
    axes.grid(visible=False, axis="y")
    axes.set_ylim(len(rows), 0)
    axes.set_yticks(np.arange(len(rows)) + 0.5, list(rows), parse_math=False)
    axes.tick_params(axis="y", length=0)
    axes.hlines(range(1, len(rows)), 0, 1, transform=axes.get_yaxis_transform(), color=RULE, linewidth=0.6)
    for row, dots in enumerate(rows.values()):
        for number, dot in enumerate(dots):
            place = row + (number + 1) / height
            axes.plot([dot.low, dot.high], [place] * 2, color=dot.colour, linewidth=1.4, solid_capstyle="butt")
            fill, shown = "white" if dot.hollow else dot.colour, min(max(dot.value, limits[0]), limits[1])
            name = "" if row else dot.label
            axes.plot(shown, place, "o", color=dot.colour, markerfacecolor=fill, markersize=3.6, label=name or "_")
    for number, (name, value) in enumerate(references.items()):
        colour, style = _next_look(1 + number)
        axes.axvline(value, color=colour, linestyle=style, linewidth=1.2, zorder=2, label=name)
    numbers = [np.array(dot[1:4]) for dots in rows.values() for dot in dots]
    low, high = span([*numbers, np.array([*references.values(), *ends])])
    axes.set_xlim(max(low, limits[0] - 0.02), min(high, limits[1] + 0.02))
    axes.set_xlabel(xlabel, fontsize=FONT_SIZE + 1)
    _add_legend(figure)
    ConstrainedLayoutEngine().execute(figure)
    return figure


def _add_legend(figure: Figure) -> None:
    (axes,) = figure.axes
    if entries := axes.get_legend_handles_labels()[1]:
        columns = min(5, len(entries))
        legend = figure.legend(loc="outside upper left", ncols=columns, fontsize=FONT_SIZE, frameon=False)
        for text in legend.get_texts():
            text.set_parse_math(False)


def _make_axes(
    rows: int, columns: int, size: tuple[float, float], title: str, caption: str
) -> tuple[Figure, list[Axes]]:
    """Panels of so many inches each, row by row, with a title above and a caption below."""
    extra = (0.3 if title else 0.0) + (0.3 if caption else 0.0)
    figure = Figure(figsize=(columns * size[0], rows * size[1] + extra))
    left = 0.1 / figure.get_figwidth()
    if title:
        figure.suptitle(title, fontsize=FONT_SIZE + 3, weight="bold", x=left, ha="left", parse_math=False)
    if caption:
        figure.supxlabel(caption, fontsize=FONT_SIZE - 1, color=SOFT, x=left, ha="left", parse_math=False)
    grid = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes in grid:
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(SOFT)
        axes.tick_params(labelsize=FONT_SIZE, color=SOFT, length=3)
        axes.grid(axis="y", color=RULE, linewidth=0.6)
    return figure, grid


def _plot(axes: Axes, lines: Sequence[Line], opacity: float) -> None:
    for line in lines:
        if (line.low < line.high).any():
            axes.fill_between(line.x, line.low, line.high, color=line.colour, alpha=opacity, linewidth=0)
        axes.plot(line.x, line.mean, linestyle=line.style, color=line.colour, linewidth=1.4)


def _name_lines(figure: Figure, panels: Mapping[Axes, Sequence[Line]]) -> None:
    """Solve the layout with room for the names at the right of each panel, keep it, and put the names there."""
    margin = 0.18 * figure.dpi
    room = []
    for axes, lines in panels.items():
        widest = max((line.label for line in lines), key=len)
        room.append(axes.annotate(widest, (1, 0.5), (margin, 0), "axes fraction", "offset pixels", parse_math=False))
        room[-1].set_fontsize(FONT_SIZE)
    ConstrainedLayoutEngine().execute(figure)
    for text in room:
        text.remove()
    for axes, lines in panels.items():
        known = [(line.mean[np.isfinite(line.mean)], line) for line in lines]
        label_ends(axes, [(float(mean[-1]), line.label, line.colour) for mean, line in known if mean.size], FONT_SIZE)


def label_ends(axes: Axes, ends: list[tuple[float, str, str]], size: float = FONT_SIZE) -> None:
    """Name each line (value, label, colour) at its right end, pushed apart where names would overlap."""
    low, high = axes.get_ylim()
    box = axes.get_window_extent()
    inch, letters = axes.figure.dpi / box.width, size / 72 * axes.figure.dpi / box.height * (high - low)
    ends = sorted((min(max(value, low), high), label, colour) for value, label, colour in ends)
    places = push_apart([value for value, _, _ in ends], gap=1.25 * letters, ends=(low, high))
    beside = axes.get_yaxis_transform()
    for (value, label, colour), place in zip(ends, places, strict=True):
        leader = Line2D([1 + 0.01 * inch, 1 + 0.1 * inch], [value, place], color=colour, linewidth=0.8)
        leader.set(transform=beside, clip_on=False)
        axes.figure.add_artist(leader)
        axes.text(
            1 + 0.13 * inch,
            place,
            label,
            transform=beside,
            color=readable(colour),
            size=size,
            va="center",
            parse_math=False,
        )


def push_apart(values: list[float], gap: float, ends: tuple[float, float]) -> list[float]:
    """Rising places as near as possible to rising `values` (least squares), at least `gap` apart and within the ends.

    Places that would overlap are pooled about their mean; if there is not enough room, the gap is made smaller.

    >>> push_apart([1.0, 1.5, 4.75, 5.0], gap=1.0, ends=(0.0, 5.0))
    [0.75, 1.75, 4.0, 5.0]
    """
    low, high = ends
    gap = min(gap, (high - low) / max(1, len(values) - 1))
    pools: list[tuple[float, int]] = []  # the place of the first label of each pool, and the number of its labels
    for number, value in enumerate(values):
        first, many = value - number * gap, 1
        while pools and pools[-1][0] > first:
            before, more = pools.pop()
            first, many = (before * more + first * many) / (more + many), more + many
        pools.append((first, many))
    top = high - (len(values) - 1) * gap
    firsts = [min(max(first, low), top) for first, many in pools for _ in range(many)]
    return [first + number * gap for number, first in enumerate(firsts)]


@cache
def readable(colour: str) -> str:
    """The colour, darkened until text in it has a contrast of 4.5 on white (WCAG 2.1).

    >>> readable("#000000"), readable("#ffffff")
    ('#000000', '#767676')
    """
    part = to_rgb(colour)
    while 1.05 / (_luminance(part) + 0.05) < 4.5:
        part = (0.98 * part[0], 0.98 * part[1], 0.98 * part[2])
    return to_hex(part)


def _luminance(colour: tuple[float, float, float]) -> float:
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def choose_looks(policies: tuple[str, ...]) -> dict[str, tuple[str, str | Dashes]]:
    """Colour and style of each policy; variants of egt go from dark to light, with shifted dashes."""
    free = (look for look in map(_next_look, count()) if look not in LOOKS.values())
    chosen = {policy: LOOKS.get(policy) or next(free) for policy in policies}
    variants = [policy for policy in policies if policy.partition(":")[0] == "egt"]
    ramp = colormaps["plasma"](np.linspace(0.0, 0.8, len(variants)))
    if len(variants) > 1:
        dashes = [(11.0 * k / len(variants), (6.0, 5.0)) for k in range(len(variants))]
        chosen |= {
            policy: (to_hex(ramp[k]), "-" if policy == "egt" else dashes[k]) for k, policy in enumerate(variants)
        }
    return chosen


def _next_look(number: int) -> tuple[str, str | Dashes]:
    styles = ("-", SHORT_DASHES, LONG_DASHES)
    return COLOURS[number % len(COLOURS)], styles[number // len(COLOURS) % len(styles)]


def _choose_look(number: int, line: Line) -> Line:
    """The line with its own colour and style, or the next ones."""
    colour, style = _next_look(number)
    return line._replace(colour=line.colour or colour, style=line.style or style)


def _scale_x(axes: Axes, x: Floats, log_x: bool) -> None:
    """A horizontal axis from the first to the last value, with ticks at whole numbers where all values are whole."""
    whole = bool((x == np.rint(x)).all())
    axes.set_xlim(x.min(), max(x.max(), x.min() + 1e-9))
    if not log_x:
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=whole))
        return
    axes.set_xscale("log")
    axes.tick_params(axis="x", which="minor", color=SOFT, length=2)
    axes.xaxis.set_major_formatter("{x:,.0f}" if whole else "{x:g}")
    if whole:
        axes.set_xticks([step for step in (1, *landmarks(int(x.max()))) if step >= x.min()], minor=False)
        axes.xaxis.set_minor_formatter(NullFormatter())


def scale_panels(panels: Iterable[Sequence[Line]]) -> tuple[float, float]:
    """Limits of a vertical axis that fit the lines of some panels after the first noisy steps."""
    return span([line.mean[line.x >= min(NOISY_STEPS, line.x[-1])] for lines in panels for line in lines])


def span(values: Sequence[Floats]) -> tuple[float, float]:
    """The smallest and the largest finite number with a margin of 4%."""
    finite = [each[np.isfinite(each)] for each in values]
    low = min(float(each.min()) for each in finite if each.size)
    high = max(float(each.max()) for each in finite if each.size)
    margin = 0.04 * (high - low) or 0.5
    return low - margin, high + margin
