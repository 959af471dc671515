import tracemalloc
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import highspy
import numpy as np
import pytest

from restive.errors import InputError
from restive.solvers.fluid import Plan, bound_at, plan
from restive.solvers.fluid_kernels import fill_fractions, find_level
from restive.types import Floats, Ints

KINDS = ("dense", "sparse", "certain", "alike", "harmful")


class Case(NamedTuple):
    transition: Floats
    reward: Floats
    budget: int
    horizon: int
    start: Floats
    cost: Floats | None = None
    at_most: bool = False

    def plan(self, **settings: float) -> Plan:
        rules: dict[str, Any] = {"cost": self.cost, "at_most": self.at_most, **settings}
        return plan(self.transition, self.reward, self.budget, self.horizon, self.start, **rules)


def draw_agents(rng: np.random.Generator, kind: str, agents: int, states: int) -> tuple[Floats, Floats]:
    """Agents of a kind: rows dense, sparse or deterministic, all agents alike, or acting that never helps."""
    shape = (1 if kind == "alike" else agents, 2, states)
    transition = rng.dirichlet(np.full(states, 0.2 if kind == "sparse" else 1.0), size=shape)
    transition[transition < 1e-4] = 0.0  # a simplex code loses its footing on coefficients of 1e-9
    transition /= transition.sum(axis=-1, keepdims=True)
    reward = np.repeat(rng.normal(size=(shape[0], states)), agents // shape[0], axis=0)
    transition = np.repeat(transition, agents // shape[0], axis=0)
    if kind == "certain":
        transition = np.eye(states)[rng.integers(states, size=shape)]
    if kind == "harmful":
        reward = np.tile(np.arange(float(states)), (agents, 1))
        transition[:, 1] = 0.5 * transition[:, 0]
        transition[:, 1, :, 0] += 0.5
    return transition, reward


def draw_case(rng: np.random.Generator, kind: str) -> Case:
    agents, states = int(rng.integers(1, 7)), int(rng.integers(2, 6))
    budget, horizon = int(rng.integers(0, agents + 1)), int(rng.integers(1, 13))
    known = np.eye(states)[rng.integers(states, size=agents)]
    start = known if rng.random() < 0.5 else rng.dirichlet(np.ones(states), size=agents)
    return Case(*draw_agents(rng, kind, agents, states), budget, horizon, start)


def draw_two_states(seed: int, agents: int) -> tuple[Floats, Floats]:
    up = np.random.default_rng(seed).random((agents, 2, 2))
    return np.stack([1 - up, up], axis=-1), np.tile([0.0, 1.0], (agents, 1))


def list_rows(case: Case, radius: Floats, mu: Ints, flow: Ints) -> Iterator[tuple[float, float, list[int], Floats]]:
    """The linear program row by row, over mu [T, N, S, 2] and where it goes, flow [T, N, S, 2, S]."""
    agents, states = case.reward.shape
    for t, n, s, a in product(range(case.horizon), range(agents), range(states), range(2)):
        yield 0, 0, [*flow[t, n, s, a], mu[t, n, s, a]], np.array([1.0] * states + [-1.0])
        for j in range(states):
            middle, width = case.transition[n, a, s, j], radius[n, a, s]
            entries = [flow[t, n, s, a, j], mu[t, n, s, a]]
            yield 0, np.inf, entries, np.array([1.0, -max(0.0, middle - width)])
            yield -np.inf, 0, entries, np.array([1.0, -min(1.0, middle + width)])
    for n, s in product(range(agents), range(states)):
        yield case.start[n, s], case.start[n, s], list(mu[0, n, s]), np.ones(2)
        for t in range(1, case.horizon):
            came = flow[t - 1, n, :, :, s].ravel()
            yield 0, 0, [*mu[t, n, s], *came], np.array([1.0] * 2 + [-1.0] * came.size)
    for t in range(case.horizon):
        least = -np.inf if case.at_most or case.cost is not None else case.budget
        cost = np.ones(agents) if case.cost is None else case.cost
        yield least, case.budget, list(mu[t, :, :, 1].ravel()), np.repeat(cost, states)


def solve_program(case: Case, radius: Floats | None = None) -> float:
    """The optimum of the linear program, every row anywhere within its radius, by simplex."""
    (agents, states), pairs = case.reward.shape, case.horizon * case.reward.size * 2
    mu: Ints = np.arange(pairs).reshape(case.horizon, agents, states, 2)
    flow: Ints = pairs + np.arange(pairs * states).reshape(*mu.shape, states)
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    solver.addVars(pairs * (1 + states), np.zeros(pairs * (1 + states)), np.full(pairs * (1 + states), np.inf))
    worth = np.broadcast_to(case.reward[:, None, None, :], flow.shape)
    solver.changeColsCost(flow.size, flow.ravel().astype(np.int32), -worth.ravel())
    box = np.zeros((agents, 2, states)) if radius is None else radius
    for low, high, entries, weight in list_rows(case, box, mu, flow):
        solver.addRow(low, high, len(entries), np.array(entries, dtype=np.int32), weight)
    solver.run()
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return -float(solver.getInfo().objective_function_value)


@pytest.mark.parametrize("kind", KINDS)
def test_value_and_bound_enclose_the_optimum_of_the_linear_program(kind: str) -> None:
    rng = np.random.default_rng(1)
    for _ in range(12):
        case = draw_case(rng, kind)
        best, optimum = case.plan(), solve_program(case)
        slack = 1e-6 * (1 + abs(optimum))
        assert best.value - slack <= optimum <= best.bound + slack
        assert best.gap == pytest.approx((best.bound - best.value) / abs(best.value), abs=1e-9)
        assert best.gap <= 1e-3 or (kind == "certain" and best.sweeps == 200)


@pytest.mark.parametrize("kind", ["dense", "sparse", "harmful"])
@pytest.mark.parametrize("costly", [False, True])
def test_a_budget_that_need_not_be_spent_is_enclosed_too(kind: str, costly: bool) -> None:
    rng = np.random.default_rng(3)
    for _ in range(8):
        case = draw_case(rng, kind)
        cost = rng.uniform(0.5, 3.0, len(case.reward)) if costly else None
        limited = case._replace(cost=cost, at_most=not costly)
        best, optimum = limited.plan(), solve_program(limited)
        slack = 1e-6 * (1 + abs(optimum))
        assert best.value - slack <= optimum <= best.bound + slack
        assert best.gap <= 2e-3 or abs(best.bound - best.value) <= 1e-2 * np.ptp(case.reward)
        assert best.price.min() >= 0
        mu = best.occupancy()
        weight = np.ones(len(case.reward)) if cost is None else cost
        assert np.einsum("tns,n->t", mu[..., 1], weight).max() <= case.budget + 1e-6
        if not costly:
            assert optimum >= solve_program(case) - slack


@pytest.mark.parametrize("kind", KINDS)
def test_occupancy_keeps_every_flow_and_budget_and_earns_the_value(kind: str) -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        case = draw_case(rng, kind)
        best = case.plan()
        mu = best.occupancy()
        arriving = np.einsum("tnsa,nasj->tnj", mu, case.transition)
        assert mu.min() >= 0
        np.testing.assert_allclose(mu[0].sum(axis=-1), case.start, atol=1e-9)
        np.testing.assert_allclose(mu[1:].sum(axis=-1), arriving[:-1], atol=1e-9)
        np.testing.assert_allclose(mu[..., 1].sum(axis=(1, 2)), case.budget, atol=1e-9)
        assert (arriving * case.reward).sum() == pytest.approx(best.value, abs=1e-9)


def test_any_prices_give_an_upper_bound() -> None:
    rng = np.random.default_rng(3)
    for kind in KINDS:
        case = draw_case(rng, kind)
        optimum = solve_program(case)
        for scale in (0.0, 0.1, 1.0, 10.0):
            price = scale * rng.normal(size=case.horizon)
            above = bound_at(price, case.transition, case.reward, case.budget, case.start)
            assert above >= optimum - 1e-6 * (1 + abs(optimum))


def test_bound_is_what_its_own_prices_give() -> None:
    transition, reward = draw_two_states(seed=4, agents=8)
    best = plan(transition, reward, budget=3, horizon=20)
    assert bound_at(best.price, transition, reward, budget=3) == pytest.approx(best.bound, abs=1e-9)


def test_bound_is_above_every_policy_of_two_agents() -> None:
    for seed in range(20):
        transition, reward = draw_two_states(seed, agents=2)
        worth = np.add.outer(reward[0], reward[1])
        value = np.zeros((2, 2))
        for _ in range(4):
            choices = [np.einsum("si,tj,ij->st", transition[0, a], transition[1, 1 - a], worth + value) for a in (0, 1)]
            value = np.maximum(*choices)
        best = plan(transition, reward, budget=1, horizon=4)
        assert best.bound >= value.mean() - 1e-9
        assert best.bound <= 1.2 * value.mean()


def test_a_small_gap_is_reached_when_asked_for() -> None:
    for seed in range(5):
        transition, reward = draw_two_states(seed, agents=20)
        assert plan(transition, reward, budget=4, horizon=60, gap=1e-5).gap <= 1e-5


def test_a_gap_not_reached_is_reported_and_the_bound_holds() -> None:
    transition, reward = draw_two_states(seed=5, agents=4)
    case = Case(transition, reward, 1, 8, np.full((4, 2), 0.5))
    best, optimum = case.plan(gap=0.0, sweeps=1), solve_program(case)
    assert best.sweeps == 1
    assert best.gap > 1e-3
    assert best.value <= optimum + 1e-6
    assert best.bound >= optimum - 1e-6


def test_more_sweeps_narrow_the_gap_even_for_deterministic_agents() -> None:
    transition, reward = draw_agents(np.random.default_rng(19), "certain", agents=20, states=4)
    plans = [
        plan(transition, reward, budget=5, horizon=50, gap=0.0, sweeps=sweeps) for sweeps in (1, 3, 10, 30, 100, 200)
    ]
    assert np.all(np.diff([best.bound for best in plans]) <= 0)
    assert np.all(np.diff([best.value for best in plans]) >= 0)
    assert plans[0].gap > 0.05
    assert plans[-1].gap < 0.002


@pytest.mark.parametrize("width", [1.0, 1e-6, 1e-10])
def test_a_market_sells_exactly_the_budget_however_narrow_its_edge(width: float) -> None:
    rng = np.random.default_rng(20)
    advantage = rng.choice([-3.3, 2000.1, 2000.1 + 1e-11, 2000.2], size=(300, 2))
    mass, fraction = rng.random((300, 2)), np.empty((300, 2))
    for budget in (0.0, 1.0, 70.0, mass.sum()):
        level, share = find_level(mass, np.ones(300), advantage, budget, width, 5.0, -np.inf)
        fill_fractions(advantage, level, share, width, fraction)
        assert (mass * fraction).sum() == pytest.approx(budget, abs=1e-9)
        assert np.all(np.diff(fraction.ravel()[np.argsort(advantage.ravel())]) >= 0)


def test_optimism_encloses_the_optimum_over_all_rows_of_the_box() -> None:
    rng = np.random.default_rng(6)
    for kind in ("dense", "sparse", "alike"):
        case = Case(*draw_agents(rng, kind, agents=3, states=3), 1, 5, rng.dirichlet(np.ones(3), size=3))
        radius = rng.random((3, 2, 3)) ** 2
        best, optimum = plan(*case[:5], radius=radius), solve_program(case, radius)
        assert best.value - 1e-6 <= optimum <= best.bound + 1e-6
        assert best.gap <= 1e-3


def test_a_radius_of_zero_changes_nothing() -> None:
    transition, reward = draw_two_states(seed=7, agents=6)
    plain = plan(transition, reward, budget=2, horizon=30)
    exact = plan(transition, reward, budget=2, horizon=30, radius=np.zeros((6, 2, 2)))
    assert exact.bound == pytest.approx(plain.bound, rel=1e-12)
    np.testing.assert_allclose(exact.occupancy(), plain.occupancy(), atol=1e-9)


def test_a_larger_radius_never_lowers_the_bound() -> None:
    rng = np.random.default_rng(8)
    transition, reward = draw_agents(rng, "dense", agents=5, states=4)
    price = rng.normal(size=12)
    bounds = [bound_at(price, transition, reward, 2, radius=np.full((5, 2, 4), r)) for r in np.linspace(0, 1.2, 13)]
    assert np.all(np.diff(bounds) >= -1e-9)
    assert bounds[-1] > bounds[0] + 1


def test_a_radius_of_one_puts_everybody_in_the_best_state() -> None:
    transition, reward = draw_agents(np.random.default_rng(9), "dense", agents=5, states=4)
    best = plan(transition, reward, budget=2, horizon=10, radius=np.full((5, 2, 4), 1.0))
    assert best.value == pytest.approx(10 * reward.max(axis=1).sum())
    assert best.bound == pytest.approx(10 * reward.max(axis=1).sum())


@pytest.mark.parametrize("radius", [None, 0.15])
def test_optimistic_and_plain_fractions_step_by_step_are_those_of_the_occupancy(radius: float | None) -> None:
    transition, reward = draw_agents(np.random.default_rng(10), "dense", agents=6, states=3)
    box = None if radius is None else np.full((6, 2, 3), radius)
    best = plan(transition, reward, budget=2, horizon=23, radius=box)
    mu = best.occupancy()
    steps = np.array(list(best.fractions()))
    assert steps.shape == (23, 6, 3)
    np.testing.assert_allclose(steps * mu.sum(axis=-1), mu[..., 1], atol=1e-12)
    np.testing.assert_allclose(mu[..., 1].sum(axis=(1, 2)), 2, atol=1e-9)
    np.testing.assert_array_equal(np.array(list(best.fractions(since=9))), steps[9:])
    np.testing.assert_array_equal(best.block(2), steps[2 * best.stride : 3 * best.stride])


def test_without_mass_the_advantage_decides() -> None:
    wait = [[1, 0, 0], [1, 0, 0], [0, 0, 1]]
    act = [[1, 0, 0], [0, 0, 1], [1, 0, 0]]  # no use in state 0, a gain in 1, a loss in 2; only 2 pays
    start = np.array([[1.0, 0.0, 0.0]] * 2)
    best = plan(np.array([[wait, act]] * 2, dtype=float), np.array([[0.0, 0.0, 1.0]] * 2), 1, 3, start=start)
    for table in best.fractions():
        np.testing.assert_allclose(table, [[0.5, 1, 0]] * 2)


def measure_memory(horizon: int) -> int:
    transition, reward = draw_two_states(seed=11, agents=400)
    tracemalloc.start()
    best = plan(transition, reward, budget=40, horizon=horizon)
    for _ in best.fractions():
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_memory_grows_with_the_root_of_the_horizon() -> None:
    measure_memory(horizon=4)
    short, long = measure_memory(horizon=1000), measure_memory(horizon=4000)
    assert long < 2.5 * short
    assert long < 4000 * 400 * 2 * 8 / 8


def test_one_step_acts_on_the_largest_gains() -> None:
    rng = np.random.default_rng(12)
    transition, reward = draw_agents(rng, "dense", agents=6, states=3)
    state = rng.integers(3, size=6)
    arrival = np.einsum("naj,nj->na", transition[np.arange(6), :, state], reward)
    gain = np.sort(arrival[:, 1] - arrival[:, 0])
    best = plan(transition, reward, budget=2, horizon=1, start=np.eye(3)[state])
    assert best.value == pytest.approx(arrival[:, 0].sum() + gain[-2:].sum())
    assert best.bound == pytest.approx(best.value, rel=1e-3)


@pytest.mark.parametrize(("budget", "action"), [(0, 0), (5, 1)])
def test_with_nobody_or_everybody_acted_on_the_bound_is_exact(budget: int, action: int) -> None:
    transition, reward = draw_agents(np.random.default_rng(13), "dense", agents=5, states=3)
    mass, total = np.full((5, 3), 1 / 3), 0.0
    for _ in range(40):
        mass = np.einsum("ns,nsj->nj", mass, transition[:, action])
        total += (mass * reward).sum()
    best = plan(transition, reward, budget, horizon=40)
    assert best.sweeps == 1
    assert best.bound == pytest.approx(total, rel=1e-11)
    assert best.value == pytest.approx(total, rel=1e-11)


def test_identical_agents_get_the_same_fractions() -> None:
    transition, reward = draw_agents(np.random.default_rng(14), "alike", agents=6, states=3)
    best = plan(transition, reward, budget=2, horizon=30)
    assert best.gap <= 1e-3
    for table in best.fractions():
        np.testing.assert_allclose(table, np.broadcast_to(table[0], table.shape), atol=1e-9)


def test_prices_are_negative_where_acting_hurts() -> None:
    transition, reward = draw_agents(np.random.default_rng(15), "harmful", agents=6, states=3)
    best = plan(transition, reward, budget=2, horizon=10)
    assert best.gap <= 1e-3
    assert np.all(best.price < 0)


def test_worthless_problems_are_worth_nothing() -> None:
    transition, reward = draw_two_states(seed=16, agents=4)
    best = plan(transition, 0 * reward, budget=2, horizon=5)
    assert (best.bound, best.value, best.gap, best.sweeps) == (0, 0, 0, 1)


def test_a_plan_keeps_what_it_was_made_from() -> None:
    transition, reward = draw_two_states(seed=17, agents=4)
    reward.setflags(write=False)
    best = plan(transition, reward, budget=2, horizon=5)
    before = best.occupancy()
    transition[:] = 0.5
    np.testing.assert_array_equal(best.occupancy(), before)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"budget": 5}, "budget is 5; it must be a whole number from 0 to 4"),
        ({"budget": -1}, "budget is -1"),
        ({"horizon": 0}, "horizon is 0; it must be 1 or more"),
        ({"sweeps": 0}, "sweeps is 0"),
        ({"gap": np.nan}, "gap is nan"),
        ({"start": np.ones((4, 2))}, "start of agent 0 is not a distribution"),
        ({"start": np.ones(4)}, r"start has shape \[4\]; transition says \[4, 2\]"),
        ({"radius": np.zeros((4, 2))}, r"radius has shape \[4, 2\]; transition says \[4, 2, 2\]"),
        ({"radius": np.full((4, 2, 2), -0.1)}, "radius of agent 0, action 0, state 0 is below 0"),
    ],
)
def test_invalid_input_is_refused_in_one_sentence(changes: dict[str, object], message: str) -> None:
    transition, reward = draw_two_states(seed=18, agents=4)
    settings: dict[str, object] = {"budget": 1, "horizon": 3, **changes}
    with pytest.raises(InputError, match=message):
        plan(transition, reward, **settings)  # type: ignore[arg-type]
