"""The whole paper in its quick form: how long it takes, and where the time goes."""

import tempfile
from collections import defaultdict
from pathlib import Path

from benchmarks.timing import Row, clock
from restive.paper.agenda import Progress, carry_out_agenda
from restive.paper.catalogue import find_experiments
from restive.paper.engines import open_engine
from restive.paper.experiment import Size
from restive.paper.reproduction import examine_all, prepare, write_all
from restive.paper.work import Work

QUICK, LIMIT = True, 60


def rows(quick: bool = QUICK, limit: int = LIMIT) -> list[Row]:
    """The time from beginning to end, then the shares of the works in all that was worked, and that of the drawing."""
    spent: dict[str, float] = defaultdict(float)

    def note(experiment: str, work: Work, seconds: float) -> None:
        spent[work.settings.get("policy", work.task).partition(":")[0]] += seconds

    with tempfile.TemporaryDirectory() as folder:
        working, drawing = _reproduce(Size(quick), Path(folder), note)
    name = "reproduce --quick" if quick else "reproduce"
    total = sum(spent.values())
    whole = Row(f"{name}, from beginning to end ({working + drawing:.0f} s)", "-", working + drawing, 1, f"≤ {limit} s")
    draw = Row(f"{name}, figures and report ({drawing:.1f} s)", "the whole", drawing, working + drawing, "")
    shares = [
        Row(f"{name}, works of {what} ({seconds:.1f} s)", "all works", seconds, total, "")
        for what, seconds in sorted(spent.items(), key=lambda entry: -entry[1])
        if seconds > 0.01 * total
    ]
    return [whole, draw, *shares]


def _reproduce(size: Size, folder: Path, note: Progress) -> tuple[float, float]:
    """Seconds of work and of drawing."""
    experiments = find_experiments([])
    agenda = prepare(experiments, size, folder)
    with open_engine("threads") as executor:
        working, made = clock(lambda: carry_out_agenda(agenda, folder, executor, note))
    drawing, _ = clock(lambda: write_all(examine_all(experiments, size, folder, made), folder, ""))
    return working, drawing
