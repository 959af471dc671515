"""The style sheets, scripts and pictures of the pages, held in memory and named by what they contain.

An address carries the digest of its file, so that a browser keeps it for a year and still sees a new version at once.
Only files that were there at the first request are served: no path of a request ever reaches the disk.
"""

import gzip
import hashlib
from functools import cache
from pathlib import Path
from typing import NamedTuple

from fastapi import APIRouter, Request, Response

from restive.errors import NotFound

FOLDER = Path(__file__).parent.parent / "static"
KINDS = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".LICENSE": "text/plain; charset=utf-8",
}
KEPT = "public, max-age=31536000, immutable"
ASKED_AGAIN = "public, max-age=0, must-revalidate"

router = APIRouter(include_in_schema=False)


class File(NamedTuple):
    """A file as it is sent."""

    content: bytes
    packed: bytes  # by gzip
    kind: str
    digest: str


@cache
def files() -> dict[str, File]:
    """All files by name, such as vendor/htmx.min.js."""
    found = {}
    for place in sorted(FOLDER.rglob("*")):
        if place.suffix in KINDS:
            content = place.read_bytes()
            digest = hashlib.sha256(content).hexdigest()[:16]
            packed = gzip.compress(content, mtime=0)
            found[place.relative_to(FOLDER).as_posix()] = File(content, packed, KINDS[place.suffix], digest)
    return found


def address(name: str) -> str:
    """Where a page finds a file."""
    return f"/static/{name}?v={files()[name].digest}"


@router.get("/static/{name:path}")
def send(request: Request, name: str, v: str = "") -> Response:
    """One file."""
    file = files().get(name)
    if file is None:
        raise NotFound("There is no such file.")
    tag = f'"{file.digest}"'
    headers = {"ETag": tag, "Cache-Control": KEPT if v == file.digest else ASKED_AGAIN, "Vary": "Accept-Encoding"}
    if tag in request.headers.get("If-None-Match", ""):
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        return Response(file.packed, headers=headers | {"Content-Encoding": "gzip"}, media_type=file.kind)
    return Response(file.content, headers=headers, media_type=file.kind)
