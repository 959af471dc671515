"""Cached jobs: a job is one task with plain settings; its result is a Parquet file named after its digest.

The digest covers the settings and the code that computes, so a job is run once and a changed job never meets an old
result. A folder of results is filled by one call after another:

    results/*.parquet   one file for each job, whole or absent
    figures/*           every figure as PNG, SVG and PDF
    *.json              findings with their size and seed: a folder holds one size and one seed
"""

import ast
import hashlib
import json
import os
import platform
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from restive import files
from restive.errors import InputError
from restive.files import Columns, write_atomic
from restive.paper.engines import result_of
from restive.paper.readings import Reading
from restive.paper.tasks import TASKS
from restive.parallel import available_processors
from restive.version import __version__

ROOT = Path(__file__).parents[1]
# What results depend on: the tasks and everything that they import.
COMPUTING = (
    "checkpoint.py", "contract.py", "errors.py", "files.py", "kernels", "observation.py", "paper/tasks",
    "parallel.py", "policies", "problem.py", "problems", "simulation.py", "solution.py", "solvers", "stats.py",
    "trace.py", "types.py", "version.py", "world.py",
)  # fmt: skip
FORMAT = "restive-result-1"

Value = TypeVar("Value")


class Size(NamedTuple):
    """Full or quick size, the seed, and the reading of the paper."""

    quick: bool = False
    seed: int = 0
    reading: Reading = Reading()

    def pick(self, full: Value, quick: Value) -> Value:
        """The value for this size."""
        return quick if self.quick else full

    def __str__(self) -> str:
        """Full or quick."""
        return self.pick("full", "quick")


@dataclass(frozen=True)
class Job:
    """A task of `restive.paper.tasks` with its settings."""

    task: str
    label: str  # for people, and the beginning of the file's name
    settings: Mapping[str, Any]  # plain data, as it would go into JSON
    weight: float = 1.0  # expected seconds, for progress and for the order of jobs only

    def spec(self) -> dict[str, Any]:
        """Everything that the result depends on."""
        return {"task": self.task, "settings": dict(self.settings), "version": __version__, "code": code_digest()}

    def digest(self) -> str:
        """Digest of the spec."""
        return hashlib.sha256(json.dumps(self.spec(), sort_keys=True).encode()).hexdigest()[:16]

    def file_name(self) -> str:
        """The label and the digest, in characters that any file system accepts."""
        return f"{re.sub(r'[^A-Za-z0-9.=]+', '-', self.label)}-{self.digest()}.parquet"


@dataclass(frozen=True)
class Plan:
    """A named list of jobs: an experiment of the paper or a scenario of the benchmark."""

    name: str
    title: str
    list_jobs: Callable[[Size], list[Job]]


class Results:
    """Results by job."""

    def __init__(self, columns: Mapping[str, Columns]) -> None:
        self.columns = columns

    def __getitem__(self, job: Job) -> Columns:
        if job.digest() not in self.columns:
            raise InputError(f"{job.label}: no such job was run; something was changed in between, so run again.")
        return self.columns[job.digest()]


@cache
def code_digest() -> str:
    """Digest of the code that computes results, whatever folder it is installed in; comments do not count."""
    digest = hashlib.sha256()
    for path in list_sources(ROOT):
        content = path.read_text(encoding="utf-8")
        code = ast.unparse(ast.parse(content)) if path.suffix == ".py" else content
        digest.update(f"{path.relative_to(ROOT).as_posix()}\0{code}\0".encode())
    return digest.hexdigest()[:16]


def list_sources(root: Path) -> list[Path]:
    """The files of everything that computes, with the data files beside them."""
    found = (
        path for name in COMPUTING for path in ([root / name] if name.endswith(".py") else (root / name).rglob("*"))
    )
    return sorted(path for path in found if path.suffix in (".py", ".json"))


class Outcome(NamedTuple):
    """The result of a job, the seconds it took, and the version and code of restive that ran it."""

    columns: Columns
    seconds: float
    version: str
    code: str


def run_job(task: str, settings: Mapping[str, Any]) -> Outcome:
    """Run a job, here or on another machine."""
    begun = time.perf_counter()
    columns = TASKS[task](**settings)
    return Outcome(columns, time.perf_counter() - begun, __version__, code_digest())


def load_results(jobs: Iterable[Job], folder: Path) -> tuple[dict[str, Columns], list[Job]]:
    """The results in the folder, by digest, and the jobs without one, each once."""
    found: dict[str, Columns] = {}
    missing: dict[str, Job] = {}
    for job in jobs:
        digest = job.digest()
        if digest in found or digest in missing:
            continue
        path = folder / job.file_name()
        if path.exists():
            found[digest] = _load(path, job)
        else:
            missing[digest] = job
    return found, list(missing.values())


def _load(path: Path, job: Job) -> Columns:
    try:
        spec, columns = files.read_parquet(path, FORMAT, "a result")
    except InputError as error:
        raise InputError(f"{error} Remove that file and run again: only this job is repeated.") from None
    if spec != job.spec():
        raise InputError(f"{path}: holds the result of another job than its name says. Remove it and run again.")
    return columns


def run_jobs(
    jobs: list[Job], folder: Path, executor: Executor, progress: Callable[[Job, float], None]
) -> Iterator[tuple[str, Columns]]:
    """Run jobs and yield digest and result as they come; each is on disk before progress gets the job and its seconds."""
    waiting: dict[Future[Outcome], Job] = {
        executor.submit(run_job, job.task, dict(job.settings)): job for job in interleave(jobs)
    }
    try:
        for future in as_completed(waiting):
            job = waiting.pop(future)
            outcome = result_of(future, job.label)
            _require_same_code(outcome)
            _save(folder / job.file_name(), job, outcome.columns)
            progress(job, outcome.seconds)
            yield job.digest(), outcome.columns
    finally:
        for future in waiting:
            future.cancel()


def interleave(jobs: Iterable[Job]) -> list[Job]:
    """The order in which jobs begin: from the heavy end and from the light end at once, as if by two workers.

    Heavy jobs spend their time in kernels, light ones in Python, where two would wait for each other; and those in the
    middle, which come last, leave no worker idle for long.
    """
    left = deque(sorted(jobs, key=lambda job: -job.weight))
    order: list[Job] = []
    heavy = light = 0.0
    while left:
        if heavy <= light:
            order.append(left.popleft())
            heavy += order[-1].weight
        else:
            order.append(left.pop())
            light += order[-1].weight
    return order


def _require_same_code(outcome: Outcome) -> None:
    """Refuse results of other code, which may differ, also where it has the same version."""
    if (outcome.version, outcome.code) != (__version__, code_digest()):
        raise InputError(
            f"a worker has restive {outcome.version}, code {outcome.code}, and this is {__version__}, "
            f"code {code_digest()}; they must be the same."
        )


def _save(path: Path, job: Job, columns: Columns) -> None:
    try:
        files.write_parquet(path, FORMAT, job.spec(), columns)
    except OSError as error:
        kept = "earlier results are kept, and the same call continues from there"
        raise InputError(f"{path}: cannot be written ({error.strerror}); {kept}.") from error


class Run:
    """The chosen plans of all known ones in the folder of a report: results that exist, and jobs that are missing.

    A job that several plans need belongs to the first. What would fail later is refused first: folders that cannot be
    written to, a report of another size, seed or settings, and damaged results of any known plan.
    """

    def __init__(
        self, chosen: Iterable[Plan], known: Iterable[Plan], size: Size, report: Path, readings: Sequence[Reading] = ()
    ) -> None:
        self.size, self.folder, self.readings = size, report.parent, readings
        _make_folders(self.folder)
        _require_same_report(size, report, readings)
        self.jobs = {plan.name: plan.list_jobs(size) for plan in known}
        self.columns, absent = load_results(chain(*self.jobs.values()), self.folder / "results")  # by digest
        self.missing: dict[str, list[Job]] = {}
        waiting = {job.digest(): job for job in absent}
        for plan in chosen:
            needed = {job.digest() for job in self.jobs[plan.name]}
            self.missing[plan.name] = [waiting.pop(digest) for digest in list(waiting) if digest in needed]

    def complete(self, executor: Executor, progress: Callable[[str, Job, float], None]) -> None:
        """Run missing jobs; progress gets the name of the plan, the job and its seconds."""
        owner = {job.digest(): name for name, jobs in self.missing.items() for job in jobs}
        jobs = list(chain(*self.missing.values()))

        def report(job: Job, seconds: float) -> None:
            progress(owner[job.digest()], job, seconds)

        self.columns |= dict(run_jobs(jobs, self.folder / "results", executor, report))

    def results(self) -> dict[str, Results]:
        """The results of the chosen plans, and of all other known plans that are complete in the folder, in order."""
        return {
            name: Results(self.columns)
            for name, jobs in self.jobs.items()
            if name in self.missing or all(job.digest() in self.columns for job in jobs)
        }


def require_writable(page: Path) -> None:
    """Refuse a page that could not be written, before any job is run; make its folder."""
    if page.is_dir():
        raise InputError(f"{page}: there is a folder of that name.")
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{page}: cannot write there ({error.strerror}); choose another place.") from None


def _make_folders(folder: Path) -> None:
    for place in (folder, folder / "results", folder / "figures"):
        try:
            place.mkdir(parents=True, exist_ok=True)
            write_atomic(place / ".writable", b"")
            (place / ".writable").unlink(missing_ok=True)
        except OSError as error:
            raise InputError(f"{place}: cannot write there ({error.strerror}); choose another folder.") from None


def _require_same_report(size: Size, report: Path, readings: Sequence[Reading]) -> None:
    """Refuse to replace a report of another size, seed or settings."""
    try:
        present = json.loads(report.read_bytes())
    except (OSError, ValueError):
        return
    if (present.get("size"), present.get("seed")) != (str(size), size.seed):
        raise InputError(
            f"{report.parent}: holds the report of {present.get('size')} size and seed {present.get('seed')}, and this "
            f"one would be of {size} size and seed {size.seed}; choose another folder."
        )
    if present.get("readings", []) != [reading.as_json() for reading in readings]:
        raise InputError(f"{report.parent}: holds a report with other settings; choose another folder.")


def describe_run(size: Size) -> dict[str, Any]:
    """Version, code, seed, size and machine, for the head of a report."""
    return {
        "version": __version__,
        "code": code_digest(),
        "seed": size.seed,
        "size": str(size),
        "machine": f"{_processor()}, {available_processors()} processors, {platform.system()}",
        "python": platform.python_version(),
        "date": datetime.now(UTC).date().isoformat(),
    }


def _processor() -> str:
    """The processor's name where the system reports it."""
    if os.path.exists("/proc/cpuinfo"):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
