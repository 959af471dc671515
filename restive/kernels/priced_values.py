"""Value iteration in which acting has a price that all agents share: one sweep of it, and many from a history.

posterior  [R, N, A, S, S]  pseudo-counts of the rows of transitions
reward     [R, N, S]        of arriving in a state, relative to the other states
value      [R, N, S]        the same with what follows
price      [R]              of acting, per unit of cost
cost       [R, N]           of acting on an agent
"""

import numpy as np

from restive.kernels.block_sums import LAST, SHIFT, add_blocks, count_blocks
from restive.kernels.jit import compiled
from restive.types import Bools, Floats, Ints

# Net benefits below this share of price and value count as zero.
ROUNDING = 1e-12
# The step size of the price, and how fast it decreases.
PRICE_STEP, PRICE_DECAY = 0.6, 0.02
# Sweeps from a history; the states in them are spread over those visited, by multiples of these irrational numbers.
SETTLING_SWEEPS, PER_SWEEP, PER_AGENT = 200, 0.6180339887498949, 0.7548776662466927
# What the price depends on, summed over agents: all costs; of the agents observed their number, those acted on, the cost
# of these, the cost of those with a net benefit, and the sizes of net benefits.
TOTAL, OBSERVED, ACTED, SPENT, ABOVE, SIZE = range(6)


@compiled
def price_step(step: int) -> float:
    """The step size of the price after so many steps."""
    return PRICE_STEP / (1.0 + PRICE_DECAY * step)


@compiled
def sweep(
    posterior: Floats,
    reward: Floats,
    state: Ints,
    action: Ints,
    discount: float,
    step_size: float,
    cost: Floats,
    at_most: Bools,
    value: Floats,
    price: Floats,
) -> None:
    """One sweep of value iteration for all agents; the price follows the cost of the agents with a net benefit."""
    agents = value.shape[1]
    parts = sweep_values(posterior, reward, state, action, discount, cost, value, price)
    for r in range(price.size):
        price[r] = next_price(add_blocks(parts[r]), agents, step_size, at_most[r], price[r])


@compiled
def sweep_values(
    posterior: Floats,
    reward: Floats,
    state: Ints,
    action: Ints,
    discount: float,
    cost: Floats,
    value: Floats,
    price: Floats,
) -> Floats:
    """One sweep for all agents at these prices; returns what the next prices depend on, by block, [R, B, 6]."""
    runs, agents, states = value.shape
    best, net, parts = np.empty(states), np.empty(states), np.empty((runs, count_blocks(agents), 6))
    for r in range(runs):
        observed, acted, spent, above, total, size = 0, 0, 0.0, 0.0, 0.0, 0.0
        for n in range(agents):
            mean = 0.0
            for s in range(states):
                waited, acting, wait, act = 0.0, 0.0, 0.0, 0.0
                for t in range(states):
                    there = value[r, n, t]
                    low, high = posterior[r, n, 0, s, t], posterior[r, n, 1, s, t]
                    waited, wait = waited + low, wait + low * there
                    acting, act = acting + high, act + high * there
                wait, act = wait / waited, act / acting - price[r] * cost[r, n]
                best[s], net[s] = max(wait, act), act - wait
                mean += best[s]
            mean /= states
            for s in range(states):
                value[r, n, s] = reward[r, n, s] + discount * (best[s] - mean)
            here = state[r, n]
            total += cost[r, n]
            if here >= 0:
                observed += 1
                acted += action[r, n]
                spent += action[r, n] * cost[r, n]
                if net[here] > ROUNDING * (abs(price[r]) + abs(value[r, n, here])):
                    above += cost[r, n]
                size += abs(net[here]) / cost[r, n]
            if n & LAST == LAST or n == agents - 1:
                part = parts[r, n >> SHIFT]
                part[OBSERVED], part[ACTED], part[SPENT] = observed, acted, spent
                part[ABOVE], part[TOTAL], part[SIZE] = above, total, size
                observed, acted, spent, above, total, size = 0, 0, 0.0, 0.0, 0.0, 0.0
    return parts


@compiled
def next_price(sums: Floats, agents: int, step_size: float, at_most: bool, price: float) -> float:
    """The price after a sweep with these sums [6] over all agents.

    If all were observed, a budget of nobody or everybody does not inform the price, unless that was a choice.
    """
    observed, acted = sums[OBSERVED], sums[ACTED]
    if 0 < observed < agents or 0 < acted < agents or (observed > 0 and at_most):
        price += step_size * sums[SIZE] / observed * (sums[ABOVE] - sums[SPENT]) / sums[TOTAL]
        if at_most:
            price = max(price, 0.0)
    return price


@compiled
def settle(
    posterior: Floats,
    reward: Floats,
    visits: Floats,
    discount: float,
    budget: float,
    cost: Floats,
    at_most: Bools,
    value: Floats,
    price: Floats,
) -> None:
    """Sweep values and price until they settle, as if agents were in states in proportion to their visits [R, N, S]."""
    runs, agents, states = visits.shape
    state, action = np.zeros((runs, agents), np.int64), np.zeros((runs, agents), np.int64)
    for r in range(runs):
        spent = 0.0
        for n in range(agents):  # whoever is acted on: the price follows what is spent
            if spent + cost[r, n] <= budget:
                action[r, n], spent = 1, spent + cost[r, n]
    for k in range(SETTLING_SWEEPS):
        for r in range(runs):
            for n in range(agents):
                rest, s = ((k * PER_SWEEP + n * PER_AGENT) % 1.0) * visits[r, n].sum(), 0
                while s < states - 1 and rest >= visits[r, n, s]:
                    rest, s = rest - visits[r, n, s], s + 1
                state[r, n] = s
        sweep(posterior, reward, state, action, discount, price_step(k), cost, at_most, value, price)
