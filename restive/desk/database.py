"""The database of a store: its tables, connections to SQLite files and PostgreSQL servers, and failures as sentences.

Transactions are durable once acknowledged: SQLite in WAL mode with synchronous=FULL, PostgreSQL with its own setting. A
writing transaction waits for the lock for at most LOCK_TIMEOUT_SECONDS. SQLite overwrites what it deletes
(secure_delete), because an erased name may be in a page that was freed before.

`restive.desk.migrations` creates and changes the tables; `restive_schema` holds their version, the number of transactions that
erased names, and how many of these were cleared from the files too; `restive_migrations` the changes that were made.

programs   one row each; the row is the program's lock; archived: since when it is read-only
events     the log: number from 0, header as JSON, digest of the chain, size of its parts in bytes
parts      the arrays of an event: name "" and a chunk of agents, or the name of an extra
roster     the names in chunks, the only personal data
snapshots  a projection after so many events, in slots, cut into pieces
audit_log  who had what recorded, by which key, and the answer; program null: it concerned the whole store
tokens     who may use a server, by the digest of a secret; grants: in which role and program (null: all)
sessions   who is signed in, by the digest of a cookie; invitations: who may sign in once, by the digest of a code
webhooks   where a server sends messages about a program, and the secret that signs them; deliveries: the messages
"""

import importlib.util
import os
import re
import sqlite3
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.pool import NullPool, QueuePool

from restive.errors import InputError

LOCK_TIMEOUT_SECONDS = 60
# Of all threads of a process: a server has about 20, and one that writes may read at the same time.
MAX_CONNECTIONS, POOL_SIZE = 40, 16
SECRET = {"password", "passfile", "sslpassword", "sslkey"}  # parameters that are not shown
LOCKED = ("somebody else is writing to it and does not finish", "try again when that is done")
FULL = ("there is no room left on the disk", "make room and try again")
NO_WRITE = ("it may only be read", "allow writing to its files, also -wal and -shm, and to their folder")
NO_OPEN = ("the file cannot be opened", "see that it and its folder are there and may be read and written")
DAMAGED = ("the database is damaged", "restore it from a backup")
DEVICE = ("the disk reported an error", "check the disk and try again")
LOST = ("the connection was lost", "try again when the server is up")
REFUSED = ("no server answers there", "start the server or correct the address, and try again")
RIGHTS = ("the database user lacks the right to do that", "ask for the right or use another user")
PASSWORD = ("the user or the password was not accepted", "correct the address and try again")
NO_DATABASE = ("there is no such database on the server", "make it with createdb or correct the address")
CROWDED = ("there is no connection left", "try again when others have finished")

# The beginning of SQLite's name of an error, or of PostgreSQL's SQLSTATE.
CODES = {
    "SQLITE_BUSY": LOCKED,
    "SQLITE_LOCKED": LOCKED,
    "SQLITE_FULL": FULL,
    "SQLITE_READONLY": NO_WRITE,
    "SQLITE_PERM": NO_WRITE,
    "SQLITE_CANTOPEN": NO_OPEN,
    "SQLITE_NOTADB": ("the file is no database", "name another file"),
    "SQLITE_CORRUPT": DAMAGED,
    "SQLITE_IOERR": DEVICE,
    "08": LOST,
    "25006": ("it may only be read", "open it for writing, on a server that allows it"),
    "28": PASSWORD,
    "3D000": NO_DATABASE,
    "40P01": LOCKED,
    "42501": RIGHTS,
    "53100": FULL,
    "53300": CROWDED,
    "55P03": LOCKED,
    "57014": ("the server cancelled it", "try again, or ask who runs the server"),
    "57": LOST,
    "58": DEVICE,
    "XX": DAMAGED,
}
# A failed connection has no code, only a message.
WORDS = {
    "malformed": DAMAGED,
    "authentication failed|no password supplied|pg_hba.conf|role .* does not exist": PASSWORD,
    "database .* does not exist": NO_DATABASE,
    "too many (clients|connections)|connection slots|QueuePool limit": CROWDED,
    "the database system is|closed the connection|connection is (lost|closed)|consuming input|terminating": LOST,
    "reset by peer|Broken pipe": LOST,
    "refused|No such file|timeout|timed out|translate host|resolve host|unreachable": REFUSED,
}


LONG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # SQLite numbers rows by an INTEGER PRIMARY KEY only

metadata = sa.MetaData()
version = sa.Table(
    "restive_schema",
    metadata,
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("erasures", sa.Integer, nullable=False),
    sa.Column("purged", sa.Integer, nullable=False),
)
migrations = sa.Table(
    "restive_migrations",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("at", sa.Text, nullable=False),
)
programs = sa.Table(
    "programs",
    metadata,
    sa.Column("id", LONG, primary_key=True, autoincrement=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("created", sa.Text, nullable=False),
    sa.Column("archived", sa.Text),
)
events = sa.Table(
    "events",
    metadata,
    sa.Column("program", LONG, sa.ForeignKey("programs.id"), primary_key=True),
    sa.Column("number", LONG, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("round", LONG),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("header", sa.Text, nullable=False),
    sa.Column("size", LONG, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Index("events_by_round", "program", "round", "number"),
)
parts = sa.Table(
    "parts",
    metadata,
    sa.Column("program", LONG, primary_key=True),
    sa.Column("event", LONG, primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("chunk", LONG, primary_key=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.ForeignKeyConstraint(["program", "event"], ["events.program", "events.number"]),
    sa.Index("parts_by_chunk", "program", "chunk", "event"),
)
roster = sa.Table(
    "roster",
    metadata,
    sa.Column("program", LONG, sa.ForeignKey("programs.id"), primary_key=True),
    sa.Column("chunk", LONG, primary_key=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
display = sa.Table(
    "display",
    metadata,
    sa.Column("program", LONG, sa.ForeignKey("programs.id"), primary_key=True),
    sa.Column("agent", LONG, primary_key=True),
    sa.Column("cells", sa.Text, nullable=False),
    sqlite_with_rowid=False,
)
snapshots = sa.Table(
    "snapshots",
    metadata,
    sa.Column("program", LONG, sa.ForeignKey("programs.id"), primary_key=True),
    sa.Column("slot", sa.Text, primary_key=True),
    sa.Column("events", LONG, primary_key=True),
    sa.Column("piece", LONG, primary_key=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
audit_log = sa.Table(
    "audit_log",
    metadata,
    sa.Column("number", LONG, primary_key=True, autoincrement=True),
    sa.Column("program", LONG, sa.ForeignKey("programs.id")),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("by", sa.Text, nullable=False),
    sa.Column("verb", sa.Text, nullable=False),
    sa.Column("round", LONG),
    sa.Column("key", sa.Text),
    sa.Column("asked", sa.Text, nullable=False),
    sa.Column("answer", sa.Text, nullable=False),
    sa.Column("first", LONG, nullable=False),  # event that it recorded
    sa.Column("end", LONG, nullable=False),  # after its last event
    sa.UniqueConstraint("program", "key"),
    sa.Index("audit_log_by_program", "program", "number"),
)
tokens = sa.Table(
    "tokens",
    metadata,
    sa.Column("id", LONG, primary_key=True, autoincrement=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("created", sa.Text, nullable=False),
    sa.Column("expires", sa.Text),
    sa.Column("revoked", sa.Text),
)
grants = sa.Table(
    "grants",
    metadata,
    sa.Column("token", LONG, sa.ForeignKey("tokens.id"), nullable=False, index=True),
    sa.Column("program", LONG, sa.ForeignKey("programs.id")),
    sa.Column("role", sa.Text, nullable=False),
)
sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("digest", sa.Text, primary_key=True),
    sa.Column("token", LONG, sa.ForeignKey("tokens.id"), nullable=False, index=True),
    sa.Column("expires", sa.Text, nullable=False),
)

invitations = sa.Table(
    "invitations",
    metadata,
    sa.Column("digest", sa.Text, primary_key=True),
    sa.Column("token", LONG, sa.ForeignKey("tokens.id"), nullable=False, index=True),
    sa.Column("expires", sa.Text, nullable=False),
)
webhooks = sa.Table(
    "webhooks",
    metadata,
    sa.Column("id", LONG, primary_key=True, autoincrement=True),
    sa.Column("program", LONG, sa.ForeignKey("programs.id"), nullable=False, index=True),
    sa.Column("url", sa.Text, nullable=False),
    sa.Column("events", sa.Text, nullable=False),  # separated by spaces
    sa.Column("secret", sa.Text, nullable=False),
    sa.Column("previous_secret", sa.Text),  # also signs, after the secret was replaced,
    sa.Column("previous_until", sa.Text),  # until then
    sa.Column("enabled", sa.Boolean, nullable=False),
    sa.Column("created", sa.Text, nullable=False),
)
deliveries = sa.Table(
    "deliveries",
    metadata,
    sa.Column("id", LONG, primary_key=True, autoincrement=True),  # in the order of occurrence within a program
    sa.Column("program", LONG, sa.ForeignKey("programs.id"), nullable=False, index=True),
    sa.Column("webhook", LONG, sa.ForeignKey("webhooks.id"), nullable=False),
    sa.Column("message", sa.Text, nullable=False),  # the webhook-id
    sa.Column("type", sa.Text, nullable=False),
    sa.Column("round", LONG),
    sa.Column("event", LONG),  # the last one of the request that it is about
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("undone", sa.Boolean, nullable=False),  # whether that request was undone
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("attempted", sa.Text),  # when it was last sent
    sa.Column("due", sa.Text, nullable=False),  # when it may be sent next; during an attempt, until when it is leased
    sa.Column("result", sa.Text),
    sa.Index("deliveries_by_webhook", "webhook", "id"),
    sa.Index("deliveries_by_status", "status", "due"),
)


class StoreError(InputError):
    """The database failed. `recorded`: False, nothing of the call was; True, all of it was; None, that is not known."""

    code = "store_unavailable"

    def __init__(self, sentence: str, recorded: bool | None = False):
        super().__init__(sentence)
        self.recorded = recorded


class StoreRestored(StoreError):  # noqa: N818 - a kind of store error
    """The log of a program is not the one that this process has read: somebody restored or replaced the store."""

    code = "store_restored"

    def __init__(self, program: str) -> None:
        super().__init__(
            f"The log of {program} is not the one that was read before, as if the store had been restored from a backup; "
            "nothing was recorded: try again."
        )


def find_cause(error: Exception) -> tuple[str, str]:
    """What went wrong, and what to do about it."""
    origin = getattr(error, "orig", None) or error
    code = getattr(origin, "sqlite_errorname", None) or getattr(origin, "sqlstate", None)
    if code:
        found = [cause for start, cause in CODES.items() if code.startswith(start)]
    else:
        found = [cause for words, cause in WORDS.items() if re.search(words, str(origin))]
    if found:
        return found[0]
    if getattr(error, "connection_invalidated", False):
        return LOST
    return f"the database says {str(origin).strip().splitlines()[0]!r}", "fix the cause and try again"


def explain(error: Exception, doing: str, shown: str, written: bool) -> StoreError:
    """The failure as a sentence, when nothing of the call was recorded; `written`: it was to write something."""
    cause, advice = find_cause(error)
    outcome = "nothing of this call was recorded" if written else "nothing was changed"
    return StoreError(f"{doing} the store {shown} failed, {cause}; {outcome}: {advice}.")


def explain_doubt(error: Exception, shown: str, before: int, length: int) -> StoreError:
    """The failure of a COMMIT without an answer, of a log that had and would have so many events."""
    return StoreError(
        f"Writing to the store {shown} failed at the very end, {find_cause(error)[0]}, so it is not known "
        "whether this call was recorded: look up how many events the program has when the store "
        f"answers; {length} means it was, {before} that it was not and is to be repeated.",
        recorded=None,
    )


def connect(address: str | os.PathLike[str], read_only: bool = False, at_once: bool = False) -> tuple[sa.Engine, str]:
    """An engine for the address, and the address as it may be shown; nothing is opened yet.

    `at_once`: one connection, which does not wait for others; only of a SQLite file.
    """
    text = os.fspath(address)
    scheme = text.partition("://")[0] if "://" in text else ""
    if scheme in ("postgresql", "postgres", "postgresql+psycopg"):
        return _connect_postgresql(text, read_only)
    if scheme not in ("", "sqlite"):
        raise InputError(f"A store is FILE.db or postgresql://USER@HOST/DATABASE; {scheme}:// is not known.")
    return _connect_sqlite(text.removeprefix("sqlite:///") if scheme else text, read_only, at_once)


def _connect_postgresql(text: str, read_only: bool) -> tuple[sa.Engine, str]:
    if importlib.util.find_spec("psycopg") is None:
        raise InputError('PostgreSQL needs one more package: pip install "restive[postgresql]".')
    try:
        url = sa.make_url(text).set(drivername="postgresql+psycopg")
    except (sa.exc.ArgumentError, ValueError):
        # The address is not repeated: it may hold a password.
        raise InputError("The address of the store is not of the form postgresql://USER@HOST:PORT/DATABASE.") from None
    query = {name: value for name, value in url.query.items() if name not in SECRET}
    shown = url._replace(password=None).set(drivername="postgresql", query=query).render_as_string()
    engine = sa.create_engine(
        url.update_query_dict({} if "connect_timeout" in url.query else {"connect_timeout": "10"}),
        isolation_level="READ COMMITTED",  # so that reads after taking the lock see the last writer's changes
        pool_pre_ping=True,
        pool_size=POOL_SIZE,
        max_overflow=MAX_CONNECTIONS - POOL_SIZE,
        hide_parameters=True,
        execution_options={"postgresql_readonly": True} if read_only else {},
    )
    return engine, shown


def _connect_sqlite(text: str, read_only: bool, at_once: bool = False) -> tuple[sa.Engine, str]:
    path = Path(text).absolute()
    seconds = 0.0 if at_once else LOCK_TIMEOUT_SECONDS

    def open_file() -> sqlite3.Connection:
        source = f"file:{quote(str(path))}{_read_only_mode(path) if read_only else ''}"
        connection = sqlite3.connect(source, timeout=seconds, isolation_level=None, check_same_thread=False, uri=True)
        try:
            for setting in ("synchronous=FULL", "foreign_keys=ON", "secure_delete=ON"):
                connection.execute(f"PRAGMA {setting}")
        except BaseException as error:
            connection.close()
            if isinstance(error, UnicodeDecodeError):  # SQLite quotes a damaged schema in its message
                raise sqlite3.DatabaseError("the schema is malformed") from error
            raise
        return connection

    size, spare = (1, 0) if at_once else (POOL_SIZE, MAX_CONNECTIONS - POOL_SIZE)
    limits = {} if read_only else {"pool_size": size, "max_overflow": spare}
    pool = NullPool if read_only else QueuePool
    engine = sa.create_engine("sqlite://", creator=open_file, poolclass=pool, hide_parameters=True, **limits)
    sa.event.listen(engine, "begin", _begin_sqlite)
    sa.event.listen(engine, "connect", lambda _, record: record.info.update(writable=_may_write(path)))
    sa.event.listen(engine, "checkin", _let_go_if_read_only)
    return engine, text


def _read_only_mode(path: Path) -> str:
    """How to read a file: a folder that may not be written cannot hold the shared memory that a WAL needs.

    Without a WAL the file alone is read, as if nobody could change it. Somebody might, so such a connection is
    used for one transaction only, and the next connection decides again.
    """
    return "?mode=ro" if _may_write(path.parent) or path.with_name(path.name + "-wal").exists() else "?immutable=1"


def _may_write(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _let_go_if_read_only(_: object, record: sa.pool.ConnectionPoolEntry) -> None:
    """Drop a connection that was made while the file was read-only: it would stay read-only."""
    if not record.info.get("writable", True):
        record.invalidate()


def _begin_sqlite(connection: sa.Connection) -> None:
    """Take the write lock at once: a transaction that starts by reading can be refused the lock without waiting."""
    options = connection.get_execution_options()
    if not options.get("alone"):
        connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("writing") else "BEGIN")


def connect_alone(engine: sa.Engine) -> sa.Connection:
    """A connection outside of transactions, for statements that must not be in one."""
    if engine.dialect.name == "sqlite":
        return engine.connect().execution_options(alone=True)
    return engine.connect().execution_options(isolation_level="AUTOCOMMIT")


def check_place(shown: str, read_only: bool) -> None:
    """Refuse a SQLite file that cannot be there: in no folder, a folder itself, or to be read and not there."""
    path = Path(shown)
    if path.is_dir():
        raise StoreError(f"The store {shown} is a folder; name a file in it.")
    if not path.absolute().parent.is_dir():
        raise StoreError(f"There is no folder {path.parent} for the store {shown}: make it, or name another.")
    if read_only and not path.exists():
        raise StoreError(f"There is no store {shown} to read from: check the name.")


def create_file(shown: str) -> None:
    """Create a SQLite file that only its owner can read, if it is missing; SQLite gives -wal and -shm the same rights."""
    with suppress(OSError):  # SQLite reports the reason
        os.close(os.open(shown, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def use_write_ahead_log(engine: sa.Engine) -> None:
    """Put a SQLite file into WAL mode, waiting for other processes, which SQLite does not do here."""
    deadline = time.monotonic() + LOCK_TIMEOUT_SECONDS
    while True:
        try:
            with connect_alone(engine) as connection:
                if connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() != "wal":
                    connection.exec_driver_sql("PRAGMA journal_mode=WAL")
            return
        except sa.exc.OperationalError as error:
            if find_cause(error) != LOCKED or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def purge_deleted(engine: sa.Engine, *tables: str) -> str | None:
    """Remove deleted rows from the files too; returns what prevented it, or None."""
    if engine.dialect.name == "sqlite":
        with engine.connect().execution_options(writing=True) as connection, connection.begin():
            for personal in (roster, display):
                _rewrite(connection, personal)
    with connect_alone(engine) as connection:
        if connection.dialect.name == "sqlite":
            busy = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()[0]
            return "somebody is reading and does not finish" if busy else None
        connection.exec_driver_sql(f"SET lock_timeout = '{LOCK_TIMEOUT_SECONDS}s'")
        for table in tables:
            file = sa.select(sa.func.pg_relation_filenode(table))
            before = connection.execute(file).scalar()
            connection.exec_driver_sql(f"VACUUM (FULL) {table}")
            # Only the owner of a table may rewrite it; for others PostgreSQL merely warns.
            if connection.execute(file).scalar() == before:
                return RIGHTS[0]
        return None


def _rewrite(connection: sa.Connection, table: sa.Table) -> None:
    """Copy a table of SQLite to new pages and clear the old ones.

    SQLite overwrites the bytes of a row that is deleted, but not the copies that stay in unused space of other pages
    when rows have moved between pages.
    """
    old = f"{table.name}_old"
    connection.exec_driver_sql(f"ALTER TABLE {table.name} RENAME TO {old}")
    connection.execute(sa.schema.CreateTable(table))
    connection.exec_driver_sql(f"INSERT INTO {table.name} SELECT * FROM {old}")
    connection.exec_driver_sql(f"DROP TABLE {old}")


def program_tables() -> list[sa.Table]:
    """All tables with rows of a program, each before those that it refers to."""
    return [table for table in reversed(metadata.sorted_tables) if "program" in table.c]
