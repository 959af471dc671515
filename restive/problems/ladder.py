"""`ladder-v1`: rungs of engagement. An agent climbs or slips at most one rung a step, and acting never makes it worse.

On each rung an agent has four uniform numbers of its own: climb, slip, lift and hold, [I, N, S] each.

    waiting:  up = 0.3 · climb,           down = 0.5 · slip,     still = 1 − up − down
    acting:   up' = up + lift · still,    down' = hold · down

So acting turns a share of the standing still into climbing, and a share of the slipping into standing still; both
shares are uniform, from nothing to all of it. At the ends of the ladder a move that is not there is standing still.
"""

import numpy as np

from restive.errors import check_whole
from restive.kernels import rng
from restive.problem import Problem
from restive.problems.two_state import chances
from restive.types import Floats

CLIMB, SLIP = 0.3, 0.5


def ladder(instances: int = 1, agents: int = 50, budget: int = 10, seed: int = 0, states: int = 5) -> list[Problem]:
    """S rungs worth 0 to 1 in equal steps; agents climb or slip one rung at most, and acting never makes it worse."""
    check_whole("states", states, 2)
    keys = rng.run_keys(seed, np.arange(instances))
    climb, slip, lift, hold = (
        np.stack([chances(keys, agents, 4 * rung + part) for rung in range(states)], axis=-1) for part in range(4)
    )
    up, down = CLIMB * climb, SLIP * slip
    still = 1 - up - down
    waiting = place_moves(down, still, up)
    # Not 1 − up' − down', which rounding could take below 0.
    acting = place_moves(hold * down, (1 - lift) * still + (1 - hold) * down, up + lift * still)
    reward = np.arange(states) / (states - 1)
    return [Problem(each, reward, budget, name="ladder-v1") for each in np.stack([waiting, acting], axis=2)]


def place_moves(down: Floats, still: Floats, up: Floats) -> Floats:
    """The rows [..., S, S] of a walk with these chances on each rung; beyond the ends there is nothing, it stays.

    >>> place_moves(np.array([0.25, 0.5]), np.array([0.5, 0.5]), np.array([0.25, 0.0])).tolist()
    [[0.75, 0.25], [0.5, 0.5]]
    """
    states = still.shape[-1]
    here, rows = np.arange(states), np.zeros((*still.shape, states))
    for step, chance in ((-1, down), (0, still), (1, up)):
        rows[..., here, np.clip(here + step, 0, states - 1)] += chance
    return rows
