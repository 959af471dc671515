"""What the verbs say, apart from the verbs."""

import json
from pathlib import Path

import pytest

from desk.test_recommendation import make_advice
from restive.desk.config import Config, Words
from restive.desk.saying import bar, note, print_json, say_advice, say_config
from restive.desk.table_files import read_table_file
from restive.errors import InputError

Printed = pytest.CaptureFixture[str]


def test_a_list_to_read_has_ranks_names_and_who_is_not_on_it(capsys: Printed) -> None:
    say_advice(make_advice(notes=["two remarks", "each on its line"]), None, as_json=False, dry_run=False)
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert lines[0] == "one, round 3: 2 people to act on, then spares"
    assert [line.split()[:2] for line in lines if "%" in line][1:] == [
        ["1", "eve"], ["2", "ann"], ["+1", "(erased)"], ["+2", "fay"],
    ]  # fmt: skip
    assert "Not on the list: 1 by control group, 1 by cooling down." in lines
    assert shown.err == "restive: two remarks\nrestive: each on its line\n"


def test_a_long_list_is_cut_and_says_how_to_see_the_rest(capsys: Printed) -> None:
    say_advice(make_advice(), None, as_json=False, dry_run=False, most=3)
    shown = capsys.readouterr().out
    assert "fay" not in shown
    assert "... and 1 more; --out writes all of them to a file." in shown


def test_prices_of_rules_are_reported_in_the_words_of_the_program(capsys: Printed) -> None:
    advice = make_advice(config=Config(("low", "high"), words=Words(reward_unit="orders a week", every="week")))
    assert advice.found.decided is not None
    advice.found.decided["prices"] = {"never list": 0.123, "cooling down": 0.0, "must list": None}
    say_advice(advice, None, as_json=False, dry_run=False)
    reported = "What rules cost, in orders over the weeks to come: never list 0.12, cooling down 0."
    assert reported in capsys.readouterr().out  # what is not known is left out; 0 is known


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_dry_run_is_called_one_and_writes_no_file(dry_run: bool, capsys: Printed, tmp_path: Path) -> None:
    file = tmp_path / "list.csv"
    say_advice(make_advice(), file, as_json=False, dry_run=dry_run)
    shown = capsys.readouterr()
    assert ("(dry run, nothing recorded)" in shown.out) is dry_run
    assert (f"wrote {file}" in shown.err) is file.exists() is not dry_run
    say_advice(make_advice(), None, as_json=True, dry_run=dry_run)
    assert json.loads(capsys.readouterr().out)["recorded"] is not dry_run


def test_the_whole_list_is_written_however_much_of_it_is_shown(capsys: Printed, tmp_path: Path) -> None:
    say_advice(make_advice(), tmp_path / "list.csv", as_json=False, dry_run=False, most=1)
    assert read_table_file(tmp_path / "list.csv")["agent"].to_list() == ["eve", "ann", "(erased)", "fay"]


def test_a_file_that_cannot_be_written_is_reported_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "list.csv").mkdir()
    with pytest.raises(InputError, match="the list is recorded all the same: restive desk round one 3 --out FILE"):
        say_advice(make_advice(), tmp_path / "list.csv", as_json=False, dry_run=False)


def test_a_config_is_reported_with_all_that_was_settled_and_nothing_else(capsys: Printed) -> None:
    say_config("one", Config(("low", "high"), control=0.0).as_json(), "is ready", as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        "Program one is ready.",
        "States: low, high; worth: reported with each outcome.",
        "Budget: 10 a round. Policy: lagrange.",
    ]
    full = Config(
        ("low", "high"), (0, 1.5), shadow="egt", cool_down=3, shares={"north": 0.5, "south": 0.25}, horizon=12, keep=2
    )
    say_config("one", full.as_json() | {"store": "x.db"}, "is ready", as_json=False)
    reported = capsys.readouterr().out
    for sentence in (
        "worth: 0, 1.5.", "About 10% of the people are never treated", "Shadow, which decides nothing: egt.",
        "Nobody twice in 3 rounds.", "Least share of the list: north 50%, south 25%.", "Rounds in all: 12.",
        "Store: x.db",
    ):  # fmt: skip
        assert sentence in reported


def test_data_has_no_number_that_json_does_not_know() -> None:
    with pytest.raises(ValueError, match="Out of range float"):
        print_json({"x": float("nan")})


def test_remarks_and_bars_stay_out_of_standard_output(capsys: Printed) -> None:
    note(["one", "two"])
    with bar("working") as progress:
        progress(1, 2)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("restive: one\nrestive: two\n")
