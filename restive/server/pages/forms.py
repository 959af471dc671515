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
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, NamedTuple
from urllib.parse import quote

import polars as pl
from fastapi import Depends, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from restive.desk.sheets import ENDINGS
from restive.desk.tokens import Holder
from restive.errors import InputError, check_whole
from restive.server.failures import Refusal
from restive.server.identity import check_csrf, csrf, need_session
from restive.server.reading import Kind, read_table
from restive.server.settings import Settings

KINDS: Mapping[str, Kind] = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".xlsx": "xlsx", ".parquet": "parquet"}
PASTED = "pasted rows"
LARGEST_TEXT = 4 * 2**20  # of one field, in bytes: some hundred thousand pasted rows
MOST_FIELDS = 600
LONGEST_NAME = 60
LONGEST_WHOLE = 15  # digits
SAID, SAID_SECONDS = "restive_said", 60  # the cookie that carries a sentence to the next page

# What the desk says of its command line, and where the same is on a page.
Operator = Annotated[Holder, Depends(need_session("operator"))]
Admin = Annotated[Holder, Depends(need_session("admin"))]


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

    def whole(self, name: str, low: int, high: int | None = None) -> int | None:
        """A whole number, None if the field is empty."""
        text = self.text(name)
        return check_whole(name.replace("_", " "), read_whole(text), low, high) if text else None

    def seal(self, names: Sequence[str], sheet: Sheet | None = None) -> str:
        """The digest of some fields and of the table, as they came."""
        asked = [sheet.digest if sheet else None, [[name, self.fields.get(name, "")] for name in names]]
        return hmac.new(self.secret.encode(), json.dumps(asked).encode(), hashlib.sha256).hexdigest()

    def seal_all(self) -> str:
        """The digest of all fields but those that change with each page."""
        return self.seal(sorted(set(self.fields) - {"csrf", "key"}))


def read_whole(text: str) -> int | str:
    """The number that a text is, or the text itself, for the desk to refuse in its own words."""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= LONGEST_WHOLE else text


def read_decimal(text: str) -> float | str:
    """The number that a text is, also one with a decimal comma, or the text itself."""
    try:
        return float(text.replace(",", ".")) if len(text) <= LONGEST_NAME else text
    except ValueError:
        return text


def make_key() -> str:
    """A key by which the same post, sent twice, is known."""
    return os.urandom(16).hex()


def is_fragment(request: Request) -> bool:
    """Whether htmx asks, for a part of the page only."""
    return "HX-Request" in request.headers and request.headers.get("HX-Request-Type") != "full"


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
    try:
        taken = await request.form(max_files=1, max_fields=MOST_FIELDS, max_part_size=LARGEST_TEXT)
    except HTTPException as error:
        raise _refuse(str(error.detail)) from None
    try:
        fields = {name: value for name, value in taken.items() if isinstance(value, str)}
        check_csrf(request, fields.get("csrf"))
        files = [value for value in taken.values() if isinstance(value, UploadFile) and value.filename]
        yield Form(fields, files[0] if files else None, csrf(request))
    finally:
        await taken.close()


def _refuse(detail: str) -> Refusal:
    if "maximum size" in detail:
        return Refusal(413, f"More was typed or pasted than {LARGEST_TEXT // 2**20} MB; send it as a file instead.")
    return Refusal(400, "The form could not be read; load the page again and send it once more. Nothing was recorded.")


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
        raise InputError(f"{name}: cannot read files that end in {ending!r}; save it as {ENDINGS}.")
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
    return shown if len(shown) <= LONGEST_NAME else f"{shown[: LONGEST_NAME - 10]}…{shown[-9:]}"


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
