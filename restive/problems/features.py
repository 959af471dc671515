"""`features-v1`: agents with two states, of whom four numbers are known that say something about how they move.

    logit P(s → 1 | a) = SPREAD · (√share · features · direction(a, s) + √(1 − share) · own(a, s)),  share = relevance / 100

The features of each agent and the own part of each agent, action and state are standard normal; the direction of each
action and state is uniform on the unit sphere, one for each instance. So the distribution of the probabilities, [I, N,
A, S], is the same for every relevance: at 0 features say nothing, and at 100 everything.
"""

import numpy as np

from restive.errors import check_whole
from restive.kernels import rng
from restive.problem import Problem
from restive.problems.two_state import fill_rows, uniforms
from restive.types import Floats, Keys

FEATURES, PAIRS = 4, 4
# The standard deviation of the logit of a uniform probability.
SPREAD = np.pi / np.sqrt(3)


def features(
    instances: int = 1, agents: int = 200, budget: int = 20, seed: int = 0, relevance: int = 80
) -> list[Problem]:
    """Two states of reward 0 and 1; four features of each agent say so many percent of how its probabilities vary."""
    check_whole("relevance", relevance, 0, 100)
    keys, share = rng.run_keys(seed, np.arange(instances)), relevance / 100
    known, own = _normals(keys, agents, 0, FEATURES), _normals(keys, agents, FEATURES, PAIRS)
    direction = _normals(keys, PAIRS, FEATURES + PAIRS, FEATURES)
    direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
    score = np.sqrt(share) * np.einsum("inf,ipf->inp", known, direction) + np.sqrt(1 - share) * own
    good = (1 / (1 + np.exp(-SPREAD * score))).reshape(instances, agents, 2, 2)
    return [
        Problem(fill_rows(rows), [0.0, 1.0], budget, states=("bad", "good"), name="features-v1", features=each)
        for rows, each in zip(good, known, strict=True)
    ]


def _normals(keys: Keys, agents: int, first: int, count: int) -> Floats:
    """Standard normal numbers, [I, N, count], from as many pairs of cells (Box and Muller 1958)."""
    cells = [(uniforms(keys, agents, 2 * k), uniforms(keys, agents, 2 * k + 1)) for k in range(first, first + count)]
    drawn = [np.sqrt(-2 * np.log1p(-radius)) * np.cos(2 * np.pi * angle) for radius, angle in cells]
    return np.stack(drawn, axis=-1)
