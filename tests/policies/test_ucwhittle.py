"""UCWhittle's plan is the Whittle index of the most hopeful model, at the price that the budget asks for."""

import math

import numpy as np
import pytest

from restive import InputError, World, make_policy, make_problems, simulate
from restive.contract import as_ranking
from restive.policies.ucwhittle import UCWhittle, UCWhittleBelief
from restive.solvers.whittle import whittle_indices


def play(policy: UCWhittle, world: World, steps: int) -> UCWhittleBelief:
    belief, state = policy.start(world.shape), world.first_states()
    for step in range(steps):
        draws = world.draws(step)
        action = world.choose(as_ranking(policy.rank(belief, state, draws), world.shape, policy.name), draws)
        outcome = world.advance(state, action, draws)
        policy.learn(belief, state, action, outcome.reward, outcome.after)
        state = outcome.after
    return belief


def hopeful_by_hand(belief: UCWhittleBelief, run: int, agent: int, step: int, price: float, scale: float) -> np.ndarray:
    """The best of all corners of the box of a two-state agent, by value iteration for each."""
    moves, size = belief.counts.moves[run, agent], belief.counts.moves.shape[1]
    rows = []
    for action in range(2):
        for state in range(2):
            visits = moves[action, state].sum()
            share = moves[action, state, 1] / visits if visits else 0.5
            radius = scale * math.sqrt(2 * 2 * math.log(2 * 2 * 2 * size * step**4 / 1e-3) / max(1, visits))
            rows.append((max(0.0, share - radius), min(1.0, share + radius)))
    best, worth = None, -math.inf
    for corner in np.ndindex(2, 2, 2, 2):
        up = np.array([row[side] for row, side in zip(rows, corner, strict=True)]).reshape(2, 2)
        model = np.stack([1 - up, up], axis=-1)
        value = np.zeros(2)
        for _ in range(400):
            both = 0.9 * model @ value - [[0.0], [price]]
            value = np.array([0.0, 1.0]) + np.max(both, axis=0)
        # The rows of an action that is not taken do not matter for the value: of equal ones, the most hopeful again.
        hope = value.sum() + 1e-3 * both.sum()
        if hope > worth + 1e-9:
            best, worth = model, hope
    assert best is not None
    return best


@pytest.mark.parametrize("scale", [1.0, 0.5, 0.1])
def test_indices_are_those_of_the_most_optimistic_corner_of_the_box(scale: float) -> None:
    world = World(make_problems("two-state-v1", agents=4, budget=1, seed=5)[0], runs=2, seed=3)
    policy = UCWhittle(every=1000, C=scale)
    belief = play(policy, world, 600)
    price = belief.price.copy()
    late = World(make_problems("two-state-v1", agents=4, budget=1, seed=5)[0], runs=2, seed=3).draws(1000)
    policy.rank(belief, np.zeros((2, 4), np.int64), late)
    for run in range(2):
        for agent in range(4):
            model = hopeful_by_hand(belief, run, agent, 1000, price[run], scale)
            expected = whittle_indices(model[None], np.array([[0.0, 1.0]]), 0.9).value[0]
            np.testing.assert_allclose(belief.indices[run, agent], expected, atol=1e-6)


def test_it_plans_only_every_so_many_steps_and_then_moves_the_price() -> None:
    world = World(make_problems("two-state-v1", agents=6, budget=2, seed=1)[0], runs=3, seed=0)
    policy = UCWhittle(every=2000)
    belief = play(policy, world, 4001)
    worth, price = belief.indices.copy(), belief.price.copy()
    state = np.ones((3, 6), np.int64)
    policy.rank(belief, state, world.draws(4020))
    np.testing.assert_array_equal(belief.indices, worth)
    policy.rank(belief, state, world.draws(6000))
    assert not np.array_equal(belief.indices, worth)
    np.testing.assert_array_equal(belief.price, np.sort(belief.indices[:, :, 1], axis=1)[:, -2])
    assert not np.array_equal(belief.price, price)


def test_ranking_twice_in_a_planning_step_changes_nothing() -> None:
    world = World(make_problems("two-state-v1", agents=6, budget=2, seed=1)[0], runs=3, seed=0)
    policy = UCWhittle(every=2000)
    belief, state = play(policy, world, 4000), np.ones((3, 6), np.int64)
    first = policy.rank(belief, state, world.draws(4000)).priority
    price = belief.price.copy()
    np.testing.assert_array_equal(policy.rank(belief, state, world.draws(4000)).priority, first)
    np.testing.assert_array_equal(belief.price, price)


def test_it_learns_in_the_long_run() -> None:
    problems = make_problems("two-state-v1", instances=4, agents=10, budget=2, seed=11)
    traces = {name: simulate(problems, name, horizon=6000, runs=2, seed=1) for name in ("ucwhittle", "random")}
    oracle = simulate(problems, "whittle-oracle", horizon=6000, runs=2, seed=1)
    late = {name: trace.reward[:, -1000:].mean() for name, trace in traces.items()}
    share = (late["ucwhittle"] - late["random"]) / (oracle.reward[:, -1000:].mean() - late["random"])
    assert 0.6 < share < 1.05


@pytest.mark.parametrize("settings", ["discount=1", "discount=0", "delta=0", "every=0", "every=2.5", "C=-1", "C=nan"])
def test_invalid_settings_are_refused(settings: str) -> None:
    with pytest.raises(InputError, match="ucwhittle: "):
        make_policy(f"ucwhittle:{settings}")
