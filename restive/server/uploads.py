"""Bodies of requests: JSON read strictly and quickly, tables of other kinds by way of a file that is gone afterwards.

JSON is UTF-8 and means one thing only: a name that comes twice in an object, NaN, a number too large for any machine,
half of a surrogate pair and a thousand brackets in one another are refused.
"""

import hashlib
import hmac
import json
import math
import re
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, NoReturn, ParamSpec, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError

from restive.desk.audit import SEALED
from restive.desk.table_files import quote
from restive.errors import InputError
from restive.server.columns import SAID, Kinds, as_columns
from restive.server.errors import MAX_FAULTS, Misfit, Refusal
from restive.server.program_pool import Programs
from restive.server.reading import read_table

JSON = "application/json"
KINDS: dict[str, Literal["csv", "xlsx", "parquet"]] = {
    "text/csv": "csv",
    "application/vnd.apache.parquet": "parquet",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
}
SMALL = 1 << 15  # bytes of JSON that are read at once, without asking a thread
MAX_LISTS = 250_000  # in one body: no table needs more than a few, and reading millions leaves no other thread a turn
SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
Model = TypeVar("Model", bound=BaseModel)
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Asked(Generic[Model]):
    """What a request brought: its settings, its table if it has one, and the digest of all of it."""

    settings: Model
    table: object
    digest: str


class _NotPlain(ValueError):  # noqa: N818 - a sentence on its way to a refusal
    pass


def load_json(content: bytes) -> object:
    """What the text says, if it is JSON that means one thing only.

    >>> load_json(b'{"budget": 3.0}')
    {'budget': 3}
    """
    if content.count(b"[") > MAX_LISTS:
        raise Refusal(400, f"The body is not plain JSON: more than {MAX_LISTS:,} opening brackets [ are in it.")
    try:
        text = content.decode("utf-8-sig")
        found = json.loads(
            text, object_pairs_hook=_make_object, parse_constant=_refuse_constant, parse_float=_read_number
        )
        if SURROGATE.search(content):
            json.dumps(found, ensure_ascii=False).encode()
    except UnicodeDecodeError:
        raise Refusal(400, "The body is not UTF-8 text; send JSON in UTF-8.") from None
    except UnicodeEncodeError:
        raise Refusal(400, "The body is not plain JSON: half of a surrogate pair stands in a text.") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise Refusal(400, f"The body is not JSON, at {place}: {error.msg}.") from None
    except RecursionError:
        raise Refusal(400, "The body is not plain JSON: too many brackets stand in one another.") from None
    except ValueError as error:
        sentence = str(error) if isinstance(error, _NotPlain) else "a number in it has too many digits"
        raise Refusal(400, f"The body is not plain JSON: {sentence}.") from None
    return found


def _make_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _NotPlain(f"{quote(name)} comes twice in one object")
            seen.add(name)
    return made


def _refuse_constant(name: str) -> NoReturn:
    raise _NotPlain(f"{name} is no number; write null for what is not known")


def _read_number(text: str) -> float | int:
    """A number; one that is whole is a whole number, however it was written."""
    number = float(text)
    if not math.isfinite(number):
        raise _NotPlain(f"{text[:20]} is too large a number")
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def find_media_type(request: Request) -> str:
    """The media type of the body, if it is one that can be read; the character set can only be UTF-8."""
    given, *rest = request.headers.get("Content-Type", "").split(";")
    for parameter in rest:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset" and value.strip().strip('"').lower() not in ("utf-8", "us-ascii"):
            raise Refusal(415, "The body must be UTF-8 text.")
    return given.strip().lower()


def check_settings(model: type[Model], given: object) -> Model:
    """The settings that a body of JSON brings."""
    if not isinstance(given, dict):
        raise InputError(f"The body is {SAID[type(given)]}; it must be an object.")
    strange = [name for name in given if name not in model.model_fields][MAX_FAULTS:]
    for name in strange:  # the checker would make an error of each, and nobody reads so many
        del given[name]
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise Misfit(error.errors(include_url=False, include_input=False), len(strange)) from None


async def take_settings(request: Request, model: type[Model]) -> Asked[Model]:
    """A body of JSON without a table."""
    if (found := find_media_type(request)) != JSON:
        raise _refuse_media_type(found, [JSON])
    content = await request.body()

    def read() -> Asked[Model]:
        return Asked(check_settings(model, load_json(content)), None, digest(request, content))

    return await _aside(request, len(content), read)


async def take_table(request: Request, model: type[Model], where: str, kinds: Kinds, query: BaseModel) -> Asked[Model]:
    """A body of JSON, or a table of another kind with its settings in the address."""
    found = find_media_type(request)
    reported = query.model_dump(exclude_unset=True, include=set(model.model_fields))
    if found in KINDS:
        async with _as_file(request, KINDS[found]) as (path, sum_):
            table: object = await read_table(path, KINDS[found], where, request.app.state.settings.reading)
        return Asked(model.model_validate({where: None} | reported), table, digest(request, sum_))
    if found != JSON:
        raise _refuse_media_type(found, [JSON, *KINDS])
    reported = query.model_dump(exclude_defaults=True, include=set(model.model_fields))
    if reported:
        raise InputError(f"{min(reported)} is in the address; with a body of JSON it stands in the body.")
    content = await request.body()
    return await _aside(request, len(content), _read_whole, request, model, content, where, kinds)


async def _aside(request: Request, size: int, read: Callable[P, T], *args: P.args, **kw: P.kwargs) -> T:
    """What reading a body gives: at once where it is small, in a thread where others would have to wait for it."""
    if size <= SMALL:
        return read(*args, **kw)
    programs: Programs = request.app.state.programs
    return await programs.run(read, *args, **kw)


def _read_whole(request: Request, model: type[Model], content: bytes, where: str, kinds: Kinds) -> Asked[Model]:
    settings = check_settings(model, load_json(content))
    given = getattr(settings, where)
    optional = not model.model_fields[where].is_required()
    table = None if given is None and optional else as_columns(given, where, kinds)
    return Asked(settings, table, digest(request, content))


def _refuse_media_type(found: str, allowed: list[str]) -> Refusal:
    said = f"{quote(found)} cannot be read here" if found else "The media type of the body is not given"
    return Refusal(415, f"{said}; Content-Type must be {' or '.join(allowed)}.", {"Accept": ", ".join(allowed)})


@asynccontextmanager
async def _as_file(request: Request, ending: str) -> AsyncIterator[tuple[Path, bytes]]:
    """The body in a file of a folder that is gone afterwards, and its sum."""
    sum_ = hashlib.sha256()
    with tempfile.TemporaryDirectory(prefix="restive-") as folder:
        path = Path(folder) / f"table.{ending}"
        with path.open("wb") as file:
            async for piece in request.stream():
                sum_.update(piece)
                file.write(piece)
        yield path, sum_.digest()


def digest(request: Request, content: bytes) -> str:
    """What was asked, in short: method, path, query, media type and body; sealed by the token of the caller, if any.

    A digest that is not sealed could tell, to whoever guesses it, a name that has been erased since.
    """
    sum_ = hashlib.sha256()
    head = [request.method, request.url.path, request.url.query, find_media_type(request)]
    for part in (*(text.encode() for text in head), content):
        sum_.update(len(part).to_bytes(8, "big"))
        sum_.update(part)
    secret = request.headers.get("Authorization", "").partition(" ")[2].strip()
    return SEALED + hmac.new(secret.encode(), sum_.digest(), "sha256").hexdigest() if secret else sum_.hexdigest()
