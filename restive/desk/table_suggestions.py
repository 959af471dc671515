"""Suggests which header of a table is which column, from the header's words and from the cells; people confirm it."""

from collections.abc import Collection, Mapping, Sequence

import polars as pl

from restive.desk.roster import normalize_names
from restive.desk.table_mapping import look_like_phones, normalize_header

WORDS: Mapping[str, tuple[str, ...]] = {
    "agent": (
        "agent", "id", "uid", "customer", "client", "patient", "person", "member", "user", "beneficiary", "account",
        "msisdn", "mobile", "phone", "telephone", "code", "number",
    ),
    "state": ("state", "status", "stage", "segment", "phase", "level", "tier", "condition"),
    "group": ("group", "district", "region", "village", "area", "zone", "site", "branch", "team", "county", "segment"),
    "cost": (
        "cost", "price", "fee", "fare", "distance", "km", "kilometres", "kilometers", "miles", "minutes", "hours",
    ),
    "done": ("done", "called", "contacted", "visited", "reached", "answered", "treated", "completed", "call", "result"),
    "next_state": ("next", "after", "new", "state", "status", "stage", "segment"),
    "reward": ("reward", "value", "revenue", "amount", "score", "points"),
    "round": ("round", "week", "period", "wave", "cycle"),
}  # fmt: skip
DISPLAY_WORDS = {
    "name", "names", "fullname", "firstname", "lastname", "surname", "phone", "telephone", "tel", "mobile", "cell",
    "contact", "whatsapp", "village", "town", "city", "address", "street", "neighbourhood", "neighborhood", "place",
    "location", "district", "ward", "husband", "mother", "note", "notes", "comment", "comments", "remarks", "nom",
    "prénom", "prenom", "téléphone", "quartier", "adresse", "nombre", "apellido", "teléfono", "telefono", "colonia",
    "barrio", "aldea", "pueblo", "dirección", "nome", "telefone", "bairro", "vorname", "nachname", "ort",
    "telefon", "shop", "store", "pharmacy", "clinic", "company",
}  # fmt: skip
MIN_DIFFERENT = 0.5  # the share of different texts in a column that is suggested as one of names by its cells
MAX_SUGGESTED = 6  # display columns
LETTERS = r"^\p{L}[\p{L}\p{M}.'’ -]*( [\p{L}\p{M}.'’ -]+)?$"
MIN_STATES = 0.9  # the share of cells that must be states for a column to be suggested as one by its cells
MAX_TEXTS = 12  # different texts in a column that is suggested as one of states because some of them are states


def suggest_columns(
    names: Sequence[str], frame: pl.DataFrame, found: Mapping[str, str], states: Sequence[str]
) -> dict[str, str]:
    """The header of each column: the one that is found, or a suggestion; columns without either are left out.

    >>> frame = pl.DataFrame({"Customer ID": ["7", "8"], "Stage": ["a", "b"], "Zone": ["n", "n"]})
    >>> suggest_columns(["agent", "state", "group"], frame, {}, ["a", "b"])
    {'agent': 'Customer ID', 'state': 'Stage', 'group': 'Zone'}
    """
    chosen = dict(found)
    for name in sorted(
        names, key=lambda name: name not in ("state", "next_state")
    ):  # cells that are states are telling
        if name not in chosen and (header := suggest_column(name, frame, set(chosen.values()), states)):
            chosen[name] = header
    return {name: chosen[name] for name in names if name in chosen}


def suggest_column(name: str, frame: pl.DataFrame, taken: Collection[str], states: Sequence[str]) -> str | None:
    """The header that is probably a column: by cells that are states, else by a word; ids must differ, by cells alone too."""
    free = [header for header in frame.columns if header not in taken]
    if name in ("state", "next_state"):
        by_cells = [header for header in free if _share_of_states(frame[header], states) >= MIN_STATES]
        by_cells = by_cells or [
            header
            for header in free
            if _share_of_states(frame[header], states) > 0 and frame[header].n_unique() <= MAX_TEXTS
        ]
        if by_cells:
            return by_cells[0]
    if name == "agent":
        free = _find_ids(frame.select(free))
    for word in WORDS.get(name, (name,)):
        for header in free:
            if word in normalize_header(header).split("_") or normalize_header(header) == f"{word}s":
                return header
    return free[0] if name == "agent" and free and len(frame) > 1 else None


def _find_ids(frame: pl.DataFrame) -> list[str]:
    """The columns in which every row has a value of its own; rows that repeat another one do not count."""
    full = [cells.name for cells in frame if not cells.null_count() and not cells.dtype.is_float()]
    different = {header: frame[header].n_unique() for header in full}
    rows = len(frame) if len(frame) in different.values() or not full else frame.n_unique()
    return [header for header in full if different[header] == rows]


def suggest_display(frame: pl.DataFrame, taken: Collection[str]) -> list[str]:
    """The headers of columns that identify people to a caller, by a word or by cells that are phone numbers or names.

    >>> frame = pl.DataFrame({"id": [7, 8], "Full name": ["Ann O", "Ben D"], "Zone": ["n", "n"], "Who": ["Eve", "Zoé"]})
    >>> suggest_display(frame, ["id"])
    ['Full name', 'Who']
    """
    free = [header for header in frame.columns if header not in taken]
    found = [header for header in free if _is_personal(header, frame[header])]
    return found[:MAX_SUGGESTED]


def _is_personal(header: str, cells: pl.Series) -> bool:
    """Whether the header or the cells are those of a name, a phone number or a place."""
    if DISPLAY_WORDS & set(normalize_header(header).split("_")):
        return True
    if cells.dtype != pl.String or cells.null_count() == len(cells):
        return False
    texts = cells.drop_nulls()
    names = texts.str.contains(LETTERS).all() and texts.n_unique() >= max(2, MIN_DIFFERENT * len(texts))
    return bool(names) or look_like_phones(texts)


def _share_of_states(cells: pl.Series, states: Sequence[str]) -> float:
    """The share of the cells that are the name of a state."""
    if cells.dtype not in (pl.String, pl.Categorical, pl.Enum) or cells.null_count() == len(cells):
        return 0.0
    known = {state.lower() for state in states}
    texts = normalize_names(cells.cast(pl.String).drop_nulls()).str.to_lowercase()
    return int(texts.is_in(known).sum()) / len(texts)
