"""Forecasts: intervals without the noise of runs, refusals, sentences, and the small form of the acceptance checks."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from restive import InputError, Problem, make_problems
from restive.cli import app
from restive.logs.acceptance import forecast as checks
from restive.logs.fit import fit
from restive.logs.forecast import AS_NOW, AT_RANDOM, Forecast, Interval, Words, forecast, settle
from restive.logs.generate import generate_history
from restive.logs.model import FittedModel
from restive.logs.sections import show


@pytest.fixture(scope="module")
def model() -> FittedModel:
    problem = make_problems("helpful-v1", instances=1, agents=60, budget=4)[0].replace(states=("away", "engaged"))
    return fit(generate_history(problem, rounds=10, seed=3))


@pytest.fixture(scope="module")
def answer(model: FittedModel) -> Forecast:
    return forecast(model, (3, 12), rounds=8, draws=40, words=Words("call", "week", "engaged weeks"))


def test_the_noise_of_runs_is_taken_out_of_the_spread_of_draws() -> None:
    generator = np.random.default_rng(5)
    draws = generator.normal(10, 2, 3000)
    runs = draws[:, None] + generator.normal(0, 3, (3000, 4))
    runs[750:, 1:] = np.nan  # three quarters are played once
    settled = settle(runs)
    assert settled.std() == pytest.approx(2, rel=0.08)
    assert np.nanmean(runs, axis=1).std() > 2.4
    assert settled.mean() == pytest.approx(10, abs=0.25)
    assert np.array_equal(settle(draws[:, None]), draws)


def test_a_spread_that_is_lost_in_noise_is_not_shown_as_none() -> None:
    runs = np.random.default_rng(6).normal(0, 1, (100, 4))
    assert 0.05 < settle(runs).std() < 0.5


def test_more_actions_bring_more_and_choosing_brings_more_than_chance(answer: Forecast) -> None:
    assert answer.best(12).lift.mean > answer.best(3).lift.mean > 0
    for row in answer.rows:
        assert row.lift.low <= row.lift.mean <= row.lift.high
        assert row.seen.low < row.lift.low
        assert row.lift.high < row.seen.high
    for budget in (3, 12):
        rows = {row.policy: row for row in answer.rows if row.budget == budget}
        assert list(rows) == ["lagrange", "informed", AT_RANDOM, AS_NOW]
        assert rows["informed"].over_random.mean > 0
        assert sum(row.best for row in rows.values()) <= 1
        assert rows["informed"].lift.mean == pytest.approx(
            rows[AT_RANDOM].lift.mean + rows["informed"].over_random.mean, abs=1e-9
        )
    for limit in answer.limits:
        assert answer.best(limit.budget).lift.mean < limit.bound.mean
    assert answer.limits[0].worth.mean > answer.limits[1].worth.mean


def test_the_answer_is_said_in_the_words_of_the_program(answer: Forecast, tmp_path: Path) -> None:
    first = answer.sections()[0]
    assert first.sentences[1].startswith(f"12 calls a week, given as {answer.best(12).policy} says, bring about ")
    assert "more engaged weeks over 8 weeks than acting on nobody" in first.sentences[1]
    assert json.loads(json.dumps(answer.as_json(), allow_nan=False))["programs"][0]["budget"] == 3
    show(answer, "Forecast", json=True, page=tmp_path / "page.html", figure=tmp_path / "figure.svg")
    assert "12 calls a week" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_the_same_seed_gives_the_same_answer_with_any_number_of_threads(model: FittedModel) -> None:
    one, two = (forecast(model, (5,), rounds=5, draws=20, seed=3, threads=threads).as_json() for threads in (1, 2))
    assert one == two
    assert one != forecast(model, (5,), rounds=5, draws=20, seed=4).as_json()


def test_budgets_are_by_default_around_that_of_now(model: FittedModel) -> None:
    now = round(model.logged.actions_per_round)
    short = forecast(model, rounds=2, draws=20, policies=("informed",))
    assert [limit.budget for limit in short.limits] == [now // 2, now, 2 * now]
    assert "rounds of people in engaged" in short.sections()[0].sentences[0]


def test_a_history_with_one_action_is_refused(model: FittedModel) -> None:
    counts = model.counts.copy()
    counts[:, 1] = 0
    with pytest.raises(InputError, match=r"nobody was ever acted on.*restive trial plan") as refused:
        forecast(replace(model, counts=counts), (3,))
    assert refused.value.code == "one_action"
    with pytest.raises(InputError, match="everybody was ever acted on"):
        forecast(replace(model, counts=counts[:, ::-1]), (3,))


def test_thinly_known_states_are_named(model: FittedModel) -> None:
    counts = model.counts.copy()
    counts[1:, 1, 1] = 0
    notes = forecast(replace(model, counts=counts), (3,), rounds=2, draws=20, policies=("informed",)).notes
    assert notes[0].startswith("Fewer than 30 moves of people who were acted on are known in engaged")


def test_learners_that_start_from_nothing_are_named(model: FittedModel) -> None:
    small = partial(forecast, model, (5,), rounds=3, draws=20, policies=("lagrange", "egt"))
    assert small(start="warm").notes[0].startswith("What egt would bring with what the history says")
    cold = small(start="cold")
    assert cold.notes[0].startswith("What lagrange and egt would bring")
    assert cold.rows[0].lift.mean < small(start="warm").rows[0].lift.mean
    with pytest.raises(InputError, match="start is 'hot'"):
        small(start="hot")


def test_a_harmful_action_is_best_left_out(model: FittedModel) -> None:
    harmful = replace(model, value=model.value[::-1].copy())
    answer = forecast(harmful, (60,), rounds=6, draws=20, policies=("informed",))
    assert "bring less than doing nothing" in answer.sections()[0].sentences[0]
    assert max(row.best for row in answer.rows) == 0
    assert answer.as_json()["budgets"][0]["people"] == {"mean": None, "low": None, "high": None}


def test_numbers_are_shown_to_two_digits_of_their_interval() -> None:
    assert Interval(1234.4, 1000.0, 1500.0).show() == "1,234 [1,000, 1,500]"
    assert Interval(1.0, 1.0, 1.0).show() == "1 [1, 1]"


def test_the_command_says_the_same_as_the_library(model: FittedModel, tmp_path: Path) -> None:
    path = tmp_path / "model.parquet"
    model.save(path)
    options = ("--budget", "3,6", "--rounds", "4", "--draws", "20", "--policy", "informed", "--json")
    printed = CliRunner().invoke(app, ["forecast", str(path), *options])
    assert printed.exit_code == 0
    answer = forecast(FittedModel.load(path), (3, 6), rounds=4, draws=20, policies=("informed",))
    assert json.loads(printed.stdout) == json.loads(json.dumps(answer.as_json()))
    for wrong, said in (("--budget", "many"), ("--words", "a,b,c,d")):
        assert isinstance(CliRunner().invoke(app, ["forecast", str(path), wrong, said]).exception, InputError)


def test_all_learners_play_on_the_people_of_a_model(model: FittedModel, tmp_path: Path) -> None:
    path = tmp_path / "model.parquet"
    model.save(path)
    options = ("--budget", "5", "--horizon", "5", "--quick", "--out", str(tmp_path), "--json")
    printed = CliRunner().invoke(app, ["compare", "--problem", str(path), *options])
    assert printed.exit_code == 0
    result = json.loads(printed.stdout)
    assert (result["instances"], result["agents"]) == (4, 60)
    assert {"egt", "lagrange", "rma2b"} < {row["policy"] for row in result["policies"]}
    assert (tmp_path / "comparison.html").exists()
    refused = CliRunner().invoke(app, ["simulate", "--problem", str(path), "--agents", "7"]).exception
    assert isinstance(refused, InputError)


def test_a_history_is_a_problem() -> None:
    problem = make_problems("two-state-v1", instances=1, agents=30, budget=3)[0]
    history = generate_history(problem, rounds=300, seed=2)
    own = Problem.from_history(history, budget=7)
    assert own.budget == 7
    assert own.start is not None
    assert own.start.tolist() == history.last_state.tolist()
    assert np.abs(own.transition - problem.transition).mean() < 0.05
    assert np.array_equal(own.transition, Problem.from_history(fit(history, held_out=False), 2).transition)


def test_intervals_hold_the_truth_in_a_few_histories(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(checks.HISTORIES, True, 6)
    results = checks.check_coverage("two states, short", quick=True)
    assert [result for result in results if not result.holds] == []
    assert len(results) == 7
