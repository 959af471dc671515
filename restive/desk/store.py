"""A database of programs: for each an append-only log of events, its roster of names, and snapshots.

Events are numbered from 0 without gaps. What was written in a block that ended without an error is durable. Only the
roster contains names, place = agent number, and only the table of display columns contains their texts, so erasing a
person does not change the log. Snapshots are optional.
"""

import difflib
import json
import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple, Self

import polars as pl
import sqlalchemy as sa

from restive.desk.audit import (
    DELETED,
    NO_CONTEXT,
    AuditRow,
    RequestContext,
    as_audit_entry,
    record_audit_entry,
    refuse_repeated,
    refuse_repeated_deletion,
    select_audit_entries,
)
from restive.desk.database import (
    DEVICE,
    LOCK_TIMEOUT_SECONDS,
    LOCKED,
    LOST,
    StoreError,
    audit_log,
    check_place,
    connect,
    create_file,
    display,
    events,
    explain,
    explain_doubt,
    find_cause,
    grants,
    parts,
    program_tables,
    programs,
    purge_deleted,
    roster,
    snapshots,
    tokens,
    use_write_ahead_log,
    version,
)
from restive.desk.events import CHUNK, Event, Head, Part, assemble, link, pick
from restive.desk.migrations import create_tables, has_tables
from restive.desk.roster import split_names
from restive.desk.tracing import span
from restive.desk.writer import FIND_DISPLAY, Writer, count_events, read_display, write_time
from restive.errors import Conflict, InputError, NotFound
from restive.types import Ints

__all__ = ["Event", "ProgramRow", "Store", "StoreError", "Writer"]

ALLOWED_VERBS = ("archived", "restored", "erased", "webhook changed", "webhook removed")  # of an archived program
TABLES_WITH_NAMES = (roster.name, display.name, audit_log.name)
LOCKED_ROW = (
    sa.select(programs.c.id, programs.c.name, programs.c.archived)
    .where(programs.c.id == sa.bindparam("program"))
    .with_for_update()
)
LENGTH = sa.select(sa.func.max(events.c.number)).where(events.c.program == sa.bindparam("program"))
HEAD = (
    sa.select(events.c.program, events.c.number, events.c.digest)
    # Not a join: PostgreSQL would read the whole log.
    .where(
        events.c.program == sa.select(programs.c.id).where(programs.c.name == sa.bindparam("name")).scalar_subquery()
    )
    .order_by(events.c.number.desc())
    .limit(1)
)
DIGEST = sa.select(events.c.digest).where(
    events.c.program == sa.bindparam("program"), events.c.number == sa.bindparam("number")
)
EVENT_BATCH = 256  # events read at once
MAX_PART_BYTES = 16 << 20  # of parts read at once, unless a single event has more
HISTORY_BATCH = 64  # chunks of a history read at once


class ProgramRow(NamedTuple):
    """A program as the store knows it."""

    id: int
    name: str
    created: str
    archived: str | None = None  # since when


def read_clock() -> datetime:
    """The time now."""
    return datetime.now(UTC)


class Store(AbstractContextManager["Store"]):
    """A database of programs; shared between threads as it is, between processes by its address.

    `by` is the default actor in the audit log.
    """

    def __init__(self, engine: sa.Engine, address: str, clock: Callable[[], datetime]):
        self.address, self.by = address, "library"
        self._engine = engine
        # SQLite has one writer; its busy handler backs off, a lock wakes the next thread at once. Processes can share one.
        self.write_lock: Any = threading.Lock() if engine.dialect.name == "sqlite" else None
        self._at_once: Store | None = None
        self.clock = clock

    @classmethod
    def open(
        cls,
        address: str | os.PathLike[str],
        read_only: bool = False,
        clock: Callable[[], datetime] = read_clock,
    ) -> Self:
        """Open FILE.db or postgresql://USER@HOST/DATABASE; what is missing is created."""
        engine, shown = connect(address, read_only)
        store = cls(engine, shown, clock)
        try:
            store._prepare(read_only)
        except sa.exc.SQLAlchemyError as error:
            engine.dispose()
            raise explain(error, "Opening", shown, written=False) from error
        except BaseException:
            engine.dispose()
            raise
        return store

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()
        if self._at_once is not None:
            self._at_once.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def programs(self) -> list[ProgramRow]:
        """All programs, the oldest first."""
        rows = self.execute(sa.select(programs).order_by(programs.c.id))
        return [ProgramRow(row.id, row.name, row.created, row.archived) for row in rows]

    def find(self, name: str) -> ProgramRow:
        """The program of that name."""
        known = {row.name: row for row in self.programs()}
        if name in known:
            return known[name]
        near = difflib.get_close_matches(name, map(str, known), n=3) or list(map(str, known))[:5]
        there = f"there are {', '.join(near)}" if near else "it has none yet"
        raise NotFound(f"The store has no program {name!r}; {there}.")

    @contextmanager
    def creating(self, name: str, context: RequestContext = NO_CONTEXT, verb: str = "") -> Iterator[Writer]:
        """A writer for a new program, which exists once the block has ended without an error."""

        def claim(connection: sa.Connection) -> int:
            there = connection.execute(sa.select(programs.c.id).where(programs.c.name == name)).scalar()
            if there is not None:
                refuse_repeated(connection, there, context, verb)
            row = {"name": name, "created": write_time(self.clock)}
            try:
                return int(connection.execute(programs.insert().values(row).returning(programs.c.id)).scalar_one())
            except sa.exc.IntegrityError:
                raise Conflict(f"The store already has a program {name!r}.") from None

        with self._write(claim, context) as writer:
            yield writer

    @contextmanager
    def writing(self, program_id: int, context: RequestContext = NO_CONTEXT, verb: str = "") -> Iterator[Writer]:
        """A writer that holds the program's lock; if the block ends without an error all is recorded, otherwise nothing.

        `verb` is the action, by which a repeated request is recognised.
        """

        def claim(connection: sa.Connection) -> int:
            row = connection.execute(LOCKED_ROW, {"program": program_id}).first()
            if row is None:
                raise NotFound(f"The store has no program with the id {program_id}.")
            refuse_repeated(connection, program_id, context, verb)
            if row.archived is not None and verb not in ALLOWED_VERBS:
                raise Conflict(f"The program {row.name} is archived, so it can only be read; restore it first.")
            return program_id

        with self._write(claim, context) as writer:
            yield writer

    def delete(self, name: str, dry_run: bool = False, context: RequestContext = NO_CONTEXT) -> int:
        """Delete a program with all its rows; the audit log keeps the fact. Returns the number of its events."""
        with self.transact() as connection:
            locked = sa.select(programs).where(programs.c.name == name).with_for_update()
            row = connection.execute(locked).first()
            if row is None:
                refuse_repeated_deletion(connection, context, name)
                raise NotFound(f"There is no program {name!r}.")
            length = count_events(connection.execute(LENGTH, {"program": row.id}).scalar())
            for table in program_tables():
                connection.execute(table.delete().where(table.c.program == row.id))
            connection.execute(programs.delete().where(programs.c.id == row.id))
            useless = sa.and_(tokens.c.revoked.is_(None), tokens.c.id.not_in(sa.select(grants.c.token)))
            connection.execute(tokens.update().where(useless).values(revoked=self.now()))
            connection.execute(version.update().values(erasures=version.c.erasures + 1))
            answer = {"program": name, "events": length, "created": row.created}
            actor = replace(self.fill_actor(context), asked="")
            record_audit_entry(connection, None, self.now(), actor, DELETED, answer=answer)
            if dry_run:
                connection.rollback()
        if not dry_run:
            self.purge_deleted([programs.name, *(table.name for table in program_tables())])
        return length

    @property
    def at_once(self) -> "Store | None":
        """A store with one writer at a time, for queries of one thread that fail where they would have to wait."""
        if self._at_once is None and self.write_lock is not None:
            self._at_once = Store(connect(self.address, at_once=True)[0], self.address, lambda: self.clock())
        return self._at_once

    def wait_for_writers(self) -> None:
        """Wait until nobody writes, if the store has one writer at a time; somebody may be faster nevertheless."""
        if self.write_lock is not None:
            with self.transact():
                pass

    @contextmanager
    def transact(self) -> Iterator[sa.Connection]:
        """A writing transaction over tables that belong to no program."""
        try:
            with self._begin() as connection:
                yield connection
        except sa.exc.SQLAlchemyError as error:
            raise explain(error, "Writing to", self.address, written=True) from error

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A transaction that sees the store as it was at its first query, whatever others write meanwhile."""
        snapshot = {} if self._engine.dialect.name == "sqlite" else {"isolation_level": "REPEATABLE READ"}
        try:
            with self._engine.connect().execution_options(**snapshot) as connection, connection.begin():
                yield connection
        except sa.exc.SQLAlchemyError as error:
            raise explain(error, "Reading from", self.address, written=False) from error

    def execute(self, query: sa.Select[Any], values: Mapping[str, Any] | None = None) -> list[sa.Row[Any]]:
        """All rows of a query; no transaction stays open."""
        try:
            with span("store read", store=self._engine.dialect.name), self._engine.connect() as connection:
                return list(connection.execute(query, values).all())
        except sa.exc.SQLAlchemyError as error:
            raise explain(error, "Reading from", self.address, written=False) from error

    def now(self) -> str:
        """The current time, as it is recorded."""
        return write_time(self.clock)

    def fill_actor(self, context: RequestContext) -> RequestContext:
        """The context, with the store's default actor if it names nobody."""
        return context if context.by else replace(context, by=self.by)

    def audit_log(self, program_id: int | None, before: int | None = None, limit: int = 100) -> list[AuditRow]:
        """The audit log of a program, or (None) of all programs and the store itself; the newest first."""
        return [as_audit_entry(row) for row in self.execute(select_audit_entries(program_id, before, limit))]

    def length(self, program_id: int) -> int:
        """The number of events."""
        return count_events(self.execute(LENGTH, {"program": program_id})[0][0])

    def head(self, name: str) -> Head:
        """The end of the log of the program of that name."""
        rows = self.execute(HEAD, {"name": name})
        if not rows:
            raise NotFound(f"There is no program {name!r}.")
        return Head(rows[0].program, count_events(rows[0].number), rows[0].digest)

    def contains(self, head: Head) -> bool:
        """Whether the log had this end once, so that it has only grown since."""
        rows = self.execute(DIGEST, {"program": head.program, "number": head.length - 1})
        return bool(rows) and rows[0].digest == head.digest

    def events(
        self,
        program_id: int,
        first: int = 0,
        end: int | None = None,
        kinds: Collection[str] | None = None,
        round: int | None = None,
        columns: bool = True,
    ) -> Iterator[Event]:
        """The events from number `first` to before `end`, in order; by default all of all kinds and rounds."""
        for row, pieces in self._log(program_id, first, end, kinds, round, columns):
            yield _make_event(row, *assemble(pieces))

    def event(self, program_id: int, number: int) -> Event:
        """One event."""
        rows = self.execute(sa.select(events).where(events.c.program == program_id, events.c.number == number))
        if not rows:
            raise InputError(f"There is no event {number}; the program has {self.length(program_id)}, from 0 on.")
        return _make_event(rows[0], *assemble(self._parts(program_id, rows).get(number, [])))

    def history(self, program_id: int, agent: int, kinds: Collection[str] | None = None) -> Iterator[Event]:
        """The events about one agent, with one row of columns each; only its chunk is read."""
        place = 0
        query = (
            sa.select(events, parts.c.body)
            .join(events, sa.and_(events.c.program == parts.c.program, events.c.number == parts.c.event))
            .where(parts.c.program == program_id, parts.c.chunk == agent // CHUNK, parts.c.name == "")
            .order_by(parts.c.event)
            .limit(HISTORY_BATCH)
        )
        if kinds is not None:
            query = query.where(events.c.kind.in_(list(kinds)))
        while agent >= 0 and (rows := self.execute(query.where(parts.c.event >= place))):
            for row in rows:
                if (columns := pick(row.body, agent)) is not None:
                    yield _make_event(row, columns, {})
            place = rows[-1].number + 1

    def names(self, program_id: int) -> pl.Series:
        """The roster: place = agent number, null = erased."""
        query = sa.select(roster.c.body).where(roster.c.program == program_id).order_by(roster.c.chunk)
        return split_names(row.body for row in self.execute(query))

    def display(self, program_id: int, agents: Ints | Sequence[int]) -> dict[int, str]:
        """The display cells of some agents as JSON, by agent number; agents without any are left out."""
        return read_display(lambda values: self.execute(FIND_DISPLAY, values), program_id, agents)

    def snapshot(self, program_id: int, slot: str, before: int | None = None) -> tuple[int, bytes] | None:
        """The newest snapshot that covers at most `before` events: how many it covers, and its content."""
        mine = sa.and_(snapshots.c.program == program_id, snapshots.c.slot == slot)
        early = mine if before is None else sa.and_(mine, snapshots.c.events <= before)
        newest = sa.select(sa.func.max(snapshots.c.events)).where(early).scalar_subquery()
        query = sa.select(snapshots.c.events, snapshots.c.body).where(mine, snapshots.c.events == newest)
        rows = self.execute(query.order_by(snapshots.c.piece))
        return (rows[0].events, b"".join(row.body for row in rows)) if rows else None

    def verify(self, program_id: int) -> int:
        """Check the chain of digests; returns the number of events."""
        expected, previous = 0, ""
        with suppress(TypeError):  # a damaged row can have values of other types
            for row, pieces in self._log(program_id):
                digest = link(previous, row.kind, row.round, row.at, row.header, pieces)
                if (row.number, row.digest) != (expected, digest):
                    break
                expected, previous = expected + 1, digest
            else:
                return expected
        raise StoreError(f"Event {expected} in the store {self.address} is not as it was written: use a backup.")

    @contextmanager
    def diagnosing(self, program_id: int) -> Iterator[None]:
        """Report any failure in the block that a damaged log can have caused as a `StoreError` that names the event."""
        try:
            yield
        except StoreError:
            raise
        except Exception:
            self.verify(program_id)
            raise

    def _prepare(self, read_only: bool) -> None:
        """Create the tables if they are missing."""
        sqlite = self._engine.dialect.name == "sqlite"
        if sqlite:
            check_place(self.address, read_only)
            if not read_only:
                create_file(self.address)
        with self._engine.connect() as connection:
            ready = has_tables(connection, self.address)
        if read_only and not ready:
            raise StoreError(f"The store {self.address} is empty: open it once for writing, which creates its tables.")
        if sqlite and not read_only:
            use_write_ahead_log(self._engine)
        if not ready:
            with self._engine.connect().execution_options(writing=True) as connection, connection.begin():
                create_tables(connection, self.address)
        elif not read_only:
            with suppress(StoreError):
                self.purge_pending()

    @contextmanager
    def _begin(self) -> Iterator[sa.Connection]:
        """A writing transaction."""
        if self.write_lock is not None and not self.write_lock.acquire(timeout=LOCK_TIMEOUT_SECONDS):
            cause, advice = LOCKED
            raise StoreError(f"Writing to the store {self.address} failed, {cause}; nothing was recorded: {advice}.")
        try:
            with (
                span("store write", store=self._engine.dialect.name),
                self._engine.connect().execution_options(writing=True) as connection,
                connection.begin(),
            ):
                yield connection
        finally:
            if self.write_lock is not None:
                self.write_lock.release()

    @contextmanager
    def _write(self, claim: Callable[[sa.Connection], int], context: RequestContext) -> Iterator[Writer]:
        """One transaction around a writer for the program that `claim` locks."""
        writer, committing = None, False
        try:
            with self._begin() as connection:
                if connection.dialect.name == "postgresql":
                    connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT_SECONDS}s'")
                writer = Writer(connection, claim(connection), self.clock, self.fill_actor(context))
                yield writer
                if not writer.rolled_back:
                    writer.finish()
                    committing = True
        except sa.exc.SQLAlchemyError as error:
            # A COMMIT without an answer may have succeeded.
            if writer is not None and committing and find_cause(error) in (LOST, DEVICE):
                raise explain_doubt(error, self.address, writer.before, writer.length) from error
            raise explain(error, "Writing to", self.address, written=True) from error
        if writer.erased:
            self.purge_deleted()

    def purge_pending(self) -> None:
        """Remove erased names from the database files if an erasure was cut off before it did."""
        if self.execute(sa.select(version).where(version.c.purged < version.c.erasures)):
            self.purge_deleted([programs.name, *(table.name for table in program_tables())])

    def purge_deleted(self, tables: Collection[str] = TABLES_WITH_NAMES) -> None:
        """Remove what was erased or deleted from the database files; it is gone from the tables in any case."""
        try:
            with self._engine.connect() as connection:
                erasures = connection.execute(sa.select(version.c.erasures)).scalar_one()
            cause = purge_deleted(self._engine, *tables)
        except sa.exc.SQLAlchemyError as error:
            cause = find_cause(error)[0]
        if cause is not None:
            raise StoreError(
                f"The erasure is recorded, but old copies of the name may still lie in the files of the store "
                f"{self.address}, {cause}: to clear them, erase again, without any name.",
                recorded=True,
            )
        with suppress(StoreError), self.transact() as connection:  # if that fails, the next start purges again
            connection.execute(version.update().where(version.c.purged < erasures).values(purged=erasures))

    def _log(
        self,
        program_id: int,
        first: int = 0,
        end: int | None = None,
        kinds: Collection[str] | None = None,
        round: int | None = None,
        bodies: bool = True,
    ) -> Iterator[tuple[sa.Row[Any], list[Part]]]:
        """Rows of the log with their parts, a batch at a time."""
        query = sa.select(events).where(events.c.program == program_id).order_by(events.c.number).limit(EVENT_BATCH)
        if end is not None:
            query = query.where(events.c.number < end)
        if kinds is not None:
            query = query.where(events.c.kind.in_(list(kinds)))
        if round is not None:
            query = query.where(events.c.round == round)
        while rows := self.execute(query.where(events.c.number >= first)):
            for group in _group_by_size(rows):
                pieces = self._parts(program_id, group) if bodies else {}
                for row in group:
                    yield row, pieces.pop(row.number, [])
            first = rows[-1].number + 1

    def _parts(self, program_id: int, rows: list[sa.Row[Any]]) -> dict[int, list[Part]]:
        """The parts of those events."""
        wanted = parts.c.event.in_([row.number for row in rows])
        query = sa.select(parts.c.event, parts.c.name, parts.c.chunk, parts.c.body)
        found: dict[int, list[Part]] = {}
        for row in self.execute(query.where(parts.c.program == program_id, wanted)):
            found.setdefault(row.event, []).append(Part(row.name, row.chunk, row.body))
        return found


def _make_event(row: sa.Row[Any], columns: dict[str, Any], extra: dict[str, Any]) -> Event:
    return Event(row.number, row.kind, row.round, row.at, json.loads(row.header), columns, extra, row.digest)


def _group_by_size(rows: list[sa.Row[Any]]) -> Iterator[list[sa.Row[Any]]]:
    """Neighbours whose parts have at most MAX_PART_BYTES bytes together, or a single row."""
    group: list[sa.Row[Any]] = []
    for row in rows:
        if group and sum(one.size for one in group) + row.size > MAX_PART_BYTES:
            yield group
            group = []
        group.append(row)
    if group:
        yield group
