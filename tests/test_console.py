"""Tables fit the terminal, numbers are never cut, names are printed as they are, and errors come with advice."""

import io
import json

import pytest
from rich.console import Console

from restive import Problem, console, make_problems
from restive.comparison import Comparison, compare
from restive.errors import Hint, InputError
from restive.formats import show_mean
from restive.report.tables import tabulate_comparison, tabulate_solution
from restive.solution import solve

HEADS = ("reward per step", "last tenth", "gap closed", "M agent-steps/s")


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    problem = make_problems("two-state-v1", agents=6, budget=2)[0]
    named = Problem(problem.transition, problem.reward, 2, states=("[off]", "[/on]"), name="ward [a] $5")
    return compare(named, ["random", "egt:eta=0.5,gamma=0,exploration=most", "omr-oracle"], horizon=20, runs=3)


def print_comparison(comparison: Comparison, width: int, monkeypatch: pytest.MonkeyPatch) -> str:
    file = io.StringIO()
    monkeypatch.setattr(console, "make_console", lambda: Console(file=file, width=width))
    console.print_report_table(tabulate_comparison(comparison), drop=(HEADS[3], HEADS[1], HEADS[2]))
    return file.getvalue()


@pytest.mark.parametrize(("width", "columns"), [(120, 4), (95, 4), (80, 3), (60, 2), (38, 1)])
def test_a_narrow_terminal_gets_fewer_columns_and_whole_numbers(
    comparison: Comparison, width: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = print_comparison(comparison, width, monkeypatch)
    (head,) = (line for line in text.splitlines() if "policy" in line)
    assert sum(name in head for name in HEADS) == columns
    assert "…" not in text
    assert all(show_mean(float(row.whole.mean), float(row.whole.error)) in text for row in comparison.rows)
    assert max(map(len, text.splitlines())) <= width


def test_names_are_not_markup(
    comparison: Comparison, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "ward [a] $5" in print_comparison(comparison, 100, monkeypatch)
    problem = make_problems("two-state-v1", agents=2, budget=1)[0]
    monkeypatch.undo()
    named = Problem(problem.transition, problem.reward, 1, states=("[off]", "[/on]"))
    console.print_report_table(tabulate_solution(solve(named, horizon=5)))
    out = capsys.readouterr().out
    assert "[off]" in out
    assert "[/on]" in out


def test_columns_without_content_are_left_out_and_unknown_cells_are_dashes(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_table([{"a": 1234, "b": None, "c": ""}, {"a": None, "b": float("nan"), "c": ""}])
    assert [line.strip() for line in capsys.readouterr().out.splitlines()] == ["a", "1,234", "–"]


def test_sentences_stand_below_their_rows(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_table([{"name": "ada"}, {"name": "bob"}], below=["first reason", "second reason"])
    assert capsys.readouterr().out.split() == ["name", "ada", "first", "reason", "bob", "second", "reason"]


def test_a_table_without_rows_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_table([], empty="No programs yet.")
    assert capsys.readouterr().out == "No programs yet.\n"


def test_notices_and_progress_stay_out_of_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_json({"a": [1, None]})
    console.print_notices("wrote list.csv", "round 2 is decided")
    with console.progress_bars({"egt [a]": 3}, overall="all") as advance:
        advance("egt [a]", 3)
    with console.progress_bar("reading") as update:
        update(1, 2)
    out, err = capsys.readouterr()
    assert json.loads(out) == {"a": [1, None]}
    assert err == "restive: wrote list.csv\nrestive: round 2 is decided\n"


def test_every_hint_has_advice_and_a_table_with_faults_says_that_nothing_was_recorded() -> None:
    assert set(console.ADVICE) == set(Hint)
    assert console.advise(InputError("Round 2 is decided.")) == "Round 2 is decided."
    assert console.advise(InputError("Round 2 is decided.", hint=Hint.AGAIN)).startswith(
        "Round 2 is decided. Add --again"
    )
    assert console.advise(InputError("no column", hint=Hint.COLUMNS)).startswith("no column\nIf a column")
    assert console.advise(InputError("row 1", code="invalid_table")) == "row 1\nNothing was recorded."


def test_control_characters_are_shown_as_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "a\x1b[31m\x07\x9b2J\u202eb\r"
    console.print_table([{hostile: hostile, "n": 1}], [hostile], title=hostile, note=hostile, below=[hostile])
    console.print_table([], empty=hostile)
    console.print_text(hostile)
    console.print_line(hostile)
    console.print_notices(hostile)
    shown = capsys.readouterr()
    for text in (shown.out, shown.err):
        assert not [letter for letter in text if not letter.isprintable() and letter != "\n"]
        assert "a\\x1b[31m\\x07\\x9b2J\\u202eb\\r" in text
