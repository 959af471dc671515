"""Read uploaded tables; Parquet and Excel files, large tables in JSON, and large or unusual CSV files in a child process.

A damaged file can crash the process that reads it, a few bytes can expand to a billion rows, and parsing JSON blocks
all threads of a process. The child has limits on memory, time and the size of its result, gets none of the server's
environment, and is the first to be killed when the machine runs out of memory. It writes the table as an Arrow stream
to a temporary folder that only this user can read and that is always removed: short texts, numbers and dates, each cell
in full, so that the size of the result bounds the memory that the server needs for it. A program may read any column;
long cells of columns without a usual name are left empty.

    python -m restive.server.table_reader FILE RESULT SHEET MEMORY_BYTES CPU_SECONDS TIMEOUT_SECONDS RESULT_BYTES

Starting the child takes longer than reading many a table, so a server that reads tables keeps one ready for a while: it
is started without arguments and gets them as a line of JSON.
"""

import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Literal
from weakref import WeakKeyDictionary

import polars as pl
from starlette.exceptions import HTTPException

from restive.desk.table_columns import MAX_TEXT, Fault, TableError
from restive.desk.table_files import MAX_HEADER, ROW, TableFile, as_frame, open_table_file
from restive.desk.table_mapping import normalize_header
from restive.desk.table_schema import OUTCOMES, STATES
from restive.errors import InputError
from restive.server.json_tables import TABLES, as_columns, as_object, load_json
from restive.server.settings import MIB, UploadLimits

Kind = Literal["csv", "xlsx", "parquet", "json"]
FORMAT_NAMES = {"csv": "CSV", "xlsx": "Excel", "parquet": "Parquet", "json": "JSON"}
MODULE = "restive.server.table_reader"
SPARE_SECONDS = 120.0
SMALL_BYTES = 1 * MIB  # CSV files up to this size do not wait for their turn
CHILD_THREADS = "2"
CHILD_ENVIRONMENT = (
    "PATH", "LANG", "LC_ALL", "TMPDIR", "TEMP", "SYSTEMROOT", "HOME", "XDG_CACHE_HOME", "LOCALAPPDATA", "NUMBA_CACHE_DIR"
)  # fmt: skip
EXIT_OK, EXIT_INPUT_ERROR = 0, 2
MAX_MESSAGE = 10_000  # characters
MAX_FIELDS_BYTES = 1 * MIB  # of a JSON body without its table
MAX_CELL_BYTES = 1000  # an id has at most 200 characters
HEADERS = {header for columns in (STATES, OUTCOMES) for names in columns.values() for header in names}

_spares: "WeakKeyDictionary[asyncio.AbstractEventLoop, SpareReader]" = WeakKeyDictionary()
_semaphores: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


async def read_json_table(
    content: bytes, where: str, limits: UploadLimits
) -> tuple[dict[str, object], pl.DataFrame | None]:
    """The fields of a JSON body and the table in its field `where`, which is empty then; no table if it is null."""
    with tempfile.TemporaryDirectory(prefix="restive-") as folder:
        path = Path(folder) / f"{where}.json"
        await asyncio.to_thread(path.write_bytes, content)
        async with _turn(limits):
            output = await _run_child(path, "json", limits)
        table = await asyncio.to_thread(pl.read_ipc_stream, _result(path)) if _result(path).exists() else None
        return json.loads(output), table


async def read_table(path: Path, kind: Kind, name: str, limits: UploadLimits, sheet: str = "") -> TableFile:
    """Read a table file, as `open_table_file` does; error messages call it `name`."""
    with tempfile.TemporaryDirectory(prefix="restive-") as folder:
        link = Path(folder) / f"table.{kind}"
        try:
            link.symlink_to(path.absolute())
        except OSError:  # Windows without the privilege for links
            shutil.copyfile(path, link)
        try:
            if kind == "csv" and await asyncio.to_thread(is_plain, path, SMALL_BYTES):
                return await asyncio.to_thread(open_table_file, link)
            async with _turn(limits):
                if kind == "csv" and await asyncio.to_thread(is_plain, path, limits.max_in_process_bytes):
                    return await asyncio.to_thread(open_table_file, link)
                found = json.loads(await _run_child(link, kind, limits, sheet.replace("\0", "")))
                encoding, delimiter, name_of_sheet, sheets = found
                frame = await asyncio.to_thread(pl.read_ipc_stream, _result(link))
                return TableFile(frame, encoding, delimiter, name_of_sheet, tuple(sheets))
        except InputError as error:
            raise InputError(name + str(error).removeprefix(link.name)) from None


def _turn(limits: UploadLimits) -> asyncio.Semaphore:
    """Limits how many tables are read at once, in the order of arrival."""
    return _semaphores.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(limits.max_concurrent))


def _result(path: Path) -> Path:
    return path.with_name("result.arrow")


def is_plain(path: Path, max_bytes: int) -> bool:
    """Whether a CSV file can be read fast and has no more cells than bytes; small files may contain quotes."""
    if path.stat().st_size > max_bytes:
        return False
    content = path.read_bytes()
    header = content[:MIB].lstrip().partition(b"\n")[0]
    columns = max(map(header.count, (b",", b";", b"\t"))) + 1
    lines = content.count(b"\n") + content.count(b"\r")
    unusual = b'"' in content or content.count(b"\r") != content.count(b"\r\n")
    return columns * lines <= 4 * len(content) + SMALL_BYTES and (len(content) <= SMALL_BYTES or not unusual)


async def _run_child(path: Path, kind: Kind, limits: UploadLimits, sheet: str = "") -> bytes:
    """Run the child on a file; what it prints."""
    return await run_child(
        MODULE,
        (str(path), str(_result(path)), sheet),
        limits,
        slow=f"{path.name}: reading it takes longer than {limits.timeout_seconds:g} s; split the table.",
        failed=f"{path.name}: it cannot be read within {limits.max_memory_bytes // MIB} MiB and {limits.cpu_seconds} s; "
        f"it is damaged, expands to far more than its size, or is not a {FORMAT_NAMES[kind]} file.",
    )


async def run_child(module: str, arguments: Sequence[str], limits: UploadLimits, slow: str, failed: str) -> bytes:
    """Run a module of this package in a process with limits; what it prints, or an `InputError` with one sentence."""
    numbers = (limits.max_memory_bytes, limits.cpu_seconds, int(limits.timeout_seconds) + 1, limits.max_result_bytes)
    given = (*arguments, *map(str, numbers))
    spare = _spares.get(asyncio.get_running_loop()) if module == MODULE else None
    child = None if spare is None else spare.take()
    line = None if child is None else json.dumps(given).encode() + b"\n"
    child = child or await start_child(module, *given)
    try:
        async with asyncio.timeout(limits.timeout_seconds):
            output, _ = await child.communicate(line)
    except TimeoutError:
        raise InputError(slow) from None
    finally:
        if child.returncode is None:
            with suppress(ProcessLookupError):
                child.kill()
            await child.wait()
        if spare is not None:
            spare.prepare()
    if child.returncode == EXIT_INPUT_ERROR and output:
        raise _decode_error(output)
    if child.returncode != EXIT_OK:
        raise InputError(failed)
    return output


async def start_child(module: str, *arguments: str) -> asyncio.subprocess.Process:
    """Start a child; without arguments it waits for them."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", module, *arguments),
        stdin=asyncio.subprocess.DEVNULL if arguments else asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=child_environment(),
        start_new_session=True,  # Ctrl+C at the terminal is for the server only
    )


class SpareReader:
    """A child that has imported what it needs and waits for a table, of a server that reads tables now and then."""

    def __init__(self) -> None:
        self._child: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None

    def take(self) -> asyncio.subprocess.Process | None:
        """The child, if there is one that runs."""
        child, self._child = self._child, None
        if child is not None and self._task is not None:
            self._task.cancel()  # which waits for its end
        return child if child is not None and child.returncode is None else None

    def prepare(self) -> None:
        """Start a child if there is none, and end it if it is not used for a while."""
        if self._task is None or self._task.done() or self._task.cancelling():
            self._task = asyncio.create_task(self._prepare())

    async def _prepare(self) -> None:
        self._child = await start_child(MODULE)
        await asyncio.sleep(SPARE_SECONDS)
        await self._end()

    async def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None and child.returncode is None:
            child.kill()
            await child.wait()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Let the tables of this event loop use it."""
        _spares[asyncio.get_running_loop()] = self
        try:
            yield
        finally:
            del _spares[asyncio.get_running_loop()]
            if self._task is not None:
                self._task.cancel()
                with suppress(asyncio.CancelledError):
                    await self._task
            await self._end()


def child_environment() -> dict[str, str]:
    """Environment of the child: where the package is, and none of the server's secrets."""
    kept = {name: os.environ[name] for name in CHILD_ENVIRONMENT if name in os.environ}
    return kept | {"PYTHONPATH": str(Path(__file__).parents[2]), "POLARS_MAX_THREADS": CHILD_THREADS}


def set_limits(memory_bytes: int, cpu_seconds: int, timeout_seconds: int, result_bytes: int) -> None:
    """Limit this process; memory by its data, because the allocator reserves far more addresses than it uses."""
    import resource

    signal.alarm(timeout_seconds)  # in case the server is gone
    for kind, limit in (
        (resource.RLIMIT_DATA, memory_bytes),
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_FSIZE, result_bytes),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        allowed = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (allowed, allowed))
    os.nice(5)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def convert(source: Path, result: Path, sheet: str = "") -> int:
    """Read a table and write it as an Arrow stream; return the exit code, and print the error if the input has one.

    Of a JSON body, the table is in the field that the file is named after; the other fields are printed. Of a file, how
    it was read is printed.
    """
    os.umask(0o077)
    in_json = source.suffix == ".json"
    try:
        if in_json:
            printed, table = split_json(source.read_bytes(), source.stem)
        else:
            table, *about = open_table_file(source, sheet)
            printed = json.dumps(about)
        if table is not None:
            short = bound_columns(table, source.stem if in_json else source.name)
            short.write_ipc_stream(result, compression="uncompressed", compat_level=pl.CompatLevel.oldest())
        print(printed)
    except (InputError, HTTPException) as error:
        print(encode_error(error))
        return EXIT_INPUT_ERROR
    return EXIT_OK


def split_json(content: bytes, where: str) -> tuple[str, pl.DataFrame | None]:
    """The fields of a body as JSON, in which the table is empty, and the table."""
    fields = as_object(load_json(content))
    given = fields.get(where)
    table = None if given is None else as_frame(as_columns(given, where, TABLES[where]))
    rest = json.dumps(fields if table is None else {**fields, where: []})
    if len(rest) > MAX_FIELDS_BYTES:
        raise InputError(f"The body is larger than {MAX_FIELDS_BYTES // MIB} MiB without its table.")
    return rest, table


def encode_error(error: InputError | HTTPException) -> str:
    """An error as JSON, for the other process."""
    if isinstance(error, HTTPException):
        return json.dumps({"status": error.status_code, "message": error.detail[:MAX_MESSAGE]})
    if isinstance(error, TableError):
        faults = [(fault.row, (fault.column or "")[:MAX_HEADER] or None, fault.message) for fault in error.faults]
        return json.dumps({"where": error.location, "faults": faults, "total": error.total})
    return json.dumps({"message": error.message[:MAX_MESSAGE]})


def _decode_error(output: bytes) -> InputError | HTTPException:
    found = json.loads(output)
    if "faults" in found:
        return TableError(found["where"], [Fault(*fault) for fault in found["faults"]], found["total"])
    return HTTPException(found["status"], found["message"]) if "status" in found else InputError(found["message"])


def bound_columns(table: pl.DataFrame, where: str) -> pl.DataFrame:
    """The table with short texts and numbers only; other columns may be features or display columns."""
    return table.with_columns(
        _bound_column(column, table[ROW], where) if normalize_header(column.name) in HEADERS else _cut_cells(column)
        for column in table.drop(ROW)
    )


def _cut_cells(column: pl.Series) -> pl.Series:
    """The column if it has numbers, dates, yes and no, or texts, these cut where they are refused as too long; else empty."""
    if column.dtype.is_numeric() or column.dtype.is_temporal() or column.dtype == pl.Boolean:
        return column
    if column.dtype not in (pl.String, pl.Categorical, pl.Enum):
        return pl.Series(column.name, [None] * len(column), pl.Null)
    return column.cast(pl.String).str.slice(0, MAX_TEXT + 1)


def _bound_column(column: pl.Series, rows: pl.Series, where: str) -> pl.Series:
    """The column, of texts if it was one of categories; an error if a text is too long."""
    if column.dtype in (pl.Categorical, pl.Enum):
        long = column.cat.len_bytes() > MAX_CELL_BYTES
    elif column.dtype == pl.String:
        long = column.str.len_bytes() > MAX_CELL_BYTES
    else:
        return column
    if long.any():
        row = rows[long.fill_null(False).arg_true()[0]]
        raise InputError(f"{where}, row {row}, column {column.name}: the cell is longer than {MAX_CELL_BYTES:,} bytes.")
    return column.cast(pl.String)


def main(arguments: list[str]) -> None:
    """Run the child; without arguments, on those that come by standard input."""
    arguments = arguments or json.loads(sys.stdin.readline() or "[]")
    if not arguments:
        return
    if sys.platform != "win32":
        set_limits(*map(int, arguments[3:7]))
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    code = convert(Path(arguments[0]), Path(arguments[1]), arguments[2])
    sys.stdout.flush()
    os._exit(code)  # cleaning up takes longer than reading


if __name__ == "__main__":
    main(sys.argv[1:])
