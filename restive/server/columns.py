"""Tables of JSON as columns: rows become columns at once, and the types of a column are looked at together.

No object is made for a row, so that a hundred thousand rows cost little more than reading them. Only where something is
wrong is a table looked at row by row, to say where.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from typing import NoReturn, TypeVar

from restive.desk.table_schema import Fault, TableError
from restive.errors import InputError

MAX_BLAMED = 1000  # cells
SAID = {
    str: "a text", int: "a whole number", float: "a number", bool: "true or false", type(None): "null",
    list: "a list", dict: "an object",
}  # fmt: skip

T = TypeVar("T")
Kinds = Mapping[str, tuple[type, ...]]  # of each column, the types that a cell may have
NONE = type(None)
STATES: Kinds = {"agent": (str, int), "state": (str, int, NONE), "group": (str, NONE)}
OUTCOMES: Kinds = {
    "agent": (str, int),
    "done": (bool, NONE),
    "next_state": (str, int, NONE),
    "reward": (int, float, NONE),
    "round": (int, NONE),
}


def as_columns(table: object, where: str, kinds: Kinds) -> dict[str, list[object]]:
    """Rows or columns of JSON as columns for the desk, every cell of a type that its column may have.

    >>> as_columns([{"agent": "ann", "state": 1}, {"agent": "ben", "state": None}], "states", STATES)
    {'agent': ['ann', 'ben'], 'state': [1, None]}
    """
    if isinstance(table, list):
        columns = _turn(table, where, kinds)
    elif isinstance(table, dict):
        columns = _check_columns(table, where, kinds)
    else:
        raise InputError(f"{where} is {SAID[type(table)]}; it must be a list of rows, or a list for each column.")
    for name, cells in columns.items():
        if not set(map(type, cells)) <= set(kinds[name]):
            _blame_cells(cells, name, where, kinds[name])
    return columns


def _turn(rows: list[object], where: str, kinds: Kinds) -> dict[str, list[object]]:
    """The cells of rows by column; a column that no row has is left out."""
    if set(map(type, rows)) - {dict}:
        wrong = ((place, row) for place, row in enumerate(rows, 1) if not isinstance(row, dict))
        _blame(where, wrong, lambda row: (None, f"{SAID[type(row)]}, but a row is an object"))
    named: list[dict[str, object]] = rows  # type: ignore[assignment]
    known = set().union(*named)
    if strange := known - set(kinds):
        _blame_names(named, strange, where, kinds)
    try:
        must = {name: list(map(itemgetter(name), named)) for name in _required(kinds)}
    except KeyError:
        _blame_missing(named, where, kinds)
    return must | {name: [row.get(name) for row in named] for name in kinds if name in known and name not in must}


def _required(kinds: Kinds) -> list[str]:
    return [name for name in ("agent", "state") if name in kinds]


def _check_columns(table: dict[str, object], where: str, kinds: Kinds) -> dict[str, list[object]]:
    if strange := set(table) - set(kinds):
        _blame_names([table], strange, where, kinds)
    if missing := [name for name in _required(kinds) if name not in table]:
        raise TableError(where, [Fault(None, name, "there is no such column, and there must be") for name in missing])
    wrong = [name for name, cells in table.items() if not isinstance(cells, list)]
    if wrong:
        raise TableError(where, [Fault(None, name, f"{SAID[type(table[name])]}, but it is a list") for name in wrong])
    columns: dict[str, list[object]] = table  # type: ignore[assignment]
    filled = {name: cells for name, cells in columns.items() if cells or name in _required(kinds)}
    if len(lengths := {name: len(cells) for name, cells in filled.items()}) > 1 and len(set(lengths.values())) > 1:
        said = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise InputError(f"{where}: the columns differ in length ({said}); each has one cell for each agent.")
    return filled


def _blame_names(rows: Sequence[dict[str, object]], strange: set[str], where: str, kinds: Kinds) -> NoReturn:
    there = ", ".join(kinds)
    single = len(rows) == 1
    wrong = ((None if single else place, name) for place, row in enumerate(rows, 1) for name in row if name in strange)
    _blame(where, wrong, lambda name: (name, f"this is not known; there are {there}"))


def _blame_missing(rows: list[dict[str, object]], where: str, kinds: Kinds) -> NoReturn:
    needed = _required(kinds)
    wrong = ((place, name) for place, row in enumerate(rows, 1) for name in needed if name not in row)
    _blame(where, wrong, lambda name: (name, "it is missing"))


def _blame_cells(cells: list[object], name: str, where: str, kinds: tuple[type, ...]) -> NoReturn:
    allowed = " or ".join(SAID[kind] for kind in kinds if not (kind is int and float in kinds))
    wrong = ((place, cell) for place, cell in enumerate(cells, 1) if type(cell) not in kinds)
    _blame(where, wrong, lambda cell: (name, f"{SAID[type(cell)]}, but it must be {allowed}"))


def _blame(where: str, wrong: Iterable[tuple[int | None, T]], say: Callable[[T], tuple[str | None, str]]) -> NoReturn:
    """Say of the first that are wrong what is, and of the others only how many they are."""
    found = iter(wrong)
    faults = [Fault(place, *say(what)) for place, what in islice(found, MAX_BLAMED)]
    raise TableError(where, faults, len(faults) + sum(1 for _ in found))
