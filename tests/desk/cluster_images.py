"""The files of a PostgreSQL server as a power cut can leave them, opened by a server of their own.

PostgreSQL flushes its log before it acknowledges a commit, and the log up to a page's last change before it writes the page.
Since the last checkpoint nothing else is flushed. So after a power cut

- what is in the log after the last flush may be torn at any sector (here: while no page is written, which the settings see to);
- a page of a table that was written since the checkpoint may be torn, some sectors old, some new; the first change of each page
  after a checkpoint has the whole page in the log.

Each program is played in one of these two ways.
"""

import os
import shutil
import signal
from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil

from desk.kills import SOON, Player, check_promises, finish
from desk.postgres import Postgres
from desk.survivor import make_program
from desk.write_ahead_log import SECTOR, tear
from restive.desk import Desk

SEGMENT, PAGE = 16 << 20, 8192
NO_CHECKPOINTS = {"checkpoint_timeout": "1d", "max_wal_size": "8GB", "autovacuum": "off"}
WRITES_PAGES = {"shared_buffers": "512kB"}  # pages are written to make room for others


def stop_all(server: Postgres, number: signal.Signals) -> None:
    """Send a signal to all processes of the server."""
    first = psutil.Process(int((server.data / "postmaster.pid").read_text().split()[0]))
    for process in [first, *first.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def take_image(server: Postgres, target: Path) -> None:
    """Copy the files of a server between two instructions."""
    shutil.rmtree(target, ignore_errors=True)
    stop_all(server, signal.SIGSTOP)
    try:
        shutil.copytree(server.data, target, ignore=shutil.ignore_patterns("postmaster.pid"))
    finally:
        stop_all(server, signal.SIGCONT)


def tear_log(image: Path, flushed: int, generator: np.random.Generator) -> None:
    """Tear the log after a position in it."""
    for file in sorted((image / "pg_wal").glob("0" * 7 + "1" + "?" * 16)):
        start = int(file.name[8:16], 16) * (1 << 32) + int(file.name[16:], 16) * SEGMENT
        content, kept = bytearray(file.read_bytes()), min(max(flushed - start, 0), SEGMENT)
        tear(content, kept, generator)
        file.write_bytes(bytes(content).ljust(SEGMENT, b"\0"))


def tear_pages(image: Path, base: Path, generator: np.random.Generator) -> int:
    """Put old sectors into pages of tables and indices that were written since the checkpoint; how many pages."""
    torn = 0
    for file in image.glob("base/*/*"):
        before = base / file.relative_to(image)
        if not file.name.isdigit() or not before.exists():
            continue
        now, old = bytearray(file.read_bytes()), before.read_bytes()
        for start in range(0, min(len(now), len(old)), PAGE):
            if now[start : start + PAGE] != old[start : start + PAGE] and generator.random() < 0.5:
                torn += 1
                for sector in range(start, start + PAGE, SECTOR):
                    if generator.random() < 0.5:
                        now[sector : sector + SECTOR] = old[sector : sector + SECTOR]
        file.write_bytes(now)
    return torn


def check_cluster_images(images: int, seed: int) -> Counter[str]:
    """Open so many images of a server on which a process plays, each in a server of its own."""
    generator, pages = np.random.default_rng(seed), bool(seed % 2)
    server = Postgres(True, **NO_CHECKPOINTS, **(WRITES_PAGES if pages else {"bgwriter_lru_maxpages": "0"}))
    other, total = Postgres(True), Counter[str]()
    base, image = server.folder / "base", other.data
    try:
        server.start()
        name = server.new_database()
        with Desk(server.address(name)) as desk:
            make_program(desk, "calls")
        server.execute("CHECKPOINT")
        take_image(server, base)
        player = Player(server.address(name), "calls", int(generator.integers(2**31)))
        for turn in range(images):
            player.hear(3 * turn + int(generator.integers(1, 4)))
            player.process.join(float(generator.random()) * SOON)
            player.stop()  # the server may be at work for it
            flushed = _read_position(server)  # all that was acknowledged before is flushed up to here
            promised = list(player.reported)
            take_image(server, image)
            if pages:
                total["torn"] += tear_pages(image, base, generator) > 0
            else:
                tear_log(image, flushed, generator)
                total["torn"] += 1
            _own(image, server)
            other.start()
            with Desk(other.address(name)) as desk:
                check_promises(desk.program("calls"), promised)
            if turn == images - 1:
                total += finish(other.address(name), "calls", promised)
            other.stop("immediate")
            player.go_on()
        player.kill()
    finally:
        server.remove()
        other.remove()
    return total + Counter(kills=images)


def _read_position(server: Postgres) -> int:
    high, low = str(server.execute("SELECT pg_current_wal_flush_lsn()")).split("/")
    return (int(high, 16) << 32) + int(low, 16)


def _own(image: Path, server: Postgres) -> None:
    """Give the copy to the user of the server."""
    owner = server.data.stat()
    for path in [image, *image.rglob("*")]:
        os.chown(path, owner.st_uid, owner.st_gid)
    image.chmod(0o700)
