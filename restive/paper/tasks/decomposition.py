"""The regret decomposition lemma on small instances, exactly, for policies that depend on the whole history.

Joint states J, sets of B agents C, steps T. A policy draws a set with probabilities that depend on the history of
states and sets; the reference policy π^b depends on the joint state alone. The cost of a set is Σ max(γ − I, 0) over
its agents.

    regret              E_π[Σ_t cost] − V^b_0(s_0)
    regret of step t    E_π[cost_t + V^b_{t+1}(s_{t+1})] − V^b_t(s_t),   V^b: the cost that π^b still expects

As printed, the later costs of a step are those of acting on the set of step t again and again, c_k(a_{t+1}).
"""

from functools import reduce

import numpy as np

from restive.files import Columns
from restive.kernels import rng
from restive.solvers.joint_dp import follow, list_sets
from restive.solvers.myopic import benefit
from restive.types import Floats

AGENTS, BUDGET, STATES, STEPS = 2, 1, 2, 4


def decomposition(instances: int, seed: int) -> Columns:
    """The regret of a random policy on each random instance, and its sums over steps, as meant and as printed."""
    rows = [_decompose(key) for key in rng.run_keys(seed, np.arange(instances))]
    regret, meant, printed = np.array(rows).T
    return {"regret": regret, "meant": meant, "printed": printed}


def _decompose(key: np.uint64) -> tuple[float, float, float]:
    """The regret of one instance, and the sums of its steps in both forms."""
    sets = list_sets(AGENTS, BUDGET)
    good = _draw(key, 0, AGENTS * 2 * STATES).reshape(AGENTS, 2, STATES)
    transition = np.stack([1 - good, good], axis=-1)
    reward = np.arange(STATES, dtype=np.float64)
    gains = benefit(transition, np.broadcast_to(reward, (AGENTS, STATES)))
    gamma = float(_draw(key, 1, 1)[0])
    joint = np.indices((STATES,) * AGENTS).reshape(AGENTS, -1)
    cost = sets.astype(np.float64) @ np.maximum(gamma - gains[np.arange(AGENTS)[:, None], joint], 0.0)  # [C, J]
    moves = np.stack([reduce(np.kron, transition[np.arange(AGENTS), chosen]) for chosen in sets])  # [C, J, J]
    weight = follow(np.minimum(gains, gamma), sets).astype(np.float64)
    reference = (weight / weight.sum(axis=1, keepdims=True)).T  # [C, J]
    ahead = expect_ahead(cost, moves, reference)
    again = _repeat_ahead(cost, moves, reference)
    return _follow_history(key, cost, moves, reference, ahead, again)


def _draw(key: np.uint64, cell: int, count: int) -> Floats:
    drawn: Floats = rng.uniform(rng.branch(np.array([key]), rng.FAMILY, cell), np.arange(count))[0]
    return drawn


def expect_ahead(cost: Floats, moves: Floats, reference: Floats) -> Floats:
    """V^b, [T + 1, J]."""
    ahead = np.zeros((STEPS + 1, cost.shape[1]))
    for t in reversed(range(STEPS)):
        ahead[t] = (reference * (cost + moves @ ahead[t + 1])).sum(axis=0)
    return ahead


def _repeat_ahead(cost: Floats, moves: Floats, reference: Floats) -> Floats:
    """The cost of each set at all states to come while π^b decides where agents move, [T + 1, C, J]."""
    mixed = np.einsum("cj,cjk->jk", reference, moves)
    again = np.zeros((STEPS + 1, *cost.shape))
    for t in reversed(range(STEPS)):
        again[t] = cost + again[t + 1] @ mixed.T
    return again


def _follow_history(
    key: np.uint64, cost: Floats, moves: Floats, reference: Floats, ahead: Floats, again: Floats
) -> tuple[float, float, float]:
    """Follow the probabilities of all histories, each with random weights of its own for the next set."""
    sets, states = cost.shape
    start = 0
    probability, state = np.ones(1), np.array([start])
    paid = meant = printed = 0.0
    for t in range(STEPS):
        weight = _draw(key, 2 + t, state.size * sets).reshape(-1, sets) + 1e-3
        drawn = probability[:, None] * weight / weight.sum(axis=1, keepdims=True)  # [H, C]
        paid += float((drawn * cost.T[state]).sum())
        now, later = cost.T[state], np.einsum("cjk,k->jc", moves, ahead[t + 1])[state]
        meant += float((drawn * (now + later)).sum() - probability @ ahead[t, state])
        repeated = cost + np.einsum("cjk,ck->cj", moves, again[t + 1])
        printed += float((drawn * repeated.T[state]).sum() - probability @ (reference * repeated).sum(axis=0)[state])
        probability = (drawn[:, :, None] * moves.transpose(1, 0, 2)[state]).ravel()
        state = np.tile(np.arange(states), drawn.size)
    return paid - float(ahead[0, start]), meant, printed
