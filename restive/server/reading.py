"""Uploaded tables, read so that a bad one harms nobody: Parquet and Excel in a process of their own.

A damaged file can end the process that reads it, and a few bytes can stand for a billion rows. The child has limits on
memory, time and the size of what it hands back, and is the first to go when the machine runs out of memory. It leaves
the table as an Arrow stream in a folder that only this user may enter and that is always removed.

A CSV file cannot grow by much, unless its header has far more columns than its rows: what is plain is read in a thread.

    python -m restive.server.reading FILE RESULT MEMORY PROCESSOR_SECONDS SECONDS LARGEST
"""

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal
from weakref import WeakKeyDictionary

import polars as pl

from restive.desk.table_files import read_table_file
from restive.errors import InputError
from restive.server.settings import MIB, Limits

Kind = Literal["csv", "xlsx", "parquet"]
SPOKEN = {"csv": "CSV", "xlsx": "Excel", "parquet": "Parquet"}
SMALL = 1 * MIB  # a CSV file that waits for nobody, whatever is in it
THREADS = "2"  # of the child; each takes memory of its own
KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "TEMP", "SYSTEMROOT")  # the child need not know more of where it runs
READ, FAULTY = 0, 2  # how the child ends when it has something to say
MAX_SENTENCE = 10_000
_GATES: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[int, asyncio.Semaphore]] = WeakKeyDictionary()


async def read_table(path: Path, kind: Kind, where: str, limits: Limits) -> pl.DataFrame:
    """What the file holds, as `read_table_file` gives it; `where` is what the table is called in sentences about it."""
    with tempfile.TemporaryDirectory(prefix="restive-") as folder:
        named = Path(folder) / f"table.{kind}"
        _lend(path, named)
        try:
            if kind == "csv" and await asyncio.to_thread(is_plain, path, SMALL):
                return await asyncio.to_thread(read_table_file, named)
            async with _turn(limits):
                if kind == "csv" and await asyncio.to_thread(is_plain, path, limits.in_process):
                    return await asyncio.to_thread(read_table_file, named)
                return await _read_in_child(named, SPOKEN[kind], limits)
        except InputError as error:
            raise InputError(where + str(error).removeprefix(named.name)) from None


def _lend(path: Path, named: Path) -> None:
    """Give the file a name by which its kind is known."""
    try:
        named.symlink_to(path.absolute())
    except OSError:  # Windows allows that to few
        shutil.copyfile(path, named)


def is_plain(path: Path, largest: int) -> bool:
    """Whether a CSV file is read quickly, and makes no more cells than it has bytes; small ones may have quotes."""
    if path.stat().st_size > largest:
        return False
    content = path.read_bytes()
    head = content[:MIB].lstrip().partition(b"\n")[0]
    columns = max(map(head.count, (b",", b";", b"\t"))) + 1
    lines = content.count(b"\n") + content.count(b"\r")
    odd = b'"' in content or content.count(b"\r") != content.count(b"\r\n")
    return columns * lines <= 4 * len(content) + SMALL and (len(content) <= SMALL or not odd)


@asynccontextmanager
async def _turn(limits: Limits) -> AsyncIterator[None]:
    """Wait until fewer than `at_once` tables are being read."""
    gates = _GATES.setdefault(asyncio.get_running_loop(), {})
    async with gates.setdefault(limits.at_once, asyncio.Semaphore(limits.at_once)):
        yield


async def _read_in_child(path: Path, kind: str, limits: Limits) -> pl.DataFrame:
    result = path.with_name("result.arrow")
    numbers = (limits.memory, limits.processor_seconds, int(limits.seconds) + 1, limits.result)
    command = ["-P", "-m", "restive.server.reading", str(path), str(result), *map(str, numbers)]
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,  # what libraries say when they break down is for nobody
        env=_environment(),
        start_new_session=True,  # Ctrl+C at the terminal is for the server, which finishes what is under way
    )
    try:
        async with asyncio.timeout(limits.seconds):
            sentence = await _hear(child)
            code = await child.wait()
    except TimeoutError:
        raise InputError(f"{path.name}: reading it takes longer than {limits.seconds:g} s; split the table.") from None
    finally:
        await _end(child)
    if code == FAULTY and sentence:
        raise InputError(sentence)
    if code != READ:
        raise InputError(
            f"{path.name}: it cannot be read within {limits.memory // MIB} MiB and {limits.processor_seconds} s; it is "
            f"damaged, stands for far more than its size, or is no {kind} file."
        )
    return await asyncio.to_thread(pl.read_ipc_stream, result)


async def _hear(child: asyncio.subprocess.Process) -> str:
    """What the child says, up to the longest sentence there is."""
    said = await child.stdout.read(MAX_SENTENCE) if child.stdout else b""
    while len(said) < MAX_SENTENCE and child.stdout and (more := await child.stdout.read(MAX_SENTENCE)):
        said += more
    return said.decode(errors="replace").strip()[:MAX_SENTENCE]


async def _end(child: asyncio.subprocess.Process) -> None:
    if child.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.wait()


def _environment() -> dict[str, str]:
    """What the child is reported: where the package is, and none of the secrets that the server may have been given."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    return kept | {"PYTHONPATH": str(Path(__file__).parents[2]), "POLARS_MAX_THREADS": THREADS}


def _confine(memory: int, processor_seconds: int, seconds: int, largest: int) -> None:
    """Take limits on: data rather than addresses, of which the allocator reserves far more than it ever uses."""
    import resource

    signal.alarm(seconds)  # should nobody be there any more to end this
    for kind, most in (
        (resource.RLIMIT_DATA, memory),
        (resource.RLIMIT_CPU, processor_seconds),
        (resource.RLIMIT_FSIZE, largest),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (allowed, allowed))
    os.nice(5)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def leave_table(source: Path, result: Path) -> int:
    """Read one table and leave it for whoever asked, and for nobody else."""
    os.umask(0o077)
    try:
        read_table_file(source).write_ipc_stream(result, compression="uncompressed")
    except InputError as error:
        print(error)
        return FAULTY
    return READ


def main(arguments: list[str]) -> None:
    """Be the child."""
    if sys.platform != "win32":
        _confine(*map(int, arguments[2:6]))
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    code = leave_table(Path(arguments[0]), Path(arguments[1]))
    sys.stdout.flush()
    os._exit(code)  # what is in memory goes with the process; tidying up takes longer than reading


if __name__ == "__main__":
    main(sys.argv[1:])
