"""A history of a million rows, 50,000 people and 20 rounds with four states: seconds of each verb, and memory.

`python -m benchmarks.logs` runs everything in a process of its own and prints seconds and the peak of its memory.
"""

import json
import resource
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.timing import Row, best_of, clock
from restive.logs.evaluate import evaluate
from restive.logs.examine import examine
from restive.logs.fit import fit
from restive.logs.generate import draw_people, generate_history
from restive.logs.history import History
from restive.problem import Problem

PEOPLE, ROUNDS, STATES, TYPES, FEATURES, RESAMPLES = 50_000, 20, 4, 4, 10, 200
GIGABYTES = 1.5
WANTED = {
    "read and check a CSV file": 3,
    "fit, people who differ gradually": 5,
    "read, check and fit": 8,
    "examine": 10,
    f"evaluate one round, {RESAMPLES} resamples": 5,
    "fit, four types of people": 5,
    "fit, ten features": 20,
}


def rows() -> list[Row]:
    run = subprocess.run([sys.executable, "-m", "benchmarks.logs"], stdout=subprocess.PIPE, check=True)
    found = json.loads(run.stdout)
    memory = found.pop("gigabytes")
    timed = [
        Row(f"1,000,000 rows: {what} ({seconds:.1f} s)", f"{WANTED[what]} s", seconds, WANTED[what], "≤ 1")
        for what, seconds in found.items()
    ]
    what = f"1,000,000 rows: all of these, memory ({memory:.2f} GB)"
    return [*timed, Row(what, f"{GIGABYTES} GB", memory, GIGABYTES, "≤ 1")]


def measure() -> dict[str, float]:
    """Seconds after a small history that compiles, and gigabytes of the whole process."""
    generator = np.random.default_rng(1)
    alpha, value = 6 * generator.dirichlet(np.full(STATES, 2.0), (2, STATES)), np.arange(STATES) / (STATES - 1)
    time_verbs(draw_people(alpha, value, 500, 1), 1)
    found = time_verbs(draw_people(alpha, value, PEOPLE, 1), 2)
    types = generator.dirichlet(np.ones(STATES), (TYPES, 2, STATES))[generator.integers(TYPES, size=PEOPLE)]
    seconds = [*found, best_of_fits(generate_history(Problem(types, value, 1), ROUNDS, 1))]
    features = generator.normal(size=(PEOPLE, FEATURES))
    scores = np.einsum("nf,fast->nast", features, generator.normal(0, 0.2, (FEATURES, 2, STATES, STATES)))
    shifted = np.exp(np.log(alpha) + scores)
    shifted /= shifted.sum(axis=-1, keepdims=True)
    names = tuple(f"x{number}" for number in range(FEATURES))
    known = replace(generate_history(Problem(shifted, value, 1), ROUNDS, 1), features=features, feature_names=names)
    seconds.append(best_of_fits(known))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return dict(zip(WANTED, seconds, strict=True)) | {"gigabytes": peak}


def time_verbs(people: Problem, repeats: int) -> list[float]:
    """Seconds to read, fit, both, examine and evaluate a history of these people."""
    with tempfile.TemporaryDirectory() as folder:
        file = write(generate_history(people, ROUNDS, 1), Path(folder) / "history.csv")
        reading = best_of(lambda: History.read(file), repeats)
        history = History.read(file)
    fitting = best_of_fits(history)
    examining, _ = clock(lambda: examine(history))
    worst_first = "state:" + ",".join(history.states)
    evaluating, _ = clock(lambda: evaluate(history, worst_first, resamples=RESAMPLES))
    return [reading, fitting, reading + fitting, examining, evaluating]


def best_of_fits(history: History) -> float:
    return best_of(lambda: fit(history), 2)


def write(history: History, file: Path) -> Path:
    """The history as a team would export it."""
    states = np.array(history.states)
    table = {
        "agent": history.agents.gather(history.agent),
        "time": history.round,
        "state": states[history.state],
        "action": history.action,
        "reward": history.reward,
        "next_state": states[history.next_state],
        "propensity": history.propensity,
    }
    pl.DataFrame(table).write_csv(file)
    return file


if __name__ == "__main__":
    print(json.dumps(measure()))
