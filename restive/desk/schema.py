"""The tables of a store, and how a store of an older version is brought to this one.

The log and the roster are version 1, the index of histories and the snapshots version 2, audit_log, tokens and sessions
version 3. A migration is a function over
alembic's operations; the list of them is the history of the schema: one that was released is never edited, and its
place in the list is the version it makes. `restive_schema` holds the version a store has.

    programs   one row each, the row is the program's lock
    events     the log: number from 0 on, header as JSON, digest of the chain, size of its parts in bytes
    parts      the arrays of an event: name "" and a chunk of agents, or WHOLE; or the name of an extra and WHOLE
    roster     the names in chunks, the only personal data
    snapshots  a belief after so many events, in slots, cut into pieces
    audit_log      who had what recorded, by which key, and what was answered; program null: it was about the whole store
    tokens     whom a server lets in, by the digest of a secret; grants: as what, in which program (null: in all)
    sessions   who is signed in, by the digest of a cookie
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import sqlalchemy as sa

from restive.errors import InputError

if TYPE_CHECKING:
    from alembic.operations import Operations

LOCK = 0x7265737469766531  # PostgreSQL's advisory lock for migrations: "restive1" in ASCII
LONG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # SQLite counts up its INTEGER PRIMARY KEY only

version = sa.table("restive_schema", sa.column("version", sa.Integer))
programs = sa.table("programs", sa.column("id", LONG), sa.column("name", sa.Text), sa.column("created", sa.Text))
events = sa.table(
    "events",
    *(sa.column(name, LONG) for name in ("program", "number", "round", "size")),
    *(sa.column(name, sa.Text) for name in ("kind", "at", "header", "digest")),
)
parts = sa.table(
    "parts",
    *(sa.column(name, LONG) for name in ("program", "event", "chunk")),
    sa.column("name", sa.Text),
    sa.column("body", sa.LargeBinary),
)
roster = sa.table(
    "roster", *(sa.column(name, LONG) for name in ("program", "chunk")), sa.column("body", sa.LargeBinary)
)
snapshots = sa.table(
    "snapshots",
    *(sa.column(name, LONG) for name in ("program", "events", "piece")),
    sa.column("slot", sa.Text),
    sa.column("body", sa.LargeBinary),
)
audit_log = sa.table(
    "audit_log",
    *(sa.column(name, LONG) for name in ("number", "program", "round")),
    *(sa.column(name, sa.Text) for name in ("at", "by", "verb", "key", "asked", "answer")),
)
tokens = sa.table(
    "tokens",
    sa.column("id", LONG),
    *(sa.column(name, sa.Text) for name in ("name", "digest", "created", "expires", "revoked")),
)
grants = sa.table("grants", *(sa.column(name, LONG) for name in ("token", "program")), sa.column("role", sa.Text))
sessions = sa.table("sessions", sa.column("token", LONG), *(sa.column(name, sa.Text) for name in ("digest", "expires")))
TABLES = (programs, events, parts, roster, snapshots, audit_log, tokens, grants, sessions)


def make_log_and_roster(op: "Operations") -> None:
    """Version 1: programs, events with their parts, names."""
    op.create_table(
        "programs",
        sa.Column("id", LONG, primary_key=True, autoincrement=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("created", sa.Text, nullable=False),
    )
    op.create_table(
        "events",
        sa.Column("program", LONG, sa.ForeignKey("programs.id"), primary_key=True),
        sa.Column("number", LONG, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("round", LONG),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("header", sa.Text, nullable=False),
        sa.Column("size", LONG, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
    )
    op.create_table(
        "parts",
        sa.Column("program", LONG, primary_key=True),
        sa.Column("event", LONG, primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("chunk", LONG, primary_key=True),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.ForeignKeyConstraint(["program", "event"], ["events.program", "events.number"]),
    )
    op.create_table(
        "roster",
        sa.Column("program", LONG, sa.ForeignKey("programs.id"), primary_key=True),
        sa.Column("chunk", LONG, primary_key=True),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    _store_uncompressed(op, "parts", "roster")


def add_histories_and_snapshots(op: "Operations") -> None:
    """Version 2: indexes for the chunk of an agent in all events and for the events of a round; snapshots."""
    op.create_index("parts_by_chunk", "parts", ["program", "chunk", "event"])
    op.create_index("events_by_round", "events", ["program", "round", "number"])
    op.create_table(
        "snapshots",
        sa.Column("program", LONG, sa.ForeignKey("programs.id"), primary_key=True),
        sa.Column("slot", sa.Text, primary_key=True),
        sa.Column("events", LONG, primary_key=True),
        sa.Column("piece", LONG, primary_key=True),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    _store_uncompressed(op, "snapshots")


def add_audit_log_and_tokens(op: "Operations") -> None:
    """Version 3: who did what, and who may."""
    op.create_table(
        "audit_log",
        sa.Column("number", LONG, primary_key=True, autoincrement=True),
        sa.Column("program", LONG, sa.ForeignKey("programs.id")),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("verb", sa.Text, nullable=False),
        sa.Column("round", LONG),
        sa.Column("key", sa.Text),
        sa.Column("asked", sa.Text, nullable=False),
        sa.Column("answer", sa.Text, nullable=False),
        sa.UniqueConstraint("program", "key"),
    )
    op.create_index("audit_log_by_program", "audit_log", ["program", "number"])
    op.create_table(
        "tokens",
        sa.Column("id", LONG, primary_key=True, autoincrement=True),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("name", "digest", "created")),
        *(sa.Column(name, sa.Text) for name in ("expires", "revoked")),
    )
    op.create_table(
        "grants",
        sa.Column("token", LONG, sa.ForeignKey("tokens.id"), nullable=False, index=True),
        sa.Column("program", LONG, sa.ForeignKey("programs.id")),
        sa.Column("role", sa.Text, nullable=False),
    )
    op.create_table(
        "sessions",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("token", LONG, sa.ForeignKey("tokens.id"), nullable=False, index=True),
        sa.Column("expires", sa.Text, nullable=False),
    )


MIGRATIONS: tuple[Callable[["Operations"], None], ...] = (
    make_log_and_roster,
    add_histories_and_snapshots,
    add_audit_log_and_tokens,
)
NEWEST = len(MIGRATIONS)


def check_version(connection: sa.Connection, shown: str) -> int:
    """The version of the store, 0 when there is none yet; refuse one from the future, and somebody else's database."""
    # Asked once: between two questions another process may have made the tables.
    tables = set(sa.inspect(connection).get_table_names())
    if version.name in tables:
        found = int(connection.execute(sa.select(version.c.version)).scalar_one())
        if found > NEWEST:
            raise InputError(
                f"The store {shown} has version {found}, this restive knows versions up to {NEWEST}: "
                "use a newer restive."
            )
        return found
    foreign = tables if connection.dialect.name == "sqlite" else tables & {table.name for table in TABLES}
    if foreign:
        raise InputError(
            f"The database {shown} is no store of restive, it has other tables ({min(foreign)}): "
            "name a new file, or a database or schema of its own."
        )
    return 0


def migrate(connection: sa.Connection, shown: str, to: int = NEWEST) -> None:
    """Bring the store to version `to`, inside the transaction of the caller, which holds SQLite's write lock."""
    # Loading alembic takes a fifth of a second, which only a store that is made or migrated should cost.
    from alembic.migration import MigrationContext
    from alembic.operations import Operations

    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK)))
    found = check_version(connection, shown)  # again, under the lock: another process may have been quicker
    op = Operations(MigrationContext.configure(connection))
    if found == 0 and to > 0:
        op.create_table(version.name, sa.Column("version", sa.Integer, nullable=False))
        connection.execute(version.insert().values(version=0))
    for step in MIGRATIONS[found:to]:
        step(op)
    connection.execute(version.update().values(version=max(found, to)))


def _store_uncompressed(op: "Operations", *tables: str) -> None:
    """Bodies are compressed already; PostgreSQL need not try again."""
    if op.get_context().dialect.name == "postgresql":
        for table in tables:
            op.execute(f"ALTER TABLE {table} ALTER COLUMN body SET STORAGE EXTERNAL")
