"""What the command shows in a terminal: tables that fit its width, and a progress bar for each policy.

Whatever a user may have named (states, problems, files) is shown as it is, never read as markup.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from inspect import getdoc

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from restive.comparison import CEILING, FLOOR, Comparison, Row
from restive.plotting import caption
from restive.solution import Solution
from restive.stats import Band

# From the one that is kept longest to the one that a narrow terminal does without first.
COLUMNS: Mapping[str, Callable[[Row], str]] = {
    "reward per step": lambda row: show(row.whole),
    "gap closed": lambda row: row.share(),
    "last tenth": lambda row: show(row.end),
    "M agent-steps/s": lambda row: f"{row.speed / 1e6:.1f}",
}
LABEL = 16  # a label is folded rather than a column dropped, but to no less than this
ORDER = ("reward per step", "last tenth", "gap closed", "M agent-steps/s")


def print_comparison(comparison: Comparison) -> None:
    """The table, without its last columns where the terminal is too narrow for them."""
    console = _console()
    console.print(caption(comparison.spec), highlight=False, markup=False)
    console.print(_comparison_table(comparison, console.width))
    units = "instances" if comparison.spec["instances"] > 1 else "runs"
    console.print(f"± standard error over {units}; gap closed: from {FLOOR} to {CEILING}, 95% interval.", style="dim")


def _comparison_table(comparison: Comparison, width: int) -> Table:
    kept, room = _fitting(comparison, width)
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("policy", overflow="fold", width=room)
    for name in kept:
        table.add_column(name, justify="right", no_wrap=True)
    for row in comparison.rows:
        table.add_row(escape(row.label), *(COLUMNS[name](row) for name in kept))
    if comparison.bound is not None:
        table.add_row("fluid bound", f"{comparison.bound:.3f}        ", style="dim")
    return table


def _fitting(comparison: Comparison, width: int) -> tuple[list[str], int]:
    """The columns that fit, in their order, and the width that is left for the labels, which can be folded."""
    names = list(COLUMNS)
    longest = max(len("fluid bound"), *(len(row.label) for row in comparison.rows))
    while True:
        cells = [[name, *(COLUMNS[name](row) for row in comparison.rows)] for name in names]
        taken = sum(max(map(len, column)) + 3 for column in cells) + 4  # two of padding and one of rule for each
        if width - taken >= min(longest, LABEL) or len(names) == 1:
            return [name for name in ORDER if name in names], max(1, min(longest, width - taken))
        names.pop()


def show(band: Band) -> str:
    """A mean and its standard error with as many decimals as tell it from zero.

    >>> show(Band(np.array(31.25), np.array(0.5), np.array(30.0), np.array(32.0)))
    '31.250 ± 0.500'
    >>> show(Band(np.array(0.00425), np.array(0.00012), np.array(0.004), np.array(0.005)))
    '0.00425 ± 0.00012'
    """
    mean, error = float(band.mean), float(band.error)
    decimals = 3
    while decimals < 12 and 0 < (error if error > 0 else abs(mean)) * 10**decimals < 9.95:
        decimals += 1
    return f"{mean:.{decimals}f} ± {error:.{decimals}f}" if error == error else f"{mean:.{decimals}f}"


def print_solution(solution: Solution) -> None:
    """One line for each agent and state, then what holds for the whole problem."""
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("agent", "state", "phi(wait)", "phi(act)", "benefit I", "Whittle index", "indexable"):
        table.add_column(name, justify="right")
    for line in solution.lines():
        table.add_row(*(f"{value:.6f}" if isinstance(value, float) else escape(str(value)) for value in line))
    console = _console()
    console.print(table)
    for sentence in solution.sentences():
        console.print(sentence, highlight=False, markup=False)


def print_list(registry: Mapping[str, object], what: str, as_json: bool) -> None:
    """One line each: the first sentence of its documentation."""
    lines = {name: (getdoc(entry) or "").splitlines()[0] for name, entry in registry.items()}
    if as_json:
        print(json.dumps([{what: name, "about": about} for name, about in lines.items()]))
        return
    table = Table(box=box.SIMPLE_HEAD, show_header=False)
    for name, about in lines.items():
        table.add_row(f"[bold]{name}[/bold]", escape(about))
    _console().print(table)


@contextmanager
def bars(labels: Iterable[str], total: int) -> Iterator[Callable[[str, int], None]]:
    """A progress bar for each policy, on standard error, shown as its turn comes."""
    percent = TextColumn("{task.percentage:3.0f}%")
    columns = (TextColumn("{task.description}"), BarColumn(), percent, TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        tasks = {label: progress.add_task(escape(label), total=total, visible=False) for label in dict.fromkeys(labels)}

        def step(label: str, steps: int) -> None:
            progress.update(tasks[label], advance=steps, visible=True)

        yield step


def _console() -> Console:
    """Wide enough for every table where there is no terminal to ask."""
    return Console() if sys.stdout.isatty() else Console(width=120)
