"""A demonstration: a program that runs with simulated people, its rounds a week or a month apart.

Each round is like a real one: states in, list out, some actions fail, some states are missing, some people join late,
and some outcomes of the last round are still missing at the end.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from restive.api import types
from restive.desk.config import find_template
from restive.desk.desk import Desk
from restive.desk.program import Program
from restive.desk.schedule import LENGTHS, MONTH, add_months
from restive.errors import check_whole
from restive.kernels import rng
from restive.policies import make_policy
from restive.precompile import compile_ahead
from restive.problems import make_problems
from restive.problems.domains import find_groups
from restive.types import Bools
from restive.world import World

FAILED_SHARE, MISSING_SHARE, LATE_SHARE = 0.1, 0.03, 0.1  # of actions, of states, of people
LATE_ROUND = 5  # in which late people join
# Random streams of the demo, beyond those of the world and of the desk.
FAIL, MISS = (2**33 + stream for stream in range(2))


class Population:
    """Simulated people of a template's domain."""

    def __init__(self, template: types.Template, agents: int, seed: int) -> None:
        budget = min(template["budget"], agents)
        self.problem = make_problems(template["problem"], agents=agents, budget=budget, seed=seed)[0]
        self.world = World(self.problem, seed=seed)
        self.state = self.world.first_states()
        self.step = 0
        digits, person = len(str(agents)), template["person"].replace(" ", "-")
        self.names = [f"{person}-{number + 1:0{digits}}" for number in range(agents)]
        self.groups = find_groups(template["problem"], agents, seed)
        self.late = np.arange(agents) >= round(agents * (1 - LATE_SHARE))

    def report_states(self) -> list[dict[str, Any]]:
        """The states of the people who have joined, some missing."""
        reported = (~self._draw(MISS, MISSING_SHARE) | (self.step == 0)) & (~self.late | (self.step >= LATE_ROUND))
        return [
            {"agent": self.names[n], "state": int(self.state[0, n]), "group": self.groups[n] or None}
            for n in np.flatnonzero(reported).tolist()
        ]

    def advance(self, listed: list[str], failed_share: float = FAILED_SHARE) -> list[dict[str, Any]]:
        """Simulate a round in which these people are on the list; returns the outcomes."""
        wanted = np.isin(self.names, listed)
        done: Bools = wanted & ~self._draw(FAIL, failed_share)
        outcome = self.world.advance(self.state, done[None].astype(np.int64), self.world.draws(self.step))
        self.state, self.step = outcome.after, self.step + 1
        return [
            {"agent": name, "done": bool(acted), "next_state": int(after)}
            for name, acted, after in zip(self.names, done, self.state[0], strict=True)
        ]

    def _draw(self, stream: int, share: float) -> Bools:
        keys = self.world.draws(self.step).branch(stream)
        drawn: Bools = rng.uniform(keys, self.world.agents)[0] < share
        return drawn


def run_demo(
    desk: Desk, name: str, template: str = "pharmacy", agents: int = 200, rounds: int = 30, seed: int = 7,
    progress: Callable[[int, int], None] = lambda done, total: None, **settings: Any,
) -> Program:  # fmt: skip
    """Create a program and simulate it up to now; a fifth of the outcomes of the last round is missing."""
    check_whole("agents", agents, 10, 1_000_000)
    check_whole("rounds", rounds, 1, 10_000)
    people = Population(find_template(template), agents, seed)
    now, played = desk.store.clock(), 0
    past = desk.with_clock(lambda: _go_back(now, find_template(template)["every"], rounds - played))
    program = past.create(name, template=template, **{"seed": seed, "shadow": "egt", **settings})
    config = program.config
    used = [make_policy(each) for each in (config.policy, config.shadow) if each]
    with compile_ahead(people.problem, used, newcomers=int(people.late.sum())):
        for played in range(1, rounds + 1):
            _play_round(program, people, last=played == rounds)
            progress(played, rounds)
    return desk.program(name)


def _go_back(now: datetime, every: str, rounds: int) -> datetime:
    """The same time of day so many weeks or months ago."""
    days = LENGTHS.get(every, 0) * rounds
    return datetime.combine(
        add_months(now.date(), -rounds) if every == MONTH else now.date() - timedelta(days), now.timetz()
    )


def _play_round(program: Program, people: Population, last: bool) -> None:
    recommendation = program.decide(people.report_states())
    present = np.isin(people.names, program.names.call(recommendation.found.number))
    outcomes = [row for row, here in zip(people.advance(recommendation.chosen), present, strict=True) if here]
    program.learn([row for place, row in enumerate(outcomes) if place % 5 != 4] if last else outcomes)
