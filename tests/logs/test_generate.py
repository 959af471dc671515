"""Generated histories follow the problem and the logging rule."""

import numpy as np

from restive import make_problems
from restive.logs.fit import fit
from restive.logs.generate import generate_history


def test_shares_of_moves_and_actions_approach_the_truth() -> None:
    problem = make_problems("two-state-v1", instances=1, agents=4, budget=1)[0]
    history = generate_history(problem, rounds=20_000, seed=3, rule=np.array([0.2, 0.6]))
    rows = history.counts / history.counts.sum(axis=-1, keepdims=True)
    assert np.abs(rows - problem.transition).max() < 0.03
    assert [history.action[history.state == s].mean().round(1) for s in range(2)] == [0.2, 0.6]
    assert history.select(history.round <= 5).agent.size == 20


def test_a_model_has_the_people_of_its_history() -> None:
    model = fit(generate_history(make_problems("two-state-v1", instances=1)[0], rounds=10, seed=3))
    assert model.draw(3).shape == model.posterior_mean().shape == (50, 2, 2, 2)
    assert model.problem(5).budget == 5
