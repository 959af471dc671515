"""Tables on their way to a server: files as they are, what people have in Python as JSON, or as Parquet if it is much.

What the desk takes in this process the client takes too: a path, a frame of polars or pandas, columns, rows, or a
mapping from agent to state. JSON has the few columns that the API knows, with their types; a table with others, with
`yes` for true or with very many rows goes as Parquet, and the server reads it as it would read a file.
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

MAX_ROWS = 50_000  # as JSON; the server takes less time to read more of them from Parquet
CSV, PARQUET = "text/csv", "application/vnd.apache.parquet"
EXCEL = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
KINDS = {".csv": CSV, ".tsv": CSV, ".txt": CSV, ".parquet": PARQUET, ".xlsx": EXCEL}
NAMES, WHOLE = ("String",), ("String", "Int64", "Int32", "Int16", "Int8", "UInt32", "UInt16", "UInt8")
# The columns of the API, and the types of polars that JSON can stand for.
STATES = {"agent": WHOLE, "state": WHOLE, "group": NAMES}
OUTCOMES = {
    "agent": WHOLE, "done": ("Boolean",), "next_state": WHOLE, "reward": (*WHOLE[1:], "Float64", "Float32"),
    "round": WHOLE[1:],
}  # fmt: skip


def pack(given: object, name: str, columns: Mapping[str, tuple[str, ...]], rest: Query) -> tuple[Body, Query]:
    """A table and what goes with it: all of it as JSON, or the table as a body and the rest in the address."""
    settings = {key: value for key, value in rest.items() if value is not None and value is not False}
    if given is None:
        return Body.of(settings), {}
    if isinstance(given, str | PathLike):
        return read_file(Path(given)), settings
    from restive.desk.table_files import as_frame

    frame = as_frame(given).drop("row")
    if frame.height <= MAX_ROWS and _is_plain(frame, columns):
        return Body.of({name: frame.to_dict(as_series=False)} | settings), {}
    return Body(_as_parquet(frame), PARQUET), settings


def read_file(path: Path) -> Body:
    """A file as it is; its ending says what it is."""
    kind = KINDS.get(path.suffix.lower())
    if kind is None:
        raise InputError(f"{path.name}: a table is a .csv, .tsv, .txt, .xlsx or .parquet file.")
    return Body(path.read_bytes(), kind)


def list_agents(given: object) -> list[str] | None:
    """The ids in a list, a file or a frame; None stays None."""
    if given is None:
        return None
    if (
        isinstance(given, Iterable)
        and not isinstance(given, str | PathLike | Mapping)
        and not hasattr(given, "columns")
    ):
        return [str(each) for each in given]
    from restive.desk.ingest import read_list

    names: list[str] = read_list(given, "agents").to_list()
    return names


def _is_plain(frame: "pl.DataFrame", columns: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether JSON can say the same, by columns that the API knows."""
    types = {name: str(kind) for name, kind in frame.schema.items()}
    known = all(name in columns and (kind == "Null" or kind in columns[name]) for name, kind in types.items())
    return known and all(frame[name].is_finite().all() for name, kind in types.items() if kind.startswith("Float"))


def _as_parquet(frame: "pl.DataFrame") -> bytes:
    content = BytesIO()
    frame.write_parquet(content)
    return content.getvalue()
