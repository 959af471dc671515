"""What acting adds, against plain sums, and the largest threshold against a search over all thresholds."""

import numpy as np
import pytest

from restive.solvers.myopic import benefit, largest_threshold, phi
from restive.types import Floats


def random_agents(*shape: int, states: int, seed: int = 0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(states), (*shape, 2, states)), rng.normal(size=(*shape, states))


@pytest.mark.parametrize("shape", [(), (4,), (3, 4), (2, 3, 2)])
def test_arrivals_and_benefits_are_the_plain_sums(shape: tuple[int, ...]) -> None:
    transition, reward = random_agents(*shape, states=5)
    arrival, gain = phi(transition, reward), benefit(transition, reward)
    assert arrival.shape == (*shape, 5, 2)
    assert gain.shape == (*shape, 5)
    assert arrival.flags.c_contiguous
    assert gain.flags.c_contiguous
    for place in np.ndindex(*shape):
        for s in range(5):
            sums = [sum(transition[place][a, s, t] * reward[place][t] for t in range(5)) for a in range(2)]
            assert arrival[place][s] == pytest.approx(sums, abs=1e-14)
            assert gain[place][s] == pytest.approx(sums[1] - sums[0], abs=1e-14)


def test_acting_that_changes_nothing_adds_nothing() -> None:
    transition, reward = random_agents(6, states=3)
    transition[:, 1] = transition[:, 0]
    assert (benefit(transition, reward) == 0).all()


def test_two_state_benefit_is_the_difference_of_two_probabilities() -> None:
    transition, _ = random_agents(50, states=2, seed=1)
    gain = benefit(transition, np.tile([0.0, 1.0], (50, 1)))
    assert gain == pytest.approx(transition[:, 1, :, 1] - transition[:, 0, :, 1])


def allows(gain: Floats, budget: int, threshold: float) -> bool:
    """Whether in every joint state at least `budget` agents are good: enough to look at each agent's worst state."""
    return sum(all(each >= threshold for each in agent) for agent in gain) >= budget


@pytest.mark.parametrize("seed", range(5))
def test_no_larger_threshold_is_allowed(seed: int) -> None:
    gain = np.random.default_rng(seed).normal(size=(7, 3)).round(1)
    for budget in range(1, 8):
        threshold = largest_threshold(gain, budget)
        assert allows(gain, budget, threshold)
        assert not allows(gain, budget, float(np.nextafter(threshold, np.inf)))
        assert threshold == max(value for value in gain.ravel() if allows(gain, budget, value))


def test_thresholds_fall_as_the_budget_grows() -> None:
    gain = np.random.default_rng(9).normal(size=(20, 4))
    thresholds = [largest_threshold(gain, budget) for budget in range(21)]
    assert thresholds[0] == np.inf
    assert thresholds[20] == gain.min()
    assert thresholds == sorted(thresholds, reverse=True)
