"""A list as a file, for the API and the pages: written while others may have the program, and sent from the disk.

The file lies in the server's own folder and has no name any more by the time it is sent, so that nothing of it is left
behind, however the sending ends. Only a piece of it is in memory at a time.
"""

import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO, NamedTuple
from urllib.parse import quote

import anyio
import polars as pl
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from restive.desk.recommendation import Advice
from restive.desk.table_files import write_table_file
from restive.server.program_pool import Programs
from restive.server.uploads import KINDS

PIECE = 256 << 10
TYPES: dict[str, str] = {ending: kind for kind, ending in KINDS.items()}


class Sheet(NamedTuple):
    """A list that is to be sent as a file of that kind; it stays what it is, whatever becomes of its program."""

    advice: Advice
    ending: str
    missing: bool = False  # only those of whom nothing is known yet, as a table to fill in

    @property
    def called(self) -> str:
        """The name of the file."""
        rest = "-missing" if self.missing else ""
        return f"{self.advice.program}-round-{self.advice.round}{rest}.{self.ending}"


async def send_sheet(request: Request, sheet: Sheet) -> Response:
    """The whole list as a file."""
    programs: Programs = request.app.state.programs
    file = await programs.write(request, sheet.advice.program, write_file, sheet)
    called = quote(sheet.called, safe="")
    return FromDisk(
        file,
        headers={
            "Content-Disposition": f"attachment; filename=\"list.{sheet.ending}\"; filename*=UTF-8''{called}",
            "Content-Length": str(os.fstat(file.fileno()).st_size),
        },
        media_type=TYPES[sheet.ending],
    )


def write_file(sheet: Sheet) -> BinaryIO:
    """An open file that is gone once it is closed."""
    # Where an open file cannot be removed it stays until the server ends, which removes its folder.
    with tempfile.TemporaryDirectory(prefix="restive-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / f"list.{sheet.ending}"
        blank = pl.lit(None, dtype=pl.String)
        listed = sheet.advice.table.with_columns(done=blank, next_state=blank)
        write_table_file(sheet.advice.to_report if sheet.missing else listed, path)
        return path.open("rb")


class FromDisk(StreamingResponse):
    """An open file as an answer, closed at its end."""

    def __init__(self, file: BinaryIO, headers: dict[str, str], media_type: str) -> None:
        super().__init__(_read(file), headers=headers, media_type=media_type)
        self._file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it piece by piece, as the caller takes it."""
        with self._file:
            await super().__call__(scope, receive, send)


async def _read(file: BinaryIO) -> AsyncIterator[bytes]:
    while piece := await anyio.to_thread.run_sync(file.read, PIECE):
        yield piece
