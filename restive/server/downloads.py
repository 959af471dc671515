"""Lists and whole programs as file downloads, for the API and the pages: written by a thread to a temporary file and sent from there."""

import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

import polars as pl
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
MEDIA_TYPES: dict[str, str] = {ending: media_type for media_type, ending in TABLE_TYPES.items()}


class Sheet(NamedTuple):
    """A list to be sent as a file of the format that `ending` names."""

    recommendation: Recommendation
    ending: str
    missing: bool = False  # only the people without outcomes, as a table to fill in

    @property
    def filename(self) -> str:
        """The name of the file."""
        suffix = "-missing" if self.missing else ""
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
        blank = pl.lit(None, dtype=pl.String)
        listed = sheet.recommendation.table.with_columns(done=blank, next_state=blank)
        write_table_file(sheet.recommendation.to_report if sheet.missing else listed, path)
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
