"""Versions of a store: numbered migrations in two halves, so that servers of two versions can share a store meanwhile.

The first half of a migration expands the tables: it adds what the new version needs, and the version before does not notice.
The second half contracts them: it removes what only the version before needed. So an upgrade without a pause is

    restive desk migrate             expands; servers of the old version go on
    replace the servers one by one
    restive desk migrate --contract  contracts, if there is anything to remove; the old version is then refused

`restive_migrations` has the migrations that were expanded; `restive_schema.version` is the oldest version of the tables that a
process must know to use them, which a contraction raises. A process that knows version V uses a store if that version is at
most V, and if all migrations up to V were expanded; later ones do not matter.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import sqlalchemy as sa

from restive.desk.database import check_place, connect, explain, metadata, migrations, parts, roster, snapshots, version
from restive.errors import InputError

FIRST = 7  # the version of the tables before all migrations
LOCK = 0x7265737469766531  # PostgreSQL's advisory lock while tables are created or changed: "restive1" in ASCII
LOCK_SECONDS = 5  # a change of a table waits so long for others, who wait for it meanwhile


class Migration(NamedTuple):
    """A change of the tables: statements of SQL for both kinds of databases."""

    number: int
    about: str
    expand: tuple[str, ...]
    contract: tuple[str, ...] = ()


MIGRATIONS: tuple[Migration, ...] = (
    Migration(
        8,
        "webhooks keep the secret before for a while",
        (
            "ALTER TABLE webhooks ADD COLUMN previous_secret TEXT",
            "ALTER TABLE webhooks ADD COLUMN previous_until TEXT",
        ),
    ),
)
VERSION = MIGRATIONS[-1].number  # that this version of restive knows and needs


class StoreVersion(NamedTuple):
    """What was done to a store, and what `migrate` would do."""

    oldest: int  # version that a process must know
    newest: int  # migration that was expanded
    expansions: list[Migration]
    contractions: list[Migration]


def read_version(connection: sa.Connection, tables: set[str], known: Sequence[Migration]) -> StoreVersion:
    """The version of a store with these tables."""
    oldest = int(connection.execute(sa.select(version.c.version)).scalar_one())
    done = set(connection.execute(sa.select(migrations.c.number)).scalars()) if migrations.name in tables else set()
    newest = max(done, default=min(oldest, FIRST))
    expansions = [each for each in known if each.number not in done]
    contractions = [each for each in known if each.contract and each.number > oldest]
    return StoreVersion(oldest, newest, expansions, contractions)


def has_tables(connection: sa.Connection, shown: str) -> bool:
    """Whether the database is a store; one that this version cannot use, or with tables of something else, is refused."""
    tables = set(sa.inspect(connection).get_table_names())  # one query: another process may create them meanwhile
    if version.name in tables:
        _check(read_version(connection, tables, MIGRATIONS), shown)
        return True
    foreign = tables if connection.dialect.name == "sqlite" else tables & set(metadata.tables)
    if foreign:
        raise InputError(
            f"The database {shown} is not a store of restive, it has other tables ({min(foreign)}): "
            "name a new file, or a database or schema of its own."
        )
    return False


def _check(found: StoreVersion, shown: str) -> None:
    """Refuse a store whose tables this version does not know, or that lack what it needs."""
    code = "store_version"
    if found.oldest > VERSION:
        raise InputError(
            f"The store {shown} needs version {found.oldest} of the tables; this version of restive knows version "
            f"{VERSION}: use a later version of restive.",
            code=code,
        )
    if found.oldest < FIRST:
        raise InputError(
            f"The store {shown} has version {found.oldest} of the tables, which this version of restive cannot read.",
            code=code,
        )
    if found.expansions:
        raise InputError(
            f"The store {shown} has version {found.newest} of the tables; this version of restive needs version {VERSION}: "
            "run `restive desk migrate` with this store.",
            code=code,
        )


def create_tables(connection: sa.Connection, shown: str) -> None:
    """Create the tables, inside the transaction of the caller, which holds SQLite's write lock."""
    _lock(connection)
    if has_tables(connection, shown):  # again, under the lock: another process may have created them
        return
    metadata.create_all(connection, checkfirst=False)
    oldest = max((each.number for each in MIGRATIONS if each.contract), default=FIRST)  # new tables are contracted
    connection.execute(version.insert().values(version=oldest, erasures=0, purged=0))
    _note(connection, MIGRATIONS)
    if connection.dialect.name == "postgresql":
        for table in (parts, roster, snapshots):  # bodies are compressed already
            connection.exec_driver_sql(f"ALTER TABLE {table.name} ALTER COLUMN body SET STORAGE EXTERNAL")


def migrate(
    address: str, contract: bool = False, dry_run: bool = False, known: Sequence[Migration] | None = None
) -> StoreVersion:
    """Expand the tables of a store, or contract them; returns what was to be done. A dry run changes nothing."""
    known = MIGRATIONS if known is None else known
    engine, shown = connect(address, read_only=dry_run)
    try:
        if engine.dialect.name == "sqlite":
            check_place(shown, read_only=True)
        with engine.connect().execution_options(writing=not dry_run) as connection, connection.begin():
            if not dry_run:
                _lock(connection)
            tables = set(sa.inspect(connection).get_table_names())
            if version.name not in tables:
                has_tables(connection, shown)  # refuses a database of something else
                return StoreVersion(VERSION, VERSION, [], [])  # it is empty: the first use creates the tables
            found = read_version(connection, tables, known)
            if contract and found.expansions:
                raise InputError(f"The store {shown} is not expanded yet: run `restive desk migrate` first.")
            if not dry_run:
                (_contract if contract else _expand)(connection, found)
        return found
    except sa.exc.SQLAlchemyError as error:
        raise explain(error, "Changing the tables of", shown, written=True) from error
    finally:
        engine.dispose()


def _expand(connection: sa.Connection, found: StoreVersion) -> None:
    for each in found.expansions:
        for statement in each.expand:
            connection.exec_driver_sql(statement)
    if found.expansions:
        migrations.create(connection, checkfirst=True)
        _note(connection, found.expansions)


def _contract(connection: sa.Connection, found: StoreVersion) -> None:
    for each in found.contractions:
        for statement in each.contract:
            connection.exec_driver_sql(statement)
    if found.contractions:
        connection.execute(version.update().values(version=found.contractions[-1].number))


def _lock(connection: sa.Connection) -> None:
    """Wait for others who change tables, and never for long for those who use them."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK)))
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")


def _note(connection: sa.Connection, done: Sequence[Migration]) -> None:
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    if done:
        connection.execute(migrations.insert(), [{"number": each.number, "at": now} for each in done])
