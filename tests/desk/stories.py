"""What happens to programs in tests: rounds as plain data, recorded right or wrong, and all that is then known."""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

from restive.desk import Desk
from restive.desk.program import Program
from restive.errors import InputError
from restive.policies.belief import flatten

LEARNERS = ["random", "egt", "wiql", "ucwhittle", "thompson-whittle", "cet-whittle", "lagrange", "rma2b"]
# The same, but for long stories: the quick run has three of them.
STEADY = [
    name if name in ("egt", "lagrange", "thompson-whittle") else pytest.param(name, marks=pytest.mark.soak)
    for name in LEARNERS
]


class Chapter(NamedTuple):
    """A round: the state of everybody, and a row of outcomes for some."""

    states: dict[str, int]
    rows: list[dict[str, Any]]


def make(desk: Desk, name: str = "one", **settings: Any) -> Program:
    """A program without a control group, which always has the same generator; outcomes are reported, often late."""
    usual: dict[str, Any] = {"states": ["bad", "good"], "rewards": [0, 1], "policy": "egt", "budget": 2, "seed": 3}
    rest = {"control": 0.0, "horizon": 30, "states_are_outcomes": False}
    return desk.create(name, **usual | rest | settings)


def call(agents: int) -> list[str]:
    """Names in the order of joining."""
    return [f"a{number:02}" for number in range(agents)]


def write(agents: int = 9, rounds: int = 5, seed: int = 1) -> list[Chapter]:
    """A story: everybody has a state in every round, and two thirds have an outcome."""
    rng, story = np.random.default_rng(seed), []
    for _ in range(rounds):
        state, done, after = rng.integers(2, size=(3, agents)).tolist()
        rows = [
            {"agent": name, "done": bool(done[n]), "next_state": after[n]}
            for n, name in enumerate(call(agents))
            if rng.random() < 0.67
        ]
        story.append(Chapter(dict(zip(call(agents), state, strict=True)), rows))
    return story


def record(program: Program, story: Sequence[Chapter], first: int = 0) -> None:
    """Let a program live through a story; half of the outcomes come in only after the next round is decided."""
    for number, (states, rows) in enumerate(story, first + 1):
        program.decide(states)
        program.learn(rows[: len(rows) // 2], round=number)
        if number > first + 1:
            late = story[number - first - 2].rows
            program.learn(late[len(late) // 2 :], round=number - 1)
    rows = story[-1].rows
    program.learn(rows[len(rows) // 2 :], round=first + len(story))


def know(program: Program) -> dict[str, Any]:
    """All that a program knows but when and under which number it was recorded, by name, as plain data."""
    projection = program.projection
    found: dict[str, Any] = {f"agents.{name}": array.tobytes() for name, array in projection.agents.arrays().items()}
    for slot, policy_state in projection.policy_states.items() if projection.agents.count else ():
        found |= {f"{slot}.{name}": array.tobytes() for name, array in flatten(policy_state.belief).items()}
    lines = [dataclasses.asdict(line) for line in projection.rounds]
    return found | {"lines": [{k: v for k, v in line.items() if k not in ("at", "event")} for line in lines]}


def refuse(program: Program, sentence: str, verb: str, *given: Any, **settings: Any) -> str:
    """A call that must fail with this sentence and leave no trace."""
    before, length = know(program), program.store.length(program.id)
    with pytest.raises(InputError, match=sentence) as error:
        getattr(program, verb)(*given, **settings)
    assert (program.store.length(program.id), know(program)) == (length, before)
    return str(error.value)
