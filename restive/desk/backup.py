"""Backup: a consistent copy of a whole store into a new one, of either kind, while others use it.

All tables are read in one snapshot of the source and written in one transaction of the target, so that a copy is whole
or empty; then the logs of the copy are verified. Copying a PostgreSQL store to a SQLite file, or back, also moves it.
"""

from collections.abc import Callable

import sqlalchemy as sa

from restive.desk.database import metadata, migrations, version
from restive.desk.store import Store
from restive.errors import Conflict

ROWS = 100  # copied at once; some have a megabyte


def back_up(
    source: Store, target: Store, progress: Callable[[int, int], None] = lambda done, total: None
) -> dict[str, int]:
    """Copy a store to an empty one; returns the number of events of each program."""
    with source.reading() as reading, target.transact() as writing:
        if any(_count(writing, table) for table in metadata.sorted_tables if table not in (version, migrations)):
            raise Conflict(f"The store {target.address} is not empty; a backup needs a new file or database.")
        for table in (version, migrations):
            writing.execute(table.delete())
        total, done = sum(_count(reading, table) for table in metadata.sorted_tables), 0
        for table in metadata.sorted_tables:
            rows = reading.execution_options(yield_per=ROWS).execute(sa.select(table))
            for some in rows.mappings().partitions():
                writing.execute(table.insert(), [dict(row) for row in some])
                done += len(some)
                progress(done, total)
        _continue_numbers(writing)
    return {row.name: target.verify(row.id) for row in target.programs()}


def _count(connection: sa.Connection, table: sa.Table) -> int:
    return int(connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())


def _continue_numbers(connection: sa.Connection) -> None:
    """Let PostgreSQL number new rows after those that were copied; SQLite does so by itself."""
    if connection.dialect.name != "postgresql":
        return
    for table in metadata.sorted_tables:
        column = table.autoincrement_column
        if column is not None:
            last = connection.execute(sa.select(sa.func.max(column))).scalar()
            if last is not None:
                sequence = sa.func.pg_get_serial_sequence(table.name, column.name)
                connection.execute(sa.select(sa.func.setval(sequence, last)))
