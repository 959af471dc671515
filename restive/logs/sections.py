"""What a verb answers: sections of sentences, a table and a figure, printed, written as a page, or given as JSON."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import polars as pl

from restive.console import print_json, print_notices, print_report_table, print_text
from restive.display import CELL, Displayed, axes_of, draw_small
from restive.files import write_atomic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from restive.report.tables import Table


class Section(NamedTuple):
    """A part of an answer."""

    title: str
    sentences: tuple[str, ...] = ()
    table: "Table | None" = None
    figure: "Callable[[], Figure] | None" = None
    caption: str = ""


class Answer(Protocol):
    """The result of a verb."""

    def as_json(self) -> dict[str, Any]:
        """The numbers as plain data."""

    def sections(self) -> tuple[Section, ...]:
        """What to show, the most important first."""


def show(answer: Answer, title: str, json: bool = False, page: Path | None = None, figure: Path | None = None) -> None:
    """Print an answer, as text or as JSON, and write it as a page and its first figure as a file if asked for."""
    if page is not None:
        write_page(title, answer.sections(), page)
        print_notices(f"wrote {page}")
    if figure is not None:
        from restive.plotting import write_figure

        draw = next((section.figure for section in answer.sections() if section.figure is not None), None)
        if draw is not None:
            write_figure(draw(), figure)
        print_notices(f"wrote {figure}" if draw is not None else f"{figure}: not written; this answer has no figure.")
    if json:
        print_json(answer.as_json())
        return
    for number, section in enumerate(answer.sections()):
        print_text(*([""] if number else []), section.title, style="bold")
        print_text(*section.sentences)
        if section.table is not None:
            print_report_table(section.table)


def write_page(title: str, sections: Sequence[Section], path: str | PathLike[str], command: str = "") -> None:
    """Write sections as one self-contained HTML page."""
    from restive.report.pages import render

    write_atomic(path, render("sections.html.j2", title=title, sections=sections, command=command).encode())


class DisplayedAnswer(Displayed):
    """An answer that shows its first sentence, and in a notebook its first section.

    Attributes
    ----------
    numbers
        The part of `as_json` that `to_frame` gives: records, or records by name.
    """

    numbers: ClassVar[str]

    def as_json(self) -> dict[str, Any]:
        """The numbers as plain data."""
        raise NotImplementedError

    def sections(self) -> tuple[Section, ...]:
        """What to show, the most important first."""
        raise NotImplementedError

    def facts(self) -> dict[str, object]:
        """The first sentence."""
        return {self.sections()[0].title: " ".join(self.sections()[0].sentences[:1])}

    def to_frame(self) -> pl.DataFrame:
        """One row for each record; the parts of an interval are columns of their own."""
        found = self.as_json().get(self.numbers, [])
        records = [{"name": name, **each} for name, each in found.items()] if isinstance(found, Mapping) else found
        return pl.DataFrame([flatten(record) for record in records])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({' '.join(map(str, self.facts().values()))})"

    def _repr_html_(self) -> str:
        first = self.sections()[0]
        parts = [f"<b>{escape(first.title)}</b>", *(f"<p>{escape(sentence)}</p>" for sentence in first.sentences)]
        if first.table is not None:
            lines = [("th", first.table.heads), *(("td", row) for row in first.table.rows)]
            cells = ("".join(f'<{tag} style="{CELL}">{escape(cell)}</{tag}>' for cell in row) for tag, row in lines)
            parts.append(f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>")
        plot = getattr(self, "plot", None)
        return f"<div>{''.join(parts)}{draw_small(plot) if plot and len(self.to_frame()) else ''}</div>"


class DisplayedEstimates(DisplayedAnswer):
    """An answer of estimates with intervals, which can be drawn.

    Attributes
    ----------
    measure
        The number that `plot` draws, empty if the records have `mean`, `low` and `high` themselves.
    """

    measure: ClassVar[str] = ""

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the measure with its interval, one line for each record, on `ax` or on new axes; returns the axes."""
        prefix = f"{self.measure}_" * bool(self.measure)
        rows = self.to_frame().to_dicts()
        names = [", ".join(str(value) for value in row.values() if isinstance(value, str | int)) for row in rows]
        with axes_of(ax) as drawn:
            for place, row in enumerate(rows):
                low, mean, high = (row[f"{prefix}{part}"] for part in ("low", "mean", "high"))
                drawn.plot([low, high], [place] * 2, color="#0072B2", linewidth=1.4)
                drawn.plot(mean, place, "o", color="#0072B2", markersize=4)
            drawn.axvline(0.0, color="#666666", linewidth=0.8)
            drawn.set_yticks(range(len(names)), names)
            drawn.invert_yaxis()
            drawn.set_xlabel(self.measure or "lift per person and round")
        return drawn


def flatten(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record whose parts that are records have become columns of their own.

    >>> flatten({"policy": "egt", "lift": {"mean": 1.0, "low": 0.5}})
    {'policy': 'egt', 'lift_mean': 1.0, 'lift_low': 0.5}
    """
    flat: dict[str, Any] = {}
    for name, value in record.items():
        flat |= (
            {f"{name}_{part}": each for part, each in value.items()} if isinstance(value, Mapping) else {name: value}
        )
    return flat
