"""The power of a history, people found by name, and what a warm start brings."""

import numpy as np

from restive import make_problems
from restive.logs.acceptance.warm import check_warm_start
from restive.logs.fit import fit
from restive.logs.generate import generate_history
from restive.logs.history import History
from restive.logs.model import FittedModel
from restive.logs.warm_start import find_power

PROBLEM = make_problems("two-state-v1", instances=1, agents=60, budget=10, seed=2)[0]
OTHER = make_problems("two-state-v1", instances=1, agents=60, budget=10, seed=9)[0]


def changed_history(early: int, late: int) -> History:
    """A history of people who all become others after `early` rounds."""
    first, then = (generate_history(problem, early + late, seed=4) for problem in (PROBLEM, OTHER))
    old = first.round <= early
    rows = {
        name: np.where(old, getattr(first, name), getattr(then, name)) for name in ("state", "action", "next_state")
    }
    return History(**{**vars(first), **rows})


def fit_quickly(history: History) -> FittedModel:
    return fit(history, draws=20, types=1, held_out=False, half_life=None)


def test_moves_count_fully_where_people_stayed_the_same_and_hardly_where_they_changed() -> None:
    stable, changed = generate_history(PROBLEM, 40, seed=4), changed_history(30, 10)
    assert find_power(stable, fit_quickly(stable).prior) >= 0.5
    assert find_power(changed, fit_quickly(changed).prior) <= 0.05
    assert fit_quickly(changed).power == find_power(changed, fit_quickly(changed).prior)
    assert fit(changed, draws=20, types=1, held_out=False, half_life=8).power == 1


def test_people_are_found_by_the_text_of_their_names() -> None:
    model = fit_quickly(generate_history(PROBLEM, 10, seed=4))
    part = model.about(["p3", "somebody new", "p0"])
    np.testing.assert_array_equal(part.counts[[0, 2]], model.counts[[3, 0]])
    assert part.counts[1].sum() == 0
    assert part.last_state[0] == model.last_state[3]
    assert part.agents.to_list() == ["p3", "somebody new", "p0"]


def test_a_right_history_closes_most_of_the_gap_and_a_wrong_one_costs_little() -> None:
    results = check_warm_start(quick=True, seed=5)
    assert len(results) == 5
    assert all(result.holds for result in results), results
