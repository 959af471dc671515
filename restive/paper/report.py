"""The report of a reproduction: one HTML file that needs no network and no scripts, with figures, tables and claims.

What it is made of is in `restive.paper.blocks`. The same in short, as Markdown, is for the documentation.
"""

from collections import Counter
from html import escape
from pathlib import Path

from restive.files import write_atomic
from restive.page import STYLE, head
from restive.paper.blocks import (
    REPORT_STYLE,
    about_list,
    claim_article,
    claims_table,
    counts,
    figure_box,
    prose,
    table_box,
)
from restive.paper.catalogue import EXPERIMENTS
from restive.paper.experiment import Experiment, Findings
from restive.paper.reproduction import Reproduction
from restive.paper.summary import markdown, rule, tally


def write_report(reproduction: Reproduction, path: Path, command: str = "") -> None:
    """Write the report; the file appears whole or not at all."""
    write_atomic(path, _page(reproduction, command).encode())


def write_markdown(reproduction: Reproduction, path: Path) -> None:
    """Write all claims with their verdicts as a page of Markdown."""
    write_atomic(path, markdown([claim for _, claim in reproduction.claims()], reproduction.about).encode())


def _page(reproduction: Reproduction, command: str) -> str:
    sections = "".join(_section(EXPERIMENTS[name], found) for name, found in reproduction.findings.items())
    again = f"<h2>How to make it again</h2><p><code>{escape(command)}</code></p>" if command else ""
    return f"""{head("restive: the paper, reproduced", STYLE + REPORT_STYLE)}
<body>
<h1>The paper, reproduced</h1>
<p>Every claim of the paper in our words, and whether it holds here; every experiment with its figures and tables.</p>
{about_list(reproduction.about)}
{_counts(reproduction)}
{_contents(reproduction)}
<h2 id="claims">All claims</h2>
<p class="soft">The number is that of the part of the claim that is worst off, with its 95% interval.</p>
{claims_table((EXPERIMENTS[name].title, found.claims) for name, found in reproduction.findings.items())}
<h2>How verdicts are given</h2>
<p>{escape(rule())}</p>
{again}
{sections}
</body>
</html>
"""


def _counts(reproduction: Reproduction) -> str:
    verdicts = Counter(claim.verdict for _, claim in reproduction.claims() if not claim.ours)
    ours = tally(claim.verdict for _, claim in reproduction.claims() if claim.ours)
    beside = f'<p class="soft">Claims of the paper; of our own checks and remarks beside them {ours}.</p>'
    return counts(verdicts, "Claims of the paper by verdict") + beside


def _contents(reproduction: Reproduction) -> str:
    items = "".join(
        f'<li><a href="#experiment-{escape(name)}">{escape(EXPERIMENTS[name].title)}</a> '
        f"<small>{tally(claim.verdict for claim in found.claims)}</small></li>"
        for name, found in reproduction.findings.items()
    )
    return f'<nav aria-label="Contents"><ol>{items}</ol></nav>'


def _section(experiment: Experiment, found: Findings) -> str:
    figures = "".join(figure_box(name, figure, experiment.title) for name, figure in found.figures.items())
    tables = "".join(map(table_box, found.tables))
    claims = "".join(map(claim_article, found.claims))
    return f"""<section id="experiment-{escape(experiment.name)}">
<h2>{escape(experiment.title)}</h2>
<p class="soft">{escape(experiment.place)}. {tally(claim.verdict for claim in found.claims)}.</p>
<p>{prose(experiment.about)}</p>
{figures}{tables}<h3>Claims</h3>
{claims}<p class="up"><a href="#claims">↑ all claims</a></p>
</section>
"""
