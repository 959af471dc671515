"""Tables fit the console, numbers are never cut, and names are shown as they are."""

import io

import numpy as np
import pytest
from rich.console import Console

from restive import Problem, console, make_problems
from restive.comparison import Comparison, compare
from restive.solution import solve
from restive.stats import Band, band


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    problem = make_problems("two-state-v1", agents=6, budget=2)[0]
    named = Problem(problem.transition, problem.reward, 2, states=("[off]", "[/on]"), name="ward [a] $5")
    return compare(named, ["random", "egt:eta=0.5,gamma=0,exploration=most", "omr-oracle"], horizon=20, runs=3)


def shown(comparison: Comparison, width: int, monkeypatch: pytest.MonkeyPatch) -> str:
    file = io.StringIO()
    monkeypatch.setattr(console, "_console", lambda: Console(file=file, width=width))
    console.print_comparison(comparison)
    return file.getvalue()


@pytest.mark.parametrize(("width", "columns"), [(120, 4), (95, 4), (80, 3), (60, 2), (38, 1)])
def test_a_narrow_terminal_gets_fewer_columns_and_whole_numbers(
    comparison: Comparison, width: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = shown(comparison, width, monkeypatch)
    (head,) = (line for line in text.splitlines() if "policy" in line)
    assert sum(name in head for name in console.COLUMNS) == columns
    assert "…" not in text
    assert all(console.show(row.whole) in text for row in comparison.rows)
    assert max(map(len, text.splitlines())) <= width


def test_names_are_not_markup(
    comparison: Comparison, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "ward [a] $5" in shown(comparison, 100, monkeypatch)
    problem = make_problems("two-state-v1", agents=2, budget=1)[0]
    monkeypatch.undo()
    console.print_solution(solve(Problem(problem.transition, problem.reward, 1, states=("[off]", "[/on]")), horizon=5))
    out = capsys.readouterr().out
    assert "[off]" in out
    assert "[/on]" in out


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([30.0, 31.0], "30.500 ± 0.500"),
        ([1e-5, 3e-5], "0.000020 ± 0.000010"),
        ([7.0], "7.000"),
        ([0.0, 0.0], "0.000 ± 0.000"),
    ],
)
def test_numbers_have_the_digits_they_need(values: list[float], text: str) -> None:
    assert console.show(band(np.array(values))) == text


def test_a_gap_that_is_not_there_is_a_dash() -> None:
    problem = make_problems("two-state-v1", agents=4, budget=0)[0]
    (row,) = compare(problem, "egt", horizon=5, runs=2).rows
    assert row.share() == "–"


def test_a_band_with_nothing_in_it_is_still_shown() -> None:
    zero = np.array(0.0)
    assert console.show(Band(zero, zero, zero, zero)) == "0.000 ± 0.000"
