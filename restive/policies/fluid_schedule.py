"""Fluid plans as arrays of a belief, and the index of each agent's state in a step.

The occupancy-measured-reward index is the activation share mu(s, 1; t) / (mu(s, 0; t) + mu(s, 1; t)) times a reward:

    reward  that of acting in s, Σ_t P(s → t | 1) R(t), because the reward is received on arrival
    state   R(s), that of the current state
    share   none, the share alone

Indices are stored for one block of about √T steps and recomputed from the plan's checkpoints when the next block
begins, so memory does not grow with T × N.
"""

from typing import Any, NamedTuple

import numpy as np

from restive.contract import Shape
from restive.errors import InputError
from restive.policies.base import Policy, check_setting
from restive.solvers.fluid import Plan, stride_of
from restive.solvers.fluid_kernels import Agents
from restive.types import Floats, Ints

SHARE_DIGITS = 9
INDICES = ("reward", "state", "share")


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
    cost: Floats  # [P, N]
    table: Floats  # [P, L, N, S] the indices of the current block
    block: Ints  # [] the number of the current block, −1 for none


PLAN_AXES = {"ranking": None, "level": None, "share": None, "checkpoint": 2, "table": 2}
"""The axis of agents of the arrays for which it is not 1."""


def check_index(policy: Policy[Any], index: str) -> None:
    """Raise InputError unless `index` is the name of one."""
    check_setting(index in INDICES, policy, "index", "'reward', 'state' or 'share'")


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
        cost=np.ones((worlds, shape.agents)),
        table=np.zeros((worlds, stride, *cells)),
        block=np.array(-1),
    )


def put(plans: FluidSchedule, world: int, plan: Plan) -> None:
    """Store the plan of one world."""
    for name in ("ranking", "level", "share", "width", "checkpoint"):
        getattr(plans, name)[world] = getattr(plan, name)
    for name in Agents._fields:
        getattr(plans, name)[world] = getattr(plan.agents, name)


def indices_at(plans: FluidSchedule, step: int, index: str) -> Floats:
    """The index of every agent's states in a step, [P, N, S]; after the last step that of the last."""
    stride = plans.table.shape[1]
    step = min(step, plans.ranking.shape[1] - 1)
    if plans.block != step // stride:
        plans.block[...] = step // stride
        for p in range(len(plans.table)):
            shares = _restore(plans, p).block(int(plans.block))
            # Sums in another order differ in the last digits, which must not break ties.
            plans.table[p, : len(shares)] = np.round(shares, SHARE_DIGITS) * _weigh(plans, p, index)
    return np.ascontiguousarray(plans.table[:, step % stride])


def _weigh(plans: FluidSchedule, p: int, index: str) -> Floats:
    """What the shares of a plan are multiplied by, [N, S]."""
    reward = plans.reward[p]
    if index == "share":
        return np.ones_like(reward)
    acting: Floats = (plans.transition[p, :, 1] @ reward[..., None])[..., 0]
    return reward if index == "state" else acting


def _restore(plans: FluidSchedule, p: int) -> Plan:
    agents = Agents(plans.transition[p], plans.radius[p], plans.reward[p], plans.cost[p])
    prices = (plans.ranking[p], plans.ranking[p], plans.level[p], plans.share[p], float(plans.width[p]))
    return Plan(np.nan, np.nan, *prices, 0, 0, plans.reward[p], agents, plans.checkpoint[p])


def known_horizon(shape: Shape, name: str) -> int:
    """The horizon, or an InputError if it is not known."""
    if shape.horizon is None:
        raise InputError(f"{name} plans up to the horizon; give it one.")
    return shape.horizon
