"""What the paper says, as data: a quantity, the range that counts as agreement, and what was measured.

The range is set before anything is measured. A part of a claim holds when its whole 95% interval lies in the range,
fails when all of it lies outside, and is undecided otherwise; numbers that are exact have an interval of no width. A
claim holds when all of its parts do and fails when any of them fails. One that fails also says the closest setting in
which it holds, of those that were measured for that, nearest first.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from restive.stats import Band

HOLDS, FAILS, UNDECIDED = "holds", "fails", "undecided"
OURS = "ours"  # the place of a claim that is not in the paper


class Range(NamedTuple):
    """The numbers from `low` to `high`, both included."""

    low: float
    high: float

    def __str__(self) -> str:
        """In words.

        >>> str(above(0)), str(Range(-0.1, 0.1)), str(Range(0.95, math.inf))
        ('above 0', 'from -0.1 to 0.1', 'at least 0.95')
        """
        if self.low == -math.inf:
            return _worded("below", "at most", self.high, math.nextafter(self.high, math.inf))
        if self.high == math.inf:
            return _worded("above", "at least", self.low, math.nextafter(self.low, -math.inf))
        return f"from {self.low:g} to {self.high:g}" if self.low < self.high else f"exactly {self.low:g}"


def _worded(strict: str, loose: str, limit: float, beyond: float) -> str:
    """A limit that is one float past a short number stands for that number, left out itself."""
    return f"{strict} {beyond:g}" if len(repr(beyond)) < len(repr(limit)) else f"{loose} {limit:g}"


def above(limit: float) -> Range:
    """More than the limit, which is left out."""
    return Range(math.nextafter(limit, math.inf), math.inf)


def below(limit: float) -> Range:
    """Less than the limit, which is left out."""
    return Range(-math.inf, math.nextafter(limit, -math.inf))


class Part(NamedTuple):
    """One measured number of a claim, with its 95% interval."""

    setting: str
    value: float
    low: float
    high: float

    def judge(self, agreement: Range) -> str:
        """Whether the interval lies in the range, outside, or across its edge.

        >>> Part("B = 5", 0.3, 0.1, 0.5).judge(above(0)), Part("B = 5", 0.3, -0.1, 0.7).judge(above(0))
        ('holds', 'undecided')
        """
        if math.isnan(self.low) or math.isnan(self.high):
            return UNDECIDED
        if agreement.low <= self.low and self.high <= agreement.high:
            return HOLDS
        return FAILS if self.high < agreement.low or self.low > agreement.high else UNDECIDED


def measured(setting: str, band: Band) -> Part:
    """A part from a mean and its interval."""
    return Part(setting, float(band.mean), float(band.low), float(band.high))


def exact(setting: str, value: float) -> Part:
    """A part that was computed, not measured."""
    return Part(setting, float(value), float(value), float(value))


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper in our words, and how it fares here."""

    name: str
    sentence: str
    place: str  # where it stands in the paper
    quantity: str  # what the numbers of the parts are, with their unit
    agreement: Range
    parts: tuple[Part, ...]
    nearby: tuple[Part, ...] = ()  # other settings, nearest first, to look at if it fails
    remark: str = ""

    @property
    def ours(self) -> bool:
        """A check or a remark of ours, which is not in the paper."""
        return self.place == OURS

    @property
    def verdict(self) -> str:
        """All parts must hold; one that fails is enough."""
        verdicts = {part.judge(self.agreement) for part in self.parts}
        return FAILS if FAILS in verdicts else HOLDS if verdicts == {HOLDS} else UNDECIDED

    @property
    def closest(self) -> str:
        """For a claim that fails: its own settings in which it holds, and the nearest of those beyond them."""
        if self.verdict != FAILS:
            return ""
        others = [part.setting for part in self.nearby if part.judge(self.agreement) == HOLDS][:1]
        holding = [part.setting for part in self.parts if part.judge(self.agreement) == HOLDS]
        if len(holding) > 3:
            holding = [f"{len(holding)} of its {len(self.parts)} settings, such as {holding[0]}"]
        if holding or others:
            return "it holds for " + "; beyond them ".join(["; ".join(holding)][: len(holding)] + others)
        return f"in none of the {len(self.nearby)} other settings measured" if self.nearby else "no other was measured"

    def as_json(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "claim": self.name,
            "sentence": self.sentence,
            "place": self.place,
            "ours": self.ours,
            "quantity": self.quantity,
            "agreement": str(self.agreement),
            "range": [_plain(limit) for limit in self.agreement],
            "verdict": self.verdict,
            "closest": self.closest,
            "remark": self.remark,
            "parts": [self._part(part) for part in self.parts],
            "nearby": [self._part(part) for part in self.nearby],
        }

    def _part(self, part: Part) -> dict[str, Any]:
        numbers = {name: _plain(value) for name, value in part._asdict().items() if name != "setting"}
        return {"setting": part.setting, **numbers, "verdict": part.judge(self.agreement)}


def _plain(value: float) -> float | None:
    """Infinity and NaN are not JSON."""
    return value if math.isfinite(value) else None
