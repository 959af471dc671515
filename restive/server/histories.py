"""Reports on uploaded histories, each made by a child process with limits and kept for a while.

Reading, fitting and forecasting take up to minutes, so a request only starts them and the page of the report says how
far they are. A report is a folder that only this user can read: the page, the model, and what the page shows as JSON.
It belongs to who uploaded the history, and is removed after an hour, when there are too many, or when the server stops;
the table itself is removed as soon as it is understood. Until then the page asks which column is which, with suggestions
(`describe_table`), and the report is started again with the answers.

    python -m restive.server.histories FOLDER MEMORY_BYTES CPU_SECONDS TIMEOUT_SECONDS RESULT_BYTES
"""

import asyncio
import base64
import json
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException

from restive.errors import InputError, NotFound
from restive.server.settings import MIB, UploadLimits
from restive.server.table_reader import EXIT_INPUT_ERROR, EXIT_OK, encode_error, run_child, set_limits

if TYPE_CHECKING:
    import polars as pl

ASKED, PROGRESS, TABLE, RESULT = "asked.json", "progress.txt", "table.json", "report.json"
PAGE, MODEL = "page.html", "model.parquet"
KEPT_SECONDS, MAX_KEPT, MAX_WAITING = 3600, 20, 4
GONE = "There is no such report. Reports are kept for an hour; upload the history again."
WORDS = {
    "time": ("time", "date", "week", "day", "month", "round", "period"),
    "action": (
        "action",
        "acted",
        "treated",
        "treatment",
        "intervention",
        "sent",
        "done",
        "called",
        "contacted",
        "visited",
    ),
}
MAX_HEADERS, MAX_SHOWN_COLUMNS, MAX_SHOWN_ROWS, MAX_CELL = 200, 12, 5, 80
MAX_SUGGESTED_STATES, MAX_TEXTS = 12, 24


@dataclass
class Job:
    """A report that is being made, or was."""

    id: str
    by: str  # who uploaded the history
    name: str  # of its file
    folder: Path
    typed: dict[str, str]  # what the form had besides the table
    begun: float = field(default_factory=time.monotonic)
    error: InputError | None = None
    task: "asyncio.Task[None] | None" = None

    @property
    def running(self) -> bool:
        """Whether it is not finished."""
        return self.task is not None and not self.task.done()

    @property
    def progress(self) -> str:
        """What is being done."""
        with suppress(OSError):
            return (self.folder / PROGRESS).read_text(encoding="utf-8")
        return "starting"

    def table(self) -> dict[str, Any] | None:
        """The columns and texts of a table that is not understood yet, by `describe_table`; None without one."""
        path = self.folder / TABLE
        found: dict[str, Any] | None = json.loads(path.read_bytes()) if path.exists() else None
        return found

    def result(self) -> dict[str, Any]:
        """What the page shows, of a finished report."""
        found: dict[str, Any] = json.loads((self.folder / RESULT).read_bytes())
        return found


class HistoryReports:
    """The reports of a server."""

    def __init__(self, limits: UploadLimits) -> None:
        self._limits = limits
        self._jobs: dict[str, Job] = {}
        self._turn = asyncio.Semaphore(limits.max_concurrent)

    def make_folder(self) -> Path:
        """A folder for a report, if there is room for another."""
        self._remove_old()
        self._check_room()
        return Path(tempfile.mkdtemp(prefix="restive-"))

    def start(
        self, folder: Path, by: str, name: str, table: str, asked: dict[str, Any], typed: dict[str, str] | None = None
    ) -> Job:
        """Begin a report on the file `table` of a folder."""
        job = Job(secrets.token_urlsafe(16), by, name, folder, typed or {})
        self._jobs[job.id] = job
        return self._begin(job, {**asked, "name": name, "table": table})

    def start_again(self, job: Job, asked: dict[str, Any], typed: dict[str, str]) -> Job:
        """Begin a report again whose table was not understood, with other answers."""
        if job.running:
            return job
        if job.table() is None:
            raise InputError("The table is no longer there; choose the file again.")
        self._check_room()
        (job.folder / TABLE).unlink()
        job.error, job.typed, job.begun = None, typed, time.monotonic()
        return self._begin(job, {**json.loads((job.folder / ASKED).read_bytes()), **asked})

    def _begin(self, job: Job, asked: dict[str, Any]) -> Job:
        (job.folder / ASKED).write_text(json.dumps(asked), encoding="utf-8")
        job.task = asyncio.create_task(self._make(job))
        return job

    def _check_room(self) -> None:
        if sum(job.running for job in self._jobs.values()) >= MAX_WAITING:
            raise HTTPException(503, "The server is making other reports.", {"Retry-After": "60"})

    async def _make(self, job: Job) -> None:
        slow = (
            f"{job.name}: the report takes longer than {self._limits.timeout_seconds:g} s; use fewer people or rounds."
        )
        memory = self._limits.max_memory_bytes // MIB
        failed = f"{job.name}: no report can be made within {memory} MiB; the file is damaged or too large."
        try:
            async with self._turn:
                await run_child("restive.server.histories", [str(job.folder)], self._limits, slow, failed)
        except InputError as error:
            job.error = error

    def find(self, id: str, by: str) -> Job:
        """A report of somebody."""
        self._remove_old()
        job = self._jobs.get(id)
        if job is None or job.by != by:
            raise NotFound(GONE)
        return job

    def _remove_old(self) -> None:
        finished = [job for job in self._jobs.values() if not job.running]
        old = [job for job in finished if time.monotonic() - job.begun > KEPT_SECONDS]
        for job in (*old, *finished[: max(0, len(self._jobs) - MAX_KEPT)]):
            self._jobs.pop(job.id, None)
            shutil.rmtree(job.folder, ignore_errors=True)

    def close(self) -> None:
        """Stop what is being made, and remove all reports."""
        for job in self._jobs.values():
            if job.task is not None:
                job.task.cancel()
            shutil.rmtree(job.folder, ignore_errors=True)
        self._jobs.clear()


def make(folder: Path) -> int:
    """Make the report of a folder; the exit code, and the error printed if the input has one."""
    os.umask(0o077)
    try:
        _make_report(folder)
    except InputError as error:
        print(encode_error(error))
        return EXIT_INPUT_ERROR
    return EXIT_OK


def _make_report(folder: Path) -> None:
    from restive.desk.features import find_declared
    from restive.desk.table_files import read_table_file
    from restive.logs.options import ReadOptions
    from restive.logs.report import report
    from restive.logs.sections import write_page
    from restive.logs.tables import read_table

    def tell(part: str) -> None:
        (folder / PROGRESS).write_text(part, encoding="utf-8")

    asked = json.loads((folder / ASKED).read_bytes())
    tell("reading the table")
    path, name = folder / asked["table"], asked["name"]
    try:
        frame = read_table_file(path)
    except InputError as error:
        path.unlink()
        raise InputError(name + str(error).removeprefix(path.name)) from None
    try:
        history = read_table(frame, name, ReadOptions(**asked["options"]))
    except InputError:
        (folder / TABLE).write_text(json.dumps(describe_table(frame, asked["options"]["columns"])), encoding="utf-8")
        raise
    path.unlink()
    answer = report(history, asked["budgets"], asked["rounds"], progress=tell)
    tell("writing the page")
    title, sections = f"What {name} says about a program", answer.sections()
    write_page(title, sections, folder / PAGE)
    answer.model.save(folder / MODEL)
    shown = {
        "title": title,
        "sections": [_as_data(section) for section in sections],
        "states": list(history.states),
        "rewards": [float(f"{value:.6g}") for value in history.value],
        "features": {} if answer.model.features is None else find_declared(answer.model.known_features),
        "budget": asked["budgets"][0] if asked["budgets"] else max(1, round(answer.model.logged.actions_per_round)),
    }
    (folder / RESULT).write_text(json.dumps(shown), encoding="utf-8")


def describe_table(frame: "pl.DataFrame", chosen: Mapping[str, str]) -> dict[str, Any]:
    """The columns of a table, chosen, known by their headers or suggested, its first rows, and the texts to ask about."""
    import polars as pl

    from restive.desk.table_columns import match_headers
    from restive.desk.table_files import ROW
    from restive.logs.columns import BINARY, HEADERS, MAX_STATES, REQUIRED

    table = frame.drop(ROW, strict=False)
    known = match_headers(table, HEADERS) | {name: header for name, header in chosen.items() if header in table.columns}
    header = known.copy()
    for name in (*REQUIRED, "reward"):
        taken = set(header.values())
        if name not in header and (found := _suggest(name, [each for each in table.columns if each not in taken])):
            header[name] = found
    if "state" not in header and "agent" in header:
        header |= _suggest_state(table, header["agent"], set(header.values()))

    def texts(name: str) -> list[str]:
        cells = (
            table[header[name]].cast(pl.String, strict=False).str.strip_chars() if name in header else pl.Series([""])
        )
        return sorted(set(cells.drop_nulls().unique().head(MAX_STATES + 1)) - {""})

    acts, states = texts("action"), texts("state")
    rows = table.select(table.columns[:MAX_SHOWN_COLUMNS]).head(MAX_SHOWN_ROWS)
    return {
        "rows": len(table),
        "headers": table.columns[:MAX_HEADERS],
        "shown": rows.columns,
        "first": [["" if cell is None else str(cell)[:MAX_CELL] for cell in row] for row in rows.rows()],
        "columns": [
            {"name": name, "header": header.get(name, ""), "suggested": name in header and name not in known,
             "required": name in REQUIRED}
            for name in HEADERS
        ],
        "acts": [] if set(map(str.lower, acts)) <= set(BINARY) else acts[:MAX_TEXTS],
        "states": states if len(states) <= MAX_STATES else [],
    }  # fmt: skip


def _suggest(name: str, headers: Sequence[str]) -> str | None:
    """The first of the headers that has a word for a column, words in the order of how telling they are."""
    from restive.desk.table_mapping import normalize_header
    from restive.desk.table_suggestions import WORDS as TABLE_WORDS

    words = {**TABLE_WORDS, **WORDS}[name]
    found = (each for word in words for each in headers if word in normalize_header(each).split("_"))
    return next(found, None)


def _suggest_state(table: "pl.DataFrame", agent: str, taken: set[str]) -> dict[str, str]:
    """The first column with few different texts that change for some agents."""
    import polars as pl

    texts = [each.name for each in table if each.dtype == pl.String and each.name not in taken]
    few = [name for name in texts if 1 < table[name].drop_nulls().n_unique() <= MAX_SUGGESTED_STATES]
    most = (
        table.group_by(agent).agg(pl.col(few).drop_nulls().n_unique()).select(pl.col(few).max()).row(0) if few else ()
    )
    found = next((name for name, number in zip(few, most, strict=True) if number > 1), None)
    return {"state": found} if found else {}


def _as_data(section: Any) -> dict[str, Any]:
    """A section as plain data, with its figure as the address of an image."""
    from restive.plotting import Picture
    from restive.report.pages import describe_figure

    figure = None
    if section.figure is not None:
        picture = Picture.of(section.figure(), ["svg"])
        figure = {
            "source": f"data:image/svg+xml;base64,{base64.b64encode(picture.files['svg']).decode()}",
            "text": section.caption or describe_figure(picture, section.title),
        }
    return {**section._asdict(), "table": section.table._asdict() if section.table else None, "figure": figure}


def main(arguments: Sequence[str]) -> None:
    """Run the child."""
    if sys.platform != "win32":
        set_limits(*map(int, arguments[1:5]))
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    code = make(Path(arguments[0]))
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
