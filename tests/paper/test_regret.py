"""The regret curve's thresholds, gaps and policy are those of the paper, and its bound that of the proof."""

import numpy as np
import pytest

from restive import make_problems, simulate
from restive.paper.regret_bound import logarithmic, square_root
from restive.paper.tasks.regret import TheoryEgt, gaps, regret, thresholds
from restive.policies.egt import Egt
from restive.solvers.myopic import benefit, largest_threshold
from restive.world import World

GAINS = np.array([[[0.9, 0.8], [0.1, 0.5]]])


def test_ordered_instances_have_one_agent_better_in_all_states() -> None:
    for problem in make_problems("ordered-v1", instances=50, seed=3):
        better, weaker = benefit(problem.transition, problem.reward)
        assert better.min() >= weaker.max()
        assert weaker[1] - weaker[0] >= 0.15
        assert (problem.transition > 0).all()


def test_an_ordered_instance_stays_the_same_when_more_are_asked_for() -> None:
    few, many = (make_problems("ordered-v1", instances=count, seed=3) for count in (2, 9))
    assert [one.transition.tolist() for one in few] == [one.transition.tolist() for one in many[:2]]


@pytest.mark.parametrize(("share", "threshold", "gap"), [(0.1, 0.14, 0.36), (0.5, 0.3, 0.2), (0.9, 0.46, 0.04)])
def test_thresholds_lie_between_the_weaker_benefits(share: float, threshold: float, gap: float) -> None:
    assert thresholds(GAINS, share) == pytest.approx([threshold])
    assert gaps(GAINS, thresholds(GAINS, share)) == pytest.approx([gap])


def test_eps_gt_by_the_theorem_is_eps_gt_with_its_settings_instance_by_instance() -> None:
    problems = make_problems("ordered-v1", instances=3, seed=1)
    columns = regret(0.5, "theory", instances=3, horizon=200, runs=4, seed=1)
    costs = columns["cost"].reshape(3, -1)
    steps = columns["step"][columns["instance"] == 0]
    for number, problem in enumerate(problems):
        gains = benefit(problem.transition, problem.reward)[None]
        gamma = float(thresholds(gains, 0.5)[0])
        player = Egt.theory(2, 1, gap=float(gaps(gains, np.array([gamma]))[0]), gamma=gamma)
        # Alone, an instance would be number 0 and meet other luck: it is played in its place among the others.
        whole = simulate(problems, player, 200, runs=4, seed=1, threshold=gamma)
        own = np.cumsum(whole.cost[whole.instance == number], axis=1).mean(axis=0)
        np.testing.assert_allclose(costs[number], own[steps - 1], rtol=1e-12)


def test_less_exploration_is_a_larger_gap_in_its_formula() -> None:
    world = World(make_problems("ordered-v1", instances=2, seed=1), 2)
    usual, less = (TheoryEgt(0.5, scale).begin(world.shape, world.model) for scale in (1.0, 0.1))
    np.testing.assert_allclose(less.gap_squared, 10 * usual.gap_squared)


def test_nothing_costs_where_all_that_is_acted_on_is_good() -> None:
    problems = make_problems("ordered-v1", instances=4, seed=2)
    gains = np.stack([benefit(problem.transition, problem.reward) for problem in problems])
    for share in (0.1, 0.5, 0.9):
        assert all(
            gamma <= largest_threshold(gain, 1) for gamma, gain in zip(thresholds(gains, share), gains, strict=True)
        )
        assert regret(share, "threshold-oracle", 4, 100, 2, 2)["cost"].max() == 0.0


def test_the_bounds_are_those_of_the_proof_by_hand() -> None:
    steps = np.array([10, 1000])
    by_hand = [0.2 * (2 * 2 * 16 * np.log(step) / 0.2**2 + 12 * 3) for step in steps]
    np.testing.assert_allclose(logarithmic(GAINS, 0.5, steps)[0], by_hand)
    by_hand = [1.0 * np.sqrt(1 * 2 * 16 * 2 * 1 * step * np.log(step)) for step in steps]
    np.testing.assert_allclose(square_root(GAINS, 0.5, steps)[0], by_hand)
