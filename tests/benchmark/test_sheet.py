"""The page has all words, tables, figures and claims, is whole, and nothing in it can break it; so has the Markdown."""

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from restive.benchmark.contest import Contest, write_contest
from restive.benchmark.cost import Costs
from restive.benchmark.fields import CONTESTANTS, CONTROLS
from restive.benchmark.scores import BOUND, Scores
from restive.benchmark.words import tell_field

MakeScores = Callable[..., Scores]
COSTS = Costs({states: dict.fromkeys(CONTESTANTS, 10.0 * states) for states in (2, 10)})
EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def contest(make_scores: MakeScores) -> Contest:
    made = Contest(make_scores(rates={BOUND: 41.0, "sticky/wiql": 39.9}, others=True), COSTS)
    made.about["machine"] = EVIL
    return made


@pytest.fixture(scope="module")
def folder(contest: Contest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("comparison")
    (made / "figures").mkdir()
    write_contest(contest, made, f"restive compare {EVIL}", made / "page.md")
    return made


def read(folder: Path, name: str) -> str:
    return (folder / name).read_text(encoding="utf-8")


class Outline(HTMLParser):
    """Ids and links; fails on a tag that is closed out of turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        self.open += [tag] * (tag != "meta")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.ids += [str(told) for name, told in attrs if name == "id"]
        self.links += [str(told) for name, told in attrs if name in ("href", "src", "xlink:href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_needs_nothing_and_all_links_lead_somewhere_in_it(folder: Path) -> None:
    outline = Outline(read(folder, "comparison.html"))
    assert outline.open == []
    assert len(outline.ids) == len(set(outline.ids))
    assert {link.removeprefix("#") for link in outline.links} <= set(outline.ids)
    assert not outline.tags & {"script", "link", "img", "iframe"}


def test_what_was_named_by_others_cannot_break_the_page(folder: Path) -> None:
    assert EVIL not in read(folder, "comparison.html")
    assert read(folder, "comparison.html").count("&lt;script&gt;") == 3  # the machine twice, and the command


def test_words_tables_and_claims_are_on_the_page_and_in_the_markdown(contest: Contest, folder: Path) -> None:
    html = re.sub(r"&nbsp;", " ", read(folder, "comparison.html")).replace("&#x27;", "'")
    flat = " ".join(read(folder, "page.md").replace("\\", "").split())
    match = contest.scores.matches["sticky"]
    sentences = [*contest.advice, tell_field(match), match.field.about, *(claim.sentence for claim in contest.claims)]
    for sentence in sentences:
        assert sentence in html
        assert sentence in flat
    for title in ("Ranks by step 1000", "Ranks by step 100", "Gap closed in sticky", "Cost of a step"):
        assert title in html
        assert title in flat
    assert html.count("<figure>") == 2


def test_markdown_lines_are_short_but_for_tables_and_its_tables_are_even(folder: Path) -> None:
    lines = read(folder, "page.md").splitlines()
    assert max(len(line) for line in lines if not line.startswith("|")) <= 120
    tables = re.findall(r"(?:^\|.*\n)+", read(folder, "page.md"), re.MULTILINE)
    assert len(tables) == 2 + 2 * bool(CONTROLS) + 3 + 1 + 1
    for table in tables:
        assert len({re.sub(r"\\\|", "", line).count("|") for line in table.splitlines()}) == 1


def test_the_data_have_every_number_of_every_field(contest: Contest, folder: Path) -> None:
    told = json.loads(read(folder, "comparison.json"))
    assert told == json.loads(json.dumps(contest.as_json()))
    assert [field["field"] for field in told["fields"]] == ["two-state", "ten-state", "sticky"]
    sticky = told["fields"][2]
    assert sticky["gap_closed"]["lagrange"]["100"]["value"] == pytest.approx(0.9)
    assert sticky["gap_closed"][BOUND]["1000"]["low"] == pytest.approx(1.1)
    assert sticky["ranks"]["1000"]["wiql"] == {"rank": 1, "level": True}
    assert sticky["ranks"]["1000"]["lagrange"] == {"rank": 2, "level": False}
    assert told["advice"] == contest.advice
    assert {claim["verdict"] for claim in told["claims"]} <= {"holds", "fails", "undecided"}
    assert len(told["costs"]) == 2 * len(CONTESTANTS)
    assert (told["seed"], told["size"]) == (0, "quick")


def test_figures_are_written_in_three_formats(folder: Path) -> None:
    names = {path.name for path in (folder / "figures").iterdir()}
    assert names == {f"{name}.{kind}" for name in ("overview", "fields") for kind in ("png", "svg", "pdf")}


def test_slow_policies_are_said_to_have_played_fewer_runs(folder: Path) -> None:
    assert "2 runs of each instance; thompson-whittle and cet-whittle, which take long, play 1" in read(
        folder, "comparison.html"
    )


def test_without_costs_nothing_is_said_of_them(make_scores: MakeScores, tmp_path: Path) -> None:
    (tmp_path / "figures").mkdir()
    write_contest(Contest(make_scores(), None), tmp_path, "", tmp_path / "page.md")
    for name in ("comparison.html", "page.md"):
        assert "Cost" not in read(tmp_path, name)
        assert "cheapest" not in read(tmp_path, name)
    assert json.loads(read(tmp_path, "comparison.json"))["costs"] is None


def test_the_claims_alone_make_a_page_too(make_scores: MakeScores, tmp_path: Path) -> None:
    (tmp_path / "figures").mkdir()
    write_contest(Contest(make_scores(fields=[], others=True), None), tmp_path, "", tmp_path / "page.md")
    assert Outline(read(tmp_path, "comparison.html")).open == []
    assert "never below egt" in read(tmp_path, "page.md")
    assert list((tmp_path / "figures").iterdir()) == []
