"""Forms: fields, and a table from a file or from pasted rows, which is deleted once it is read.

Forms carry no CSRF token: cookies are SameSite=Lax, and the middleware refuses posts from other sites. `Form.digest` is
an HMAC of what was asked: it shows that the form to be recorded is the one that was checked. Its key depends on the
session, so that a digest in the store does not reveal an erased id. An open server has no sessions; its digests have no
key and are removed from the store when somebody is erased.
"""

import hashlib
import hmac
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple
from urllib.parse import quote

from fastapi import Depends, Request, Response
from fastapi.responses import RedirectResponse
from python_multipart.multipart import parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from restive.desk.audit import KEYED, RequestContext
from restive.desk.config import parse_shares
from restive.desk.table_files import EXTENSION_LIST, TableFile
from restive.desk.tokens import Principal
from restive.errors import InputError, check_whole
from restive.server.addresses import cookie_path
from restive.server.auth import form_key, need_session
from restive.server.settings import FLASH_COOKIE, Settings
from restive.server.table_reader import Kind, read_table

FILE_TYPES: Mapping[str, Kind] = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".xlsx": "xlsx", ".parquet": "parquet"}
PASTED_ROWS = "pasted rows"
MAX_TEXT_BYTES = 4 * 2**20  # of all fields together: some hundred thousand pasted rows
MAX_FIELDS = 300  # a page of outcomes has the most
MAX_MULTIPART_FIELDS = 150  # of a form with a file; most say how columns are read
MAX_FILE_NAME, MAX_DIGITS, MAX_DECIMAL = 60, 15, 60  # characters
FLASH_SECONDS = 60

Operator = Annotated[Principal, Depends(need_session("operator"))]
Admin = Annotated[Principal, Depends(need_session("admin"))]


class Table(NamedTuple):
    """An uploaded table with its name and the digest of its bytes."""

    file: TableFile
    name: str
    digest: str


@dataclass(frozen=True)
class Form:
    """The fields of a post, and its file if there is one."""

    fields: dict[str, str]
    file: UploadFile | None = None
    key: str = ""

    def text(self, name: str) -> str:
        """The text of a field, stripped."""
        return self.fields.get(name, "").strip()

    def checked(self, name: str) -> bool:
        """Whether a check box is ticked."""
        return bool(self.fields.get(name))

    def lines(self, name: str) -> list[str]:
        """The lines of a text area that are not blank."""
        return [line.strip() for line in self.fields.get(name, "").splitlines() if line.strip()]

    def ids(self, name: str) -> list[str] | None:
        """The ids in a text area, None if it is empty."""
        return self.lines(name) or None

    def shares(self, name: str) -> dict[str, float]:
        """The shares of groups, one on each line, with or without spaces around the equals sign."""
        return parse_shares(["=".join(map(str.strip, line.rsplit("=", 1))) for line in self.lines(name)])

    def whole(self, name: str, low: int, high: int | None = None) -> int | None:
        """A whole number, None if the field is empty."""
        text = self.text(name)
        return check_whole(name.replace("_", " "), read_whole(text), low, high) if text else None

    def digest(
        self, names: Sequence[str], table: Table | None = None, reading: Mapping[str, object] | None = None
    ) -> str:
        """HMAC of some fields, of the table and of how it is read; a plain digest without a key."""
        source = [table.digest, table.file.sheet, reading] if table else None
        asked = [source, [[name, self.fields.get(name, "")] for name in names]]
        content = json.dumps(asked).encode()
        if not self.key:
            return hashlib.sha256(content).hexdigest()
        return KEYED + hmac.new(self.key.encode(), content, hashlib.sha256).hexdigest()

    def digest_all(self) -> str:
        """HMAC of all fields but the idempotency key."""
        return self.digest(sorted(set(self.fields) - {"key"}))

    async def context(self, principal: Principal) -> RequestContext:
        """The audit context of a form that is recorded as a whole."""
        asked = await run_in_threadpool(self.digest_all)
        return RequestContext(by=principal.signature, key=self.text("key") or None, asked=asked)


def read_whole(text: str) -> int | str:
    """The integer that a text is, or the text itself, which the desk then refuses."""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= MAX_DIGITS else text


def read_decimal(text: str) -> float | str:
    """The number that a text is, also with a decimal comma, or the text itself."""
    try:
        return float(text.replace(",", ".")) if len(text) <= MAX_DECIMAL else text
    except ValueError:
        return text


def make_key() -> str:
    """An idempotency key: the same post, sent twice, is recorded once."""
    return secrets.token_hex(16)


def redirect(request: Request, address: str, message: str = "") -> Response:
    """Redirect to another page after a post, and show the message there."""
    response = RedirectResponse(f"{address}#main", 303)  # without a fragment, browsers keep the one of the old page
    if message:
        text, path, secure = quote(message), cookie_path(), request.app.state.settings.secure
        response.set_cookie(FLASH_COOKIE, text, FLASH_SECONDS, path=path, secure=secure, httponly=True, samesite="lax")
    return response


@asynccontextmanager
async def take_form(request: Request) -> AsyncIterator[Form]:
    """The form of a post; its file is deleted afterwards."""
    media_type, options = parse_options_header(request.headers.get("Content-Type"))
    if options.get(b"charset", b"utf-8").lower() not in (b"utf-8", b"utf8"):  # some codecs are very slow
        raise HTTPException(415, "The form must be in UTF-8.")
    max_fields = MAX_MULTIPART_FIELDS if media_type == b"multipart/form-data" else MAX_FIELDS
    try:
        parsed = await request.form(max_files=1, max_fields=max_fields, max_part_size=MAX_TEXT_BYTES + 1024)
    except HTTPException:
        sentence = "The form could not be read. Reload the page and send it again; upload a long table as a file."
        raise HTTPException(400, sentence) from None
    try:
        fields = {name: value for name, value in parsed.items() if isinstance(value, str)}
        if sum(map(len, fields.values())) > MAX_TEXT_BYTES:
            limit = f"{MAX_TEXT_BYTES >> 20} MB"
            raise HTTPException(413, f"The typed and pasted text is larger than {limit}. Upload it as a file instead.")
        files = [value for value in parsed.values() if isinstance(value, UploadFile) and value.filename]
        yield Form(fields, files[0] if files else None, form_key(request))
    finally:
        await parsed.close()


async def read_uploaded(form: Form, settings: Settings, sheet: str = "") -> Table | None:
    """The table of a form, from its file or its pasted rows; None if there is neither."""
    if form.file is None and not form.text("rows"):
        return None
    name, ending = check_ending(form)
    with tempfile.TemporaryDirectory(prefix="restive-") as folder:
        place = Path(folder) / f"table{ending}"
        digest = await run_in_threadpool(write_table, form, place)
        file = await read_table(place, FILE_TYPES[ending], name, settings.uploads, sheet or form.text("sheet"))
        return Table(file, name, digest)


def check_ending(form: Form) -> tuple[str, str]:
    """What messages call the table of a form, and the ending of its file."""
    if form.file is not None and form.text("rows"):
        raise InputError("There are a file and pasted rows. Use one of them.")
    name = PASTED_ROWS if form.file is None else plain_name(form.file.filename or "")
    ending = ".csv" if form.file is None else Path(name).suffix.lower()
    if ending not in FILE_TYPES:
        raise InputError(f"{name}: cannot read files that end in {ending!r}; save it as {EXTENSION_LIST}.")
    return name, ending


def plain_name(name: str) -> str:
    """The name of a file for messages: without folders and control characters, shortened in the middle.

    >>> plain_name("C:/lists/Monday\\x07.csv")
    'Monday.csv'
    """
    last = name.replace("\\", "/").rpartition("/")[2]
    shown = "".join(letter for letter in last if letter.isprintable()).strip()
    return shown if len(shown) <= MAX_FILE_NAME else f"{shown[: MAX_FILE_NAME - 10]}…{shown[-9:]}"


def write_table(form: Form, place: Path) -> str:
    """Write the table to a file that only its owner can read; the digest of its bytes."""
    with os.fdopen(os.open(place, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b") as copy:
        if form.file is None:
            copy.write(form.fields["rows"].encode())
        else:
            form.file.file.seek(0)
            shutil.copyfileobj(form.file.file, copy, 2**20)
        copy.seek(0)
        return hashlib.file_digest(copy, "sha256").hexdigest()
