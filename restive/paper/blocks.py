"""What reports are made of, as HTML: figures, tables, claims with their numbers, and the look of it all.

Wide figures and tables scroll in boxes of their own, so that a page itself fits a phone. Text is escaped wherever it
comes from. Nothing needs a network or a script.
"""

import math
import re
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from matplotlib.figure import Figure

from restive.paper.claims import FAILS, HOLDS, UNDECIDED, Claim, Part
from restive.paper.summary import agree, agreement, interval, key_number, tally, value, worst_first
from restive.plotting import inline_svg
from restive.report.tables import Table

MARKS = {HOLDS: "✓", FAILS: "✗", UNDECIDED: "?"}
FEW = 8  # parts that are shown unfolded
PIXELS = 76  # of an inch of a figure at its smallest, so that its letters can be read
SKETCH = 120  # width of the sketch of an interval

REPORT_STYLE = """
:root { --holds: #00694c; --fails: #a83c00; --undecided: #6b5900; }
@media (prefers-color-scheme: dark) { :root { --holds: #4fd1a5; --fails: #ff9a63; --undecided: #e2c95a; } }
body { max-width: 72rem; overflow-wrap: break-word; }
h1, h2, h3, h4 { line-height: 1.25; text-wrap: balance; }
h2 { margin: 3rem 0 .25rem; padding-top: 1rem; border-top: 1px solid var(--line); }
h3 { margin: 2rem 0 .5rem; }
h4 { margin: .3rem 0; font-size: 1rem; }
p, dl, li { max-width: 48rem; }
a { color: inherit; text-decoration-color: var(--soft); text-underline-offset: .15em; }
.soft, dt { color: var(--soft); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: .5rem 0; font-size: .9rem; }
dd { margin: 0; }
.counts { display: flex; flex-wrap: wrap; gap: .75rem; padding: 0; margin: 1rem 0; list-style: none; }
.counts li { border: 1px solid; border-radius: 6px; padding: .4rem 1rem; min-width: 5rem; }
.counts b { display: block; font-size: 1.8rem; line-height: 1.2; }
.holds { color: var(--holds); } .fails { color: var(--fails); } .undecided { color: var(--undecided); }
.badge { border: 1px solid; border-radius: 1em; padding: 0 .6em; font-size: .8rem; font-weight: 600;
         white-space: nowrap; }
nav ol { columns: 22rem; padding-left: 1.5rem; max-width: none; }
nav small { white-space: nowrap; }
figure { margin: 1.5rem 0; }
figcaption { padding: .3rem 0; font-size: .85rem; }
table { margin: .5rem 0; }
td, th { vertical-align: top; font-weight: normal; }
thead th { vertical-align: bottom; color: var(--soft); }
.scroll { --shade: color-mix(in srgb, var(--ink) 25%, transparent);
  background: linear-gradient(to right, var(--paper) 40%, transparent) 0 0 / 2rem 100% local no-repeat,
    linear-gradient(to left, var(--paper) 40%, transparent) 100% 0 / 2rem 100% local no-repeat,
    linear-gradient(to right, var(--shade), transparent) 0 0 / .7rem 100% no-repeat,
    linear-gradient(to left, var(--shade), transparent) 100% 0 / .7rem 100% no-repeat; }
.scroll th:first-child { position: sticky; left: 0; background: var(--paper); }
.claims th, .claims td:nth-child(2), .parts th:first-child { white-space: normal; text-align: left; }
.claims td:nth-child(2), .parts th:first-child { width: 100%; }
.claims th:nth-child(n + 3) { text-align: right; }
.claims tbody th { padding-top: 1.2rem; font-weight: 600; }
article { border-left: 3px solid; padding-left: 1rem; margin: 1.5rem 0; }
article > * { color: var(--ink); }
summary { cursor: pointer; }
.sketch { width: 120px; height: 14px; display: block; margin: .3em 0; }
:target { scroll-margin-top: 1rem; background: color-mix(in srgb, var(--ink) 6%, transparent); }
@media (max-width: 40rem) {
  body { padding: 1rem; }
  .counts { gap: .5rem; } .counts li { padding: .3rem .6rem; min-width: 4rem; }
  thead, .parts td:nth-child(4), .claims td:nth-child(3), .claims td:nth-child(5) { display: none; }
  .scroll thead { display: revert; }
  .claims tr, .parts tr { display: grid; border-bottom: 1px solid var(--line); padding: .3rem 0; }
  .claims tr { grid-template-columns: max-content 1fr; }
  .parts tr { grid-template-columns: minmax(4rem, auto) minmax(9rem, auto) 1fr; }
  .parts th:first-child { grid-column: 1 / 4; }
  .claims, .parts, .claims tbody, .parts tbody { display: block; }
  .claims td, .claims th, .parts td, .parts th { border: 0; padding: .1rem .3rem; }
  .claims td:nth-child(2), .claims tbody th { grid-column: 1 / 3; }
  .claims td:nth-child(2) { grid-row: 2; }
}
@media print {
  html { font-size: 9pt; } body { font-size: 1rem; max-width: none; padding: 0; }
  nav, .up { display: none; }
  figure, article, tr { break-inside: avoid; }
  .scroll { overflow: visible; background: none; } .scroll td, .scroll th { white-space: normal; }
  figure svg { min-width: 0 !important; }
  details::details-content { content-visibility: visible; block-size: auto; }
}
"""


def about_list(about: Mapping[str, Any]) -> str:
    """Version, seed and machine."""
    names = {"code": "digest of the code", "python": "Python"}
    items = "".join(f"<dt>{names.get(name, name)}</dt><dd>{escape(str(told))}</dd>" for name, told in about.items())
    return f"<dl>{items}</dl>"


def counts(verdicts: Mapping[str, int], label: str) -> str:
    """How many claims there are of each verdict, large."""
    items = "".join(
        f'<li class="{verdict}"><b>{verdicts[verdict]}</b>{MARKS[verdict]} {agree(verdict, verdicts[verdict])}</li>'
        for verdict in MARKS
    )
    return f'<ul class="counts" aria-label="{escape(label)}">{items}</ul>'


def claims_table(groups: Iterable[tuple[str, Iterable[Claim]]]) -> str:
    """All claims in short, by group, each with a link to where it is told in full."""
    rows = "".join(
        f'<tr><th colspan="5" scope="rowgroup">{escape(title)}</th></tr>' + "".join(map(_summary_row, claims))
        for title, claims in groups
    )
    heads = "".join(f'<th scope="col">{each}</th>' for each in ("verdict", "claim", "agreement", "number", "holding"))
    return f'<table class="claims"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'


def _summary_row(claim: Claim) -> str:
    link = f'<a href="#claim-{escape(claim.name)}">{escape(claim.sentence)}</a>'
    holding = sum(part.judge(claim.agreement) == HOLDS for part in claim.parts)
    cells = (_badge(claim.verdict), link, agreement(claim), key_number(claim), f"{holding} of {len(claim.parts)}")
    return f"<tr>{''.join(f'<td>{each}</td>' for each in cells)}</tr>"


def _badge(verdict: str) -> str:
    return f'<span class="badge {verdict}">{MARKS[verdict]} {verdict}</span>'


def prose(text: str) -> str:
    """Text with names of code between backquotes, and without a new line before or after a sign of equality."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text)).replace(" = ", "&nbsp;=&nbsp;")


def figure_box(name: str, figure: Figure, title: str) -> str:
    """A figure in a box that scrolls, with where it is as files."""
    width = figure.get_figwidth()
    drawn = inline_svg(figure, f"figure-{name}").replace(
        "<svg", f'<svg style="min-width: {width * PIXELS:.0f}px; max-width: {width * 1.3:.1f}in"', 1
    )
    words = escape(_describe(figure, title))
    return (
        f'<figure><div class="scroll" tabindex="0" role="img" aria-label="{words}">{drawn}</div>'
        f"<figcaption>As files: figures/{escape(name)}.png, .svg and .pdf.</figcaption></figure>\n"
    )


def _describe(figure: Figure, title: str) -> str:
    """A figure in a sentence, for those who do not see it."""
    panels = figure.axes
    labels = dict.fromkeys(text.get_text().strip() for axes in panels for text in axes.texts)
    sizes = dict.fromkeys(name for axes in panels for name in (axes.get_ylabel(), axes.get_xlabel()) if name)
    shown = f"{' against '.join(sizes)}, for {', '.join(labels)}" if labels else " against ".join(sizes)
    return f"{title}: {shown}. Tables and claims below have the numbers."


def table_box(table: Table) -> str:
    """A table in a box that scrolls, under its title."""
    heads = "".join(f'<th scope="col">{escape(each)}</th>' for each in table.heads)
    rows = "".join(_table_row(row) for row in table.rows)
    note = f"<p><small>{prose(table.note)}</small></p>" if table.note else ""
    return f"""<h3>{escape(table.title)}</h3>
<div class="scroll" tabindex="0" role="region" aria-label="{escape(table.title)}">
<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>
{note}"""


def _table_row(row: tuple[str, ...]) -> str:
    first, *others = map(escape, row)
    return f'<tr><th scope="row">{first}</th>{"".join(f"<td>{each}</td>" for each in others)}</tr>'


def claim_article(claim: Claim) -> str:
    """A claim in full: what it is about, its verdict and all of its numbers."""
    facts = {
        "place": claim.place,
        "quantity": claim.quantity,
        "agreement": agreement(claim),
        "closest": claim.closest,
        "remark": claim.remark,
    }
    told = "".join(f"<dt>{name}</dt><dd>{prose(fact)}</dd>" for name, fact in facts.items() if fact)
    others = _fold("other setting", claim.nearby, claim) if claim.verdict == FAILS and claim.nearby else ""
    return f"""<article id="claim-{escape(claim.name)}" class="{claim.verdict}">
<h4>{_badge(claim.verdict)} {escape(claim.sentence)}</h4>
<dl>{told}</dl>
{_parts(claim.parts, claim) if len(claim.parts) <= FEW else _fold("setting", tuple(worst_first(claim)), claim)}{others}
</article>
"""


def _fold(what: str, parts: tuple[Part, ...], claim: Claim) -> str:
    counts = tally(part.judge(claim.agreement) for part in parts)
    settings = what if len(parts) == 1 else f"{what}s"
    return f"<details><summary>{len(parts)} {settings} measured: {counts}</summary>{_parts(parts, claim)}</details>"


def _parts(parts: tuple[Part, ...], claim: Claim) -> str:
    heads = ("setting", "number", "95% interval", "against the range", "verdict")
    head_cells = "".join(f'<th scope="col">{each}</th>' for each in heads)
    rows = "".join(_part(part, claim) for part in parts)
    return f'<table class="parts"><thead><tr>{head_cells}</tr></thead><tbody>{rows}</tbody></table>'


def _part(part: Part, claim: Claim) -> str:
    verdict = part.judge(claim.agreement)
    cells = (value(part), interval(part) or "exact", _sketch(part, claim), _badge(verdict))
    return f'<tr><th scope="row">{prose(part.setting)}</th>{"".join(f"<td>{each}</td>" for each in cells)}</tr>'


def _sketch(part: Part, claim: Claim) -> str:
    """The interval before the range of agreement, on the scale of all parts of the claim."""
    known = [each for other in (*claim.parts, part) for each in other[1:]] + list(claim.agreement)
    finite = [each for each in known if math.isfinite(each)]
    if not math.isfinite(part.value) or not finite:
        return ""
    least, span = min(finite), (max(finite) - min(finite)) or 1.0

    def across(number: float) -> float:
        return min(max(10 + (SKETCH - 20) * (number - least) / span, 0), SKETCH)

    low, high = map(across, claim.agreement)
    left, right = (across(each if math.isfinite(each) else part.value) for each in (part.low, part.high))
    return (
        f'<svg class="sketch {part.judge(claim.agreement)}" viewBox="0 0 {SKETCH} 14" aria-hidden="true">'
        f'<rect x="{low:.1f}" width="{high - low:.1f}" height="14" fill="var(--soft)" opacity=".22"/>'
        f'<path d="M{left:.1f} 7H{right:.1f}" stroke="currentColor" stroke-width="2"/>'
        f'<circle cx="{across(part.value):.1f}" cy="7" r="3" fill="currentColor"/></svg>'
    )
