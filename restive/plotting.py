"""The running mean of the reward over time, one line for each policy, with its 95% band over instances."""

import re
from functools import cache
from io import BytesIO
from os import PathLike
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from restive.comparison import Comparison
from restive.errors import InputError
from restive.files import write_atomic
from restive.report.tables import describe_spec

# Okabe and Ito's palette (2008): told apart with any kind of colour vision; line styles tell apart what is left.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
STYLES = ("-", "--", ":")
BOUND, SOFT, RULE = "#444444", "#666666", "#dddddd"
GREYS = {"#000000": "--ink", BOUND: "--soft", SOFT: "--soft", RULE: "--line"}
BANDS = 5  # with more policies than this the bands would hide each other, and the lines


def draw(comparison: Comparison, path: str | PathLike[str]) -> None:
    """Draw the comparison into a file, whole or not at all; its ending says how: png, svg or pdf."""
    place = Path(path)
    check_ending(place)
    write_figure(make_figure(comparison), place)


def write_figure(figure: Figure, path: Path) -> None:
    """Write any figure, whole or not at all; the same figure gives the same bytes."""
    content, kind = BytesIO(), path.suffix[1:].lower()
    undated = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[kind]
    with rc_context({"svg.hashsalt": "restive"}):
        figure.savefig(content, dpi=160, format=kind, metadata=undated)
    write_atomic(path, content.getvalue())


def inline_svg(figure: Figure, name: str) -> str:
    """A figure as an element of an HTML page, with letters as text in the font of the page.

    Its greys are --ink, --soft and --line of the page, so that it is light or dark as the page is. Ids that are used
    begin with `name`, which keeps the figures of a page apart; the others are left out, and coordinates are cut to
    hundredths of a point, which halves the bytes.
    """
    content = BytesIO()
    bare = dict.fromkeys(("Type", "Format", "Creator", "Date"))
    with rc_context({"svg.hashsalt": "restive", "svg.fonttype": "none"}):
        figure.savefig(content, format="svg", metadata=bare, transparent=True)
    drawn = content.getvalue().decode().partition("<svg")[2]
    drawn = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", drawn, flags=re.DOTALL)  # it would style the whole page
    drawn = re.sub(r" font-family: [^;\"]*;", "", drawn)
    drawn = re.sub(r' (?:d|x|y|transform)="[^"]*"', lambda found: _shorten(found[0]), drawn)
    return "<svg" + re.sub(r">\s+<", "><", _rename(_adapt(drawn), name))


def _adapt(drawn: str) -> str:
    """Greys as variables, and coloured letters mixed with the ink: darker on a light page, lighter on a dark one."""
    for grey, variable in GREYS.items():
        drawn = drawn.replace(grey, f"var({variable})")
    return re.sub(r'(<text style="[^"]*?fill: )(#\w{6})', r"\1color-mix(in srgb, \2 70%, var(--ink))", drawn)


def _shorten(numbers: str) -> str:
    """Two decimals are enough; and a path without curves needs no letter before each point."""
    flat = re.sub(r"(\.\d\d)\d+", r"\1", numbers.replace("\n", ""))
    return flat if "C" in flat or "Q" in flat else flat.replace(" L ", " ")


def _rename(drawn: str, name: str) -> str:
    """Ids that are referred to as `name-0`, `name-1` and so on, and no others."""
    used = dict.fromkeys(re.findall(r'(?:url\(|href=")#(\w+)', drawn))
    names = {old: f"{name}-{number}" for number, old in enumerate(used)}
    drawn = re.sub(r' id="([^"]+)"', lambda found: f' id="{names[found[1]]}"' if found[1] in names else "", drawn)
    return re.sub(r'(url\(|href=")#(\w+)', lambda found: f"{found[1]}#{names[found[2]]}", drawn)


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
    label_ends(axes, ends)
    figure.supxlabel(describe_spec(comparison.spec), fontsize=7, color=SOFT, x=0.01, ha="left", parse_math=False)
    return figure


def _frame(axes: Axes, comparison: Comparison) -> None:
    axes.set_xlabel("step")
    axes.set_ylabel("mean reward per step so far, all agents")
    axes.set_xlim(1, max(2, comparison.rows[0].trace.reward.shape[1]))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=RULE, linewidth=0.6)
    # The first steps are luck: a scale that shows them hides the rest.
    settled = [row.trace.bands().mean[min(4, row.trace.reward.shape[1] - 1) :] for row in comparison.rows]
    low, high = min(map(np.min, settled)), max([*map(np.max, settled), comparison.bound or -np.inf])
    room = 0.04 * (high - low) or 0.5
    axes.set_ylim(low - room, high + room)


def label_ends(axes: Axes, ends: list[tuple[float, str, str]], size: float = 8.5) -> None:
    """Name each line at its right end, in letters of `size` points, pushed apart where they would overlap."""
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
        label_place = (1 + 0.13 * inch, place)
        axes.text(
            *label_place, label, transform=beside, color=readable(colour), size=size, va="center", parse_math=False
        )


def push_apart(values: list[float], gap: float, ends: tuple[float, float]) -> list[float]:
    """Rising places as near to rising `values` as may be (least squares), at least `gap` apart and between the ends.

    Places that would overlap are pooled about their mean; if there is no room for all, the gap is made smaller.

    >>> push_apart([1.0, 1.5, 4.75, 5.0], gap=1.0, ends=(0.0, 5.0))
    [0.75, 1.75, 4.0, 5.0]
    """
    low, high = ends
    gap = min(gap, (high - low) / max(1, len(values) - 1))
    pools: list[tuple[float, int]] = []  # where the first of some labels would be were it for them alone
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
    """The colour, or so much darker that text in it can be read on white: a contrast of 4.5 (WCAG 2.1).

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
