"""Worker processes of one server: a supervisor that starts them again, and connections that go to the owner of a program.

All workers accept connections on one listening socket. The owner of a program is the worker that keeps it in memory, by
a hash of its name; requests without a program have the first worker as owner, because reports on histories are in its
memory. A worker that gets the first bytes of a request for another owner hands the connection over, with these bytes, as
a file descriptor through a socket pair. A client that keeps to one program is handed over once.

The owner is a matter of speed: any worker can answer any request, because a program looks up the end of its log in the
store at every use. So a request line in two packets, or for an owner that has just been killed, is answered where it is. The
supervisor holds both ends of the socket pairs: what waits for a worker that ended is answered by the one that follows.

Shared by the workers, in a temporary folder: the rate limits, and which workers are ready. Metrics have a label `worker`.
"""

import asyncio
import multiprocessing
import re
import secrets
import signal
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from multiprocessing.connection import wait
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO
from urllib.parse import unquote_to_bytes

import numpy as np

from restive.errors import InputError
from restive.server.settings import KIB, MIB, Settings

with suppress(ImportError):  # Windows, where there is one worker
    import fcntl

REQUEST_LINE = re.compile(rb"[A-Z]{1,10} (/[^ ?]*)[^ ]* HTTP/1\.[01]\r\n")
PROGRAM = re.compile(rb"/programs/([^/]+)")
ANYWHERE = re.compile(rb"/(health|ready|metrics|static/.*)")  # paths that any worker answers
MAX_HANDED_BYTES = 512 * KIB
QUEUE_BYTES = 4 * MIB
MIN_LIFE_SECONDS, MAX_SHORT_LIVES = 5.0, 5  # workers that end sooner so many times in a row are not started again
RESTART_SECONDS = 0.5
POLL_SECONDS = 0.0002  # a round of 1,000 agents writes for some thousandths
ANSWER_SECONDS = 2.0  # for the metrics of another worker
SETS, WAYS = 1 << 13, 8  # of the table of rate limits
LEVEL = np.dtype([("key", "<u8"), ("level", "<f8"), ("time", "<f8")])


@dataclass(frozen=True)
class Worker:
    """One of several worker processes, and how it reaches the others."""

    index: int
    outboxes: Sequence[socket.socket]  # by worker
    inbox: socket.socket
    folder: Path
    salt: bytes

    @property
    def count(self) -> int:
        """The number of workers."""
        return len(self.outboxes)

    def owns(self, program: str) -> bool:
        """Whether this worker is the owner of a program."""
        return find_program_owner(program.encode(), self.count) == self.index

    def hand_over(self, transport: asyncio.Transport, data: bytes) -> bool:
        """Pass a connection to the owner of its next request, which begins with these bytes; False: it stays here."""
        owner = find_owner(data, self.count)
        if owner in (None, self.index) or transport.get_write_buffer_size() or not self._is_ready(owner):
            return False
        if len(data) > MAX_HANDED_BYTES or not self._send(owner, data, transport.get_extra_info("socket").fileno()):
            return False
        transport.abort()
        return True

    def receive(self) -> tuple[bytes, socket.socket] | None:
        """The next connection that another worker has handed over, with its first bytes."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self.inbox, MAX_HANDED_BYTES, 1, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        taken = socket.socket(fileno=descriptors[0])
        taken.setblocking(False)
        return data, taken

    async def ask_others(self) -> dict[int, bytes]:
        """What the other workers answer to an empty message, by worker; those that do not answer are left out."""
        others = [number for number in range(self.count) if number != self.index]
        answers = await asyncio.gather(*(self._ask(number) for number in others), return_exceptions=True)
        return {
            number: answer
            for number, answer in zip(others, answers, strict=True)
            if not isinstance(answer, BaseException)
        }

    async def _ask(self, number: int) -> bytes:
        ours, theirs = socket.socketpair()
        with theirs:
            if not self._send(number, b"", theirs.fileno()):
                ours.close()
                raise ConnectionError
        reader, writer = await asyncio.open_connection(sock=ours)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await reader.read()
        finally:
            writer.close()

    def _send(self, number: int, data: bytes, descriptor: int) -> bool:
        try:
            socket.send_fds(self.outboxes[number], [data], [descriptor], socket.MSG_DONTWAIT)
        except OSError:  # its queue is full
            return False
        return True

    def mark_ready(self, ready: bool = True) -> None:
        """Record whether this worker can decide; connections are only handed over to those that can."""
        if ready:
            self._flag(self.index).touch()
        else:
            self._flag(self.index).unlink(missing_ok=True)

    @property
    def all_ready(self) -> bool:
        """Whether all workers can decide; from then on also while one of them is started again."""
        started = self.folder / "started"
        if started.exists():
            return True
        if all(map(self._is_ready, range(self.count))):
            started.touch()
            return True
        return False

    def _is_ready(self, number: int) -> bool:
        return self._flag(number).exists()

    def _flag(self, number: int) -> Path:
        return self.folder / f"ready-{number}"

    def open_lock(self) -> "SharedLock":
        """The lock of the workers that write to a SQLite file."""
        return SharedLock(self.folder / "writer")

    def open_levels(self, name: str) -> "SharedLevels":
        """The levels of a rate limiter, shared by the workers."""
        return SharedLevels(np.memmap(self.folder / name, LEVEL, "r+", shape=(SETS, WAYS)), self.salt)


def find_owner(data: bytes, count: int) -> int | None:
    """The worker for a request that begins with these bytes; None: any worker, or that is not known yet.

    >>> find_owner(b"GET /api/v1/programs/shops/status HTTP/1.1\\r\\n", 5), find_owner(b"GET /login HTTP/1.1\\r\\n", 5)
    (1, 0)
    """
    line = REQUEST_LINE.match(data)
    if line is None or ANYWHERE.fullmatch(line[1]):
        return None
    program = PROGRAM.search(line[1])
    return 0 if program is None else find_program_owner(unquote_to_bytes(program[1]), count)


def find_program_owner(name: bytes, count: int) -> int:
    """The worker that keeps a program in its memory."""
    return zlib.crc32(name) % count


class SharedLevels:
    """The table of `TokenBuckets` in shared memory, of a fixed size: of each set of keys the oldest one is replaced.

    A lost update when two workers write at the same time lets one request more pass.
    """

    def __init__(self, table: np.ndarray[Any, Any], salt: bytes) -> None:
        self._table, self._salt = table, salt

    def pop(self, key: str, default: tuple[float, float]) -> tuple[float, float]:
        """The level and the time of a key."""
        digest, found = self._find(key)
        place = np.flatnonzero(found["key"] == digest)
        return (float(found["level"][place[0]]), float(found["time"][place[0]])) if place.size else default

    def __setitem__(self, key: str, value: tuple[float, float]) -> None:
        digest, found = self._find(key)
        place = np.flatnonzero(found["key"] == digest)
        found[place[0] if place.size else np.argmin(found["time"])] = (digest, *value)

    def __len__(self) -> int:
        return int(np.count_nonzero(self._table["key"]))

    def _find(self, key: str) -> tuple[int, np.ndarray[Any, Any]]:
        digest = (
            int.from_bytes(blake2b(key.encode(errors="replace"), key=self._salt, digest_size=8).digest(), "big") or 1
        )
        return digest, self._table[digest % SETS]


class SharedLock:
    """A lock of the threads of all workers around SQLite's own, which makes those that wait sleep for longer and longer.

    It is a matter of speed: after its timeout a worker that was stopped holds nobody up any more than SQLite does.
    """

    def __init__(self, path: Path) -> None:
        self._threads = threading.Lock()
        self._file, self._probe = path.open("wb"), path.open("wb")

    def acquire(self, timeout: float) -> bool:
        """Wait for the lock; False: a thread of this process has it."""
        deadline = time.monotonic() + timeout
        if not self._threads.acquire(timeout=timeout):
            return False
        while not _take(self._file) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        return True

    def release(self) -> None:
        """Let the next one have it."""
        fcntl.flock(self._file, fcntl.LOCK_UN)
        self._threads.release()

    def close(self) -> None:
        """Close its files."""
        self._file.close()
        self._probe.close()

    def is_taken(self) -> bool:
        """Whether somebody has the lock; for one thread."""
        if not _take(self._probe):
            return True
        fcntl.flock(self._probe, fcntl.LOCK_UN)
        return False


def _take(file: BinaryIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def share_limits(settings: Settings, count: int) -> Settings:
    """The settings of one worker of several: limits on all requests together are divided between the workers."""
    uploads = replace(settings.uploads, max_concurrent=max(settings.uploads.max_concurrent // count, 1))
    return replace(
        settings,
        max_connections=max(settings.max_connections // count, 16),
        max_total_bytes=max(settings.max_total_bytes // count, settings.max_table_bytes),
        uploads=uploads,
    )


class Supervisor:
    """Runs `run(worker, *arguments)` in some processes, starts again those that end, and stops all on a signal."""

    def __init__(
        self,
        count: int,
        folder: Path,
        run: Callable[..., None],
        arguments: Sequence[object],
        log: Callable[[str], None],
    ) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._run, self._arguments, self._log = run, arguments, log
        pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(count)]
        for ours, _ in pairs:
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, QUEUE_BYTES)
        for name in ("requests", "sign_ins"):
            np.zeros((SETS, WAYS), LEVEL).tofile(folder / name)
        salt, outboxes = secrets.token_bytes(32), [ours for ours, _ in pairs]
        self._workers = [Worker(number, outboxes, inbox, folder, salt) for number, (_, inbox) in enumerate(pairs)]
        self._processes: dict[int, Any] = {}
        self._started: dict[int, float] = {}
        self._short_lives = 0
        self._stopping = False

    def run(self) -> None:
        """Supervise until a signal, or until workers cannot be started."""
        before = {number: signal.signal(number, self._stop) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            for worker in self._workers:
                self._start(worker)
            while self._processes:
                wait([process.sentinel for process in self._processes.values()])
                self._replace_ended()
        finally:
            self._signal(signal.SIGKILL)
            for number, handler in before.items():
                signal.signal(number, handler)
        if not self._stopping:
            raise InputError("The workers of the server end as soon as they start; see the messages above.")

    def _start(self, worker: Worker) -> None:
        process = self._context.Process(target=self._run, args=(worker, *self._arguments), daemon=True)
        process.start()
        self._processes[worker.index], self._started[worker.index] = process, time.monotonic()
        if self._stopping:  # the signal came while it was started
            process.terminate()

    def _replace_ended(self) -> None:
        for number, process in list(self._processes.items()):
            if process.is_alive():
                continue
            del self._processes[number]
            self._workers[number].mark_ready(False)
            if self._stopping:
                continue
            self._log(f"worker {number} ended with code {process.exitcode} and is started again")
            short = time.monotonic() - self._started[number] < MIN_LIFE_SECONDS
            self._short_lives = self._short_lives + 1 if short else 0
            if self._short_lives >= MAX_SHORT_LIVES:
                self._signal(signal.SIGTERM)
                return
            if short:
                time.sleep(RESTART_SECONDS)
            self._start(self._workers[number])

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """Stop gracefully at the first signal, and at once at the second."""
        again, self._stopping = self._stopping, True
        self._signal(signal.SIGKILL if again else signal.SIGTERM)

    def _signal(self, number: int) -> None:
        for process in list(self._processes.values()):
            with suppress(ProcessLookupError, AttributeError):
                process.kill() if number == signal.SIGKILL else process.terminate()


def check_workers(count: int, tls: ssl.SSLContext | None) -> None:
    """Refuse several workers where connections cannot be handed over."""
    if count > 1 and not hasattr(socket, "send_fds"):
        raise InputError("Several workers need a system with Unix sockets; leave out --workers.")
    if count > 1 and tls is not None:
        raise InputError(
            "With --certificate a connection cannot be handed to another worker: leave out --workers, or let a proxy do "
            "TLS (--behind-proxy)."
        )


def merge_metrics(texts: Iterable[tuple[int, bytes]], sees: Callable[[str], bool]) -> bytes:
    """Metrics of several workers as one text: with a label `worker`, or of the programs that somebody sees."""
    from prometheus_client.exposition import generate_latest
    from prometheus_client.metrics_core import Metric
    from prometheus_client.parser import text_string_to_metric_families
    from prometheus_client.registry import Collector

    merged: dict[str, Metric] = {}
    seen: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
    for number, text in texts:
        for family in text_string_to_metric_families(text.decode()):
            metric = merged.setdefault(family.name, Metric(family.name, family.documentation, family.type))
            for sample in family.samples:
                if not sees(sample.labels.get("program", "")):
                    continue
                labels = sample.labels if "program" in sample.labels else {**sample.labels, "worker": str(number)}
                key = sample.name, tuple(sorted(labels.items()))
                if key not in seen:
                    metric.add_sample(sample.name, labels, sample.value)
                    seen.add(key)

    class Merged(Collector):
        def collect(self) -> Iterable[Metric]:
            return merged.values()

    return generate_latest(Merged())
