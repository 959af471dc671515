"""The comparison: all works of the fields asked for, then ranks, figures, words and verdicts in one folder.

    results/*.parquet   what the works gave, one file each, under the digest of their spec
    figures/*           every figure as PNG, SVG and PDF
    comparison.json     all numbers, sentences and claims
    comparison.html     all of it to read, in one file

Fields that were not asked for are in it too if the results of all policies are in the folder.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from restive.benchmark.cost import Costs
from restive.benchmark.drawings import draw_scores
from restive.benchmark.fields import CONTROLS
from restive.benchmark.scores import BOUND, STEPS, Match, Scores, read_scores
from restive.benchmark.targets import judge_targets
from restive.benchmark.words import advise, tell_field
from restive.files import Columns
from restive.paper import agenda
from restive.paper.agenda import Agenda, describe, write_figures, write_json
from restive.paper.claims import Claim, Part
from restive.paper.curves import CEILING
from restive.paper.experiment import Size, Undertaking

REPORT = "comparison.json"


class Contest:
    """What was found, and where and how."""

    def __init__(self, scores: Scores, costs: Costs | None) -> None:
        self.scores = scores
        self.costs = costs
        self.about = describe(scores.size)

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """What was to be reached, and whether it was."""
        return judge_targets(self.scores)

    @cached_property
    def figures(self) -> Mapping[str, Figure]:
        """By the name of their file; none without a field."""
        return draw_scores(self.scores) if self.scores.matches else {}

    @cached_property
    def advice(self) -> list[str]:
        """Which policy when."""
        return advise(self.scores, self.costs) if self.scores.matches else []

    def as_json(self) -> dict[str, Any]:
        """All of it as plain data."""
        fields = [_field_as_json(match, self.scores.size) for match in self.scores.matches.values()]
        return {
            **self.about,
            "policies": list(self.scores.policies),
            "controls": list(CONTROLS),
            "fields": fields,
            "costs": self.costs.as_json() if self.costs else None,
            "advice": self.advice,
            "claims": [claim.as_json() for claim in self.claims],
        }


def _field_as_json(match: Match, size: Size) -> dict[str, Any]:
    places = {step: match.places(step) for step in STEPS}
    shown = (*match.policies, *CONTROLS, CEILING, BOUND)
    closed = {policy: {str(step): _share(match.gap_closed(policy, step)) for step in STEPS} for policy in shown}
    ranks = {
        str(step): {policy: {"rank": place.rank, "level": place.level} for policy, place in placed.items()}
        for step, placed in places.items()
    }
    return {**match.field.as_json(size), "told": tell_field(match), "gap_closed": closed, "ranks": ranks}


def _share(part: Part) -> dict[str, float | None]:
    """NaN is not JSON: what cannot be given is null."""
    return {name: value if value == value else None for name, value in zip(part._fields[1:], part[1:], strict=True)}


def prepare(asked: Iterable[Undertaking], known: Mapping[str, Undertaking], size: Size, folder: Path) -> Agenda:
    """See what is in the folder, and what is to be done."""
    return agenda.prepare(asked, known.values(), size, folder / REPORT)


def examine(
    asked: Iterable[Undertaking],
    known: Mapping[str, Undertaking],
    extra: Iterable[str],
    size: Size,
    folder: Path,
    made: dict[str, Columns],
) -> Scores:
    """The scores of the fields asked for, and of all others whose results are complete."""
    return read_scores(agenda.complete(asked, known.values(), size, folder, made), size, extra)


def write_contest(contest: Contest, folder: Path, command: str, markdown: Path | None = None) -> None:
    """Figures, numbers and page; each file is whole or not there."""
    from restive.benchmark.sheet import write_markdown, write_sheet

    write_figures(contest.figures, folder)
    write_json(contest.as_json(), folder / REPORT)
    write_sheet(contest, folder / "comparison.html", command)
    if markdown:
        write_markdown(contest, markdown)
