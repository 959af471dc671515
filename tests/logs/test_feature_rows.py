"""Features in the distribution of rows: against a general optimiser, and used only where they say something."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import gammaln

from restive import make_problems
from restive.logs.feature_rows import find_mode
from restive.logs.fit import fit, standardize
from restive.logs.fit_report import find_effects
from restive.logs.generate import generate_history
from restive.logs.history import History
from restive.logs.model import FittedModel


def make_history(relevance: int, people: int = 300) -> History:
    problem = make_problems("features-v1", instances=1, agents=people, budget=1, seed=5, relevance=relevance)[0]
    history = generate_history(problem, 15, 6)
    return replace(history, features=problem.features, feature_names=("a", "b", "c", "d"))


def test_the_mode_is_that_of_a_general_optimiser() -> None:
    generator = np.random.default_rng(1)
    design = np.append(generator.normal(size=(150, 2)), np.ones((150, 1)), axis=1)
    rows = generator.dirichlet(np.ones(3), 150)
    counts = generator.multinomial(generator.integers(0, 9, 150), rows).astype(float)
    ridge = 0.5

    def loss(parameters: np.ndarray) -> float:
        coefficients, weight = parameters[:-1].reshape(3, 3), np.exp(parameters[-1])
        score = design @ coefficients.T
        mean = np.exp(score - np.logaddexp.reduce(score, axis=1)[:, None])
        seen = counts.sum(axis=1)
        moves = (gammaln(weight * mean + counts) - gammaln(weight * mean)).sum() - (
            gammaln(weight + seen) - gammaln(weight)
        ).sum()
        middle = coefficients[:, -1] - np.logaddexp.reduce(coefficients[:, -1])
        penalty = (coefficients[:, :-1] ** 2).sum() / ridge / 2 + (coefficients[:, -1] ** 2).sum() / 200
        prior = middle.sum() / 3 + parameters[-1] - 2 * np.log1p(weight)
        return float(penalty - moves - prior)

    mode = find_mode(counts, design, ridge)
    oracle = minimize(loss, np.append(mode.coefficients * 0, 1.0), method="BFGS", options={"gtol": 1e-6})
    found = np.append(mode.coefficients, mode.log_weight)
    assert loss(found) == pytest.approx(oracle.fun, abs=1e-4)
    assert found == pytest.approx(oracle.x, abs=0.02)


def test_features_are_used_where_they_say_something(tmp_path: Path) -> None:
    history = make_history(80)
    model = fit(history, held_out=False)
    assert model.feature_names == ("a", "b", "c", "d")
    truth = make_problems("features-v1", instances=1, agents=300, seed=5, relevance=80)[0].transition
    plain = fit(history, types=1, held_out=False)
    errors = [np.abs(each.posterior_mean() - truth).mean() for each in (model, plain)]
    assert errors[0] < 0.75 * errors[1]
    # Newcomers are predicted from their features alone.
    drawn = np.mean([model.newcomers(number, 300, history.features) for number in range(50)], axis=0)
    assert np.abs(drawn - truth).mean() < 0.7 * np.abs(plain.prior.mean() - truth).mean()
    effect = (truth[:, 1, :, 1] - truth[:, 0, :, 1]).mean(axis=0)
    for each, true in zip(find_effects(model), effect, strict=True):
        assert abs(each.mean.value - true) < each.mean.high - each.mean.low  # four standard errors
    model.save(tmp_path / "model.parquet")
    loaded = FittedModel.load(tmp_path / "model.parquet")
    assert loaded.as_json() == model.as_json()
    assert (loaded.draw(3) == model.draw(3)).all()
    assert (loaded.newcomers(3, 5) == model.newcomers(3, 5)).all()
    assert "Features say something about people" in " ".join(model.sections()[1].sentences)


def test_features_that_say_nothing_are_not_used() -> None:
    model = fit(make_history(0))
    assert model.features is None
    assert model.feature_names == ()
    assert "Features did not earn their place" in " ".join(model.sections()[1].sentences)


def test_unknown_features_are_mean_and_constant_ones_are_left_out() -> None:
    history = make_history(0, 4)
    features = np.array([[1.0, 5.0, np.nan], [3.0, 5.0, np.nan], [np.nan, 5.0, np.nan], [2.0, 5.0, np.nan]])
    known = standardize(replace(history, features=features, feature_names=("x", "same", "empty")))
    assert known.names == ("x",)
    assert known.values is not None
    assert known.values.ravel() == pytest.approx([-(1.5**0.5), 1.5**0.5, 0.0, 0.0])
