"""Other models beside the first: pairs of states where memory is found, the last third of the rounds where change is."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from restive.logs.acceptance.examine import World
from restive.logs.alternatives import add_examination, as_pairs, count_pairs, find_alternatives, people_of
from restive.logs.examine import Examination, examine
from restive.logs.fit import fit
from restive.logs.forecast import Forecast, forecast
from restive.logs.history import History
from restive.logs.model import Alternative, FittedModel, Prior
from restive.logs.rollout import Programs, play
from restive.policies.random import Random


@pytest.fixture(scope="module")
def history() -> History:
    """Sixty people who remember one state more."""
    return World(agents=60, rounds=20, memory=0.4, recorded=False).play(3)


@pytest.fixture(scope="module")
def examination(history: History) -> Examination:
    return examine(history, max_shuffles=199)


@pytest.fixture(scope="module")
def model(history: History, examination: Examination) -> FittedModel:
    return add_examination(fit(history, draws=20, types=1, held_out=False), history, examination)


@pytest.fixture(scope="module")
def answer(model: FittedModel) -> Forecast:
    return forecast(model, budgets=(5,), rounds=4, policies=("informed",), draws=20)


def make_path(state: list[int], rounds: list[int], action: int = 0) -> History:
    following = [
        after if then == now + 1 else -1 for now, then, after in zip(rounds, rounds[1:], state[1:], strict=False)
    ]
    size = len(state)
    return History(
        pl.Series(["ann"]), ("bad", "good"), pl.Series(range(1, max(rounds) + 1)), np.zeros(size, np.int64),
        np.array(rounds), np.array(state), np.full(size, action), np.array([*following, -1]), np.full(size, np.nan),
        np.array([0.0, 1.0]),
    )  # fmt: skip


def test_moves_of_pairs_are_those_with_a_known_state_before() -> None:
    counts, last = count_pairs(make_path([0, 1, 1, 0], [1, 2, 3, 4], action=1))
    assert counts.shape == (1, 2, 4, 2)
    assert np.argwhere(counts).tolist() == [[0, 1, 1, 1], [0, 1, 3, 0]]  # (bad, good) to good, (good, good) to bad
    assert last.tolist() == [2]  # good, then bad


def test_moves_across_a_gap_have_no_pair() -> None:
    counts, last = count_pairs(make_path([0, 1, 1, 0], [1, 2, 4, 5]))
    assert np.argwhere(counts).tolist() == []
    assert last.tolist() == [2]


def test_a_pair_leads_only_to_pairs_that_begin_with_its_second_state() -> None:
    rows = np.array([[0.1, 0.9], [0.2, 0.8], [0.3, 0.7], [0.4, 0.6]])
    wanted = [[0.1, 0.9, 0, 0], [0, 0, 0.2, 0.8], [0.3, 0.7, 0, 0], [0, 0, 0.4, 0.6]]
    assert as_pairs(rows, 0.0).tolist() == wanted


def test_people_without_memory_give_the_same_lift_as_pairs(model: FittedModel) -> None:
    rows = 1e9 * np.array([[[0.8, 0.2], [0.4, 0.6]], [[0.5, 0.5], [0.3, 0.7]]])
    plain = Prior(np.ones(1), rows[None])
    doubled = Prior(np.ones(1), np.tile(rows, (1, 2, 1))[None])  # of (bad, bad), (bad, good), (good, bad), (good, good)
    first = replace(model, counts=np.zeros((60, 2, 2, 2)), prior=plain, draws=(plain,))
    pairs = Alternative("memory", np.zeros((60, 2, 4, 2)), model.last_state + 2, doubled, (doubled,))
    programs = Programs((Random(),), (6,), 5, draws=20, bounds=0)
    one, two = play(first, programs), play(first, programs, people=people_of(first, pairs))
    assert two.at_random[0] == pytest.approx(one.at_random[0], rel=1e-3)
    assert two.nobody == pytest.approx(one.nobody, rel=1e-3)
    assert one.at_random[0].mean() > 1


def test_the_last_third_counts_the_moves_of_the_last_third(history: History) -> None:
    (late,) = find_alternatives(history, ["change"])
    assert late.counts.sum() == (history.known & (history.round > 14)).sum()


def test_an_alternative_is_fitted_only_where_examine_asks_for_it(model: FittedModel, examination: Examination) -> None:
    found = {key for key in ("memory", "change") if examination[key].verdict == "does not"}
    assert {each.key for each in model.alternatives} == found == {"memory"}


def test_a_forecast_shows_the_answer_with_memory_beside_the_first(answer: Forecast) -> None:
    beside = answer.as_json()["beside"]["memory"]
    assert [row["policy"] for row in beside] == ["informed", "at random", "as now"]
    section = next(each for each in answer.sections() if "remember" in each.title)
    assert section.table is not None
    assert [row[1] for row in section.table.rows] == [row.lift.show() for row in answer.rows]
    assert [row[2] for row in section.table.rows] != [row[1] for row in section.table.rows]


def test_a_saved_model_keeps_its_alternatives(model: FittedModel, answer: Forecast, tmp_path: Path) -> None:
    model.save(tmp_path / "model.parquet")
    loaded = FittedModel.load(tmp_path / "model.parquet")
    again = forecast(loaded, budgets=(5,), rounds=4, policies=("informed",), draws=20)
    assert again.as_json() == answer.as_json()
