"""The steps of the tutorial for program teams lead where its page says, with its tables and its words."""

import importlib
import re
from pathlib import Path

import pytest

from restive.desk import Desk
from server.browser.conftest import Windows, run_server

DOCS = Path(__file__).parents[3] / "docs"


def test_the_first_three_weeks_show_every_word_that_the_tutorial_puts_in_bold(
    windows: Windows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    pictures = importlib.import_module("make_pictures")
    seen: list[str] = []
    with Desk(tmp_path / "team.db") as desk, run_server(tmp_path / "team.db", desk) as live:
        page = windows(live).tab()
        pictures.follow_first_weeks(page, tmp_path, lambda name: seen.append(page.inner_text("body")))
        assert len(desk.program("coupons").rounds) == 3
    bold = re.findall(r"\*\*([^*]+)\*\*", pictures.TUTORIAL.read_text(encoding="utf-8"))
    words = [" ".join(each.split()) for each in bold if each != "Bold"]
    shown = " ".join(" ".join(seen).split())
    assert len(words) > 15
    assert [word for word in words if word not in shown] == []
