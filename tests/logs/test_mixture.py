"""Types of people are found where there are some, and not where people differ gradually."""

import numpy as np

from restive import make_problems
from restive.logs.fit import fit
from restive.logs.generate import draw_people, generate_history
from restive.logs.mixture import sample_priors
from restive.logs.model import Choice, Prior, center
from restive.logs.model_selection import choose, score_people
from restive.logs.row_prior import log_likelihood
from restive.problem import Problem

ROWS = np.array(
    [[[[0.9, 0.1], [0.8, 0.2]], [[0.2, 0.8], [0.3, 0.7]]], [[[0.3, 0.7], [0.2, 0.8]], [[0.4, 0.6], [0.1, 0.9]]]]
)


def make_types(people: int) -> Problem:
    """Two types with shares 1/4 and 3/4."""
    return Problem(ROWS[(np.arange(people) % 4 > 0).astype(int)], [0.0, 1.0], 1)


def test_types_are_recovered_with_their_shares() -> None:
    problem = make_types(400)
    model = fit(generate_history(problem, 15, 1), held_out=False)
    assert model.prior.share.size == 2
    assert np.abs(model.prior.share - [0.75, 0.25]).max() < 0.06
    mean = model.prior.alpha / model.prior.alpha.sum(axis=-1, keepdims=True)
    assert np.abs(mean - ROWS[::-1]).max() < 0.06
    assert np.abs(model.posterior_mean() - problem.transition).mean() < 0.05
    assert (model.responsibility().argmax(axis=1) == (np.arange(400) % 4 == 0)).mean() > 0.95
    drawn = model.newcomers(1, 20_000)
    assert np.abs(drawn.mean(axis=0) - model.draws[1].mean()).max() < 0.02
    assert "People are of 2 types" in " ".join(model.sections()[1].sentences)


def test_people_who_differ_gradually_are_of_one_type() -> None:
    for seed in range(3):
        problem = draw_people(np.full((2, 3, 3), 1.5), np.arange(3.0), 300, seed)
        assert choose(generate_history(problem, 15, seed).counts, None, np.random.default_rng(seed)).types == 1


def test_few_people_are_of_one_type_without_a_choice() -> None:
    counts = generate_history(make_types(40), 15, 1).counts
    assert choose(counts, None, np.random.default_rng(1)) == Choice()


def test_scores_of_people_are_posterior_predictive() -> None:
    counts = generate_history(make_types(6), 5, 1).counts
    prior = Prior(np.array([0.4, 0.6]), ROWS * 3)
    expected = np.log(np.exp(log_likelihood(prior.alpha, counts)) @ prior.share)
    assert np.allclose(score_people((prior, prior), counts), expected)


def test_the_center_of_equal_draws_is_each_of_them() -> None:
    prior = Prior(np.array([0.4, 0.6]), ROWS * 3)
    assert np.allclose(center((prior, prior)).alpha, prior.alpha)


def test_a_mixture_of_one_type_is_that_of_its_rows() -> None:
    counts = generate_history(make_problems("two-state-v1", instances=1)[0], 10, 1).counts
    one = center(sample_priors(counts, 1, 100, np.random.default_rng(1)))
    assert one.alpha.shape == (1, 2, 2, 2)
