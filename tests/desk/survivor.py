"""A process that plays a program until it is killed, and says so after each verb that returned.

It uses every verb of a program: decides with display columns, learns, corrects, withdraws, undoes, cancels, lets people
join, leave and be erased, changes settings, archives and restores, adds, tests and removes webhooks, and makes snapshots
every other round. What it says is `Reported`: the verb, how many events there were at least when it returned, the digest
of the last of them, what was promised (the list of a round, the number of one whose name is gone, ...), and how far the
write-ahead log of a SQLite file was then.
"""

import multiprocessing
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from desk.write_ahead_log import Position, find_position
from restive.desk import Desk, cache
from restive.desk.database import StoreError
from restive.desk.program import Program
from restive.desk.replay import replay
from restive.desk.roster import ERASED
from restive.desk.rounds import Round
from restive.desk.webhooks import add_ping, add_webhook, list_webhooks, remove_webhook
from restive.errors import InputError

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    [
        "restive.desk.webhooks",
        "restive.desk.replay",
        "restive.policies.lagrange",
        "psycopg",
        "desk.kills",
        "desk.warmed",
        "__main__",
    ]
)
PLAN: dict[str, Any] = {
    "states": ["low", "high"], "rewards": [0, 1], "budget": 4, "shadow": "wiql", "cool_down": 2, "seed": 3,
    "display": ["phone"],
}  # fmt: skip
REFUSED, FAILED = "refused", "failed"
FIRST_URL = "https://example.org/first"  # of the webhook that is never removed


class Reported(NamedTuple):
    """An acknowledgement; of a verb that was refused or failed, the sentence."""

    verb: str
    length: int
    digest: str
    round: int
    promised: Any
    position: Position | None = None


def make_program(desk: Desk, name: str) -> Program:
    """A program with a webhook, which is told of all rounds."""
    program = desk.create(name, **PLAN)
    add_webhook(program, FIRST_URL)
    return program


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
    verb = str(generator.choice(list(VERBS), p=[weight for weight, _ in VERBS.values()]))
    try:
        if program.archived:  # whoever archived it was killed before it restored it
            program.restore()
        round_, promised = VERBS[verb][1](program, generator)
        length = program.store.length(program.id)
        digest = program.store.event(program.id, length - 1).digest
        return Reported(verb, length, digest, round_, promised, find_position(Path(program.store.address)))
    except StoreError as error:
        time.sleep(0.05)  # the server is away: ask again, but not all the time
        return Reported(FAILED, 0, "", 0, (str(error), error.recorded))
    except InputError as error:
        return Reported(REFUSED, 0, "", 0, str(error))


def decide(program: Program, generator: np.random.Generator) -> tuple[int, Any]:
    people = 30 + len(program.rounds) // 2
    names = [f"p{number:04}" for number in range(people) if generator.random() < 0.8]
    state = generator.integers(2, size=len(names)).tolist()
    states = {"agent": names, "state": state, "phone": [make_phone(name) for name in names]}
    recommendation = program.decide(states, budget=int(generator.integers(1, 6)))
    return recommendation.round, (recommendation.totals.event, recommendation.chosen)


def make_phone(name: str) -> str:
    """The phone number of a person, by which a display cell is recognised."""
    return f"+49 30 {name[1:]}"


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
    program.erase([name])
    # Not by the name: another may join under it at once. The event may be that of another process, which is as good.
    (*_, event) = program.store.events(program.id, kinds=["erased"])
    return 0, int(event.columns["number"][0])


def leave(program: Program, generator: np.random.Generator) -> tuple[int, Any]:
    return 0, program.leave([pick(program, generator)])


def change(program: Program, generator: np.random.Generator) -> tuple[int, Any]:
    return 0, program.change(budget=int(generator.integers(1, 6))).budget


def withdraw(program: Program, generator: np.random.Generator) -> tuple[int, Any]:
    round_ = max(1, len(program.rounds) - int(generator.integers(3)))
    found = program.get_round(round_)
    places = np.flatnonzero((found.after >= 0) & (generator.random(found.after.size) < 0.2))
    names = [name for name in program.names.call(found.number[places]) if name != ERASED]
    return round_, program.withdraw(names, round_)


def undo(program: Program, generator: np.random.Generator) -> tuple[int, Any]:
    return 0, program.undo().event


def cancel(program: Program, generator: np.random.Generator) -> tuple[int, Any]:
    return 0, program.cancel(len(program.rounds))


def archive(program: Program, generator: np.random.Generator) -> tuple[int, Any]:
    program.archive()
    program.restore()
    return 0, None


def webhook(program: Program, generator: np.random.Generator) -> tuple[int, Any]:
    """Add a webhook, test one, or remove one, but never the first; promised is the address and if it is there."""
    first, *others = list_webhooks(program)
    step = int(generator.integers(3))
    if step == 0:
        url = f"https://example.org/{generator.integers(2**40)}"
        return 0, (add_webhook(program, url)["webhook"]["url"], True)
    if step == 1 or not others:
        add_ping(program, first["id"])
        return 0, (first["url"], True)
    remove_webhook(program, others[0]["id"])
    return 0, (others[0]["url"], False)


def pick(program: Program, generator: np.random.Generator) -> str:
    names = program.names.roster.drop_nulls()
    if not len(names):
        raise InputError("nobody is there yet.")
    return str(names[int(generator.integers(len(names)))])


# How often each is used, and what it does.
VERBS = {
    "decide": (0.34, decide), "learn": (0.3, learn), "correct": (0.06, correct), "withdraw": (0.05, withdraw),
    "undo": (0.06, undo), "cancel": (0.02, cancel), "erase": (0.03, erase), "leave": (0.04, leave),
    "change": (0.02, change), "archive": (0.03, archive), "webhook": (0.05, webhook),
}  # fmt: skip


def prove(address: str, name: str) -> None:
    """Find the program in a new process, decide and learn, and prove all of it."""
    with Desk(address) as desk:
        program = desk.program(name)
        recommendation = program.decide({"p00000": 1, "p00001": 0, "newcomer": 1}, again=True)
        program.learn([{"agent": "newcomer", "next_state": 1}], round=recommendation.round)
        assert replay(program).proven
