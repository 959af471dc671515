"""What a verb answers: sections of sentences, a table and a figure, printed, written as a page, or given as JSON."""

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from restive.console import print_json, print_report_table, print_text
from restive.files import write_atomic

if TYPE_CHECKING:
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
    if figure is not None:
        from restive.plotting import write_figure

        draw = next(section.figure for section in answer.sections() if section.figure is not None)
        write_figure(draw(), figure)
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
