"""Terminal output of every command: tables that fit the width, progress bars, notices, JSON, advice on errors.

Results go to standard output; progress and notices to standard error. Text that users may have chosen (names, states,
files) is never parsed as markup, and its control characters are shown as escapes: they could move the cursor, hide text
or change the terminal.
"""

import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from restive.errors import Hint, InputError
from restive.formats import UNKNOWN

if TYPE_CHECKING:
    from restive.report.tables import Table as ReportTable

WIDTH = 120  # where standard output is not a terminal
MIN_TEXT_WIDTH = 12  # a text column is folded to no less than this before columns are dropped
COLUMN_GAP = 2
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")  # also marks of direction

Row = Mapping[str, object]  # column name -> cell: text, a number, None for a dash, or a rich Text with a style

ADVICE: Mapping[Hint, str] = {
    Hint.AGAIN: "Add --again to decide another round anyway.",
    Hint.NEW: "Add --new if they belong to new people.",
    Hint.CORRECT: "Add --correct to replace what is recorded.",
    Hint.CANCEL: "Cancel it first: restive desk cancel.",
    Hint.COLUMNS: "If a column has another name, give it: --column agent=HEADER.",
    Hint.OVERWRITE: "Choose another file, or add --overwrite.",
}
NOTHING_RECORDED: frozenset[str] = frozenset(
    {"invalid_table"}
)  # codes of errors after which users ask what was recorded


def make_console(stderr: bool = False) -> Console:
    """A console as wide as the terminal, or `WIDTH` columns where there is none."""
    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, highlight=False, width=None if stream.isatty() else WIDTH)


def escape_controls(text: str) -> str:
    """The text with control characters other than line feeds and tabs as escapes.

    >>> print(escape_controls("ann\\x1b[31m"))
    ann\\x1b[31m
    """
    return CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


def as_text(text: str, style: str = "") -> Text:
    """Text that a user may have chosen, for a console."""
    return Text(escape_controls(text), style=style)


def print_line(line: str) -> None:
    """Print a line, not wrapped."""
    print(escape_controls(line))


def print_text(*lines: str, style: str = "") -> None:
    """Print lines, wrapped to the width."""
    console = make_console()
    for line in lines:
        console.print(as_text(line, style))


def print_json(record: object) -> None:
    """Print plain data as one line of JSON."""
    print(json.dumps(record, allow_nan=False), flush=True)


def print_notices(*notices: str) -> None:
    """Print notices to standard error, each behind the name of the program."""
    for notice in notices:
        print(f"restive: {escape_controls(notice)}", file=sys.stderr, flush=True)


def advise(error: InputError) -> str:
    """The message of an error with what can be done about it on the command line."""
    recorded = "\nNothing was recorded." if error.code in NOTHING_RECORDED else ""
    sentence = "\n" not in error.message and error.message.endswith((".", "?"))
    apart = " " if recorded or sentence else "\n"
    advice = f"{apart}{ADVICE[error.hint]}" if error.hint else ""
    return f"{error.message}{recorded}{advice}"


def print_table(
    rows: Sequence[Row],
    text_columns: Iterable[str] = (),
    *,
    title: str = "",
    note: str = "",
    empty: str = "Nothing to show.",
    header: bool = True,
    drop: Sequence[str] | None = None,
    below: Sequence[str] = (),
    console: Console | None = None,
) -> None:
    """Print rows with one column for each key of the first row.

    Numbers are never cut: on a narrow terminal text columns are folded first, then columns are dropped. Columns
    without any content are left out.

    Parameters
    ----------
    text_columns
        Columns that may be folded, aligned to the left; the others are aligned to the right if they have no letters.
    drop
        Columns that may be dropped, the first one first; by default all but the first column, the last one first.
    below
        A sentence to print under each row.
    """
    console = console or make_console()
    if title:
        console.print(as_text(title, style="bold"))
    if not rows:
        console.print(as_text(empty))
        return
    cells = {name: [_cell(row.get(name)) for row in rows] for name in rows[0]}
    cells = {name: column for name, column in cells.items() if any(cell.plain not in ("", UNKNOWN) for cell in column)}
    text = set(text_columns) & set(cells)
    widths = _fit(cells, text, list(reversed(cells))[:-1] if drop is None else drop, console.width, header)
    right = {name for name in cells if name not in text and not any(cell.plain[:1].isalpha() for cell in cells[name])}
    lines = [[cells[name][place] for name in widths] for place in range(len(rows))]
    if not below:
        console.print(_grid(widths, right, lines, header))
    else:
        console.print(_grid(widths, right, [], header))
        for line, sentence in zip(lines, below, strict=True):
            console.print(_grid(widths, right, [line], header=False))
            if sentence:
                console.print(Padding(as_text(sentence, style="dim"), (0, 0, 0, 2)))
    if note:
        console.print(as_text(note, style="dim"))


def print_report_table(table: "ReportTable", drop: Sequence[str] | None = None) -> None:
    """Print a table of a report: its title, its rows, its note."""
    print_table(table.records(), table.heads[:1], title=table.title, note=table.note, drop=drop)


def _cell(value: object) -> Text:
    if isinstance(value, Text):
        return value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return as_text(UNKNOWN)
    return as_text(f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value))


def _fit(
    cells: Mapping[str, list[Text]], text: set[str], drop: Sequence[str], width: int, header: bool
) -> dict[str, int]:
    """The width of each column that is shown."""
    full = {name: max(cell_len(name) if header else 0, *(cell.cell_len for cell in cells[name])) for name in cells}
    least = {name: min(full[name], MIN_TEXT_WIDTH) if name in text else full[name] for name in cells}
    for name in drop:
        if sum(least.values()) + COLUMN_GAP * (len(least) - 1) <= width:
            break
        least.pop(name, None)
    spare = max(0, width - sum(least.values()) - COLUMN_GAP * (len(least) - 1))
    widths = dict(least)
    for done, name in enumerate(sorted(least, key=lambda name: full[name] - least[name])):  # equal shares, small first
        more = min(spare // (len(least) - done), full[name] - least[name])
        widths[name], spare = min(width, widths[name] + more), spare - more
    return widths


def _grid(widths: Mapping[str, int], right: set[str], lines: Sequence[Sequence[Text]], header: bool) -> Table:
    grid = Table(box=None, pad_edge=False, padding=(0, COLUMN_GAP, 0, 0), header_style="dim", show_header=header)
    for name, width in widths.items():
        grid.add_column(as_text(name), width=width, justify="right" if name in right else "left", overflow="fold")
    for line in lines:
        grid.add_row(*line)
    return grid


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """One progress bar on standard error, if that is a terminal; call what it yields with the work done and in all."""
    with _progress() as progress:
        task = progress.add_task(label, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


@contextmanager
def progress_bars(totals: Mapping[str, float], overall: str = "") -> Iterator[Callable[[str, float], None]]:
    """A progress bar for each label, shown once it moves, and one for all of them under the label `overall`, if given.

    Call what it yields with a label and how much more of it is done.
    """
    with _progress() as progress:
        tasks = {label: progress.add_task(label, total=total, visible=bool(overall)) for label, total in totals.items()}
        whole = progress.add_task(overall, total=sum(totals.values())) if overall else None

        def advance(label: str, amount: float) -> None:
            progress.update(tasks[label], advance=amount, visible=True)
            if whole is not None:
                progress.advance(whole, amount)

        yield advance


def _progress() -> Progress:
    columns: list[ProgressColumn] = [
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:3.0f}%"),
        TimeRemainingColumn(),
    ]
    console = make_console(stderr=True)
    return Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal, speed_estimate_period=120
    )
