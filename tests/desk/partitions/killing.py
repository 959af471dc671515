"""Workers, and coordinators, that are killed in the middle of a round."""

import os
import signal
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any, TypeVar

from restive.desk.partitions.files import Folder
from restive.desk.partitions.program import PartitionedProgram
from restive.paper.engines import open_engine

Result = TypeVar("Result")


class Killing(Executor):
    """An engine whose worker is killed once in each of some tasks, before the task or after it."""

    def __init__(self, engine: Executor, marks: Path, tasks: dict[str, bool]) -> None:
        self.engine, self.marks, self.tasks, self.number = engine, marks, tasks, 0
        marks.mkdir(exist_ok=True)

    def submit(self, function: Callable[..., Result], /, *args: Any, **keywords: Any) -> "Future[Result]":
        name = args[0].__name__  # of the task that `restive.desk.partitions.messages.call` runs
        if name not in self.tasks:
            return self.engine.submit(function, *args, **keywords)
        return self.engine.submit(run_and_die, str(self.marks / name), self.tasks[name], function, *args)

    def killed(self) -> set[str]:
        """The tasks whose worker was killed."""
        return {mark.name for mark in self.marks.iterdir()}


def run_and_die(mark: str, after: bool, function: Callable[..., Result], *args: Any) -> Result:
    """Run a task, in a process that kills itself if it is the first one to do so."""
    result = function(*args) if after else None
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return function(*args) if result is None else result
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def decide_and_die(folder: str, states: str, before: bool) -> None:
    """Decide a round in a process that is killed just before its commit, or just after it."""

    def commit(self: Folder, number: int, record: Any) -> None:
        if not before:
            kept(self, number, record)
        os.kill(os.getpid(), signal.SIGKILL)

    kept = Folder.commit
    Folder.commit = commit  # type: ignore[method-assign]
    with open_engine("threads", 1) as engine:
        PartitionedProgram(folder).decide(states, engine, again=True)
