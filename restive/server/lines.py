"""Standing in line for something that few may have at a time, in the order of asking.

A caller who is gone leaves the line, and nothing is done in their name; one who has stood there for too long is sent
away with a word on when to come back. Whoever has had their turn keeps it until they are done, gone or not.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.requests import ClientDisconnect, Request

from restive.server.errors import Refusal

LATER = {"Retry-After": "10"}
BUSY = "Others are still at work there; nothing of this request was done: try again in a while."


@asynccontextmanager
async def in_turn(line: asyncio.Lock | asyncio.Semaphore, request: Request | None = None) -> AsyncIterator[None]:
    """Run the block when it is the caller's turn; without a request it is waited for however long it takes."""
    await (line.acquire() if request is None else _stand(line, request))
    try:
        yield
    finally:
        line.release()


async def _stand(line: asyncio.Lock | asyncio.Semaphore, request: Request) -> None:
    taking, leaving = asyncio.ensure_future(line.acquire()), asyncio.ensure_future(_leave(request))
    patience = request.app.state.settings.queue_seconds
    try:
        await asyncio.wait([taking, leaving], timeout=patience, return_when=asyncio.FIRST_COMPLETED)
        if not taking.done() and leaving.done():
            leaving.result()  # a body that nobody asked for may have been refused
            raise ClientDisconnect
        if not taking.done():
            request.state.busy = True  # and not the store
            raise Refusal(503, BUSY, LATER)
    except BaseException:
        if not taking.cancel():  # it was got in the very last moment
            line.release()
        raise
    finally:
        leaving.cancel()
        leaving.add_done_callback(lambda task: task.cancelled() or task.exception())


async def _leave(request: Request) -> None:
    """Wait until the caller is gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
