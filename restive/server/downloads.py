"""Tables and whole programs as file downloads, for the API and the pages: written by a thread to a temporary file and sent from there.

Long tables and lists are written in parts, so that the memory of the server does not grow with the number of people.
"""

import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.types import Receive, Scope, Send

from restive.desk.export import export_zip
from restive.desk.program import Program
from restive.desk.recommendation import Recommendation
from restive.desk.status import write_calendar
from restive.desk.table_files import write_table_file
from restive.desk.tables import LONG_TABLES, make_parts, make_table
from restive.errors import NotFound
from restive.server.program_pool import Programs
from restive.server.uploads import TABLE_TYPES

ZIP, CALENDAR = "application/zip", "text/calendar"
# The call list, all columns of the list, or the people without outcomes; each is a table to fill in.
SheetPart = Literal["call", "all", "missing"]
MEDIA_TYPES: dict[str, str] = {ending: media_type for media_type, ending in TABLE_TYPES.items()}


class Sheet(NamedTuple):
    """A table of a program to be sent as a file of the format that `ending` names; `write` writes it to a path."""

    program: str
    name: str
    ending: str
    write: Callable[[Path], None]

    @property
    def filename(self) -> str:
        """The name of the file."""
        return f"{self.program}-{self.name}.{self.ending}"


def make_list_sheet(recommendation: Recommendation, ending: str, part: SheetPart = "call") -> Sheet:
    """The list of a round, or a part of it."""
    name = f"round-{recommendation.round}" + ("" if part == "call" else f"-{part}")
    if part == "missing":
        write = partial(_write_missing, recommendation)
    else:
        write = partial(recommendation.write, full=part == "all")
    return Sheet(recommendation.program, name, ending, write)


def _write_missing(recommendation: Recommendation, path: Path) -> None:
    write_table_file(recommendation.to_report, path, recommendation.choices, recommendation.totals.label)


def make_table_sheet(program: Program, table: str, ending: str) -> Sheet | Response:
    """A table of `restive.desk.tables`; a long one is written at once, in parts, because the program changes later."""
    if ending not in MEDIA_TYPES:
        raise NotFound(f"There is no table in this format; the formats are {', '.join(MEDIA_TYPES)}.")
    if table not in LONG_TABLES:
        return Sheet(program.name, table, ending, partial(write_table_file, make_table(program, table)))
    sheet = Sheet(program.name, table, ending, lambda path: write_table_file(make_parts(program, table), path))
    return make_file_response(write_file(sheet), MEDIA_TYPES[ending], sheet.filename)


def make_calendar_response(program: Program) -> Response:
    """The due dates of lists as an iCalendar file, as a file response."""
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(f'{program.name}.ics')}"}
    return Response(write_calendar(program), media_type=CALENDAR, headers=headers)


def make_export(program: Program) -> Response:
    """The whole program as a ZIP file, as a file response."""
    folder = Path(tempfile.mkdtemp(prefix="restive-"))
    try:
        path = export_zip(program, folder / "export.zip")
        return make_file_response(path, ZIP, f"{program.name}.zip")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def make_file_response(path: Path, media_type: str, filename: str) -> Response:
    """A response that sends a file and removes its folder."""
    response = TemporaryFileResponse(path, media_type=media_type, filename=filename, stat_result=path.stat())
    del response.headers["etag"], response.headers["last-modified"]  # they are those of the temporary file
    return response


async def send_sheet(request: Request, sheet: Sheet | Response) -> Response:
    """The table as a file response, if it is not one already."""
    if isinstance(sheet, Response):
        return sheet
    programs: Programs = request.app.state.programs
    path = await programs.write(request, sheet.program, write_file, sheet)
    return make_file_response(path, MEDIA_TYPES[sheet.ending], sheet.filename)


def write_file(sheet: Sheet) -> Path:
    """Write the table to a file in a temporary folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix="restive-"))
    try:
        path = folder / f"{sheet.name}.{sheet.ending}"
        sheet.write(path)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return path


class TemporaryFileResponse(FileResponse):
    """A file response that removes the file's folder at the end, even if the client disconnects."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the file."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            shutil.rmtree(Path(self.path).parent, ignore_errors=True)
