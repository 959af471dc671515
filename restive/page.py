"""One HTML page with a comparison: the figure, the table, and how to make it again. It needs no network."""

from html import escape
from os import PathLike

from restive.comparison import Comparison, Row, landmarks
from restive.files import write_atomic
from restive.plotting import BANDS, inline_svg, make_figure
from restive.report.tables import describe_spec

STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --paper: #ffffff; --line: #d0d0d0; --soft: #666666; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --paper: #161616; --line: #3c3c3c; --soft: #a0a0a0; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
       margin: 0 auto; padding: 1.5rem; max-width: 62rem; }
figure { margin: 1rem 0; }
figure svg { width: 100%; height: auto; }
figure text { fill: var(--ink); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100%; font-size: .9rem; }
th, td { text-align: right; padding: .35rem .6rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
small, figcaption { color: var(--soft); }
code { background: color-mix(in srgb, var(--ink) 8%, transparent); padding: .1rem .3rem; border-radius: 3px; }
"""


def write_page(comparison: Comparison, path: str | PathLike[str], command: str = "") -> None:
    """Write the page; the file appears whole or not at all."""
    write_atomic(path, _page(comparison, command).encode())


def head(title: str, style: str) -> str:
    """All of a page before its body."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{style}</style>
</head>"""


def _page(comparison: Comparison, command: str) -> str:
    again = f"<p>Make it again: <code>{escape(command)}</code></p>" if command else ""
    return f"""{head("restive: policies side by side", STYLE)}
<body>
<h1>Policies side by side</h1>
<p>{escape(describe_spec(comparison.spec))}.</p>
<figure role="img" aria-label="Running mean of the reward over time for each policy; the table below has the numbers.">
{inline_svg(make_figure(comparison), "comparison")}
<figcaption>Mean reward per step so far, summed over agents{_bands(comparison)}.</figcaption>
</figure>
<div class="scroll">{_table(comparison)}</div>
<p><small>Reward is per step, summed over all agents, ± one standard error over {_units(comparison)}. Gap closed is the
share of the way from random to the Whittle oracle, with its 95% interval. No policy's expected reward per step can be
above the fluid bound.</small></p>
{again}
</body>
</html>
"""


def _units(comparison: Comparison) -> str:
    return "instances" if comparison.spec["instances"] > 1 else "runs"


def _bands(comparison: Comparison) -> str:
    return f"; bands are 95% over {_units(comparison)}" if len(comparison.rows) <= BANDS else ""


def _table(comparison: Comparison) -> str:
    steps = landmarks(comparison.rows[0].trace.reward.shape[1])[:-1]  # the last is the reward per step itself
    heads = ["policy", "reward per step", "last tenth", "gap closed", *(f"t = {step}" for step in steps)]
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    body = "".join(_line(row, steps) for row in comparison.rows) + _bound_line(comparison, 2 + len(steps))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _bound_line(comparison: Comparison, empty: int) -> str:
    if comparison.bound is None:
        return ""
    return f'<tr><th scope="row">fluid bound</th><td>{comparison.bound:.2f}</td>{"<td></td>" * empty}</tr>'


def _line(row: Row, steps: list[int]) -> str:
    means = row.trace.bands().mean
    cells = [
        f"{row.whole.mean:.2f} ± {row.whole.error:.2f}",
        f"{row.end.mean:.2f}",
        row.show_gap(),
        *(f"{means[step - 1]:.2f}" for step in steps),
    ]
    return f'<tr><th scope="row">{escape(row.label)}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
