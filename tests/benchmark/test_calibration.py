"""A small calibration: shares of intervals that hold the truth, and the table and JSON of the command."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from restive.benchmark.calibration import (
    ROUNDS,
    Calibration,
    _relative_error,
    _share,
    calibrate,
    find_calibrated,
    summarise_calibration,
    tabulate_calibration,
)
from restive.benchmark.scenarios import SCENARIOS
from restive.cli import app
from restive.errors import InputError
from restive.paper.claims import Part


def test_stated_benefits_are_true_about_as_often_as_they_say_on_a_template() -> None:
    rows = calibrate(SCENARIOS["general-usage"], instances=2, seed=4711, rounds=(30,))
    (row,) = rows
    assert (row.scenario, row.round) == ("general-usage", 30)
    assert row.people.value > 0.85
    assert row.now.value > 0.85
    assert row.people.low < row.people.value < row.people.high
    assert row.relative_error.value < 0.9
    assert 0.5 < row.known <= 1
    assert tabulate_calibration(rows).rows[0][:2] == ("general-usage", "30")


def test_a_row_is_judged_by_its_interval_over_instances() -> None:
    """Two instances: in one 9 of 10 intervals hold the truth, in the other all; the interval of the share is wide."""
    within = np.ones((2, 10, 1), bool)
    within[0, 0] = False
    share = _share("people", within, np.ones((2, 10, 1), bool))
    assert (share.value, share.low < 0.93, share.high) == (0.95, True, 1.0)
    all_hold = _share("means", np.ones((10, 2), bool), np.ones((10, 2), bool))
    assert (all_hold.value, round(all_hold.low, 2), all_hold.high) == (1.0, 0.84, 1.0)  # 20 of 20 prove little
    sure, low = Part("people", 0.95, 0.94, 0.96), Part("means", 0.8, 0.7, 0.9)
    row = Calibration("two-state", 10, sure, share, low, Part("rmse/sd", 0.85, 0.7, 1.0), 1.0)
    assert row.judged() == {"people": "holds", "means": "fails", "rmse/sd": "undecided"}
    assert tabulate_calibration([row]).rows[0][4:6] == ("0.80 [0.70, 0.90] ✗", "0.85 [0.70, 1.00] ?")
    found = summarise_calibration([row])
    assert found[0].startswith("people, wanted from 0.93 to 0.97: 1 of 1 rows. With their intervals 1 hold,")
    assert found[1].startswith(
        "means, wanted from 0.93 to 0.97: 0 of 1 rows. With their intervals 0 hold, 0 are undecided and 1"
    )


def test_what_is_not_known_is_counted_as_such() -> None:
    known = np.zeros((2, 3, 1), bool)
    assert np.isnan(_share("people", known, known).value)
    known[0, 0] = True
    benefit, truth = np.array([1.0, 9.0, 9.0] * 2).reshape(2, 3, 1), np.arange(6.0).reshape(2, 3, 1)
    assert _share("people", known, known).value == 1.0
    assert np.isnan(_relative_error(benefit, truth, known).value)  # one true benefit does not vary


def test_scenarios_without_one_truth_are_left_out() -> None:
    names = [each.name for each in find_calibrated([])]
    assert "two-state" in names
    assert "pharmacy" in names
    assert not {"change", "slow-drift", "missing-states", "late-rewards"} & set(names)
    with pytest.raises(InputError, match="there is no calibration of a scenario 'chang'"):
        find_calibrated(["chang"])


def test_the_command_prints_the_table_as_json_and_writes_a_page(tmp_path: Path) -> None:
    given = ["compare", "--calibration", "--quick", "--scenario", "two-state", "--seed", "4711", "--json"]
    page = tmp_path / "calibration.md"
    found = CliRunner().invoke(app, [*given, "--markdown", str(page)])
    assert found.exit_code == 0, found.output
    rows = json.loads(found.stdout)
    assert [row["round"] for row in rows] == list(ROUNDS)
    assert np.mean([row["people"]["value"] for row in rows]) > 0.85
    text = page.read_text(encoding="utf-8")
    assert "3 instances of each scenario" in text
    assert text.count("\n| two-state |") == len(ROUNDS)
