"""Claims in short, for people: numbers as they are read, the part that is worst off, counts, and a page of Markdown."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from textwrap import fill
from typing import Any

from restive.paper import claims as rules
from restive.paper.claims import FAILS, HOLDS, UNDECIDED, Claim, Part, Range
from restive.report.tables import escape_markdown

ORDER = (FAILS, UNDECIDED, HOLDS)
PLURAL = {HOLDS: "hold", FAILS: "fail", UNDECIDED: "undecided"}
THIN, MINUS = "\u202f", "\u2212"
OPENING = """# Reproduction

This page is written by `restive reproduce --markdown docs/reproduction.md`, and not edited by hand.

Every claim of the paper, in our words, and how it fares here.
{counts}.
{origin}

The number is that of the part of the claim that is worst off, with its 95% interval; numbers without one are exact.
What it measures, all other parts and the figures are in the `report.html` that the same command writes.

{heads}"""
CLAIM_HEADS = """| claim | place | verdict | agreement | number | worst at |
|---|---|---|---|---|---|"""
CLOSING = """
## How verdicts are given

    >>> from restive.paper.claims import Part, above
    >>> [Part("a setting", 0.3, low, 0.9).judge(above(0)) for low in (0.1, -0.1)]
    ['holds', 'undecided']
"""


def number(value: float, scale: float = 0.0) -> str:
    """A number to read, to so many decimals as suit the largest of those that it stands with.

    >>> number(0.34567), number(-2.5, scale=40.0), number(12345.6), number(0.000321), number(3e-9), number(0.0)
    ('0.346', '−2.50', '12 346', '0.00032', '3.0e−9', '0')
    """
    if not math.isfinite(value):
        return "not measured" if math.isnan(value) else "∞" if value > 0 else "−∞"
    size = max(abs(value), abs(scale))
    if size < 1e-5:
        text = f"{value:.1e}".replace("e-0", "e-") if value else "0"
    else:
        text = f"{value:,.{_decimals(size)}f}".replace(",", THIN)
    return text.replace("-", MINUS)


def _decimals(size: float) -> int:
    """Three at most, but for numbers so small that they need two digits after the zeros."""
    return min(3, max(0, 3 - math.floor(math.log10(size)))) if size >= 0.01 else 1 - math.floor(math.log10(size))


def value(part: Part) -> str:
    """The number of a part; one that is exact and whole without decimals.

    >>> value(Part("B = 5", 0.5, 0.4, 0.6)), value(Part("N = 4", 7.0, 7.0, 7.0))
    ('0.500', '7')
    """
    if is_exact(part) and part.value == round(part.value):
        return f"{part.value:,.0f}".replace(",", THIN).replace("-", MINUS)
    return number(part.value, _scale(part))


def interval(part: Part) -> str:
    """Its 95% interval, or nothing where it is exact.

    >>> interval(Part("B = 5", 0.5, -0.4, 0.6)), interval(Part("N = 4", 7.0, 7.0, 7.0))
    ('[−0.400, 0.600]', '')
    """
    if is_exact(part):
        return ""
    if math.isnan(part.low) or math.isnan(part.high):
        return "no interval"
    return f"[{number(part.low, _scale(part))}, {number(part.high, _scale(part))}]"


def is_exact(part: Part) -> bool:
    """Computed, not measured."""
    return part.low == part.value == part.high


def _scale(part: Part) -> float:
    return max((abs(each) for each in part[1:] if math.isfinite(each)), default=0.0)


def worst_first(claim: Claim) -> list[Part]:
    """Its parts: those that fail, then the undecided ones, then those that hold, each by how little they do."""
    return sorted(
        claim.parts, key=lambda part: (ORDER.index(part.judge(claim.agreement)), _margin(part, claim.agreement))
    )


def _margin(part: Part, wanted: Range) -> float:
    """How far inside the range the interval stays; of a part that fails, how far outside its number is, below 0."""
    low, high = (part.value, part.value) if part.judge(wanted) == FAILS else (part.low, part.high)
    margin = min(low - wanted.low, wanted.high - high)
    return -math.inf if math.isnan(margin) else margin


def key_number(claim: Claim) -> str:
    """The number of the part that is worst off, with its interval."""
    if not claim.parts:
        return "not measured"
    part = worst_first(claim)[0]
    return f"{value(part)} {interval(part)}".strip()


def agreement(claim: Claim) -> str:
    """What counts as agreement."""
    return str(claim.agreement).replace("-", MINUS)


def tally(verdicts: Iterable[str]) -> str:
    """How many hold, fail and are undecided.

    >>> tally(["holds", "fails", "holds"])
    '2 hold, 1 fails'
    """
    counts = Counter(verdicts)
    words = (f"{counts[each]} {agree(each, counts[each])}" for each in reversed(ORDER) if counts[each])
    return ", ".join(words) or "no claims"


def tally_all(claims: Sequence[Claim]) -> str:
    """The counts of the paper's claims, and of ours."""
    paper, ours = ([claim.verdict for claim in claims if claim.ours == which] for which in (False, True))
    said = f"{len(paper)} claims of the paper: {tally(paper)}"
    return f"{said}; {len(ours)} of ours: {tally(ours)}" if ours else said


def agree(verdict: str, many: int) -> str:
    """The verdict as a verb after a number."""
    return verdict if many == 1 else PLURAL[verdict]


def origin(about: Mapping[str, Any]) -> str:
    """What made the numbers, in a line."""
    return (
        f"restive {about['version']}, code {about['code']}, seed {about['seed']}, {about['size']} size, "
        f"{about['machine']}, Python {about['python']}, {about['date']}"
    )


def rule() -> str:
    """How verdicts are given, as it stands where they are."""
    return " ".join((rules.__doc__ or "").partition("\n\n")[2].split())


def markdown(claims: Sequence[Claim], about: Mapping[str, Any]) -> str:
    """A page with all claims in one table."""
    counts = tally_all(claims)
    opening = OPENING.format(
        counts=counts, origin=fill(f"Made with {escape_markdown(origin(about))}.", 120), heads=CLAIM_HEADS
    )
    return "\n".join([opening, *map(claim_row, claims), CLOSING, fill(rule(), 120), ""])


def claim_row(claim: Claim) -> str:
    """A claim as a row of a table in Markdown."""
    cells = (claim.sentence, claim.place, claim.verdict, agreement(claim), key_number(claim), _setting(claim))
    return f"| {' | '.join(map(escape_markdown, cells))} |"


def _setting(claim: Claim) -> str:
    """That of the part that is worst off, where there are several."""
    return worst_first(claim)[0].setting if len(claim.parts) > 1 else ""
