"""Tables as the body of a request: files as they are, tables in memory as JSON or Parquet.

polars is imported only if a table in memory is given.
"""

from collections.abc import Iterable, Mapping
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from restive.api.settings import TableReading
from restive.client.transport import Body, Query
from restive.errors import InputError

if TYPE_CHECKING:
    import polars as pl

MAX_JSON_ROWS = 50_000  # the server reads larger tables faster from Parquet
CSV, PARQUET = "text/csv", "application/vnd.apache.parquet"
EXCEL = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
MEDIA_TYPES = {".csv": CSV, ".tsv": CSV, ".txt": CSV, ".parquet": PARQUET, ".xlsx": EXCEL}
PAIRS: tuple[Literal["columns", "values"], ...] = ("columns", "values")
INTEGERS = ("Int64", "Int32", "Int16", "Int8", "UInt32", "UInt16", "UInt8")
# The columns of the API with the polars types that JSON can express.
STATES = {"agent": ("String", *INTEGERS), "state": ("String", *INTEGERS), "group": ("String",)}
OUTCOMES = {
    "agent": ("String", *INTEGERS),
    "done": ("Boolean",),
    "next_state": ("String", *INTEGERS),
    "reward": (*INTEGERS, "Float64", "Float32"),
    "round": INTEGERS,
}


def encode_table(
    table: object,
    name: str,
    columns: Mapping[str, tuple[str, ...]],
    settings: Query,
    reading: TableReading | None = None,
) -> tuple[Body, Query]:
    """The body and the query string of a table with settings: all in a JSON body, or the settings in the query."""
    given = {key: value for key, value in settings.items() if value is not None}
    if table is None:
        return Body.of(given), {}
    if isinstance(table, str | PathLike):
        file, sheet = Path(table), ""
        if "#" in file.name:
            from restive.desk.table_files import split_sheet

            file, sheet = split_sheet(file)
        return _read_file(file), given | _as_query(reading or {}) | ({"sheet": sheet} if sheet else {})
    from restive.desk.table_files import as_frame

    frame = as_frame(table).drop("row")
    if frame.height <= MAX_JSON_ROWS and _fits_json(frame, columns):
        return Body.of({name: frame.to_dict(as_series=False)} | given | dict(reading or {})), {}
    content = BytesIO()
    frame.write_parquet(content)
    return Body(content.getvalue(), PARQUET), given | _as_query(reading or {})


def _as_query(reading: TableReading) -> dict[str, str | int | bool | list[str] | None]:
    """How a table is read, as a query string has it."""
    query: dict[str, str | int | bool | list[str] | None] = {
        name: [f"{key}={value}" for key, value in pairs.items()] for name in PAIRS if (pairs := reading.get(name))
    }
    if "cut_points" in reading:
        cut = reading["cut_points"]
        limits = "" if cut is None else ", ".join(f"{limit:g}" for limit in cut["at"])
        query["cut_points"] = "none" if cut is None else f"{cut['column']}: {limits}, more is {cut['more_is']}"
    if reading.get("phone_country"):
        query["phone_country"] = reading["phone_country"]
    return query


def _read_file(path: Path) -> Body:
    """The content of a table file, with the media type of its suffix."""
    media_type = MEDIA_TYPES.get(path.suffix.lower())
    if media_type is None:
        raise InputError(f"{path.name}: a table is a .csv, .tsv, .txt, .xlsx or .parquet file.", location=path)
    return Body(path.read_bytes(), media_type)


def list_agents(given: object) -> list[str] | None:
    """The ids in a list, a file or a frame; None stays None."""
    if given is None:
        return None
    table = isinstance(given, str | PathLike | Mapping) or hasattr(given, "columns")
    if isinstance(given, Iterable) and not table:
        return [str(each) for each in given]
    from restive.desk.ingest import read_list

    names: list[str] = read_list(given, "agents").to_list()
    return names


def _fits_json(frame: "pl.DataFrame", columns: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether JSON can express the table."""
    kinds = {name: str(kind) for name, kind in frame.schema.items()}
    known = all(name in columns and (kind == "Null" or kind in columns[name]) for name, kind in kinds.items())
    return known and all(frame[name].is_finite().all() for name, kind in kinds.items() if kind.startswith("Float"))
