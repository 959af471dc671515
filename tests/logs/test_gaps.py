"""Gaps: which rounds are one, states drawn in it, and what a fit makes of it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from restive.logs.fit import fit
from restive.logs.gaps import Gaps, _draw_gaps, find_gaps
from restive.logs.generate import draw_people, generate_history, hide_states
from restive.logs.history import History
from restive.logs.model import FittedModel
from restive.logs.tables import read_history

TABLE = {
    "agent": ["ann"] * 6 + ["ben"] * 4,
    "time": [1, 2, 3, 4, 5, 6, 1, 2, 4, 5],
    "state": ["low", "", "high", "low", "", "", "low", "", "", "high"],
    "action": [1, 0, 1, 0, 0, 0, 1, 1, 0, 0],
}
ROWS = np.array([[[[0.7, 0.3], [0.4, 0.6]], [[0.2, 0.8], [0.1, 0.9]]]])  # of one person


@pytest.fixture(scope="module")
def history() -> History:
    people = draw_people(np.full((2, 2, 2), 3.0), np.array([0.0, 1.0]), people=40, seed=1)
    return hide_states(generate_history(people, rounds=12, seed=2), 0.25, seed=3)


@pytest.fixture(scope="module")
def model(history: History) -> FittedModel:
    return fit(history, draws=20, types=1, held_out=False)


def test_a_gap_lies_between_known_states_of_one_person_in_consecutive_rounds() -> None:
    gaps = read_history(TABLE, rewards={"low": 0, "high": 1}).gaps  # ann's end and ben's missing row are none
    assert gaps is not None
    assert [part.tolist() for part in gaps] == [[0], [0], [1], [0, 2], [1, 0]]


def test_a_gap_needs_all_its_actions() -> None:
    gaps = find_gaps(np.zeros(3, np.int64), np.arange(3), np.array([0, -1, 1]), np.array([0, -1, 0]))
    assert gaps.agent.size == 0


def test_given_next_states_leave_no_gaps() -> None:
    table = TABLE | {"next_state": ["low"] * 10}
    assert read_history(table, rewards={"low": 0, "high": 1}).gaps is None


def test_states_in_a_gap_are_drawn_with_the_probability_of_their_path() -> None:
    times = 20_000
    each = np.zeros(times, np.int64)
    gaps = Gaps(each, each, each + 1, 3 * np.arange(times + 1), np.tile([0, 1, 0], times))
    counts = np.zeros((1, 2, 2, 2))
    _draw_gaps(*gaps, ROWS, np.random.default_rng(5).random(3 * times), counts)
    wait, act = ROWS[0]
    paths = {(s, t): wait[0, s] * act[s, t] * wait[t, 1] for s in (0, 1) for t in (0, 1)}
    wanted = {pair: probability / sum(paths.values()) for pair, probability in paths.items()}
    drawn = counts[0, 1] / times  # the second move is the only one under the action
    assert all(abs(drawn[pair] - share) < 0.015 for pair, share in wanted.items())
    assert counts.sum() == 3 * times


def test_a_fit_counts_the_moves_in_gaps_and_says_how_many(history: History, model: FittedModel) -> None:
    assert history.gaps is not None
    assert model.counts.sum() == pytest.approx(history.known.sum() + history.gaps.action.size)
    number, moves = history.gaps.agent.size, history.gaps.action.size
    assert any(note.startswith(f"{moves} moves in {number} gaps") for note in model.notes)


def test_a_fit_without_gaps_counts_known_moves_only(history: History) -> None:
    bare = fit(replace(history, gaps=None), draws=20, types=1, held_out=False)
    assert bare.counts.sum() == history.known.sum()
    assert history.select(history.known).gaps is None


def test_a_saved_model_keeps_parts_of_moves(model: FittedModel, tmp_path: Path) -> None:
    model.save(tmp_path / "model.parquet")
    assert (FittedModel.load(tmp_path / "model.parquet").counts == model.counts).all()
    assert (model.counts % 1).any()
