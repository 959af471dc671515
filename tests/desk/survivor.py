"""A process that plays a program until it is killed, and says so after each verb that returned.

It decides, learns, corrects, lets people join, leave and be erased, and makes snapshots every other round. What it says
is `Reported`: the verb, how many events there were at least when it returned, the digest of the last of them, and what
was promised: the list of a round, the outcomes of one, the number of one whose name is gone.
"""

import multiprocessing
import time
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np

from restive.desk import Desk, cache
from restive.desk.database import StoreError
from restive.desk.program import Program
from restive.desk.replay import replay
from restive.desk.roster import ERASED
from restive.desk.rounds import Round
from restive.errors import InputError

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["restive.desk", "restive.desk.replay", "restive.policies.lagrange"])
PLAN: dict[str, Any] = {
    "states": ["low", "high"], "rewards": [0, 1], "budget": 4, "shadow": "wiql", "cool_down": 2, "seed": 3,
}  # fmt: skip
REFUSED, FAILED = "refused", "failed"


class Reported(NamedTuple):
    """An acknowledgement; of a verb that was refused or failed, the sentence."""

    verb: str
    length: int
    digest: str
    round: int
    promised: Any


def play_until_killed(address: str, name: str, seed: int, pipe: Connection) -> None:
    """Verb after verb; `pipe` hears of each."""
    cache.ROUNDS_APART = 2
    generator = np.random.default_rng(seed)
    with Desk(address) as desk:
        program = desk.program(name)
        while True:
            pipe.send(play(program, generator))


def play(program: Program, generator: np.random.Generator) -> Reported:
    """One verb, and what it promised when it returned."""
    verb = str(generator.choice(list(VERBS), p=[0.4, 0.38, 0.1, 0.06, 0.04, 0.02]))
    try:
        round_, promised = VERBS[verb](program, generator)
        length = program.store.length(program.id)
        return Reported(verb, length, program.store.event(program.id, length - 1).digest, round_, promised)
    except StoreError as error:
        time.sleep(0.05)  # the server is away: ask again, but not all the time
        return Reported(FAILED, 0, "", 0, (str(error), error.recorded))
    except InputError as error:
        return Reported(REFUSED, 0, "", 0, str(error))


def decide(program: Program, generator: np.random.Generator) -> tuple[int, Any]:
    people = 30 + len(program.rounds) // 2
    states = {f"p{number:04}": int(generator.integers(2)) for number in range(people) if generator.random() < 0.8}
    recommendation = program.decide(states, budget=int(generator.integers(1, 6)))
    return recommendation.round, recommendation.chosen


def learn(program: Program, generator: np.random.Generator) -> tuple[int, Any]:
    return report(program, generator, correct=False)


def correct(program: Program, generator: np.random.Generator) -> tuple[int, Any]:
    return report(program, generator, correct=True)


def report(program: Program, generator: np.random.Generator, correct: bool) -> tuple[int, Any]:
    """Outcomes of some people of one of the last rounds: of those not known yet, or other ones of those that are."""
    round_ = max(1, len(program.rounds) - int(generator.integers(3)))
    found = program.get_round(round_)
    known = (found.after >= 0) if correct else (found.after < 0)
    places = np.flatnonzero(known & (generator.random(known.size) < (0.1 if correct else 0.8)))
    rows = [row for row in make_rows(program, found, places, generator) if row["agent"] != ERASED]
    if not rows:
        raise InputError(f"round {round_} has nobody to report on.")
    taken = program.learn(rows, round=round_, correct=correct)
    return round_, taken.new


def make_rows(program: Program, found: Round, places: Any, generator: np.random.Generator) -> list[dict[str, Any]]:
    names = program.names.call(found.number[places])
    return [
        {
            "agent": name,
            "done": bool(found.chosen[place] and generator.random() < 0.8),
            "next_state": int(generator.integers(2)),
        }
        for name, place in zip(names, places, strict=True)
    ]


def erase(program: Program, generator: np.random.Generator) -> tuple[int, Any]:
    name = pick(program, generator)
    number = program.names.roster.index_of(name)  # of this person; another may join under the name at once
    program.erase([name])
    return 0, number


def leave(program: Program, generator: np.random.Generator) -> tuple[int, Any]:
    return 0, program.leave([pick(program, generator)])


def change(program: Program, generator: np.random.Generator) -> tuple[int, Any]:
    return 0, program.change(budget=int(generator.integers(1, 6))).budget


def pick(program: Program, generator: np.random.Generator) -> str:
    names = program.names.roster.drop_nulls()
    if not len(names):
        raise InputError("nobody is there yet.")
    return str(names[int(generator.integers(len(names)))])


VERBS = {"decide": decide, "learn": learn, "correct": correct, "erase": erase, "leave": leave, "change": change}


def prove(address: str, name: str) -> None:
    """Find the program in a new process, decide and learn, and prove all of it."""
    with Desk(address) as desk:
        program = desk.program(name)
        recommendation = program.decide({"p00000": 1, "p00001": 0, "newcomer": 1}, again=True)
        program.learn([{"agent": "newcomer", "next_state": 1}], round=recommendation.round)
        assert replay(program).proven
