"""A forecast of 12 programs for 10,000 people with four states: its time on all processors, and its memory.

`python -m benchmarks.forecast` plays it in a process of its own and prints seconds and the peak of its memory.
"""

import json
import resource
import subprocess
import sys

import numpy as np

from benchmarks.timing import Row, clock
from restive.logs.fit import fit
from restive.logs.forecast import forecast
from restive.logs.generate import draw_people, generate_history

PEOPLE, STATES, ROUNDS, DRAWS, BUDGETS = 10_000, 4, 52, 100, (200, 400, 800)
SECONDS, GIGABYTES = 60, 1.5


def rows() -> list[Row]:
    found = json.loads(subprocess.run([sys.executable, "-m", "benchmarks.forecast"], capture_output=True).stdout)
    what = f"forecast, {PEOPLE:,} people × {ROUNDS} rounds × {DRAWS} draws × {4 * len(BUDGETS)} programs"
    return [
        Row(f"{what} ({found['seconds']:.0f} s)", f"{SECONDS} s", found["seconds"], SECONDS, "≤ 1"),
        Row(f"{what}, memory ({found['gigabytes']:.2f} GB)", f"{GIGABYTES} GB", found["gigabytes"], GIGABYTES, "≤ 1"),
    ]


def measure() -> dict[str, float]:
    """Seconds after a small forecast that compiles, and gigabytes of the whole process."""
    alpha = 8 * np.random.default_rng(1).dirichlet(np.full(STATES, 2.0), (2, STATES))
    people = draw_people(alpha, np.linspace(0, 1, STATES), PEOPLE, seed=3)
    model = fit(generate_history(people, 10, 1, 0.2), held_out=False)
    forecast(model, BUDGETS[:1], rounds=ROUNDS, draws=20)
    seconds, _ = clock(lambda: forecast(model, BUDGETS, rounds=ROUNDS, draws=DRAWS))
    return {"seconds": seconds, "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}


if __name__ == "__main__":
    print(json.dumps(measure()))
