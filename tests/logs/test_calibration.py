"""Predictions of held-out moves: earlier moves are counted, types are recognised, slopes are those of statsmodels."""

import numpy as np
import pytest
import statsmodels.api as sm

from restive import make_problems
from restive.logs.calibration import calibrate, find_slope, hold_out, list_moves, predict
from restive.logs.generate import generate_history
from restive.logs.mixture import sample_priors
from restive.logs.model import Prior
from restive.logs.row_prior import log_likelihood


def fit_part(counts: np.ndarray, people: np.ndarray) -> tuple[Prior, ...]:
    return sample_priors(counts, 1, 40, np.random.default_rng(1))


def test_earlier_moves_of_the_same_person_state_and_action_are_counted() -> None:
    history = generate_history(make_problems("two-state-v1", instances=1, agents=3, budget=1)[0], rounds=12, seed=2)
    moves = list_moves(history)
    seen: dict[tuple[int, ...], list[int]] = {}
    for number in range(moves.agent.size):
        cell = (moves.agent[number], moves.action[number], moves.state[number])
        earlier = seen.setdefault(cell, [])
        assert moves.before[number].tolist() == [earlier.count(0), earlier.count(1)]
        earlier.append(moves.next_state[number])


def test_predictions_multiply_to_the_likelihood_of_each_person() -> None:
    history = generate_history(make_problems("two-state-v1", instances=1, agents=20, budget=1)[0], rounds=9, seed=2)
    prior = Prior(np.array([0.3, 0.7]), np.random.default_rng(3).uniform(0.2, 4.0, (2, 2, 2, 2)))
    moves = list_moves(history)
    logs = np.log(predict(prior, moves)[np.arange(moves.agent.size), moves.next_state])
    expected = np.log(np.exp(log_likelihood(prior.alpha, history.counts)) @ prior.share)
    assert np.allclose(np.bincount(moves.agent, logs), expected)


def test_slope_and_clustered_errors_are_those_of_statsmodels() -> None:
    generator = np.random.default_rng(5)
    agent = np.repeat(np.arange(60), 15)
    probability = generator.uniform(0.05, 0.95, agent.size)
    own = np.repeat(generator.normal(size=60), 15)
    event = (generator.random(agent.size) < 1 / (1 + np.exp(-np.log(probability / (1 - probability)) - own))).astype(
        float
    )
    found = find_slope(probability, event, agent)
    design = sm.add_constant(np.log(probability / (1 - probability)))
    oracle = sm.Logit(event, design).fit(disp=0, cov_type="cluster", cov_kwds={"groups": agent})
    assert found[:2] == pytest.approx(oracle.params, rel=1e-6)
    assert found[2:] == pytest.approx(oracle.bse, rel=1e-6)


def test_true_probabilities_are_calibrated_and_sharpened_ones_are_not() -> None:
    generator = np.random.default_rng(6)
    rows = generator.dirichlet(np.ones(3), 20_000)
    after = (generator.random((20_000, 1)) > rows.cumsum(axis=1)).sum(axis=1)
    agent = np.arange(20_000) // 10
    right = calibrate(rows, after, agent)
    value, low, high = right["slope"]
    assert abs(value - 1) < high - low  # four standard errors
    assert right["calibration_error"] < 0.01
    sharp = rows**2 / (rows**2).sum(axis=1, keepdims=True)
    wrong = calibrate(sharp, after, agent)
    assert wrong["slope"][2] < 0.7
    assert wrong["calibration_error"] > 0.05


def test_people_who_differ_are_predicted_better_than_by_one_row() -> None:
    history = generate_history(make_problems("few-types-v1", instances=1, agents=300)[0], rounds=20, seed=4)
    figures = hold_out(history, fit_part)
    assert set(figures) == {"rounds", "people"}
    for each in figures.values():
        gain, error = each["gain_over_pooled"]
        assert gain > 3 * error
        assert each["brier"] < each["brier_pooled"]
        assert sum(number for number, _, _ in each["reliability"]) == each["moves"]


def test_too_few_people_say_nothing() -> None:
    history = generate_history(make_problems("two-state-v1", instances=1, agents=5, budget=1)[0], rounds=9, seed=2)
    assert hold_out(history, fit_part) == {}
