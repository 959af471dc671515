"""A plan promises the power that simulated trials have, and agrees with the textbook without a model."""

import math
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from restive import InputError, make_problems, plan_trial
from restive.cli import app
from restive.logs.acceptance.trial import check_power
from restive.logs.fit import fit
from restive.logs.generate import generate_history
from restive.logs.trial_plan import smallest_visible_lift, untouched_deviation


def test_without_a_model_it_is_the_textbook() -> None:
    plan = plan_trial(people=785, deviation=0.5, lift=0.1)
    (row,) = plan.rows
    assert row.power == pytest.approx(0.8, abs=0.002)
    assert row.people == pytest.approx(785, abs=2)
    assert row.smallest_lift == pytest.approx(0.1, abs=0.001)


def test_touching_few_people_needs_as_many_fewer() -> None:
    plain, sharp = plan_trial(people=500, deviation=1.0, lift=0.2, touched=0.25).rows
    assert plain.people is not None
    assert sharp.people == pytest.approx(plain.people / 4, rel=0.02)
    assert sharp.error == pytest.approx(plain.error / 2)


def test_the_smallest_lift_of_the_setup_page() -> None:
    assert smallest_visible_lift(300, control=0.1, deviation=0.28) == pytest.approx(0.15, abs=0.005)
    problem = make_problems("two-state-v1", agents=4000)[0]
    deviation = untouched_deviation(problem, rounds=12)
    assert smallest_visible_lift(300, problem=problem, rounds=12) == smallest_visible_lift(300, deviation=deviation)
    assert untouched_deviation(problem, rounds=50) < deviation


def test_a_plan_keeps_its_promise() -> None:
    results = check_power(quick=True, seed=5)
    assert results
    assert all(result.holds for result in results), results


def test_a_plan_of_a_fitted_model_names_people_and_rounds(tmp_path: Path) -> None:
    problem = make_problems("helpful-v1", agents=80, budget=8)[0]
    model = fit(generate_history(problem, rounds=12, seed=3))
    model.save(tmp_path / "model.parquet")
    plan = plan_trial(model, people=120, rounds=8, budget=8, trials=60, seed=2)
    assert [row.estimator for row in plan.rows] == ["base", "subgroup", "reshuffled", "onward"]
    assert plan.lift is not None
    assert plan.lift > 0
    assert plan.best.estimator == "onward"
    assert plan.touched is not None
    assert 0 < plan.touched < 1
    shown = CliRunner().invoke(
        app, ["trial", "plan", str(tmp_path / "model.parquet"), "--people", "120", "--rounds", "8", "--budget", "8",
              "--trials", "60", "--seed", "2", "--json"],
    )  # fmt: skip
    assert shown.exit_code == 0, shown.output
    assert f'"people": {plan.best.people}' in shown.output
    again = plan_trial(model, people=120, rounds=8, budget=8, trials=60, seed=2)
    assert again == plan


def test_a_lift_of_nothing_needs_too_many_people() -> None:
    row = plan_trial(people=100, deviation=1.0, lift=0.0).rows[0]
    assert row.people is None
    assert row.power == pytest.approx(0.05, abs=1e-6)
    assert not math.isnan(row.smallest_lift)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"people": 100}, "standard deviation"),
        ({"people": 100, "deviation": 1.0, "control": 0.0}, "both groups"),
        ({"people": 3, "deviation": 1.0}, "people"),
    ],
)
def test_a_plan_without_what_it_needs_is_refused(settings: dict[str, float], why: str) -> None:
    with pytest.raises(InputError, match=why):
        plan_trial(**settings)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="rounds and budget"):
        plan_trial(make_problems("two-state-v1")[0], people=100)
    assert np.isfinite(plan_trial(people=100, deviation=1.0).rows[0].smallest_lift)
