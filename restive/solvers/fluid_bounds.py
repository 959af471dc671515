"""Fluid bounds of all horizons t = 1, …, T: a curve that no policy's mean reward can exceed at any step.

A plan of `restive.solvers.fluid` bounds one horizon. But ANY prices give an upper bound on ANY horizon, and the prices
of a few plans, for increasing horizons, serve all others; where there are several bounds, the smallest is used:

    the last t prices of a longer plan: one backward sweep bounds all shorter horizons;
    between two plans, a mixture of both, each stretched or compressed to t steps;
    beyond the longest, its first half, then the best constant price as often as needed, then its second half.

The longest plan is the first that is hardly better than the one before it, stretched in this way, or that of T itself.
The backward recursion is monotone and commutes with constants, so at a constant price the increments of an agent's
value never leave the range that they have over its states at any one step: once that range is narrow, its upper end is
used for all further steps. If the budget need not be spent, as with costs, prices are not below 0.

If the dynamics change, each segment of constant dynamics has its own best constant price.
"""

from collections.abc import Iterator
from itertools import accumulate, islice, pairwise, repeat
from typing import NamedTuple

import numpy as np

from restive.errors import check_whole
from restive.kernels.jit import compiled, inlined
from restive.solvers.fluid import bound_at, plan
from restive.solvers.fluid_kernels import Agents, propagate
from restive.types import Floats, Ints

# Plans are made for each of the first horizons, then for horizons that grow by a half.
DENSE_PLANS = 8
PLAN_GAP, PLAN_SWEEPS = 1e-3, 30
# Between two plans, horizons up to this are bounded one by one, longer ones in strides.
DENSE_HORIZONS = 32
# The tolerated excess of a bound, in units of what a budget can add in one step.
BOUND_TOLERANCE = 1e-3
FIRST_STEP, GOLDEN_SECTION, SEARCH_STEPS = 0.1, 0.5 * (5**0.5 - 1.0), 14


class BoundModel(NamedTuple):
    """Everything but the prices that a bound depends on."""

    transition: Floats  # [N, 2, S, S]
    reward: Floats  # [N, S]
    start: Floats  # [N, S]
    share: float  # budget / N
    cost: Floats  # [N]
    slack: float  # the tolerated excess of an agent's part of a bound, in units of its reward range
    at_most: bool  # whether the budget need not be spent, so that prices are 0 or more


def bound_every_step(
    transition: Floats,
    reward: Floats,
    budget: int,
    horizon: int,
    start: Floats | None = None,
    cost: Floats | None = None,
    at_most: bool = False,
) -> Floats:
    """Upper bounds on the expected cumulative reward of any policy after each of `horizon` steps, [T].

    start  [N, S]  the distribution of each agent's first state; by default uniform
    cost   [N]     of acting on each agent; by default 1
    at_most        whether the budget need not be spent; it need not with costs

    >>> off, on = [[1, 0], [1, 0]], [[0, 1], [0, 1]]  # acting leads to state 1, waiting to state 0
    >>> bound_every_step(np.array([[off, on]] * 2), np.array([[0, 1], [0, 10]]), budget=1, horizon=4).round(6)
    array([10., 20., 30., 40.])
    """
    steps = check_whole("horizon", horizon, 1)
    shortest = plan(transition, reward, budget, 1, start, cost=cost, at_most=at_most)
    model = make_model(shortest.agents, shortest.start, budget, at_most or cost is not None)
    if model.share == 0.0 or (model.share == 1.0 and not model.at_most):
        return np.fromiter(islice(_act_at_random(model), steps), np.float64)
    bounds, price = np.full(steps, np.inf), find_price(model, steps)
    paths = plan_ahead(model, budget, steps, price)
    for path in paths:
        bound_up_to(model, path, bounds)
    for shorter, longer in pairwise(paths):
        bound_between(model, shorter, longer, bounds)
    if paths[-1].size < steps:
        bounds[paths[-1].size :] = 0.0
        add_beyond(model, paths[-1], price, bounds)
    return bounds


def bound_changing(
    transition: Floats,
    reward: Floats,
    changes: Ints,
    budget: int,
    horizons: Ints,
    start: Floats,
    cost: Floats | None = None,
    at_most: bool = False,
) -> Floats:
    """Upper bounds on the expected cumulative reward after `horizons` [H] steps if the dynamics change, [H].

    Costs and a budget that need not be spent are as in `bound_every_step`.
    transition  [G, N, 2, S, S] and reward  [G, N, S] are those from step changes[g] on, which ascend from 0

    >>> off, on = [[1, 0], [1, 0]], [[0, 1], [0, 1]]  # acting leads to state 1, waiting to state 0
    >>> rewards = np.array([[[0, 1], [0, 10]], [[0, 1], [0, 20]]])  # a reward doubles after two steps
    >>> model = np.array([[[off, on]] * 2] * 2, np.float64), rewards.astype(np.float64), np.array([0, 2])
    >>> bound_changing(*model, budget=1, horizons=np.array([1, 2, 4]), start=np.full((2, 2), 0.5)).round(6)
    array([10., 20., 60.])
    """
    share, longest, limited = budget / len(start), int(horizons.max()), at_most or cost is not None
    costs = np.ones(len(start)) if cost is None else cost
    price, everybody = np.zeros(len(changes)), share == 1 and not limited
    if share > 0 and not everybody:
        box = np.empty((len(start), 2, 0))
        for g, (rows, gain) in enumerate(zip(transition, reward, strict=True)):
            price[g] = find_price(make_model(Agents(rows, box, gain, costs), start, budget, limited), longest)
    value = np.zeros((horizons.size, *start.shape))
    for step in range(longest - 1, -1, -1):
        g = int(np.searchsorted(changes, step, side="right")) - 1
        wait, act = np.einsum("hnj,nasj->ahns", reward[g] + value, transition[g], optimize=True)
        paid = np.maximum(wait, act - price[g] * costs[:, None]) + share * price[g]
        value = np.where(horizons[:, None, None] > step, wait if share == 0 else act if everybody else paid, 0.0)
    return np.asarray((start * value).sum(axis=(1, 2)))


def make_model(agents: Agents, start: Floats, budget: int, at_most: bool) -> BoundModel:
    """The model of the bounds."""
    acted = budget / float(agents.cost.sum())
    slack = BOUND_TOLERANCE * acted * (1.0 - acted) if acted < 1.0 or not at_most else 0.25 * BOUND_TOLERANCE
    return BoundModel(agents.transition, agents.reward, start, budget / len(start), agents.cost, slack, at_most)


def plan_ahead(model: BoundModel, budget: int, horizon: int, price: float) -> list[Floats]:
    """The prices [h] of plans for increasing horizons h, until one is hardly better than the last one stretched.

    >>> off, on = [[1.0, 0.0]] * 2, [[0.0, 1.0]] * 2  # acting leads to state 1, waiting to state 0
    >>> two = Agents(np.array([[off, on]] * 2), np.empty((2, 2, 0)), np.array([[0.0, 1.0], [0.0, 10.0]]), np.ones(2))
    >>> model = make_model(two, np.full((2, 2), 0.5), budget=1, at_most=False)
    >>> [path.size for path in plan_ahead(model, budget=1, horizon=1000, price=5.0)]
    [1, 2, 3, 4, 5, 6, 7, 8, 12]
    """
    paths: list[Floats] = []
    following = 1
    for steps, collected in enumerate(islice(_act_at_random(model), horizon), start=1):
        if steps < following:
            continue
        # The gap of a plan is relative to its value, which is measured from that of acting at random.
        problem = model.transition, model.reward - collected / (steps * len(model.start)), budget
        cost = model.cost if model.at_most else None
        best = plan(*problem, steps, model.start, gap=PLAN_GAP, sweeps=PLAN_SWEEPS, cost=cost)
        known = np.inf
        if steps > DENSE_PLANS:
            known = bound_at(stretch(paths[-1], price, steps), *problem, model.start, cost=model.cost)
        paths.append(best.price)
        if known <= best.bound + PLAN_GAP * abs(best.value):
            break
        following = min(horizon, steps + 1 if steps < DENSE_PLANS else steps * 3 // 2)
    return paths


def stretch(path: Floats, price: float, horizon: int) -> Floats:
    """Prices for a longer horizon: the path with copies of `price` inserted in its middle.

    >>> stretch(np.array([4.0, 2.0, 2.0, 1.0]), 3.0, 6)
    array([4., 2., 3., 3., 2., 1.])
    """
    half = path.size // 2
    return np.concatenate([path[:half], np.full(horizon - path.size, price), path[half:]])


def find_price(model: BoundModel, horizon: int) -> float:
    """The constant price with the smallest bound on a horizon, by golden-section search: the bound is convex in it.

    >>> off, on = [[1.0, 0.0]] * 2, [[0.0, 1.0]] * 2  # acting leads to state 1, waiting to state 0
    >>> two = Agents(np.array([[off, on]] * 2), np.empty((2, 2, 0)), np.array([[0.0, 1.0], [0.0, 10.0]]), np.ones(2))
    >>> model = make_model(two, np.full((2, 2), 0.5), budget=1, at_most=False)
    >>> 1 <= find_price(model, horizon=3) <= 10
    True
    """
    low, high = _enclose(model, horizon)
    left, right = high - GOLDEN_SECTION * (high - low), low + GOLDEN_SECTION * (high - low)
    at_left, at_right = bound_constant(model, left, horizon), bound_constant(model, right, horizon)
    for _ in range(SEARCH_STEPS):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN_SECTION * (high - low)
            at_left = bound_constant(model, left, horizon)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN_SECTION * (high - low)
            at_right = bound_constant(model, right, horizon)
    return left if at_left < at_right else right


def _enclose(model: BoundModel, horizon: int) -> tuple[float, float]:
    """Two prices that bracket the minimum of the bound: from 0 in the direction of descent, in doubling steps."""
    unit = FIRST_STEP * float(np.ptp(model.reward, axis=1).max())
    for step in (unit,) if model.at_most else (unit, -unit):
        last, price, bound = 0.0, 0.0, bound_constant(model, 0.0, horizon)
        while (further := bound_constant(model, 2 * price or step, horizon)) < bound:
            last, price, bound = price, 2 * price or step, further
        if price != 0.0:
            return min(last, 2 * price), max(last, 2 * price)
    return 0.0 if model.at_most else -unit, unit


def _act_at_random(model: BoundModel) -> Iterator[float]:
    """Yield the expected cumulative reward of acting on random agents after 1, 2, … steps."""
    acted = min(1.0, model.share * len(model.cost) / float(model.cost.sum())) if model.at_most else model.share
    mass, fraction = model.start.copy(), np.full(model.start.shape, acted)
    return accumulate(propagate(model.transition, model.reward, each, mass) for each in repeat(fraction))


@compiled
def _step_back(model: BoundModel, n: int, price: float, value: Floats, before: Floats) -> None:
    """Fill the values of agent n one step earlier; its share of the budget is credited at the price.

    before(s) = max over a of [ Σ_j transition_a(s, j) · (reward(j) + value(j)) − a · price · cost ] + share · price
    """
    for s in range(value.size):
        wait, act = 0.0, 0.0
        for j in range(value.size):
            target = model.reward[n, j] + value[j]
            wait += model.transition[n, 0, s, j] * target
            act += model.transition[n, 1, s, j] * target
        before[s] = max(wait, act - price * model.cost[n]) + model.share * price


@compiled
def _backward(model: BoundModel, n: int, price: Floats, value: Floats, spare: Floats) -> None:
    """Go backward over the steps of `price`: value [S] after them becomes the value before them."""
    for i in range(price.size - 1, -1, -1):
        _step_back(model, n, price[i], value, spare)
        for s in range(value.size):
            value[s] = spare[s]


@compiled
def _expect(model: BoundModel, n: int, value: Floats) -> float:
    total = 0.0
    for s in range(value.size):
        total += model.start[n, s] * value[s]
    return total


@compiled
def bound_up_to(model: BoundModel, path: Floats, bounds: Floats) -> None:
    """Lower the bounds [T] on horizons no longer than the path to what its last prices give."""
    totals, states = np.zeros(path.size), model.start.shape[1]
    for n in range(model.start.shape[0]):
        value, before = np.zeros(states), np.empty(states)
        for t in range(1, path.size + 1):
            _step_back(model, n, path[path.size - t], value, before)
            value, before = before, value
            totals[t - 1] += _expect(model, n, value)
    for t in range(1, path.size + 1):
        bounds[t - 1] = min(bounds[t - 1], totals[t - 1])


@compiled
def _read(path: Floats, part: float) -> float:
    """The interpolated price at a relative position between 0 and 1."""
    place = part * (path.size - 1)
    before = min(int(place), max(0, path.size - 2))
    after = min(before + 1, path.size - 1)
    return float(path[before] + (place - before) * (path[after] - path[before]))


@compiled
def bound_between(model: BoundModel, shorter: Floats, longer: Floats, bounds: Floats) -> None:
    """Lower the bounds [T] on horizons between those of two paths to what mixtures of their prices give."""
    value, spare, price = np.zeros(model.start.shape), np.empty(model.start.shape[1]), np.empty(longer.size)
    for t in range(shorter.size + 1, longer.size):
        weight = (t - shorter.size) / (longer.size - shorter.size)
        for i in range(t):
            part = i / (t - 1)
            price[i] = (1.0 - weight) * _read(shorter, part) + weight * _read(longer, part)
        # Some long horizons extend the one before by one step, so that the work stays proportional to their number.
        fresh = t % (1 + t // DENSE_HORIZONS) == 0 or t == shorter.size + 1
        total = 0.0
        for n in range(model.start.shape[0]):
            for s in range(spare.size):
                value[n, s] *= 1.0 - fresh
            _backward(model, n, price[: t if fresh else 1], value[n], spare)
            total += _expect(model, n, value[n])
        bounds[t - 1] = min(bounds[t - 1], total)


@compiled
def _range(before: Floats, value: Floats) -> tuple[float, float]:
    """The smallest and the largest increment over the states."""
    low, high = np.inf, -np.inf
    for s in range(value.size):
        low, high = min(low, before[s] - value[s]), max(high, before[s] - value[s])
    return low, high


@compiled
def _allow(model: BoundModel, n: int) -> float:
    """The tolerated excess of one agent's part of a bound."""
    low, high = np.inf, -np.inf
    for s in range(model.reward.shape[1]):
        low, high = min(low, model.reward[n, s]), max(high, model.reward[n, s])
    return float(model.slack * (high - low))


@compiled
def bound_constant(model: BoundModel, price: float, horizon: int) -> float:
    """The bound on one horizon at a constant price."""
    total, states = 0.0, model.start.shape[1]
    for n in range(model.start.shape[0]):
        value, before, rest = np.zeros(states), np.empty(states), 0.0
        narrow = _allow(model, n)
        for t in range(1, horizon + 1):
            _step_back(model, n, price, value, before)
            low, high = _range(before, value)
            value, before = before, value
            if (high - low) * (horizon - t) <= narrow:
                rest = high * (horizon - t)
                break
        total += _expect(model, n, value) + rest
    return total


@inlined
def _add_agent(model: BoundModel, n: int, path: Floats, price: float, bounds: Floats) -> None:
    """Add one agent's part to the bounds on horizons longer than the path."""
    horizon, half, states = bounds.size, path.size // 2, model.start.shape[1]
    value, before, begun = np.zeros(states), np.empty(states), np.empty(states)
    narrow, slack, total = _allow(model, n), np.inf, 0.0
    _backward(model, n, path[half:], value, before)
    for t in range(path.size + 1, horizon + 1):
        _step_back(model, n, price, value, before)
        low, high = _range(before, value)
        slack, total = slack + high - low, total + high
        value, before = before, value
        if slack > narrow:
            for s in range(states):
                begun[s] = value[s]
            _backward(model, n, path[:half], begun, before)
            slack, total = 0.0, _expect(model, n, begun)
        bounds[t - 1] += total
        if (high - low) * (horizon - t) <= narrow:
            for later in range(t, horizon):
                bounds[later] += total + high * (later + 1 - t)
            break


@compiled
def add_beyond(model: BoundModel, path: Floats, price: float, bounds: Floats) -> None:
    """Add the bounds [T] on horizons longer than the path, stretched at its middle with the price."""
    for n in range(model.start.shape[0]):
        _add_agent(model, n, path, price, bounds)
