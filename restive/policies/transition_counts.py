"""Transition counts of a model-based learner: moves and rewards of every agent, and the estimates from them."""

from typing import NamedTuple

import numpy as np

from restive.contract import Shape
from restive.kernels.jit import compiled
from restive.types import Floats, Ints


class Counts(NamedTuple):
    """The observed moves and rewards of each agent."""

    moves: Floats  # [R, N, A, S, S] number of moves from s to t under a
    arrivals: Floats  # [R, N, S] number of arrivals in s
    total: Floats  # [R, N, S] sum of the rewards on these arrivals


def no_counts(shape: Shape) -> Counts:
    """The counts before the first step."""
    cells = (shape.runs, shape.agents, shape.states)
    moves = np.zeros((shape.runs, shape.agents, 2, shape.states, shape.states))
    return Counts(moves, np.zeros(cells), np.zeros(cells))


@compiled
def count_moves(
    moves: Floats, arrivals: Floats, total: Floats, state: Ints, action: Ints, reward: Floats, after: Ints
) -> None:
    """Add one step to the counts."""
    for r in range(state.shape[0]):
        for n in range(state.shape[1]):
            there = after[r, n]
            moves[r, n, action[r, n], state[r, n], there] += 1.0
            arrivals[r, n, there] += 1.0
            total[r, n, there] += reward[r, n]


def mean_transitions(moves: Floats) -> tuple[Floats, Floats]:
    """The relative frequency of each move, uniform without data, and the visits [R, N, A, S] it rests on."""
    visits = moves.sum(axis=-1)
    seen = np.maximum(visits, 1.0)[..., None]
    return np.where(visits[..., None] > 0, moves / seen, 1.0 / moves.shape[-1]), visits


def mean_rewards(counts: Counts) -> Floats:
    """The mean reward of each agent in each state, [R, N, S]; without data that of all agents, or else 0."""
    _, arrivals, total = counts
    everyone = total.sum(axis=1, keepdims=True) / np.maximum(arrivals.sum(axis=1, keepdims=True), 1.0)
    return np.where(arrivals > 0, total / np.maximum(arrivals, 1.0), everyone)
