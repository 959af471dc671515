"""Lists and whole programs as file downloads, for the API and the pages: written by a thread to a temporary file and sent from there."""

import shutil
import tempfile
from pathlib import Path
from typing import Literal, NamedTuple

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.types import Receive, Scope, Send

from restive.desk.export import export_zip
from restive.desk.program import Program
from restive.desk.recommendation import Recommendation
from restive.desk.table_files import write_table_file
from restive.server.program_pool import Programs
from restive.server.uploads import TABLE_TYPES

ZIP = "application/zip"
# The call list, all columns of the list, or the people without outcomes; each is a table to fill in.
SheetPart = Literal["call", "all", "missing"]
MEDIA_TYPES: dict[str, str] = {ending: media_type for media_type, ending in TABLE_TYPES.items()}


class Sheet(NamedTuple):
    """A list to be sent as a file of the format that `ending` names."""

    recommendation: Recommendation
    ending: str
    part: SheetPart = "call"

    @property
    def filename(self) -> str:
        """The name of the file."""
        suffix = "" if self.part == "call" else f"-{self.part}"
        return f"{self.recommendation.program}-round-{self.recommendation.round}{suffix}.{self.ending}"


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


async def send_sheet(request: Request, sheet: Sheet) -> Response:
    """The list as a file response."""
    programs: Programs = request.app.state.programs
    path = await programs.write(request, sheet.recommendation.program, write_file, sheet)
    return make_file_response(path, MEDIA_TYPES[sheet.ending], sheet.filename)


def write_file(sheet: Sheet) -> Path:
    """Write the list to a file in a temporary folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix="restive-"))
    try:
        path = folder / f"list.{sheet.ending}"
        recommendation = sheet.recommendation
        if sheet.part == "missing":
            write_table_file(recommendation.to_report, path, recommendation.choices)
        else:
            recommendation.write(path, full=sheet.part == "all")
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
