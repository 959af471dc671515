"""What a form brings: its fields, and a table from a file or from rows that were pasted; gone when the answer is made.

A post is taken only with the token of the page that it was sent from. A file lies in a folder that the server alone may
read, for as long as it is read. `Form.seal` is a digest of all that was asked, by which what was checked and what is to
be recorded are known to be the same; it is keyed by the session, so that a store which keeps it knows no erased name by
it.
"""

import hashlib
import hmac
import json
import os
import shutil
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, NamedTuple
from urllib.parse import quote

import polars as pl
from fastapi import Depends, Request, Response
from fastapi.responses import RedirectResponse
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, Headers, UploadFile
from starlette.formparsers import FormParser, MultiPartException, MultiPartParser

from restive.desk.audit import SEALED
from restive.desk.config import parse_shares
from restive.desk.table_files import EXTENSION_LIST
from restive.desk.tokens import Principal
from restive.errors import InputError, check_whole
from restive.server.auth import check_csrf, csrf, need_session
from restive.server.errors import Refusal
from restive.server.reading import Kind, read_table
from restive.server.settings import Settings
from restive.server.views.base import SAID

KINDS: Mapping[str, Kind] = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".xlsx": "xlsx", ".parquet": "parquet"}
PASTED = "pasted rows"
MAX_TEXT = 4 * 2**20  # of all fields together, in bytes: some hundred thousand pasted rows
MAX_FIELDS = 300  # the list of a round, some people at a time, has most
BOUNDS = {"max_fields": MAX_FIELDS, "max_part_size": MAX_TEXT}
MAX_NAME = 60
MAX_DIGITS = 15  # digits
SAID_SECONDS = 60  # for which the cookie that carries a sentence to the next page is kept

Operator = Annotated[Principal, Depends(need_session("operator"))]
Admin = Annotated[Principal, Depends(need_session("admin"))]


class Sheet(NamedTuple):
    """A table that was brought, what it is called, and the digest of its bytes."""

    frame: pl.DataFrame
    where: str
    digest: str


@dataclass(frozen=True)
class Form:
    """The fields of a post, and its file if there is one."""

    fields: dict[str, str]
    file: UploadFile | None = None
    secret: str = ""

    def text(self, name: str) -> str:
        """What was typed, without blanks around it."""
        return self.fields.get(name, "").strip()

    def ticked(self, name: str) -> bool:
        """Whether a box is ticked."""
        return bool(self.fields.get(name))

    def lines(self, name: str) -> list[str]:
        """The lines of a text area that have anything in them."""
        return [line.strip() for line in self.fields.get(name, "").splitlines() if line.strip()]

    def ids(self, name: str) -> list[str] | None:
        """The ids of a text area, None if it is empty."""
        return self.lines(name) or None

    def shares(self, name: str) -> dict[str, float]:
        """The shares of groups, one on each line, with or without blanks around the sign."""
        return parse_shares(["=".join(map(str.strip, line.rsplit("=", 1))) for line in self.lines(name)])

    def whole(self, name: str, low: int, high: int | None = None) -> int | None:
        """A whole number, None if the field is empty."""
        text = self.text(name)
        return check_whole(name.replace("_", " "), read_whole(text), low, high) if text else None

    def seal(self, names: Sequence[str], sheet: Sheet | None = None) -> str:
        """The digest of some fields and of the table, as they came."""
        asked = [sheet.digest if sheet else None, [[name, self.fields.get(name, "")] for name in names]]
        return SEALED + hmac.new(self.secret.encode(), json.dumps(asked).encode(), hashlib.sha256).hexdigest()

    def seal_all(self) -> str:
        """The digest of all fields but those that change with each page."""
        return self.seal(sorted(set(self.fields) - {"csrf", "key"}))


def read_whole(text: str) -> int | str:
    """The number that a text is, or the text itself, for the desk to refuse in its own words."""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= MAX_DIGITS else text


def read_decimal(text: str) -> float | str:
    """The number that a text is, also one with a decimal comma, or the text itself."""
    try:
        return float(text.replace(",", ".")) if len(text) <= MAX_NAME else text
    except ValueError:
        return text


def make_key() -> str:
    """A key by which the same post, sent twice, is known."""
    return os.urandom(16).hex()


def go_on(request: Request, address: str, said: str = "") -> Response:
    """On to another page after a post, which says there what was done; loading that page again does nothing twice."""
    answer = RedirectResponse(f"{address}#main", 303)  # or a browser would keep the place in the page it came from
    if said:
        secure = request.app.state.settings.secure
        answer.set_cookie(SAID, quote(said), SAID_SECONDS, secure=secure, httponly=True, samesite="lax")
    return answer


@asynccontextmanager
async def take_form(request: Request) -> AsyncIterator[Form]:
    """The form of a post that came from a page of this server."""
    taken = await _parse(request)
    try:
        fields = {name: value for name, value in taken.items() if isinstance(value, str)}
        check_csrf(request, fields.get("csrf"))
        files = [value for value in taken.values() if isinstance(value, UploadFile) and value.filename]
        yield Form(fields, files[0] if files else None, csrf(request))
    finally:
        await taken.close()


async def _parse(request: Request) -> FormData:
    """The fields and files of a body; browsers send UTF-8, and some other codecs take for ever over a long text."""
    kind, about = parse_options_header(request.headers.get("Content-Type"))
    if about.get(b"charset", b"utf-8").lower() not in (b"utf-8", b"utf8"):
        raise Refusal(415, "The form must be in UTF-8.")
    try:
        async with aclosing(request.stream()) as stream:
            if kind == b"multipart/form-data":
                return await Parts(request.headers, stream).parse()
            if kind == b"application/x-www-form-urlencoded":
                return await FormParser(request.headers, stream, **BOUNDS).parse()
    except (MultiPartException, FormParserError, UnicodeError):
        sentence = "The form could not be read; load the page again and send it once more. Nothing was recorded."
        raise Refusal(400, sentence) from None
    return FormData()


class Parts(MultiPartParser):
    """The parts of a form: one file, and fields that are together no larger than a pasted table may be."""

    def __init__(self, headers: Headers, stream: AsyncGenerator[bytes, None]) -> None:
        super().__init__(headers, stream, max_files=1, **BOUNDS)
        self._typed = 0

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        """Take a piece of a part."""
        if self._current_part.file is None:
            self._typed += end - start
            if self._typed > MAX_TEXT:
                raise Refusal(413, f"More was typed or pasted than {MAX_TEXT >> 20} MB; send it as a file instead.")
        super().on_part_data(data, start, end)


async def read_brought(form: Form, settings: Settings) -> Sheet | None:
    """The table of a form: its file, or the rows that were pasted; None where there is neither."""
    pasted = bool(form.text("rows"))
    if form.file is None and not pasted:
        return None
    if form.file is not None and pasted:
        raise InputError("There are a file and pasted rows; keep one of them.")
    name = PASTED if form.file is None else plain_name(form.file.filename or "")
    ending = ".csv" if form.file is None else Path(name).suffix.lower()
    if ending not in KINDS:
        raise InputError(f"{name}: cannot read files that end in {ending!r}; save it as {EXTENSION_LIST}.")
    with tempfile.TemporaryDirectory(prefix="restive-") as folder:
        place = Path(folder) / f"table{ending}"
        digest = await run_in_threadpool(_put, form, place)
        return Sheet(await read_table(place, KINDS[ending], name, settings.reading), name, digest)


def plain_name(name: str) -> str:
    """The name of a file as a sentence can show it: no folders, nothing that cannot be printed, its ending kept.

    >>> plain_name("C:/lists/Monday\\x07.csv")
    'Monday.csv'
    """
    last = name.replace("\\", "/").rpartition("/")[2]
    shown = "".join(letter for letter in last if letter.isprintable()).strip()
    return shown if len(shown) <= MAX_NAME else f"{shown[: MAX_NAME - 10]}…{shown[-9:]}"


def _put(form: Form, place: Path) -> str:
    """Write the table to a file that its owner alone may read; the digest of it."""
    with os.fdopen(os.open(place, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b") as copy:
        if form.file is None:
            copy.write(form.fields["rows"].encode())
        else:
            _copy(form.file.file, copy)
        copy.seek(0)
        return hashlib.file_digest(copy, "sha256").hexdigest()


def _copy(source: IO[bytes], copy: IO[bytes]) -> None:
    source.seek(0)
    shutil.copyfileobj(source, copy, 2**20)
