"""The experiments of the paper, and what `restive reproduce` makes of them in one folder.

    results/*.parquet   results of jobs, one file each, named after their digest
    figures/*           every figure in the formats asked for
    claims.json         every claim with its verdict and numbers under each reading
    report.html         everything to read, in one file

Experiments that were not asked for are in the report too if all of their results are in the folder.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from restive.errors import InputError, did_you_mean
from restive.files import Columns, write_atomic
from restive.paper import ablations, counterexamples, figures, lemmas, limits, regret, robustness, theorems
from restive.paper.claims import Claim, count_claims, render_claims
from restive.paper.experiment import Experiment, Findings, load_experiments
from restive.paper.jobs import Results, Run, Size, describe_run
from restive.paper.readings import READINGS, Reading
from restive.plotting import FORMATS, Picture, write_figures
from restive.report.tables import Table

REPORT = "claims.json"
EXPERIMENTS: Mapping[str, Experiment] = load_experiments(
    {
        "two-state": (figures.two_state_jobs, figures.measure_two_state),
        "wireless": (figures.wireless_jobs, figures.measure_wireless),
        "overtaking": (figures.overtaking_jobs, figures.measure_overtaking),
        "ten-state": (figures.ten_state_jobs, figures.measure_ten_state),
        "eta": (ablations.eta_jobs, ablations.measure_eta),
        "gamma": (ablations.gamma_jobs, ablations.measure_gamma),
        "regret": (regret.curve_jobs, regret.measure_curve),
        "regret-bound": (regret.bound_jobs, regret.measure_bound),
        "lemma-4.3": (theorems.lemma_jobs, theorems.measure_lemma),
        "theorem-3.1": (theorems.theorem_jobs, theorems.measure_theorem),
        "counterexample-1": (counterexamples.heterogeneous_jobs, counterexamples.measure_heterogeneous),
        "counterexample-2": (counterexamples.three_state_jobs, counterexamples.measure_three_state),
        "episodes": (regret.episodes_jobs, regret.measure_episodes),
        "concentration": (lemmas.concentration_jobs, lemmas.measure_concentration),
        "reference": (limits.reference_jobs, limits.measure_reference),
        "wiql-limit": (limits.limit_jobs, limits.measure_limit),
        "many-agents": (limits.equal_agents_jobs, limits.measure_equal_agents),
        "decomposition": (lemmas.decomposition_jobs, lemmas.measure_decomposition),
        "greedy-share": (robustness.greedy_jobs, robustness.measure_greedy),
        "slow-chains": (robustness.slow_jobs, robustness.measure_slow),
        "rma2b-regret": (robustness.planner_jobs, robustness.measure_planner),
        "drifting-noise": (robustness.drift_jobs, robustness.measure_drift),
        "changed-rewards": (robustness.change_jobs, robustness.measure_change),
    }
)


class Reproduction(NamedTuple):
    """Findings by experiment and reading, and the version, seed and machine that produced them."""

    findings: dict[str, dict[str, Findings]]  # in the paper's order
    about: dict[str, Any]
    readings: Sequence[Reading] = READINGS

    def claims(self, reading: str) -> list[Claim]:
        """All claims under a reading."""
        return [claim for found in self.findings.values() for claim in found[reading].claims]

    def rows(self, experiment: str) -> list[tuple[Claim, ...]]:
        """The claims of an experiment, each under all readings."""
        return list(zip(*(found.claims for found in self.findings[experiment].values()), strict=True))

    def summary(self, reading: Reading) -> str:
        """How many claims hold under a reading."""
        return count_claims(self.claims(reading.name))

    def explain(self, claims: Sequence[Claim]) -> str:
        """Why a claim does not hold, with the reading if the reasons differ."""
        reasons = {claim.why for claim in claims}
        if len(reasons) == 1:
            return reasons.pop()
        pairs = zip(self.readings, claims, strict=True)
        return " ".join(f"{reading.title.capitalize()} – {claim.why}" for reading, claim in pairs if claim.why)

    def figures(self, experiment: str) -> dict[str, Figure | Picture]:
        """The figures of an experiment by file name, which ends in the reading if there are several."""
        return {
            f"{name}{suffix}": figure
            for found, suffix, _ in self._shown(experiment)
            for name, figure in found.figures.items()
        }

    def tables(self, experiment: str) -> list[Table]:
        """The tables of an experiment; their titles end in the reading if there are several."""
        return [
            table._replace(title=f"{table.title}{ending}")
            for found, _, ending in self._shown(experiment)
            for table in found.tables
        ]

    def _shown(self, experiment: str) -> list[tuple[Findings, str, str]]:
        """Findings that differ, with the ends of their file names and titles."""
        found = self.findings[experiment]
        differ = len({id(each) for each in found.values()}) > 1
        if not differ:
            return [(next(iter(found.values())), "", "")]
        return [(found[reading.name], f"-{reading.name}", f" ({reading.title})") for reading in self.readings]

    def as_json(self) -> dict[str, Any]:
        """The claims as plain data."""
        listed = [
            {
                "experiment": experiment,
                **claims[0].statement_json(),
                "readings": {
                    reading.name: claim.evidence_json() for reading, claim in zip(self.readings, claims, strict=True)
                },
            }
            for experiment in self.findings
            for claims in self.rows(experiment)
        ]
        return {**self.about, "readings": [reading.as_json() for reading in self.readings], "claims": listed}


def find_experiments(names: Iterable[str]) -> list[Experiment]:
    """The experiments of these names in the paper's order; no name, or `all`, means all of them."""
    wanted = list(names) or ["all"]
    for name in wanted:
        if name != "all" and name not in EXPERIMENTS:
            known = ", ".join(EXPERIMENTS)
            raise InputError(f"there is no experiment {name!r}; there are {known}{did_you_mean(name, EXPERIMENTS)}")
    return [each for each in EXPERIMENTS.values() if "all" in wanted or each.name in wanted]


def prepare(experiments: Iterable[Experiment], size: Size, folder: Path, readings: Sequence[Reading] = READINGS) -> Run:
    """Find out which jobs are missing in the folder."""
    plans = [each.under(readings) for each in EXPERIMENTS.values()]
    return Run([each.under(readings) for each in experiments], plans, size, folder / REPORT, readings)


def examine_all(run: Run, executor: Executor | None = None, formats: Sequence[str] = FORMATS) -> Reproduction:
    """The findings of the chosen experiments, and of all others whose results are complete, with their figures drawn.

    With an executor of processes, experiments and readings are examined and drawn at the same time.
    """
    same = {name: EXPERIMENTS[name].tell_apart(run.size, run.readings) for name in run.results()}
    units = {
        (name, reading.name): run.size._replace(reading=reading) for name, by in same.items() for reading in by.values()
    }
    columns = [
        {job.digest(): run.columns[job.digest()] for job in EXPERIMENTS[name].list_jobs(size)}
        for (name, _), size in units.items()
    ]
    names = [name for name, _ in units]
    found = (executor.map if executor else map)(_examine, names, units.values(), columns, repeat(formats))
    examined = dict(zip(units, found, strict=True))
    findings = {
        name: {reading: examined[name, first.name] for reading, first in by.items()} for name, by in same.items()
    }
    return Reproduction(findings, describe_run(run.size), run.readings)


def _examine(name: str, size: Size, columns: Mapping[str, Columns], formats: Sequence[str]) -> Findings:
    """The findings of an experiment under one reading, with its figures drawn."""
    found = EXPERIMENTS[name].examine(size, Results(columns))
    return found._replace(figures={key: Picture.of(figure, formats) for key, figure in found.figures.items()})


def write_all(reproduction: Reproduction, folder: Path, command: str, markdown: Path | None = None) -> None:
    """Write figures, claims and report; each file is whole or absent."""
    for experiment in reproduction.findings:
        write_figures(reproduction.figures(experiment), folder / "figures")
    write_atomic(folder / REPORT, json.dumps(reproduction.as_json(), indent=1, allow_nan=False).encode())
    write_atomic(folder / "report.html", render_report(reproduction, command).encode())
    if markdown:
        write_atomic(markdown, render_markdown(reproduction).encode())


def render_report(reproduction: Reproduction, command: str = "") -> str:
    """The report as an HTML page."""
    sections = [(EXPERIMENTS[name], reproduction.rows(name)) for name in reproduction.findings]
    return render_claims(
        "reproduction.html.j2",
        reproduction.about,
        title="The paper, reproduced",
        reproduction=reproduction,
        sections=sections,
        groups=[(experiment.title, rows) for experiment, rows in sections],
        command=command,
    )


def render_markdown(reproduction: Reproduction) -> str:
    """All claims with their verdicts as a page of Markdown."""
    rows = [claims for name in reproduction.findings for claims in reproduction.rows(name)]
    return render_claims("reproduction.md.j2", reproduction.about, reproduction=reproduction, rows=rows)
