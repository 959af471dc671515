"""Curves give the means that their sums say, and boards compare policies instance by instance."""

import numpy as np
import pytest

from restive import make_problems, simulate
from restive.paper.curves import BUDGETS, Board, Curve, Scene, growth, read_curve
from restive.paper.experiment import Results
from restive.paper.standings import leads
from restive.paper.tasks import carry_out

SCENE = Scene("two-state-v1", instances=4, runs=2, noise=0.5, seed=3, horizon=100)
POLICIES = ("egt", "wiql", "random", "whittle-oracle")


@pytest.fixture(scope="module")
def board() -> Board:
    works = [SCENE.work(policy, *setting) for setting in SCENE.settings() for policy in POLICIES]
    return Board(SCENE, Results({work.digest(): carry_out(work.task, work.settings).columns for work in works}))


def test_a_curve_gives_means_up_to_and_between_kept_steps() -> None:
    curve = Curve(np.array([1, 2, 4]), np.array([[1.0, 3.0, 9.0]]), np.zeros((1, 3)))
    assert curve.mean(2).tolist() == [1.5]
    assert curve.between(2, 4).tolist() == [3.0]
    assert curve.running_mean().tolist() == [[1.0, 1.5, 2.25]]
    with pytest.raises(AssertionError, match="step 3 was not kept"):
        curve.mean(3)


def test_leads_are_shares_of_the_gap_of_the_traces_themselves(board: Board) -> None:
    problems = make_problems("two-state-v1", instances=4, agents=50, budget=10, seed=3)
    traces = {policy: simulate(problems, policy, 100, runs=2, seed=3, noise=0.5) for policy in POLICIES}
    wanted = traces["egt"].gap_closed(traces["random"], traces["whittle-oracle"])
    found = board.gap_closed("egt", 10, 0.5, 100)
    np.testing.assert_allclose([found.mean, found.low, found.high], [wanted.mean, wanted.low, wanted.high], rtol=1e-9)
    lead = board.lead("egt", "wiql", 10, 0.5, 100).mean
    assert lead == pytest.approx(found.mean - board.gap_closed("wiql", 10, 0.5, 100).mean)


def test_who_does_not_learn_is_played_once_for_both_noises() -> None:
    assert SCENE.work("random", 5, 0.5) == SCENE.work("random", 5, 0.0)
    assert SCENE.work("whittle-oracle", 5, 0.5) == SCENE.work("whittle-oracle", 5, 0.0)
    assert SCENE.work("egt", 5, 0.5) != SCENE.work("egt", 5, 0.0)


def test_parts_name_budget_noise_and_step(board: Board) -> None:
    names = [part.setting for part in leads(board, "egt", "wiql", 100)]
    assert names[0] == "B = 5, noiseless, t = 100"
    assert names[-1] == "B = 20, noise variance 0.5, t = 100"
    assert len(names) == 2 * len(BUDGETS)


def test_growth_is_an_exponent() -> None:
    steps = np.array([10.0, 100.0])
    for exponent in (0.0, 0.5, 1.0, 2.0):
        late, early = np.full(3, steps[1] ** exponent), np.full(3, steps[0] ** exponent)
        assert growth(late, early).mean == pytest.approx(exponent)


def test_columns_of_a_bound_have_no_cost() -> None:
    columns = {"instance": np.zeros(2, int), "step": np.array([1, 2]), "reward": np.array([3.0, 5.0])}
    assert read_curve(columns).cost.tolist() == [[0.0, 0.0]]
