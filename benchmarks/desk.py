"""Whole rounds of a live program, durable: of 1,000,000 agents from and to Parquet files, of 1,000 agents from frames.

`python -m benchmarks.desk STORE AGENTS ROUNDS [SHADOW]` plays one program in a process of its own (with `frames` in the
place of a shadow, from frames) and prints what it found as JSON: seconds of each round, the peak of its memory, what it
takes to open it, and whether all of it is right.
"""

import importlib
import json
import resource
import subprocess
import sys
import tempfile
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import polars as pl

from benchmarks.timing import Row, clock
from restive.desk import Desk, Program
from restive.desk.replay import replay
from restive.desk.table_files import write_table_file

STATES = np.array(["low", "mid", "high"])
MANY, FEW, ROUNDS, QUICK_ROUNDS = 1_000_000, 1_000, 10, 500
SECONDS, GIBIBYTES, A_SECOND = 5, 2, 50
FRAMES = "frames"
TESTS = Path(__file__).parents[1] / "tests"


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        sqlite = [whole_rounds("SQLite", f"{folder}/{shadow or 'alone'}.db", shadow) for shadow in ("", "egt")]
        quick = play_elsewhere(f"{folder}/quick.db", FEW, QUICK_ROUNDS, FRAMES)
    postgresql = on_postgresql()
    each = 1 / quick["a_second"]
    few = Row(
        f"desk, SQLite, a round of {FEW:,} agents, mean of {QUICK_ROUNDS} ({quick['a_second']:.0f} a second)",
        f"{A_SECOND} a second", each, 1 / A_SECOND, "≤ 1",
    )  # fmt: skip
    return [row for found in (*sqlite, postgresql) for row in found] + [few]


def on_postgresql() -> list[Row]:
    """The same on a server that writes to the disk before it says so."""
    sys.path.insert(0, str(TESTS))
    server = importlib.import_module("desk.postgres").Postgres(fsync=True)
    try:
        server.start()
        return whole_rounds("PostgreSQL", server.address(server.new_database()), "")
    finally:
        server.remove()


def whole_rounds(kind: str, address: str, shadow: str) -> list[Row]:
    found = play_elsewhere(address, MANY, ROUNDS, shadow)
    what = f"desk, {kind}{', with a shadow' if shadow else ''}, {MANY:,} agents"
    slowest, usual = max(found["rounds"]), median(found["rounds"])
    return [
        Row(f"{what}, the slowest of {ROUNDS} rounds ({slowest:.2f} s, median {usual:.2f} s)", f"{SECONDS} s",
            slowest, SECONDS, "≤ 1"),
        Row(f"{what}, peak memory ({found['peak']:.2f} GiB)", f"{GIBIBYTES} GiB", found["peak"], GIBIBYTES, "≤ 1"),
        Row(f"{what}, opening it ({found['opening']:.2f} s)", "a round", found["opening"], usual, ""),
        Row(f"{what}, history of one agent ({found['history']:.3f} s)", "a round", found["history"], usual, ""),
        Row(f"{what}, the list of the first round ({found['list']:.3f} s)", "a round", found["list"], usual, ""),
    ]  # fmt: skip


def play_elsewhere(address: str, agents: int, rounds: int, shadow: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.desk", address, str(agents), str(rounds), shadow]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=TESTS.parent)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def play(address: str, agents: int, rounds: int, shadow: str) -> dict[str, Any]:
    """Rounds of a new program, then what it takes to come back to it."""
    with tempfile.TemporaryDirectory() as folder, Desk(address) as desk:
        program = desk.create(
            "load", states=STATES.tolist(), rewards=[0, 1, 2], budget=agents // 100, cool_down=2, shadow=shadow or None
        )
        first, seconds = play_rounds(program, agents, rounds, Path(folder))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    with Desk(address) as desk:
        program = desk.program("load")
        opening, projection = clock(lambda: program.projection)
        history, met = clock(lambda: program.history(name(agents // 2)))
        reading, listed = clock(lambda: program.recommendation(1).chosen)
        right = {
            "proven": replay(program).proven,
            "outcomes": [line.outcomes for line in projection.rounds] == [agents] * rounds,
            "advised": [line.advised for line in projection.rounds] == [agents // 100] * rounds,
            "history": len(met) == rounds,
            "list": listed == first,
        }
    return {"rounds": seconds, "peak": peak, "opening": opening, "history": history, "list": reading, "right": right}


def play_rounds(program: Program, agents: int, rounds: int, folder: Path) -> tuple[list[str], list[float]]:
    """States in, list out, outcomes in, each round anew; the first list, and the seconds of each round."""
    random = np.random.default_rng(0)
    names = pl.Series("agent", [name(number) for number in range(agents)])
    state, lists, seconds = random.integers(3, size=agents), [], []
    for _ in range(rounds):
        after = np.clip(state + random.integers(-1, 2, size=agents), 0, 2)
        pl.DataFrame({"agent": names, "state": STATES[state]}).write_parquet(folder / "states.parquet")
        pl.DataFrame({"agent": names, "next_state": STATES[after]}).write_parquet(folder / "outcomes.parquet")
        spent, _ = clock(lambda: play_round(program, folder))
        lists.append(pl.read_parquet(folder / "list.parquet").filter(pl.col("list") == "chosen")["agent"].to_list())
        seconds.append(spent)
        state = after
    return lists[0], seconds


def play_round(program: Program, folder: Path) -> None:
    write_table_file(program.decide(folder / "states.parquet").table, folder / "list.parquet")
    program.learn(folder / "outcomes.parquet")


def quick_rounds(address: Path, agents: int, rounds: int) -> dict[str, Any]:
    """Rounds from frames, on SQLite: how many a second, over all of them."""
    random, seconds = np.random.default_rng(0), []
    names = pl.Series("agent", [name(number) for number in range(agents)])
    states = random.integers(2, size=(rounds + 1, agents))
    with Desk(address) as desk:
        program = desk.create("load", states=["low", "high"], rewards=[0, 1], budget=agents // 20)
        for state, after in pairwise(states):
            deciding, _ = clock(partial(program.decide, pl.DataFrame({"agent": names, "state": state})))
            learning, _ = clock(partial(program.learn, pl.DataFrame({"agent": names, "next_state": after})))
            seconds.append(deciding + learning)
        proven = replay(program).proven
    return {"a_second": rounds / sum(seconds), "slowest": max(seconds), "proven": proven}


def name(number: int) -> str:
    return f"customer-{number:07}"


if __name__ == "__main__":
    address, agents, rounds, how = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), "".join(sys.argv[4:])
    found = quick_rounds(Path(address), agents, rounds) if how == FRAMES else play(address, agents, rounds, how)
    print(json.dumps(found))
