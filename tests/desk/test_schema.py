"""The tables of a store: created at once or not at all; other versions and other databases are refused."""

import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa

from restive.desk import schema
from restive.desk.database import connect
from restive.desk.store import Store
from restive.errors import InputError


def describe(address: str) -> dict[str, tuple[set[str], set[str | None]]]:
    """Columns and indexes of all tables."""
    engine, _ = connect(address)
    looking = sa.inspect(engine)
    found = {
        table: (
            {column["name"] for column in looking.get_columns(table)},
            {index["name"] for index in looking.get_indexes(table)},
        )
        for table in looking.get_table_names()
    }
    engine.dispose()
    return found


def test_a_new_store_has_all_tables_and_indexes(store: Store, address: str) -> None:
    made = describe(address)
    assert {table: columns for table, (columns, _) in made.items()} == {
        name: set(table.c.keys()) for name, table in schema.metadata.tables.items()
    }
    assert "parts_by_chunk" in made["parts"][1]
    assert "events_by_round" in made["events"][1]


def test_bodies_are_not_compressed_again_by_postgresql(store: Store) -> None:
    if store._engine.dialect.name == "postgresql":
        stored = sa.text(
            "SELECT attrelid::regclass::text, attstorage::text FROM pg_attribute "
            "WHERE attname = 'body' AND pg_table_is_visible(attrelid) ORDER BY 1"
        )
        with store._engine.connect() as connection:
            found = connection.execute(stored).all()
        assert [tuple(row) for row in found] == [("parts", "e"), ("roster", "e"), ("snapshots", "e")]


@pytest.mark.parametrize("step", [-1, 1])
def test_a_store_of_another_version_is_refused_and_left_alone(address: str, step: int) -> None:
    with Store.open(address) as store, store._engine.connect() as connection:
        connection.execute(schema.version.update().values(version=schema.VERSION + step))
        connection.commit()
    before = describe(address)
    for read_only in (False, True):
        with pytest.raises(InputError, match=rf"has version {4 + step}; .* reads version 4 only") as refused:
            Store.open(address, read_only)
        assert refused.value.code == "store_version"
    assert describe(address) == before


def test_tables_that_cannot_all_be_created_leave_none(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: object) -> None:
        raise KeyError

    monkeypatch.setattr(schema.version, "insert", fail)
    with pytest.raises(KeyError):
        Store.open(address)
    assert describe(address) == {}
    monkeypatch.undo()
    Store.open(address).close()
    assert set(describe(address)) == set(schema.metadata.tables)


def test_a_database_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE patients (id INTEGER)")
    connection.close()
    content = path.read_bytes()
    with pytest.raises(InputError, match=r"is not a store of restive, it has other tables \(patients\)"):
        Store.open(path)
    assert path.read_bytes() == content
