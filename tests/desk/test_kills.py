"""Programs whose processes are killed at any moment: what was acknowledged is there, once, and replay proves it all."""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection

import numpy as np
import psutil
import pytest

from desk.postgres import Postgres
from desk.survivor import FAILED, PLAN, PROCESSES, REFUSED, VERBS, Reported, play_until_killed
from restive.desk import Desk, Program
from restive.desk.replay import replay

SOON = 0.03  # seconds after an acknowledgement within which a process is killed
AT_ONCE = 0.1  # of the processes are killed while they begin
KILLS_OF_SERVER = 20
PER_PROGRAM = 25  # kills; a replay starts again at each correction, so logs stay short


class Player:
    """A process that plays, and what it said."""

    def __init__(self, address: str, name: str, seed: int) -> None:
        self.reported: list[Reported] = []
        self.pipe: Connection
        self.pipe, theirs = PROCESSES.Pipe(duplex=False)
        self.process = PROCESSES.Process(target=play_until_killed, args=(address, name, seed, theirs), daemon=True)
        self.process.start()
        theirs.close()

    def hear(self, wanted: int) -> None:
        """Wait for so many acknowledgements of verbs that did something."""
        while sum(reported.verb not in (REFUSED, FAILED) for reported in self.reported) < wanted:
            self.reported.append(self.pipe.recv())

    def kill(self) -> list[Reported]:
        """Kill the process; all that it said before."""
        assert self.process.exitcode is None, "it ended by itself"
        self.process.kill()
        self.process.join()
        try:
            while True:
                self.reported.append(self.pipe.recv())
        except (EOFError, OSError):
            self.pipe.close()
        return self.reported


def kill_once(address: str, name: str, generator: np.random.Generator, players: int) -> list[Reported]:
    """Let processes play, and kill them somewhere between two acknowledgements, now and then before the first."""
    playing = [Player(address, name, int(generator.integers(2**31))) for _ in range(players)]
    if generator.random() > AT_ONCE:
        for player in playing:
            player.hear(int(generator.integers(1, 8)))
    playing[0].process.join(float(generator.random()) * SOON)  # the point of the kill, not a wait for anything
    return [reported for player in playing for reported in player.kill()]


def check_promises(program: Program, reported_at: list[Reported]) -> Counter[str]:
    """All that was acknowledged is there; how many acknowledgements there were of each verb."""
    length = program.store.verify(program.id)
    done = [reported for reported in reported_at if reported.verb not in (REFUSED, FAILED)]
    for reported in done:
        assert reported.length <= length
        assert program.store.event(program.id, reported.length - 1).digest == reported.digest
        if reported.verb == "decide":
            check_list(program, reported)
        if reported.verb == "erase":
            assert program.names.roster[reported.promised] is None
    return Counter(reported.verb for reported in done)


def check_list(program: Program, reported: Reported) -> None:
    """The list of the round is the one that was given out, but for names that were erased since."""
    now = program.recommendation(reported.round).chosen
    assert [name for name in now if name != "(erased)"] == [name for name in reported.promised if name in now]
    assert len(now) == len(reported.promised)


def check_rounds(program: Program) -> int:
    """Every round is decided once, in order; returns how many there are."""
    rounds = [event.round for event in program.log() if event.kind == "decided"]
    assert rounds == list(range(1, len(rounds) + 1)) == [totals.round for totals in program.rounds]
    return len(rounds)


def check_kills(address: str, kills: int, players: int, seed: int) -> str:
    """Kill processes of a program, or of several one after the other; the figures in a line."""
    generator, total = np.random.default_rng(seed), Counter[str]()
    for first in range(0, kills, PER_PROGRAM):
        reported_at = []
        with Desk(address) as desk:
            desk.create(f"p{first}", **PLAN)
        for _ in range(min(PER_PROGRAM, kills - first)):
            fresh = kill_once(address, f"p{first}", generator, players)
            reported_at += fresh
            with Desk(address) as desk:
                check_promises(desk.program(f"p{first}"), fresh)
        total += finish(address, f"p{first}", reported_at)
    assert total[FAILED] == 0
    assert total["decide"] > kills / 2  # else they were killed before they did anything
    return say(address, kills, players, total)


def finish(address: str, name: str, reported_at: list[Reported]) -> Counter[str]:
    """Check everything once more when all is done, and that it goes on."""
    with Desk(address) as desk:
        program = desk.program(name)
        total = check_promises(program, reported_at)
        total["rounds"] = check_rounds(program)
        found = replay(program)
        assert found.proven, found.differing
        total["events"] = found.events
        program.decide({"p0000": 0, "late": 1}, again=True)
        assert replay(program).proven
    total[FAILED] = sum(reported.verb == FAILED for reported in reported_at)
    total[REFUSED] = sum(reported.verb == REFUSED for reported in reported_at)
    return total


def say(address: str, kills: int, players: int, total: Counter[str]) -> str:
    verbs = ", ".join(f"{total[verb]} {verb}" for verb in VERBS)
    kind = address.split(":")[0] if "://" in address else "sqlite"
    return (
        f"{kind}: {kills} times {players} killed, {total['rounds']} rounds, {total['events']} events, "
        f"{sum(total[verb] for verb in VERBS)} acknowledged ({verbs}), "
        f"{total[REFUSED]} refused, {total[FAILED]} failed; none lost, none twice, replay proven"
    )


@pytest.mark.parametrize(("players", "kills"), [(1, 4), (2, 2)])
def test_what_a_program_acknowledged_survives_kills(address: str, players: int, kills: int) -> None:
    print(check_kills(address, kills, players, seed=players))


@pytest.mark.soak
@pytest.mark.parametrize(("players", "kills"), [(1, 200), (2, 100)])
def test_what_a_program_acknowledged_survives_hundreds_of_kills(address: str, players: int, kills: int) -> None:
    print(check_kills(address, kills, players, seed=10 + players))


def kill_server(server: Postgres) -> None:
    """End every process of the server at once, as if its machine had lost power but for what the disk has."""
    first = psutil.Process(int((server.data / "postmaster.pid").read_text().split()[0]))
    for process in [first, *first.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    server.stop()


@pytest.fixture
def durable() -> Iterator[Postgres]:
    """A server that may be killed, and writes to the disk before it says so."""
    server = Postgres(fsync=True)
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.mark.soak
def test_what_a_program_acknowledged_survives_kills_of_the_server_under_load(durable: Postgres) -> None:
    address, generator, reported_at = (
        durable.address(durable.new_database()),
        np.random.default_rng(4),
        list[Reported](),
    )
    with Desk(address) as desk:
        desk.create("calls", **PLAN)
    playing = [Player(address, "calls", seed) for seed in range(2)]
    for turn in range(1, KILLS_OF_SERVER + 1):
        for player in playing:
            player.hear(8 * turn)  # the same processes, over all that happens to the server
        playing[0].process.join(float(generator.random()) * SOON)
        kill_server(durable)
        durable.start()
    for player in playing:
        player.hear(8 * (KILLS_OF_SERVER + 1))
        reported_at += player.kill()
    total = finish(address, "calls", reported_at)
    assert total[FAILED] >= 1
    for reported in reported_at:
        assert reported.verb != FAILED or reported.promised[0].startswith(
            ("Writing to the store", "Reading from the store")
        )
    print(f"server killed {KILLS_OF_SERVER} times; {say(address, 1, 2, total)}")
