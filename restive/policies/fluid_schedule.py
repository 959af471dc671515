"""Fluid plans as arrays of a belief, and the activation share of each agent's state in a step.

The share mu(s, 1; t) / (mu(s, 0; t) + mu(s, 1; t)) is the index of OMR. Shares are stored for one block of about √T
steps and recomputed from the plan's checkpoints when the next block begins, so memory does not grow with T × N.
"""

from typing import NamedTuple

import numpy as np

from restive.contract import Shape
from restive.errors import InputError
from restive.solvers.fluid import Plan, stride_of
from restive.solvers.fluid_kernels import Agents
from restive.types import Floats, Ints

SHARE_DIGITS = 9


class FluidSchedule(NamedTuple):
    """P plans over T steps, in blocks of L."""

    ranking: Floats  # [P, T]
    level: Floats  # [P, T]
    share: Floats  # [P, T]
    width: Floats  # [P]
    checkpoint: Floats  # [P, T / L, N, S]
    transition: Floats  # [P, N, A, S, S]
    radius: Floats  # [P, N, A, S], or [P, N, A, 0]
    reward: Floats  # [P, N, S]
    table: Floats  # [P, L, N, S] the shares of the current block
    block: Ints  # [] the number of the current block, −1 for none


PLAN_AXES = {"ranking": None, "level": None, "share": None, "checkpoint": 2, "table": 2}
"""The axis of agents of the arrays for which it is not 1."""


def blank(worlds: int, shape: Shape, horizon: int, optimistic: bool) -> FluidSchedule:
    """An empty schedule for `worlds` plans over `horizon` steps, with radii if `optimistic`."""
    stride = stride_of(horizon)
    rows, cells = (worlds, horizon), (shape.agents, shape.states)
    return FluidSchedule(
        ranking=np.zeros(rows),
        level=np.zeros(rows),
        share=np.zeros(rows),
        width=np.zeros(worlds),
        checkpoint=np.zeros((worlds, -(-horizon // stride), *cells)),
        transition=np.zeros((worlds, shape.agents, 2, shape.states, shape.states)),
        radius=np.zeros((worlds, shape.agents, 2, shape.states * optimistic)),
        reward=np.zeros((worlds, *cells)),
        table=np.zeros((worlds, stride, *cells)),
        block=np.array(-1),
    )


def put(plans: FluidSchedule, world: int, plan: Plan) -> None:
    """Store the plan of one world."""
    for name in ("ranking", "level", "share", "width", "checkpoint"):
        getattr(plans, name)[world] = getattr(plan, name)
    for name in Agents._fields:
        getattr(plans, name)[world] = getattr(plan.agents, name)


def shares_at(plans: FluidSchedule, step: int) -> Floats:
    """The activation shares of a step, [P, N, S]; after the last step those of the last."""
    stride = plans.table.shape[1]
    step = min(step, plans.ranking.shape[1] - 1)
    if plans.block != step // stride:
        plans.block[...] = step // stride
        for p in range(len(plans.table)):
            shares = _restore(plans, p).block(int(plans.block))
            # Sums in another order differ in the last digits, which must not break ties.
            plans.table[p, : len(shares)] = np.round(shares, SHARE_DIGITS)
    return np.ascontiguousarray(plans.table[:, step % stride])


def _restore(plans: FluidSchedule, p: int) -> Plan:
    agents = Agents(plans.transition[p], plans.radius[p], plans.reward[p])
    prices = (plans.ranking[p], plans.ranking[p], plans.level[p], plans.share[p], float(plans.width[p]))
    return Plan(np.nan, np.nan, *prices, 0, 0, plans.reward[p], agents, plans.checkpoint[p])


def known_horizon(shape: Shape, name: str) -> int:
    """The horizon, or an InputError if it is not known."""
    if shape.horizon is None:
        raise InputError(f"{name} plans up to the horizon; give it one.")
    return shape.horizon
