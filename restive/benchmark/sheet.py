"""The comparison to read: one HTML file that needs no network and no scripts, and the same without figures as Markdown.

What it is made of is in `restive.paper.blocks`. All sentences come from `restive.benchmark.words`.
"""

from collections import Counter
from html import escape
from pathlib import Path
from textwrap import fill

from restive.benchmark.contest import Contest
from restive.benchmark.fields import CONTROLS, HERO
from restive.benchmark.scores import EARLY, LATE, Match
from restive.benchmark.tables import (
    ABOUT_GAPS,
    tabulate_controls,
    tabulate_costs,
    tabulate_gaps,
    tabulate_ranks,
)
from restive.benchmark.words import join, tell_field
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
from restive.paper.experiment import Size
from restive.paper.summary import CLAIM_HEADS, claim_row, origin, rule, tally
from restive.report.tables import Table, escape_markdown

TITLE = "Online policies, compared"
TITLES = {"overview": f"Gap closed by step {LATE}", "fields": "Gap closed over time"}
ABOUT_COSTS = "Measured by this call, after all else was done, and not kept with the results."
EXAMPLE = """    >>> from restive.benchmark.fields import FIELDS
    >>> FIELDS["crowd"].sizes()
    'N = 500, S = 2, B = 5, noiseless'
"""


def write_sheet(contest: Contest, path: Path, command: str = "") -> None:
    """Write the page; the file appears whole or not at all."""
    write_atomic(path, _page(contest, command).encode())


def write_markdown(contest: Contest, path: Path) -> None:
    """Write words, tables and claims as a page of Markdown."""
    write_atomic(path, _markdown(contest).encode())


def tell_played(contest: Contest) -> str:
    """What was played, in a few sentences."""
    size, fields = contest.scores.size, len(contest.scores.matches)
    beside = f" Beside them stand controls, {HERO} with other settings: {join(CONTROLS)}." if CONTROLS else ""
    return (
        f"{len(contest.scores.policies)} online policies on {fields} {'field' if fields == 1 else 'fields'}, the same "
        f"instances and the same luck for all: {size.pick(50, 13)} instances of each field, 1000 steps. Shares are of "
        f"the gap in running mean reward from random (0) to the Whittle oracle (1), which knows the model.{beside}"
    )


def tell_match(match: Match, size: Size) -> str:
    """A field, how much of it was played, and who is best in it."""
    field = match.field.as_json(size)
    slow = field["fewer_runs"]
    fewer = f"; {join(slow)}, which take long, play {join(map(str, sorted(set(slow.values()))))}" if slow else ""
    runs = f"{field['runs']} runs of each instance{fewer}"
    return f"{match.field.about} {match.field.family}, {match.field.sizes()}; {runs}. {tell_field(match)}"


def _page(contest: Contest, command: str) -> str:
    again = f"<h2>How to make it again</h2><p><code>{escape(command)}</code></p>" if command else ""
    return f"""{head(f"restive: {TITLE.lower()}", STYLE + REPORT_STYLE)}
<body>
<h1>{TITLE}</h1>
<p>{prose(tell_played(contest))}</p>
{about_list(contest.about)}
{_contents(contest)}
{_results(contest) if contest.scores.matches else ""}
{_costs(contest)}
{_claims(contest)}
{again}
</body>
</html>
"""


def _contents(contest: Contest) -> str:
    fields = contest.scores.matches
    parts = {"advice": "Which policy when", "ranks": "Ranks", "gaps": "Gap closed"} if fields else {}
    parts |= {f"field-{name}": name for name in fields}
    parts |= {"cost": "Cost of a step"} if contest.costs else {}
    parts |= {"claims": f"What {HERO} was to reach"}
    items = "".join(f'<li><a href="#{escape(name)}">{escape(title)}</a></li>' for name, title in parts.items())
    return f'<nav aria-label="Contents"><ol>{items}</ol></nav>'


def _results(contest: Contest) -> str:
    scores = contest.scores
    overview, over_time = (figure_box(name, contest.figures[name], title) for name, title in TITLES.items())
    ranks = "".join(table_box(tabulate_ranks(scores, step)) for step in (LATE, EARLY))
    advice = "".join(f"<li>{prose(sentence)}</li>" for sentence in contest.advice)
    sections = "".join(_section(match, scores.size) for match in scores.matches.values())
    return f"""<h2 id="advice">Which policy when</h2>
<ul>{advice}</ul>
{overview}<h2 id="ranks">Ranks</h2>
{ranks}{"".join(map(table_box, tabulate_controls(scores)))}
<h2 id="gaps">Gap closed</h2>
<p class="soft">{prose(ABOUT_GAPS)}</p>
{over_time}{sections}"""


def _section(match: Match, size: Size) -> str:
    name = escape(match.field.name)
    return f"""<section id="field-{name}">
<h2>{name}</h2>
<p>{prose(tell_match(match, size))}</p>
{table_box(tabulate_gaps(match))}
</section>
"""


def _costs(contest: Contest) -> str:
    if not contest.costs:
        return ""
    table = table_box(tabulate_costs(contest.costs, contest.about["machine"]))
    return f'<h2 id="cost">Cost</h2>\n<p class="soft">{ABOUT_COSTS}</p>\n{table}'


def _claims(contest: Contest) -> str:
    verdicts = Counter(claim.verdict for claim in contest.claims)
    return f"""<h2 id="claims">What {HERO} was to reach</h2>
{counts(verdicts, "Claims by verdict")}
<p class="soft">The number is that of the part of the claim that is worst off, with its 95% interval.</p>
{claims_table([("Claims of ours", contest.claims)])}
<h3>How verdicts are given</h3>
<p>{escape(rule())}</p>
{"".join(map(claim_article, contest.claims))}"""


def _markdown(contest: Contest) -> str:
    results = _markdown_results(contest) if contest.scores.matches else []
    return "\n".join([_opening(contest), *results, *_markdown_rest(contest), EXAMPLE])


def _markdown_results(contest: Contest) -> list[str]:
    scores = contest.scores
    return [
        "## Which policy when\n",
        *(_wrap(sentence, "- ", "  ") for sentence in contest.advice),
        "\n## Ranks",
        *(_markdown_table(tabulate_ranks(scores, step)) for step in (LATE, EARLY)),
        *map(_markdown_table, tabulate_controls(scores)),
        "\n## Gap closed\n",
        _wrap(ABOUT_GAPS),
        *(part for match in scores.matches.values() for part in _markdown_field(match, scores.size)),
    ]


def _opening(contest: Contest) -> str:
    made = f"Made with {origin(contest.about)}."
    return f"""# {TITLE}

This page is written by `restive compare --markdown`, and not edited by hand. [Compare](compare.md) says how to read it.

{_wrap(tell_played(contest))}
{_wrap(made)}
"""


def _markdown_field(match: Match, size: Size) -> list[str]:
    return [
        f"\n### {match.field.name}\n",
        fill(escape_markdown(tell_match(match, size)), 120),
        _markdown_table(tabulate_gaps(match)),
    ]


def _markdown_rest(contest: Contest) -> list[str]:
    costs = contest.costs
    table = tabulate_costs(costs, contest.about["machine"]) if costs else None
    measured = ["\n## Cost\n", ABOUT_COSTS, _markdown_table(table)] if table else []
    return [
        *measured,
        f"\n## What {HERO} was to reach\n",
        f"{len(contest.claims)} claims: {tally(claim.verdict for claim in contest.claims)}.\n",
        CLAIM_HEADS,
        *map(claim_row, contest.claims),
        "",
        _wrap(rule()),
        "",
    ]


def _markdown_table(table: Table) -> str:
    note = f"\n\n{_wrap(table.note)}" if table.note else ""
    return f"\n**{escape_markdown(table.title)}**\n\n{table.markdown()}{note}"


def _wrap(text: str, first: str = "", others: str = "") -> str:
    return fill(escape_markdown(text), 120, initial_indent=first, subsequent_indent=others, break_on_hyphens=False)
