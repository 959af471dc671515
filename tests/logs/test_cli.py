"""Options that verbs share: they are replaced by the history that they name and by the place of the answer."""

from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from restive.errors import InputError, parse_pairs
from restive.logs.cli import logs_verb
from restive.logs.options import split_numbers

ROWS = ("who,time,state,action", "ann,1,low,yes", "ann,2,high,no", "ben,1,low,no", "ben,2,low,no")


@pytest.fixture
def table(tmp_path: Path) -> str:
    (tmp_path / "calls.csv").write_text("\n".join(ROWS))
    return str(tmp_path / "calls.csv")


def call(*words: str) -> tuple[Any, dict[str, Any]]:
    """The result of a verb with an argument and an option of its own, and what it was called with."""
    app, seen = typer.Typer(), dict[str, Any]()

    @app.command()
    @logs_verb
    def verb(history: object, output: object, budget: Annotated[int, typer.Option(help="B.")] = 3) -> None:
        """A verb."""
        seen.update(history=history, output=output, budget=budget)

    return CliRunner().invoke(app, list(words)), seen


def test_a_verb_gets_its_history_its_output_and_its_own_options(table: str, tmp_path: Path) -> None:
    options = ("--column", "agent=who", "--action-is", "yes", "--rewards", "low=0,high=2", "--states", "high, low")
    page = tmp_path / "new" / "page.html"
    result, seen = call(table, *options, "--budget", "5", "--json", "--page", str(page))
    assert result.exit_code == 0
    assert seen["budget"] == 5
    assert (seen["output"].json, seen["output"].page, seen["output"].figure) == (True, page, None)
    assert page.parent.is_dir()
    history = seen["history"]
    assert (history.states, history.value.tolist(), history.action.tolist()) == (("high", "low"), [2, 0], [1, 0, 0, 0])
    assert "restive: Fewer than 30 moves" in result.stderr


def test_files_that_cannot_be_written_are_refused_before_the_history_is_read(tmp_path: Path) -> None:
    for words in (("--page", "page.txt"), ("--page", f"{tmp_path}"), ("--figure", "figure.gif")):
        result, seen = call("missing.csv", *words)
        assert isinstance(result.exception, InputError)
        assert "missing.csv" not in result.exception.message
        assert not seen


@pytest.mark.parametrize("text", ["agent", "agent=", "=who"])
def test_a_pair_needs_a_name_and_a_value(text: str) -> None:
    with pytest.raises(InputError, match="is not a pair"):
        parse_pairs([text], "column")


def test_a_reward_is_a_number() -> None:
    with pytest.raises(InputError, match="'much' is not a number, of 'low'"):
        split_numbers("low=much", "rewards")
