"""A question about a history, what was found, and the verdict."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from restive.formats import finite_or_none, show_fixed, show_interval
from restive.logs.assumptions.estimators import Estimate

HOLDS, DOES_NOT, CANNOT_TELL = "holds", "does not", "cannot tell"
LEVEL = 0.05


class Question(NamedTuple):
    """A question, the assumption behind it, and what to do by verdict."""

    key: str
    text: str
    assumption: str
    if_holds: str
    if_not: str
    if_unknown: str
    wanted: bool = False  # whether the assumption is that something is there, not that it is absent

    def advise(self, verdict: str) -> str:
        """What to do."""
        return {HOLDS: self.if_holds, DOES_NOT: self.if_not, CANNOT_TELL: self.if_unknown}[verdict]


class Size(NamedTuple):
    """How much a departure from an assumption matters, in rewards a person and round, with a 95% interval."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    detectable: float = math.nan  # what would be seen in four of five histories like this one

    @classmethod
    def of(cls, estimate: Estimate, factor: float = 1.0) -> "Size":
        """An estimate as a size."""
        return cls(*(factor * part for part in (estimate.value, estimate.low, estimate.high, estimate.detectable)))

    def show(self, decimals: int = 3) -> str:
        """The number with its interval."""
        return show_interval(self.value, self.low, self.high, decimals)


NO_SIZE = Size()


@dataclass(frozen=True)
class Finding:
    """The answer to a question.

    Attributes
    ----------
    statistic
        What was computed, in words with numbers.
    consequence
        What it means for the program, in rewards.
    size
        The same as a number.
    p
        The p-value of the test; None without one, and then the verdict stands as given.
    unrejected
        The verdict if the test does not reject; None if it depends on the interval of the size.
    numbers
        Everything else, for `--json`.
    """

    question: Question
    statistic: str
    consequence: str = ""
    size: Size = NO_SIZE
    p: float | None = None
    unrejected: str | None = None
    numbers: dict[str, Any] = field(default_factory=dict)
    verdict: str = CANNOT_TELL
    adjusted: float | None = None

    def as_json(self) -> dict[str, Any]:
        """The finding as plain data."""
        told = {
            "question": self.question.text,
            "assumption": self.question.assumption,
            "verdict": self.verdict,
            "p": self.p,
            "p_adjusted": self.adjusted,
            "size": self.size._asdict(),
            "statistic": self.statistic,
            "consequence": self.consequence,
            "advice": self.question.advise(self.verdict),
            **self.numbers,
        }
        return {name: _as_plain(part) for name, part in told.items()}

    def sentences(self, margin: float) -> tuple[str, ...]:
        """Verdict, consequence, statistic and advice; where nothing can be told, what could have been seen."""
        lines = [f"{self.verdict.capitalize()}: {self.question.assumption}", self.consequence, self.statistic]
        if self.verdict == CANNOT_TELL and self.size.detectable > margin:
            lines.append(
                f"A history like this one shows a size of {show_fixed(self.size.detectable, 3)} in four of five cases; "
                f"sizes below {show_fixed(margin, 3)} would not matter."
            )
        return (*filter(None, lines), self.question.advise(self.verdict))


def _as_plain(part: Any) -> Any:
    """Numbers that JSON does not have as None, also inside."""
    if isinstance(part, dict):
        return {name: _as_plain(each) for name, each in part.items()}
    if isinstance(part, list):
        return [_as_plain(each) for each in part]
    return finite_or_none(float(part)) if isinstance(part, float) else part


def judge(findings: Sequence[Finding], margin: float) -> tuple[Finding, ...]:
    """The findings with verdicts; p-values are adjusted by Holm's method for the number of questions."""
    p_values = {each.question.key: each.p for each in findings if each.p is not None}
    adjusted: dict[str, float] = {}
    largest = 0.0
    for number, key in enumerate(sorted(p_values, key=lambda key: p_values[key])):
        adjusted[key] = largest = max(largest, min(1.0, (len(p_values) - number) * p_values[key]))
    return tuple(_judge(each, adjusted.get(each.question.key), margin) for each in findings)


def _judge(finding: Finding, adjusted: float | None, margin: float) -> Finding:
    """By the adjusted p-value, and by whether the whole interval of the size is negligible."""
    if adjusted is None:
        return finding
    seen = adjusted < LEVEL
    negligible = -margin < finding.size.low and finding.size.high < margin  # False where the size is not known
    if finding.question.wanted:
        verdict = HOLDS if seen else DOES_NOT if negligible else CANNOT_TELL
    elif seen:
        verdict = HOLDS if negligible else DOES_NOT
    else:
        verdict = finding.unrejected or (HOLDS if negligible else CANNOT_TELL)
    return replace(finding, verdict=verdict, adjusted=adjusted)


def show_p(p: float) -> str:
    """A p-value with its sign.

    >>> show_p(0.0312), show_p(0.0000001)
    ('p = 0.031', 'p < 0.001')
    """
    return "p < 0.001" if p < 0.001 else f"p = {show_fixed(p, 3)}"


def show_estimate(estimate: Estimate) -> str:
    """An estimate with its interval."""
    return show_interval(estimate.value, estimate.low, estimate.high, 3)


def as_numbers(estimate: Estimate) -> dict[str, float | None]:
    """An estimate as plain data."""
    return {name: finite_or_none(float(getattr(estimate, name))) for name in ("value", "error", "low", "high", "p")}
