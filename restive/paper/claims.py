"""Claims as data: a quantity, the range that counts as agreement, and what was measured.

The range is fixed before anything is measured. A part of a claim holds if its whole 95% interval lies in the range,
fails if the whole interval lies outside, and is undecided otherwise; an exact number is an interval of width zero. A
claim holds if all of its parts hold, and fails if any part fails. A claim about data that we replaced by substitutes is
not decidable; what was seen on the substitutes is given beside it. A claim that fails also names the closest setting in
which it holds, among those that were measured for this purpose, nearest first.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from restive.formats import finite_or_none, typeset
from restive.report.pages import render
from restive.stats import Band

HOLDS, FAILS, UNDECIDED, NOT_DECIDABLE = "holds", "fails", "undecided", "not decidable"
WORST_FIRST = (FAILS, NOT_DECIDABLE, UNDECIDED, HOLDS)
PLURAL = {HOLDS: "hold", FAILS: "fail"}
OURS = "ours"  # the place of a claim that is not in the paper
THIN_SPACE = "\u202f"


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
    """A limit one float past a short number is that number, excluded."""
    return f"{strict} {beyond:g}" if len(repr(beyond)) < len(repr(limit)) else f"{loose} {limit:g}"


def parse_range(text: str) -> Range:
    """The range that is worded so.

    >>> parse_range("at least 0.95") == Range(0.95, math.inf), parse_range("below 1") == below(1)
    (True, True)
    """
    match text.split():
        case ["above", limit]:
            return above(float(limit))
        case ["below", limit]:
            return below(float(limit))
        case ["at", "least", low]:
            return Range(float(low), math.inf)
        case ["at", "most", high]:
            return Range(-math.inf, float(high))
        case ["from", low, "to", high]:
            return Range(float(low), float(high))
        case ["exactly", value]:
            return Range(float(value), float(value))
    raise ValueError(f"{text!r} is not a range")


def above(limit: float) -> Range:
    """More than the limit."""
    return Range(math.nextafter(limit, math.inf), math.inf)


def below(limit: float) -> Range:
    """Less than the limit."""
    return Range(-math.inf, math.nextafter(limit, -math.inf))


class Part(NamedTuple):
    """One number of a claim, with its 95% interval."""

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

    @property
    def is_exact(self) -> bool:
        """Whether the number was computed rather than measured."""
        return self.low == self.value == self.high

    def show_value(self) -> str:
        """The number; an exact whole number without decimals.

        >>> Part("B = 5", 0.5, 0.4, 0.6).show_value(), Part("N = 4", 7.0, 7.0, 7.0).show_value()
        ('0.500', '7')
        """
        if self.is_exact and self.value == round(self.value):
            return typeset(f"{self.value:,.0f}".replace(",", THIN_SPACE))
        return show_scaled(self.value, self._scale())

    def show_interval(self) -> str:
        """The 95% interval, or nothing for an exact number.

        >>> Part("B = 5", 0.5, -0.4, 0.6).show_interval(), Part("N = 4", 7.0, 7.0, 7.0).show_interval()
        ('[−0.400, 0.600]', '')
        """
        if self.is_exact:
            return ""
        if math.isnan(self.low) or math.isnan(self.high):
            return "no interval"
        return f"[{show_scaled(self.low, self._scale())}, {show_scaled(self.high, self._scale())}]"

    def numbers(self) -> dict[str, float | None]:
        """The number and its interval as plain data."""
        return {name: finite_or_none(getattr(self, name)) for name in ("value", "low", "high")}

    def _scale(self) -> float:
        return max((abs(each) for each in self[1:] if math.isfinite(each)), default=0.0)


def measured(setting: str, band: Band) -> Part:
    """A part from a mean and its interval."""
    return Part(setting, float(band.mean), float(band.low), float(band.high))


def exact(setting: str, value: float) -> Part:
    """A part that was computed, not measured."""
    return Part(setting, float(value), float(value), float(value))


@dataclass(frozen=True)
class Claim:
    """A statement of the paper in our words, and what was measured."""

    name: str
    sentence: str
    place: str  # where it stands in the paper
    quantity: str  # what the numbers of the parts are, with their unit
    agreement: Range
    parts: tuple[Part, ...] = ()
    nearby: tuple[Part, ...] = ()  # other settings, nearest first, to look at if it fails
    remark: str = ""
    choice: str = ""  # what of the quantity or the range is ours, as the paper does not print it
    why: str = ""  # the reason why it fails, or what its verdict is not
    substitute: bool = False  # whether it is about data of the paper for which we have substitutes only

    @property
    def ours(self) -> bool:
        """A check or a remark of ours, which is not in the paper."""
        return self.place == OURS

    @property
    def verdict(self) -> str:
        """What was seen, unless that does not decide the claim."""
        return NOT_DECIDABLE if self.substitute else self.seen

    @property
    def seen(self) -> str:
        """All parts must hold; one that fails is enough."""
        verdicts = {part.judge(self.agreement) for part in self.parts}
        return FAILS if FAILS in verdicts else HOLDS if verdicts == {HOLDS} else UNDECIDED

    @property
    def closest(self) -> str:
        """For a claim that fails: its own settings in which it holds, and the nearest of those beyond them."""
        if self.seen != FAILS:
            return ""
        others = [part.setting for part in self.nearby if part.judge(self.agreement) == HOLDS][:1]
        holding = [part.setting for part in self.parts if part.judge(self.agreement) == HOLDS]
        if len(holding) > 3:
            holding = [f"{len(holding)} of its {len(self.parts)} settings, such as {holding[0]}"]
        if holding or others:
            return "it holds for " + "; beyond them ".join(["; ".join(holding)][: len(holding)] + others)
        return f"in none of the {len(self.nearby)} other settings measured" if self.nearby else "no other was measured"

    def worst_first(self) -> list[Part]:
        """The parts: failing, undecided, holding; within each, the ones with the smallest margin first."""
        return sorted(self.parts, key=lambda part: (WORST_FIRST.index(part.judge(self.agreement)), self._margin(part)))

    def _margin(self, part: Part) -> float:
        """How far inside the range the interval stays; for a failing part, minus how far outside its number is."""
        low, high = (part.value, part.value) if part.judge(self.agreement) == FAILS else (part.low, part.high)
        margin = min(low - self.agreement.low, self.agreement.high - high)
        return -math.inf if math.isnan(margin) else margin

    def show_worst(self) -> str:
        """The number of the worst part, with its interval."""
        if not self.parts:
            return "not measured"
        part = self.worst_first()[0]
        return f"{part.show_value()} {part.show_interval()}".strip()

    def show_agreement(self) -> str:
        """The range that counts as agreement."""
        return typeset(str(self.agreement))

    def show_verdict(self) -> str:
        """The verdict, with what was seen if that does not decide it."""
        return f"{self.verdict} on substitute data (seen: {self.seen})" if self.substitute else self.verdict

    def as_json(self) -> dict[str, Any]:
        """The claim as plain data."""
        return self.statement_json() | self.evidence_json()

    def statement_json(self) -> dict[str, Any]:
        """What is claimed."""
        return {
            "claim": self.name,
            "sentence": self.sentence,
            "place": self.place,
            "ours": self.ours,
            "quantity": self.quantity,
            "agreement": str(self.agreement),
            "range": [finite_or_none(limit) for limit in self.agreement],
            "choice": self.choice,
            "remark": self.remark,
        }

    def evidence_json(self) -> dict[str, Any]:
        """What was measured, and the verdict."""
        return {
            "verdict": self.verdict,
            "seen": self.seen,
            "why": self.why,
            "closest": self.closest,
            "parts": [self._part(part) for part in self.parts],
            "nearby": [self._part(part) for part in self.nearby],
        }

    def _part(self, part: Part) -> dict[str, Any]:
        return {"setting": part.setting, **part.numbers(), "verdict": part.judge(self.agreement)}


def show_scaled(value: float, scale: float = 0.0) -> str:
    """A number with as many decimals as suit the largest of the numbers beside it.

    >>> show_scaled(0.34567), show_scaled(-2.5, scale=40.0), show_scaled(12345.6), show_scaled(0.000321)
    ('0.346', '−2.50', '12 346', '0.00032')
    >>> show_scaled(3e-9), show_scaled(0.0)
    ('3.0e−9', '0')
    """
    if not math.isfinite(value):
        return "not measured" if math.isnan(value) else "∞" if value > 0 else "−∞"
    size = max(abs(value), abs(scale))
    if size < 1e-5:
        text = f"{value:.1e}".replace("e-0", "e-") if value else "0"
    else:
        text = f"{value:,.{_decimals(size)}f}".replace(",", THIN_SPACE)
    return typeset(text)


def _decimals(size: float) -> int:
    """Three at most, except for small numbers, which get two significant digits."""
    return min(3, max(0, 3 - math.floor(math.log10(size)))) if size >= 0.01 else 1 - math.floor(math.log10(size))


def count_verdicts(verdicts: Iterable[str]) -> str:
    """How many hold, fail and are undecided.

    >>> count_verdicts(["holds", "fails", "holds"])
    '2 hold, 1 fails'
    """
    counts = Counter(verdicts)
    words = (f"{counts[each]} {inflect(each, counts[each])}" for each in reversed(WORST_FIRST) if counts[each])
    return ", ".join(words) or "no claims"


def count_claims(claims: Sequence[Claim]) -> str:
    """The verdicts on the paper's claims, and on ours."""
    paper, ours = ([claim.verdict for claim in claims if claim.ours == which] for which in (False, True))
    counted = f"{len(paper)} claims of the paper: {count_verdicts(paper)}"
    return f"{counted}; {len(ours)} of ours: {count_verdicts(ours)}" if ours else counted


def inflect(verdict: str, count: int) -> str:
    """The verdict as a verb after a number."""
    return verdict if count == 1 else PLURAL.get(verdict, verdict)


def explain_verdicts() -> str:
    """How verdicts are given, as the documentation of this module states it."""
    return " ".join((__doc__ or "").partition("\n\n")[2].split())


def render_claims(template: str, about: Mapping[str, Any], **context: Any) -> str:
    """A report with claims, from one of the templates of `restive.report`."""
    origin = (
        f"restive {about['version']}, code {about['code']}, seed {about['seed']}, {about['size']} size, "
        f"{about['machine']}, Python {about['python']}, {about['date']}"
    )
    return render(
        template,
        about=about,
        origin=origin,
        count_verdicts=count_verdicts,
        explain_verdicts=explain_verdicts,
        inflect=inflect,
        **context,
    )
