"""The tables of a store, created in one step; `restive_schema` holds their version.

programs   one row each; the row is the program's lock
events     the log: number from 0, header as JSON, digest of the chain, size of its parts in bytes
parts      the arrays of an event: name "" and a chunk of agents, or the name of an extra
roster     the names in chunks, the only personal data
snapshots  a projection after so many events, in slots, cut into pieces
audit_log  who had what recorded, by which key, and the answer; program null: it concerned the whole store
tokens     who may use a server, by the digest of a secret; grants: in which role and program (null: all)
sessions   who is signed in, by the digest of a cookie
"""

import sqlalchemy as sa

from restive.errors import InputError

VERSION = 4
LOCK = 0x7265737469766531  # PostgreSQL's advisory lock while tables are created: "restive1" in ASCII
LONG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # SQLite numbers rows by an INTEGER PRIMARY KEY only

metadata = sa.MetaData()
version = sa.Table("restive_schema", metadata, sa.Column("version", sa.Integer, nullable=False))
programs = sa.Table(
    "programs",
    metadata,
    sa.Column("id", LONG, primary_key=True, autoincrement=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("created", sa.Text, nullable=False),
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


def has_tables(connection: sa.Connection, shown: str) -> bool:
    """Whether the database is a store; one of another version, or with tables of something else, is refused."""
    tables = set(sa.inspect(connection).get_table_names())  # one query: another process may create them meanwhile
    if version.name in tables:
        found = int(connection.execute(sa.select(version.c.version)).scalar_one())
        if found != VERSION:
            raise InputError(
                f"The store {shown} has version {found}; this version of restive reads version {VERSION} only.",
                code="store_version",
            )
        return True
    foreign = tables if connection.dialect.name == "sqlite" else tables & set(metadata.tables)
    if foreign:
        raise InputError(
            f"The database {shown} is not a store of restive, it has other tables ({min(foreign)}): "
            "name a new file, or a database or schema of its own."
        )
    return False


def create_tables(connection: sa.Connection, shown: str) -> None:
    """Create the tables, inside the transaction of the caller, which holds SQLite's write lock."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK)))
    if has_tables(connection, shown):  # again, under the lock: another process may have created them
        return
    metadata.create_all(connection, checkfirst=False)
    connection.execute(version.insert().values(version=VERSION))
    if connection.dialect.name == "postgresql":
        for table in (parts, roster, snapshots):  # bodies are compressed already
            connection.exec_driver_sql(f"ALTER TABLE {table.name} ALTER COLUMN body SET STORAGE EXTERNAL")
