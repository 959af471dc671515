"""Tables are created at once or not at all; each failure of a database is one sentence, and the store recovers."""

import contextlib
import importlib.util
import os
import resource
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from desk.appending import columns_for
from desk.postgres import PASSWORD, Postgres, find_port
from restive.desk import database as module
from restive.desk import store as store_module
from restive.desk.database import CODES, connect, find_cause
from restive.desk.store import Store, StoreError
from restive.errors import InputError
from restive.server.auth import MAX_LOOKUPS
from restive.server.program_pool import THREADS

NOTHING = "nothing of this call was recorded"


def make_program(store: Store) -> int:
    with store.creating("calls") as writer:
        writer.append("created", {})
        return writer.program


def append(store: Store, program: int, size: int = 10) -> None:
    with store.writing(program) as writer:
        writer.append("opened", {}, {"number": np.arange(size), "generator": np.random.default_rng(0).random(size)})


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that everybody may enter; pytest's own are for their owner only."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@contextlib.contextmanager
def as_somebody() -> Iterator[None]:
    """Without the rights of root, to whom no file is read-only."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


def test_a_file_in_no_folder_a_folder_and_nothing_to_read_are_reported(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"There is no folder .*nowhere for the store .*: make it, or name another"):
        Store.open(tmp_path / "nowhere" / "store.db")
    with pytest.raises(StoreError, match="is a folder; name a file in it"):
        Store.open(tmp_path)
    with pytest.raises(StoreError, match=r"There is no store .* to read from"):
        Store.open(tmp_path / "store.db", read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database_is_reported_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "list.csv"
    path.write_text("id,state\n" * 200)
    with pytest.raises(StoreError, match=r"Opening the store .*list.csv failed, the file is no database; nothing was"):
        Store.open(path)
    assert path.read_text() == "id,state\n" * 200


@pytest.mark.parametrize("name", ["a b.db", "100%?.db", "naïve#x.db", "sqlite:///three.db"])
def test_any_file_name_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    Store.open(name).close()
    assert [path.name for path in tmp_path.iterdir()] == [name.removeprefix("sqlite:///")]


def test_sqlite_keeps_what_it_acknowledged_and_overwrites_what_it_deletes(tmp_path: Path) -> None:
    wanted = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "secure_delete": 1}
    with Store.open(tmp_path / "store.db") as store, store._engine.connect() as connection:
        assert {name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in wanted} == wanted


def test_other_schemes_and_malformed_addresses_are_refused_without_repeating_them() -> None:
    with pytest.raises(InputError, match=r"mysql:// is not known"):
        Store.open("mysql://somebody:open-sesame@host/x")
    with pytest.raises(InputError, match="is not of the form postgresql://USER@HOST:PORT/DATABASE") as caught:
        Store.open("postgresql://somebody:open-sesame@host:port/x")
    assert PASSWORD not in str(caught.value)


def test_a_missing_driver_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r'pip install "restive\[postgresql\]"'):
        Store.open("postgresql://host/x")


def test_a_file_or_folder_that_may_only_be_read_is_read_and_not_written(folder: Path) -> None:
    path = folder / "store.db"
    with Store.open(path) as store:
        program = make_program(store)
    path.chmod(0o444)
    folder.chmod(0o555)
    with as_somebody():
        with Store.open(path, read_only=True) as store:
            assert store.verify(program) == 1
        with pytest.raises(StoreError, match=r"failed, the file cannot be opened; nothing was changed: see that it"):
            Store.open(folder / "new.db")
        with pytest.raises(StoreError, match=r"Opening the store .* failed, (it may only be read|the file cannot)"):
            Store.open(path)
    folder.chmod(0o777)
    with as_somebody(), Store.open(path) as store:
        with pytest.raises(StoreError, match=f"failed, it may only be read; {NOTHING}: allow writing to its files"):
            append(store, program)
        assert store.verify(program) == 1
    for one in folder.iterdir():  # SQLite gives the files beside it the rights of the store
        one.chmod(0o666)
    with as_somebody(), Store.open(path) as store:
        append(store, program)
        assert store.verify(program) == 2


def test_a_store_opened_to_read_is_not_written(store: Store, address: str) -> None:
    program = make_program(store)
    with Store.open(address, read_only=True) as reader:
        with pytest.raises(StoreError, match=f"failed, it may only be read; {NOTHING}"):
            append(reader, program)
        append(store, program)
        assert reader.verify(program) == 2


def test_a_full_sqlite_records_nothing_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store.db") as store:
        program = make_program(store)
        pages = [40]
        sa.event.listen(
            store._engine,
            "checkout",
            lambda connection, *_: connection.execute(f"PRAGMA max_page_count={pages[0]}").close(),
        )
        append(store, program)
        with pytest.raises(StoreError, match=f"no room left on the disk; {NOTHING}: make room") as reported:
            append(store, program, 50_000)
        assert reported.value.recorded is False
        assert store.verify(program) == 2
        pages[0] = 10_000
        append(store, program, 50_000)
        assert store.verify(program) == 3


def test_an_error_of_the_disk_records_nothing_and_the_store_goes_on(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store.db") as store:
        program = make_program(store)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        size = sum(path.stat().st_size for path in tmp_path.iterdir())
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20_000, limits[1]))
            with pytest.raises(StoreError, match=r"Writing to the store .* failed") as reported:
                append(store, program, 1_000_000)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert any(cause in str(reported.value) for cause in (module.DEVICE[0], module.FULL[0]))
        assert store.verify(program) == 1
        append(store, program, 1_000_000)
        assert store.verify(program) == 2


def test_a_writer_that_does_not_finish_is_reported_to_the_next(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOCK_TIMEOUT_SECONDS", 0.05)
    monkeypatch.setattr(store_module, "LOCK_TIMEOUT_SECONDS", 0.05)
    with Store.open(address) as one, Store.open(address) as other:
        program = make_program(one)
        with one.writing(program) as writer:
            writer.append("changed", {})
            with pytest.raises(StoreError, match=f"failed, somebody else is writing to it and does not .*; {NOTHING}"):
                append(other, program)
            assert other.length(program) == 1  # reading does not wait
        append(other, program)
        assert one.verify(program) == 3


@pytest.mark.parametrize(
    ("cause", "change"),
    [
        ("the user or the password was not accepted", {"password": "wrong"}),
        ("the user or the password was not accepted", {"user": "nobody-here"}),
        ("there is no such database on the server", {"database": "missing"}),
        ("no server answers there", {"port": "closed"}),
        ("no server answers there", {"host": "no-such-host.invalid"}),
    ],
)
def test_a_server_that_cannot_be_reached_is_reported_without_the_password(
    server: Postgres, cause: str, change: dict[str, str]
) -> None:
    named = {"user": "restive", "password": PASSWORD, "database": "postgres", "host": "127.0.0.1"} | change
    port = find_port() if "port" in change else server.port
    address = f"postgresql://{named['user']}:{named['password']}@{named['host']}:{port}/{named['database']}"
    with pytest.raises(StoreError, match=f"Opening the store postgresql://.* failed, {cause}; nothing was") as reported:
        Store.open(address)
    assert named["password"] not in str(reported.value)
    assert "***" not in str(reported.value)


def test_the_password_is_never_shown(server: Postgres) -> None:
    database = server.new_database()
    shown = f"postgresql://restive@127.0.0.1:{server.port}/{database}"
    for address in (server.address(database), f"{shown}?password={PASSWORD}"):
        with Store.open(address) as store:
            assert store.address == shown


def test_rights_that_are_missing_on_the_server_are_reported(server: Postgres) -> None:
    database = server.new_database()
    server.execute("DROP ROLE IF EXISTS clerk")
    server.execute("CREATE ROLE clerk LOGIN PASSWORD 'open-sesame'")
    address = server.address(database, user="clerk")
    with pytest.raises(StoreError, match="the database user lacks the right to do that; nothing was changed"):
        Store.open(address)
    with Store.open(server.address(database)) as store:
        program = make_program(store)
    server.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO clerk", database)
    with Store.open(address) as store:
        assert store.verify(program) == 1
        with pytest.raises(StoreError, match=f"lacks the right to do that; {NOTHING}: ask for the right"):
            append(store, program)
        server.execute("GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO clerk", database)
        append(store, program)
        with store.writing(program) as writer:
            writer.add_names(["ann"])
        with pytest.raises(StoreError, match=r"The erasure is recorded, but old copies .* lacks the right") as reported:
            erase(store, program)
        assert reported.value.recorded is True
        assert store.names(program).to_list() == [None]


def erase(store: Store, program: int) -> None:
    with store.writing(program) as writer:
        writer.erase_name(0)


def test_an_erasure_that_a_reader_keeps_from_the_files_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOCK_TIMEOUT_SECONDS", 0.05)
    path = tmp_path / "store.db"
    with Store.open(path) as store:
        program = make_program(store)
        with store.writing(program) as writer:
            writer.add_names(["ann"])
        reader = sqlite3.connect(path, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM programs").fetchall()
        with pytest.raises(StoreError, match=r"The erasure is recorded, .* somebody is reading") as reported:
            erase(store, program)
        assert reported.value.recorded is True
        assert store.names(program).to_list() == [None]
        reader.close()
        erase(store, program)


@pytest.mark.parametrize("code", ["53100", "58030", "57014"])
def test_what_the_server_reports_in_mid_write_is_reported(server: Postgres, code: str) -> None:
    cause = CODES.get(code, module.DEVICE)
    database = server.new_database()
    with Store.open(server.address(database)) as store:
        program = make_program(store)
        server.execute(
            f"CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{code}'; END $$",
            database,
        )
        server.execute("CREATE TRIGGER fail BEFORE INSERT ON parts EXECUTE FUNCTION fail()", database)
        with pytest.raises(StoreError, match=f"Writing to the store .* failed, {cause[0]}; {NOTHING}: {cause[1]}"):
            append(store, program)
        server.execute("DROP TRIGGER fail ON parts", database)
        append(store, program)
        assert store.verify(program) == 2


@pytest.fixture(scope="module")
def own_server() -> Iterator[Postgres]:
    """A server that is stopped in mid-work, with fsync on."""
    postgres = Postgres(fsync=True)
    try:
        postgres.start()
        yield postgres
    finally:
        postgres.remove()


def write_and_stop(store: Store, program: int, server: Postgres, again: bool) -> None:
    with store.writing(program) as writer:
        writer.append("opened", {}, columns_for(1))
        server.stop("immediate")
        if again:
            writer.append("opened", {}, columns_for(2))


def test_a_server_that_stops_in_mid_write_has_recorded_nothing_and_the_store_goes_on(own_server: Postgres) -> None:
    with Store.open(own_server.new_schema()) as store:
        program = make_program(store)
        append(store, program)
        with pytest.raises(StoreError, match=f"failed, the connection was lost; {NOTHING}: try again") as reported:
            write_and_stop(store, program, own_server, again=True)
        assert reported.value.recorded is False
        with pytest.raises(StoreError, match=r"Reading from the store .* failed, no server answers there; nothing was"):
            store.length(program)
        own_server.start()
        assert store.verify(program) == 2
        append(store, program)
        assert store.verify(program) == 3


def test_a_connection_that_breaks_at_the_commit_leaves_it_open_and_says_how_to_look(own_server: Postgres) -> None:
    with Store.open(own_server.new_schema()) as store:
        program = make_program(store)
        with pytest.raises(
            StoreError, match=r"it is not known whether .* 2 means it was, 1 that it was not"
        ) as reported:
            write_and_stop(store, program, own_server, again=False)
        assert reported.value.recorded is None
        assert PASSWORD not in str(reported.value)
        own_server.start()
        assert store.verify(program) == 1


def test_connections_that_a_restart_broke_are_replaced_unnoticed(own_server: Postgres) -> None:
    with Store.open(own_server.new_schema()) as store:
        program = make_program(store)
        own_server.stop("fast")
        own_server.start()
        append(store, program)
        assert store.verify(program) == 2


@pytest.mark.parametrize("code", CODES)
def test_every_code_has_a_cause_and_an_advice(code: str) -> None:
    origin = sqlite3.OperationalError("words that name nothing")
    origin.sqlite_errorname = f"{code}_MORE"
    assert find_cause(sa.exc.OperationalError("", {}, origin)) == CODES[code]


def test_a_cause_that_nobody_foresaw_is_quoted() -> None:
    origin = sqlite3.OperationalError("no such thing\nand more")
    assert find_cause(sa.exc.OperationalError("", {}, origin))[0] == "the database says 'no such thing'"


def test_there_are_connections_for_all_threads_of_a_server(store: Store) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(2 * (THREADS + MAX_LOOKUPS)):  # one that writes, and one that reads beside it
            stack.enter_context(store._engine.connect())
        assert store.programs() == []


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
        name: set(table.c.keys()) for name, table in module.metadata.tables.items()
    }
    assert "parts_by_chunk" in made["parts"][1]
    assert "events_by_round" in made["events"][1]


def test_bodies_are_not_compressed_again_by_postgresql(store: Store) -> None:
    if store._engine.dialect.name == "postgresql":
        stored = sa.text(
            "SELECT attrelid::regclass::text, attstorage::text FROM pg_attribute "
            "WHERE attname = 'body' AND atttypid = 'bytea'::regtype AND pg_table_is_visible(attrelid) ORDER BY 1"
        )
        with store._engine.connect() as connection:
            found = connection.execute(stored).all()
        assert [tuple(row) for row in found] == [("parts", "e"), ("roster", "e"), ("snapshots", "e")]


def test_files_of_a_new_store_belong_to_their_owner_alone(tmp_path: Path) -> None:
    shared = tmp_path / "shared.db"
    before = os.umask(0)
    try:
        with Store.open(tmp_path / "store.db") as store, store.creating("one") as writer:
            writer.append("created", {})
            modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
        shared.touch(0o660)
        Store.open(shared).close()
    finally:
        os.umask(before)
    assert modes == {"store.db": 0o600, "store.db-wal": 0o600, "store.db-shm": 0o600}
    assert shared.stat().st_mode & 0o777 == 0o660


def test_tables_that_cannot_all_be_created_leave_none(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: object) -> None:
        raise KeyError

    monkeypatch.setattr(module.version, "insert", fail)
    with pytest.raises(KeyError):
        Store.open(address)
    assert describe(address) == {}
    monkeypatch.undo()
    Store.open(address).close()
    assert set(describe(address)) == set(module.metadata.tables)


def test_a_database_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE patients (id INTEGER)")
    connection.close()
    content = path.read_bytes()
    with pytest.raises(InputError, match=r"is not a store of restive, it has other tables \(patients\)"):
        Store.open(path)
    assert path.read_bytes() == content
