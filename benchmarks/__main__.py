"""`python -m benchmarks`: every benchmark, one after the other, as a Markdown table of ratios measured in this run."""

import importlib
import os
import platform
import sys

from benchmarks.timing import Row

# `full_reproduction` takes minutes, and is run when it is named.
MODULES = (
    "simulation",
    "whittle",
    "fluid",
    "round",
    "memory",
    "start",
    "reproduction",
    "desk",
    "server",
    "logs",
    "forecast",
)


def main() -> None:
    chosen = sys.argv[1:] or list(MODULES)
    print(f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}\n")
    print("| what | against | ratio | wanted |\n|---|---|---|---|")
    for name in chosen:
        for row in importlib.import_module(f"benchmarks.{name}").rows():
            print(line(Row(*row)), flush=True)


def line(row: Row) -> str:
    """Speed-ups as theirs / ours, limits as ours / theirs."""
    faster = row.wanted.startswith(("≥", "<"))
    more = "much" if "memory" in row.what else "long"
    ratio = f"{row.theirs / row.ours:.0f} times as fast" if faster else f"{row.ours / row.theirs:.2g} times as {more}"
    return f"| {row.what} | {row.against} | {ratio} | {row.wanted}{'' if met(row) else ', **missed**'} |"


def met(row: Row) -> bool:
    """Whether the ratio, or for a limit in seconds the time, is what was wanted."""
    if not row.wanted:
        return True
    limit = float(row.wanted.split()[1])
    if row.wanted.startswith("≥"):
        return row.theirs / row.ours >= limit
    return (row.ours if row.wanted.endswith(" s") else row.ours / row.theirs) <= limit


main()
