"""Half-lives of moves: none if nothing changes, better predictions if something does, and one weight everywhere."""

from pathlib import Path

import numpy as np
import pytest

from restive.contract import Past, Shape
from restive.desk.config import Config
from restive.desk.warm_start import make_warm_start
from restive.errors import InputError
from restive.logs.acceptance.fit import check_forgetting
from restive.logs.calibration import list_moves
from restive.logs.candidate import PastModel
from restive.logs.fit import fit
from restive.logs.generate import draw_people, generate_history
from restive.logs.half_life import count_weighted, find_half_life, score_half_life
from restive.logs.history import History
from restive.logs.model import FittedModel

VALUE = np.array([0.0, 1.0])
ALPHA = np.array([[[6.0, 2.0], [3.0, 5.0]], [[2.0, 6.0], [1.0, 7.0]]])


def make_changed(people: int = 80, rounds: int = 24) -> History:
    """Acting changes nothing from half-time on."""
    problem = draw_people(ALPHA, VALUE, people, seed=1)
    later = problem.replace(transition=np.repeat(problem.transition[:, :1], 2, axis=1))
    return generate_history(problem.change_to(later, rounds // 2), rounds, seed=2)


def test_forgetting_is_chosen_hardly_ever_without_and_gains_with_a_change() -> None:
    results = check_forgetting(quick=True)
    assert len(results) == 5
    assert all(result.holds for result in results), results


def test_scores_are_those_of_predicting_each_move_by_hand() -> None:
    history = generate_history(draw_people(ALPHA, VALUE, 1, seed=1), 6, seed=2)
    keep, by_round = 0.5, np.zeros((6, 2, 2, 2), np.int64)
    moves = (history.round - 1, history.action, history.state, history.next_state)
    np.add.at(by_round, moves, 1)
    found = score_half_life(history.agent, *moves, by_round, keep, 1)
    # With one person, the pooled row and the own moves are the same ones, so that every weight predicts from them alone.
    best = np.full(4, -np.inf)
    for weight in np.append(2.0 ** np.arange(-1, 10), 1e9):
        total = np.zeros(4)
        for j in range(6):
            own = np.zeros(2)
            for i in range(j):
                if (history.action[i], history.state[i]) == (history.action[j], history.state[j]):
                    own[history.next_state[i]] += keep ** (j - 1 - i)
            row = (weight * (own + 0.5) / (own.sum() + 1) + own) / (weight + own.sum())
            total[history.action[j] * 2 + history.state[j]] += np.log(row[history.next_state[j]])
        best = np.maximum(best, total)
    assert found[0] == pytest.approx(best.sum())


def test_weights_halve_with_each_half_life_and_are_those_of_predictions() -> None:
    history = make_changed(people=5)
    assert (count_weighted(history, None) == history.counts).all()
    counts = count_weighted(history, 3.0)
    by_hand = np.zeros_like(counts)
    rows = (history.agent, history.action, history.state, history.next_state)
    np.add.at(by_hand, rows, 0.5 ** ((24 - history.round) / 3))
    assert counts == pytest.approx(by_hand)
    before, last = list_moves(history, 3.0).before, history.round == 24
    early = count_weighted(history.select(history.round < 24), 3.0, now=23)
    at = (history.agent[last], history.action[last], history.state[last])
    assert before[last] == pytest.approx(early[at])


def test_the_model_says_and_keeps_its_half_life(tmp_path: Path) -> None:
    history = make_changed()
    model = fit(history, draws=20, types=2)
    assert model.forgetting.half_life is not None
    assert model.counts == pytest.approx(count_weighted(history, model.forgetting.half_life))
    said = " ".join(sentence for section in model.sections() for sentence in section.sentences)
    assert f"A move counts half after {model.forgetting.half_life:g} rounds" in said
    assert model.as_json()["forgetting"]["half_life"] == model.forgetting.half_life
    assert set(model.held_out) == {"rounds", "people"}
    model.save(tmp_path / "model.parquet")
    again = FittedModel.load(tmp_path / "model.parquet")
    assert again.forgetting == model.forgetting
    assert (again.posterior_mean() == model.posterior_mean()).all()


def test_evaluation_and_warm_start_use_the_weighted_moves() -> None:
    history = make_changed()
    model = fit(history, draws=2, types=1, held_out=False, half_life=5)
    past = PastModel.of(history, model)
    assert not past.model.counts.any()
    assert past.rows(25) == pytest.approx(model.posterior_mean())
    config = Config(states=history.states, rewards=(0.0, 1.0), budget=5, policy="lagrange")
    _, event = make_warm_start(model, config)
    assert event.moves.sum(axis=0) == pytest.approx(model.counts.sum(axis=0), abs=0.5)
    shape = Shape(1, len(model.agents), 2, 5, None, np.ones(1))
    assert Past.of_runs([model], shape).moves.sum() <= model.counts.sum() + 4


def test_none_and_numbers_are_taken_as_given_and_others_are_refused() -> None:
    history = make_changed()
    assert find_half_life(history, "none").half_life is None
    assert find_half_life(history, None).half_life is None
    assert find_half_life(history, "7.5").half_life == 7.5
    for wrong in ("soon", "0", "-3", "nan", "inf"):
        with pytest.raises(InputError, match="must be auto, none or a number of rounds above 0"):
            find_half_life(history, wrong)
