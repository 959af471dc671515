"""Thousands of kills, power cuts and fuzzed rows, in slices that add up: `python tests/reliability.py --seconds 600`.

A slice plays one part after the other until its time is over, and adds its counts to the tables of the page, which it
reads before. A part that fails raises, and its slice is not counted. The seed of a slice is what the row has so far, so
that slices differ and each can be repeated.
"""

import argparse
import fcntl
import itertools
import os
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from desk.cluster_images import check_cluster_images
from desk.fuzz import check_rows
from desk.kills import PER_PROGRAM, check_images, check_kills, check_server_kills
from desk.postgres import Postgres

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/reference/results/reliability.md"
HTTP_KILLS, SERVER_KILLS, CLUSTER_IMAGES, ROWS = 10, 10, 5, 50_000  # of a slice
ACKNOWLEDGED = ("decide", "decide round", "learn")  # the verbs of callers of a server
MAX_GROWTH = 1.15  # of the memory, from the eighth hour of a day to its end
Part = Callable[["Places", int], Counter[str]]


class Places:
    """Where slices play: a folder, and database servers that are started when they are needed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._servers: dict[bool, Postgres] = {}
        self._numbers = itertools.count()

    def postgres(self, fsync: bool) -> Postgres:
        if fsync not in self._servers:
            self._servers[fsync] = Postgres(fsync)
            self._servers[fsync].start()
        return self._servers[fsync]

    def store(self, kind: str) -> str:
        """A new store."""
        if kind == "PostgreSQL":
            return self.postgres(fsync=False).new_schema()
        return str(self.folder / f"{next(self._numbers)}.db")

    def close(self) -> None:
        for server in self._servers.values():
            server.remove()


def kill_processes(kind: str, players: int) -> Part:
    return lambda places, seed: check_kills(places.store(kind), PER_PROGRAM // players, players, seed)


def kill_http(kind: str) -> Part:
    def play(places: Places, seed: int) -> Counter[str]:
        from server.trials.test_kills import check_kills as check_http_kills  # imports pytest, also in each process

        total = check_http_kills(places.store(kind), HTTP_KILLS, seed)
        done = sum(total[verb] for verb in ACKNOWLEDGED)
        return total + Counter(kills=HTTP_KILLS, acknowledged=done)

    return play


def kill_workers(places: Places, seed: int) -> Counter[str]:
    from server.test_workers import check_worker_kills

    total = check_worker_kills(places.store("SQLite"), HTTP_KILLS, seed)
    return total + Counter(kills=HTTP_KILLS, acknowledged=sum(total[verb] for verb in ACKNOWLEDGED))


def play_day(places: Places, seed: int) -> Counter[str]:
    from server.trials.day import check_day

    return count_day(check_day(places.folder / "day.db"))


def count_day(found: dict[str, Any]) -> Counter[str]:
    """The figures of a day; the memory may not grow any more in its last two thirds."""
    memory = found["memory"]
    assert memory[-1] < MAX_GROWTH * memory[len(memory) // 3], memory
    hours = {f"MiB after {hour} h": round(memory[hour - 1]) for hour in (1, 8, 16, 24)}
    return Counter({"requests": found["requests"], "rounds": found["rounds"]} | hours)


KILLS: dict[str, Part] = {
    "a process that uses the desk, SQLite": kill_processes("SQLite", 1),
    "a process that uses the desk, PostgreSQL": kill_processes("PostgreSQL", 1),
    "two processes at once, SQLite": kill_processes("SQLite", 2),
    "two processes at once, PostgreSQL": kill_processes("PostgreSQL", 2),
    "the database server, PostgreSQL": lambda places, seed: check_server_kills(
        places.postgres(fsync=True), SERVER_KILLS, seed
    ),
    "`restive serve` under four callers, SQLite": kill_http("SQLite"),
    "`restive serve` under four callers, PostgreSQL": kill_http("PostgreSQL"),
    "a worker of `restive serve --workers 2`, SQLite": kill_workers,
}
IMAGES: dict[str, Part] = {
    "SQLite": lambda places, seed: check_images(places.folder, PER_PROGRAM, seed),
    "PostgreSQL": lambda places, seed: check_cluster_images(CLUSTER_IMAGES, seed),
}
FUZZ: dict[str, Part] = {"CSV files": lambda places, seed: check_rows(places.folder, ROWS, seed)}
DAY: dict[str, Part] = {"one request a second": play_day}
# The columns of each table; the second one is its seed.
TABLES: dict[tuple[str, ...], dict[str, Part]] = {
    ("killed", "kills", "acknowledged", "rounds", "events"): KILLS,
    ("power cut", "images", "torn", "acknowledged", "events"): IMAGES,
    ("tables", "rows", "files", "accepted", "refused"): FUZZ,
    ("day", "requests", "rounds", "MiB after 1 h", "MiB after 8 h", "MiB after 16 h", "MiB after 24 h"): DAY,
}
NAMES = {"images": "kills", "files": "tables"}  # of counts, where the table says it in another word
TEXT = """# Reliability: kills, power cuts and bad tables

Written by `python tests/reliability.py` (`make reliability`), which plays in slices: each adds its counts to these tables.
{version}

    >>> from restive.desk.replay import replay  # what proves a log after the kills

## Kills

{kills:,} times so far, of 10,000 wanted, a process was killed by SIGKILL at a random moment. Those that use the desk play every verb
of a program: decide with display columns, learn, correct, withdraw, undo, cancel, leave, erase, change, archive, restore, and
webhooks; callers of a server decide and learn with idempotency keys. After each kill the store is opened by another process.
Everything that had been acknowledged was there, once; every round was decided once; phone numbers of people were those that
came with them, those of erased people were gone; webhooks had one message for each decision; a request that was repeated with its
key got the first answer; and at the end of each program a replay computed every decision again, bit for bit.

{table_1}

## Power cuts

A process is stopped at a random moment, and its files are copied as a power cut could leave them: the write-ahead log cut
off or torn at any sector after the last acknowledged commit, pages of the database that a checkpoint had not flushed with
some of their sectors old, the shared memory lost or full of noise. Of PostgreSQL, its log is torn after the last flush, or pages of
tables that were written since the last checkpoint have some of their sectors old; a server of its own opens each image. Each
image had all that had been acknowledged, and those of SQLite passed its integrity check.

{table_2}

## Bad tables

Rows with faults in cells, headers and bytes. Each table was recorded, or refused in words with nothing recorded, and the log
was replayed at the end.

{table_3}

## A day

As many requests as one a second makes in 24 hours, as fast as they go: ten programs of 200 people, four callers who read lists,
statuses, pages, people and metrics, decide rounds from JSON and from files, download tables and send wrong ones. The memory is
that of the server and its children, after so many hours. This row is that of the last day that was played (`--only day`).

{table_4}
"""


def read_page(page: Path) -> dict[str, Counter[str]]:
    """The counts of each row of the tables of a page."""
    found: dict[str, Counter[str]] = {}
    columns: list[str] = []
    for line in page.read_text(encoding="utf-8").splitlines() if page.exists() else []:
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if cells and cells[1].replace(",", "").isdigit():
            counts = (int(cell.replace(",", "")) for cell in cells[1:])
            found[f"{columns[0]}: {cells[0]}"] = Counter(dict(zip(columns[1:], counts, strict=True)))
        elif cells and not cells[1].startswith("-"):
            columns = cells
    return found


def write_page(page: Path, found: dict[str, Counter[str]]) -> None:
    """The page with these counts."""
    from restive.version import __version__

    tables = {
        f"table_{place}": _write_table(columns, parts, found)
        for place, (columns, parts) in enumerate(TABLES.items(), 1)
    }
    kills = sum(counts["kills"] for row, counts in found.items() if row.startswith("killed: "))
    version = f"Last slice by version {__version__}."
    page.write_text(TEXT.format(version=version, kills=kills, **tables), encoding="utf-8")


def _write_table(columns: tuple[str, ...], parts: dict[str, Part], found: dict[str, Counter[str]]) -> str:
    lines = [f"| {' | '.join(columns)} |", f"|{'|'.join(['---'] + ['---:'] * (len(columns) - 1))}|"]
    for part in parts:
        counts = found.get(f"{columns[0]}: {part}")
        if counts is None:
            continue
        lines.append(f"| {part} | {' | '.join(f'{counts[name]:,}' for name in columns[1:])} |")
    return "\n".join(lines)


@contextmanager
def locked(page: Path) -> Iterator[None]:
    """Nobody else changes the page while the block runs."""
    with page.with_suffix(".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            page.with_suffix(".lock").unlink()


def play_slice(page: Path, places: Places, columns: tuple[str, ...], name: str, part: Part) -> None:
    """Play a part once, and add its counts to the page."""
    row, began = f"{columns[0]}: {name}", time.monotonic()
    seed = read_page(page).get(row, Counter())[columns[1]]
    counts = add_slice(page, row, columns, part(places, seed))
    shown = ", ".join(f"{counts[each]:,} {each}" for each in columns[1:])
    print(f"{time.monotonic() - began:6.1f} s  {name}: {shown}", flush=True)


def add_slice(page: Path, row: str, columns: tuple[str, ...], total: Counter[str]) -> Counter[str]:
    """Add the counts of a slice to a row of the page; those of a day replace the row."""
    with locked(page):
        found = read_page(page)
        before = Counter[str]() if columns[0] == "day" else found.get(row, Counter[str]())
        found[row] = Counter({each: before[each] + total[NAMES.get(each, each)] for each in columns[1:]})
        write_page(page, found)
    return found[row]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0, help="no slice is begun after this time")
    parser.add_argument("--only", default="", help="parts whose name matches this regular expression")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page that has the counts, and gets them")
    asked = parser.parse_args()
    parts = [(columns, name, part) for columns, named in TABLES.items() for name, part in named.items()]
    parts = [
        each
        for each in parts
        if re.search(asked.only, f"{each[0][0]}: {each[1]}") and (asked.only or each[0][0] != "day")
    ]
    deadline = time.monotonic() + asked.seconds
    os.environ["PYTHONPATH"] = f"{ROOT / 'tests'}{os.pathsep}{ROOT}"  # of the processes that are killed
    with tempfile.TemporaryDirectory(prefix="restive-reliability-") as folder:
        places = Places(Path(folder))
        try:
            while True:
                for columns, name, part in parts:
                    if time.monotonic() > deadline:
                        return
                    play_slice(asked.page, places, columns, name, part)
        finally:
            places.close()


if __name__ == "__main__":
    main()
