"""A comparison gives the numbers of its traces, and plays floor and ceiling even when they are not asked for."""

import json
from typing import Any

import numpy as np
import pytest

from restive import InputError, make_problems, simulate
from restive.comparison import compare, landmarks
from restive.policies.egt import Egt

PROBLEMS = make_problems("two-state-v1", instances=4, agents=10, budget=2, seed=1)


def test_rows_come_in_the_order_asked_for_with_the_numbers_of_their_traces() -> None:
    found = compare(PROBLEMS, ["wiql", "egt:eta=0.5"], horizon=95, runs=2, seed=3)
    assert [row.label for row in found.rows] == ["wiql", "egt:eta=0.5"]
    for row in found.rows:
        trace = simulate(PROBLEMS, row.label, 95, runs=2, seed=3)
        np.testing.assert_array_equal(row.trace.reward, trace.reward)
        assert float(row.whole.mean) == pytest.approx(trace.reward.mean())
        assert float(row.end.mean) == pytest.approx(trace.reward[:, -10:].mean())
        floor, ceiling = (simulate(PROBLEMS, name, 95, 2, 3) for name in ("random", "whittle-oracle"))
        share = (trace.reward.mean() - floor.reward.mean()) / (ceiling.reward.mean() - floor.reward.mean())
        assert float(row.gap.mean) == pytest.approx(share)


def test_floor_and_ceiling_are_at_none_and_all_of_the_gap() -> None:
    found = compare(PROBLEMS, ["random", "whittle-oracle"], horizon=30, runs=2, seed=3)
    assert [float(row.gap.mean) for row in found.rows] == [0.0, 1.0]


def test_a_policy_asked_for_twice_is_played_once_and_objects_are_welcome() -> None:
    found = compare(PROBLEMS, ["egt", "egt", Egt(eta=0.5)], horizon=10, runs=1, seed=0)
    assert [row.label for row in found.rows] == ["egt", repr(Egt(eta=0.5))]


def test_progress_reports_every_step_of_every_policy() -> None:
    reported: dict[str, int] = {}

    def progress(label: str, steps: int) -> None:
        reported[label] = reported.get(label, 0) + steps

    compare(PROBLEMS, ["egt"], horizon=33, runs=3, seed=0, progress=progress)
    assert reported == dict.fromkeys(("random", "whittle-oracle", "egt"), 33 * 3 * 4)


def test_landmarks_end_with_the_horizon() -> None:
    assert landmarks(1000) == [10, 20, 50, 100, 200, 500, 1000]
    assert landmarks(7) == [7]


def test_json_is_plain_data() -> None:
    found = compare(PROBLEMS, ["egt"], horizon=10, runs=1, seed=0).as_json()
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_one_problem_is_enough() -> None:
    (row,) = compare(PROBLEMS[0], ["egt"], horizon=10, runs=2).rows
    np.testing.assert_array_equal(row.trace.reward, simulate(PROBLEMS[0], "egt", 10, runs=2).reward)


def test_a_share_of_nothing_has_no_sign() -> None:
    (row,) = compare(PROBLEMS, ["rma2b:explore=10"], horizon=10, runs=1).rows
    assert row.show_gap() == "0.00 [0.00, 0.00]"


def test_no_problem_at_all_is_refused() -> None:
    nothing: Any
    for nothing in ([], None):
        with pytest.raises(InputError, match="problems must be one Problem or a list of at least one"):
            compare(nothing, ["egt"], horizon=5)
