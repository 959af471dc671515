"""The contract: settings are checked by type, draws are repeatable, and rankings are normalised."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Optional

import numpy as np
import pytest
from scipy import stats

from restive import InputError, Simulation, World, make_policy, make_problems
from restive.contract import Draws, Model, Ranking, Shape, as_ranking
from restive.kernels import rng
from restive.policies.base import Learner, Oracle
from restive.policies.egt import Egt
from restive.types import Floats, Ints

SHAPE = Shape(runs=2, agents=3, states=2, budget=1, horizon=None, reward_range=np.ones(2))


class Nothing(NamedTuple):
    pass


@dataclass(frozen=True)
class Own(Learner[Nothing]):
    """Settings of every kind an author may think of."""

    name: ClassVar[str] = "own"
    rate: float = 0.5
    depth: int = 2
    keen: bool = True
    limit: float | None = None
    bound: Optional[int] = None  # noqa: UP045
    mode: Literal["slow", "fast"] = "slow"
    weights: tuple[float, ...] = ()
    anything: Any = None

    def start(self, shape: Shape) -> Nothing:
        return Nothing()

    def rank(self, belief: Nothing, state: Ints, draws: Draws) -> Floats:
        return np.zeros(state.shape)


@pytest.mark.parametrize(
    "settings",
    [
        {"rate": 1},
        {"limit": 3},
        {"limit": None},
        {"bound": 4},
        {"keen": False},
        {"mode": "fast"},
        {"weights": (1.0, 2.0)},
        {"anything": True},
        {"anything": "text"},
    ],
)
def test_settings_of_the_right_type_are_taken(settings: dict[str, Any]) -> None:
    assert Own(**settings).settings() == {**Own().settings(), **settings}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"rate": "fast"}, "own: rate is 'fast'; it must be of type float or int"),
        ({"rate": None}, "own: rate is None; it must be of type float or int"),
        ({"rate": True}, "own: rate is True; it must be of type float or int"),
        ({"depth": 2.5}, "own: depth is 2.5; it must be of type int"),
        ({"keen": 1}, "own: keen is 1; it must be of type bool"),
        ({"limit": "none"}, "own: limit is 'none'; it must be of type float or None or int"),
        ({"bound": 1.5}, "own: bound is 1.5; it must be of type int or None"),
        ({"weights": [1.0]}, r"own: weights is \[1.0\]; it must be of type tuple"),
    ],
)
def test_settings_of_a_wrong_type_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Own(**settings)


def test_numbers_of_numpy_become_plain_settings() -> None:
    policy = Egt(gamma=np.int64(2), eta=np.float32(0.5), D=np.float64(0.25))  # type: ignore[arg-type]
    assert policy == Egt(gamma=2, eta=0.5, D=0.25)
    assert repr(policy) == repr(Egt(gamma=2, eta=0.5, D=0.25))
    assert {type(policy.gamma), type(policy.eta), type(policy.D)} == {int, float}


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Egt().eta = 2.0  # type: ignore[misc]


def test_a_learner_sees_the_shape_and_an_oracle_the_model_too() -> None:
    @dataclass(frozen=True)
    class Curious(Oracle[Nothing]):
        name: ClassVar[str] = "curious"

        def start(self, shape: Shape, model: Model) -> Nothing:
            assert model.transition.shape == (1, 3, 2, 2, 2)
            return Nothing()

        def rank(self, belief: Nothing, state: Ints, draws: Draws) -> Floats:
            return np.zeros(state.shape)

    world = World(make_problems("two-state-v1", agents=3, budget=1)[0])
    assert Curious().begin(world.shape, world.model) == Nothing()
    assert Own().begin(world.shape, None) == Nothing()  # type: ignore[arg-type]


def draws_of(step: int, runs: int = 400, agents: int = 5) -> Draws:
    return World(make_problems("two-state-v1", agents=agents, budget=1)[0], runs=runs, seed=3).draws(step)


def test_repeated_draws_are_equal() -> None:
    draws = draws_of(4)
    assert np.array_equal(draws.uniform(), draws.uniform())
    assert np.array_equal(draws.uniform_by_run(), draws.uniform_by_run())
    assert draws.uniform().shape == (400, 5)
    assert draws.uniform_by_run().shape == (400,)


def test_draws_of_other_streams_and_steps_are_uncorrelated() -> None:
    draws = draws_of(4)
    mine = draws.uniform().ravel()
    others = [draws_of(5).uniform(), draws.uniform(rng.OWN + 1), draws.uniform(rng.POSTERIOR)]
    for other in others:
        assert abs(np.corrcoef(mine, other.ravel())[0, 1]) < 4 / np.sqrt(mine.size)


def test_the_number_of_a_run_is_that_of_none_of_its_agents() -> None:
    draws = draws_of(0, runs=4000)
    by_run, by_agent = draws.uniform_by_run(), draws.uniform()
    assert stats.kstest(by_run, "uniform").pvalue > 1e-3
    for agent in range(5):
        assert abs(np.corrcoef(by_run, by_agent[:, agent])[0, 1]) < 4 / np.sqrt(4000)


@pytest.mark.parametrize(
    "ranked",
    [
        [[1, 2, 3], [4, 5, 6]],
        np.array([[1, 2, 3], [4, 5, 6]], np.int32),
        np.array([[1, 4], [2, 5], [3, 6]], np.float32).T,
        np.asfortranarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
        np.arange(12.0).reshape(2, 6)[:, ::2] * 0 + [[1, 2, 3], [4, 5, 6]],
    ],
)
def test_arrays_of_any_layout_and_type_are_normalised(ranked: Any) -> None:
    ranking = as_ranking(ranked, SHAPE, "own")
    assert ranking.priority.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    assert ranking.priority.dtype == np.float64
    assert ranking.priority.flags.c_contiguous
    assert ranking.explore.tolist() == [0.0, 0.0]


def test_a_proper_ranking_is_not_copied() -> None:
    given = Ranking(np.zeros((2, 3)), np.zeros(2))
    ranking = as_ranking(given, SHAPE, "own")
    assert ranking.priority is given.priority
    assert ranking.explore is given.explore


@pytest.mark.parametrize(
    ("ranked", "sentence"),
    [
        (np.zeros((3, 2)), r"own: rank returned priorities of shape \[3, 2\]; they must be \[2, 3\], runs by agents"),
        (np.zeros(3), r"own: rank returned priorities of shape \[3\]"),
        (1.0, r"own: rank returned priorities of shape \[\]"),
        ([[1, 2], [3]], "own: rank did not return a full array of numbers"),
        ([["a"] * 3] * 2, "own: rank did not return a full array of numbers"),
        (
            Ranking(np.zeros((2, 3)), np.zeros(3)),
            r"own: rank returned explore of shape \[3\]; it must be \[2\], one prob",
        ),
        (Ranking(np.zeros((2, 3)), np.zeros((2, 3))), r"own: rank returned explore of shape \[2, 3\]"),
        (Ranking(np.zeros((2, 3)), 0.1), r"own: rank returned explore of shape \[\]; it must be \[2\]"),  # type: ignore[arg-type]
        (
            Ranking(np.zeros((2, 3)), np.array([0.0, 1.5])),
            "own: rank returned explore 1.5; it is a probability, from 0 to 1",
        ),
        (Ranking(np.zeros((2, 3)), np.array([0.0, -0.1])), "own: rank returned explore -0.1"),
        (Ranking(np.zeros((2, 3)), np.array([np.nan, 0.1])), "own: rank returned explore nan"),
    ],
)
def test_an_invalid_ranking_is_refused(ranked: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        as_ranking(ranked, SHAPE, "own")


@pytest.mark.parametrize("name", ["wiql", "ucwhittle", "cet-whittle", "thompson-whittle"])
def test_a_policy_that_ranks_by_a_number_returns_it_as_the_estimate(name: str) -> None:
    world = World(make_problems("two-state-v1", agents=9, budget=3, seed=2), runs=2, seed=1)
    game = Simulation(world, make_policy(name))
    game.advance(45)
    table = game.belief.q if name == "wiql" else game.belief.indices
    table[...] = np.random.default_rng(1).normal(size=table.shape)
    if name.endswith("-whittle"):
        game.belief.over[...] = False  # no new model now
    priority = game.decide()[0].priority
    benefit, error, noise = game.policy.estimate(game.belief, game.state)[:3]
    np.testing.assert_array_equal(benefit, priority)
    assert np.ptp(benefit) > 0
    assert np.isnan(error).all()
    assert (noise == 0).all()


def test_a_plan_gives_its_shares_and_nothing_before_it_is_made() -> None:
    world = World(make_problems("two-state-v1", agents=9, budget=3, seed=2), runs=2, seed=1, horizon=50)
    game = Simulation(world, make_policy("rma2b"))
    assert np.isnan(game.policy.estimate(game.belief, game.state).benefit).all()
    game.advance(6)
    shares = game.belief.plans.table[:, 0]
    shares[...] = np.random.default_rng(1).random(shares.shape)
    expected = np.take_along_axis(shares, game.state[..., None], axis=2)[..., 0]
    np.testing.assert_array_equal(game.policy.estimate(game.belief, game.state).benefit, expected)


def test_a_policy_without_an_estimate_returns_nan() -> None:
    benefit, error, noise = Own().estimate(Nothing(), np.zeros((2, 3), np.int64))[:3]
    assert benefit.shape == error.shape == noise.shape == (2, 3)
    assert np.isnan(benefit).all()
    assert np.isnan(error).all()
    assert (noise == 0).all()


class Student(Oracle[Nothing]):
    def start(self, shape: Shape, model: Model) -> Nothing:
        return Nothing()

    def rank(self, belief: Nothing, state: Ints, draws: Draws) -> Floats:
        return np.zeros(state.shape)


class KeenStudent(Student):
    def learn(self, belief: Nothing, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        pass


def test_an_oracle_learns_from_some_agents_only_if_it_defines_how() -> None:
    two, seen = np.arange(2), np.zeros((1, 2), np.int64)
    Student().learn_some(Nothing(), two, seen, seen, np.zeros((1, 2)), seen)
    with pytest.raises(InputError, match="KeenStudent: it learns, but not from some of the agents"):
        KeenStudent().learn_some(Nothing(), two, seen, seen, np.zeros((1, 2)), seen)
