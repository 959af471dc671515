"""The Whittle oracle: ranks by indices that a slow search over prices finds too."""

import numpy as np
import pytest

from restive import InputError, World, make_policy, make_problems
from restive.contract import as_ranking
from restive.policies.whittle_oracle import WhittleOracle
from restive.solvers.whittle import whittle_indices
from restive.types import Floats


def gap(transition: Floats, reward: Floats, price: float, discount: float) -> Floats:
    """Q(s, 1) − Q(s, 0) of one agent when every action costs `price`, by value iteration."""
    value = np.zeros(len(reward))
    for _ in range(200):
        worth = np.stack([reward + discount * transition[a] @ value - price * a for a in (0, 1)])
        value = worth.max(axis=0)
    difference: Floats = worth[1] - worth[0]
    return difference


def search_index(transition: Floats, reward: Floats, state: int, discount: float) -> float:
    """The price at which acting and waiting are equally good in `state`, by halving."""
    low, high = -20.0, 20.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if gap(transition, reward, middle, discount)[state] > 0 else (low, middle)
    return low


@pytest.mark.parametrize("states", [2, 3])
def test_the_table_agrees_with_a_search_over_prices(states: int) -> None:
    problems = make_problems("many-state-v1", instances=2, agents=2, budget=1, states=states, seed=12)
    world = World(problems, runs=2)
    table = WhittleOracle().begin(world.shape, world.model).indices
    for i, problem in enumerate(problems):
        for n in range(2):
            for s in range(states):
                slow = search_index(problem.transition[n], problem.reward[n], s, 0.9)
                assert table[i, n, s] == pytest.approx(slow, abs=1e-6)


@pytest.mark.parametrize("discount", [0.5, 0.9, 1.0])
def test_the_largest_indices_of_the_states_are_chosen(discount: float) -> None:
    problems = make_problems("two-state-v1", instances=3, agents=8, budget=3, seed=2)
    world, policy = World(problems, runs=4, seed=3), WhittleOracle(discount=discount)
    belief, state, draws = policy.begin(world.shape, world.model), world.first_states(), world.draws(0)
    action = world.choose(as_ranking(policy.rank(belief, state, draws), world.shape, policy.name), draws)
    for r in range(12):
        index = belief.indices[world.model.instance[r], np.arange(8), state[r]]
        assert index[action[r] == 1].min() > index[action[r] == 0].max()


@pytest.mark.parametrize("discount", ["0", "1.5", "-0.5", "nan"])
def test_an_invalid_discount_is_refused(discount: str) -> None:
    with pytest.raises(InputError, match=f"whittle-oracle: discount is {discount}; it must be above 0, and at most 1"):
        make_policy(f"whittle-oracle:discount={discount}")


def test_the_table_is_that_of_its_discount() -> None:
    problem = make_problems("many-state-v1", agents=4, budget=1, states=3)[0]
    world = World(problem)
    for discount in (0.3, 0.9, 1.0):
        table = WhittleOracle(discount=discount).begin(world.shape, world.model).indices[0]
        np.testing.assert_array_equal(table, whittle_indices(problem.transition, problem.reward, discount).value)
