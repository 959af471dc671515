"""Who is chosen when the budget need not be spent or agents cost more or less: never too much, nobody who would lose."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from restive.kernels import rng
from restive.kernels.spending import (
    NO_GROUPS,
    Groups,
    choose_within,
    inclusion_within,
    sort_agents,
    spend,
    spending_frequencies,
    spending_probabilities,
)
from restive.kernels.top_k import choose
from restive.types import Floats, Ints

PRIORITIES = st.one_of(st.sampled_from([0.0, 1.0, 2.0, np.inf, -np.inf]), st.floats(-9, 9))
COSTS = st.one_of(st.sampled_from([0.1, 0.5, 1.0, 2.0]), st.floats(0.01, 9))


def decide(
    priority: Floats, budget: int, explore: float = 0.0, break_even: float = -np.inf, cost: Floats | None = None
) -> Ints:
    """The choice of every run, each with random numbers of its own."""
    runs, size = priority.shape
    keys = rng.run_keys(0, np.arange(runs))
    streams = rng.branch(keys, rng.EXPLORE, 0), rng.branch(keys, rng.TIE, 0)
    costs = np.ones((runs, size)) if cost is None else np.tile(cost, (runs, 1))
    limits = np.full(runs, explore), np.full(runs, break_even), costs, budget
    return choose_within(priority, *limits, *streams, np.arange(size))


def decide_slowly(priority: Floats, budget: int, break_even: float, cost: Floats) -> list[int]:
    """Agents of distinct priorities in order, as long as they fit."""
    left, chosen = budget * (1 + 1e-9), []
    for n in sorted(range(priority.size), key=lambda n: -priority[n]):
        if priority[n] > break_even and cost[n] <= left:
            left -= cost[n]
            chosen.append(n)
    return sorted(chosen)


@settings(derandomize=True, max_examples=150, deadline=None)
@given(st.lists(PRIORITIES, min_size=1, max_size=12), st.data())
def test_a_budget_that_must_be_spent_on_equal_costs_is_the_plain_choice(
    values: list[float], data: st.DataObject
) -> None:
    budget, explore = data.draw(st.integers(0, len(values))), data.draw(st.sampled_from([0.0, 0.5, 1.0]))
    priority = np.tile(np.array(values), (5, 1))
    keys = rng.run_keys(0, np.arange(5))
    streams = rng.branch(keys, rng.EXPLORE, 0), rng.branch(keys, rng.TIE, 0)
    plain = np.empty(priority.shape, np.int64)
    choose(priority, np.full(5, explore), budget, *streams, np.arange(len(values)), plain)
    assert np.array_equal(decide(priority, budget, explore), plain)


@settings(derandomize=True, max_examples=150, deadline=None)
@given(st.lists(st.tuples(PRIORITIES, COSTS), min_size=1, max_size=12), st.integers(0, 20), st.floats(-3, 3))
def test_nobody_would_lose_the_budget_holds_and_nobody_else_fits(
    agents: list[tuple[float, float]], budget: int, break_even: float
) -> None:
    priority, cost = (np.array(column) for column in zip(*agents, strict=True))
    for costs in (cost, None):
        limit = budget if costs is not None else min(budget, priority.size)
        spent = np.ones(priority.size) if costs is None else costs
        for row in decide(np.tile(priority, (3, 1)), limit, break_even=break_even, cost=costs):
            left = limit - spent[row == 1].sum()
            assert left >= -1e-8
            assert (priority[row == 1] > break_even).all()
            others = (row == 0) & (priority > break_even)
            assert (spent[others] > left - 1e-8).all()


def test_it_agrees_with_taking_agents_one_by_one() -> None:
    draw = np.random.default_rng(1)
    for _ in range(200):
        size, budget = int(draw.integers(1, 8)), int(draw.integers(0, 9))
        priority, cost = draw.normal(size=size), draw.uniform(0.2, 4, size)
        row = decide(priority[None], budget, break_even=-0.3, cost=cost)[0]
        assert np.flatnonzero(row).tolist() == decide_slowly(priority, budget, -0.3, cost)


def test_by_benefit_per_cost_it_misses_the_best_set_by_less_than_one_agent() -> None:
    draw = np.random.default_rng(2)
    for _ in range(100):
        size, budget = int(draw.integers(1, 9)), int(draw.integers(1, 8))
        benefit, cost = draw.normal(size=size), draw.uniform(0.3, 3, size)
        sets = [chosen for k in range(size + 1) for chosen in combinations(range(size), k)]
        best = max(benefit[list(chosen)].sum() for chosen in sets if cost[list(chosen)].sum() <= budget)
        row = decide((benefit / cost)[None], budget, break_even=0.0, cost=cost)[0]
        assert best - benefit[cost <= budget].max(initial=0.0) <= benefit[row == 1].sum() <= best + 1e-9


def test_costs_that_add_up_to_the_budget_fit_in_spite_of_rounding() -> None:
    assert decide(np.array([[2.0, 1.0]]), 2, cost=np.array([1.1, 0.9])).tolist() == [[1, 1]]
    assert decide(np.zeros((1, 10)), 1, cost=np.full(10, 0.1)).sum() == 10


def test_the_minimum_of_a_group_is_spent_first_on_those_who_gain() -> None:
    priority, cost = np.array([[5.0, 4.0, 3.0, 2.0, -1.0]]), np.array([[2.0, 1.0, 1.0, 2.0, 1.0]])
    groups, action = Groups(np.array([0, 0, 0, 1, 1]), np.array([0.0, 3.0])), np.empty((1, 5), np.int64)
    order = sort_agents(priority, np.zeros(1, np.uint64), np.arange(5))
    spend(order, priority, np.array([-np.inf]), cost, 4, groups, action)
    assert action.tolist() == [[0, 1, 0, 1, 1]]
    spend(order, priority, np.array([0.0]), cost, 4, groups, action)
    assert action.tolist() == [[1, 0, 0, 1, 0]]


def test_agents_that_are_only_asked_about_are_told_apart_and_nothing_is_spent_on_them() -> None:
    draw = np.random.default_rng(4)
    for _ in range(200):
        priority, cost, group = draw.normal(size=(1, 6)), draw.uniform(0.5, 3, (1, 6)), draw.integers(-1, 2, 6)
        groups, asked = Groups(group, np.array([2.0, 1.0])), draw.random(6) < 0.4
        order, action = np.argsort(-priority), np.empty((1, 6), np.int64)
        spend(order, priority, np.array([-np.inf]), cost, 4.0, groups, action, asked)
        for one in np.flatnonzero(asked):  # the choice if this one can be chosen, and the others asked about cannot
            alone, there = np.empty((1, 6), np.int64), ~asked
            there[one] = True
            spend(order, priority, np.array([-np.inf]), np.where(there, cost, 99.0), 4.0, groups, alone)
            assert alone[0, one] == action[0, one]
        spend(order, priority, np.array([-np.inf]), np.where(asked, 99.0, cost), 4.0, groups, alone)
        assert (alone[0, ~asked] == action[0, ~asked]).all()


@pytest.mark.parametrize(("explore", "break_even"), [(0.0, 0.5), (0.3, 1.5), (1.0, 0.0), (0.4, 9.0)])
def test_inclusion_is_how_often_an_agent_is_chosen(explore: float, break_even: float) -> None:
    row, runs = np.array([3.0, 2.0, 2.0, 1.0, 0.0]), 20_000
    probability = inclusion_within(row[None], np.array([explore]), np.array([break_even]), 2)[0]
    often = decide(np.tile(row, (runs, 1)), 2, explore, break_even).mean(axis=0)
    assert (np.abs(often - probability) <= 4 * np.sqrt(probability * (1 - probability) / runs) + 1e-12).all()


def test_frequencies_with_costs_are_how_often_an_agent_is_chosen() -> None:
    row, cost, runs = np.array([2.0, 1.0, 1.0, 1.0, 0.0]), np.array([2.0, 1.0, 2.0, 3.0, 1.0]), 20_000
    rest = cost, 5, NO_GROUPS, np.uint64(7), np.arange(5)
    estimated, _ = spending_frequencies(row, np.zeros(5), -np.inf, *rest, runs)
    often = decide(np.tile(row, (runs, 1)), 5, cost=cost).mean(axis=0)
    assert np.abs(often - estimated).max() < 4 * np.sqrt(0.5 / runs)
    assert (often[1:4] > 0.05).all()
    assert (often[1:4] < 0.95).all()
    noisy, _ = spending_frequencies(row, np.full(5, 0.5), 0.9, *rest, runs)
    normal = np.random.default_rng(3).normal(size=(runs, 5)) * 0.5 + row
    often = decide(normal, 5, break_even=0.9, cost=cost).mean(axis=0)
    assert np.abs(often - noisy).max() < 0.02


def test_a_choice_without_noise_and_ties_is_certain_after_one_draw() -> None:
    rest = np.ones(3), 2, NO_GROUPS, np.uint64(7), np.arange(3)
    probability, error = spending_frequencies(np.array([1.0, 3.0, 2.0]), np.zeros(3), -np.inf, *rest, 10**12)
    assert probability.tolist() == [0, 1, 1]
    assert error.tolist() == [0, 0, 0]


def test_errors_with_costs_are_those_of_frequencies() -> None:
    """The same frequencies with 400 keys: how far they are from those of many draws is as stated, or less."""
    row, cost = np.array([2.0, 1.0, 1.0, 1.0, 0.0]), np.array([2.0, 1.0, 2.0, 3.0, 1.0])
    rest = cost, 5.0, NO_GROUPS
    exact, small = spending_probabilities(row, np.full(5, 0.5), 0.2, -np.inf, *rest, np.uint64(7), np.arange(5), 40_000)
    found = [
        spending_probabilities(row, np.full(5, 0.5), 0.2, -np.inf, *rest, key, np.arange(5), 64)
        for key in rng.run_keys(3, np.arange(400))
    ]
    probability, error = np.array(found).swapaxes(0, 1)
    spread, stated = np.sqrt(((probability - exact) ** 2).mean(axis=0)), np.sqrt((error**2).mean(axis=0))
    np.testing.assert_allclose(spread, stated, rtol=0.15)
    assert (small < 0.003).all()
