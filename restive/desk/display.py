"""Display columns: texts that identify people to the team, such as name and phone, for lists and pages only.

A program declares them (`display=["name", "phone"]`). They come with the table of states, and the latest cell counts.
They are personal data: the store keeps them in a table of its own, one row for each agent, and deletes the row when the
agent is erased. No event, audit entry or policy gets them. Headers are compared as those of other columns are.

    cells = {"name": "Ann Okafor", "phone": "+234 803 555 0101"}    as JSON; an empty cell is null
"""

import json
import re
import reprlib
from collections.abc import Mapping, Sequence

import polars as pl

from restive.desk.roster import MAX_ID
from restive.desk.table_files import ROW
from restive.desk.table_mapping import normalize_header
from restive.desk.table_schema import COST, OUTCOMES, STATES
from restive.errors import InputError
from restive.types import Ints

MAX_DISPLAY = 12  # columns of a program
# Headers with a meaning in tables of states and outcomes, and columns of lists and of people.
RESERVED = {header for columns in (STATES, COST, OUTCOMES) for names in columns.values() for header in names} | {
    "rank", "list", "state_now", "exploration", "probability", "priority", "margin", "reason", "advised", "number",
    "active", "control", "rounds_seen", "reward_total", "display", "features", ROW,
}  # fmt: skip
PHONE = re.compile(
    r"(?:^|_)(?:(?:tele|smart|cell)?phone|mobile|tel|cell|whatsapp|msisdn|handy|telefon|telefono|teléfono|telefone"
    r"|téléphone|celular|móvil|movil)(?:_|\d*$)"
)
NAME = re.compile(
    r"(?:^|_)(?:(?:full|first|last|sur|nick)?names?|nom|prenom|prénom|nombre|nome|vorname|nachname)(?:_|\d*$)"
)
PHONE_CHARACTERS = re.compile(r"\+?[\d\s().\-/\u2010-\u2013]+")
MIN_DIGITS, MAX_DIGITS = 3, 15  # of a phone number


def check_display(given: object) -> tuple[str, ...]:
    """Validate the display columns of a program.

    >>> check_display(["Name", "Phone number"])
    ('name', 'phone_number')
    """
    if not isinstance(given, list | tuple) or not all(isinstance(each, str) for each in given):
        raise InputError(f"display is {reprlib.repr(given)}; it must list headers, such as name.", location="display")
    names = tuple(normalize_header(each) for each in given)
    for name, header in zip(names, given, strict=True):
        if not name or not name.isprintable() or len(name) > MAX_ID or name in RESERVED or names.count(name) > 1:
            raise InputError(
                f"A display column is called {header!r}; it needs a name of its own, other than a column's.",
                location="display",
            )
    if len(names) > MAX_DISPLAY:
        raise InputError(
            f"There are {len(names)} display columns; at most {MAX_DISPLAY} are possible.", location="display"
        )
    return names


def encode_cells(table: pl.DataFrame) -> pl.Series:
    """The columns of a table as one JSON object for each row.

    >>> encode_cells(pl.DataFrame({"name": ["Ann", None]})).to_list()
    ['{"name":"Ann"}', '{"name":null}']
    """
    return table.select(pl.struct(pl.all()).struct.json_encode())[:, 0]


def merge_cells(older: str, newer: str) -> str:
    """The older cells, replaced by the newer ones where a column has any.

    >>> merge_cells('{"name":"Ann","phone":"1"}', '{"phone":null}')
    '{"name":"Ann","phone":null}'
    """
    return _dump(json.loads(older) | json.loads(newer))


def keep_columns(cells: str, columns: Sequence[str]) -> str:
    """The cells of some columns only.

    >>> keep_columns('{"name":"Ann","phone":"1"}', ["phone"])
    '{"phone":"1"}'
    """
    return _dump({name: cell for name, cell in json.loads(cells).items() if name in columns})


def decode_cells(cells: str | None, columns: Sequence[str]) -> dict[str, str | None]:
    """The cell of each column of a program, None where it is not known.

    >>> decode_cells('{"name":"Ann"}', ["name", "phone"])
    {'name': 'Ann', 'phone': None}
    """
    known = {} if cells is None else json.loads(cells)
    return {name: known.get(name) for name in columns}


def as_series(cells: Mapping[int, str], agents: Ints, columns: Sequence[str]) -> list[pl.Series]:
    """The display columns of agents, from their cells by agent number.

    >>> import numpy as np
    >>> as_series({0: '{"name":"Ann"}'}, np.array([0, 1]), ["name"])[0].to_list()
    ['Ann', None]
    """
    rows = [decode_cells(cells.get(agent), columns) for agent in agents.tolist()]
    return [pl.Series(name, [row[name] for row in rows], pl.String) for name in columns]


def _dump(cells: dict[str, str | None]) -> str:
    return json.dumps(cells, ensure_ascii=False, separators=(",", ":"))


def find_name(cells: Mapping[str, str | None]) -> str:
    """The name in the cells of a person, from all columns of names; empty if there is none.

    >>> find_name({"phone": "12345", "first_name": "Ann", "last_name": "Okafor"}), find_name({"village": "Ba"})
    ('Ann Okafor', '')
    """
    return " ".join(cell for header, cell in cells.items() if cell and NAME.search(header))


def match_cells(cells: Mapping[int, str], columns: Sequence[str], part: str) -> list[int]:
    """The agents with a cell that contains `part`, in any case; digits are also looked for in phone numbers.

    >>> match_cells({3: '{"name":"Ann Okafor","phone":"+91 98200-12345"}'}, ["name", "phone"], "9820012")
    [3]
    """
    wanted, digits = part.lower(), re.sub(r"[\s()+./-]", "", part)
    number = digits.lstrip("0") if digits.isdigit() and len(digits) >= MIN_DIGITS else ""

    def matches(header: str, cell: str | None) -> bool:
        found = wanted in (cell or "").lower()
        return found or bool(number and PHONE.search(header) and number in re.sub(r"\D", "", cell or ""))

    rows = ((agent, decode_cells(each, columns)) for agent, each in cells.items())
    return [agent for agent, row in rows if any(matches(header, cell) for header, cell in row.items())]


def phone_link(header: str, cell: str | None) -> str | None:
    """The address that calls the number in a column of phone numbers; None for other columns and texts.

    >>> phone_link("phone", "+44 (0)20 7946-0000"), phone_link("mobile_no", "0170/1234567")
    ('tel:+442079460000', 'tel:01701234567')
    >>> phone_link("phone", "ask at the shop"), phone_link("village", "12345")
    (None, None)
    """
    number = (cell or "").strip()
    if not PHONE.search(header) or not PHONE_CHARACTERS.fullmatch(number):
        return None
    if number.startswith("+"):
        number = number.replace("(0)", "")
    digits = re.sub(r"[^0-9]", "", number)
    return f"tel:{'+' * number.startswith('+')}{digits}" if MIN_DIGITS <= len(digits) <= MAX_DIGITS else None
