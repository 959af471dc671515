"""The simulated world: where agents start, that noise belongs to runs and agents, and what it refuses."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from restive import InputError, Problem, World, make_policy, make_problems, simulate
from restive.contract import Ranking
from restive.solution import solve
from restive.solvers.myopic import largest_threshold
from restive.types import Ints

STAY, LEAVE = [[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]


def some(instances: int = 2, agents: int = 5, budget: int = 2) -> list[Problem]:
    return make_problems("many-state-v1", instances=instances, agents=agents, budget=budget, states=3, seed=8)


def everyone(world: World, action: int) -> Ints:
    return np.full((world.shape.runs, world.shape.agents), action)


def test_runs_are_numbered_instance_by_instance() -> None:
    world = World(some(3), runs=2)
    assert world.model.instance.tolist() == [0, 0, 1, 1, 2, 2]
    assert world.shape[:4] == (6, 5, 3, 2)
    assert world.shape.reward_range.tolist() == [2.0] * 6


def test_a_chunk_is_its_part_of_the_whole() -> None:
    whole = World(some(4), runs=3, seed=5, noise=0.3)
    state = whole.first_states()
    draws = whole.draws(7)
    outcome = whole.advance(state, everyone(whole, 1), draws)
    tied = Ranking(np.zeros(state.shape), np.full(12, 0.5))
    action = whole.choose(tied, draws)
    for first, last in [(0, 12), (0, 1), (4, 9), (11, 12)]:
        part = whole.chunk(first, last)
        assert part.shape.runs == last - first
        assert np.array_equal(part.first_states(), state[first:last])
        moved = part.advance(state[first:last], everyone(part, 1), part.draws(7))
        assert all(np.array_equal(ours, all_of[first:last]) for ours, all_of in zip(moved, outcome, strict=True))
        own = Ranking(tied.priority[first:last], tied.explore[first:last])
        assert np.array_equal(part.choose(own, part.draws(7)), action[first:last])


def test_a_chunk_of_a_chunk_is_a_chunk() -> None:
    whole = World(some(4), runs=3)
    nested, direct = whole.chunk(2, 11).chunk(3, 6), whole.chunk(5, 8)
    assert np.array_equal(nested.keys, direct.keys)
    assert nested.first_run == direct.first_run == 5
    assert nested.model.transition.tobytes() == direct.model.transition.tobytes()


def test_more_instances_leave_the_runs_of_the_first_as_they_were() -> None:
    problems = some(3)
    one, three = World(problems[:1], runs=4, seed=2), World(problems, runs=4, seed=2)
    assert np.array_equal(one.keys, three.keys[:4])
    assert np.array_equal(one.first_states(), three.first_states()[:4])


def test_more_agents_leave_the_noise_of_the_first_as_it_was() -> None:
    few, many = (World(make_problems("two-state-v1", agents=n, budget=1, seed=3)[0], 6, seed=4) for n in (4, 9))
    state = many.first_states()
    assert np.array_equal(few.first_states(), state[:, :4])
    after = many.advance(state, everyone(many, 0), many.draws(3)).after
    small = few.advance(np.ascontiguousarray(state[:, :4]), everyone(few, 0), few.draws(3)).after
    assert np.array_equal(small, after[:, :4])


def test_reordered_agents_keep_their_noise() -> None:
    problem = some(1)[0]
    order = np.array([3, 0, 4, 1, 2])
    plain = World(problem, runs=20, seed=6, noise=0.2)
    by_hand = World(
        Problem(problem.transition[order], problem.reward[order], problem.budget), runs=20, seed=6, noise=0.2
    )
    by_hand.agents = order
    for turned in (by_hand, plain.permute(order)):
        state = plain.first_states()
        assert np.array_equal(turned.first_states(), state[:, order])
        priority = np.random.default_rng(0).integers(0, 2, state.shape).astype(np.float64)
        explore = np.full(20, 0.5)
        action = plain.choose(Ranking(priority, explore), plain.draws(1))
        permuted = Ranking(np.ascontiguousarray(priority[:, order]), explore)
        assert np.array_equal(turned.choose(permuted, turned.draws(1)), action[:, order])
        one = plain.advance(state, action, plain.draws(1))
        there, done = np.ascontiguousarray(state[:, order]), np.ascontiguousarray(action[:, order])
        other = turned.advance(there, done, turned.draws(1))
        assert np.array_equal(other.after, one.after[:, order])
        assert np.array_equal(other.reward, one.reward[:, order])
        assert other.total == pytest.approx(one.total)
        assert other.cost == pytest.approx(one.cost)


def test_agents_that_are_treated_alike_move_alike_whatever_is_done_to_the_others() -> None:
    world = World(some(1)[0], runs=500, seed=1)
    state, draws = world.first_states(), world.draws(0)
    one, other = everyone(world, 0), everyone(world, 0)
    one[:, 0], other[:, 1] = 1, 1
    first, second = world.advance(state, one, draws).after, world.advance(state, other, draws).after
    assert np.array_equal(first[:, 2:], second[:, 2:])
    assert not np.array_equal(first[:, :2], second[:, :2])


def test_first_states_are_uniform_and_independent_between_runs() -> None:
    world = World(some(1, agents=40, budget=1)[0], runs=300, seed=9)
    state = world.first_states()
    assert stats.chisquare(np.bincount(state.ravel(), minlength=3)).pvalue > 1e-3
    pairs = np.bincount(state[1:].ravel() * 3 + state[:-1].ravel(), minlength=9)
    assert stats.chisquare(pairs).pvalue > 1e-3


def test_given_first_states_are_taken_in_every_run() -> None:
    problems = [Problem([[STAY, LEAVE]] * 2, [0, 1], 1, start=start) for start in ([0, 1], [1, 1])]
    assert World(problems, runs=2).first_states().tolist() == [[0, 1], [0, 1], [1, 1], [1, 1]]


def test_the_model_has_the_first_states_of_runs() -> None:
    assert (World(some(1)[0]).model.start == 1 / 3).all()
    fixed = World(Problem([[STAY, LEAVE]] * 2, [0, 1], 1, start=[0, 1])).model.start
    assert fixed.tolist() == [[[1.0, 0.0], [0.0, 1.0]]]


def test_seeds_change_the_noise() -> None:
    one, other = (World(some(1)[0], runs=50, seed=seed) for seed in (0, 1))
    assert not np.array_equal(one.first_states(), other.first_states())


def test_the_threshold_is_the_largest_that_costs_nothing_unless_one_is_given() -> None:
    problems = some(3)
    world = World(problems)
    assert world.threshold.tolist() == [largest_threshold(gain, 2) for gain in world.benefit]
    assert World(problems, threshold=-0.5).threshold.tolist() == [-0.5] * 3
    assert World(problems, threshold=np.inf).threshold.tolist() == [np.inf] * 3


@pytest.mark.parametrize("budget", [0, 1])
def test_one_agent_with_one_state_is_a_world(budget: int) -> None:
    world = World(Problem([[[[1.0]], [[1.0]]]], [5.0], budget), runs=3)
    action = world.choose(Ranking(np.zeros((3, 1)), np.zeros(3)), world.draws(0))
    assert action.tolist() == [[budget]] * 3
    outcome = world.advance(world.first_states(), action, world.draws(0))
    assert outcome.after.tolist() == [[0]] * 3
    assert outcome.total.tolist() == [5.0] * 3
    assert outcome.cost.tolist() == [0.0] * 3


def test_a_missing_priority_is_reported_by_agent_step_and_run() -> None:
    world = World(some(2), runs=4)
    priority = np.zeros((8, 5))
    priority[6, 3] = np.nan
    with pytest.raises(
        InputError, match="priority of agent 3 is NaN in step 9 of run 6; it must be a number, minus and"
    ):
        world.choose(Ranking(priority, np.zeros(8)), world.draws(9))
    part = world.chunk(5, 8)
    with pytest.raises(InputError, match="agent 3 is NaN in step 9 of run 6;"):
        part.choose(Ranking(priority[5:], np.ones(3)), part.draws(9))


def test_the_fingerprint_distinguishes_different_worlds() -> None:
    problems = some(2)
    changed = Problem(problems[0].transition[:, ::-1], problems[0].reward, 2)
    worlds = [
        World(problems, runs=3),
        World(problems, runs=3, seed=1),
        World(problems, runs=4),
        World(problems, runs=3, noise=0.1),
        World(problems[:1], runs=6),
        World([changed, problems[1]], runs=3),
        World([problem.with_budget(1) for problem in problems], runs=3),
        World(problems, runs=3).chunk(0, 3),
        World(problems, runs=3).permute(np.array([1, 0, 2, 3, 4])),
    ]
    assert len({world.fingerprint() for world in worlds}) == len(worlds)
    assert worlds[0].fingerprint() == World(some(2), runs=3, horizon=9).fingerprint()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"problems": []}, "problems must be one Problem or a list of at least one"),
        ({"problems": "two-state-v1"}, "problems must be one Problem or a list of at least one"),
        ({"problems": 3}, "problems must be one Problem or a list of at least one"),
        ({"runs": 0}, "runs is 0; it must be a whole number from 1 on"),
        ({"runs": 2.0}, "runs is 2.0; it must be a whole number from 1 on"),
        ({"seed": -1}, "seed is -1; it must be a whole number from 0 to 9223372036854775807"),
        ({"seed": 2**63}, "seed is 9223372036854775808; it must be a whole number from 0 to 9223372036854775807"),
        ({"noise": -0.1}, "noise is -0.1; it is a variance, a finite number from 0 on"),
        ({"noise": np.nan}, "noise is nan; it is a variance"),
        ({"noise": np.inf}, "noise is inf; it is a variance"),
        ({"noise": "loud"}, "noise is 'loud'; it is a variance"),
        ({"threshold": np.nan}, "threshold is nan; it must be a number, or None"),
        ({"threshold": "high"}, "threshold is 'high'; it must be a number, or None"),
        ({"horizon": 0}, "horizon is 0; it must be a whole number from 1 on"),
    ],
)
def test_invalid_arguments_of_a_world_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        World(**{"problems": some(), **settings})
    assert str(caught.value).count(".") <= 2


def test_instances_must_be_of_one_shape() -> None:
    first = make_problems("two-state-v1", agents=4, budget=2)[0]
    start = Problem(first.transition, first.reward, 2, start=[0, 0, 1, 1])
    for other in (first.with_budget(1), make_problems("two-state-v1", agents=5, budget=2)[0], some(agents=4)[0], start):
        with pytest.raises(
            InputError, match=r"problem 1 is Problem\(.*problem 0 is Problem\(.*instances must agree in"
        ):
            World([first, other])


@pytest.mark.parametrize(("kind", "float_kind"), [(np.int64, np.float64), (np.int32, np.float32), (np.uint8, float)])
def test_numbers_of_numpy_are_numbers(kind: Any, float_kind: Any) -> None:
    world = World(some(1)[0], runs=kind(3), seed=kind(7), horizon=kind(5), noise=float_kind(0.25))
    assert np.array_equal(world.keys, World(some(1)[0], runs=3, seed=7).keys)
    assert world.noise_std == 0.5
    assert type(world.shape.horizon) is int


def test_a_run_keeps_its_noise_when_there_are_more_instances_or_repetitions() -> None:
    few, many = World(some(2), runs=2, seed=9), World(some(3), runs=5, seed=9)
    assert few.keys.tolist() == [many.keys[run] for run in (0, 1, 5, 6)]
    assert len(set(many.keys.tolist())) == 15


def test_the_range_of_rewards_is_reported_for_each_instance() -> None:
    small, large = some(2)
    large = Problem(large.transition, 10 * large.reward, large.budget)
    assert World([small, large], runs=2).shape.reward_range.tolist() == [2.0, 2.0, 20.0, 20.0]
    assert World([small, large], runs=2).chunk(2, 4).shape.reward_range.tolist() == [20.0, 20.0]


def test_inclusion_is_exploration_and_ties_counted() -> None:
    world = World(make_problems("two-state-v1", agents=4, budget=2)[0])
    ranking = Ranking(np.array([[2.0, 1.0, 1.0, 0.0]]), np.array([0.2]))
    np.testing.assert_allclose(world.inclusion(ranking, world.draws(0)), [[0.9, 0.5, 0.5, 0.1]])


def changing(instances: int = 2, first: int = 4, last: int = 8) -> list[Problem]:
    later = make_problems("many-state-v1", instances=instances, agents=5, budget=2, states=3, seed=9)
    return [one.change_to(two, first, last) for one, two in zip(some(instances), later, strict=True)]


@pytest.mark.parametrize("step", [0, 4, 5, 7, 8, 20])
def test_dynamics_that_change_are_at_each_step_those_of_that_step(step: int) -> None:
    problems = changing()
    world = World(problems, runs=3, seed=1)
    world.advance(world.first_states(), everyone(world, 0), world.draws(6))  # an earlier or later step leaves no trace
    still = World([problem.at(step) for problem in problems], runs=3, seed=1, threshold=list(world.threshold))
    state, action = still.first_states(), everyone(still, 1)
    moved, expected = (each.advance(state, action, each.draws(step)) for each in (world, still))
    assert all(np.array_equal(one, two) for one, two in zip(moved, expected, strict=True))


def test_a_chunk_and_another_order_of_agents_change_alike() -> None:
    world, order = World(changing(3), runs=2, seed=1), np.array([3, 0, 4, 1, 2])
    state, draws = world.first_states(), world.draws(6)
    whole = world.advance(state, everyone(world, 1), draws)
    part, mixed = world.chunk(3, 5), world.permute(order)
    moved = part.advance(state[3:5], everyone(part, 1), part.draws(6))
    assert all(np.array_equal(one, two[3:5]) for one, two in zip(moved, whole, strict=True))
    after = mixed.advance(np.ascontiguousarray(state[:, order]), everyone(mixed, 1), draws).after
    assert np.array_equal(after, whole.after[:, order])
    assert world.fingerprint() != World(some(3), runs=2, seed=1).fingerprint() != World(changing(3), 2, 2).fingerprint()


def test_instances_must_change_at_the_same_steps() -> None:
    with pytest.raises(InputError, match="and in the steps at which they change"):
        World([changing(1)[0], changing(1, last=9)[0]])


@pytest.mark.parametrize("name", ["whittle-oracle", "greedy-oracle", "threshold-oracle"])
def test_an_oracle_follows_the_dynamics_of_each_step(name: str) -> None:
    problems, policy = changing(), make_policy(name)
    world = World(problems, runs=2, seed=1)
    belief, state = policy.begin(world.shape, world.model), world.first_states()
    for step in (3, 5, 8):
        still = World([problem.at(step) for problem in problems], runs=2, seed=1)
        expected = policy.rank(policy.begin(still.shape, still.model), state, still.draws(0))
        assert isinstance(expected, Ranking)
        for one, other in zip(policy.rank(belief, state, world.draws(step)), expected, strict=True):
            assert np.array_equal(one, other)


def test_solvers_of_one_model_refuse_one_that_changes() -> None:
    with pytest.raises(InputError, match=r"solve those of one step, problem\.at\(step\)"):
        solve(changing(1)[0])
    with pytest.raises(InputError, match="omr-oracle: it plans for one model"):
        simulate(changing(), "omr-oracle", horizon=5)


def test_a_learner_gets_the_features_of_its_runs_and_agents() -> None:
    problems = make_problems("features-v1", instances=3, agents=5, budget=2, seed=1)
    world, order = World(problems, runs=2), np.array([3, 0, 4, 1, 2])
    assert world.shape.features is not None
    assert world.shape.features.shape == (6, 5, 4)
    assert np.array_equal(world.shape.features[3], problems[1].features)  # type: ignore[arg-type]
    part, mixed = world.chunk(3, 5).shape.features, world.permute(order).shape.features
    assert np.array_equal(part, world.shape.features[3:5])  # type: ignore[arg-type]
    assert np.array_equal(mixed, world.shape.features[:, order])  # type: ignore[arg-type]
    plain = World([problem.replace(features=None) for problem in problems], runs=2)
    assert plain.shape.features is None
    assert plain.shape.known_features().shape == (6, 5, 0)
    assert plain.fingerprint() != world.fingerprint()
    with pytest.raises(InputError, match="in the number of features"):
        World([problems[0], problems[1].replace(features=None)])


COST = np.array([0.5, 3.0, 1.0, 2.0, 1.5])


def limited(**changes: Any) -> list[Problem]:
    return [problem.replace(**changes) for problem in some(instances=2)]


def test_a_limit_is_chosen_alike_in_chunks_and_in_another_order() -> None:
    world = World(limited(cost=COST, spend="at most"), runs=6, seed=3)
    draws, order = world.draws(2), np.array([3, 0, 4, 1, 2])
    priority = np.random.default_rng(1).integers(-1, 3, (12, 5)).astype(float)
    ranking = Ranking(priority, np.full(12, 0.3), np.zeros(12))
    action, probability = world.choose(ranking, draws), world.inclusion(ranking, draws)
    part, half = world.chunk(5, 9), Ranking(*(array[5:9] for array in ranking))
    assert np.array_equal(part.choose(half, part.draws(2)), action[5:9])
    assert np.array_equal(part.inclusion(half, part.draws(2)), probability[5:9])
    turned = world.permute(order)
    mixed = ranking._replace(priority=np.ascontiguousarray(priority[:, order]))
    assert np.array_equal(turned.choose(mixed, turned.draws(2)), action[:, order])
    assert (action @ COST <= 2 + 1e-9).all()


@pytest.mark.parametrize("changes", [{"cost": COST}, {"spend": "at most"}, {"cost": COST, "spend": "at most"}], ids=str)
def test_inclusion_under_a_limit_is_how_often_an_agent_is_chosen(changes: dict[str, Any]) -> None:
    world = World(limited(**changes)[0], runs=4000, seed=3)
    ranking = Ranking(np.tile([2.0, 1.0, 1.0, 0.0, 0.0], (4000, 1)), np.full(4000, 0.2), np.full(4000, 0.5))
    often, draws = world.choose(ranking, world.draws(0)).mean(axis=0), world.chunk(0, 1).draws(0)
    first = Ranking(*(array[:1] for array in ranking))
    assert np.abs(often - world.chunk(0, 1).inclusion(first, draws)[0]).max() < 0.04


def test_a_policy_that_cannot_tell_who_would_lose_spends_the_budget() -> None:
    world = World(limited(spend="at most")[0], runs=20)
    tied = Ranking(np.full((20, 5), -3.0), np.zeros(20))
    assert (world.choose(tied, world.draws(0)).sum(axis=1) == 2).all()
    assert (world.choose(tied._replace(break_even=np.full(20, -3.0)), world.draws(0)) == 0).all()


def test_a_missing_priority_is_refused_under_a_limit_too() -> None:
    world = World(limited(spend="at most"), runs=2)
    priority = np.zeros((4, 5))
    priority[3, 1] = np.nan
    with pytest.raises(InputError, match="agent 1 is NaN in step 0 of run 3"):
        world.choose(Ranking(priority, np.zeros(4)), world.draws(0))


def test_instances_with_and_without_costs_are_not_mixed() -> None:
    with pytest.raises(InputError, match="whether they have costs"):
        World([some()[0], limited(cost=COST)[1]])


def test_the_fingerprint_depends_on_costs_and_on_how_the_budget_is_spent() -> None:
    variants = [some(), limited(cost=COST), limited(cost=2 * COST), limited(spend="at most")]
    assert len({World(problems).fingerprint() for problems in variants}) == 4
