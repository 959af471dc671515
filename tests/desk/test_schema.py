"""A store of any version so far opens with all its data; one from the future, and somebody else's database, do not."""

import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from restive.desk import schema
from restive.desk.database import connect
from restive.desk.store import Store
from restive.errors import InputError


def make_first_version(address: str) -> int:
    """A store of version 1 with a program in it, written by the code of today minus what version 1 did not have."""
    engine, shown = connect(address)
    with engine.connect().execution_options(writing=True) as connection, connection.begin():
        schema.migrate(connection, shown, to=1)
    store = Store(engine, shown, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    with store.creating("calls") as writer:
        writer.append("created", {"config": 1})
        writer.append("opened", {}, {"number": np.arange(9000), "state": np.zeros(9000, np.int16)}, round=0)
        writer.add_names(["ann", "bob"])
        program = writer.program
    store.close()
    return program


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


def test_a_store_of_version_1_is_migrated_with_its_data(address: str, tmp_path: Path) -> None:
    program = make_first_version(address)
    before = describe(address)
    assert "snapshots" not in before
    assert "parts_by_chunk" not in before["parts"][1]
    with Store.open(address) as store:
        assert store.verify(program) == 2
        assert store.names(program).to_list() == ["ann", "bob"]
        assert [event.columns["state"].tolist() for event in store.history(program, 8999)] == [[0]]
        with store.writing(program) as writer:
            writer.put_snapshot("belief", b"content")
        assert store.snapshot(program, "belief") == (2, b"content")
    after = describe(address)
    assert "parts_by_chunk" in after["parts"][1]
    Store.open(tmp_path / "fresh.db").close()
    assert {table: columns for table, (columns, _) in describe(str(tmp_path / "fresh.db")).items()} == {
        table: columns for table, (columns, _) in after.items()
    }


def test_tables_that_queries_name_are_those_that_migrations_made(store: Store, address: str) -> None:
    made = {table: columns for table, (columns, _) in describe(address).items()}
    assert made == {table.name: set(table.c.keys()) for table in (*schema.TABLES, schema.version)}


def test_bodies_are_not_compressed_again_by_postgresql(store: Store) -> None:
    if store._engine.dialect.name == "postgresql":
        stored = sa.text(
            "SELECT attrelid::regclass::text, attstorage::text FROM pg_attribute "
            "WHERE attname = 'body' AND pg_table_is_visible(attrelid) ORDER BY 1"
        )
        with store._engine.connect() as connection:
            found = connection.execute(stored).all()
        assert [tuple(row) for row in found] == [("parts", "e"), ("roster", "e"), ("snapshots", "e")]


def test_a_store_from_the_future_is_refused_and_left_alone(address: str) -> None:
    with Store.open(address) as store, store._engine.connect() as connection:
        connection.execute(schema.version.update().values(version=schema.NEWEST + 1))
        connection.commit()
    for read_only in (False, True):
        with pytest.raises(InputError, match="has version 4, this restive knows versions up to 3: use a newer"):
            Store.open(address, read_only)


def test_an_older_store_cannot_be_migrated_by_who_only_reads(address: str) -> None:
    make_first_version(address)
    with pytest.raises(InputError, match="has version 1 of 3: open it once for writing"):
        Store.open(address, read_only=True)
    Store.open(address).close()
    Store.open(address, read_only=True).close()


def test_a_migration_that_fails_leaves_the_older_version_whole(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = make_first_version(address)

    def fail(op: object) -> None:
        raise KeyError

    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, fail))
    monkeypatch.setattr(schema.migrate, "__defaults__", (4,))
    with pytest.raises(KeyError):
        Store.open(address)
    assert "snapshots" not in describe(address)
    monkeypatch.undo()
    with Store.open(address) as store:
        assert store.verify(program) == 2


def test_a_database_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE patients (id INTEGER)")
    connection.close()
    content = path.read_bytes()
    with pytest.raises(InputError, match=r"is no store of restive, it has other tables \(patients\)"):
        Store.open(path)
    assert path.read_bytes() == content
