"""The server under load: decide requests of ten clients at once and of one with few agents, and a whole round of
1,000,000 agents by Parquet.

A real server in a process of its own on a SQLite file that is written to the disk, clients on loopback in another
process. Two loads: paced, where each client begins a round every half second, as a busy platform does; and flat out,
where each sends its next request as soon as it has an answer, so that requests wait for each other.

`python -m benchmarks.server PORT SECONDS PAUSE AGENTS CLIENTS REPORT` is the clients, each with a program of its own; it
prints the milliseconds of each decision. With REPORT 1 they also send a table of outcomes in each round, with 0 the
states of the next round say what came of the one before.
"""

import contextlib
import http.client
import itertools
import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from io import BytesIO
from pathlib import Path

import numpy as np
import polars as pl
import psutil

from benchmarks.timing import Row, clock
from restive.desk import Desk
from restive.types import Floats

CLIENTS, FEW, MANY, ROUNDS = 10, 1_000, 1_000_000, 4
HANDFUL, QUICK_MS, TABLES = 10, 5, 64
WORKERS, A_SECOND = 2, 400
SECONDS, PAUSE = 20.0, 0.5
LIMIT_MS, LIMIT_SECONDS, GIBIBYTES = 50, 8, 2
PARQUET = "application/vnd.apache.parquet"
STATES = np.array(["low", "mid", "high"])


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        few = [latency(Path(folder), pause) for pause in (PAUSE, 0.0)]
        many = [throughput(Path(folder), report) for report in (False, True)]
        return [*few, *many, one_client(Path(folder)), *million(Path(folder))]


def latency(folder: Path, pause: float) -> Row:
    """The slowest hundredth of the decisions of 1,000 agents."""
    spent = decide_times(folder / f"few-{pause}.db", pause, FEW, CLIENTS)
    half, most = np.percentile(spent, [50, 99])
    how = f"a round every {pause:g} s each" if pause else "flat out"
    found = f"p99 of {spent.size:,} ({most:.0f} ms, median {half:.0f} ms, {spent.size / SECONDS:.0f} rounds a second)"
    what = f"server, decide, {FEW:,} agents, {CLIENTS} clients, {how}, {found}"
    return Row(what, f"{LIMIT_MS} ms", float(most), LIMIT_MS, "≤ 1")


def throughput(folder: Path, report: bool) -> Row:
    """The decisions a second of two worker processes, each with five programs or so."""
    store = folder / f"workers-{report}.db"
    spent = decide_times(store, 0.0, FEW, CLIENTS, report, "--workers", str(WORKERS))
    rate = spent.size / SECONDS
    how = "with a table of outcomes after each" if report else "the states are the outcomes"
    found = f"{rate:.0f} decisions a second, median {np.median(spent):.0f} ms, p99 {np.percentile(spent, 99):.0f} ms"
    what = (
        f"server, {WORKERS} workers, {CLIENTS} programs of {FEW:,} agents, {CLIENTS} clients flat out, {how} ({found})"
    )
    return Row(what, f"{A_SECOND} a second", 1 / rate, 1 / A_SECOND, "≤ 1")


def one_client(folder: Path) -> Row:
    """The median decision of 10 agents, one after the other."""
    spent = decide_times(folder / "handful.db", 0.0, HANDFUL, 1)
    half, most = np.percentile(spent, [50, 99])
    what = f"server, decide, {HANDFUL} agents, one client, median of {spent.size:,} ({half:.1f} ms, p99 {most:.1f} ms)"
    return Row(what, f"{QUICK_MS} ms", float(half), QUICK_MS, "≤ 1")


def decide_times(store: Path, pause: float, agents: int, clients: int, report: bool = True, *options: str) -> Floats:
    """The milliseconds of each decision of some clients."""
    with Desk(store) as desk:
        for client in range(clients):
            desk.create(f"program-{client}", states=["low", "high"], rewards=[0, 1], budget=max(agents // 20, 1))
    with serving(store, *options) as (port, _):
        numbers = (port, SECONDS, pause, agents, clients, int(report))
        command = [sys.executable, "-m", "benchmarks.server", *map(str, numbers)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    return np.array(json.loads(done.stdout.splitlines()[-1]))


def million(folder: Path) -> list[Row]:
    """Whole rounds of a million agents: states up, list down, outcomes up."""
    store = folder / "many.db"
    with Desk(store) as desk:
        desk.create("many", states=STATES.tolist(), rewards=[0, 1, 2], budget=MANY // 100, cool_down=2)
    random = np.random.default_rng(0)
    names = pl.Series("agent", [f"customer-{number:07}" for number in range(MANY)])
    state, spent = random.integers(3, size=MANY), []
    with serving(store) as (port, watch):
        for number in range(1, ROUNDS + 1):
            after = np.clip(state + random.integers(-1, 2, size=MANY), 0, 2)
            states, outcomes = (
                as_parquet({"agent": names, column: STATES[codes]})
                for column, codes in (("state", state), ("next_state", after))
            )
            seconds, listed = clock(partial(whole_round, port, number, states, outcomes))
            assert pl.read_parquet(BytesIO(listed)).filter(pl.col("list") == "chosen").height == MANY // 100
            spent.append(seconds)
            state = after
        peak = watch.peak / 2**30
    what = f"server, {MANY:,} agents by Parquet"
    median = float(np.median(spent))
    return [
        Row(f"{what}, the slowest of {ROUNDS} rounds ({max(spent):.2f} s, median {median:.2f} s)",
            f"{LIMIT_SECONDS} s", max(spent), LIMIT_SECONDS, "≤ 1"),
        Row(f"{what}, peak memory of all its processes ({peak:.2f} GiB)", f"{GIBIBYTES} GiB", peak, GIBIBYTES, "≤ 1"),
    ]  # fmt: skip


def as_parquet(columns: dict[str, object]) -> bytes:
    content = BytesIO()
    pl.DataFrame(columns).write_parquet(content)
    return content.getvalue()


def whole_round(port: int, number: int, states: bytes, outcomes: bytes) -> bytes:
    """The list that came down."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    place = "/api/v1/programs/many"
    ask(connection, "POST", f"{place}/rounds?round={number}&limit=10", states, PARQUET)
    listed = ask(connection, "GET", f"{place}/rounds/{number}/list.parquet?columns=all")
    ask(connection, "POST", f"{place}/outcomes?round={number}", outcomes, PARQUET)
    return listed


def ask(
    connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None = None, kind: str = ""
) -> bytes:
    connection.request(method, path, body, {"Content-Type": kind} if kind else {})
    answer = connection.getresponse()
    content = answer.read()
    assert answer.status < 300, content[:500]
    return content


class Watch(threading.Thread):
    """Looks at the largest that a process and its children ever were, many times a second."""

    def __init__(self, process: psutil.Process) -> None:
        super().__init__(daemon=True)
        self.process, self.over = process, threading.Event()
        self.largest: dict[int, int] = {}

    @property
    def peak(self) -> int:
        """Bytes: the server at its largest and the largest of its children at its largest, as if at the same time."""
        children = [size for pid, size in self.largest.items() if pid != self.process.pid]
        return self.largest[self.process.pid] + max(children, default=0)

    def run(self) -> None:
        while not self.over.wait(0.02):
            for each in (self.process, *self.process.children(recursive=True)):
                with contextlib.suppress(OSError, IndexError):
                    status = Path(f"/proc/{each.pid}/status").read_text()
                    self.largest[each.pid] = int(status.split("VmHWM:")[1].split()[0]) << 10


@contextlib.contextmanager
def serving(store: Path, *options: str) -> Iterator[tuple[int, Watch]]:
    """A server on a free port, and who watches it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "restive", "serve", "--store", str(store), "--port", str(port), "--log", "none"]
    process = subprocess.Popen([*command, "--rate", "1000000", *options], stderr=subprocess.DEVNULL)
    watch = Watch(psutil.Process(process.pid))
    try:
        wait_for(port, process)
        watch.start()
        yield port, watch
    finally:
        watch.over.set()
        process.terminate()
        process.wait(60)


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        with contextlib.suppress(OSError, AssertionError):
            ask(http.client.HTTPConnection("127.0.0.1", port, timeout=10), "GET", "/ready")
            return
        time.sleep(0.05)
    raise RuntimeError("the server ended")


def play(port: int, client: int, until: float, pause: float, agents: int, clients: int, report: bool) -> list[float]:
    """One client: decide, report outcomes, wait; the milliseconds of each decision but the first few.

    The tables are made beforehand, because the clients share the processors with the server.
    """
    random = np.random.default_rng(client)
    names = [f"customer-{number:04}" for number in range(agents)]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    place, spent = f"/api/v1/programs/program-{client}", []
    drawn = STATES[[0, 2]][random.integers(2, size=(TABLES, agents))].tolist()
    states = [json.dumps({"states": {"agent": names, "state": codes}}).encode() for codes in drawn]
    outcomes = [json.dumps({"outcomes": {"agent": names, "next_state": codes}}).encode() for codes in drawn]
    time.sleep(pause * client / clients)
    for number in itertools.count():
        begun = time.monotonic()
        if begun >= until:
            break
        body = states[number % TABLES]
        seconds, _ = clock(partial(ask, connection, "POST", f"{place}/rounds", body, "application/json"))
        if report:
            ask(connection, "POST", f"{place}/outcomes", outcomes[-number % TABLES], "application/json")
        spent.append(seconds * 1000)
        time.sleep(max(0.0, pause - (time.monotonic() - begun)))
    return spent[3:]


if __name__ == "__main__":
    port, seconds, pause = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
    agents, clients, report = int(sys.argv[4]), int(sys.argv[5]), sys.argv[6] == "1"
    until = time.monotonic() + seconds
    with ThreadPoolExecutor(clients) as threads:
        played = threads.map(lambda client: play(port, client, until, pause, agents, clients, report), range(clients))
        print(json.dumps([spent for each in played for spent in each]))
