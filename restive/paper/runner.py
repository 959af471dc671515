"""Does works by any engine and keeps each result as soon as it is there, so that interrupted work goes on.

A result is a Parquet file named after its work's digest, whole or not there. Files that are there are read, not made
again; one that is damaged is refused, with what to do about it.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, as_completed
from pathlib import Path

from restive import files
from restive.errors import InputError
from restive.files import Columns
from restive.paper.engines import result_of
from restive.paper.tasks import Outcome, carry_out
from restive.paper.work import Work, code_digest
from restive.version import __version__

FORMAT = "restive-result-1"

Done = Callable[[Work, float], None]  # a work and the seconds that it took


def gather(works: Iterable[Work], folder: Path) -> tuple[dict[str, Columns], list[Work]]:
    """The results that are in the folder, by digest, and the works that are still to be done, each once."""
    found: dict[str, Columns] = {}
    missing: dict[str, Work] = {}
    for work in works:
        digest = work.digest()
        if digest in found or digest in missing:
            continue
        path = folder / work.file_name()
        if path.exists():
            found[digest] = _load(path, work)
        else:
            missing[digest] = work
    return found, list(missing.values())


def _load(path: Path, work: Work) -> Columns:
    try:
        spec, columns = files.read_parquet(path, FORMAT, "a result")
    except InputError as error:
        raise InputError(f"{error} Remove that file and run again: only this part is done anew.") from None
    if spec != work.spec():
        raise InputError(f"{path}: holds the result of other work than its name says. Remove it and run again.")
    return columns


def _require_same_code(made: Outcome) -> None:
    """Other code may give other numbers, also where it calls itself the same version."""
    if (made.version, made.code) != (__version__, code_digest()):
        raise InputError(
            f"a worker has restive {made.version}, code {made.code}, and this is {__version__}, code {code_digest()}; "
            "they must be the same."
        )


def _keep(path: Path, work: Work, columns: Columns) -> None:
    try:
        files.write_parquet(path, FORMAT, work.spec(), columns)
    except OSError as error:
        kept = "what was done before is kept, and the same call goes on from there"
        raise InputError(f"{path}: cannot be written ({error.strerror}); {kept}.") from error


def pair_up(works: Iterable[Work]) -> list[Work]:
    """The order in which works are begun: from the heavy end and from the light end at once, as if by two workers.

    Heavy works spend their time in kernels, light ones in Python, where two would wait for each other; and those in
    the middle, which come last, leave no worker alone for long.
    """
    left = deque(sorted(works, key=lambda work: -work.weight))
    order: list[Work] = []
    heavy = light = 0.0
    while left:
        if heavy <= light:
            order.append(left.popleft())
            heavy += order[-1].weight
        else:
            order.append(left.pop())
            light += order[-1].weight
    return order


def carry_out_all(works: list[Work], folder: Path, executor: Executor, done: Done) -> Iterator[tuple[str, Columns]]:
    """Do the works, and yield digest and result as they come; each is on the disk before it is told."""
    waiting: dict[Future[Outcome], Work] = {
        executor.submit(carry_out, work.task, dict(work.settings)): work for work in pair_up(works)
    }
    try:
        for future in as_completed(waiting):
            work = waiting.pop(future)
            made = result_of(future, work.label)
            _require_same_code(made)
            _keep(folder / work.file_name(), work, made.columns)
            done(work, made.seconds)
            yield work.digest(), made.columns
    finally:
        for future in waiting:
            future.cancel()
