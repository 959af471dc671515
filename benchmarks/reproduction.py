"""The whole paper in its quick form: how long it takes, and where the time goes."""

import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from benchmarks.timing import Row, clock
from restive.paper.engines import open_engine
from restive.paper.jobs import Job, Size
from restive.paper.reproduction import examine_all, find_experiments, prepare, write_all

QUICK, LIMIT = True, 60


def rows(quick: bool = QUICK, limit: int = LIMIT) -> list[Row]:
    """The time from beginning to end, then the shares of the jobs, and of the drawing."""
    spent: dict[str, float] = defaultdict(float)

    def note(experiment: str, job: Job, seconds: float) -> None:
        spent[job.settings.get("policy", job.task).partition(":")[0]] += seconds

    with tempfile.TemporaryDirectory() as folder:
        working, drawing = _reproduce(Size(quick), Path(folder), note)
    name = "reproduce --quick" if quick else "reproduce"
    total = sum(spent.values())
    whole = Row(
        f"{name}, from beginning to end ({working + drawing:.0f} s)", f"{limit} s", working + drawing, limit, "≤ 1"
    )
    draw = Row(f"{name}, figures and report ({drawing:.1f} s)", "the whole", drawing, working + drawing, "")
    shares = [
        Row(f"{name}, jobs of {what} ({seconds:.1f} s)", "all jobs", seconds, total, "")
        for what, seconds in sorted(spent.items(), key=lambda entry: -entry[1])
        if seconds > 0.01 * total
    ]
    return [whole, draw, *shares]


def _reproduce(size: Size, folder: Path, note: Callable[[str, Job, float], None]) -> tuple[float, float]:
    """Seconds of the jobs and of the drawing."""
    run = prepare(find_experiments([]), size, folder)
    with open_engine("threads") as executor:
        working, _ = clock(lambda: run.complete(executor, note))
    drawing, _ = clock(lambda: write_all(examine_all(run), folder, ""))
    return working, drawing
