"""Whittle indices against enumeration, policy iteration, closed forms, a published package, and themselves."""

from itertools import pairwise, product

import numpy as np
import pytest

from restive.solvers import whittle
from restive.solvers.whittle import Indices, whittle_indices
from restive.types import Bools, Floats

with np.errstate():  # the package makes numpy raise on invalid values, for everybody, when it is imported
    from markovianbandit import RestlessBandit

DISCOUNTS = (0.5, 0.9, 0.99, 1.0)

# State 1 is safe for good. Acting keeps state 2 where it is, and from state 0 reaches safety half the time.
SAFE_OR_SUSTAINED = (
    np.array(
        [
            [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]],
            [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        ]
    ),
    np.array([0.0, 1.0, 1.0]),
)
NOT_INDEXABLE_ON_AVERAGE = (
    np.array(
        [
            [[0.8, 0.1, 0.1], [0.1, 0.1, 0.8], [0.3, 0.6, 0.1]],
            [[0.2, 0.7, 0.1], [0.8, 0.1, 0.1], [0.1, 0.1, 0.8]],
        ]
    ),
    np.array([1.0, 0.0, 1.0]),
)


def draw_agents(seed: int, agents: int, states: int, links: float = np.inf) -> tuple[Floats, Floats]:
    """Random agents; with a link or two on average from each state to others, many are not indexable."""
    generator = np.random.default_rng(seed)
    transition = generator.exponential(size=(agents, 2, states, states))
    transition *= generator.random(transition.shape) < links / states
    transition[..., 0] += 1e-3  # everything leads to state 0: one closed class under every policy
    return transition / transition.sum(axis=-1, keepdims=True), generator.random((agents, states))


def solve_one(transition: Floats, reward: Floats, discount: float) -> tuple[Floats, bool]:
    found = whittle_indices(transition[None], reward[None], discount)
    return found.value[0], bool(found.indexable[0])


def evaluate(transition: Floats, reward: Floats, discount: float, policy: Bools) -> tuple[Floats, Floats]:
    """The advantage of acting under each policy [..., S], at price 0 and per unit of price, by plain linear algebra."""
    states = reward.size
    chain = np.where(policy[..., None], transition[1], transition[0])
    matrix = np.eye(states) - discount * chain + (1 / states if discount == 1 else 0)
    pay = np.stack([np.broadcast_to(reward, policy.shape), -policy.astype(float)], axis=-1)
    advantage = discount * (transition[1] - transition[0]) @ np.linalg.solve(matrix, pay)
    return advantage[..., 0], advantage[..., 1] - 1


def enumerate_policies(transition: Floats, reward: Floats, discount: float) -> tuple[Floats, bool]:
    """First crossings and indexability from the prices [low, high] at which each of the 2^S policies is optimal."""
    policy = np.array(list(product([False, True], repeat=reward.size)))
    base, slope = evaluate(transition, reward, discount, policy)
    sign = np.where(policy, 1.0, -1.0)  # optimal where sign * (base + slope * price) >= 0 in all states
    flat = np.abs(slope) < 1e-10
    root = -base / np.where(flat, 1.0, slope)
    low = np.where(~flat & (sign * slope > 0), root, -np.inf).max(axis=1)
    high = np.where(~flat & (sign * slope < 0), root, np.inf).min(axis=1)
    optimal = (low <= high + 1e-9) & ~(flat & (sign * base < -1e-9)).any(axis=1)
    waiting = [sorted(zip(low[rows], high[rows], strict=True)) for rows in (optimal[:, None] & ~policy).T]
    return np.array([spans[0][0] for spans in waiting]), not any(has_gap(spans) for spans in waiting)


def has_gap(spans: list[tuple[float, float]]) -> bool:
    """Whether intervals in the order of their starts leave out something between the first start and infinity."""
    ends = np.maximum.accumulate([end for _, end in spans])
    return bool(ends[-1] < np.inf) or any(spans[i + 1][0] > ends[i] + 1e-9 for i in range(len(spans) - 1))


def optimal_advantage(transition: Floats, reward: Floats, discount: float, price: float) -> Floats:
    """The advantage of acting under the optimal policy at one price, by policy iteration."""
    policy = np.ones(reward.size, dtype=bool)
    for _ in range(100):
        base, slope = evaluate(transition, reward, discount, policy)
        better = np.where(np.abs(base + slope * price) < 1e-11, policy, base + slope * price > 0)
        if (better == policy).all():
            return np.asarray(base + slope * price)
        policy = better
    raise AssertionError("policy iteration did not end")


@pytest.mark.parametrize("discount", DISCOUNTS)
@pytest.mark.parametrize(("states", "agents"), [(2, 150), (3, 150), (4, 150), (5, 100), (7, 40), (9, 15), (12, 4)])
@pytest.mark.parametrize("links", [1.5, np.inf])
def test_indices_agree_with_enumeration_of_all_policies(
    discount: float, states: int, agents: int, links: float
) -> None:
    transition, reward = draw_agents(states, agents, states, links)
    found = whittle_indices(transition, reward, discount)
    for n in range(agents):
        value, indexable = enumerate_policies(transition[n], reward[n], discount)
        np.testing.assert_allclose(found.value[n], value, rtol=1e-8, atol=1e-9)
        assert found.indexable[n] == indexable


@pytest.mark.parametrize("discount", DISCOUNTS)
@pytest.mark.parametrize(("states", "agents"), [(2, 30), (7, 20), (12, 10), (30, 3), (60, 1)])
def test_acting_is_optimal_just_below_the_index_and_waiting_just_above(
    discount: float, states: int, agents: int
) -> None:
    transition, reward = draw_agents(states + 100, agents, states)
    value, indexable = whittle_indices(transition, reward, discount)
    assert indexable.all()
    for n, s in product(range(agents), range(states)):
        assert optimal_advantage(transition[n], reward[n], discount, value[n, s] - 1e-6)[s] > 0
        assert optimal_advantage(transition[n], reward[n], discount, value[n, s] + 1e-6)[s] < 0


@pytest.mark.parametrize("discount", [0.9, 1.0])
@pytest.mark.parametrize("links", [1.5, np.inf])
@pytest.mark.parametrize(("states", "agents"), [(2, 100), (3, 100), (6, 60), (10, 40), (60, 4)])
def test_indices_and_indexability_agree_with_a_published_package(
    discount: float, states: int, agents: int, links: float
) -> None:
    transition, reward = draw_agents(states + 200, agents, states, links)
    found = whittle_indices(transition, reward, discount)
    for n in range(agents):
        peer = RestlessBandit.from_P0_P1_R0_R1(*transition[n], reward[n], reward[n])
        known = peer.whittle_indices(discount=discount)
        assert found.indexable[n] == peer.is_indexable(discount)
        if found.indexable[n]:
            np.testing.assert_allclose(found.value[n], known, rtol=1e-8, atol=1e-9)


def test_random_agents_of_these_tests_include_many_that_are_not_indexable() -> None:
    for seed, agents, states in ((4, 150, 4), (7, 40, 7), (210, 40, 10)):
        transition, reward = draw_agents(seed, agents, states, links=1.5)
        assert 2 < (~whittle_indices(transition, reward).indexable).sum() < agents / 2


@pytest.mark.parametrize("discount", DISCOUNTS)
def test_two_state_agents_have_the_closed_form(discount: float) -> None:
    up = np.random.default_rng(1).random((2000, 2, 2))  # [N, A, S]: the probability of state 1
    found = whittle_indices(np.stack([1 - up, up], axis=-1), np.tile([0.0, 1.0], (2000, 1)), discount)
    lift = discount * (up[:, 1] - up[:, 0])
    persistence = discount * (up[:, :, 1] - up[:, :, 0])
    assert found.indexable.all()
    np.testing.assert_allclose(found.value.min(axis=1), lift.min(axis=1) / (1 - persistence[:, 1]), rtol=1e-10)
    np.testing.assert_allclose(found.value.max(axis=1), lift.max(axis=1) / (1 - persistence[:, 0]), rtol=1e-10)
    np.testing.assert_array_equal(found.value.argmin(axis=1), lift.argmin(axis=1))


def test_a_state_that_returns_to_acting_makes_an_agent_not_indexable() -> None:
    transition, reward = SAFE_OR_SUSTAINED
    value, indexable = solve_one(transition, reward, 0.9)
    np.testing.assert_allclose(value, [-9 / 11, 0, 9 / 46], atol=1e-14)
    assert not indexable
    for turn, before in ((-9 / 11, 1), (9 / 79, -1), (36 / 19, 1)):
        assert np.sign(optimal_advantage(transition, reward, 0.9, turn - 1e-6)[0]) == before
        assert np.sign(optimal_advantage(transition, reward, 0.9, turn + 1e-6)[0]) == -before


@pytest.mark.parametrize(("agent", "discount"), [(SAFE_OR_SUSTAINED, 0.9), (NOT_INDEXABLE_ON_AVERAGE, 1.0)])
def test_all_agree_on_explicit_agents_that_are_not_indexable(agent: tuple[Floats, Floats], discount: float) -> None:
    transition, reward = agent
    value, indexable = solve_one(transition, reward, discount)
    known, nested = enumerate_policies(transition, reward, discount)
    peer = RestlessBandit.from_P0_P1_R0_R1(*transition, reward, reward)
    np.testing.assert_allclose(value, known, atol=1e-12)
    assert not indexable
    assert not nested
    assert not peer.is_indexable(discount)


@pytest.mark.parametrize("discount", DISCOUNTS)
@pytest.mark.parametrize("states", [3, 4, 5])
def test_ties_between_states_are_settled_as_by_enumeration(discount: float, states: int) -> None:
    generator = np.random.default_rng(states)
    for _ in range(60):
        transition = np.eye(states)[generator.integers(states, size=(2, states))]
        transition[..., 0] += 0.25 if discount == 1 else 0
        transition /= transition.sum(axis=-1, keepdims=True)
        reward = generator.integers(0, 3, states).astype(float)
        value, indexable = solve_one(transition, reward, discount)
        known, nested = enumerate_policies(transition, reward, discount)
        np.testing.assert_allclose(value, known, atol=1e-9)
        assert indexable == nested


@pytest.mark.parametrize("discount", DISCOUNTS)
def test_duplicated_states_share_their_index(discount: float) -> None:
    transition, reward = draw_agents(4, 50, 5)
    duplicated = [0, 1, 2, 3, 4, 4, 1]
    split = transition[:, :, duplicated][..., duplicated] / np.bincount(duplicated)[duplicated]
    found, known = (
        whittle_indices(split, reward[:, duplicated], discount),
        whittle_indices(transition, reward, discount),
    )
    np.testing.assert_allclose(found.value, known.value[:, duplicated], rtol=1e-9)
    np.testing.assert_array_equal(found.indexable, known.indexable)


@pytest.mark.parametrize("discount", DISCOUNTS)
@pytest.mark.parametrize(("states", "links"), [(2, np.inf), (6, 1.5), (6, np.inf), (60, np.inf)])
def test_only_differences_of_rewards_and_not_the_order_of_states_matter(
    discount: float, states: int, links: float
) -> None:
    transition, reward = draw_agents(5, 20, states, links)
    known = whittle_indices(transition, reward, discount)
    order = np.random.default_rng(6).permutation(states)

    def expect(found: Indices, value: Floats) -> None:
        np.testing.assert_allclose(found.value, value, rtol=1e-7, atol=1e-11 * np.abs(value).max())
        np.testing.assert_array_equal(found.indexable, known.indexable)

    expect(whittle_indices(transition, reward + 1000, discount), known.value)
    expect(whittle_indices(transition, reward * 1e9, discount), known.value * 1e9)
    expect(whittle_indices(transition, reward * 1e-9, discount), known.value * 1e-9)
    expect(whittle_indices(transition[:, :, order][..., order], reward[:, order], discount), known.value[:, order])


def test_rewards_on_arrival_divide_the_indices_by_the_discount() -> None:
    transition, reward = draw_agents(18, 10, 4)
    found = whittle_indices(transition, reward, 0.8)

    def advantage(n: int, price: float) -> Floats:
        value = np.zeros(4)
        for _ in range(200):
            wait, act = transition[n] @ (reward[n] + 0.8 * value) - np.array([[0.0], [price]])
            value = np.maximum(wait, act)
        return np.asarray(act - wait)

    for n, s in product(range(10), range(4)):
        assert advantage(n, found.value[n, s] / 0.8 - 1e-6)[s] > 0
        assert advantage(n, found.value[n, s] / 0.8 + 1e-6)[s] < 0


def test_swapping_the_actions_of_an_indexable_agent_negates_its_indices() -> None:
    transition, reward = draw_agents(7, 100, 4)
    value, indexable = whittle_indices(transition, reward)
    mirrored = whittle_indices(transition[:, ::-1], reward)
    assert indexable.all()
    assert mirrored.indexable.all()
    np.testing.assert_allclose(mirrored.value, -value, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("discount", DISCOUNTS)
def test_a_state_whose_actions_are_the_same_has_index_exactly_zero(discount: float) -> None:
    transition, reward = draw_agents(8, 100, 5)
    transition[:50, 1] = transition[:50, 0]
    transition[50:, 1, 2] = transition[50:, 0, 2]
    found = whittle_indices(transition, reward, discount)
    assert (found.value[:50] == 0).all()
    assert (found.value[50:, 2] == 0).all()
    assert (found.value[50:, :2] != 0).all()


def test_equal_rewards_make_every_index_exactly_zero() -> None:
    transition, _ = draw_agents(9, 20, 5)
    found = whittle_indices(transition, np.full((20, 5), 0.7))
    assert (found.value == 0).all()
    assert found.indexable.all()


@pytest.mark.parametrize("discount", [0.9, 0.99, 0.999, 1 - 1e-6])
def test_indices_may_lie_anywhere_on_the_real_line(discount: float) -> None:
    stay, climb = np.eye(2), np.array([[0.0, 1.0], [0.0, 1.0]])
    transition, reward = np.array([[stay, climb], [climb, stay]]), np.array([[0.0, 1.0], [0.0, 1.0]])
    worth = discount / (1 - discount)
    np.testing.assert_allclose(whittle_indices(transition, reward, discount).value, [[worth, 0], [-worth, 0]])


def test_indices_approach_those_of_the_average_reward_as_the_discount_approaches_one() -> None:
    transition, reward = draw_agents(10, 50, 6)
    average = whittle_indices(transition, reward, 1.0)
    gaps = [np.abs(whittle_indices(transition, reward, 1 - e).value - average.value).max() for e in (1e-4, 1e-7, 1e-10)]
    assert all(later < earlier / 500 for earlier, later in pairwise(gaps))


@pytest.mark.parametrize("discount", [0.9, 1.0])
@pytest.mark.parametrize(("states", "agents"), [(2, 12_000), (5, 2000), (60, 12)])
def test_a_batch_gives_bit_for_bit_what_one_thread_or_one_agent_at_a_time_gives(
    discount: float, states: int, agents: int
) -> None:
    transition, reward = draw_agents(11, agents, states)
    whole = whittle_indices(transition, reward, discount, threads=1)
    for threads in (2, 3, None):
        shared = whittle_indices(transition, reward, discount, threads)
        np.testing.assert_array_equal(shared.value, whole.value)
        np.testing.assert_array_equal(shared.indexable, whole.indexable)
    for n in range(0, agents, max(1, agents // 20)):
        np.testing.assert_array_equal(solve_one(transition[n], reward[n], discount)[0], whole.value[n])


@pytest.mark.parametrize("states", [2, 7, 60])
def test_an_agent_that_cannot_leave_its_states_has_no_index_for_the_average_reward(states: int) -> None:
    transition, reward = draw_agents(12, 5, states)
    transition[3] = np.eye(states)
    with pytest.raises(ValueError, match=r"^agent 3 has.* two closed classes .*; use a discount below 1\.$"):
        whittle_indices(transition, reward, 1.0)
    assert (whittle_indices(transition, reward, 0.99).value[3] == 0).all()


def split_in_halves(chain: Floats) -> Floats:
    half = np.arange(chain.shape[-1]) < chain.shape[-1] // 2
    inside = chain * (half == half[:, None])
    return np.asarray(inside / inside.sum(axis=-1, keepdims=True))


@pytest.mark.parametrize("states", [2, 5, 12, 60])
def test_an_agent_with_two_closed_classes_when_it_acts_has_no_index_for_the_average_reward(states: int) -> None:
    transition, reward = draw_agents(13, 10, states)
    transition[:, 1] = split_in_halves(transition[:, 1])
    for n in range(10):
        with pytest.raises(ValueError, match=r"^agent 0 "):
            solve_one(transition[n], reward[n], 1.0)


@pytest.mark.parametrize("states", [4, 12, 60])
def test_an_agent_that_shuts_the_door_between_its_halves_has_no_index_for_the_average_reward(states: int) -> None:
    transition, reward = draw_agents(14, 10, states)
    door = transition[:, 1, 0].copy()
    transition = split_in_halves(transition)
    transition[:, 1, 0] = door
    for n in range(10):
        with pytest.raises(ValueError, match=r"^agent 0 "):
            solve_one(transition[n], reward[n], 1.0)


def test_a_state_that_is_always_worth_leaving_has_no_index_for_the_average_reward() -> None:
    transition = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
    with pytest.raises(ValueError, match=r"^agent 0 "):
        solve_one(transition, np.array([0.0, 1.0]), 1.0)


def test_transient_states_and_periodic_chains_are_no_obstacle_to_the_average_reward() -> None:
    ring, transient = np.roll(np.eye(4), 1, axis=1), np.eye(4)[[1, 2, 1, 1]]
    reward = np.array([0.0, 3.0, 1.0, 2.0])
    value, indexable = solve_one(np.array([ring, transient]), reward, 1.0)
    known, nested = enumerate_policies(np.array([ring, transient]), reward, 1.0)
    np.testing.assert_allclose(value, known, atol=1e-12)
    assert indexable == nested


def test_a_climb_that_runs_out_of_flips_gives_the_price_it_reached() -> None:
    transition, reward = draw_agents(14, 1, 5)
    known, value = whittle_indices(transition, reward).value, np.empty((1, 5))
    table, ledger, steps, flipped = whittle._make_scratch(5)
    whittle._fill(table, transition, 0, 0.9)
    assert whittle._eliminate(table)
    assert whittle._climb(table, reward, value, 0, ledger, steps[:2], flipped[:2]) == whittle.NOT_INDEXABLE
    np.testing.assert_array_equal(value, np.minimum(known, np.sort(known)[0, 1]))


def test_read_only_arrays_and_arrays_of_whole_numbers_are_accepted() -> None:
    transition, reward = np.array([[np.eye(2), [[0, 1], [0, 1]]]]).astype(int), np.array([[0, 1]])
    transition.flags.writeable = reward.flags.writeable = False
    assert whittle_indices(transition, reward, 0.5).value.tolist() == [[1.0, 0.0]]
    known, read_only = draw_agents(17, 3, 4), draw_agents(17, 3, 4)
    read_only[0].flags.writeable = read_only[1].flags.writeable = False
    np.testing.assert_array_equal(whittle_indices(*read_only).value, whittle_indices(*known).value)


def test_a_single_state_and_an_empty_batch_are_fine() -> None:
    assert whittle_indices(np.ones((3, 2, 1, 1)), np.ones((3, 1)), 1.0).value.tolist() == [[0.0]] * 3
    assert whittle_indices(np.empty((0, 2, 3, 3)), np.empty((0, 3))).value.shape == (0, 3)


@pytest.mark.parametrize("discount", [0.0, -0.5, 1.0001, float("nan")])
def test_a_discount_outside_its_range_is_refused(discount: float) -> None:
    with pytest.raises(ValueError, match=r"^discount is .*; it must be above 0 and at most 1"):
        whittle_indices(*draw_agents(15, 1, 2), discount)


@pytest.mark.parametrize(("transition", "reward"), [((3, 2, 4, 4), (3, 5)), ((2, 4, 4), (3, 4)), ((3, 2, 4, 4), (4,))])
def test_shapes_that_do_not_fit_are_refused(transition: tuple[int, ...], reward: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"they must be \[N, 2, S, S\] and \[N, S\]"):
        whittle_indices(np.ones(transition), np.ones(reward))


def test_a_number_of_threads_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="threads is 0"):
        whittle_indices(*draw_agents(16, 1, 2), threads=0)
