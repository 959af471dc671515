"""The report is one whole HTML file with every claim, number, figure and table, and nothing in it can break it."""

import re
from dataclasses import replace

import numpy as np
import pytest
from reading import Outline

from restive.paper.claims import Claim, Part, above
from restive.paper.experiment import Findings
from restive.paper.jobs import Size, describe_run
from restive.paper.readings import READINGS
from restive.paper.reproduction import EXPERIMENTS, Reproduction, render_markdown, render_report
from restive.plotting import Line, Picture, draw_lines
from restive.report.tables import Table

FIRST, SECOND, *_ = EXPERIMENTS
EVIL = "<script>alert('1')</script> & \"more\""
BAD = Part("the bad one", -3.0, -4.0, -2.0)
MANY = (*(Part(f"setting {k}", 0.1 + k, 0.05 + k, 0.2 + k) for k in range(29)), BAD)


def claim(name: str, *parts: Part, nearby: tuple[Part, ...] = (), remark: str = "") -> Claim:
    return Claim(name, f"Sentence of {name}.", "Figure 9", "lead of `egt`", above(0), parts, nearby, remark)


def figure(label: str, *formats: str) -> Picture:
    x = np.arange(5.0)
    lines = [Line(label, x, x, x - 1, x + 1), Line("other", x, -x, -x, -x)]
    return Picture.of(draw_lines(lines, "step", "regret", "It rises"), formats)


@pytest.fixture(scope="module")
def reproduction() -> Reproduction:
    first = Findings(
        (
            claim("alpha", Part("B = 5", 0.25, 0.125, 0.375), nearby=(BAD,)),
            claim("beta", *MANY, nearby=(Part("N = 2", 7.0, 7.0, 7.0),), remark="A remark."),
        ),
        {"one": figure("egt", "png", "pdf"), "two": figure(EVIL)},
        (Table("Rewards", ("policy", "B = 5"), (("egt", "1.5 ± 0.5"), (EVIL, "2")), "A note."),),
    )
    second = Findings((claim("gamma", Part("B = 5", 1.0, -1.0, 3.0), Part(EVIL, 2.0, np.nan, np.nan)),), {})
    about = {**describe_run(Size(True, 5)), "machine": EVIL}
    return Reproduction({FIRST: {"literal": first}, SECOND: {"literal": second}}, about, READINGS[:1])


@pytest.fixture(scope="module")
def text(reproduction: Reproduction) -> str:
    return render_report(reproduction, f"restive reproduce {EVIL}")


def article(text: str, name: str) -> str:
    return text.partition(f'<article id="claim-{name}"')[2].partition("</article>")[0]


def test_the_page_is_whole_and_all_links_lead_somewhere_in_it(text: str) -> None:
    outline = Outline(text)
    assert outline.open == []
    assert len(set(outline.ids)) == len(outline.ids) > 0
    assert outline.links
    assert {link.removeprefix("#") for link in outline.links} <= set(outline.ids)
    assert outline.tags["script"] == outline.tags["link"] == outline.tags["img"] == 0


def test_what_was_named_by_others_cannot_break_the_page(text: str) -> None:
    assert "<script" not in text
    assert text.count("&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt; &amp; &#34;more&#34;") == 5


def test_the_header_says_version_seed_size_and_date(reproduction: Reproduction, text: str) -> None:
    for name in ("version", "code", "seed", "size", "python", "date"):
        assert f"<dd>{reproduction.about[name]}</dd>" in text


def test_claims_are_counted_by_verdict(text: str) -> None:
    assert re.findall(r"<b>(\d+)</b>(. \w+)", text) == [("1", "✓ holds"), ("1", "✗ fails"), ("1", "? undecided")]
    assert "<h2>As printed</h2>" in text


def test_the_summary_has_every_claim_with_its_worst_number(text: str) -> None:
    table = text.partition('<table class="claims">')[2].partition("</table>")[0]
    rows = [re.sub(r"<[^>]+>", ";", row).replace(";;", ";") for row in table.split("<tr>") if "claim-" in row]
    assert [[cell for cell in row.split(";") if cell.strip()] for row in rows] == [
        ["Sentence of alpha.", "above 0", "✓ holds", "0.250 [0.125, 0.375]", "1 of 1"],
        ["Sentence of beta.", "above 0", "✗ fails", "−3.000 [−4.000, −2.000]", "29 of 30"],
        ["Sentence of gamma.", "above 0", "? undecided", "2.000 no interval", "0 of 2"],
    ]


def test_a_claim_is_shown_in_full(text: str) -> None:
    shown = article(text, "alpha")
    for part in ("Sentence of alpha.", "Figure 9", "lead of <code>egt</code>", "above 0", "B&nbsp;=&nbsp;5", "0.250",
                 "[0.125, 0.375]", "✓ holds"):  # fmt: skip
        assert part in shown
    assert "<details" not in shown


def test_many_parts_are_folded_with_the_failing_ones_first(text: str) -> None:
    shown = article(text, "beta")
    assert "<summary>30 settings measured: 29 hold, 1 fails</summary>" in shown
    assert re.findall(r'<th scope="row">([^<]*)</th>', shown)[:2] == ["the bad one", "setting 0"]


def test_a_claim_that_fails_says_where_it_holds_and_what_else_was_measured(text: str) -> None:
    shown = article(text, "beta")
    assert "it holds for 29 of its 30 settings, such as setting 0; beyond them N&nbsp;=&nbsp;2" in shown
    assert "A remark." in shown
    assert "<summary>1 other setting measured: 1 holds</summary>" in shown
    assert re.search(r"<td>7</td>\s*<td>exact</td>", shown)
    assert "closest" not in article(text, "alpha")


def test_figures_are_inside_and_described_for_those_who_do_not_see_them(text: str) -> None:
    outline = Outline(text)
    assert outline.tags["figure"] == 2
    described = re.findall(r'role="img" aria-label="([^"]*)"', text)
    assert all(words in described[0] for words in (EXPERIMENTS[FIRST].title, "regret against step", "egt", "other"))
    assert "As files: figures/one.png, .pdf." in text
    assert "figures/two" not in text


def test_wide_things_scroll_in_boxes_of_their_own(text: str) -> None:
    boxes = re.findall(r'<div class="scroll"[^>]*>\s*<(\w+)', text)
    assert boxes == ["svg", "svg", "table"]
    assert re.search(r'<svg style="min-width: \d{3}px', text)


def test_tables_are_there_with_their_notes(text: str) -> None:
    for part in ("<h3>Rewards</h3>", '<th scope="col">B = 5</th>', "<td>1.5 ± 0.5</td>", "A note."):
        assert part in text


def test_experiments_come_in_order_with_what_was_done(text: str) -> None:
    places = [text.index(f'<section id="experiment-{name}">') for name in (FIRST, SECOND)]
    assert places == sorted(places)
    assert EXPERIMENTS[FIRST].title in text[places[0] :]
    assert "fails if the whole interval lies outside" in text


def test_the_same_findings_give_the_same_page(reproduction: Reproduction, text: str) -> None:
    assert render_report(reproduction, f"restive reproduce {EVIL}") == text


def test_markdown_has_every_claim_with_its_verdict(reproduction: Reproduction) -> None:
    lines = [line for line in render_markdown(reproduction).splitlines() if "Sentence of" in line]
    assert [line.split(" | ")[3] for line in lines] == ["holds", "fails", "undecided"]


ODD = replace(claim("delta", BAD), substitute=True, choice="the step", why="not printed: p | q")
TWO = {"literal": Findings((ODD,), {"one": figure("egt")}), "authors": Findings((claim("delta", *MANY[:2]),), {})}
ABOUT = {**describe_run(Size(True, 3)), "machine": "m|n", "date": "2031-02-03"}


def test_two_readings_are_side_by_side_with_the_reason_and_what_is_ours() -> None:
    both = Reproduction({FIRST: TWO}, ABOUT)
    shown = article(render_report(both), "delta")
    assert [re.sub(r"<[^>]*>", "", head) for head in re.findall(r"<h5>(.*)</h5>", shown)] == [
        "as printed: – not decidable",
        "authors&#39; likely settings: ✓ holds",
    ]
    assert "not printed: p | q" in shown
    assert "the step" in shown
    (row,) = (line for line in render_markdown(both).splitlines() if "Sentence of" in line)
    assert row.split(" | ")[0].endswith(". (Ours: the step.)")
    assert row.split(" | ")[3:] == [
        "not decidable on substitute data (seen: fails)",
        "−3.000 [−4.000, −2.000]",
        "holds",
        "0.100 [0.050, 0.200], setting 0",
        r"As printed – not printed: p \| q |",
    ]
    assert list(both.figures(FIRST)) == ["one-literal"]
    (data,) = both.as_json()["claims"]
    assert [found["verdict"] for found in data["readings"].values()] == ["not decidable", "holds"]
    assert [found["seen"] for found in data["readings"].values()] == ["fails", "holds"]


def test_readings_with_the_same_findings_are_shown_once() -> None:
    same = Reproduction({FIRST: dict.fromkeys(TWO, TWO["literal"])}, ABOUT)
    assert "<h5>" not in article(render_report(same), "delta")
    assert list(same.figures(FIRST)) == ["one"]
    assert same.explain(same.rows(FIRST)[0]) == "not printed: p | q"


def test_markdown_says_where_it_comes_from_and_how_verdicts_are_given() -> None:
    page = render_markdown(Reproduction({FIRST: TWO}, ABOUT))
    for phrase in ("`restive reproduce --markdown docs/reference/results/reproduction.md`", "not edited by hand",
                   "**As printed**: 1 claims of the paper: 1 not decidable", "**Authors' likely settings**: ",
                   "The wireless channels are substitutes", "seed 3", "quick size", r"m\|n", "2031-02-03",
                   "the whole interval lies outside"):  # fmt: skip
        assert phrase in page
    assert max(len(line) for line in page.splitlines() if not line.startswith("|")) <= 120


def test_markdown_has_a_row_for_each_claim_whatever_is_in_its_words() -> None:
    odd = Claim("c", "x | <b> `y_|` *z* ` \nend", "§ 1", "lead", above(0), (Part("a|b", 1.0, 1.0, 1.0), MANY[0]))
    page = render_markdown(Reproduction({FIRST: {"literal": Findings((odd,), {})}}, ABOUT, READINGS[:1]))
    assert r"| x \| \<b\> `y_\|` \*z\* \` end | § 1 | above 0 | holds | 0.100 [0.050, 0.200], setting 0 |  |" in page
