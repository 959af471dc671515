"""One round of a live program of a million agents against copying the arrays that it touches."""

import numpy as np

from benchmarks.timing import Row, best_of
from restive import Problem, World, make_policy
from restive.policies.base import as_ranking

AGENTS, BUDGET, ROUNDS = 1_000_000, 50_000, 12


def rows() -> list[Row]:
    return [_row(name) for name in ("egt", "wiql")]


def _row(name: str) -> Row:
    world, policy = _world(), make_policy(name)
    belief, state = policy.begin(world.shape, world.model), world.first_states()
    seconds, copied = [], []
    for step in range(ROUNDS):
        draws = world.draws(step)
        decided: dict[str, np.ndarray] = {}

        def decide() -> None:
            ranking = as_ranking(policy.rank(belief, state, draws), world.shape, name)
            decided["priority"], decided["action"] = ranking.priority, world.choose(ranking, draws)

        first = best_of(decide, 1)
        outcome = world.advance(state, decided["action"], draws)
        second = best_of(lambda: policy.learn(belief, state, decided["action"], outcome.reward, outcome.after), 1)
        touched = [state, outcome.after, outcome.reward, *decided.values(), *(a for a in belief if a.ndim > 1)]
        room = [np.empty_like(array) for array in touched]
        seconds.append(first + second)
        copied.append(best_of(lambda: [np.copyto(to, array) for to, array in zip(room, touched, strict=True)], 3))
        state = outcome.after
    return Row(f"{name}, one round of 1,000,000 agents, S=2", "copying its arrays", min(seconds), min(copied), "≤ 4")


def _world() -> World:
    rng = np.random.default_rng(0)
    good = rng.random((AGENTS, 2, 2))
    return World(Problem(np.stack([1 - good, good], axis=-1), [0.0, 1.0], BUDGET), horizon=1000)
