"""A solution gathers what each solver says about one problem."""

import json

import numpy as np
import pytest

from restive import make_problems
from restive.solution import solve
from restive.solvers.fluid import plan
from restive.solvers.myopic import benefit, largest_threshold, phi
from restive.solvers.whittle import whittle_indices

PROBLEM = make_problems("many-state-v1", agents=4, budget=2, seed=5, states=3)[0]


def test_every_number_is_its_solvers() -> None:
    found = solve(PROBLEM, horizon=30, discount=0.8)
    np.testing.assert_array_equal(found.phi, phi(PROBLEM.transition, PROBLEM.reward))
    np.testing.assert_array_equal(found.benefit, benefit(PROBLEM.transition, PROBLEM.reward))
    np.testing.assert_array_equal(found.index, whittle_indices(PROBLEM.transition, PROBLEM.reward, 0.8).value)
    assert found.threshold == largest_threshold(found.benefit, 2)
    assert found.bound == plan(PROBLEM.transition, PROBLEM.reward, 2, 30).bound / 30


def test_there_is_a_line_for_each_agent_and_state() -> None:
    lines = list(solve(PROBLEM, horizon=10).rows())
    assert [(line[0], line[1]) for line in lines] == [(n, str(s)) for n in range(4) for s in range(3)]
    assert all(line[3] - line[2] == pytest.approx(line[4]) for line in lines)


def test_a_budget_of_nothing_has_no_largest_threshold_in_json() -> None:
    found = solve(PROBLEM.with_budget(0), horizon=10).as_json()
    assert found["largest_threshold"] is None
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_the_bound_starts_where_the_agents_start() -> None:
    problem = make_problems("counterexample-three-state-v1")[0]
    start = np.eye(3)[[1, 2]]
    assert solve(problem, horizon=2).bound == plan(problem.transition, problem.reward, 1, 2, start).bound / 2
