"""Tables of reports, with numbers as they are read: printed in a terminal, put into an HTML page or into Markdown."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from restive.comparison import CEILING, FLOOR, Comparison
from restive.formats import show_count, show_fixed, show_mean
from restive.solution import Solution
from restive.stats import Band

_MARKDOWN_SYNTAX = re.compile(r"([\\|<>*_`])")
_CODE = re.compile(r"(`[^`]+`)")


class Table(NamedTuple):
    """A table: the first column holds labels, the others numbers."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def records(self) -> list[dict[str, str]]:
        """The rows as dictionaries by column."""
        return [dict(zip(self.heads, row, strict=True)) for row in self.rows]

    def markdown(self) -> str:
        """The table in Markdown, numbers aligned to the right.

        >>> print(Table("Tea", ("time", "cups"), (("noon", "2"),)).markdown())
        | time | cups |
        |---|---:|
        | noon | 2 |
        """
        head, *rows = (f"| {' | '.join(map(escape_markdown, line))} |" for line in (self.heads, *self.rows))
        return "\n".join([head, "|---|" + "---:|" * (len(self.heads) - 1), *rows])


def escape_markdown(text: str) -> str:
    """Text on one line that Markdown shows as it is, with code between backquotes.

    >>> print(escape_markdown("as in `my_file.py`, a_b"))
    as in `my_file.py`, a\\_b
    """
    parts = _CODE.split(" ".join(text.split()))  # every second one is code, in which only a table's | is special
    parts[::2] = [_MARKDOWN_SYNTAX.sub(r"\\\1", part) for part in parts[::2]]
    parts[1::2] = [part.replace("|", r"\|") for part in parts[1::2]]
    return "".join(parts)


def describe_spec(spec: Mapping[str, Any]) -> str:
    """The problem, its size and what was run, in one line."""
    noise = f"noise variance {spec['noise']:g}" if spec["noise"] else "noiseless"
    runs = f"{show_count(spec['instances'], 'instance')} × {show_count(spec['runs'], 'run')}"
    return (
        f"{spec['problem'] or 'own problem'}, N = {spec['agents']}, S = {spec['states']}, B = {spec['budget']}, "
        f"{noise}, {runs}, seed {spec['seed']}, restive {spec['version']}"
    )


def tabulate_comparison(comparison: Comparison) -> Table:
    """One row for each policy: mean reward, reward at the end, gap closed, speed; then the fluid bound."""
    rows: list[tuple[str, ...]] = [
        (row.label, _show(row.whole), _show(row.end), row.show_gap(), f"{row.speed / 1e6:.1f}")
        for row in comparison.rows
    ]
    if comparison.bound is not None:
        rows.append(("fluid bound", f"{comparison.bound:.3f}", *[""] * 3))
    units = "instances" if comparison.spec["instances"] > 1 else "runs"
    return Table(
        describe_spec(comparison.spec),
        ("policy", "reward per step", "last tenth", "gap closed", "M agent-steps/s"),
        tuple(rows),
        f"± standard error over {units}; gap closed: from {FLOOR} to {CEILING}, 95% interval.",
    )


def tabulate_differences(comparison: Comparison) -> Table | None:
    """One row for each policy but the best learner: its reward per step minus that one's; None if nothing is paired."""
    best, rows = comparison.reference, []
    for row in comparison.rows:
        lead = comparison.lead(row)
        if row is not best and np.isfinite(lead.low):
            rows.append((row.label, *(f"{float(part):+.3f}" for part in (lead.mean, lead.low, lead.high))))
    heads = ("policy", f"minus {best.label}", "from", "to")
    note = "Reward per step on the same random numbers, with its 95% interval."
    return Table("Differences", heads, tuple(rows), note) if rows else None


def tabulate_solution(solution: Solution) -> Table:
    """One row for each agent and state."""
    heads = ("agent", "state", "phi(wait)", "phi(act)", "benefit I", "Whittle index", "indexable")
    rows = tuple(
        tuple(show_fixed(value, 6) if isinstance(value, float) else str(value) for value in line)
        for line in solution.rows()
    )
    return Table("", heads, rows)


def _show(band: Band) -> str:
    return show_mean(float(band.mean), float(band.error))
