"""How agents move: as a literal loop would move them, in the right frequencies, and never where they cannot go."""

import numpy as np
import pytest
from scipy import stats

from restive import Problem
from restive.kernels import rng
from restive.kernels.step import Dynamics, Outcome, advance, first_states, land
from restive.types import Floats, Ints
from restive.world import World, _cumulate


def random_problem(agents: int, states: int, seed: int, budget: int = 1) -> Problem:
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.ones(states), (agents, 2, states))
    return Problem(transition, rng.normal(size=(agents, states)), budget)


def land_in(row: Floats, draw: float) -> int:
    return int(land(row.reshape(1, 1, 1, 1, -1), 0, 0, 0, 0, draw))


def move(world: World, state: Ints, action: Ints, step: int) -> Outcome:
    return world.advance(state, action, world.draws(step))


def move_slowly(world: World, state: Ints, action: Ints, step: int) -> Outcome:
    """One agent at a time, from the transitions themselves."""
    moves = rng.uniform(rng.branch(world.keys, rng.TRANSITION, step), world.agents)
    noises = rng.branch(world.keys, rng.NOISE, step)
    runs, agents = state.shape
    after, seen = np.zeros_like(state), np.zeros(state.shape)
    total, cost = np.zeros(runs), np.zeros(runs)
    for r in range(runs):
        i = world.model.instance[r]
        for n in range(agents):
            row = world.model.transition[i, n, action[r, n], state[r, n]]
            after[r, n] = next((s for s in range(row.size) if moves[r, n] < row[: s + 1].sum()), row.size - 1)
            reward = world.model.reward[i, n, after[r, n]]
            draw = rng.unit_open(np.uint64(rng.fold(noises[r], world.agents[n])))
            seen[r, n] = reward + world.noise_std * rng.normal_quantile(draw) if world.noise_std else reward
            total[r] += reward
            if action[r, n]:
                gain = sum(
                    sign * (world.model.transition[i, n, a, state[r, n]] @ world.model.reward[i, n])
                    for a, sign in ((1, 1), (0, -1))
                )
                cost[r] += max(0.0, world.threshold[i] - gain)
    return Outcome(after, seen, total, cost)


@pytest.mark.parametrize("noise", [0.0, 0.5])
@pytest.mark.parametrize(("agents", "states"), [(1, 1), (4, 2), (5, 3), (3, 9), (2, 40)])
def test_kernel_agrees_with_a_literal_loop(agents: int, states: int, noise: float) -> None:
    problems = [random_problem(agents, states, seed) for seed in range(3)]
    world = World(problems, runs=4, seed=6, noise=noise, threshold=0.2)
    rng = np.random.default_rng(9)
    state = world.first_states()
    for step in range(25):
        action = rng.integers(0, 2, state.shape)
        ours, slow = move(world, state, action, step), move_slowly(world, state, action, step)
        assert np.array_equal(ours.after, slow.after)
        assert np.array_equal(ours.reward, slow.reward)
        assert np.array_equal(ours.total, slow.total)
        assert ours.cost == pytest.approx(slow.cost, abs=1e-12)
        state = ours.after


def test_landing_agrees_with_a_search() -> None:
    rng = np.random.default_rng(2)
    for _ in range(200):
        row = rng.dirichlet(np.full(rng.integers(1, 60), 0.5)).cumsum()
        draw = rng.random()
        assert land_in(row, draw) == min(np.searchsorted(row, draw, side="right"), row.size - 1)


@pytest.mark.parametrize("action", [0, 1])
def test_transitions_have_their_frequencies(action: int) -> None:
    problem = random_problem(agents=3, states=4, seed=3)
    world = World(problem, runs=20_000, seed=1)
    for state in range(4):
        where = np.full((20_000, 3), state)
        after = move(world, where, np.full_like(where, action), step=state).after
        for agent in range(3):
            counts = np.bincount(after[:, agent], minlength=4)
            expected = 20_000 * problem.transition[agent, action, state]
            assert stats.chisquare(counts, expected).pvalue > 1e-4


def test_agents_of_a_run_move_independently() -> None:
    world = World(random_problem(2, 2, seed=4), runs=20_000, seed=2)
    where = np.zeros((20_000, 2), np.int64)
    after = move(world, where, where, 0).after
    later = move(world, where, where, 1).after
    bound = 4 / np.sqrt(20_000)
    assert abs(np.corrcoef(after[:, 0], after[:, 1])[0, 1]) < bound
    assert abs(np.corrcoef(after[:, 0], later[:, 0])[0, 1]) < bound


@pytest.mark.parametrize(
    "row",
    [
        [0.1] * 10 + [0.0],
        [0.0] + [0.1] * 10,
        [0.3, 0.3, 0.0, 0.4 - 9e-10, 0.0, 0.0],
        [0.0, 1.0, 0.0],
        [1 / 3, 1 / 3, 1 / 3 - 1e-10, 0.0],
        [0.0] * 20 + [0.05] * 10 + [0.0] * 5 + [0.05] * 10 + [0.0] * 20,
    ],
)
def test_no_draw_leads_to_a_state_of_probability_zero(row: list[float]) -> None:
    cumulative = _cumulate(np.array(row))
    edges = np.cumsum(row)
    uniforms = [0.0, 1 - 2.0**-53, *edges, *np.nextafter(edges, 0), *np.nextafter(edges, 1)]
    reached = {land_in(cumulative, float(draw)) for draw in uniforms if draw < 1}
    assert reached == set(np.flatnonzero(row).tolist())


@pytest.mark.parametrize("noise", [0.1, 1.0, 25.0])
def test_noise_is_normal_with_the_variance_asked_for(noise: float) -> None:
    world = World(random_problem(40, 3, seed=5), runs=1000, seed=3, noise=noise)
    state = world.first_states()
    outcome = move(world, state, np.zeros_like(state), 0)
    extra = outcome.reward - np.take_along_axis(world.model.reward, outcome.after[:, :, None], axis=2)[..., 0]
    count = extra.size
    assert abs(extra.mean()) < 4 * np.sqrt(noise / count)
    assert abs(extra.var() / noise - 1) < 4 * np.sqrt(2 / count)
    assert stats.kstest(extra.ravel() / np.sqrt(noise), "norm").pvalue > 1e-3


def test_noise_is_unrelated_to_the_moves_and_between_agents_and_steps() -> None:
    world = World(random_problem(2, 2, seed=6), runs=20_000, seed=4, noise=1.0)
    state = world.first_states()
    first, second = (move(world, state, np.zeros_like(state), step) for step in (0, 1))
    noise = [each.reward - world.model.reward[0, np.arange(2), each.after] for each in (first, second)]
    bound = 4 / np.sqrt(20_000)
    assert abs(np.corrcoef(noise[0][:, 0], noise[0][:, 1])[0, 1]) < bound
    assert abs(np.corrcoef(noise[0][:, 0], noise[1][:, 0])[0, 1]) < bound
    assert abs(np.corrcoef(noise[0][:, 0], first.after[:, 0])[0, 1]) < bound


def test_totals_are_of_expected_rewards_whatever_the_noise() -> None:
    problem = random_problem(6, 3, seed=7)
    quiet, loud = (World(problem, runs=30, seed=5, noise=noise) for noise in (0.0, 9.0))
    state = quiet.first_states()
    action = np.ones_like(state)
    one, other = move(quiet, state, action, 0), move(loud, state, action, 0)
    assert np.array_equal(one.after, other.after)
    assert np.array_equal(one.total, other.total)
    assert not np.array_equal(one.reward, other.reward)


def test_cost_is_counted_only_where_acting_falls_short() -> None:
    stay, rise = [[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.0, 1.0]]
    world = World(Problem([[stay, rise]] * 3, [0, 1], 1, start=[0, 0, 1]), threshold=0.75)
    state = world.first_states()
    # The benefit is 1/2 in state 0 and 0 in state 1.
    assert move(world, state, np.array([[1, 0, 0]]), 0).cost.tolist() == [0.25]
    assert move(world, state, np.array([[1, 1, 1]]), 0).cost.tolist() == [0.25 + 0.25 + 0.75]
    assert move(world, state, np.array([[0, 0, 0]]), 0).cost.tolist() == [0.0]


@pytest.mark.parametrize("states", [1, 2, 7])
def test_first_states_are_uniform(states: int) -> None:
    keys = rng.branch(rng.run_keys(3, np.arange(3000)), rng.START, 0)
    drawn = first_states(states, keys, np.arange(5))
    assert drawn.min() >= 0
    assert drawn.max() == states - 1
    for agent in range(5):
        assert stats.chisquare(np.bincount(drawn[:, agent], minlength=states)).pvalue > 1e-4 or states == 1


def test_the_largest_draw_is_still_a_state() -> None:
    largest: Floats = np.array([1 - 2.0**-53])
    for states in (1, 2, 3, 5, 7, 10, 1000, 10**6 + 3):
        assert int((largest * states)[0]) == states - 1


def test_outputs_are_overwritten_whole() -> None:
    world = World(random_problem(3, 2, seed=8), runs=2)
    state = world.first_states()
    outputs = Outcome(np.full((2, 3), -9), np.full((2, 3), np.nan), np.full(2, np.nan), np.full(2, np.nan))
    draws = world.draws(0)
    model = world.model
    dynamics = Dynamics(
        model.instance, world.cumulative, model.reward, world.benefit, world.threshold, world.agents, noise_std=0.0
    )
    advance(state, np.ones_like(state), dynamics, draws.branch(rng.TRANSITION), draws.branch(rng.NOISE), outputs)
    assert np.isin(outputs.after, (0, 1)).all()
    assert not any(np.isnan(array).any() for array in outputs[1:])
