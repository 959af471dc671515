"""Families of agents with any number of states.

`many-state-v1`: every row of every agent is uniform on the simplex, as in the paper's appendix, which says only that
its ten-state instances are random. For two states this is the distribution of `two-state-v1`.

`normalized-rows-v1`: every row is S uniform numbers divided by their sum, as in the public code of related work by the
paper's authors. Such rows are closer to their mean than those of `many-state-v1`.

`ladder-v1`: agents climb or slip at most one rung a step, and acting never makes it worse. On each rung an agent has
four uniform numbers, [I, N, S] each:

    waiting:  up = 0.3 · climb,           down = 0.5 · slip,     still = 1 − up − down
    acting:   up' = up + lift · still,    down' = hold · down

So acting turns a uniform share of staying into climbing, and a uniform share of slipping into staying. At the ends of
the ladder a move beyond it is staying.
"""

import numpy as np

from restive.errors import check_whole
from restive.kernels import rng
from restive.problem import Problem
from restive.problems.two_state import uniforms
from restive.types import Floats

MAX_CLIMB, MAX_SLIP = 0.3, 0.5


def many_state(
    instances: int = 1, agents: int = 50, budget: int = 10, seed: int = 0, states: int = 10
) -> list[Problem]:
    """S states of reward 0 to S − 1; every row of every agent is uniform on the simplex."""
    drawn = _uniform_cells(instances, agents, seed, states)
    return _normalize_rows(-np.log1p(-drawn), budget, "many-state-v1")


def normalized_rows(
    instances: int = 1, agents: int = 50, budget: int = 10, seed: int = 0, states: int = 10
) -> list[Problem]:
    """S states of reward 0 to S − 1; every row of every agent is S uniform numbers divided by their sum."""
    # 1 − u is in (0, 1], so that no row is all zeros.
    return _normalize_rows(1 - _uniform_cells(instances, agents, seed, states), budget, "normalized-rows-v1")


def _uniform_cells(instances: int, agents: int, seed: int, states: int) -> Floats:
    """A uniform number in [0, 1) for each move, [I, N, A, S, S]."""
    check_whole("states", states, 1)
    keys = rng.run_keys(seed, np.arange(instances))
    cells = [uniforms(keys, agents, cell) for cell in range(2 * states * states)]
    return np.stack(cells, axis=-1).reshape(instances, agents, 2, states, states)


def _normalize_rows(weight: Floats, budget: int, name: str) -> list[Problem]:
    """One problem for each instance in `weight` [I, N, A, S, S], with rewards 0 to S − 1."""
    reward = np.arange(weight.shape[-1], dtype=np.float64)
    return [Problem(each / each.sum(axis=-1, keepdims=True), reward, budget, name=name) for each in weight]


def ladder(instances: int = 1, agents: int = 50, budget: int = 10, seed: int = 0, states: int = 5) -> list[Problem]:
    """S rungs of reward 0 to 1 in equal steps; agents climb or slip one rung at most, and acting never makes it worse."""
    check_whole("states", states, 2)
    keys = rng.run_keys(seed, np.arange(instances))
    climb, slip, lift, hold = (
        np.stack([uniforms(keys, agents, 4 * rung + part) for rung in range(states)], axis=-1) for part in range(4)
    )
    up, down = MAX_CLIMB * climb, MAX_SLIP * slip
    still = 1 - up - down
    waiting = walk_rows(down, still, up)
    # Not 1 − up' − down', which rounding could make negative.
    acting = walk_rows(hold * down, (1 - lift) * still + (1 - hold) * down, up + lift * still)
    reward = np.arange(states) / (states - 1)
    return [Problem(each, reward, budget, name="ladder-v1") for each in np.stack([waiting, acting], axis=2)]


def walk_rows(down: Floats, still: Floats, up: Floats) -> Floats:
    """The rows [..., S, S] of a walk with these probabilities in each state; moves beyond the ends are staying.

    >>> walk_rows(np.array([0.25, 0.5]), np.array([0.5, 0.5]), np.array([0.25, 0.0])).tolist()
    [[0.75, 0.25], [0.5, 0.5]]
    """
    states = still.shape[-1]
    here, rows = np.arange(states), np.zeros((*still.shape, states))
    for step, probability in ((-1, down), (0, still), (1, up)):
        rows[..., here, np.clip(here + step, 0, states - 1)] += probability
    return rows
