"""The fluid bound: an upper bound on every policy over T steps, and a plan in fractions of agents that is close to it.

Maximise Σ_t Σ_n Σ_{s,a} mu_n(s, a; t) · phi_n(s, a) over mu ≥ 0 with Σ_a mu_n(s, a; 0) = start_n(s), every later mass
the one that arrives, and Σ_n Σ_s mu_n(s, 1; t) = budget at every step: the linear program of Xiong et al. (2022), in
which the budget holds on average (Whittle 1988). A price of the action at each step decomposes it into one small
problem for each agent, and ANY prices give an upper bound: Σ_n Σ_s start_n(s) V_n(s) + budget · Σ_t price_t.
If the budget is a limit that need not be reached, the constraint is ≤ budget, and any prices ≥ 0 give a bound. With
costs it is Σ_n Σ_s cost_n · mu_n(s, 1; t) ≤ budget, because costs rarely add up to the budget: a limit in any case.

The prices are found iteratively: a backward sweep computes the advantages at the present prices, a forward sweep acts
on exactly the budget of highest advantages, and every price moves towards the level at which its step uses up the
budget, with smaller steps where it oscillates. If that has not converged after a few sweeps, the cut between acting and
waiting is smoothed and annealed, ever more slowly. With a radius [N, 2, S] the rows are the best ones within a box: the
optimistic plan of R(MA)²B. Departures: pairs without mass follow the same rule as all others (the source leaves it
open).
"""

from collections.abc import Iterator
from itertools import count
from math import isqrt
from typing import NamedTuple

import numpy as np

from restive.errors import InputError
from restive.solvers.fluid_kernels import (
    Agents,
    Workspace,
    backward,
    backward_block,
    dual_bound,
    fill_fractions,
    propagate,
    restore_rows,
    sweep,
)
from restive.types import Floats

# Widths of the cut between acting and waiting, in units of the typical advantage.
INITIAL_WIDTH, MAX_WIDTH, MIN_WIDTH = 1e-3, 0.3, 1e-5
INITIAL_SWEEPS = 7
COOLING = 0.8
# The factors of a price's step size after a change of direction, and otherwise.
SLOWER, FASTER = 0.6, 1.1
ROUNDING = 1e-12
MAX_CELLS = 1 << 20  # steps × pairs up to which all advantages stay in memory, and none is computed twice
SUM_TOLERANCE = 1e-9


class Plan(NamedTuple):
    """A bound with its prices, and a plan with its value; `sweeps` is the number of iterations."""

    bound: float
    value: float
    price: Floats  # [T] the prices of the bound
    ranking: Floats  # [T] the prices of the plan's advantages
    level: Floats  # [T] the advantage at which a step of the plan uses up the budget
    share: Floats  # [T] the fraction of a pair exactly at the level
    width: float  # in advantage, half the distance from a fraction of 0 to a fraction of 1
    sweeps: int
    budget: float
    start: Floats  # [N, S]
    agents: Agents
    checkpoint: Floats  # [T / stride, N, S] the value at the end of each block

    @property
    def gap(self) -> float:
        """The relative difference of bound and value; the optimum lies between the two."""
        excess = max(0.0, self.bound - self.value)
        if self.value == 0.0:
            return np.inf if excess > 0.0 else 0.0
        return excess / abs(self.value)

    @property
    def stride(self) -> int:
        """The number of steps of a block: about √T."""
        return stride_of(self.price.size)

    def block(self, k: int) -> Floats:
        """The fractions [≤ stride, N, S] at the steps k · stride, k · stride + 1, … of one block."""
        work = self._workspace()
        steps = self._backward_block(k, work)
        table = np.empty_like(work.advantage[: len(steps)])
        for i, t in enumerate(steps):
            fill_fractions(work.advantage[i], self.level[t], self.share[t], self.width, table[i])
        return table

    def fractions(self, since: int = 0) -> Iterator[Floats]:
        """Yield mu(s, 1; t) / (mu(s, 0; t) + mu(s, 1; t)), [N, S], for each step t from `since` on: the index of OMR.

        Only one block is in memory at a time.
        """
        for k in range(since // self.stride, len(self.checkpoint)):
            yield from self.block(k)[max(0, since - k * self.stride) :]

    def occupancy(self) -> Floats:
        """The occupancy measure mu, [T, N, S, 2]."""
        mu = np.empty((self.price.size, *self.start.shape, 2))
        mass, work = self.start.copy(), self._workspace()
        for k in range(len(self.checkpoint)):
            for i, t in enumerate(self._backward_block(k, work)):
                fill_fractions(work.advantage[i], self.level[t], self.share[t], self.width, work.fraction)
                mu[t, :, :, 1] = mass * work.fraction
                mu[t, :, :, 0] = mass - mu[t, :, :, 1]
                restore_rows(self.agents, work, i)
                propagate(work.rows, self.agents.reward, work.fraction, mass)
        return mu

    def _workspace(self) -> Workspace:
        return _make_workspace(self.agents, self.price.size)._replace(checkpoint=self.checkpoint)

    def _backward_block(self, k: int, work: Workspace) -> range:
        steps = range(self.price.size)[k * self.stride : (k + 1) * self.stride]
        backward_block(self.agents, self.ranking[steps.start : steps.stop], self.checkpoint[k].copy(), work)
        return steps


def plan(
    transition: Floats,
    reward: Floats,
    budget: float,
    horizon: int,
    start: Floats | None = None,
    radius: Floats | None = None,
    gap: float = 1e-3,
    sweeps: int = 200,
    cost: Floats | None = None,
    at_most: bool = False,
) -> Plan:
    """An upper bound on the reward of any policy in `horizon` steps, and a plan that nearly attains it.

    start   [N, S]     the distribution of each agent's first state; by default uniform
    radius  [N, 2, S]  how far each row may be from the one given; by default 0
    gap, sweeps        stop when (bound − value) / |value| is at most `gap`, or after this many `sweeps`
    cost    [N]        of acting on each agent; by default 1
    at_most            whether the budget need not be spent; it need not with costs

    >>> off, on = [[1, 0], [1, 0]], [[0, 1], [0, 1]]  # acting leads to state 1, waiting to state 0
    >>> best = plan(np.array([[off, on]] * 2), np.array([[0, 1], [0, 10]]), budget=1, horizon=3)
    >>> round(best.bound, 9), round(best.value, 9), next(best.fractions())
    (30.0, 30.0, array([[0., 0.],
           [1., 1.]]))
    """
    agents, start = _read(transition, reward, radius, start, cost)
    lowest = 0.0 if at_most or cost is not None else -np.inf
    _require(agents, budget, horizon, gap, sweeps, limited=cost is None)
    work = _make_workspace(agents, horizon, horizon if horizon * agents.reward.size <= MAX_CELLS else None)
    rounding = ROUNDING * horizon * float(np.abs(agents.reward).max(axis=1).sum())
    price, level, share = _first_prices(agents, budget, horizon, lowest), np.empty(horizon), np.empty(horizon)
    step_sizes, widths = _StepSizes(horizon), _anneal(float(np.ptp(agents.reward)) or 1.0)
    width, bound, value = next(widths), np.inf, -np.inf
    for done in count(1):
        above, below, scale = sweep(agents, start, float(budget), price, width, lowest, work, level, share)
        if above < bound:
            bound, bound_price = above, price
        if below > value:
            value, best = below, (price, level.copy(), share.copy(), width)
        if bound - value <= gap * abs(value) + rounding or done == sweeps:
            break
        if done == 1 and scale > 0.0:
            widths = _anneal(scale)
        before, width = width, next(widths)
        price = step_sizes.follow(price, level, restart=width > before)
    work = _make_workspace(agents, horizon)
    backward(agents, best[0], work)
    return Plan(max(bound, value), value, bound_price, *best, done, budget, start, agents, work.checkpoint)


def bound_at(
    price: Floats,
    transition: Floats,
    reward: Floats,
    budget: float,
    start: Floats | None = None,
    radius: Floats | None = None,
    cost: Floats | None = None,
) -> float:
    """The upper bound that any prices [T] give: Σ_n Σ_s start(s) V_0(s) + budget · Σ_t price_t.

    If the budget need not be spent, prices must not be below 0.

    >>> off, on = [[1, 0], [1, 0]], [[0, 1], [0, 1]]  # acting leads to state 1, waiting to state 0
    >>> bound_at(np.array([0.0, 4.0]), np.array([[off, on]] * 2), np.array([[0, 1], [0, 10]]), budget=1)
    21.0
    """
    agents, start = _read(transition, reward, radius, start, cost)
    _require(agents, budget, len(price), limited=cost is None)
    prices = np.array(price, dtype=np.float64)
    return dual_bound(start, backward(agents, prices, _make_workspace(agents, prices.size)), float(budget), prices)


class _StepSizes:
    """The step size of each price towards its level: smaller after a change of direction, then slowly larger again."""

    def __init__(self, horizon: int) -> None:
        self.size, self.last = np.ones(horizon), np.zeros(horizon)

    def follow(self, price: Floats, level: Floats, restart: bool) -> Floats:
        """The next prices."""
        distance = level - price
        self.size = np.where(distance * self.last < 0.0, SLOWER * self.size, np.minimum(1.0, FASTER * self.size))
        self.last = distance
        after: Floats = price + self.size * distance
        if restart:
            self.size[:] = 1.0
        return after


def _anneal(unit: float) -> Iterator[float]:
    """Yield widths: first a few narrow ones, then repeatedly from wide to narrow, each time more slowly."""
    for k in range(INITIAL_SWEEPS):
        yield INITIAL_WIDTH * unit * 0.5**k
    for k in count():
        width = MAX_WIDTH
        while width > MIN_WIDTH:
            yield width * unit
            width *= COOLING ** (0.5**k)


def _first_prices(agents: Agents, budget: float, horizon: int, lowest: float) -> Floats:
    """Prices of 0, or beyond all advantages if nobody or everybody is acted on, so that the bound is exact."""
    beyond = horizon * float(np.ptp(agents.reward) / agents.cost.min())
    everybody = budget == len(agents.reward) and lowest < 0.0
    return np.full(horizon, beyond * ((budget == 0) - everybody))


def stride_of(horizon: int) -> int:
    """The number of steps of a block: about √T."""
    return isqrt(horizon - 1) + 1


def _make_workspace(agents: Agents, horizon: int, length: int | None = None) -> Workspace:
    """Arrays for blocks of `length` steps, by default about √T."""
    pairs, length, optimistic = agents.reward.shape, length or stride_of(horizon), agents.radius.size > 0
    return Workspace(
        checkpoint=np.empty((-(-horizon // length), *pairs)),
        advantage=np.empty((length, *pairs)),
        order=np.empty((length * optimistic, *pairs), dtype=np.int64),
        held=np.full(pairs, -1),
        rows=np.empty_like(agents.transition) if optimistic else agents.transition,
        fraction=np.empty(pairs),
    )


def _read(
    transition: Floats, reward: Floats, radius: Floats | None, start: Floats | None, cost: Floats | None
) -> tuple[Agents, Floats]:
    """Validate and copy the input, because a plan outlives the arrays it was made from."""
    agents, _, states, _ = np.shape(transition)
    rows = _copy("transition", transition, (agents, 2, states, states))
    box = np.empty((agents, 2, 0)) if radius is None else _copy("radius", radius, (agents, 2, states))
    first = np.full((agents, states), 1.0 / states) if start is None else _copy("start", start, (agents, states))
    costs = np.ones(agents) if cost is None else _copy("cost", cost, (agents,))
    if not np.all(costs > 0.0):
        raise InputError(f"cost of agent {np.argmin(costs > 0.0)} is {costs.min():g}; a cost is above 0.")
    if not np.all(box >= 0.0):
        agent, action, state = np.argwhere(~(box >= 0.0))[0]
        raise InputError(f"radius of agent {agent}, action {action}, state {state} is below 0; it must be 0 or more.")
    proper = np.all(first >= 0.0, axis=1) & (np.abs(first.sum(axis=1) - 1.0) <= SUM_TOLERANCE)
    if not proper.all():
        raise InputError(
            f"start of agent {np.argmin(proper)} is not a distribution: entries must be 0 or more and sum to 1."
        )
    return Agents(rows, box, _copy("reward", reward, (agents, states)), costs), first


def _copy(what: str, given: Floats, shape: tuple[int, ...]) -> Floats:
    if np.shape(given) != shape:
        raise InputError(f"{what} has shape {list(np.shape(given))}; transition says {list(shape)}.")
    array = np.array(given, dtype=np.float64, order="C")
    if not np.isfinite(array).all():
        raise InputError(f"{what}[{', '.join(map(str, np.argwhere(~np.isfinite(array))[0]))}] is not a finite number.")
    return array


def _require(
    agents: Agents, budget: float, horizon: int, gap: float = 0.0, sweeps: int = 1, limited: bool = True
) -> None:
    count = len(agents.reward)
    if not 0 <= budget <= (count if limited else np.inf):
        raise InputError(f"budget is {budget}; it must be a whole number from 0 to {count}, the number of agents.")
    for name, given, least in (("horizon", horizon, 1), ("sweeps", sweeps, 1), ("gap", gap, 0)):
        if not given >= least:
            raise InputError(f"{name} is {given}; it must be {least} or more.")
