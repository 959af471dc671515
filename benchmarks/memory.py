"""The memory of a simulation beyond its result: a long horizon against a short one."""

import tracemalloc

from benchmarks.timing import Row
from restive import make_problems, simulate

SHORT, LONG, RUNS, AGENTS = 250, 10_000, 4, 500


def rows() -> list[Row]:
    return [
        Row(
            f"{name}, peak memory beyond the result, N=500, T=10,000 ({peak(name, LONG) / 1e6:.1f} MB)",
            f"the same with T={SHORT}",
            peak(name, LONG),
            peak(name, SHORT),
            wanted,
        )
        for name, wanted in (("egt", "≤ 1.1"), ("thompson-whittle", "≤ 1.1"), ("omr-oracle", "≤ 6.4"))
    ]


def peak(name: str, horizon: int) -> float:
    """Bytes; a plan over time keeps about √T of its T steps, so for OMR √(10,000 / 250) is the most."""
    problem = make_problems("two-state-v1", agents=AGENTS, budget=50)[0]
    simulate(problem, name, horizon=3, runs=RUNS, threads=1)
    tracemalloc.start()
    simulate(problem, name, horizon=horizon, runs=RUNS, threads=1)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most - 2 * RUNS * horizon * 8
