"""Beliefs as arrays over agents: rows of some agents are copies, and new agents are added at the end."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from restive import POLICIES, InputError, Simulation, World, make_policy, make_problems
from restive.contract import Draws, Shape
from restive.policies.base import Learner, Policy
from restive.policies.belief import agent_axes, count_agents, flatten, grow, put, require_axes, take, unflatten
from restive.types import Floats, Ints

LEARNERS = [name for name, policy in POLICIES.items() if issubclass(policy, Learner)]
SHARING = ["lagrange", "bcor-like"]  # whose agents learn from each other


def world_of(agents: int = 6, runs: int = 2) -> World:
    problems = make_problems("many-state-v1", agents=agents, budget=2, states=3, seed=4)
    return World(problems, runs=runs, seed=8, noise=0.2, horizon=60)


def played(policy: Policy[Any], steps: int = 25) -> Simulation:
    game = Simulation(world_of(), policy)
    game.advance(steps)
    return game


def copy(belief: Any) -> Any:
    return unflatten(belief, {name: array.copy() for name, array in flatten(belief).items()})


def step_of(game: Simulation) -> tuple[Ints, Ints, Floats, Ints]:
    _, action = game.decide()
    outcome = game.world.advance(game.state, action, game.world.draws(game.step))
    return game.state, action, outcome.reward, outcome.after


def part_of(seen: tuple[Ints, Ints, Floats, Ints], agents: Ints) -> Any:
    return [np.ascontiguousarray(array[:, agents]) for array in seen]


@pytest.mark.parametrize("name", LEARNERS)
def test_declared_axes_are_where_the_number_of_agents_shows(name: str) -> None:
    policy, shape = make_policy(name), world_of().shape._replace(agents=11, states=3)
    belief = policy.begin(shape, world_of().model)
    axes = agent_axes(policy, belief)
    assert list(axes) == list(flatten(belief))
    for field, array in flatten(belief).items():
        axis = axes[field]
        assert 11 not in array.shape if axis is None else array.shape[axis] == 11


def test_axes_of_nested_and_planned_arrays() -> None:
    world, rma2b, random = world_of(), make_policy("rma2b"), make_policy("random")
    axes = agent_axes(rma2b, rma2b.begin(world.shape, world.model))
    assert {name: axis for name, axis in axes.items() if axis is not None} == {
        "counts.moves": 1,
        "counts.arrivals": 1,
        "counts.total": 1,
        "plans.checkpoint": 2,
        "plans.transition": 1,
        "plans.radius": 1,
        "plans.reward": 1,
        "plans.cost": 1,
        "plans.table": 2,
    }
    empty = random.begin(world.shape, world.model)
    assert agent_axes(random, empty) == {}
    assert count_agents(empty, {}) is None


@pytest.mark.parametrize("name", LEARNERS)
def test_a_part_is_a_copy_that_can_be_put_back(name: str) -> None:
    game, some = played(make_policy(name)), np.array([1, 4])
    axes, before = agent_axes(game.policy, game.belief), copy(game.belief)
    part = take(game.belief, axes, some)
    assert type(part) is type(game.belief)
    for field, array in flatten(part).items():
        axis = axes[field]
        if axis is None:
            assert array is flatten(game.belief)[field]
        else:
            np.testing.assert_array_equal(array, np.take(flatten(before)[field], some, axis))
            array[...] = 7
            np.testing.assert_array_equal(flatten(game.belief)[field], flatten(before)[field])
    put(game.belief, axes, some, part)
    for field, array in flatten(game.belief).items():
        axis = axes[field]
        if axis is not None:
            assert (np.take(array, some, axis) == 7).all()
            others = np.array([0, 2, 3, 5])
            np.testing.assert_array_equal(np.take(array, others, axis), np.take(flatten(before)[field], others, axis))


@pytest.mark.parametrize("name", [name for name in LEARNERS if name not in SHARING])
def test_some_agents_are_learnt_from_as_in_a_whole_step_and_the_others_not_at_all(name: str) -> None:
    game, some, others = played(make_policy(name)), np.array([0, 2, 5]), np.array([1, 3, 4])
    axes, seen = agent_axes(game.policy, game.belief), step_of(game)
    whole, partly = copy(game.belief), copy(game.belief)
    game.policy.learn(whole, *seen)
    game.policy.learn_some(partly, some, *part_of(seen, some))
    for field, axis in axes.items():
        before, one, two = (flatten(belief)[field] for belief in (game.belief, whole, partly))
        if axis is not None:
            np.testing.assert_array_equal(np.take(two, some, axis), np.take(one, some, axis), err_msg=field)
            np.testing.assert_array_equal(np.take(two, others, axis), np.take(before, others, axis), err_msg=field)


def test_an_episode_ends_when_some_agents_alone_double_their_visits() -> None:
    policy, shape = make_policy("cet-whittle"), Shape(1, 4, 2, 1, None, np.ones(1))
    belief: Any = policy.begin(shape, world_of().model)
    belief.before[...], belief.visits[...], belief.limit[...], belief.over[...] = 10.0, 10.0, 99, False
    belief.visits[0, 2, 1, 0] = 20.0
    seen = [np.zeros((1, 2), np.int64), np.array([[0, 0]]), np.zeros((1, 2)), np.zeros((1, 2), np.int64)]
    policy.learn_some(belief, np.array([1, 2]), *seen)
    assert (belief.over.tolist(), belief.age.tolist()) == ([False], [1])
    seen[1] = np.array([[0, 1]])
    policy.learn_some(belief, np.array([1, 2]), *seen)
    assert (belief.over.tolist(), belief.age.tolist()) == ([True], [2])


@pytest.mark.parametrize("name", LEARNERS)
def test_a_step_in_which_nobody_was_seen_teaches_nothing_of_agents(name: str) -> None:
    game, nobody = played(make_policy(name)), np.zeros(0, np.int64)
    before = copy(game.belief)
    game.policy.learn_some(game.belief, nobody, *part_of(step_of(game), nobody))
    counted = [field for field in flatten(before) if field.split(".")[-1] in ("moves", "visits", "total", "arrivals")]
    assert bool(counted) == (name != "random")
    for field in counted:
        np.testing.assert_array_equal(flatten(before)[field], flatten(game.belief)[field])


@pytest.mark.parametrize("name", LEARNERS)
def test_growing_before_the_first_step_is_starting_with_more(name: str) -> None:
    policy, shape = make_policy(name), world_of().shape
    more = shape._replace(agents=9)
    grown = grow(policy, policy.begin(shape, world_of().model), more)
    for field, array in flatten(policy.begin(more, world_of().model)).items():
        np.testing.assert_array_equal(array, flatten(grown)[field], err_msg=field)


@pytest.mark.parametrize("name", LEARNERS)
def test_the_grown_belief_is_another_one(name: str) -> None:
    game = played(make_policy(name))
    before = copy(game.belief)
    grown = grow(game.policy, game.belief, game.world.shape._replace(agents=8))
    for array in flatten(grown).values():
        array[...] = 1
    for field, array in flatten(game.belief).items():
        np.testing.assert_array_equal(array, flatten(before)[field], err_msg=field)


class Grid(NamedTuple):
    meetings: Floats


@dataclass(frozen=True)
class Matchmaker(Learner[Grid]):
    def start(self, shape: Shape) -> Grid:
        return Grid(np.zeros((shape.runs, shape.agents, shape.agents)))

    def rank(self, belief: Grid, state: Ints, draws: Draws) -> Floats:
        return np.zeros(state.shape)


def test_what_cannot_grow_is_refused() -> None:
    game = played(make_policy("rma2b"))
    shape = game.world.shape
    with pytest.raises(InputError, match="rma2b: its belief is about 6 agents and cannot shrink to 5"):
        grow(game.policy, game.belief, shape._replace(agents=5))
    with pytest.raises(InputError, match="only the number of agents may change"):
        grow(game.policy, game.belief, shape._replace(agents=8, horizon=600))
    with pytest.raises(InputError, match="greedy-oracle: an oracle knows its agents from the start"):
        require_axes(make_policy("greedy-oracle"), shape)
    with pytest.raises(InputError, match="greedy-oracle: an oracle knows its agents from the start"):
        grow(make_policy("greedy-oracle"), game.belief, shape)
    with pytest.raises(
        InputError, match=r"meetings of its belief has shape \[1, 2, 2\] with 2 agents and \[1, 3, 3\] with 3"
    ):
        require_axes(Matchmaker(), shape)
