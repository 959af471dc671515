"""Request bodies: JSON, and tables in other formats, which go through a temporary file.

JSON tables are lists of rows or an object of columns. They are checked column by column, without an object for each
row, so that a hundred thousand rows cost little more than parsing; only a faulty table is searched row by row.
"""

import hashlib
import hmac
import json
import math
import re
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Generic, NoReturn, ParamSpec, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException

from restive.desk.audit import KEYED
from restive.desk.table_files import quote
from restive.desk.table_schema import Fault, TableError
from restive.errors import InputError
from restive.server.errors import MAX_FAULTS, InvalidRequest
from restive.server.program_pool import Programs
from restive.server.table_reader import Kind, read_table

JSON = "application/json"
TABLE_TYPES: dict[str, Kind] = {
    "text/csv": "csv",
    "application/vnd.apache.parquet": "parquet",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
}
SMALL_BYTES = 1 << 15  # JSON bodies up to this size are parsed in the event loop
MAX_LISTS = 250_000  # parsing millions of lists would block all other threads
MAX_WHOLE = 2**53
SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
TYPE_NAMES = {
    str: "a text", int: "a whole number", float: "a number", bool: "true or false", type(None): "null",
    list: "a list", dict: "an object",
}  # fmt: skip

ColumnTypes = Mapping[str, tuple[type, ...]]  # the types that the cells of each column may have
STATES: ColumnTypes = {"agent": (str, int), "state": (str, int, type(None)), "group": (str, type(None))}
OUTCOMES: ColumnTypes = {
    "agent": (str, int),
    "done": (bool, type(None)),
    "next_state": (str, int, type(None)),
    "reward": (int, float, type(None)),
    "round": (int, type(None)),
}
REQUIRED_COLUMNS = ("agent", "state")

Model = TypeVar("Model", bound=BaseModel)
P = ParamSpec("P")
T = TypeVar("T")
Place = tuple[int | None, str | None]  # row and column


@dataclass(frozen=True)
class Asked(Generic[Model]):
    """The settings of a request, its table if it has one, and a digest of both."""

    settings: Model
    table: object
    digest: str


async def take_settings(request: Request, model: type[Model]) -> Asked[Model]:
    """Read a JSON body without a table."""
    if (found := find_media_type(request)) != JSON:
        raise _unsupported(found, [JSON])
    content = await request.body()

    def read() -> Asked[Model]:
        return Asked(check_settings(model, load_json(content)), None, digest(request, content))

    return await _run(request, len(content), read)


async def take_table(
    request: Request, model: type[Model], where: str, types: ColumnTypes, query: BaseModel
) -> Asked[Model]:
    """Read a JSON body with its table in the field `where`, or another table whose settings are in the query."""
    found = find_media_type(request)
    if found in TABLE_TYPES:
        given = query.model_dump(exclude_unset=True, include=set(model.model_fields))
        async with _as_file(request, TABLE_TYPES[found]) as (path, checksum):
            table: object = await read_table(path, TABLE_TYPES[found], where, request.app.state.settings.uploads)
        return Asked(model.model_validate({where: None} | given), table, digest(request, checksum))
    if found != JSON:
        raise _unsupported(found, [JSON, *TABLE_TYPES])
    if given := query.model_dump(exclude_defaults=True, include=set(model.model_fields)):
        raise InputError(f"{min(given)} is in the query; with a JSON body it belongs in the body.")
    content = await request.body()

    def read() -> Asked[Model]:
        settings = check_settings(model, load_json(content))
        rows = getattr(settings, where)
        missing = rows is None and not model.model_fields[where].is_required()
        return Asked(settings, None if missing else as_columns(rows, where, types), digest(request, content))

    return await _run(request, len(content), read)


def find_media_type(request: Request) -> str:
    """The media type of the body; its character set must be UTF-8."""
    media_type, *parameters = request.headers.get("Content-Type", "").split(";")
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset" and value.strip().strip('"').lower() not in ("utf-8", "us-ascii"):
            raise HTTPException(415, "The body must be UTF-8 text.")
    return media_type.strip().lower()


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
async def _as_file(request: Request, ending: str) -> AsyncIterator[tuple[Path, bytes]]:
    """Write the body to a temporary file; its path and checksum."""
    checksum = hashlib.sha256()
    with tempfile.TemporaryDirectory(prefix="restive-") as folder:
        path = Path(folder) / f"table.{ending}"
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


def load_json(content: bytes) -> object:
    """Parse JSON in UTF-8; whole numbers such as 3.0 become integers.

    >>> load_json(b'{"budget": 3.0}')
    {'budget': 3}
    """
    if content.count(b"[") > MAX_LISTS:
        raise HTTPException(400, f"The body has more than {MAX_LISTS:,} JSON lists.")
    try:
        found = json.loads(content.decode("utf-8-sig"), parse_constant=_refuse_constant, parse_float=_parse_number)
        if SURROGATE.search(content):
            json.dumps(found, ensure_ascii=False).encode()
    except UnicodeError:
        raise HTTPException(400, "The body is not valid UTF-8.") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise HTTPException(400, f"The body is not valid JSON at {place}: {error.msg}.") from None
    except RecursionError:
        raise HTTPException(400, "The body has too many nested JSON lists or objects.") from None
    except ValueError:
        raise HTTPException(400, "The body has a number with too many digits.") from None
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise HTTPException(400, f"The body is not valid JSON: {name} is not a number; write null for an unknown value.")


def _parse_number(text: str) -> float | int:
    number = float(text)
    if not math.isfinite(number):
        raise HTTPException(400, f"The number {text[:20]} in the body is too large.")
    return int(number) if number.is_integer() and abs(number) < MAX_WHOLE else number


def check_settings(model: type[Model], given: object) -> Model:
    """Validate the settings in a JSON body."""
    if not isinstance(given, dict):
        raise InputError(f"The body is {TYPE_NAMES[type(given)]}; it must be an object.")
    unknown = [name for name in given if name not in model.model_fields][MAX_FAULTS:]
    for name in unknown:  # pydantic would make an error of each
        del given[name]
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise InvalidRequest(error.errors(include_url=False, include_input=False), len(unknown)) from None


def as_columns(table: object, where: str, types: ColumnTypes) -> dict[str, list[object]]:
    """A JSON table as columns whose cells have the right types.

    >>> as_columns([{"agent": "ann", "state": 1}, {"agent": "ben", "state": None}], "states", STATES)
    {'agent': ['ann', 'ben'], 'state': [1, None]}
    """
    if isinstance(table, list):
        columns = _from_rows(table, where, types)
    elif isinstance(table, dict):
        columns = _check_columns(table, where, types)
    else:
        raise InputError(f"{where} is {TYPE_NAMES[type(table)]}; it must be a list of rows or an object of columns.")
    for name, cells in columns.items():
        if not set(map(type, cells)) <= set(types[name]):
            expected = " or ".join(
                TYPE_NAMES[kind] for kind in types[name] if not (kind is int and float in types[name])
            )
            wrong = (((row, name), cell) for row, cell in enumerate(cells, 1) if type(cell) not in types[name])
            _raise_faults(where, ((at, f"{TYPE_NAMES[type(cell)]}, but it must be {expected}") for at, cell in wrong))
    return columns


def _from_rows(rows: list[object], where: str, types: ColumnTypes) -> dict[str, list[object]]:
    """The cells of rows by column; columns that no row has are left out."""
    if set(map(type, rows)) - {dict}:
        wrong = (((number, None), row) for number, row in enumerate(rows, 1) if not isinstance(row, dict))
        _raise_faults(where, ((at, f"{TYPE_NAMES[type(row)]}, but a row must be an object") for at, row in wrong))
    objects: list[dict[str, object]] = rows  # type: ignore[assignment]
    names = set().union(*objects)
    if unknown := names - set(types):
        places = ((number, name) for number, row in enumerate(objects, 1) for name in row if name in unknown)
        _raise_faults(where, ((at, _unknown_column(types)) for at in places))
    required = _required(types)
    try:
        columns = {name: list(map(itemgetter(name), objects)) for name in required}
    except KeyError:
        places = ((number, name) for number, row in enumerate(objects, 1) for name in required if name not in row)
        _raise_faults(where, ((at, "it is missing") for at in places))
    optional = [name for name in types if name in names and name not in columns]
    return columns | {name: [row.get(name) for row in objects] for name in optional}


def _check_columns(table: dict[str, object], where: str, types: ColumnTypes) -> dict[str, list[object]]:
    faults: list[tuple[Place, str]] = [((None, name), _unknown_column(types)) for name in table if name not in types]
    faults += [((None, name), "the column is missing") for name in _required(types) if name not in table]
    faults += [
        ((None, name), f"{TYPE_NAMES[type(cells)]}, but a column must be a list")
        for name, cells in table.items()
        if name in types and not isinstance(cells, list)
    ]
    if faults:
        _raise_faults(where, faults)
    columns: dict[str, list[object]] = table  # type: ignore[assignment]
    filled = {name: cells for name, cells in columns.items() if cells or name in _required(types)}
    lengths = {name: len(cells) for name, cells in filled.items()}
    if len(set(lengths.values())) > 1:
        text = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise InputError(f"{where}: the columns differ in length ({text}); each must have one cell for each agent.")
    return filled


def _required(types: ColumnTypes) -> list[str]:
    return [name for name in REQUIRED_COLUMNS if name in types]


def _unknown_column(types: ColumnTypes) -> str:
    return f"unknown column; there are {', '.join(types)}"


def _raise_faults(where: str, faults: Iterable[tuple[Place, str]]) -> NoReturn:
    """Raise the first faults, and count the others."""
    remaining = iter(faults)
    shown = [Fault(*place, message) for place, message in islice(remaining, MAX_FAULTS)]
    raise TableError(where, shown, len(shown) + sum(1 for _ in remaining))
