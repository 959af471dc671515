"""The tables of a program as data frames, each for a file: what pages, command, API and client let users download.

Ids are text, and an id that a spreadsheet would run as a formula is neutralised when the file is written
(`restive.desk.table_files`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, get_type_hints

import polars as pl

from restive.api.results import GroupResult, StateCounts
from restive.api.status import StateEffect
from restive.api.types import RoundSummary
from restive.desk.display import as_series
from restive.desk.export import agents_table, summarize_rounds
from restive.desk.program import Program
from restive.desk.results import describe_unreached, find_unreached, get_results
from restive.desk.status import get_status
from restive.desk.store import Store
from restive.desk.table_files import PART_ROWS
from restive.errors import NotFound
from restive.types import Ints

UNKNOWN_STATE = "(unknown)"
AUDIT_PAGE = 1000
BAND = ("mean", "low", "high")
STATES = {"round": pl.Int64, **dict.fromkeys(("label", "at", "people", "state"), pl.String)} | dict.fromkeys(
    ("reported", "carried_over"), pl.Int64
)
LONG_TABLES = ("people", "unreached")  # a row for each person
AUDIT = {"number": pl.Int64, "at": pl.String, "by": pl.String, "verb": pl.String, "round": pl.Int64}


def make_table(program: Program, name: str) -> pl.DataFrame:
    """The table of a name in TABLES."""
    if name not in TABLES:
        raise NotFound(f"There is no table {name!r}; there are {', '.join(TABLES)}.")
    return TABLES[name](program)


def make_parts(program: Program, name: str) -> Iterator[pl.DataFrame]:
    """The table of a name, in parts where it can be long; the program must not change meanwhile."""
    if name not in LONG_TABLES:
        yield make_table(program, name)
        return
    numbers = program.names.search("") if name == "people" else find_unreached(program)
    for first in range(0, max(numbers.size, 1), PART_ROWS):
        yield (_people if name == "people" else _unreached)(program, numbers[first : first + PART_ROWS])


def _rounds(program: Program) -> pl.DataFrame:
    return _as_frame(summarize_rounds(program), RoundSummary, ("label", "due", "at"))


def _people(program: Program, some: Ints | None = None) -> pl.DataFrame:
    numbers = program.names.search("") if some is None else some
    names = pl.Series("agent", program.names.call(numbers), pl.String)
    return _with_display(program, agents_table(program, numbers).with_columns(names))


def _unreached(program: Program, some: Ints | None = None) -> pl.DataFrame:
    rows = describe_unreached(program, find_unreached(program) if some is None else some)
    schema = {
        **dict.fromkeys(("number",), pl.Int64),
        **dict.fromkeys(("agent", "group", "state", "reach"), pl.String),
        **dict.fromkeys(("rounds", "eligible", "listed", "failed"), pl.Int64),
        "why": pl.String,
    }
    return _with_display(program, pl.DataFrame(_plain(rows), schema=schema))


def _with_display(program: Program, frame: pl.DataFrame) -> pl.DataFrame:
    numbers = frame["number"].to_numpy()
    found = as_series(program.store.display(program.id, numbers), numbers, program.config.display)
    return frame.with_columns(found)


def _states(program: Program) -> pl.DataFrame:
    results = get_results(program)
    rows = [
        {"round": each["round"], "label": each["label"], "at": each["at"], "people": side, **row}
        for each in results["rounds"]
        for side in ("program", "control")
        for row in _by_state(each[side], results["states"])
    ]
    return pl.DataFrame(rows, schema=STATES)


def _by_state(counts: StateCounts, states: Sequence[str]) -> list[dict[str, Any]]:
    known = zip(states, counts["reported"], counts["carried_over"], strict=True)
    rows: list[dict[str, Any]] = [
        {"state": state, "reported": reported, "carried_over": carried} for state, reported, carried in known
    ]
    return [*rows, {"state": UNKNOWN_STATE, "reported": counts["unknown"], "carried_over": 0}]


def _groups(program: Program) -> pl.DataFrame:
    return _as_frame(get_results(program)["groups"], GroupResult, ("group", "note"))


def _effects(program: Program) -> pl.DataFrame:
    return _as_frame(get_status(program)["effects"], StateEffect, ("state", "knowledge", "note"))


def _rewards(program: Program) -> pl.DataFrame:
    """Mean rewards and lift by round, with their 95% intervals."""
    curve = get_status(program)["curve"]
    sides: dict[str, Any] = {} if curve is None else {"program": curve["treated"], "control": curve["control"]}
    sides |= {} if curve is None else {"lift": curve["lift"]}
    columns = {
        f"{side}_{part}": pl.Series(band[part], dtype=pl.Float64) for side, band in sides.items() for part in BAND
    }
    rounds = program.rounds if curve else []
    numbers = pl.Series([totals.round for totals in rounds], dtype=pl.Int64)
    labels = pl.Series([totals.label for totals in rounds], dtype=pl.String)
    return pl.DataFrame({"round": numbers, "label": labels, **columns})


def audit_table(store: Store, program: int | None = None) -> pl.DataFrame:
    """The audit log of a program, or of the whole store with the name of each program, the newest entry first."""
    schema = AUDIT if program is not None else {**AUDIT, "program": pl.String}
    rows, before = [], None
    while entries := store.audit_log(program, before, AUDIT_PAGE):
        rows += [{name: getattr(entry, name) for name in schema} for entry in entries]
        before = entries[-1].number
    return pl.DataFrame(rows, schema=schema)


def _plain(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "display"} for row in rows]


def _as_frame(rows: Sequence[Mapping[str, Any]], kind: type, texts: tuple[str, ...]) -> pl.DataFrame:
    """Rows of a type of the API as a frame with all its columns, `texts` as texts."""
    columns = {name: [row[name] for row in rows] for name in get_type_hints(kind)}
    return pl.DataFrame(
        {name: pl.Series(cells, dtype=pl.String if name in texts else None) for name, cells in columns.items()}
    )


TABLES: Mapping[str, Callable[[Program], pl.DataFrame]] = {
    "rounds": _rounds,
    "people": _people,
    "states": _states,
    "rewards": _rewards,
    "groups": _groups,
    "effects": _effects,
    "unreached": _unreached,
    "audit": lambda program: audit_table(program.store, program.id),
}
