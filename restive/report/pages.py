"""HTML pages and Markdown documents of all reports, made from the Jinja templates in this package.

A page is one file that needs no network and no script. Text is escaped wherever it comes from. Wide figures and tables
scroll in boxes of their own, so that a page fits a phone.
"""

import math
import re
from collections.abc import Mapping
from functools import cache
from os import PathLike
from textwrap import fill
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from matplotlib.figure import Figure

from restive.comparison import Comparison, landmarks
from restive.files import write_atomic
from restive.formats import enumerate_words, show_count
from restive.plotting import MAX_BANDS, Picture, draw_comparison, inline_svg
from restive.report.tables import escape_markdown, tabulate_comparison, tabulate_differences

MARKS = {"holds": "✓", "fails": "✗", "undecided": "?", "not decidable": "–"}
MAX_UNFOLDED = 8  # parts of a claim that are shown without unfolding
PIXELS_PER_INCH = 76  # of a figure at its smallest, so that its text can be read
SKETCH_WIDTH = 120
LINE_LENGTH = 120


def write_page(comparison: Comparison, path: str | PathLike[str], command: str = "") -> None:
    """Write a comparison as a page: figure, table, and the command that makes it again."""
    table = tabulate_comparison(comparison)
    steps = landmarks(comparison.rows[0].trace.reward.shape[1])[:-1]  # the last is the reward per step itself
    means = [row.trace.bands().mean for row in comparison.rows]
    rows = tuple(
        (*row[:-1], *(f"{mean[step - 1]:.2f}" for step in steps)) for row, mean in zip(table.rows, means, strict=False)
    )
    bound = tuple((*row[:-1], *[""] * len(steps)) for row in table.rows[len(rows) :])
    wide = table._replace(heads=(*table.heads[:-1], *(f"t = {step}" for step in steps)), rows=(*rows, *bound))
    page = render(
        "comparison.html.j2",
        title="Policies side by side",
        table=wide,
        differences=tabulate_differences(comparison),
        figure=draw_comparison(comparison),
        bands=len(comparison.rows) <= MAX_BANDS,
        units="instances" if comparison.spec["instances"] > 1 else "runs",
        command=command,
    )
    write_atomic(path, page.encode())


def render(template: str, **context: Any) -> str:
    """The text of a template; HTML is escaped, Markdown is not."""
    return _environment(template.endswith(".html.j2")).get_template(template).render(**context)


@cache
def _environment(html: bool) -> Environment:
    environment = Environment(
        loader=PackageLoader("restive.report"),
        autoescape=html,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "alternative_text": describe_figure,
        "count": show_count,
        "drawn": Picture.of,
        "enumerate": enumerate_words,
        "md": escape_markdown,
        "prose": mark_up,
        "sketch_places": place_sketch,
        "svg": make_svg,
        "verdicts": lambda parts, claim: [part.judge(claim.agreement) for part in parts],
        "wrap": wrap,
    }
    environment.globals |= {"marks": MARKS, "max_unfolded": MAX_UNFOLDED}
    return environment


def mark_up(text: str) -> Markup:
    """Text with code between backquotes, and no line break around an equals sign."""
    marked = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text)))
    return Markup(marked.replace(" = ", "&nbsp;=&nbsp;"))


def wrap(text: str, first: str = "", others: str = "") -> str:
    """Text in lines of at most 120 characters."""
    return fill(text, LINE_LENGTH, initial_indent=first, subsequent_indent=others, break_on_hyphens=False)


def make_svg(figure: Figure | Picture, name: str) -> Markup:
    """A figure as inline SVG, no smaller than its text can be read."""
    picture = Picture.of(figure)
    style = f"min-width: {picture.width * PIXELS_PER_INCH:.0f}px; max-width: {picture.width * 1.3:.1f}in"
    return Markup(inline_svg(picture, name).replace("<svg", f'<svg style="{style}"', 1))


def describe_figure(picture: Picture, title: str) -> str:
    """A figure in a sentence, for those who cannot see it."""
    lines = f", for {', '.join(picture.names)}" if picture.names else ""
    return f"{title}: {' against '.join(picture.labels)}{lines}. Tables and claims below have the numbers."


def place_sketch(part: Any, claim: Any) -> Mapping[str, Any] | None:
    """Where the interval and the range of agreement are drawn, on the scale of all parts of the claim."""
    known = [number for other in (*claim.parts, part) for number in other[1:]] + list(claim.agreement)
    finite = [number for number in known if math.isfinite(number)]
    if not math.isfinite(part.value) or not finite:
        return None
    least, span = min(finite), (max(finite) - min(finite)) or 1.0

    def across(number: float) -> float:
        place: float = 10 + (SKETCH_WIDTH - 20) * (number - least) / span
        return round(min(max(place, 0.0), SKETCH_WIDTH), 1)

    low, high = map(across, claim.agreement)
    ends = [across(number if math.isfinite(number) else part.value) for number in (part.low, part.high)]
    return {"range": (low, round(high - low, 1)), "low": ends[0], "high": ends[1], "value": across(part.value)}
