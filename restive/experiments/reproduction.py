"""The paper again: all works of the experiments asked for, then figures, report and verdicts in one folder.

    results/*.parquet   what the works gave, one file each, under the digest of their spec
    figures/*           every figure as PNG, SVG and PDF
    claims.json         every claim with its verdict and numbers
    report.html         all of it to read, in one file

Experiments that were not asked for are in the report too if all of their results are in the folder.
"""

import json
import os
import platform
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from restive.errors import InputError
from restive.experiments.catalogue import EXPERIMENTS
from restive.experiments.claims import Claim
from restive.experiments.experiment import Experiment, Findings, Results, Size
from restive.experiments.runner import carry_out_all, gather
from restive.experiments.work import Work, code_digest
from restive.figure import write_figure
from restive.processors import available_processors
from restive.record import Columns, write_whole
from restive.version import __version__

FORMATS = ("png", "svg", "pdf")

Progress = Callable[[str, Work, float], None]  # an experiment, the work of it that is done, the seconds it took


class Reproduction(NamedTuple):
    """What was found, and where and how."""

    findings: dict[str, Findings]  # by experiment, in the paper's order
    about: dict[str, Any]

    def claims(self) -> list[tuple[Experiment, Claim]]:
        """All claims with the experiment that they belong to."""
        return [(EXPERIMENTS[name], claim) for name, found in self.findings.items() for claim in found.claims]

    def as_json(self) -> dict[str, Any]:
        """The claims as plain data."""
        listed = [{"experiment": experiment.name, **claim.as_json()} for experiment, claim in self.claims()]
        return {**self.about, "claims": listed}


class Agenda(NamedTuple):
    """What is to be done for some experiments: what is there already, and what is missing, by experiment."""

    found: dict[str, Columns]
    missing: dict[str, list[Work]]


def prepare(experiments: Iterable[Experiment], size: Size, folder: Path) -> Agenda:
    """See what is in the folder; a work that several experiments need belongs to the first of them."""
    make_folders(folder)
    _require_same_report(size, folder)
    for other in EXPERIMENTS.values():
        gather(
            other.plan(size), folder / "results"
        )  # what is damaged is refused before any work, as the report reads it
    found: dict[str, Columns] = {}
    missing: dict[str, list[Work]] = {}
    seen: set[str] = set()
    for experiment in experiments:
        there, open_works = gather(experiment.plan(size), folder / "results")
        found |= there
        missing[experiment.name] = [work for work in open_works if work.digest() not in seen]
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


def _require_same_report(size: Size, folder: Path) -> None:
    """Refuse to put a report of another size or seed over the one that is there."""
    try:
        there = json.loads((folder / "claims.json").read_bytes())
    except (OSError, ValueError):
        return
    kept = (there.get("size"), there.get("seed"))
    if kept != (wanted := (_size_of(size), size.seed)):
        raise InputError(
            f"{folder}: holds the report of {kept[0]} size and seed {kept[1]}, and this one would be of {wanted[0]} "
            f"size and seed {wanted[1]}; choose another folder."
        )


def _size_of(size: Size) -> str:
    return "quick" if size.quick else "full"


def make_folders(folder: Path) -> None:
    """Make the folders, and see that they can be written to before hours of work are done for them."""
    for place in (folder, folder / "results", folder / "figures"):
        try:
            place.mkdir(parents=True, exist_ok=True)
            write_whole(place / ".writable", b"")
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


def examine_all(experiments: Iterable[Experiment], size: Size, folder: Path, made: dict[str, Columns]) -> Reproduction:
    """The findings of these experiments, and of all others whose results are complete."""
    asked = {experiment.name for experiment in experiments}
    findings = {}
    for experiment in EXPERIMENTS.values():
        results = made
        if experiment.name not in asked:
            results, open_works = gather(experiment.plan(size), folder / "results")
            if open_works:
                continue
        findings[experiment.name] = experiment.examine(size, Results(results))
    return Reproduction(findings, describe(size))


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


def write_all(reproduction: Reproduction, folder: Path, command: str, markdown: Path | None = None) -> None:
    """Figures, claims and report; each file is whole or not there."""
    from restive.experiments.report import write_markdown, write_report

    for found in reproduction.findings.values():
        for name, figure in found.figures.items():
            for kind in FORMATS:
                write_figure(figure, folder / "figures" / f"{name}.{kind}")
    write_whole(folder / "claims.json", json.dumps(reproduction.as_json(), indent=1, allow_nan=False).encode())
    write_report(reproduction, folder / "report.html", command)
    if markdown:
        write_markdown(reproduction, markdown)
