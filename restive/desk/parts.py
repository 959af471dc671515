"""An event and its parts: columns divided into chunks of CHUNK agent numbers, put together again, and chained.

A part is (name, chunk, body). Columns with `number` (ascending) have the name "" and chunk = number // CHUNK, with all
columns of those agents in one body; columns without it, and each extra under its own name, are one part, chunk WHOLE.

    digest = sha256(previous digest, kind, round, at, header, parts in order of name and chunk)
"""

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from restive.desk.pack import Column, pack, unpack
from restive.desk.schema import WHOLE
from restive.errors import InputError

CHUNK = 8192

Header: TypeAlias = dict[str, Any]
Columns: TypeAlias = Mapping[str, Column]
Scalar: TypeAlias = bool | int | float


class Event(NamedTuple):
    """One entry of a program's log; `at` is UTC, ISO 8601 with microseconds."""

    number: int
    kind: str
    round: int | None
    at: str
    header: Header
    columns: dict[str, Column]
    extra: dict[str, dict[str, Column]]
    digest: str


class Part(NamedTuple):
    """A piece of an event as it is stored."""

    name: str
    chunk: int
    body: bytes


def divide(columns: Columns, extra: Mapping[str, Columns]) -> list[Part]:
    """The parts of an event, in order."""
    if "" in extra:
        raise InputError("An extra of an event needs a name.")
    named = [Part(name, WHOLE, pack(extra[name])) for name in sorted(extra)]
    return [*_divide_by_agent(columns), *named]


def _divide_by_agent(columns: Columns) -> Iterator[Part]:
    number = columns.get("number")
    if number is None or not len(number):
        # Without agents there is no chunk, and the types of empty columns are kept too.
        if columns:
            yield Part("", WHOLE, pack(columns))
        return
    _check_agents(number, columns)
    chunks = number.astype(np.int64, copy=False) // CHUNK
    borders = [0, *(np.flatnonzero(np.diff(chunks)) + 1).tolist(), len(chunks)]
    for low, high in itertools.pairwise(borders):
        yield Part("", int(chunks[low]), pack({name: column[low:high] for name, column in columns.items()}))


def _check_agents(number: Column, columns: Columns) -> None:
    """Refuse numbers that do not ascend, and columns that are longer or shorter than they are."""
    if number.dtype.kind not in "iu" or int(number[0]) < 0 or not (number[1:] > number[:-1]).all():
        raise InputError("The column 'number' of an event must hold agent numbers from 0 on, ascending.")
    if odd := [name for name, column in columns.items() if len(column) != len(number)]:
        raise InputError(f"Column {odd[0]!r} of an event has another length than its column 'number'.")


def assemble(parts: Iterable[Part]) -> tuple[dict[str, Column], dict[str, dict[str, Column]]]:
    """Columns and extras of an event, from all its parts."""
    chunks: list[dict[str, Column]] = []
    extra = {}
    for part in sorted(parts):
        if part.name:
            extra[part.name] = unpack(part.body)
        else:
            chunks.append(unpack(part.body))
    if len(chunks) < 2:
        return chunks[0] if chunks else {}, extra
    return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}, extra


def pick(body: bytes, agent: int) -> dict[str, Scalar] | None:
    """What one chunk says of one agent; None when it says nothing."""
    columns = unpack(body)
    number = columns["number"]
    place = int(np.searchsorted(number, agent))
    if place == len(number) or number[place] != agent:
        return None
    return {name: column[place].item() for name, column in columns.items()}


def link(previous: str, kind: str, round: int | None, at: str, header: str, parts: Iterable[Part]) -> str:
    """The digest of an event, which holds that of the one before."""
    chain = hashlib.sha256(json.dumps([previous, kind, round, at, header]).encode())
    for part in sorted(parts):
        chain.update(json.dumps([part.name, part.chunk, len(part.body)]).encode())
        chain.update(part.body)
    return chain.hexdigest()
