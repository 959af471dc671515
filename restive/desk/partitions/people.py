"""The people of a partitioned program: numbered in the order of the given tables, and cut into partitions of whole blocks.

A partition is a range of numbers that starts at a multiple of BLOCK, so that sums over people do not depend on the
partitions (`restive.kernels.block_sums`). An id that appears twice is refused: ids are compared by 64-bit hashes, a share
of them at a time, and those with equal hashes by their texts.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from restive.desk.partitions.files import File, Folder
from restive.desk.partitions.tasks import Partition, load_config
from restive.desk.table_columns import TableColumns
from restive.desk.table_files import ROW
from restive.desk.table_schema import STATES
from restive.errors import InputError, NotFound
from restive.kernels.block_sums import BLOCK

# The default size of a partition; a power of two, whose sums are one node of the tree.
SIZE = 1 << 20
# Hashes that one task compares.
MAX_HASHES = 1 << 24


class Rows(NamedTuple):
    """Some rows of a file."""

    where: str
    first: int
    size: int


def find_tables(where: str) -> list[str]:
    """The URL itself, or those of the Parquet files in the folder, by name."""
    source = Folder(where)
    if source.files.isfile(source.root):
        return [where]
    names = [name for name in source.list("") if name.endswith(".parquet")]
    if not names:
        raise NotFound(f"{where} is neither a Parquet file nor a folder with Parquet files.", location="people")
    return [f"{where.rstrip('/')}/{name}" for name in names]


def count_rows(where: str) -> int:
    """The number of rows of a file."""
    source = Folder(where)
    with source.files.open(source.root, "rb") as file:
        try:
            rows: int = pl.scan_parquet(file).select(pl.len()).collect().item()
        except pl.exceptions.PolarsError:
            raise InputError(f"{where}: not a Parquet file, or damaged.", location="people") from None
    return rows


def cut_rows(tables: Sequence[str], counts: Sequence[int], size: int) -> list[list[Rows]]:
    """The rows of each partition.

    >>> cut_rows(["a", "b"], [1500, 1000], 1024)[1]
    [Rows(where='a', first=1024, size=476), Rows(where='b', first=0, size=548)]
    """
    if size < BLOCK or size % BLOCK:
        raise InputError(f"size is {size}; it must be a multiple of {BLOCK}, the people of a block.", location="size")
    parts: list[list[Rows]] = []
    room = 0
    for where, count in zip(tables, counts, strict=True):
        first = 0
        while first < count:
            if room == 0:
                parts.append([])
                room = size
            taken = min(count - first, room)
            parts[-1].append(Rows(where, first, taken))
            first, room = first + taken, room - taken
    if not parts:
        raise InputError(f"{tables[0]}: there is nobody in it.", location="people")
    return parts


def write_people(folder: str, config: str, partition: Partition, rows: Sequence[Rows]) -> tuple[File, list[str]]:
    """Write the ids and groups of a partition; returns the groups in the order of their first member too."""
    tables = [_read_rows(part, config) for part in rows]
    table = pl.concat(tables)
    file = Folder(folder).write(
        f"people/part-{partition.place:05d}.parquet", {"agent": table["agent"], "group": table["group"]}
    )
    return file, table["group"].drop_nulls().unique(maintain_order=True).to_list()


def _read_rows(part: Rows, config: str) -> pl.DataFrame:
    source = Folder(part.where)
    with source.files.open(source.root, "rb") as file:
        frame = pl.scan_parquet(file).slice(part.first, part.size).collect()
    numbered = frame.drop(ROW, strict=False).with_row_index(ROW, part.first + 1).cast({ROW: pl.Int64})
    table = TableColumns(numbered, part.where, STATES, ("agent",), mapping=load_config(config).mapping)
    agent, group = table.ids(), table.texts("group")
    table.check_printable("group", group)
    found = table.merge(pl.DataFrame({"agent": agent, "group": group}))
    if len(found) < len(frame):
        raise InputError(f"{part.where}: {len(frame) - len(found)} people appear twice; keep one row of each.")
    return found


def find_repeated(folder: str, people: Sequence[str], share: int, shares: int) -> list[str]:
    """Ids that appear more than once, at most a few, of one share of all ids by their hashes."""
    within, hashes = Folder(folder), []
    for path in people:
        hashed = within.read(path, ["agent"])["agent"].hash().to_numpy()
        hashes.append(hashed[hashed % shares == share])
    ordered = np.sort(np.concatenate(hashes))
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if not twice.size:
        return []
    suspects = pl.concat(
        [
            agent.filter(agent.hash().is_in(pl.Series(twice).implode()))
            for path in people
            for agent in [within.read(path, ["agent"])["agent"]]
        ]
    )
    return suspects.filter(suspects.is_duplicated()).unique().head(5).to_list()
