"""One writing transaction over one program, which holds the program's lock."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import polars as pl
import sqlalchemy as sa

from restive.desk.audit import (
    NO_CONTEXT,
    AuditRow,
    RequestContext,
    forget_people,
    mark_undone,
    record_audit_entry,
)
from restive.desk.database import StoreError, display, events, parts, programs, roster, snapshots, version
from restive.desk.display import encode_cells, keep_columns, merge_cells
from restive.desk.events import Columns, Event, Head, Header, divide, link
from restive.desk.roster import ROSTER_CHUNK, as_names, join_names, split_names
from restive.errors import InputError
from restive.types import Ints

# Built once: building a statement takes longer than running it.
LAST = (
    sa.select(events.c.number, events.c.at, events.c.digest)
    .where(events.c.program == sa.bindparam("program"))
    .order_by(events.c.number.desc())
    .limit(1)
)
ADD_EVENT, ADD_PART = events.insert(), parts.insert()
SOME_AGENTS = sa.and_(
    display.c.program == sa.bindparam("program"), display.c.agent.in_(sa.bindparam("agents", expanding=True))
)
FIND_DISPLAY = sa.select(display.c.agent, display.c.cells).where(SOME_AGENTS)
PUT_DISPLAY = sa.text(
    "INSERT INTO display (program, agent, cells) VALUES (:program, :agent, :cells) "
    "ON CONFLICT (program, agent) DO UPDATE SET cells = excluded.cells"
)
DISPLAY_BATCH = 5000  # agents whose cells are read or written at once
MAX_PIECE = 64 << 20  # bytes of a snapshot in one row: both databases limit what a row holds
MAX_SNAPSHOTS = 3  # of a slot


def write_time(clock: Callable[[], datetime]) -> str:
    """The time of the clock: UTC, ISO 8601 with microseconds."""
    return clock().astimezone(UTC).isoformat(timespec="microseconds")


def count_events(last: object) -> int:
    """The number of events of a log whose last event has this number; None: it is empty."""
    if last is not None and not isinstance(last, int):  # SQLite accepts any type in any column
        raise StoreError(f"The number {last!r} of an event is damaged: use a backup.")
    return 0 if last is None else last + 1


def read_display(
    execute: Callable[[dict[str, Any]], Iterable[sa.Row[Any]]], program: int, agents: Ints | Sequence[int]
) -> dict[int, str]:
    """The display cells of some agents as JSON, by agent number; `execute` runs FIND_DISPLAY with these values."""
    wanted, found = np.asarray(agents).tolist(), dict[int, str]()
    for start in range(0, len(wanted), DISPLAY_BATCH):
        rows = execute({"program": program, "agents": wanted[start : start + DISPLAY_BATCH]})
        found |= {row.agent: row.cells for row in rows}
    return found


class Writer:
    """Writes to a program; `length` is the number of events, those of this writer (`appended`) included."""

    def __init__(
        self,
        connection: sa.Connection,
        program: int,
        clock: Callable[[], datetime],
        context: RequestContext = NO_CONTEXT,
    ) -> None:
        self.program, self.context = program, context
        self.erased = self.rolled_back = False
        self.appended: list[Event] = []
        self._erasing: dict[int, pl.Series] = {}
        self._erased_agents: list[int] = []
        self._connection = connection
        self._clock = clock
        last = connection.execute(LAST, {"program": program}).first()
        self.length = self.before = count_events(None if last is None else last.number)
        self._at: str = "" if last is None else last.at
        self._digest: str = "" if last is None else last.digest

    @property
    def head(self) -> Head:
        """The end of the log, with the events of this writer."""
        return Head(self.program, self.length, self._digest)

    def append(
        self,
        kind: str,
        header: Header,
        columns: Columns | None = None,
        extra: Mapping[str, Columns] | None = None,
        round: int | None = None,
    ) -> Event:
        """Append an event; with a column `number` it is part of the histories of those agents."""
        columns, extra = columns or {}, extra or {}
        try:
            text = json.dumps(header, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InputError(f"The header of the event {kind!r} cannot be JSON: {error}.") from None
        pieces = divide(columns, extra)
        self._at = max(self._at, write_time(self._clock))  # the clock may have been set back
        self._digest = link(self._digest, kind, round, self._at, text, pieces)
        place = {"program": self.program, "number": self.length}
        row = {"kind": kind, "round": round, "at": self._at, "header": text, "digest": self._digest}
        self._connection.execute(ADD_EVENT, place | row | {"size": sum(len(piece.body) for piece in pieces)})
        if pieces:
            rows = [{"program": self.program, "event": self.length, **piece._asdict()} for piece in pieces]
            self._connection.execute(ADD_PART, rows)
        self.length += 1
        whole = {name: dict(some) for name, some in extra.items()}
        event = Event(self.length - 1, kind, round, self._at, json.loads(text), dict(columns), whole, self._digest)
        self.appended.append(event)
        return event

    def execute(
        self, statement: sa.Executable, rows: Sequence[Mapping[str, Any]] | None = None
    ) -> sa.CursorResult[Any]:
        """Run a statement on tables beside the log, in this transaction."""
        return self._connection.execute(statement, rows)

    def set_archived(self, archived: bool) -> bool:
        """Archive the program or restore it; returns whether that changes anything."""
        mine, since = programs.c.id == self.program, write_time(self._clock) if archived else None
        other = programs.c.archived.is_(None) if archived else programs.c.archived.is_not(None)
        return bool(self._connection.execute(programs.update().where(mine, other).values(archived=since)).rowcount)

    def record_audit_entry(self, verb: str, round: int | None, answer: dict[str, Any]) -> None:
        """Record who did what, and the answer."""
        at = max(self._at, write_time(self._clock))
        events = range(self.before, self.length)
        record_audit_entry(self._connection, self.program, at, self.context, verb, round, answer, events)

    def add_names(self, names: Sequence[str] | pl.Series) -> None:
        """Append names to the roster; the first gets the next agent number."""
        self.finish()
        fresh = as_names(names)
        last = self._connection.execute(
            sa.select(sa.func.max(roster.c.chunk)).where(roster.c.program == self.program)
        ).scalar()
        chunk, there = (0, None) if last is None else (last, self._chunk(last))
        if there is not None and len(fresh):
            self._connection.execute(roster.delete().where(self._at_chunk(chunk)))
            fresh = pl.concat([there, fresh.rename("name")])
        rows = [
            {"program": self.program, "chunk": chunk + place, "body": join_names(fresh.slice(start, ROSTER_CHUNK))}
            for place, start in enumerate(range(0, len(fresh), ROSTER_CHUNK))
        ]
        if rows:
            self._connection.execute(roster.insert(), rows)

    def display(self, agents: Ints | Sequence[int]) -> dict[int, str]:
        """The display cells of some agents as JSON, those that this writer has stored included."""
        return read_display(lambda values: self._connection.execute(FIND_DISPLAY, values), self.program, agents)

    def put_display(self, agents: Ints, table: pl.DataFrame) -> None:
        """Store the display cells of agents, a row each; columns that the table does not have stay as they are."""
        cells = encode_cells(table)
        for start in range(0, len(cells), DISPLAY_BATCH):
            part = slice(start, start + DISPLAY_BATCH)
            given = dict(zip(agents[part].tolist(), cells[part].to_list(), strict=True))
            known = self.display(list(given))
            changed = {agent: new for agent, new in given.items() if known.get(agent) != new}
            merged = {agent: merge_cells(known.get(agent, "{}"), new) for agent, new in changed.items()}
            self._write_display({agent: new for agent, new in merged.items() if known.get(agent) != new})

    def keep_display(self, columns: Sequence[str]) -> None:
        """Delete the display cells of all other columns, for everybody."""
        mine, last = display.c.program == self.program, -1
        query = sa.select(display.c.agent, display.c.cells).where(mine).order_by(display.c.agent).limit(DISPLAY_BATCH)
        while rows := self._connection.execute(query.where(display.c.agent > last)).all():
            self._write_display({row.agent: keep_columns(row.cells, columns) for row in rows})
            last = rows[-1].agent
        self._count_erasure()

    def erase_name(self, agent: int) -> None:
        """Erase the name of an agent and its display cells; its number stays."""
        chunk, place = divmod(agent, ROSTER_CHUNK)
        names = self._erasing.get(chunk)
        if names is None:
            names = self._chunk(chunk)
        if names is None or place >= len(names):
            raise InputError(f"There is no agent with the number {agent} whose name could be erased.")
        self._erasing[chunk] = names.scatter(place, None)
        self._erased_agents.append(agent)

    def mark_undone(self, entry: AuditRow) -> None:
        """Refuse the idempotency key of a request that is undone, and forget its notes, which may name people."""
        mark_undone(self._connection, entry)

    def drop_names(self, kept: int) -> None:
        """Remove the names and display cells of the last agents, so that the first `kept` stay, also from the files."""
        self.finish()
        chunk, place = divmod(kept, ROSTER_CHUNK)
        names = self._chunk(chunk)
        mine = sa.and_(roster.c.program == self.program, roster.c.chunk >= chunk)
        self._connection.execute(roster.delete().where(mine))
        self._connection.execute(display.delete().where(display.c.program == self.program, display.c.agent >= kept))
        if names is not None and place:
            row = {"program": self.program, "chunk": chunk, "body": join_names(names[:place])}
            self._connection.execute(roster.insert(), row)
        self._count_erasure()

    def rollback(self) -> None:
        """Undo everything that was written; the transaction is over."""
        self._connection.rollback()
        self.rolled_back, self.erased = True, False

    def finish(self) -> None:
        """Write the chunks that names were erased from, each once, and delete the display cells of these agents."""
        for chunk, names in self._erasing.items():
            self._connection.execute(roster.update().where(self._at_chunk(chunk)).values(body=join_names(names)))
        for start in range(0, len(self._erased_agents), DISPLAY_BATCH):
            some = self._some(self._erased_agents[start : start + DISPLAY_BATCH])
            self._connection.execute(display.delete().where(SOME_AGENTS), some)
        if self._erasing:
            forget_people(self._connection, self.program)
            self._count_erasure()
        self._erasing, self._erased_agents = {}, []

    def put_snapshot(self, slot: str, content: bytes) -> None:
        """Store a snapshot of the events so far; the newest ones of a slot stay."""
        mine = sa.and_(snapshots.c.program == self.program, snapshots.c.slot == slot)
        self._connection.execute(snapshots.delete().where(mine, snapshots.c.events == self.length))
        place = {"program": self.program, "slot": slot, "events": self.length}
        for piece, start in enumerate(range(0, max(1, len(content)), MAX_PIECE)):
            row = {**place, "piece": piece, "body": content[start : start + MAX_PIECE]}
            self._connection.execute(snapshots.insert(), row)
        ages = sa.select(snapshots.c.events).where(mine).distinct().order_by(snapshots.c.events.desc())
        newest = self._connection.execute(ages.limit(MAX_SNAPSHOTS)).scalars().all()
        self._connection.execute(snapshots.delete().where(mine, snapshots.c.events < min(newest)))

    def drop_snapshots(self, after: int) -> None:
        """Delete the snapshots that cover more than `after` events."""
        self._connection.execute(
            snapshots.delete().where(snapshots.c.program == self.program, snapshots.c.events > after)
        )

    def _count_erasure(self) -> None:
        """Have the files of the store purged at the end."""
        self._connection.execute(version.update().values(erasures=version.c.erasures + 1))
        self.erased = True

    def _some(self, agents: Sequence[int]) -> dict[str, Any]:
        return {"program": self.program, "agents": list(agents)}

    def _write_display(self, cells: Mapping[int, str]) -> None:
        rows = [{"program": self.program, "agent": agent, "cells": text} for agent, text in cells.items()]
        if rows:
            self._connection.execute(PUT_DISPLAY, rows)

    def _at_chunk(self, chunk: int) -> sa.ColumnElement[bool]:
        return sa.and_(roster.c.program == self.program, roster.c.chunk == chunk)

    def _chunk(self, chunk: int) -> pl.Series | None:
        """The names of a chunk of the roster."""
        body = self._connection.execute(sa.select(roster.c.body).where(self._at_chunk(chunk))).scalar()
        return None if body is None else split_names([body])
