"""Request bodies: JSON, and tables in other formats, which go through a temporary file.

Parsing JSON blocks all other threads, so a body without a table has a small limit, and a large table in JSON is parsed
by the child process of `restive.server.table_reader`.
"""

import hashlib
import hmac
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

import polars as pl
from fastapi import Request
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException

from restive.desk.audit import KEYED
from restive.desk.config import MAPPING
from restive.desk.table_files import quote
from restive.desk.table_mapping import parse_mapping
from restive.errors import InputError
from restive.server.errors import MAX_FAULTS, InvalidRequest
from restive.server.json_tables import TABLES, as_columns, as_object, load_json
from restive.server.program_pool import Programs
from restive.server.settings import MIB
from restive.server.table_reader import Kind, read_json_table, read_table

JSON = "application/json"
TABLE_TYPES: dict[str, Kind] = {
    "text/csv": "csv",
    "application/vnd.apache.parquet": "parquet",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
}
BINARY = "application/octet-stream"  # a table whose format its first bytes say, from clients that name no other type
SIGNATURES: dict[bytes, Kind] = {b"PAR1": "parquet", b"PK\x03\x04": "xlsx"}  # all other tables are CSV files
# What a table of text may be said to be: which of them it is, its bytes say. JSON is always UTF-8.
TEXT_ENCODINGS = ("utf-16", "utf-16le", "utf-16be", "iso-8859-1", "windows-1252")
SMALL_BYTES = 1 << 15  # JSON bodies up to this size are parsed in the event loop
MAX_THREAD_BYTES = 1 * MIB  # larger ones are parsed in a child process, all others in a thread
Model = TypeVar("Model", bound=BaseModel)
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Asked(Generic[Model]):
    """The settings of a request, its table if it has one, and a digest of both."""

    settings: Model
    table: object
    digest: str


async def take_settings(request: Request, model: type[Model], query: BaseModel | None = None) -> Asked[Model]:
    """Read a JSON body without a table, and settings in the query; a body without required fields may be left out."""
    found, required = find_media_type(request), any(each.is_required() for each in model.model_fields.values())
    content = await _receive(request, request.app.state.settings.max_form_bytes)
    given = _query_settings(query, model)
    required = required or bool(content.strip())
    if required and found != JSON:
        raise _unsupported(found, [JSON])

    def read() -> Asked[Model]:
        fields = load_json(content) if required else {}
        return Asked(check_settings(model, fields, given), None, digest(request, content))

    return await _run(request, len(content), read)


def _query_settings(query: BaseModel | None, model: type[BaseModel]) -> dict[str, Any]:
    """The settings of a model that a query string has; a default counts as absent, because generated clients send it."""
    if query is None:
        return {}
    given = query.model_dump(exclude_defaults=True, include=set(model.model_fields))
    reading = parse_mapping(**{name: given.pop(name) for name in MAPPING if name in given})
    return given | reading


async def _receive(request: Request, max_bytes: int) -> bytes:
    """The body, if it is not larger than the limit."""
    received = bytearray()
    async for chunk in request.stream():
        received += chunk
        if len(received) > max_bytes:
            raise HTTPException(413, f"A body without a table is limited to {max_bytes // 1024:,} KiB.")
    return bytes(received)


async def take_table(request: Request, model: type[Model], where: str, query: BaseModel) -> Asked[Model]:
    """Read a JSON body with its table in the field `where`, or another table whose settings are in the query."""
    found = find_media_type(request)
    given = _query_settings(query, model)
    if found in TABLE_TYPES or found == BINARY:
        sheet = getattr(query, "sheet", "")
        async with _as_file(request) as (path, checksum):
            kind = TABLE_TYPES.get(found) or find_kind(path)
            file = path.rename(path.with_suffix(f".{kind}"))
            table: object = await read_table(file, kind, where, request.app.state.settings.uploads, sheet)
        return Asked(model.model_validate({where: None} | given), table, digest(request, checksum))
    if found != JSON:
        raise _unsupported(found, [JSON, *TABLE_TYPES, BINARY])
    content = await request.body()
    fields: dict[str, object] | None = None
    parsed: pl.DataFrame | None = None
    if len(content) > MAX_THREAD_BYTES:
        fields, parsed = await read_json_table(content, where, request.app.state.settings.uploads)

    def read() -> Asked[Model]:
        settings = check_settings(model, load_json(content) if fields is None else fields, given)
        rows = getattr(settings, where)
        found: object = parsed
        if parsed is None and (rows is not None or model.model_fields[where].is_required()):
            found = as_columns(rows, where, TABLES[where])
        return Asked(settings, found, digest(request, content))

    return await _run(request, len(content), read)


def dump_settings(settings: BaseModel, *without: str) -> dict[str, Any]:
    """The settings of a request as arguments of a verb, without the table; of the mapping only what was given."""
    given = settings.model_dump(exclude={*without})
    return {name: value for name, value in given.items() if name not in MAPPING or name in settings.model_fields_set}


def find_media_type(request: Request) -> str:
    """The media type of the body; its character set must be UTF-8, or of a CSV file another one that is recognised."""
    media_type, *parameters = request.headers.get("Content-Type", "").split(";")
    found = media_type.strip().lower()
    allowed = ("utf-8", "us-ascii", *(TEXT_ENCODINGS if found == "text/csv" else ()))
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset" and value.strip().strip('"').lower() not in allowed:
            raise HTTPException(415, f"The character set of the body must be {' or '.join(allowed)}.")
    return found


def find_kind(path: Path) -> Kind:
    """The format of a table, by its first bytes."""
    with path.open("rb") as file:
        return SIGNATURES.get(file.read(4), "csv")


def _unsupported(found: str, allowed: list[str]) -> HTTPException:
    problem = f"The media type {quote(found)} is not supported" if found else "The body has no media type"
    return HTTPException(
        415, f"{problem}; Content-Type must be {' or '.join(allowed)}.", {"Accept": ", ".join(allowed)}
    )


async def _run(request: Request, size: int, read: Callable[P, T], *args: P.args, **kw: P.kwargs) -> T:
    """Parse a body, in a thread if it is large."""
    if size <= SMALL_BYTES:
        return read(*args, **kw)
    programs: Programs = request.app.state.programs
    return await programs.run(read, *args, **kw)


@asynccontextmanager
async def _as_file(request: Request) -> AsyncIterator[tuple[Path, bytes]]:
    """Write the body to a temporary file; its path and checksum."""
    checksum = hashlib.sha256()
    with tempfile.TemporaryDirectory(prefix="restive-") as folder:
        path = Path(folder) / "table"
        with path.open("wb") as file:
            async for chunk in request.stream():
                checksum.update(chunk)
                file.write(chunk)
        yield path, checksum.digest()


def digest(request: Request, content: bytes) -> str:
    """Digest of method, path, query, media type and body; keyed by the bearer token, if there is one.

    Without a key, a digest would allow a guessed name to be confirmed after it has been erased.
    """
    checksum = hashlib.sha256()
    head = [request.method, request.url.path, request.url.query, find_media_type(request)]
    for part in (*(text.encode() for text in head), content):
        checksum.update(len(part).to_bytes(8, "big"))
        checksum.update(part)
    secret = request.headers.get("Authorization", "").partition(" ")[2].strip()
    if not secret:
        return checksum.hexdigest()
    return KEYED + hmac.new(secret.encode(), checksum.digest(), "sha256").hexdigest()


def check_settings(model: type[Model], given: object, query: Mapping[str, Any] | None = None) -> Model:
    """Validate the settings in a JSON body, with those in the query where the body has none or the default."""
    fields = as_object(given)
    for name, value in (query or {}).items():
        if fields.get(name, value) not in (value, model.model_fields[name].get_default()):
            raise InputError(f"{name} differs in the query and in the body; give it once.", location=name)
        fields[name] = value
    unknown = [name for name in fields if name not in model.model_fields][MAX_FAULTS:]
    for name in unknown:  # pydantic would make an error of each
        del fields[name]
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise InvalidRequest(error.errors(include_url=False, include_input=False), len(unknown)) from None
