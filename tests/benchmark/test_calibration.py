"""A small calibration: shares of intervals that hold the truth, and the table and JSON of the command."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from restive.benchmark.calibration import ROUNDS, calibrate, find_calibrated, tabulate_calibration
from restive.benchmark.scenarios import SCENARIOS
from restive.cli import app
from restive.errors import InputError


def test_stated_benefits_are_true_about_as_often_as_they_say_on_a_template() -> None:
    rows = calibrate(SCENARIOS["general-usage"], instances=2, seed=4711, rounds=(30,))
    (row,) = rows
    assert (row.scenario, row.round) == ("general-usage", 30)
    assert row.people > 0.85
    assert row.now > 0.85
    assert row.relative_error < 0.9
    assert 0.5 < row.known <= 1
    assert tabulate_calibration(rows).rows[0][:2] == ("general-usage", "30")


def test_scenarios_without_one_truth_are_left_out() -> None:
    names = [each.name for each in find_calibrated([])]
    assert "two-state" in names
    assert "pharmacy" in names
    assert not {"change", "slow-drift", "missing-states", "late-rewards"} & set(names)
    with pytest.raises(InputError, match="there is no calibration of a scenario 'chang'"):
        find_calibrated(["chang"])


def test_the_command_prints_the_table_as_json() -> None:
    given = ["compare", "--calibration", "--quick", "--scenario", "two-state", "--seed", "4711", "--json"]
    found = CliRunner().invoke(app, given)
    assert found.exit_code == 0, found.output
    rows = json.loads(found.stdout)
    assert [row["round"] for row in rows] == list(ROUNDS)
    assert np.mean([row["people"] for row in rows]) > 0.85
