"""One round of a live program of a million agents against copying the arrays that it touches."""

from functools import partial
from statistics import median
from typing import Any

import numpy as np

from benchmarks.timing import Row, best_of, clock
from restive import Problem, World, make_policy
from restive.contract import Draws, Ranking, as_ranking
from restive.policies.base import Policy
from restive.types import Ints

AGENTS, BUDGET, ROUNDS = 1_000_000, 50_000, 15


def rows() -> list[Row]:
    return [measure(name) for name in ("egt", "wiql")]


def measure(name: str) -> Row:
    world, policy = make_world(), make_policy(name)
    belief, state = policy.begin(world.shape, world.model), world.first_states()
    rounds, copies = [], []
    for step in range(ROUNDS):
        draws = world.draws(step)
        deciding, (ranking, action) = clock(partial(decide, policy, belief, world, state, draws))
        outcome = world.advance(state, action, draws)
        learning, _ = clock(partial(policy.learn, belief, state, action, outcome.reward, outcome.after))
        touched = [state, outcome.after, outcome.reward, ranking.priority, action, *(a for a in belief if a.ndim > 1)]
        rounds.append(deciding + learning)
        copies.append(copy_time(touched))
        state = outcome.after
    # The first round touches memory that nobody has touched before, which is the system's time, not ours.
    return Row(
        f"{name}, one round of 1,000,000 agents, S=2",
        "copying its arrays",
        median(rounds[1:]),
        median(copies[1:]),
        "≤ 4",
    )


def decide(policy: Policy[Any], belief: Any, world: World, state: Ints, draws: Draws) -> tuple[Ranking, Ints]:
    ranking = as_ranking(policy.rank(belief, state, draws), world.shape, policy.name)
    return ranking, world.choose(ranking, draws)


def copy_time(arrays: list[Any]) -> float:
    room = [np.empty_like(array) for array in arrays]

    def copy() -> None:
        for to, array in zip(room, arrays, strict=True):
            np.copyto(to, array)

    return best_of(copy, 3)


def make_world() -> World:
    good = np.random.default_rng(0).random((AGENTS, 2, 2))
    return World(Problem(np.stack([1 - good, good], axis=-1), [0.0, 1.0], BUDGET), horizon=1000)
