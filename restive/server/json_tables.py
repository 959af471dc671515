"""JSON bodies and the tables in them: lists of rows or an object of columns.

Tables are checked column by column, without an object for each row, so that a hundred thousand rows cost little more
than parsing; only a faulty table is searched row by row. The module imports little, because a child process uses it
too.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping
from itertools import islice
from operator import itemgetter
from typing import NoReturn

from starlette.exceptions import HTTPException

from restive.desk.table_columns import MAX_FAULTS, Fault, TableError
from restive.errors import InputError

MAX_LISTS = 250_000  # parsing millions of lists would block all other threads
MAX_WHOLE = 2**53
SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
TYPE_NAMES = {
    str: "a text", int: "a whole number", float: "a number", bool: "true or false", type(None): "null",
    list: "a list", dict: "an object",
}  # fmt: skip

ColumnTypes = Mapping[str, tuple[type, ...]]  # the types that the cells of each column may have
STATES: ColumnTypes = {
    "agent": (str, int),
    "state": (str, int, type(None)),
    "group": (str, type(None)),
    "cost": (int, float, type(None)),
    "features": (dict, type(None)),
    "display": (dict, type(None)),
}
NESTED = ("features", "display")  # columns of objects, each of which has a cell for each of its columns
CELL_TYPES = (str, int, float, type(None))  # of such an object
OUTCOMES: ColumnTypes = {
    "agent": (str, int),
    "done": (bool, type(None)),
    "next_state": (str, int, type(None)),
    "reward": (int, float, type(None)),
    "round": (int, type(None)),
}
REQUIRED_COLUMNS = ("agent", "state")

TABLES: Mapping[str, ColumnTypes] = {"states": STATES, "outcomes": OUTCOMES}  # by the field that holds the table

Place = tuple[int | None, str | None]  # row and column


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


def as_object(given: object) -> dict[str, object]:
    """A parsed body that must be an object."""
    if not isinstance(given, dict):
        raise InputError(f"The body is {TYPE_NAMES[type(given)]}; it must be an object.")
    return given


def as_columns(table: object, where: str, types: ColumnTypes) -> dict[str, list[object]]:
    """A JSON table as columns whose cells have the right types.

    >>> as_columns([{"agent": "ann", "state": 1}, {"agent": "ben", "state": None}], "states", STATES)
    {'agent': ['ann', 'ben'], 'state': [1, None]}
    >>> as_columns([{"agent": "ann", "state": 1, "features": {"age": 40}}], "states", STATES)
    {'agent': ['ann'], 'state': [1], 'age': [40]}
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
    for name in NESTED:
        columns = _spread(columns, name, where, types)
    return columns


def _spread(columns: dict[str, list[object]], nested: str, where: str, types: ColumnTypes) -> dict[str, list[object]]:
    """The columns with one for each cell of the objects in a column, instead of that column."""
    if nested not in columns:
        return columns
    objects: list[dict[str, object]] = [cell or {} for cell in columns[nested]]  # type: ignore[misc]
    rest = {name: cells for name, cells in columns.items() if name != nested}
    cells = [((row, name), cell) for row, each in enumerate(objects, 1) for name, cell in each.items()]
    taken = {*types, *rest}
    if wrong := [(at, cell) for at, cell in cells if at[1] in taken or type(cell) not in CELL_TYPES]:
        kind = "a feature" if nested == "features" else "a display column"
        _raise_faults(where, ((at, f"{TYPE_NAMES[type(cell)]} is not {kind} of this name") for at, cell in wrong))
    names = dict.fromkeys(name for (_, name), _ in cells)
    return rest | {name: [each.get(name) for each in objects] for name in names}


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
