"""A step in passes over partitions is the step of all agents at once, bit for bit, for every division into blocks."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from restive.contract import Draws, Shape
from restive.kernels import rng
from restive.kernels.block_sums import BLOCK
from restive.policies.belief import agent_axes, flatten, take
from restive.policies.lagrange import UNOBSERVED, Lagrange, LagrangeBelief, Observed
from restive.policies.lagrange_passes import learn_in_passes
from restive.types import Ints

AGENTS = 3 * BLOCK + 77
UNKNOWN = np.full((1, 1), UNOBSERVED)
NOBODY = Observed(UNKNOWN, UNKNOWN, np.zeros((1, 1)), UNKNOWN)


def start(policy: Lagrange, agents: int, states: int) -> LagrangeBelief:
    return policy.start(Shape(1, agents, states, 600, None, np.ones(1)))


def cut(step: Observed, low: int, high: int) -> Observed:
    state, action, reward, after = step
    return Observed(
        state[:, low:high].copy(), action[:, low:high].copy(), reward[:, low:high].copy(), after[:, low:high].copy()
    )


def learn_partitions(
    policy: Lagrange, parts: list[LagrangeBelief], common: LagrangeBelief, borders: list[int], step: Observed
) -> None:
    """One step of every partition, and of the partition that follows the shared numbers."""
    some = [cut(step, low, high) for low, high in pairwise(borders)]
    steps = [
        learn_in_passes(policy, part, seen, AGENTS, first=index == 0)
        for index, (part, seen) in enumerate(zip(parts, some, strict=True))
    ]
    steps.append(learn_in_passes(policy, common, NOBODY, AGENTS))
    passes = [next(each) for each in steps]
    while True:
        nodes = [found.nodes(low, AGENTS) for found, low in zip(passes[:-1], borders[:-1], strict=True)]
        sums = passes[-1].join(nodes, AGENTS)
        try:
            passes = [each.send(sums.copy()) for each in steps]
        except StopIteration:
            for each in steps[1:]:
                with pytest.raises(StopIteration):
                    each.send(sums.copy())
            return


def draw_step(
    numbers: np.random.Generator, policy: Lagrange, whole: LagrangeBelief, state: Ints, t: int, differ: float
) -> Observed:
    """A step of agents of three kinds that differ as much as that."""
    draws = Draws(rng.run_keys(1, np.zeros(1, np.int64)), np.arange(AGENTS), t, 600)
    priority = policy.rank(whole, state, draws).priority
    action = (priority > np.sort(priority[0])[-601]).astype(np.int64)
    pull = 0.3 + 0.5 * action if t < 60 else 0.6 - 0.5 * action  # the dynamics change, so that moves are forgotten
    pull = pull + differ * (np.arange(AGENTS) % 3 - 1)
    after = np.where(numbers.random(state.shape) < pull, state.max(), numbers.integers(0, state.max() + 1, state.shape))
    seen = np.where(numbers.random(state.shape) < 0.9, state, UNOBSERVED)
    return Observed(seen, action, after + numbers.normal(size=state.shape) * 0.1, after)


@pytest.mark.parametrize(
    ("states", "settings", "cuts", "differ"),
    [
        (2, {"mixture": False}, [], 0.0),
        (2, {"mixture": False}, [1, 2, 3], 0.0),
        (3, {"mixture": False}, [2], 0.0),
        (2, {"memory": 5.0}, [1], 0.0),
        (2, {"prior": 1.0}, [1, 3], 0.0),
        (2, {}, [1, 2, 3], 0.0),
        (2, {}, [], 0.2),
        (3, {}, [1, 3], 0.2),
    ],
)
def test_every_division_into_blocks_learns_the_same(
    states: int, settings: dict[str, Any], cuts: list[int], differ: float
) -> None:
    policy = Lagrange(**settings)
    numbers, borders = np.random.default_rng(5), [0, *(BLOCK * cut for cut in cuts), AGENTS]
    whole, common = start(policy, AGENTS, states), start(policy, 1, states)
    parts = [start(policy, high - low, states) for low, high in pairwise(borders)]
    axes, state = agent_axes(policy, whole), numbers.integers(0, states, (1, AGENTS))
    for t in range(75):
        step = draw_step(numbers, policy, whole, state, t, differ)
        policy.learn(whole, *cut(step, 0, AGENTS))
        learn_partitions(policy, parts, common, borders, step)
        state = step.after
    shared = {name: array for name, array in flatten(whole).items() if axes[name] is None}
    for each, low, high in zip([*parts, common], [*borders[:-1], 0], [*borders[1:], 0], strict=True):
        mine = flatten(each)
        assert all((mine[name] == array).all() for name, array in shared.items())
        if high > low:
            expected = flatten(take(whole, axes, np.arange(low, high)))
            assert all((mine[name] == array).all() for name, array in expected.items())
    assert whole.responsibility.any() == (differ > 0.0)  # a mixture is used
    if states == 2 and settings in ({}, {"mixture": False}) and not differ:
        assert whole.counts.moves.sum() < 70 * 0.9 * AGENTS  # some was forgotten
