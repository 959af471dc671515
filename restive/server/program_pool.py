"""Pool of open programs, each with a lock, because a `Program` serves one request at a time.

Requests for a program wait for its lock in the order of arrival, up to `queue_seconds`, and each caller may have
`max_concurrent_requests` at one program. Work runs in threads, so that the event loop stays responsive; work that has
begun is always finished before the lock is released. Writing files needs no program and has its own semaphore.

A function that records something may have to wait for the store. Such functions have threads of their own, and where
the store has one writer at a time (SQLite) they wait for it before they take the program's lock, so that reads go on,
and for each other in the event loop, because threads that wait for a lock make all others slower.
"""

import asyncio
import contextvars
import ctypes
import math
import sys
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from functools import partial
from typing import Concatenate, ParamSpec, TypeVar

import anyio
from starlette.exceptions import HTTPException
from starlette.requests import Request

from restive.api.types import ProgramSummary
from restive.desk.compilation import compile_policies
from restive.desk.config import Config
from restive.desk.database import StoreError
from restive.desk.desk import Desk
from restive.desk.events import Created, Head
from restive.desk.program import Program
from restive.desk.status import summarize
from restive.desk.store import Store
from restive.errors import NotFound
from restive.server.limits import client_address
from restive.server.workers import SharedLock

P = ParamSpec("P")
T = TypeVar("T")
MAX_OPEN, MAX_OPEN_AGENTS = 64, 5_000_000  # in memory; the least recently used program is closed first
TIDY_SECONDS = 10.0
THREADS = 8
MAX_FILE_WRITERS = 2  # so that most threads are left for programs
MAX_QUICK_AGENTS = 50_000  # a round of so many takes a few hundredths of a second
MAX_WARM_POLICIES = 5


class _Opened:
    def __init__(self, program: Program) -> None:
        self.program, self.lock = program, asyncio.Lock()
        self.users = 0  # requests that use it or wait for it
        self.used = time.monotonic()  # when a request last used it
        self.summary: ProgramSummary | None = None  # the last one that was requested


class Programs:
    """The open programs of a desk."""

    def __init__(self, desk: Desk, threads: int = THREADS) -> None:
        self.desk, self.warm_up = desk, WarmUp()
        self._opened: OrderedDict[str, _Opened] = OrderedDict()
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="desk")
        self._writers = ThreadPoolExecutor(threads, thread_name_prefix="desk-writer")
        self._writing = asyncio.Semaphore(MAX_FILE_WRITERS)
        self._writer = asyncio.Lock()  # of a store that has one writer at a time
        self._held: Counter[tuple[str, str]] = Counter()  # requests in progress, by program and caller
        self._pulse: asyncio.Future[int] | None = None

    async def call(
        self, request: Request, name: str, function: Callable[Concatenate[Program, P], T], *args: P.args, **kw: P.kwargs
    ) -> T:
        """Run a function on a program in a thread, while nobody else uses the program."""
        async with self.using(name, request) as program:
            run = self.run if request.method == "GET" else self.record
            return await run(function, program, *args, **kw)

    @asynccontextmanager
    async def using(self, name: str, request: Request | None = None) -> AsyncIterator[Program]:
        """Exclusive use of a program; limits and timeouts apply if the request is given."""
        with self._hold(name, request):
            opened = await self._open(name)
            opened.users += 1
            try:
                async with self._turn(opened, request), _acquired(opened.lock, request):
                    yield opened.program
            finally:
                opened.users, opened.used = opened.users - 1, time.monotonic()
                self._close_some()

    @asynccontextmanager
    async def _turn(self, opened: _Opened, request: Request | None) -> AsyncIterator[None]:
        """With a request that records something: wait until nobody else writes, if the store has one writer at a time.

        Writers of this process wait in the order of arrival, without a thread each; the long ones of large programs do
        not make the others wait while they read their tables.
        """
        store, at_once = self.desk.store, self.desk.store.at_once
        if request is None or request.method == "GET" or at_once is None:
            yield
        elif opened.program.cache.agents > MAX_QUICK_AGENTS:
            await self.record(store.wait_for_writers)
            yield
        else:
            async with _acquired(self._writer, request):
                if not self._is_written_by_workers():
                    try:
                        at_once.wait_for_writers()
                    except StoreError:
                        await self.record(store.wait_for_writers)
                yield

    def _is_written_by_workers(self) -> bool:
        """Whether another worker of this server writes, which does not take long."""
        lock = self.desk.store.write_lock
        return isinstance(lock, SharedLock) and lock.is_taken()

    async def write(self, request: Request, name: str, function: Callable[P, T], *args: P.args, **kw: P.kwargs) -> T:
        """Run a function in a thread that writes a file and does not need the program itself."""
        with self._hold(name, request):
            async with _acquired(self._writing, request):
                return await self.run(function, *args, **kw)

    async def delete(self, request: Request, name: str, function: Callable[[], T]) -> T:
        """Run a function that deletes a program while nobody else uses it, and close the program."""
        known = any(row.name == name for row in await self.run(self.desk.store.programs))
        async with self.using(name, request) if known else nullcontext():
            answer = await self.record(function)
        if all(row.name != name for row in await self.run(self.desk.store.programs)):
            self._opened.pop(name, None)
        return answer

    async def summarize(self, name: str, request: Request | None = None) -> ProgramSummary:
        """Summary of a program; of a busy one, the last summary."""
        opened = self._opened.get(name)
        if opened is not None and opened.lock.locked() and opened.summary is not None:
            return opened.summary
        async with self.using(name, request) as program:
            found = await self.run(summarize, program)
            self._opened[name].summary = found
        return found

    async def inspect_idle(self, function: Callable[[Program], T]) -> dict[str, T]:
        """What a function finds in each open program that nobody uses at the moment; it does not count as a use."""
        found = {}
        for name, opened in [*self._opened.items()]:
            if not opened.users:
                async with opened.lock:
                    found[name] = await self.run(function, opened.program)
        return found

    @property
    def has_room(self) -> bool:
        """Whether programs can be opened that nobody has asked for."""
        return len(self._opened) < MAX_OPEN // 2

    async def run(self, function: Callable[P, T], *args: P.args, **kw: P.kwargs) -> T:
        """Run a function in a thread; if the caller is cancelled, wait for the function nevertheless."""
        return await _run(self._threads, partial(function, *args, **kw))

    async def record(self, function: Callable[P, T], *args: P.args, **kw: P.kwargs) -> T:
        """The same for a function that records something and may have to wait for the store."""
        return await _run(self._writers, partial(function, *args, **kw))

    async def reach_store(self, seconds: float) -> None:
        """Send a small query to the store; raise an error if it does not answer in time.

        Concurrent calls share one query, so that a store that hangs takes one thread and one connection only.
        """
        if self._pulse is None or self._pulse.done():
            ask = partial(self.desk.store.length, 0)
            limiter = anyio.CapacityLimiter(1)  # not the one of forms and files, which may be in use
            work = anyio.to_thread.run_sync(ask, abandon_on_cancel=True, limiter=limiter)
            self._pulse = asyncio.ensure_future(work)
        pulse = self._pulse  # another call may replace it while this one waits
        await asyncio.wait([pulse], timeout=seconds)
        if not pulse.done():
            raise StoreError("The store does not answer; nothing was changed. Try again later.")
        pulse.result()

    def head(self, name: str) -> Head:
        """End of the log of a program; queries the store and needs no lock."""
        return self.desk.store.head(name)

    def close(self) -> None:
        """Finish the work of the threads and stop them."""
        self._threads.shutdown()
        self._writers.shutdown()

    @contextmanager
    def _hold(self, name: str, request: Request | None) -> Iterator[None]:
        """Count a request in progress; raise an error if the caller has too many at this program."""
        if request is None:
            yield
            return
        key, limit = (name, _name_caller(request)), request.app.state.settings.max_concurrent_requests
        if self._held[key] >= limit:
            message = f"{limit} of your requests are in progress at {name}; wait until one is finished."
            raise HTTPException(429, message, {"Retry-After": "1"})
        self._held[key] += 1
        try:
            yield
        finally:
            self._held[key] -= 1
            if not self._held[key]:
                del self._held[key]

    async def _open(self, name: str) -> _Opened:
        if name not in self._opened:
            program = await self.run(self._find, name)
            self._opened.setdefault(name, _Opened(program))  # another request may have opened it meanwhile
        self._opened.move_to_end(name)
        return self._opened[name]

    def _find(self, name: str) -> Program:
        try:
            return self.desk.program(name)
        except NotFound:
            # The desk's message names other programs, which the caller may not be allowed to see.
            raise NotFound(f"There is no program {name!r}.") from None

    async def tidy(self, idle_seconds: float) -> None:
        """Close programs that nobody has used for so long, and hand free memory back to the system, until cancelled."""
        while True:
            await asyncio.sleep(min(TIDY_SECONDS, idle_seconds))
            self._close_some(time.monotonic() - idle_seconds)
            await self.run(release_memory)

    def _close_some(self, unused_since: float = -math.inf) -> None:
        """Close programs that nobody uses, the least recently used first: old ones, and while there are too many."""
        idle = [(name, opened) for name, opened in self._opened.items() if not opened.users]
        agents = sum(opened.program.cache.agents for opened in self._opened.values())
        for name, opened in idle:
            cache, full = opened.program.cache, len(self._opened) > MAX_OPEN or agents > MAX_OPEN_AGENTS
            if not full and (opened.used >= unused_since or cache.knows_given_names):
                continue
            agents -= cache.agents
            del self._opened[name]


def release_memory() -> None:
    """Hand the free memory of the C allocator back to the system, where it does not do so by itself."""
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)


async def _run(threads: ThreadPoolExecutor, function: Callable[[], T]) -> T:
    work = asyncio.get_running_loop().run_in_executor(threads, contextvars.copy_context().run, function)
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError as error:
        cancelled = error
    while not work.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([work])
    work.exception()  # mark it as retrieved
    raise cancelled


@asynccontextmanager
async def _acquired(lock: asyncio.Lock | asyncio.Semaphore, request: Request | None) -> AsyncIterator[None]:
    """Hold the lock; with a request, wait for it up to `queue_seconds`."""
    try:
        async with asyncio.timeout(None if request is None else request.app.state.settings.queue_seconds):
            await lock.acquire()
    except TimeoutError:
        assert request is not None
        request.state.busy = True  # the store has not failed
        raise HTTPException(
            503, "The program is busy; nothing was done. Try again later.", {"Retry-After": "10"}
        ) from None
    try:
        yield
    finally:
        lock.release()


def _name_caller(request: Request) -> str:
    """The token of a request, or its address without one."""
    principal = getattr(request.state, "principal", None)
    return client_address(request.scope) if principal is None or principal.id is None else f"token {principal.id}"


class WarmUp:
    """The compilation of the kernels of the policies in use, in a thread; a decision before its end waits for it."""

    def __init__(self) -> None:
        self._running: threading.Thread | None = None

    def start(self, desk: Desk, then: Callable[[], None] = lambda: None) -> None:
        """Begin to compile, and call `then` at the end."""
        self._running = threading.Thread(target=self._run, args=[desk, then], daemon=True)
        self._running.start()

    @property
    def done(self) -> bool:
        """Whether nothing is compiled any more, also because it was never begun or failed."""
        return self._running is None or not self._running.is_alive()

    def _run(self, desk: Desk, then: Callable[[], None]) -> None:
        with suppress(Exception):  # a policy that fails here fails with a message when it decides
            compile_policies(find_policies(desk.store))
        then()


def find_policies(store: Store) -> list[tuple[str, str | None]]:
    """The policies and shadow policies of the newest programs, without duplicates."""
    found: dict[tuple[str, str | None], None] = {}
    for row in reversed(store.programs()[-MAX_WARM_POLICIES * 10 :]):
        created = next(store.events(row.id, kinds=[Created.kind], columns=False), None)
        if created is not None:
            found[(created.header["policy"], created.header["shadow"])] = None
    return list(found)[:MAX_WARM_POLICIES] or [(Config.policy, None)]
