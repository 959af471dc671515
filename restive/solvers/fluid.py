"""The fluid bound: what no policy can beat over T steps, and a plan for fractions of agents that comes close to it.

Maximise Σ_t Σ_n Σ_{s,a} mu_n(s, a; t) · phi_n(s, a) over mu ≥ 0 with Σ_a mu_n(s, a; 0) = start_n(s), every later mass
the one that arrives, and Σ_n Σ_s mu_n(s, 1; t) = budget at every step: the linear program of Xiong et al. (2022), which
keeps the budget on average (Whittle 1988). A price for an action at each step takes it apart into one small problem an
agent, and ANY prices give an upper bound: Σ_n Σ_s start_n(s) V_n(s) + budget · Σ_t price_t.

The prices are found as a market finds them: look back at today's prices, go forward selling exactly the budget to the
highest advantages, and move every price towards the level at which its step sold out; steps that swing move less.
If that has not settled after a few sweeps, the edge between acting and waiting is made soft and cooled, ever slower.
With a radius [N, 2, S] agents move as they like within the box around their rows: the optimistic plan of R(MA)²B.
Departures: in pairs without mass the advantage decides, by the same rule as in all others (the source leaves it open).
"""

from collections.abc import Iterator
from itertools import count
from math import isqrt
from typing import NamedTuple

import numpy as np

from restive.errors import InputError
from restive.solvers.fluid_kernels import Agents, Bench, add_up, fill, hold, look_back, move, recall, sweep
from restive.types import Floats

NARROW, WIDE, NARROWEST = 1e-3, 0.3, 1e-5
QUICK = 7
COOLING = 0.8
SLOWER, FASTER = 0.6, 1.1
ROUNDING = 1e-12
SUMS_TO_ONE = 1e-9


class Plan(NamedTuple):
    """A bound with its prices, and a plan with its value; `sweeps` says how many it took to find them."""

    bound: float
    value: float
    price: Floats  # [T] at which the bound holds
    ranking: Floats  # [T] the prices at which the plan's advantages are taken
    level: Floats  # [T] the advantage at which a step of the plan sells out
    share: Floats  # [T] of a pair exactly at the level
    width: float  # in advantage, half the distance from not acting at all to acting on all
    sweeps: int
    budget: int
    start: Floats  # [N, S]
    agents: Agents
    checkpoint: Floats  # [T / stride, N, S] the value at the end of each block

    @property
    def gap(self) -> float:
        """How far the bound is above the value, relative to it; the optimum lies between the two."""
        excess = max(0.0, self.bound - self.value)
        if self.value == 0.0:
            return np.inf if excess > 0.0 else 0.0
        return excess / abs(self.value)

    @property
    def stride(self) -> int:
        """How many steps there are to a block: about √T."""
        return stride_of(self.price.size)

    def block(self, k: int) -> Floats:
        """The fractions [≤ stride, N, S] at the steps k · stride, k · stride + 1, … of one block."""
        bench = self._bench()
        steps = self._recall(k, bench)
        table = np.empty_like(bench.advantage[: len(steps)])
        for i, t in enumerate(steps):
            fill(bench.advantage[i], self.level[t], self.share[t], self.width, table[i])
        return table

    def fractions(self, since: int = 0) -> Iterator[Floats]:
        """Yield mu(s, 1; t) / (mu(s, 0; t) + mu(s, 1; t)), [N, S], for each step t from `since` on: the index of OMR.

        Only one block is in memory at a time, never T × N numbers.
        """
        for k in range(since // self.stride, len(self.checkpoint)):
            yield from self.block(k)[max(0, since - k * self.stride) :]

    def occupancy(self) -> Floats:
        """The whole measure mu, [T, N, S, 2]: T × N × S × 2 numbers."""
        mu = np.empty((self.price.size, *self.start.shape, 2))
        mass, bench = self.start.copy(), self._bench()
        for k in range(len(self.checkpoint)):
            for i, t in enumerate(self._recall(k, bench)):
                fill(bench.advantage[i], self.level[t], self.share[t], self.width, bench.fraction)
                mu[t, :, :, 1] = mass * bench.fraction
                mu[t, :, :, 0] = mass - mu[t, :, :, 1]
                hold(self.agents, bench, i)
                move(bench.rows, self.agents.reward, bench.fraction, mass)
        return mu

    def _bench(self) -> Bench:
        return _make_bench(self.agents, self.price.size)._replace(checkpoint=self.checkpoint)

    def _recall(self, k: int, bench: Bench) -> range:
        steps = range(self.price.size)[k * self.stride : (k + 1) * self.stride]
        recall(self.agents, self.ranking[steps.start : steps.stop], self.checkpoint[k].copy(), bench)
        return steps


def plan(
    transition: Floats,
    reward: Floats,
    budget: int,
    horizon: int,
    start: Floats | None = None,
    radius: Floats | None = None,
    gap: float = 1e-3,
    sweeps: int = 200,
) -> Plan:
    """Bound what any policy can collect in `horizon` steps, and plan for nearly as much.

    start   [N, S]     the distribution of each agent's first state; by default uniform
    radius  [N, 2, S]  how far each row may be from the one given; by default not at all
    gap                stop when (bound − value) / |value| is this small, or after so many `sweeps`: see `Plan.gap`

    >>> off, on = [[1, 0], [1, 0]], [[0, 1], [0, 1]]  # acting leads to state 1, waiting to state 0
    >>> best = plan(np.array([[off, on]] * 2), np.array([[0, 1], [0, 10]]), budget=1, horizon=3)
    >>> round(best.bound, 9), round(best.value, 9), next(best.fractions())
    (30.0, 30.0, array([[0., 0.],
           [1., 1.]]))
    """
    agents, start = _read(transition, reward, radius, start)
    _require(agents, budget, horizon, gap, sweeps)
    bench, dust = _make_bench(agents, horizon), ROUNDING * horizon * float(np.abs(agents.reward).max(axis=1).sum())
    price, level, share = _first_prices(agents, budget, horizon), np.empty(horizon), np.empty(horizon)
    pace, widths = _Pace(horizon), _cool(float(np.ptp(agents.reward)) or 1.0)
    width, bound, value = next(widths), np.inf, -np.inf
    for done in count(1):
        above, below, spread = sweep(agents, start, float(budget), price, width, bench, level, share)
        if above < bound:
            bound, bound_price = above, price
        if below > value:
            value, best = below, (price, level.copy(), share.copy(), width)
        if bound - value <= gap * abs(value) + dust or done == sweeps:
            break
        if done == 1 and spread > 0.0:
            widths = _cool(spread)
        before, width = width, next(widths)
        price = pace.follow(price, level, anew=width > before)
    look_back(agents, best[0], bench)
    return Plan(max(bound, value), value, bound_price, *best, done, budget, start, agents, bench.checkpoint)


def bound_at(
    price: Floats,
    transition: Floats,
    reward: Floats,
    budget: int,
    start: Floats | None = None,
    radius: Floats | None = None,
) -> float:
    """Return the upper bound that prices [T] give, whatever they are: Σ_n Σ_s start(s) V_0(s) + budget · Σ_t price_t.

    >>> off, on = [[1, 0], [1, 0]], [[0, 1], [0, 1]]  # acting leads to state 1, waiting to state 0
    >>> bound_at(np.array([0.0, 4.0]), np.array([[off, on]] * 2), np.array([[0, 1], [0, 10]]), budget=1)
    21.0
    """
    agents, start = _read(transition, reward, radius, start)
    _require(agents, budget, len(price))
    prices = np.array(price, dtype=np.float64)
    return add_up(start, look_back(agents, prices, _make_bench(agents, prices.size)), float(budget), prices)


class _Pace:
    """Which part of the way to its level each price goes: less after a change of direction, and slowly more again."""

    def __init__(self, horizon: int) -> None:
        self.part, self.last = np.ones(horizon), np.zeros(horizon)

    def follow(self, price: Floats, level: Floats, anew: bool) -> Floats:
        """Return the next prices."""
        way = level - price
        self.part = np.where(way * self.last < 0.0, SLOWER * self.part, np.minimum(1.0, FASTER * self.part))
        self.last = way
        after: Floats = price + self.part * way
        if anew:
            self.part[:] = 1.0
        return after


def _cool(unit: float) -> Iterator[float]:
    """Yield widths: first a few narrow ones, then from wide to narrow again and again, each time slower."""
    for k in range(QUICK):
        yield NARROW * unit * 0.5**k
    for k in count():
        width = WIDE
        while width > NARROWEST:
            yield width * unit
            width *= COOLING ** (0.5**k)


def _first_prices(agents: Agents, budget: int, horizon: int) -> Floats:
    """Return 0, or a price beyond all advantages where nobody or everybody is acted on, so that the bound is exact."""
    beyond = horizon * float(np.ptp(agents.reward))
    return np.full(horizon, beyond * ((budget == 0) - (budget == len(agents.reward))))


def stride_of(horizon: int) -> int:
    """Return how many steps there are to a block: about √T."""
    return isqrt(horizon - 1) + 1


def _make_bench(agents: Agents, horizon: int) -> Bench:
    pairs, length, optimistic = agents.reward.shape, stride_of(horizon), agents.radius.size > 0
    return Bench(
        checkpoint=np.empty((-(-horizon // length), *pairs)),
        advantage=np.empty((length, *pairs)),
        order=np.empty((length * optimistic, *pairs), dtype=np.int64),
        held=np.full(pairs, -1),
        rows=np.empty_like(agents.transition) if optimistic else agents.transition,
        fraction=np.empty(pairs),
    )


def _read(transition: Floats, reward: Floats, radius: Floats | None, start: Floats | None) -> tuple[Agents, Floats]:
    """Copy and check what was given: a plan outlives the estimates that it was made from."""
    agents, _, states, _ = np.shape(transition)
    rows = _copy("transition", transition, (agents, 2, states, states))
    box = np.empty((agents, 2, 0)) if radius is None else _copy("radius", radius, (agents, 2, states))
    first = np.full((agents, states), 1.0 / states) if start is None else _copy("start", start, (agents, states))
    if not np.all(box >= 0.0):
        agent, action, state = np.argwhere(~(box >= 0.0))[0]
        raise InputError(f"radius of agent {agent}, action {action}, state {state} is below 0; it must be 0 or more.")
    proper = np.all(first >= 0.0, axis=1) & (np.abs(first.sum(axis=1) - 1.0) <= SUMS_TO_ONE)
    if not proper.all():
        raise InputError(f"start of agent {np.argmin(proper)} is no distribution: none below 0, and their sum is 1.")
    return Agents(rows, box, _copy("reward", reward, (agents, states))), first


def _copy(what: str, given: Floats, shape: tuple[int, ...]) -> Floats:
    if np.shape(given) != shape:
        raise InputError(f"{what} has shape {list(np.shape(given))}; transition says {list(shape)}.")
    array = np.array(given, dtype=np.float64, order="C")
    if not np.isfinite(array).all():
        raise InputError(f"{what}[{', '.join(map(str, np.argwhere(~np.isfinite(array))[0]))}] is no finite number.")
    return array


def _require(agents: Agents, budget: int, horizon: int, gap: float = 0.0, sweeps: int = 1) -> None:
    most = len(agents.reward)
    if not 0 <= budget <= most:
        raise InputError(f"budget is {budget}; it must be a whole number from 0 to {most}, the number of agents.")
    for name, given, least in (("horizon", horizon, 1), ("sweeps", sweeps, 1), ("gap", gap, 0)):
        if not given >= least:
            raise InputError(f"{name} is {given}; it must be {least} or more.")
