"""Backups of a store that are put back while somebody has the store open."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import sqlalchemy as sa

from restive.desk.database import connect, metadata


class Backup:
    """The content of a store at the time when this is made."""

    def __init__(self, address: str) -> None:
        self.address, self._copy = address, Path(f"{address}.backup")
        if "://" in address:
            self._run(f"CREATE TABLE saved_{table} AS SELECT * FROM {table}" for table in metadata.tables)
        else:
            _copy_file(Path(address), self._copy)

    def restore(self) -> None:
        """Put the content back, as SQLite's backup API and pg_restore do: in one transaction of another connection."""
        if "://" in self.address:
            tables = [table.name for table in metadata.sorted_tables]
            self._run(
                [
                    f"TRUNCATE {', '.join(tables)}",
                    *(f"INSERT INTO {table} SELECT * FROM saved_{table}" for table in tables),
                ]
            )
        else:
            _copy_file(self._copy, Path(self.address))

    def _run(self, statements: Iterable[str]) -> None:
        engine, _ = connect(self.address)
        with engine.begin() as connection:
            for statement in statements:
                connection.execute(sa.text(statement))
        engine.dispose()


def _copy_file(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)
