"""A server that has decided before it is asked: kernels are loaded when they are first used, which takes a while.

A few people are invented and played with in a store of their own, by the policies that the programs of the desk have.
"""

import tempfile
from contextlib import suppress
from pathlib import Path

from restive.desk import events
from restive.desk.config import Config
from restive.desk.desk import Desk
from restive.desk.store import Store

MOST = 5  # different policies; each takes its share of a second
PEOPLE = 40


def warm(desk: Desk) -> None:
    """Decide and learn once by each policy that is in use, or by the usual one where there is no program yet."""
    # Whatever goes wrong here goes wrong again when somebody asks, and is said to them.
    with suppress(Exception), tempfile.TemporaryDirectory() as folder, Desk(Path(folder) / "warm.db") as own:
        for number, (policy, shadow) in enumerate(find_policies(desk.store)):
            program = own.create(f"warm-{number}", states=["low", "high"], rewards=[0, 1], policy=policy, shadow=shadow)
            for _ in range(2):
                program.decide([{"agent": f"a{agent}", "state": agent % 2} for agent in range(PEOPLE)], again=True)
                program.learn([{"agent": f"a{agent}", "next_state": agent % 2} for agent in range(PEOPLE)])


def find_policies(store: Store) -> list[tuple[str, str | None]]:
    """The policies and shadows of the newest programs, each pair once."""
    usual: tuple[str, str | None] = (Config.policy, None)
    found = {}
    for row in reversed(store.programs()[-MOST * 10 :]):
        created = next(store.events(row.id, kinds=[events.CREATED], columns=False), None)
        if created is not None:
            found[(created.header["policy"], created.header["shadow"])] = True
    return list(found)[:MOST] or [usual]
