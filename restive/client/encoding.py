"""Tables as request bodies: files as they are, tables in memory as JSON, or as Parquet if they are large.

The client accepts what the desk accepts: a path, a polars or pandas frame, columns, rows, or a mapping from agent to
state. JSON can express the columns of the API with their types; a table with other columns or types, or with many rows,
is sent as Parquet, which the server reads like a file. polars is imported only if a table in memory is given.
"""

from collections.abc import Iterable, Mapping
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from restive.client.transport import Body, Query
from restive.errors import InputError

if TYPE_CHECKING:
    import polars as pl

MAX_JSON_ROWS = 50_000  # the server reads larger tables faster from Parquet
CSV, PARQUET = "text/csv", "application/vnd.apache.parquet"
EXCEL = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
MEDIA_TYPES = {".csv": CSV, ".tsv": CSV, ".txt": CSV, ".parquet": PARQUET, ".xlsx": EXCEL}
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
    table: object, name: str, columns: Mapping[str, tuple[str, ...]], settings: Query
) -> tuple[Body, Query]:
    """The body and the query string of a table with settings: all in a JSON body, or the settings in the query."""
    given = {key: value for key, value in settings.items() if value is not None and value is not False}
    if table is None:
        return Body.of(given), {}
    if isinstance(table, str | PathLike):
        return read_file(Path(table)), given
    from restive.desk.table_files import as_frame

    frame = as_frame(table).drop("row")
    if frame.height <= MAX_JSON_ROWS and _fits_json(frame, columns):
        return Body.of({name: frame.to_dict(as_series=False)} | given), {}
    content = BytesIO()
    frame.write_parquet(content)
    return Body(content.getvalue(), PARQUET), given


def read_file(path: Path) -> Body:
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
