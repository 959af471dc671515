"""Processes that are killed while they use a program, and what must be true afterwards.

Each function that begins with `check_` plays a part of `tests/reliability.py` and returns its counts.
"""

import os
import signal
from collections import Counter
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import psutil
import sqlalchemy as sa

from desk.postgres import Postgres
from desk.survivor import FAILED, FIRST_URL, PROCESSES, REFUSED, Reported, make_phone, make_program, play_until_killed
from desk.write_ahead_log import Position, cut_power, read_files, write_files
from restive.desk import Desk, Program
from restive.desk.database import deliveries, webhooks
from restive.desk.replay import replay
from restive.desk.webhooks import list_webhooks

SOON = 0.03  # seconds after an acknowledgement within which a process is killed
AT_ONCE = 0.1  # of the processes are killed while they begin
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
        with suppress(EOFError, OSError):
            while True:
                self.reported.append(self.pipe.recv())
        self.pipe.close()
        return self.reported

    def stop(self) -> None:
        """Stop the process between two instructions, until `go_on`, and take in what it said."""
        assert self.process.pid is not None
        os.kill(self.process.pid, signal.SIGSTOP)
        while psutil.Process(self.process.pid).status() != psutil.STATUS_STOPPED:
            pass
        while self.pipe.poll():
            self.reported.append(self.pipe.recv())

    def go_on(self) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, signal.SIGCONT)


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
    undone = program.projection.undone
    for reported in done:
        assert reported.length <= length
        assert program.store.event(program.id, reported.length - 1).digest == reported.digest
        if reported.verb == "decide" and not any(reported.promised[0] in taken_back for taken_back in undone):
            check_list(program, reported.round, reported.promised[1])
        if reported.verb == "erase":
            assert program.names.roster[reported.promised] is None
        if reported.verb == "undo":
            assert any(reported.promised in taken_back for taken_back in undone)
    check_webhooks(program, {reported.promised for reported in done if reported.verb == "webhook"})
    check_display(program)
    check_messages(program)
    return Counter(reported.verb for reported in done)


def check_list(program: Program, round_: int, promised: list[str]) -> None:
    """The list of the round is the one that was given out, but for names that were erased since."""
    now = program.recommendation(round_).chosen
    assert [name for name in now if name != "(erased)"] == [name for name in promised if name in now]
    assert len(now) == len(promised)


def check_display(program: Program) -> None:
    """Everybody has the phone number that came with the name, and who is erased has none."""
    names = program.names.roster.to_list()
    for name, cells in zip(names, program.display(range(len(names))), strict=True):
        assert cells == {"phone": None if name is None else make_phone(name)}


def check_webhooks(program: Program, promised: set[tuple[str, bool]]) -> None:
    """What was removed is gone, and as many are there as the audit log says."""
    urls, verbs = {row["url"] for row in list_webhooks(program)}, Counter[str]()
    verbs.update(row.verb for row in program.store.audit_log(program.id, limit=10**6))
    assert FIRST_URL in urls
    assert not urls & {url for url, there in promised if not there}
    assert len(urls) == verbs["webhook added"] - verbs["webhook removed"]


def check_messages(program: Program) -> None:
    """The first webhook has one message about each decision, which is marked if it was undone."""
    store, undone = program.store, program.projection.undone
    mine = sa.select(deliveries.c.round, deliveries.c.undone).join(webhooks, webhooks.c.id == deliveries.c.webhook)
    rows = store.execute(
        mine.where(
            deliveries.c.program == program.id, webhooks.c.url == FIRST_URL, deliveries.c.type == "round.decided"
        )
    )
    decided = store.events(program.id, kinds=["decided"])
    wanted = Counter((event.round, any(event.number in back for back in undone)) for event in decided)
    assert Counter((row.round, row.undone) for row in rows) == wanted


def check_rounds(program: Program) -> int:
    """Every round is decided once, in order, but for undone ones; returns how many there are."""
    undone = program.projection.undone
    decided = [event for event in program.log() if event.kind == "decided"]
    rounds = [event.round for event in decided if not any(event.number in back for back in undone)]
    assert rounds == list(range(1, len(rounds) + 1)) == [totals.round for totals in program.rounds]
    return len(rounds)


def check_kills(address: str, kills: int, players: int, seed: int) -> Counter[str]:
    """Kill processes of a program, or of several one after the other."""
    generator, total = np.random.default_rng(seed), Counter[str]()
    for first in range(0, kills, PER_PROGRAM):
        name, reported_at = f"p{seed}-{first}", list[Reported]()
        with Desk(address) as desk:
            make_program(desk, name)
        for _ in range(min(PER_PROGRAM, kills - first)):
            fresh = kill_once(address, name, generator, players)
            reported_at += fresh
            with Desk(address) as desk:
                check_promises(desk.program(name), fresh)
        total += finish(address, name, reported_at)
    assert total[FAILED] == 0
    return total + Counter(kills=kills * players)


def finish(address: str, name: str, reported_at: list[Reported]) -> Counter[str]:
    """Check everything once more when all is done, and that it goes on."""
    with Desk(address) as desk:
        program = desk.program(name)
        if program.archived:
            program.restore()
        verbs = check_promises(program, reported_at)
        total = verbs + Counter(acknowledged=sum(verbs.values()), rounds=check_rounds(program))
        found = replay(program)
        assert found.proven, found.differing
        total["events"] = found.events
        program.decide({"p0000": 0, "p9999": 1}, again=True)
        assert replay(program).proven
    total[FAILED] = sum(reported.verb == FAILED for reported in reported_at)
    total[REFUSED] = sum(reported.verb == REFUSED for reported in reported_at)
    return total


def check_images(folder: Path, images: int, seed: int) -> Counter[str]:
    """Stop a process that plays on a SQLite file at any moment, and open its files as a power cut would leave them."""
    generator, address, image = np.random.default_rng(seed), folder / f"{seed}.db", folder / "image.db"
    with Desk(address) as desk:
        make_program(desk, "calls")
    before, last, total = address.read_bytes(), None, Counter[str]()
    player = Player(str(address), "calls", int(generator.integers(2**31)))
    for turn in range(images):
        player.hear(2 * turn + int(generator.integers(1, 3)))
        player.process.join(float(generator.random()) * SOON)
        player.stop()
        now = read_files(address)
        last = find_last(player.reported)
        made = cut_power(now, before, last, generator)
        write_files(image, made, generator)
        with Desk(image) as desk:
            program = desk.program("calls")
            check_promises(program, player.reported)
            total["torn"] += made[:2] != now[:2]
            assert program.store.execute(sa.text("PRAGMA integrity_check"))[0][0] == "ok"  # type: ignore[arg-type]
        before = now.database
        player.go_on()
    total += finish(str(image), "calls", player.reported)
    player.kill()
    return total + Counter(kills=images)


def find_last(reported_at: list[Reported]) -> Position | None:
    """Where the log was when the last verb was acknowledged; refused ones and failures say nothing of it."""
    return next((each.position for each in reversed(reported_at) if each.verb not in (REFUSED, FAILED)), None)


def kill_server(server: Postgres) -> None:
    """End every process of the server at once, as if its machine had lost power but for what the disk has."""
    first = psutil.Process(int((server.data / "postmaster.pid").read_text().split()[0]))
    first.suspend()  # so that it starts no other process that would go on without it
    processes = [first, *first.children(recursive=True)]
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes, timeout=60)
    server.stop()


def check_server_kills(server: Postgres, kills: int, seed: int) -> Counter[str]:
    """Kill the database server under two processes that go on; the server flushes what it acknowledges."""
    address, generator = server.address(server.new_database()), np.random.default_rng(seed)
    with Desk(address) as desk:
        make_program(desk, "calls")
    playing, reported_at = [Player(address, "calls", seed + number) for number in range(2)], list[Reported]()
    for turn in range(1, kills + 1):
        for player in playing:
            player.hear(4 * turn)  # the same processes, over all that happens to the server
        playing[0].process.join(float(generator.random()) * SOON)
        kill_server(server)
        server.start()
    for player in playing:
        player.hear(4 * (kills + 1))
        reported_at += player.kill()
    total = finish(address, "calls", reported_at)
    known = ("Writing to the store", "Reading from the store", "The erasure is recorded, but old copies")
    for reported in reported_at:
        assert reported.verb != FAILED or reported.promised[0].startswith(known), reported.promised
    return total + Counter(kills=kills)
