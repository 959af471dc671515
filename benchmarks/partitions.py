"""A round of a partitioned program by the number of people: time, memory and bytes, and what follows for more people.

    python -m benchmarks.partitions --markdown docs/reference/results/partitioned.md [--people 1 5 20] [--engine dask]

Each number of millions runs in a process of its own, in partitions of 2²⁰ people that are read, learned from and written
one after the other. The last of its rounds is the one measured: it learns from everybody, in four passes. One more run ends with
the round that looks for types of people, in up to 25 passes. Tables of people and of states are made beforehand and are not measured.
"""

import argparse
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from restive.desk.config import Config
from restive.desk.partitions.people import SIZE
from restive.desk.partitions.program import create
from restive.paper.engines import open_engine

MILLION, SHARE = 10**6, 0.01
SHORT, LONG = 2, 51  # rounds; the long run, whose last round looks for types, has only the first number of people
CONFIG = {
    "states": ["away", "here"], "rewards": [0, 1], "control": 0.1, "cool_down": 2,
}  # fmt: skip
PAGE = """# Partitions: measured, and planned for more people

Written by `python -m benchmarks.partitions --markdown docs/reference/results/partitioned.md` on {machine}.
[How to use them](../../how-to/partitions.md).

```python
>>> from restive.desk.partitions.people import SIZE
>>> SIZE  # people in a partition
1048576

```

## Measured

One round of a program with two states, a control group of 10 %, a cool-down and a budget of 1 % of the people, in partitions of
{size:,} people, with {workers}, a process on one core. The round learns from everybody, in four passes over the partitions; round {long}
also looks for types of people, in up to 25 passes. All files are flushed to the disk. Where the seconds are many times those of the
processor, other processes shared it, and only the latter can be compared. Memory is the largest resident size of all processes together.

{measured}

Seconds for each million people, by phase:

{phases}

Equality with one machine, bit for bit, is tested at 1,000,000 people with 1, 3 and 16 partitions; a worker that is killed in
each phase, and a coordinator at its commit, are tested too (`make soak SOAK=tests/desk/partitions`).

## Planned

From the figures of round {round} of {base:,} people, if a worker is as fast as here; beliefs and memory are those of round {late}:

{planned}

Time is that of the processor, divided by the workers: a lower bound, to which reading and writing the store and waiting for the
slowest task of each phase are added; two partitions for each worker or more keep the waiting short. What is read is the beliefs
in each of four passes and half of them for the ranking; beliefs are compressed less the more is known. A group with a minimum share
adds a selection, and types that are in use add two passes of learning; `decide --json` prints the bytes of each phase.

What would break first, in this order:

1. **The store.** In a round every worker reads the beliefs of its people in each pass and writes them once. Where the workers
   read from one object store, its bandwidth is the limit long before the processors: the table has the bytes.
2. **The states.** The tables of states must be written one for each partition. A single table for all is read by
   every task, which is fit for a few million people only.
3. **The log.** A record names five files of each partition, with their digests. It is read and written as a whole, which is
   fit for some thousand partitions; more people need larger partitions.
4. **Ids.** That no id appears twice is checked when the program is made, and every task of that check reads all ids. Of newcomers
   it is checked in their round: every partition reads all of their ids.
5. **Numbers.** Counts of a partition are 32 bits, numbers of people 63: no limit.
"""


def make_tables(folder: Path, people: int, rounds: int) -> None:
    """Tables of people and of the states of each round, a file for each partition."""
    for name in ("people", *(f"states-{round_}" for round_ in range(1, rounds + 1))):
        (folder / name).mkdir()
    for place, first in enumerate(range(0, people, SIZE)):
        numbers = np.random.default_rng(place)
        count = min(SIZE, people - first)
        agent = "p" + pl.Series("agent", np.arange(first, first + count)).cast(pl.String).str.zfill(9)
        agent.alias("agent").to_frame().write_parquet(folder / "people" / f"part-{place:05d}.parquet")
        likely = numbers.beta(2, 2, count)
        for round_ in range(1, rounds + 1):
            state = (numbers.random(count) < likely).astype(np.int8)
            table = pl.DataFrame({"agent": agent.alias("agent"), "state": state})
            table.write_parquet(folder / f"states-{round_}" / f"part-{place:05d}.parquet")


def sum_memory(stop: threading.Event, most: list[int]) -> None:
    """The largest resident size of this process and its children together, in bytes."""
    import psutil

    me = psutil.Process()
    while not stop.wait(0.1):
        try:
            total = sum(each.memory_info().rss for each in (me, *me.children(recursive=True)))
        except psutil.Error:
            continue
        most[0] = max(most[0], total)


def _warm_up(folder: Path, engine: Executor) -> None:
    """Two rounds of few people, so that no kernel is compiled or loaded while time is taken."""
    folder.mkdir()
    make_tables(folder, 2048, SHORT)
    program = create(str(folder / "program"), str(folder / "people"), Config.from_json(CONFIG), engine)
    for round_ in range(1, SHORT + 1):
        program.decide(str(folder / f"states-{round_}"), engine)


def measure(folder: Path, people: int, rounds: int, engine: str, workers: int) -> dict[str, Any]:
    """Make a program and decide its rounds; what the last one took."""
    config = Config.from_json({**CONFIG, "budget": int(SHARE * people)})
    stop, most = threading.Event(), [0]
    watch = threading.Thread(target=sum_memory, args=(stop, most))
    with open_engine(engine, workers) as opened:
        _warm_up(folder / "warm", opened)
        watch.start()
        program = create(str(folder / "program"), str(folder / "people"), config, opened)
        for round_ in range(1, rounds + 1):
            begun, worked = time.perf_counter(), time.process_time()
            decided = program.decide(str(folder / f"states-{round_}"), opened)
            seconds, worked = time.perf_counter() - begun, time.process_time() - worked
        stop.set()
        watch.join()
    assert decided.listed == int(SHARE * people)
    assert decided.outcomes == people
    kept = f"choices-{rounds:05d}", f"list-{rounds:05d}"
    files = [path for path in (folder / "program").rglob("*") if path.is_file()]
    return {
        "people": people,
        "rounds": rounds,
        "partitions": len(program.partitions),
        "seconds": seconds,
        "worked": worked,
        "phases": decided.seconds,
        "moved": sum(decided.moved.values()),
        "passes": decided.passes,
        "memory": max(most[0], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024),
        "states": sum(path.stat().st_size for path in (folder / f"states-{rounds}").iterdir()),
        "belief": sum(path.stat().st_size for path in files if path.name.startswith(f"belief-{rounds:05d}")),
        "kept": sum(path.stat().st_size for path in files if path.name.startswith(kept)),
        "record": (folder / "program" / "log" / f"{rounds:05d}.json").stat().st_size,
        "workers": workers,
    }  # fmt: skip


def run(millions: int, rounds: int, engine: str, workers: int, scratch: str | None) -> dict[str, Any]:
    """Measure in a process of its own."""
    folder = Path(tempfile.mkdtemp(prefix="partitions-", dir=scratch))
    try:
        command = [sys.executable, "-m", "benchmarks.partitions", "--in", str(folder)]
        given = ["--people", str(millions), "--rounds", str(rounds), "--engine", engine, "--workers", str(workers)]
        alone = {**os.environ, "POLARS_MAX_THREADS": "1"}  # so that a worker is one core
        subprocess.run([*command, "--prepare", *given], check=True, env=alone)
        found = subprocess.run([*command, *given], check=True, stdout=subprocess.PIPE, env=alone).stdout
        return dict(json.loads(found))
    finally:
        shutil.rmtree(folder)


def table(rows: list[dict[str, str]]) -> str:
    """Rows as Markdown."""
    names = list(rows[0])
    lines = [names, ["---"] * len(names), *([row[name] for name in names] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def describe(found: dict[str, Any]) -> dict[str, str]:
    millions, parts = found["people"] / MILLION, found["partitions"]
    return {
        "people": f"{found['people']:,}",
        "round": str(found["rounds"]),
        "partitions": str(parts),
        "seconds": f"{found['seconds']:.1f}",
        "seconds per million": f"{found['seconds'] / millions:.2f}",
        "of them of the processor": f"{found['worked'] / millions:.2f}",
        "memory, MiB": f"{found['memory'] / 2**20:,.0f}",
        "bytes to and from the coordinator, per partition": f"{found['moved'] / parts:,.0f}",
        "passes of the selection": str(found["passes"]),
        "belief, bytes per person": f"{found['belief'] / found['people']:.0f}",
        "states": f"{found['states'] / found['people']:.1f}",
        "choices and lists": f"{found['kept'] / found['people']:.1f}",
    }


def plan(found: dict[str, Any], late: dict[str, Any], people: int, workers: int) -> dict[str, str]:
    """A round of more people, from the figures per person; beliefs and memory are those of a late round."""
    scale, parts = people / found["people"], -(-people // SIZE)
    seconds, belief = found["worked"] * scale / workers, late["belief"] * people / late["people"]
    return {
        "people": f"{people:,}",
        "partitions": f"{parts:,}",
        "workers": f"{workers:,}",
        "a round, minutes of the processor": f"{seconds / 60:.1f}",
        "memory of a worker, MiB": f"{late['memory'] / late['workers'] / 2**20:,.0f}",
        "beliefs, GB": f"{belief / 1e9:,.1f}",
        "read in a round, GB": f"{4.5 * belief / 1e9:,.0f}",
        "kept of each round, GB": f"{found['kept'] * scale / 1e9:,.2f}",
        "to and from the coordinator, MB": f"{found['moved'] / found['partitions'] * parts / 1e6:,.1f}",
        "record in the log, kB": f"{found['record'] / found['partitions'] * parts / 1e3:,.0f}",
    }


def write_page(results: list[dict[str, Any]]) -> str:
    base, late = max(results, key=lambda each: int(each["people"])), max(results, key=lambda each: int(each["rounds"]))
    phases = [
        {"people": f"{each['people']:,}", "round": str(each["rounds"])}
        | {name: f"{seconds / each['people'] * MILLION:.2f}" for name, seconds in each["phases"].items()}
        for each in results
    ]
    sizes = ((10**8, 8), (10**8, 32), (10**9, 64), (10**9, 256))
    return PAGE.format(
        machine=f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}",
        size=SIZE,
        workers=f"{base['workers']} worker{'s' * (base['workers'] > 1)}",
        measured=table([describe(each) for each in results]),
        phases=table(phases),
        base=base["people"],
        round=base["rounds"],
        long=LONG,
        late=late["rounds"],
        planned=table([plan(base, late, people, workers) for people, workers in sizes]),
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.partitions")
    parser.add_argument("--people", type=int, nargs="*", default=[1, 5, 20], help="millions")
    parser.add_argument(
        "--rounds", type=int, nargs="+", default=[SHORT, LONG], help="the first is for all, others for the first"
    )
    parser.add_argument("--engine", default="threads")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--scratch", help="a folder with room for the files")
    parser.add_argument(
        "--results",
        type=Path,
        help="a JSON file of results, to which these are added; without people the page is of them",
    )
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--in", dest="within", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--prepare", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.within:
        people = given.people[0] * MILLION
        if given.prepare:
            make_tables(given.within, people, given.rounds[0])
        else:
            print(json.dumps(measure(given.within, people, given.rounds[0], given.engine, given.workers)))
        return
    known = json.loads(given.results.read_text()) if given.results and given.results.exists() else []
    cases = [(millions, given.rounds[0]) for millions in given.people]
    for millions, rounds in [*cases, *((first, more) for first in given.people[:1] for more in given.rounds[1:])]:
        known = [each for each in known if (each["people"], each["rounds"]) != (millions * MILLION, rounds)]
        known.append(run(millions, rounds, given.engine, given.workers, given.scratch))
        print(table([describe(known[-1])]), flush=True)
    known.sort(key=lambda each: (each["rounds"], each["people"]))
    if given.results:
        given.results.write_text(json.dumps(known, indent=1))
    if given.markdown:
        given.markdown.parent.mkdir(parents=True, exist_ok=True)
        given.markdown.write_text(write_page(known), encoding="utf-8")


if __name__ == "__main__":
    main()
