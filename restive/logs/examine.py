"""Does a model of people, states and actions hold for a history? Nine questions, each with the size of its consequence.

Verdicts: an assumption "does not" hold if its test rejects it, after Holm's adjustment for the number of questions, and the
consequence may exceed the margin; it "holds" if the 95% interval of the consequence lies within the margin; otherwise
nobody can tell from this history. The margin is a share of the difference between the best and the worst state.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl

from restive.formats import show_count, show_fixed
from restive.logs.assumptions.acting import examine_advice, examine_effect, examine_missing
from restive.logs.assumptions.assignment import examine_hidden_reasons, examine_influence, examine_randomisation
from restive.logs.assumptions.dynamics import examine_change, examine_memory
from restive.logs.assumptions.finding import CANNOT_TELL, DOES_NOT, HOLDS, LEVEL, Finding, judge, show_p
from restive.logs.assumptions.path_shuffles import MAX_SHUFFLES, shuffle_paths
from restive.logs.assumptions.people import examine_people
from restive.logs.assumptions.rows import prepare
from restive.logs.history import History
from restive.logs.sections import DisplayedAnswer, Section, flatten
from restive.report.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARGIN = 0.02


@dataclass(frozen=True, repr=False)
class Examination(DisplayedAnswer):
    """The answers to all questions about a history."""

    numbers: ClassVar[str] = "findings"
    findings: tuple[Finding, ...]
    margin: float  # consequences below it do not matter, in rewards
    people: int
    rows: int

    def __getitem__(self, key: str) -> Finding:
        return next(each for each in self.findings if each.question.key == key)

    def as_json(self) -> dict[str, Any]:
        """All findings as plain data."""
        return {
            "people": self.people,
            "rows": self.rows,
            "margin": self.margin,
            "findings": {each.question.key: each.as_json() for each in self.findings},
        }

    def facts(self) -> dict[str, object]:
        """The verdict on each question."""
        return {"verdicts": ", ".join(f"{each.question.key}: {each.verdict}" for each in self.findings)}

    def to_frame(self) -> pl.DataFrame:
        """One row for each question: verdict, size in rewards a person and round with its interval, and p-value."""
        parts = ("question", "verdict", "size", "p", "consequence")
        found = self.as_json()["findings"]
        return pl.DataFrame(
            [flatten({"key": key} | {part: each[part] for part in parts}) for key, each in found.items()]
        )

    def verdicts(self) -> tuple[str, ...]:
        """One line for each question."""
        return tuple(
            f"{each.question.text} {each.verdict.capitalize()}: {each.question.assumption}" for each in self.findings
        )

    def sections(self) -> tuple[Section, ...]:
        """A summary, and one section for each question."""
        figure = self._figure if self._sized() else None
        caption = "Sizes with 95% intervals. Between the lines a consequence does not matter."
        details = (Section(each.question.text, each.sentences(self.margin)) for each in self.findings)
        return (Section("In short", self._summary(), self._table(), figure, caption), *details)

    def _summary(self) -> tuple[str, ...]:
        said = [f"{show_count(self.people, 'person', 'people')}, {show_count(self.rows, 'row')}."]
        for verdict, words in ((DOES_NOT, "Does not hold"), (CANNOT_TELL, "Cannot tell"), (HOLDS, "Holds")):
            if named := [each.question.text.rstrip("?").lower() for each in self.findings if each.verdict == verdict]:
                said.append(f"{words}: {'; '.join(named)}.")
        return tuple(said)

    def _table(self) -> Table:
        rows = tuple(
            (
                each.question.text,
                each.verdict,
                each.size.show(),
                "–" if each.p is None else show_p(each.p).removeprefix("p = ").removeprefix("p "),
            )
            for each in self.findings
        )
        note = (
            f"Size: in rewards a person and round, 95% interval; below {show_fixed(self.margin, 3)} it does not matter. "
            f"p: before the adjustment for {show_count(sum(each.p is not None for each in self.findings), 'test')}."
        )
        return Table("", ("question", "verdict", "size", "p"), rows, note)

    def _sized(self) -> list[Finding]:
        """The findings whose size is known."""
        return [each for each in self.findings if np.isfinite(each.size[:3]).all()]

    def _figure(self) -> "Figure":
        from restive.plotting import GREEN, GREY, RED, Dot, draw_dots

        colours = {HOLDS: GREEN, DOES_NOT: RED, CANNOT_TELL: GREY}
        rows = {each.question.text: [Dot("", *each.size[:3], colours[each.verdict])] for each in self._sized()}
        return draw_dots(rows, "reward a person and round", {"margin": self.margin, "−margin": -self.margin})


def examine(
    source: object,
    seed: int = 0,
    margin: float = MARGIN,
    controls: tuple[str, ...] = (),
    over: str = "",
    max_shuffles: int = MAX_SHUFFLES,
) -> Examination:
    """Examine whether a model of people, states and actions holds for a history.

    Parameters
    ----------
    source
        A history, or anything that `History.read` reads.
    seed
        Of the shuffles.
    margin
        Consequences below this share of the difference between the best and the worst state do not matter.
    controls
        Columns that change over time which effects are adjusted for, instead of the state.
    over
        The column of time that effects may change with, instead of the round.
    max_shuffles
        At most so many shuffles of each person's path; fewer where there are more than 200,000 rows.

    Returns
    -------
    Examination
        Nine findings, each with its verdict, the size of its consequence and the sentence to read.

    Raises
    ------
    InputError
        If the source cannot be read as a history, or there is no such column.

    Examples
    --------
    >>> from restive import make_problems
    >>> from restive.logs.generate import generate_history
    >>> people = make_problems("two-state-v1", instances=1, agents=40)[0]
    >>> answer = examine(generate_history(people, rounds=10, seed=1), max_shuffles=100)
    >>> [finding.verdict for finding in answer.findings[:3]]
    ['cannot tell', 'holds', 'holds']
    """
    history = source if isinstance(source, History) else History.read(source)
    rows = prepare(history, controls, over)
    randomised, hidden = examine_randomisation(rows), examine_hidden_reasons(rows)
    trusted = all(each.p is None or each.p >= LEVEL for each in (randomised, hidden)) or rows.recorded
    shuffled = shuffle_paths(history, seed, max_shuffles)
    findings = (
        examine_effect(rows, trusted),
        randomised,
        hidden,
        examine_people(rows),
        examine_memory(rows, shuffled),
        examine_change(rows, shuffled),
        examine_missing(rows),
        examine_advice(rows),
        examine_influence(rows),
    )
    scale = float(history.value.max() - history.value.min()) or 1.0
    return Examination(judge(findings, margin * scale), margin * scale, history.n_agents, history.agent.size)
