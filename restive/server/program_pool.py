"""The programs that a server has open, each with a lock: a `Program` is for one caller at a time.

Whoever asks for a program waits in line and gets it in the order of asking (`restive.server.lines`), and one caller has
a few places in it at most. Work on it runs in a thread, so that the server goes on listening; a caller who is gone or
out of time leaves the line at once, but a work that has begun is waited for, because nobody else may have the program
until it is done. What needs the program no longer, such as writing a file, has a line of its own.
"""

import asyncio
import contextvars
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import ParamSpec, TypeVar

import anyio
from starlette.requests import Request

from restive.api.types import ProgramSummary
from restive.desk.database import StoreError
from restive.desk.desk import Desk
from restive.desk.overview import summarise
from restive.desk.program import Program
from restive.errors import NotFound
from restive.server.errors import Refusal
from restive.server.lines import in_turn
from restive.server.rate_limit import name_address

P = ParamSpec("P")
T = TypeVar("T")
MAX_OPEN = 64  # programs kept in memory; the one not used for longest goes first
THREADS = 8
WRITERS = 2  # files written at once, so that most threads are left for programs
LATER = {"Retry-After": "1"}


class _Opened:
    def __init__(self, program: Program) -> None:
        self.program, self.lock = program, asyncio.Lock()
        self.users = 0  # who has it or waits for it
        self.summary: ProgramSummary | None = None  # when it was last asked for


class Programs:
    """The open programs of a desk."""

    def __init__(self, desk: Desk, threads: int = THREADS) -> None:
        self.desk = desk
        self._opened: OrderedDict[str, _Opened] = OrderedDict()
        self._ids: dict[str, int] = {}  # a program is never renamed nor removed
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="desk")
        self._writing = asyncio.Semaphore(WRITERS)
        self._held: Counter[tuple[str, str]] = Counter()  # requests under way, by program and caller
        self._pulse: asyncio.Future[int] | None = None

    @asynccontextmanager
    async def using(self, name: str, request: Request | None = None) -> AsyncIterator[Program]:
        """The program of that name, for this caller alone; with the request it is known when the caller is gone."""
        with self._hold(name, request):
            opened = await self._open(name)
            opened.users += 1
            try:
                async with in_turn(opened.lock, request):
                    yield opened.program
            finally:
                opened.users -= 1
                self._close_some()

    async def write(self, request: Request, name: str, function: Callable[P, T], *args: P.args, **kw: P.kwargs) -> T:
        """What the function returns, which writes something about a program without needing it."""
        with self._hold(name, request):
            async with in_turn(self._writing, request):
                return await self.run(function, *args, **kw)

    async def summarise(self, name: str, request: Request | None = None) -> ProgramSummary:
        """A program in short; of one that is busy, as it was when somebody last asked."""
        opened = self._opened.get(name)
        if opened is not None and opened.lock.locked() and opened.summary is not None:
            return opened.summary
        async with self.using(name, request) as program:
            found = await self.run(summarise, program)
            self._opened[name].summary = found
        return found

    async def run(self, function: Callable[P, T], *args: P.args, **kw: P.kwargs) -> T:
        """What the function returns, run in a thread; if the caller is cancelled it is waited for all the same."""
        call = partial(contextvars.copy_context().run, partial(function, *args, **kw))
        work = asyncio.get_running_loop().run_in_executor(self._threads, call)
        cancelled: asyncio.CancelledError | None = None
        while not work.done():
            try:
                await asyncio.wait([work])
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            work.exception()  # or asyncio would complain that nobody looked at it
            raise cancelled
        return work.result()

    async def reach_store(self, seconds: float) -> None:
        """Ask the store for next to nothing, in a thread of its own; an error when it does not answer in time.

        Whoever asks while a question is open waits for the same answer, or a store that hangs would take a thread and a
        connection each time.
        """
        if self._pulse is None or self._pulse.done():
            ask = partial(self.desk.store.length, 0)
            self._pulse = asyncio.ensure_future(anyio.to_thread.run_sync(ask, abandon_on_cancel=True))
        await asyncio.wait([self._pulse], timeout=seconds)
        if not self._pulse.done():
            raise StoreError("The store does not answer; nothing was changed: try again when it does.")
        self._pulse.result()

    def length(self, name: str) -> int:
        """How many events the program has; asks the store, and needs no lock."""
        return self.desk.store.length(self.find_id(name))

    def find_id(self, name: str) -> int:
        """The number of a program in the store."""
        if name not in self._ids:
            self._ids[name] = self._find(name).id
        return self._ids[name]

    def close(self) -> None:
        """Let the threads go once their work is done."""
        self._threads.shutdown()

    @contextmanager
    def _hold(self, name: str, request: Request | None) -> Iterator[None]:
        """Count a request; one more than a caller may have at a program is refused."""
        if request is None:
            yield
            return
        who, most = (name, _name_caller(request)), request.app.state.settings.at_once
        if self._held[who] >= most:
            raise Refusal(429, f"{most} requests of yours are under way at {name}; wait for one of them.", LATER)
        self._held[who] += 1
        try:
            yield
        finally:
            self._held[who] -= 1
            if not self._held[who]:
                del self._held[who]

    async def _open(self, name: str) -> _Opened:
        if name not in self._opened:
            program = await self.run(self._find, name)
            self._opened.setdefault(name, _Opened(program))  # somebody else may have been quicker
        self._opened.move_to_end(name)
        return self._opened[name]

    def _find(self, name: str) -> Program:
        try:
            return self.desk.program(name)
        except NotFound:
            # Not the desk's own sentence: it names other programs, which the caller may not be allowed to see.
            raise NotFound(f"There is no program {name!r}.") from None

    def _close_some(self) -> None:
        """Close programs that nobody uses, the one not used for longest first, as long as there are too many."""
        idle = [name for name, opened in self._opened.items() if not opened.users]
        for name in idle[: max(len(self._opened) - MAX_OPEN, 0)]:
            del self._opened[name]


def _name_caller(request: Request) -> str:
    """Whose request it is: the token's, or without one that of the address."""
    principal = getattr(request.state, "principal", None)
    return name_address(request.scope) if principal is None or principal.id is None else f"token {principal.id}"
