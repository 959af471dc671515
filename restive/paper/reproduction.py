"""The paper again: all works of the experiments asked for, then figures, report and verdicts in one folder.

    results/*.parquet   what the works gave, one file each, under the digest of their spec
    figures/*           every figure as PNG, SVG and PDF
    claims.json         every claim with its verdict and numbers
    report.html         all of it to read, in one file

Experiments that were not asked for are in the report too if all of their results are in the folder.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from restive.files import Columns
from restive.paper import agenda
from restive.paper.agenda import Agenda, describe, write_figures, write_json
from restive.paper.catalogue import EXPERIMENTS
from restive.paper.claims import Claim
from restive.paper.experiment import Experiment, Findings, Size

REPORT = "claims.json"


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


def prepare(experiments: Iterable[Experiment], size: Size, folder: Path) -> Agenda:
    """See what is in the folder, and what is to be done."""
    return agenda.prepare(experiments, EXPERIMENTS.values(), size, folder / REPORT)


def examine_all(experiments: Iterable[Experiment], size: Size, folder: Path, made: dict[str, Columns]) -> Reproduction:
    """The findings of these experiments, and of all others whose results are complete."""
    results = agenda.complete(experiments, EXPERIMENTS.values(), size, folder, made)
    findings = {name: EXPERIMENTS[name].examine(size, found) for name, found in results.items()}
    return Reproduction(findings, describe(size))


def write_all(reproduction: Reproduction, folder: Path, command: str, markdown: Path | None = None) -> None:
    """Figures, claims and report; each file is whole or not there."""
    from restive.paper.report import write_markdown, write_report

    for found in reproduction.findings.values():
        write_figures(found.figures, folder)
    write_json(reproduction.as_json(), folder / REPORT)
    write_report(reproduction, folder / "report.html", command)
    if markdown:
        write_markdown(reproduction, markdown)
