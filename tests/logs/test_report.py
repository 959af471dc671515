"""One page from a history: the answers of all verbs, the most important first."""

from pathlib import Path

import numpy as np
import pytest

from restive import make_problems
from restive.logs.generate import generate_history
from restive.logs.history import History
from restive.logs.report import Report, report
from restive.logs.sections import write_page


@pytest.fixture(scope="module")
def history() -> History:
    return generate_history(make_problems("two-state-v1", instances=1, agents=40)[0], rounds=20, seed=5, rule=0.4)


@pytest.fixture(scope="module")
def answer(history: History) -> Report:
    parts: list[str] = []
    made = report(history, budgets=(4, 8), rounds=5, progress=parts.append)
    assert parts == ["fitting people's moves", "examining the assumptions", "playing programs", "planning a trial"]
    return made


def test_the_summary_answers_each_question_with_intervals(answer: Report) -> None:
    first = answer.sections()[0]
    assert first.title == "In short"
    who, four, eight, trial, trust = first.sentences
    assert who.startswith("Who gains by acting, in reward of the next round: ")
    assert four.startswith("4 actions a round bring ")
    assert eight.startswith("8 actions a round bring ")
    assert "One more a round is worth up to " in four
    assert trial.startswith("A trial: With 40 people, 20 of them in the control group, over 5 rounds the trial shows")
    assert trust.startswith("Whether this can be trusted: ")
    assert all("[" in sentence for sentence in (who, four, eight))


def test_the_parts_are_those_of_the_verbs(answer: Report) -> None:
    assert answer.forecast is not None
    titles = [section.title for section in answer.sections()]
    assert titles[1].startswith("Who gains: what acting changes")
    assert titles[2] == answer.forecast.sections()[0].title
    assert "What the history cannot say: does the model hold?" in titles
    assert set(answer.as_json()) == {"fit", "forecast", "trial", "examine", "notes"}


def test_the_same_seed_gives_the_same_report(history: History, answer: Report) -> None:
    assert report(history, budgets=(4, 8), rounds=5).as_json() == answer.as_json()


def test_a_page_holds_all_sections(answer: Report, tmp_path: Path) -> None:
    write_page("What it says", answer.sections(), tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("<section>") == len(answer.sections())
    assert page.count("<svg") == sum(section.figure is not None for section in answer.sections())


def test_a_history_with_one_action_has_no_forecast_and_says_why(history: History) -> None:
    waiting = history.select(np.flatnonzero(history.action == 0))
    answer = report(waiting, budgets=(4,), rounds=5)
    assert answer.forecast is None
    summary = answer.sections()[0].sentences
    assert any("only one action" in sentence and "trial" in sentence for sentence in summary)
    assert "it is not clear whether" in summary[0]
    assert answer.as_json()["forecast"] is None
