"""Progress of the jobs of a run on the terminal, and where the time went."""

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager

from restive.console import make_console, print_notices, print_table, progress_bars
from restive.paper.engines import open_engine
from restive.paper.jobs import Job, Run


@contextmanager
def complete(run: Run, engine: str, workers: int | None, draw: bool = False) -> Iterator[Executor | None]:
    """Run missing jobs with progress bars, and print how long those of each plan took and what is done in the block.

    With `draw` the block gets the executor, if its workers are processes of this machine. Without need no engine is
    opened.
    """
    draw = draw and engine == "processes"
    taken = {name: 0.0 for name, jobs in run.missing.items() if jobs}
    if not taken and not draw:
        yield None
        return
    with open_engine(engine, workers) as executor:
        with _job_progress(run) as progress:

            def report(name: str, job: Job, seconds: float) -> None:
                taken[name] += seconds
                progress(name, job, seconds)

            run.complete(executor, report)
        begun = time.monotonic()
        yield executor if draw else None
    if taken:
        _print_times(taken, {name: len(run.missing[name]) for name in taken}, time.monotonic() - begun)


def _print_times(taken: Mapping[str, float], jobs: Mapping[str, int], rest: float) -> None:
    """Print where the time went, the longest first."""
    rows = [
        {"jobs of": name, "number": jobs[name], "seconds": f"{seconds:.1f}"}
        for name, seconds in sorted(taken.items(), key=lambda each: -each[1])
    ]
    note = f"Seconds of all workers together. Figures and pages took {rest:.1f} s after the jobs."
    print_table(rows, ["jobs of"], title="Where the time went", note=note, console=make_console(stderr=True))


@contextmanager
def _job_progress(run: Run) -> Iterator[Callable[[str, Job, float], None]]:
    """A bar for each plan with missing jobs, and one for all; without a terminal, a line as each plan is finished."""
    weights = {name: sum(job.weight for job in jobs) for name, jobs in run.missing.items() if jobs}
    if make_console(stderr=True).is_terminal:
        found = f" ({len(run.columns)} results exist)" if run.columns else ""
        with progress_bars(weights, overall=f"all{found}") as advance:
            yield lambda name, job, seconds: advance(name, job.weight)
        return
    waiting, begun, done = {name: len(run.missing[name]) for name in weights}, time.monotonic(), 0.0

    def report(name: str, job: Job, seconds: float) -> None:
        nonlocal done
        done += job.weight
        waiting[name] -= 1
        if waiting[name] == 0:
            spent = time.monotonic() - begun
            left = max(0.0, spent * (sum(weights.values()) - done) / done)
            print_notices(f"{name} done after {spent:.0f} s, about {left:.0f} s left")

    yield report
