"""The bound of every horizon: above all that can be had, exactly or in simulation, and close to the plan of each."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from restive.errors import InputError
from restive.problem import Problem
from restive.problems import make_problems
from restive.simulation import simulate
from restive.solution import reward_bounds
from restive.solvers.fluid import bound_at, plan
from restive.solvers.fluid_bounds import (
    BoundModel,
    bound_changing,
    bound_constant,
    bound_every_step,
    find_price,
    make_model,
    plan_ahead,
    stretch,
)
from restive.solvers.fluid_kernels import Agents
from restive.solvers.joint_dp import joint_index, solve_joint
from restive.types import Floats
from restive.world import first_distribution

KINDS = ("dense", "sparse", "certain", "harmful")
ROUNDING = 1e-9
FAMILIES = [
    ("two-state-v1", 5),
    ("two-state-v1", 10),
    ("two-state-v1", 20),
    ("many-state-v1", 5),
    ("many-state-v1", 10),
    ("wireless-v1", 5),
    ("wireless-v1", 10),
    ("wireless-v1", 20),
]


def draw_agents(kind: str, agents: int, states: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Agents of a kind: rows dense, sparse or deterministic, or acting that never helps."""
    rng = np.random.default_rng([seed, agents, states])
    reward = np.sort(rng.normal(size=(agents, states)), axis=1)
    if kind == "certain":
        return np.eye(states)[rng.integers(states, size=(agents, 2, states))], reward
    transition = rng.dirichlet(np.full(states, 0.3 if kind == "sparse" else 1.0), size=(agents, 2, states))
    if kind == "harmful":
        transition[:, 1] = 0.5 * transition[:, 0]
        transition[:, 1, :, 0] += 0.5
    return transition, reward


def model_of(transition: Floats, reward: Floats, start: Floats, budget: int) -> BoundModel:
    agents = len(reward)
    return make_model(
        Agents(transition, np.empty((agents, 2, 0)), reward, np.ones(agents)), start, budget, at_most=False
    )


def bound_problem(problem: Problem, horizon: int) -> Floats:
    start = first_distribution(problem)
    return bound_every_step(problem.transition, problem.reward, problem.budget, horizon, start)


def act_at_random(problem: Problem, horizon: int) -> Floats:
    """What acting at random can expect to have collected after each step, [T]."""
    share, mass = problem.budget / problem.shape[0], first_distribution(problem)
    mixed = (1 - share) * problem.transition[:, 0] + share * problem.transition[:, 1]
    rewards = []
    for _ in range(horizon):
        mass = np.einsum("ns,nsj->nj", mass, mixed)
        rewards.append((mass * problem.reward).sum())
    return np.cumsum(rewards)


def measure_looseness(problem: Problem, horizons: tuple[int, ...], bounds: Floats) -> Floats:
    """How far bounds are above the best plan's value, relative to what that adds to acting at random."""
    floor, start, loose = act_at_random(problem, max(horizons)), first_distribution(problem), []
    for t in horizons:
        excess = problem.reward - floor[t - 1] / (t * problem.shape[0])
        best = plan(problem.transition, excess, problem.budget, t, start, gap=2e-4)
        loose.append((bounds[t - 1] - floor[t - 1] - best.value) / best.value)
    return np.array(loose)


def solve_every_step(problem: Problem, horizon: int) -> Floats:
    """The exact optimum of every horizon, [T]."""
    values = np.asarray(solve_joint(problem.transition, problem.reward, problem.budget, horizon).values)[:-1][::-1]
    first = slice(None) if problem.start is None else [joint_index(problem.start.tolist(), problem.shape[1])]
    best: Floats = values[:, first].mean(axis=1)
    return best


def allow_slack(model: BoundModel) -> float:
    """What it may cost, over all agents, to stop looking back when increments are nearly alike."""
    return 1e-3 * model.share * (1 - model.share) * float(np.ptp(model.reward, axis=1).sum())


def list_prices(paths: list[Floats], price: float, horizon: int) -> list[Floats]:
    """All prices for a horizon that the paths of plans give, with the one that stretches the longest."""
    found = [path[-horizon:] for path in paths if path.size >= horizon]
    if paths[-1].size < horizon:
        found.append(stretch(paths[-1], price, horizon))
    for shorter, longer in pairwise(paths):
        if shorter.size < horizon < longer.size:
            drawn = [np.interp(np.linspace(0, 1, horizon), np.linspace(0, 1, p.size), p) for p in (shorter, longer)]
            weight = (horizon - shorter.size) / (longer.size - shorter.size)
            found.append((1 - weight) * drawn[0] + weight * drawn[1])
    return found


@pytest.mark.parametrize(
    "problem",
    [
        *make_problems("two-state-v1", instances=4, agents=4, budget=1),
        *make_problems("two-state-v1", instances=2, agents=5, budget=3, seed=1),
        *make_problems("many-state-v1", instances=3, agents=3, budget=1, states=4),
        *make_problems("wireless-v1", instances=2, agents=5, budget=2),
        *make_problems("counterexample-heterogeneous-v1"),
        *make_problems("counterexample-three-state-v1"),
    ],
    ids=lambda problem: problem.name,
)
def test_no_policy_is_above_it_at_any_step(problem: Problem) -> None:
    bounds, optimum = bound_problem(problem, 60), solve_every_step(problem, 60)
    assert np.all(bounds >= optimum - ROUNDING)
    assert np.all(bounds <= np.arange(1, 61) * problem.reward.max(axis=1).sum() + ROUNDING)
    floor = act_at_random(problem, 60)
    assert np.all(bounds - floor <= 2.5 * (optimum - floor))


@pytest.mark.parametrize(("name", "budget"), [("two-state-v1", 10), ("many-state-v1", 10), ("wireless-v1", 10)])
def test_whittle_stays_below_it_and_random_far_below(name: str, budget: int) -> None:
    problem = make_problems(name, budget=budget)[0]
    bounds, runs = bound_problem(problem, 200), 200
    played = np.cumsum(simulate(problem, "whittle-oracle", 200, runs=runs).reward, axis=1)
    error = played.std(axis=0, ddof=1) / np.sqrt(runs)
    floor = act_at_random(problem, 200)
    assert np.all(played.mean(axis=0) <= bounds + 4 * error)
    assert np.all((played.mean(axis=0) - floor + 4 * error)[20:] > 0.8 * (bounds - floor)[20:])


@pytest.mark.parametrize(("name", "budget"), FAMILIES)
def test_it_is_tight_at_short_and_long_horizons(name: str, budget: int) -> None:
    for problem in make_problems(name, instances=2, budget=budget):
        loose = measure_looseness(problem, (1, 2, 3, 5, 8, 10, 14, 20, 34, 60, 100, 250), bound_problem(problem, 250))
        assert np.all(loose > -ROUNDING)
        assert np.all(loose < 0.005)


def test_at_a_thousand_steps_it_is_that_of_a_plan() -> None:
    for name in ("two-state-v1", "many-state-v1", "wireless-v1"):
        problem = make_problems(name, budget=5)[0]
        bounds = bound_problem(problem, 1000)
        best = plan(problem.transition, problem.reward, 5, 1000, gap=1e-5)
        assert bounds[-1] == pytest.approx(best.bound, rel=1e-4)
        assert measure_looseness(problem, (1000,), bounds) < 0.002


@pytest.mark.parametrize("start", [None, [0] * 50])
def test_agents_that_hardly_move_are_followed_to_the_end(start: list[int] | None) -> None:
    sticky = make_problems("wireless-v1", budget=10)[0]
    problem = Problem(0.9 * np.eye(2) + 0.1 * sticky.transition, sticky.reward, 10, start=start)
    loose = measure_looseness(problem, (1, 2, 5, 10, 48, 100, 131, 333, 600), bound_problem(problem, 600))
    assert np.all(loose > -ROUNDING)
    assert np.all(loose < 0.02)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("agents", "states", "budget", "horizon"), [(7, 3, 2, 5), (5, 2, 2, 120), (12, 4, 5, 120)])
def test_it_is_what_its_prices_give(kind: str, agents: int, states: int, budget: int, horizon: int) -> None:
    transition, reward = draw_agents(kind, agents, states, seed=1)
    start = np.random.default_rng(1).dirichlet(np.ones(states), size=agents)
    model = model_of(transition, reward, start, budget)
    price = find_price(model, horizon)
    paths = plan_ahead(model, budget, horizon, price)
    assert paths[-1].size < 32  # so that every horizon between is computed again
    least = [
        min(bound_at(found, transition, reward, budget, start) for found in list_prices(paths, price, t))
        for t in range(1, horizon + 1)
    ]
    bounds = bound_every_step(transition, reward, budget, horizon, start)
    assert np.all(bounds >= np.array(least) - ROUNDING)
    assert np.all(bounds <= np.array(least) + 2 * allow_slack(model))


@pytest.mark.parametrize("kind", KINDS)
def test_the_price_found_gives_the_least_bound_of_all_constant_prices(kind: str) -> None:
    transition, reward = draw_agents(kind, 9, 3)
    model = model_of(transition, reward, np.full((9, 3), 1 / 3), 2)
    prices = np.linspace(-2.0, 3.0, 501)
    each = np.array([bound_at(np.full(300, price), transition, reward, 2) for price in prices])
    bounds = np.array([bound_constant(model, price, 300) for price in prices])
    assert np.all(bounds >= each - ROUNDING)
    assert np.all(bounds <= each + allow_slack(model))
    assert bound_constant(model, find_price(model, 300), 300) == pytest.approx(bounds.min(), rel=1e-3)


def test_one_step_acts_on_the_largest_gains() -> None:
    transition, reward = draw_agents("dense", 6, 3)
    state = np.array([0, 1, 2, 0, 1, 2])
    arrival = np.einsum("naj,nj->na", transition[np.arange(6), :, state], reward)
    gain = np.sort(arrival[:, 1] - arrival[:, 0])
    first = bound_every_step(transition, reward, 2, 30, np.eye(3)[state])[0]
    assert first == pytest.approx(arrival[:, 0].sum() + gain[-2:].sum(), abs=0.01)


def test_plans_grow_until_the_prices_of_one_can_be_stretched_to_the_next() -> None:
    problem = make_problems("wireless-v1", budget=10)[0]
    model = model_of(problem.transition, problem.reward, first_distribution(problem), 10)
    price = find_price(model, 1000)
    sizes = [path.size for path in plan_ahead(model, 10, 1000, price)]
    assert sizes[:12] == [1, 2, 3, 4, 5, 6, 7, 8, 12, 18, 27, 40]
    assert 40 < sizes[-1] < 1000
    assert [path.size for path in plan_ahead(model, 10, 15, price)] == [*sizes[:9], 15]


@pytest.mark.parametrize(("budget", "action"), [(0, 0), (5, 1)])
def test_with_nobody_or_everybody_acted_on_it_is_exact(budget: int, action: int) -> None:
    transition, reward = draw_agents("dense", 5, 3)
    mass, rewards = np.full((5, 3), 1 / 3), []
    for _ in range(40):
        mass = np.einsum("ns,nsj->nj", mass, transition[:, action])
        rewards.append((mass * reward).sum())
    np.testing.assert_allclose(bound_every_step(transition, reward, budget, 40), np.cumsum(rewards), rtol=1e-11)


def test_a_constant_on_top_of_all_rewards_comes_on_top_of_it() -> None:
    problem = make_problems("two-state-v1", agents=10, budget=2)[0]
    plain = bound_every_step(problem.transition, problem.reward, 2, 100)
    raised = bound_every_step(problem.transition, problem.reward + 1000, 2, 100)
    np.testing.assert_allclose(raised, plain + 1000 * 10 * np.arange(1, 101), rtol=1e-9)


def test_invalid_input_is_refused_in_one_sentence() -> None:
    transition, reward = draw_agents("dense", 4, 2)
    with pytest.raises(InputError, match="horizon is 0; it must be a whole number from 1 on"):
        bound_every_step(transition, reward, 1, 0)
    with pytest.raises(InputError, match="budget is 5; it must be a whole number from 0 to 4"):
        bound_every_step(transition, reward, 5, 3)
    with pytest.raises(InputError, match="start of agent 0 is not a distribution"):
        bound_every_step(transition, reward, 1, 3, np.ones((4, 2)))


def best_of_two(transitions: Floats, rewards: Floats, changes: list[int], horizon: int) -> float:
    """The most that can be expected on two agents with one action, both in any state with equal probability."""
    states = transitions.shape[-1]
    value = np.zeros((states, states))
    for step in range(horizon - 1, -1, -1):
        segment = sum(step >= change for change in changes) - 1
        rows = transitions[segment]
        gain = rewards[segment, 0][:, None] + rewards[segment, 1] + value
        value = np.maximum(*(rows[0, 1 - n] @ gain @ rows[1, n].T for n in (0, 1)))
    return float(value.mean())


@pytest.mark.parametrize("kind", KINDS)
def test_a_bound_with_changing_dynamics_is_above_the_best_and_near_it(kind: str) -> None:
    transition, reward = (
        np.stack(part) for part in zip(*(draw_agents(kind, 2, 3, seed) for seed in (0, 1, 2)), strict=True)
    )
    changes, horizons = np.array([0, 3, 8]), np.array([1, 3, 4, 12, 40])
    bounds = bound_changing(transition, reward, changes, 1, horizons, np.full((2, 3), 1 / 3))
    best = np.array([best_of_two(transition, reward, changes.tolist(), int(each)) for each in horizons])
    assert (bounds >= best - ROUNDING).all()
    assert (bounds - best <= 3.0 + 0.25 * horizons).all()


def test_a_bound_of_dynamics_that_stay_is_that_of_their_best_price() -> None:
    transition, reward = draw_agents("dense", 4, 3)
    model = model_of(transition, reward, np.full((4, 3), 1 / 3), 1)
    pair = np.stack([transition] * 2), np.stack([reward] * 2), np.array([0, 5])
    found = bound_changing(*pair, 1, np.array([20]), model.start)
    assert found == pytest.approx([bound_constant(model, find_price(model, 20), 20)], rel=1e-3)


@pytest.mark.parametrize("budget", [0, 4])
def test_nobody_or_everybody_is_bounded_by_what_comes_of_it(budget: int) -> None:
    transition, reward = draw_agents("dense", 4, 3)
    later, other = draw_agents("dense", 4, 3, seed=1)
    problem = Problem(transition, reward, budget).change_to(Problem(later, other, budget), 5)
    found = reward_bounds(problem, np.array([5, 30]))
    mass, total = first_distribution(problem), []
    for step in range(30):
        now = problem.at(step)
        mass = np.einsum("ns,nsj->nj", mass, now.transition[:, budget // 4])
        total.append((mass * now.reward).sum())
    assert found == pytest.approx(np.cumsum(total)[[4, 29]], rel=1e-12)


@pytest.mark.parametrize("family", ["change-v1", "slow-drift-v1"])
def test_the_oracle_stays_below_the_bound_of_dynamics_that_change_and_comes_near(family: str) -> None:
    problem = make_problems(family, seed=11)[0]
    reward = np.cumsum(simulate(problem, "whittle-oracle", 1000, runs=20, threads=1).reward, axis=1)
    steps = np.array([100, 600, 1000])
    share = reward[:, steps - 1].mean(axis=0) / reward_bounds(problem, steps)
    assert (share < 1.002).all()
    assert (share > 0.97).all()


@pytest.mark.parametrize("rules", [{"at_most": True}, {"cost": np.linspace(0.5, 2.5, 8)}], ids=str)
@pytest.mark.parametrize("kind", ["dense", "harmful"])
def test_a_limit_bounds_every_horizon_by_its_plan(kind: str, rules: dict[str, Any]) -> None:
    transition, reward = draw_agents(kind, 8, 3, seed=5)
    bounds = bound_every_step(transition, reward, 6, 40, **rules)
    for horizon in (1, 3, 10, 17, 40):
        best = plan(transition, reward, 6, horizon, **rules)
        assert best.value - ROUNDING <= bounds[horizon - 1]
        assert bounds[horizon - 1] <= best.bound + 0.01 * horizon * np.ptp(reward)
    if "at_most" in rules:
        assert (bounds >= bound_every_step(transition, reward, 6, 40) - 0.01 * np.arange(1, 41)).all()


def test_a_limit_beyond_all_costs_lets_everybody_gain() -> None:
    transition, reward = draw_agents("dense", 5, 2, seed=6)
    free = sum(bound_every_step(transition[[n]], reward[[n]], 1, 30, at_most=True) for n in range(5))
    assert bound_every_step(transition, reward, 5, 30, at_most=True) == pytest.approx(free, rel=1e-3)
    assert bound_every_step(transition, reward, 99, 30, cost=np.full(5, 2.0)) == pytest.approx(free, rel=1e-3)
