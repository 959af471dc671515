"""The programs that a server has open, each with a lock: a `Program` is for one caller at a time.

Whoever asks for a program waits in line and gets it in the order of asking. Work on it runs in a thread, so that the
server goes on listening; a caller who is gone or out of time leaves the line at once, but a work that has begun is
waited for, because nobody else may have the program until it is done.
"""

import asyncio
import contextvars
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import ParamSpec, TypeVar

from restive.desk.desk import Desk
from restive.desk.program import Program
from restive.errors import NotThere

P = ParamSpec("P")
T = TypeVar("T")
MOST_OPEN = 64  # programs kept in memory; the one not used for longest goes first
THREADS = 8


class _Opened:
    def __init__(self, program: Program) -> None:
        self.program, self.lock = program, asyncio.Lock()


class Programs:
    """The open programs of a desk."""

    def __init__(self, desk: Desk, threads: int = THREADS) -> None:
        self.desk = desk
        self._opened: OrderedDict[str, _Opened] = OrderedDict()
        self._ids: dict[str, int] = {}  # a program is never renamed nor removed
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="desk")

    @asynccontextmanager
    async def using(self, name: str) -> AsyncIterator[Program]:
        """The program of that name, for this caller alone."""
        if name not in self._opened:
            program = await self.run(self._find, name)
            self._opened.setdefault(name, _Opened(program))  # somebody else may have been quicker
        opened = self._opened[name]
        self._opened.move_to_end(name)
        async with opened.lock:
            yield opened.program
        self._close_some()

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

    def _find(self, name: str) -> Program:
        try:
            return self.desk.program(name)
        except NotThere:
            # Not the desk's own sentence: it names other programs, which the caller may not be allowed to see.
            raise NotThere(f"There is no program {name!r}.") from None

    def _close_some(self) -> None:
        """Close programs that nobody uses, the one not used for longest first, as long as there are too many."""
        idle = [name for name, opened in self._opened.items() if not opened.lock.locked()]
        for name in idle[: max(len(self._opened) - MOST_OPEN, 0)]:
            del self._opened[name]
