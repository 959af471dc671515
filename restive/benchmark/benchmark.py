"""The benchmark that `restive compare` runs: scores, figures, advice and verdicts in one folder.

    results/*.parquet   results of jobs, one file each, named after their digest
    figures/*           every figure as PNG, SVG and PDF
    comparison.json     all numbers, sentences and claims
    comparison.html     everything to read, in one file

Scenarios that were not asked for are in it too if the results of all policies are in the folder.
"""

import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from restive.benchmark.claims import judge_targets
from restive.benchmark.cost import Costs
from restive.benchmark.ranking import BOUND, FIRST_RANKED_STEP, ScenarioResult, Scores, read_scores
from restive.benchmark.scenarios import CANDIDATE, CONTROLS, EARLY, LATE
from restive.benchmark.summary import (
    advise,
    describe_ranking,
    describe_scenario,
    tabulate_controls,
    tabulate_costs,
    tabulate_gaps,
    tabulate_left,
    tabulate_ranks,
)
from restive.files import write_atomic
from restive.paper.claims import Claim, render_claims
from restive.paper.curves import CEILING, FLOOR
from restive.paper.jobs import Plan, Run, Size, describe_run
from restive.plotting import BOUND as BOUND_COLOUR
from restive.plotting import (
    FORMATS,
    GREY,
    LONG_DASHES,
    LOOKS,
    SHORT_DASHES,
    Dot,
    Line,
    Picture,
    choose_looks,
    draw_dots,
    draw_panels,
    scale_panels,
    write_figures,
)
from restive.report.tables import Table
from restive.types import Ints
from restive.version import __version__

REPORT = "comparison.json"
TITLE = "Online policies, compared"
MAX_PANEL_COLUMNS = 3
LIMITS = (-0.3, 1.4)  # of the gap closed; values beyond are cut off, so that the rest can be seen
REFERENCE_LOOKS = {"full information": (GREY, LONG_DASHES), "informed prior": (GREY, SHORT_DASHES)}
STEP_FACTOR = 1.12  # a step is drawn if it is so many times the one before


class Benchmark:
    """Scores and costs, and everything that is derived from them."""

    def __init__(self, scores: Scores, costs: Costs | None) -> None:
        self.scores = scores
        self.costs = costs
        self.about = describe_run(scores.size)

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """The targets, and whether they were reached."""
        return judge_targets(self.scores, self.costs)

    @cached_property
    def figures(self) -> Mapping[str, Picture]:
        """Figures by file name, drawn in every format; none without a scenario."""
        figures = draw_scores(self.scores) if self.scores.scenarios else {}
        return {name: Picture.of(figure, FORMATS) for name, figure in figures.items()}

    @cached_property
    def advice(self) -> list[str]:
        """Which policy to use when."""
        return advise(self.scores, self.costs) if self.scores.scenarios else []

    def as_json(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            **self.about,
            "policies": list(self.scores.policies),
            "controls": list(CONTROLS),
            "scenarios": [_as_json(result, self.scores.size) for result in self.scores.scenarios.values()],
            "costs": self.costs.as_json() if self.costs else None,
            "advice": self.advice,
            "claims": [claim.as_json() for claim in self.claims],
        }

    def render(self, template: str, command: str = "") -> str:
        """The benchmark as a page of HTML or Markdown."""
        scores = self.scores
        tables: list[Table] = []
        if scores.scenarios:
            left = (tabulate_left(scores, stage) for stage in (LATE, EARLY))
            tables += [tabulate_ranks(scores, stage) for stage in (LATE, EARLY)]
            tables += [table for table in left if table]
            tables += tabulate_controls(scores)
        return render_claims(
            template,
            self.about,
            claims=self.claims,
            title=TITLE,
            policies=scores.policies,
            controls=CONTROLS,
            instances=scores.size.pick(50, 13),
            scenarios=[
                (name, describe_scenario(result, scores.size), tabulate_gaps(result))
                for name, result in scores.scenarios.items()
            ],
            rank_tables=tables,
            advice=self.advice,
            figures=self.figures,
            overview_title="Gap closed by the last step",
            last_step=scores.show_step(LATE) if scores.scenarios else "",
            costs=tabulate_costs(self.costs, self.about["machine"]) if self.costs else None,
            candidate=CANDIDATE,
            command=command,
        )


def _as_json(result: ScenarioResult, size: Size) -> dict[str, Any]:
    shown, steps = (*result.policies, *CONTROLS, *result.references, CEILING, BOUND), result.scenario.steps
    closed = {policy: {str(step): result.gap_closed(policy, step).numbers() for step in steps} for policy in shown}
    ranks = {str(step): {policy: place._asdict() for policy, place in result.places(step).items()} for step in steps}
    summary = describe_ranking(result)
    return {**result.scenario.as_json(size), "summary": summary, "gap_closed": closed, "ranks": ranks}


def prepare(chosen: Iterable[Plan], known: Mapping[str, Plan], size: Size, folder: Path) -> Run:
    """Find out which jobs are missing in the folder."""
    return Run(chosen, known.values(), size, folder / REPORT)


def examine(run: Run, extra: Iterable[str] = ()) -> Scores:
    """The scores of the chosen scenarios, and of all others whose results are complete."""
    return read_scores(run.results(), run.size, extra)


def write_benchmark(benchmark: Benchmark, folder: Path, command: str, markdown: Path | None = None) -> None:
    """Write figures, numbers and page; each file is whole or absent."""
    write_figures(benchmark.figures, folder / "figures")
    write_atomic(folder / REPORT, json.dumps(benchmark.as_json(), indent=1, allow_nan=False).encode())
    write_atomic(folder / "comparison.html", benchmark.render("benchmark.html.j2", command).encode())
    if markdown:
        write_atomic(markdown, benchmark.render("benchmark.md.j2").encode())


def draw_scores(scores: Scores) -> dict[str, Figure]:
    """The gap closed at the last step in all scenarios at once, and over time in each of them."""
    return {"overview": _draw_overview(scores), "scenarios": _draw_scenarios(scores)}


def _draw_overview(scores: Scores) -> Figure:
    shown = _shown(scores)
    looks = choose_looks(shown)
    rows = {
        name: [
            Dot(
                policy,
                *result.gap_closed(policy, result.scenario.horizon)[1:],
                looks[policy][0],
                looks[policy][1] != "-",
            )
            for policy in shown
        ]
        for name, result in scores.scenarios.items()
    }
    label = "share of the gap from random (0) to the Whittle oracle (1) closed by the last step"
    return draw_dots(rows, label, {}, _origin(scores), ends=(0.0, 1.0), limits=LIMITS)


def _draw_scenarios(scores: Scores) -> Figure:
    panels = {}
    for name, result in scores.scenarios.items():
        lines = _lines(result, _shown(scores))
        low, high = scale_panels([lines])
        panels[name] = (lines, (max(low, LIMITS[0]), min(high, LIMITS[1])))
    title = "Share of the gap from random (0) to the Whittle oracle (1) closed so far"
    labels = ("step", "share of the gap closed")
    return draw_panels(panels, min(MAX_PANEL_COLUMNS, len(panels)), labels, title, _origin(scores), log_x=True)


def _shown(scores: Scores) -> tuple[str, ...]:
    """All ranked policies except random, which is always 0."""
    return tuple(policy for policy in scores.policies if policy != FLOOR)


def _lines(result: ScenarioResult, policies: tuple[str, ...]) -> list[Line]:
    steps = _spaced(result.steps[result.steps >= FIRST_RANKED_STEP])
    looks = choose_looks(policies)
    lines = [_line(result, policy, steps)._replace(colour=look, style=style) for policy, (look, style) in looks.items()]
    one, bound = np.ones(steps.size), _line(result, BOUND, steps).mean
    for name in result.references:
        mean = _line(result, name, steps).mean
        lines.append(Line(name, steps, mean, mean, mean, *REFERENCE_LOOKS[name]))
    oracle = Line(CEILING, steps, one, one, one, *LOOKS[CEILING])
    return [*lines, oracle, Line(BOUND, steps, bound, bound, bound, BOUND_COLOUR, LONG_DASHES)]


def _line(result: ScenarioResult, policy: str, steps: Ints) -> Line:
    shares = np.array([result.gap_closed(policy, int(step))[1:] for step in steps])
    return Line(policy, steps, *shares.T)


def _spaced(steps: Ints) -> Ints:
    """Steps far enough apart to be distinguished on a logarithmic axis, and the last."""
    kept = [steps[0]]
    for step in steps:
        if step >= STEP_FACTOR * kept[-1] or step == steps[-1]:
            kept.append(step)
    return np.unique(np.array(kept, np.int64))


def _origin(scores: Scores) -> str:
    """Where the numbers come from, in a line."""
    setup = next(iter(scores.scenarios.values())).scenario.setup(scores.size)
    return (
        f"{setup.instances} instances of each scenario, seed {scores.size.seed}, restive {__version__}. "
        "Intervals are 95% over instances. No policy can expect more than the fluid bound."
    )
