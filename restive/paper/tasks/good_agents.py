"""Test of lemma 4.3: acting at no cost is possible only where every joint state has B good agents.

Acting on an agent in state s costs max(0, threshold − benefit(s)). The least that any policy pays comes from dynamic
programming over all joint states and all sets of exactly B agents, least_0 = 0 and

    least_{k+1}(s) = min over sets of Σ_{n in set} cost_n(s_n) + E[ least_k(s') | set ]

All terms are 0 or more and none is rounded away, so the computed value is 0 exactly where the true one is. Arrays are
[M, K, G]: M instances, K = S**N joint states of which each is a start, G thresholds. These are every benefit of the
instance, at which its agent and state are still good, and one just above, at which they are not: any other threshold
makes the same agents and states good as one of these.
"""

from collections.abc import Iterator
from itertools import count
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from restive.files import Columns
from restive.kernels import rng
from restive.problems.two_state import uniforms
from restive.solvers.joint_dp import list_sets
from restive.solvers.myopic import benefit, largest_threshold
from restive.types import Bools, Floats

Value = TypeVar("Value", np.float64, np.bool_)

SHARE_OF_ZEROS = 0.5
MIN_SCALE = 1e-3  # thresholds above smaller benefits exceed them by as much as for a benefit of this size
EQUAL_EVERY = 10  # in every tenth instance all agents are equal, so that benefits are tied


def check_lemma(agents: int, states: int, instances: int, seed: int, sparse: bool) -> Columns:
    """Count, for every budget from 1 to all agents, where zero cost is possible and where enough agents are good.

    free_once, free_twice, free_ever  cases of zero cost over one step, two, any number, although some joint state has
                                      fewer than B good agents
    instances_free_ever               the instances that the last belong to
    enough, enough_but_costly         cases in which every joint state has at least B, and those of them that do cost
    beside_threshold                  thresholds of which `largest_threshold` says otherwise than counting does
    """
    transition, reward = draw_instances(agents, states, instances, seed, sparse)
    gain = benefit(transition, reward)
    thresholds = list_thresholds(gain)
    rows = [_count(transition, gain, thresholds, budget) for budget in range(1, agents + 1)]
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return {"budget": np.arange(1, agents + 1), **columns, "least_chance": np.full(agents, transition.min())}


def draw_instances(agents: int, states: int, instances: int, seed: int, sparse: bool) -> tuple[Floats, Floats]:
    """Rows uniform on the simplex, [M, N, 2, S, S], rewards uniform on [0, 1], [M, N, S].

    In sparse ones every probability but the largest of a row is set to 0 with probability 1/2.
    """
    numbers = np.arange(instances) + ((10 * agents + states) << 32)  # other sizes are other instances
    keys, cells = rng.run_keys(seed, numbers), 2 * states * states
    draws = np.stack([uniforms(keys, agents, cell) for cell in range(2 * cells + states)], axis=-1)
    draws[::EQUAL_EVERY] = draws[::EQUAL_EVERY, :1]
    shape = (instances, agents, 2, states, states)
    weight = -np.log1p(-draws[..., :cells]).reshape(shape)
    if sparse:
        gone = (draws[..., cells : 2 * cells] < SHARE_OF_ZEROS).reshape(shape)
        weight[gone & (weight < weight.max(axis=-1, keepdims=True))] = 0.0
    return weight / weight.sum(axis=-1, keepdims=True), np.ascontiguousarray(draws[..., 2 * cells :])


def list_thresholds(gain: Floats) -> Floats:
    """Every benefit of gain [M, N, S], and one just above it: [M, 2 · N · S]."""
    values = gain.reshape(len(gain), -1)
    return np.concatenate([values, values + np.spacing(np.maximum(np.abs(values), MIN_SCALE))], axis=1)


def _count(transition: Floats, gain: Floats, thresholds: Floats, budget: int) -> dict[str, int]:
    """Compare the three ways to say that enough agents are good."""
    enough = has_enough(gain, thresholds, budget)
    allowed = thresholds <= np.array([largest_threshold(each, budget) for each in gain])[:, None]
    free = list(free_starts(transition, gain, thresholds, budget))
    once, twice, ever = (free[steps] & ~enough[:, None] for steps in (0, 1, -1))
    return {
        "instances": len(gain),
        "cases": ever.size,
        "free_once": int(once.sum()),
        "free_twice": int(twice.sum()),
        "free_ever": int(ever.sum()),
        "instances_free_ever": int(ever.any(axis=(1, 2)).sum()),
        "enough": int(enough.sum()) * ever.shape[1],
        "enough_but_costly": int((enough[:, None] & ~free[-1]).sum()),
        "beside_threshold": int((enough != allowed).sum()),
    }


def has_enough(gain: Floats, thresholds: Floats, budget: int) -> Bools:
    """Whether every joint state has at least `budget` agents with a benefit of the threshold or more, [M, G].

    >>> gain = np.array([[[0.9, 0.1], [0.5, 0.4]]])
    >>> has_enough(gain, np.array([[0.1, 0.4, 0.5]]), budget=1)
    array([[ True,  True, False]])
    """
    good = gain[..., None] >= thresholds[:, None, None]
    at_joint = at_joint_states(good)
    enough: Bools = (at_joint.sum(axis=1) >= budget).all(axis=1)
    return enough


def at_joint_states(table: NDArray[Value]) -> NDArray[Value]:
    """Look [M, N, S, G] up at every joint state, [M, N, K, G]; the last agent's state changes fastest."""
    agents, states = table.shape[1:3]
    joint = np.indices((states,) * agents).reshape(agents, -1)
    return table[:, np.arange(agents)[:, None], joint]


def free_starts(transition: Floats, gain: Floats, thresholds: Floats, budget: int) -> Iterator[Bools]:
    """From which joint states some policy pays nothing over 1, 2, 3 steps and so on, [M, K, G].

    The last is that of three steps or more that is the same as the one before, and so of any number of steps.

    >>> stay = np.array([[[[[1.0, 0.0], [0.0, 1.0]]] * 2]])  # one agent, whatever is done
    >>> free = free_starts(stay, np.array([[[0.1, 0.9]]]), np.array([[0.5]]), budget=1)
    >>> [starts[0, :, 0].tolist() for starts in free]
    [[False, True], [False, True], [False, True]]
    """
    cost = at_joint_states(np.maximum(thresholds[:, None, None] - gain[..., None], 0.0))
    least = np.zeros(cost[:, 0].shape)
    free = least == 0
    for steps in count(1):
        before, least = free, step_back(transition, cost, least, budget)
        free = least == 0
        yield free
        if steps >= 3:
            if np.array_equal(free, before):
                return
            least = (~free).astype(np.float64)  # whether there is a cost is all that matters, and must not vanish


def step_back(transition: Floats, cost: Floats, ahead: Floats, budget: int) -> Floats:
    """The least cost of one step and what is ahead, over all sets of exactly `budget` agents, [M, K, G]."""
    least = np.full(ahead.shape, np.inf)
    for chosen in list_sets(cost.shape[1], budget):
        paid = cost[:, chosen == 1].sum(axis=1) + expect(transition, ahead, tuple(map(int, chosen)))
        np.minimum(least, paid, out=least)
    return least


def expect(transition: Floats, ahead: Floats, actions: tuple[int, ...]) -> Floats:
    """The mean of ahead [M, K, G] after every agent has moved, one agent after the other."""
    instances, joint, thresholds = ahead.shape
    states, slower = transition.shape[-1], 1
    for n, action in enumerate(actions):
        axes = ahead.reshape(instances, slower, states, -1)
        ahead = transition[:, n, action][:, None] @ axes
        slower *= states
    return ahead.reshape(instances, joint, thresholds)
