"""The page holds figure and table, needs no network, and escapes what users named."""

import re
from pathlib import Path

from reading import Outline

from restive import Problem, make_problems
from restive.comparison import compare
from restive.report.pages import write_page


def test_the_page_is_whole_and_needs_nothing_from_outside(tmp_path: Path) -> None:
    problems = make_problems("two-state-v1", instances=3, agents=6, budget=2)
    found = compare(problems, ["egt", "wiql"], horizon=60, runs=2, seed=9)
    write_page(found, tmp_path / "page.html", "restive simulate --policy 'a<b'")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert Outline(text).open == []
    assert not re.search(r'(src|href)\s*=\s*"https?:', text)
    assert "<script" not in text
    for part in ("egt", "wiql", "t = 50", "a&lt;b", f"{found.rows[0].whole.mean:.3f}"):
        assert part in text
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_a_name_cannot_break_the_page(tmp_path: Path) -> None:
    problem = make_problems("two-state-v1", agents=4, budget=1)[0]
    named = Problem(problem.transition, problem.reward, 1, name="<script>alert(1)</script>")
    write_page(compare([named], ["egt"], horizon=5, runs=1, seed=0), tmp_path / "page.html")
    assert "<script" not in (tmp_path / "page.html").read_text(encoding="utf-8")
