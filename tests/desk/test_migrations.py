"""Versions of a store: what is refused, expanded and contracted, on SQLite and PostgreSQL."""

import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from restive.cli import app
from restive.desk import Desk
from restive.desk.database import migrations, version
from restive.desk.migrations import FIRST, VERSION, Migration, migrate
from restive.desk.replay import replay
from restive.desk.store import Store
from restive.desk.webhooks import add_webhook, list_webhooks
from restive.errors import InputError

STATES = {"ann": 0, "ben": 1, "cem": 0}
NEXT = Migration(
    VERSION + 1,
    "programs have a color",
    ("ALTER TABLE programs ADD COLUMN color TEXT", "CREATE INDEX programs_by_color ON programs (color)"),
    ("DROP INDEX programs_by_color", "ALTER TABLE programs DROP COLUMN color"),
)


def make_first(address: str) -> None:
    """A store as the first version made it, with a program that has a round and a webhook."""
    with Desk(address) as desk:
        program = desk.create("calls", states=["low", "high"], rewards=[0, 1], budget=1, policy="egt", control=0)
        program.decide(STATES)
        add_webhook(program, "https://example.org/hook")
        with desk.store.transact() as connection:
            for column in ("previous_secret", "previous_until"):
                connection.exec_driver_sql(f"ALTER TABLE webhooks DROP COLUMN {column}")
            migrations.drop(connection)


def test_a_store_of_the_version_before_is_refused_until_it_is_migrated(address: str) -> None:
    make_first(address)
    for read_only in (False, True):
        with pytest.raises(
            InputError, match=rf"version {FIRST} of .* needs version {VERSION}: run `restive desk mig"
        ) as no:
            Store.open(address, read_only)
        assert no.value.code == "store_version"
    assert [each.number for each in migrate(address, dry_run=True).expansions] == list(range(FIRST + 1, VERSION + 1))
    migrate(address)
    assert migrate(address).expansions == []
    with Desk(address) as desk:
        program = desk.program("calls")
        assert program.decide(STATES, again=True).round == 2
        assert [row["url"] for row in list_webhooks(program)] == ["https://example.org/hook"]
        assert replay(program).proven
        assert list(desk.store.execute(sa.select(migrations.c.number))) == [(VERSION,)]


def test_an_expanded_store_serves_both_versions_and_a_contracted_one_the_new_one(address: str) -> None:
    with Desk(address) as old:
        program = old.create("calls", states=["low", "high"], policy="egt")
        program.decide(STATES)
        migrate(address, known=[NEXT])
        program.decide(STATES, again=True)  # by connections that were open before
    with Desk(address) as old:
        assert old.program("calls").decide(STATES, again=True).round == 3
        old.create("another", states=["low", "high"])
    assert migrate(address, contract=True, dry_run=True, known=[NEXT]).contractions == [NEXT]
    migrate(address, contract=True, known=[NEXT])
    with pytest.raises(InputError, match=rf"needs version {NEXT.number} of the tables; .* knows version {VERSION}"):
        Desk(address)
    assert migrate(address, contract=True, known=[NEXT]).contractions == []


def test_a_contraction_needs_its_expansion_and_an_older_store_is_not_read(address: str) -> None:
    with Desk(address) as desk:
        desk.create("calls", states=["low", "high"])
    with pytest.raises(InputError, match="is not expanded yet"):
        migrate(address, contract=True, known=[NEXT])
    with Store.open(address) as store, store.transact() as connection:
        connection.execute(version.update().values(version=FIRST - 1))
    with pytest.raises(InputError, match=rf"has version {FIRST - 1} of the tables, which .* cannot read"):
        Store.open(address)


def test_an_empty_database_has_nothing_to_migrate_and_one_of_something_else_is_refused(tmp_path: Path) -> None:
    empty, other = tmp_path / "empty.db", tmp_path / "other.db"
    empty.touch()
    assert migrate(str(empty)).expansions == []
    Store.open(empty).close()
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE patients (id INTEGER)")
    connection.close()
    with pytest.raises(InputError, match="is not a store of restive"):
        migrate(str(other))


def test_a_migration_that_fails_changes_nothing(address: str) -> None:
    Store.open(address).close()
    wrong = Migration(VERSION + 1, "wrong", (*NEXT.expand, "ALTER TABLE nothing ADD COLUMN x TEXT"))
    with pytest.raises(InputError, match=r"Changing the tables of the store .* nothing of this call was recorded"):
        migrate(address, known=[wrong])
    migrate(address, known=[NEXT])  # the column is not there yet


def test_the_command_checks_and_migrates(tmp_path: Path) -> None:
    store, runner = str(tmp_path / "team.db"), CliRunner()
    make_first(store)
    checked = runner.invoke(app, ["desk", "migrate", "--check", "--store", store])
    assert (checked.exit_code, "to do: 8, webhooks keep" in checked.stdout) == (1, True)
    done = runner.invoke(app, ["desk", "migrate", "--store", store])
    assert (done.exit_code, "done: 8" in done.stdout) == (0, True)
    again = runner.invoke(app, ["desk", "migrate", "--check", "--json", "--store", store])
    assert (again.exit_code, '"steps": []' in again.stdout) == (0, True)
    missing = runner.invoke(app, ["desk", "migrate", "--store", str(tmp_path / "no.db")])
    assert missing.exit_code != 0
    assert not (tmp_path / "no.db").exists()
