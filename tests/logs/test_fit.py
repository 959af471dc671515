"""Fitted models: known effects, the file, draws, what is said."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from restive.cli import app
from restive.errors import InputError
from restive.logs.acceptance.fit import check_coverage
from restive.logs.fit import fit
from restive.logs.fit_report import effect_moments, find_effects, interval
from restive.logs.generate import draw_people, generate_history
from restive.logs.history import History
from restive.logs.model import FittedModel, Prior

HEARTSTEPS = str(Path(__file__).parents[2] / "examples" / "heartsteps.csv")
VALUE = np.array([0.0, 1.0])
ALPHA = np.array([[[6.0, 2.0], [3.0, 5.0]], [[3.0, 5.0], [2.0, 6.0]]])


def make_history(people: int = 400, rounds: int = 12, rule: object = 0.4) -> History:
    return generate_history(draw_people(ALPHA, VALUE, people, seed=1), rounds, 2, np.asarray(rule))


def test_effects_cover_the_truth() -> None:
    model = fit(make_history(), seed=3)
    effects = find_effects(model)
    for effect, truth in zip(effects, (0.375, 0.125), strict=True):
        assert effect.mean.low < truth < effect.mean.high
        assert effect.mean.high - effect.mean.low < 0.12
    spread = np.sqrt(6 * 2 / 8**2 / 9 + 3 * 5 / 8**2 / 9)
    found = effects[0].spread
    assert abs(found.value - spread) < found.high - found.low  # four standard errors


def test_moments_of_effects_are_those_of_drawn_people() -> None:
    prior = Prior(np.array([0.25, 0.75]), np.stack([ALPHA, ALPHA[::-1] * 2]))
    people = [draw_people(alpha, VALUE, size, 1) for alpha, size in zip(prior.alpha, (25_000, 75_000), strict=True)]
    rows = np.concatenate([each.transition for each in people])
    effect = rows[:, 1, :, 1] - rows[:, 0, :, 1]
    mean, spread = effect_moments(prior, VALUE)
    assert mean == pytest.approx(effect.mean(axis=0), abs=0.005)
    assert spread == pytest.approx(effect.std(axis=0), rel=0.02)


def test_expected_rows_lie_between_the_own_and_the_common_ones() -> None:
    model = fit(make_history(rounds=30), types=1, held_out=False)
    own = model.counts / np.maximum(model.counts.sum(axis=-1, keepdims=True), 1)
    seen = model.counts.sum(axis=-1) > 0
    posterior, common = model.posterior_mean(), np.broadcast_to(model.prior.mean(), own.shape)
    low, high = np.minimum(own, common), np.maximum(own, common)
    assert ((posterior >= low - 1e-12) & (posterior <= high + 1e-12))[seen].all()
    drawn = np.mean([model.draw(number) for number in range(100)], axis=0)
    assert np.abs(drawn.mean(axis=0) - posterior.mean(axis=0)).max() < 0.02


def test_a_file_holds_all_of_a_model(tmp_path: Path) -> None:
    model = fit(make_history(60), draws=10)
    model.save(tmp_path / "model.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["model.parquet"]
    loaded = FittedModel.load(tmp_path / "model.parquet")
    assert loaded.as_json() == model.as_json()
    assert loaded.agents.to_list() == model.agents.to_list()
    assert (loaded.draw(7, 5) == model.draw(7, 5)).all()
    assert (loaded.newcomers(3, 4) == model.newcomers(3, 4)).all()
    loaded.save(tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == (tmp_path / "model.parquet").read_bytes()
    (tmp_path / "other.parquet").write_bytes(b"PAR1 and something PAR1")
    with pytest.raises(InputError):
        FittedModel.load(tmp_path / "other.parquet")


def test_the_same_seed_gives_the_same_model() -> None:
    history = make_history(50)
    assert fit(history, 4).as_json() == fit(history, 4).as_json()
    assert fit(history, 4).as_json() != fit(history, 5).as_json()


def test_an_action_that_was_never_taken_is_said_to_be_unknown() -> None:
    model = fit(make_history(rule=[0.0, 0.4]))
    first, second = find_effects(model)
    assert not first.mean.known
    assert second.mean.known
    sentences = model.sections()[0].sentences
    assert sentences[0] == "In 's0' the effect of acting is not known: nobody was seen acted on there."
    assert model.as_json()["effects"][0]["mean"] == [None, None, None]


def test_noisy_rewards_widen_the_intervals() -> None:
    history = make_history(100)
    generator = np.random.default_rng(1)
    noisy = replace(history, reward=history.reward + generator.normal(0, 3, history.reward.size))
    widths = [find_effects(fit(each))[0].mean for each in (history, noisy)]
    assert fit(history).value_error.tolist() == [0.0, 0.0]
    assert widths[1].high - widths[1].low > 1.2 * (widths[0].high - widths[0].low)


def test_interval_holds_a_new_draw_as_often_as_it_says() -> None:
    draws = np.random.default_rng(2).random((199, 4000))
    low, high = interval(draws)
    assert (high - low).mean() == pytest.approx(0.95, abs=0.002)


def test_coverage_in_a_small_form() -> None:
    assert [result for result in check_coverage(quick=True, seed=11) if not result.holds] == []


def test_rows_where_acting_was_not_possible_are_left_out() -> None:
    history = make_history(50)
    possible = (history.round % 3 > 0) | (history.action == 1)
    model = fit(replace(history, available=possible), held_out=False)
    assert model.counts.sum() == possible.sum()
    assert f"{(~possible).sum()} moves in rows where acting was not possible are left out." in model.notes


def test_the_command_prints_and_writes_the_model(tmp_path: Path) -> None:
    out = tmp_path / "model.parquet"
    result = CliRunner().invoke(app, ["fit", HEARTSTEPS, "--out", str(out), "--json"])
    assert result.exit_code == 0, result.output
    model = FittedModel.load(out)
    assert json.loads(result.stdout) == json.loads(json.dumps(model.as_json()))
    assert len(model.agents) == 37
    wrong = CliRunner().invoke(app, ["fit", HEARTSTEPS, "--out", "model.csv"])
    assert str(wrong.exception) == "model.csv: a model is written to a .parquet file."
