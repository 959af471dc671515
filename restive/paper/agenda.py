"""What is to be done for some undertakings and what is there already, in a folder that one call after another fills.

    results/*.parquet   what the works gave, one file each, under the digest of their spec
    figures/*           every figure as PNG, SVG and PDF
    *.json              what came out, as data, with its size and seed: a folder has that of one size and one seed

An undertaking is an experiment of the paper or a field of the comparison; nothing here depends on which.
"""

import json
import os
import platform
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from restive.errors import InputError
from restive.files import Columns, write_atomic
from restive.paper.experiment import Results, Size, Undertaking
from restive.paper.runner import carry_out_all, gather
from restive.paper.work import Work, code_digest
from restive.parallel import available_processors
from restive.plotting import write_figure
from restive.version import __version__

FORMATS = ("png", "svg", "pdf")

Progress = Callable[[str, Work, float], None]  # an undertaking, the work of it that is done, the seconds it took


class Agenda(NamedTuple):
    """What is there already, and what is missing, by undertaking."""

    found: dict[str, Columns]
    missing: dict[str, list[Work]]


def prepare(asked: Iterable[Undertaking], known: Iterable[Undertaking], size: Size, report: Path) -> Agenda:
    """See what is in the folder of the report; a work that several undertakings need belongs to the first of them."""
    folder = report.parent
    _make_folders(folder)
    _require_same_report(size, report)
    for other in known:  # what is damaged is refused before any work, as the report reads it
        gather(other.plan(size), folder / "results")
    found: dict[str, Columns] = {}
    missing: dict[str, list[Work]] = {}
    seen: set[str] = set()
    for undertaking in asked:
        there, open_works = gather(undertaking.plan(size), folder / "results")
        found |= there
        missing[undertaking.name] = [work for work in open_works if work.digest() not in seen]
        seen |= {work.digest() for work in open_works}
    return Agenda(found, missing)


def make_writable(page: Path) -> None:
    """See that a page can be written, before any work is done for it; make its folder."""
    if page.is_dir():
        raise InputError(f"{page}: there is a folder of that name.")
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{page}: cannot write there ({error.strerror}); choose another place.") from None


def _require_same_report(size: Size, report: Path) -> None:
    """Refuse to put a report of another size or seed over the one that is there."""
    try:
        there = json.loads(report.read_bytes())
    except (OSError, ValueError):
        return
    kept = (there.get("size"), there.get("seed"))
    if kept != (wanted := (_size_of(size), size.seed)):
        raise InputError(
            f"{report.parent}: holds the report of {kept[0]} size and seed {kept[1]}, and this one would be of "
            f"{wanted[0]} size and seed {wanted[1]}; choose another folder."
        )


def _size_of(size: Size) -> str:
    return "quick" if size.quick else "full"


def _make_folders(folder: Path) -> None:
    """Make the folders, and see that they can be written to before hours of work are done for them."""
    for place in (folder, folder / "results", folder / "figures"):
        try:
            place.mkdir(parents=True, exist_ok=True)
            write_atomic(place / ".writable", b"")
            (place / ".writable").unlink(missing_ok=True)
        except OSError as error:
            raise InputError(f"{place}: cannot write there ({error.strerror}); choose another folder.") from None


def carry_out_agenda(agenda: Agenda, folder: Path, executor: Executor, progress: Progress) -> dict[str, Columns]:
    """Do what is missing; progress is told of each work that is done."""
    owner = {work.digest(): name for name, works in agenda.missing.items() for work in works}
    works = [work for works in agenda.missing.values() for work in works]

    def done(work: Work, seconds: float) -> None:
        progress(owner[work.digest()], work, seconds)

    return agenda.found | dict(carry_out_all(works, folder / "results", executor, done))


def complete(
    asked: Iterable[Undertaking],
    known: Iterable[Undertaking],
    size: Size,
    folder: Path,
    made: dict[str, Columns],
) -> dict[str, Results]:
    """The results of what was asked for, and of all else that is known and whose results are all there, in order."""
    names = {undertaking.name for undertaking in asked}
    results = {}
    for undertaking in known:
        if undertaking.name in names:
            results[undertaking.name] = Results(made)
            continue
        found, open_works = gather(undertaking.plan(size), folder / "results")
        if not open_works:
            results[undertaking.name] = Results(found)
    return results


def describe(size: Size) -> dict[str, Any]:
    """Version, seed and machine."""
    return {
        "version": __version__,
        "code": code_digest(),
        "seed": size.seed,
        "size": _size_of(size),
        "machine": f"{_processor()}, {available_processors()} processors, {platform.system()}",
        "python": platform.python_version(),
        "date": datetime.now(UTC).date().isoformat(),
    }


def _processor() -> str:
    """The processor's name where the system tells it."""
    if os.path.exists("/proc/cpuinfo"):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def write_figures(figures: Mapping[str, Figure], folder: Path) -> None:
    """Every figure in every format, under its name."""
    for name, figure in figures.items():
        for kind in FORMATS:
            write_figure(figure, folder / "figures" / f"{name}.{kind}")


def write_json(told: Mapping[str, Any], path: Path) -> None:
    """Plain data as a file that is whole or not there."""
    write_atomic(path, json.dumps(told, indent=1, allow_nan=False).encode())
