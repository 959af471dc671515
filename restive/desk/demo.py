"""A program played with simulated people, so that one can see what the desk does before trusting it with real ones.

Each round goes the way of a real one: states in, list out, some actions fail, some states are missing, some people join
late, and the outcomes of the last round are still on their way at the end.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from restive.desk.desk import Desk
from restive.desk.program import Program
from restive.desk.status import Status, Step
from restive.desk.templates import Template, find_template
from restive.errors import check_whole
from restive.kernels import rng
from restive.problems import make_problems
from restive.problems.domains import find_groups
from restive.types import Bools, Ints
from restive.world import World

# How many actions fail and how many states are missing, how many people join late and from which round on.
FAILING, MISSING, LATE, FROM = 0.1, 0.03, 0.1, 5
# Streams of luck of the demo's own.
FAIL, MISS = (2**33 + stream for stream in range(2))


class Population:
    """Simulated people of a template's domain."""

    def __init__(self, template: Template, agents: int, seed: int) -> None:
        problem = make_problems(template.problem, agents=agents, budget=min(template.budget, agents), seed=seed)[0]
        self.world = World(problem, seed=seed)
        self.state = self.world.first_states()
        self.round = 0
        digits = len(str(agents))
        self.names = [f"{template.person.replace(' ', '-')}-{number + 1:0{digits}}" for number in range(agents)]
        self.groups = find_groups(template.problem, agents, seed)
        self.late = np.arange(agents) >= round(agents * (1 - LATE))

    def report(self) -> list[dict[str, Any]]:
        """The states of those who are there and whose state somebody wrote down."""
        there = (~self._draw(MISS, MISSING) | (self.round == 0)) & (~self.late | (self.round >= FROM))
        return [
            {"agent": self.names[n], "state": int(self.state[0, n]), "group": self.groups[n] or None}
            for n in np.flatnonzero(there).tolist()
        ]

    def live(self, advised: list[str]) -> list[dict[str, Any]]:
        """Let a round pass in which these people were to be acted on; returns what came of it."""
        wanted = np.isin(self.names, advised)
        done: Bools = wanted & ~self._draw(FAIL, FAILING)
        outcome = self.world.advance(self.state, done[None].astype(np.int64), self.world.draws(self.round))
        self.state, self.round = outcome.after, self.round + 1
        return [
            {"agent": name, "done": bool(acted), "next_state": int(after)}
            for name, acted, after in zip(self.names, done, self.state[0], strict=True)
        ]

    def _draw(self, stream: int, share: float) -> Bools:
        keys = self.world.draws(self.round).branch(stream)
        drawn: Bools = rng.uniform(keys, self.world.agents)[0] < share
        return drawn


def play_demo(
    desk: Desk, name: str, template: str = "pharmacy", agents: int = 200, rounds: int = 30, seed: int = 7,
    progress: Callable[[int, int], None] = lambda done, total: None, **settings: Any,
) -> Program:  # fmt: skip
    """Make a program and play it; the outcomes of a fifth of the people are not in yet in the last round."""
    check_whole("agents", agents, 10, 1_000_000)
    check_whole("rounds", rounds, 1, 10_000)
    people = Population(find_template(template), agents, seed)
    program = desk.create(name, template=template, **{"seed": seed, "shadow": "egt", **settings})
    for round_ in range(rounds):
        advice = program.decide(people.report())
        took_part = np.isin(people.names, program.names.call(advice.found.number))
        came = [row for row, here in zip(people.live(advice.chosen), took_part, strict=True) if here]
        program.learn(_punctual(came) if round_ == rounds - 1 else came)
        progress(round_ + 1, rounds)
    return program


def forget_store(seen: Status) -> Status:
    """The page of a program that will be gone in a moment."""
    return replace(seen, store="a file that is deleted again", steps=[Step("To keep such a program: --store FILE.db")])


def _punctual(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    places: Ints = np.flatnonzero(np.arange(len(rows)) % 5 != 4)
    return [rows[place] for place in places.tolist()]
