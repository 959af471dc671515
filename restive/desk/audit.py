"""Audit log: one row per transaction, inserted in that transaction; and idempotency keys.

A request context may carry a key of the caller's choice. If the same key is used again with the same request, nothing
is recorded a second time and `Repeated` carries the recorded answer. With another request the key is refused. The audit
log is not part of the event log: the state of a program does not depend on who reported it.
"""

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa

from restive.desk.database import StoreError, audit_log, programs
from restive.errors import Conflict, InputError

MAX_KEY = 200
KEYED = "keyed:"  # the prefix of a digest made with a secret that the store does not have
FORGOTTEN = "forgotten"
UNDONE = "undone"
DELETED = "deleted"  # the verb of the only entry that is left of a program
# Built once: building a statement takes longer than running it.
SAME_KEY = sa.select(audit_log.c.verb, audit_log.c.asked, audit_log.c.answer).where(
    audit_log.c.program == sa.bindparam("of"), audit_log.c.key == sa.bindparam("known")
)
ADD_ENTRY = audit_log.insert()


@dataclass(frozen=True)
class RequestContext:
    """The actor of a request, and the idempotency key and digest by which a repeated request is recognised."""

    by: str = ""  # empty: the default actor of the store
    key: str | None = None
    asked: str = ""

    def __post_init__(self) -> None:
        key = "x" if self.key is None else self.key
        if not (0 < len(key) <= MAX_KEY and key.isascii() and key.isprintable()):
            raise InputError(
                f"The idempotency key is {key[:40]!r}; it must have 1 to {MAX_KEY} printable ASCII characters.",
                location="key",
            )


NO_CONTEXT = RequestContext()


class Repeated(Exception):  # noqa: N818 - not an error: it carries the recorded answer
    """The request of this key was recorded before; nothing was recorded now."""

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__("this was recorded before")
        self.answer = answer


class KeyTaken(Conflict):
    """The key belongs to another request."""

    code = "key_reused"


class AuditRow(NamedTuple):
    """An entry of the audit log."""

    number: int
    program: str | None
    at: str
    by: str
    verb: str
    round: int | None
    answer: dict[str, Any]
    events: range = range(0)  # the numbers of the events that it recorded


def refuse_repeated(connection: sa.Connection, program: int, context: RequestContext, verb: str) -> None:
    """Raise `Repeated` if the request of this key was recorded before."""
    if context.key is None:
        return
    found = connection.execute(SAME_KEY, {"of": program, "known": context.key}).first()
    if found is None:
        return
    if found.asked == FORGOTTEN:
        raise KeyTaken(
            "The idempotency key was used before names were erased; use a new one. Nothing was recorded now."
        )
    if found.asked == UNDONE:
        raise KeyTaken("The request of this idempotency key was undone; use a new one. Nothing was recorded now.")
    if (found.verb, found.asked) != (verb, context.asked):
        raise KeyTaken("The idempotency key was used for another request; use a new one. Nothing was recorded now.")
    raise Repeated(_read_answer(found.answer))


def refuse_repeated_deletion(connection: sa.Connection, context: RequestContext, name: str) -> None:
    """Raise `Repeated` if the deletion of a program of that name was recorded with this key."""
    mine = sa.and_(audit_log.c.program.is_(None), audit_log.c.verb == DELETED, audit_log.c.key == context.key)
    for row in connection.execute(sa.select(audit_log.c.answer).where(mine)).all() if context.key else ():
        if (answer := _read_answer(row.answer))["program"] == name:
            raise Repeated(answer)


def record_audit_entry(
    connection: sa.Connection,
    program: int | None,
    at: str,
    context: RequestContext,
    verb: str,
    round: int | None = None,
    answer: dict[str, Any] | None = None,
    events: range = range(0),
) -> None:
    """Record who did what, and by which events."""
    row = {"program": program, "at": at, "by": context.by, "verb": verb, "round": round, "key": context.key}
    text = json.dumps(answer or {}, allow_nan=False)
    connection.execute(
        ADD_ENTRY, row | {"asked": context.asked, "answer": text, "first": events.start, "end": events.stop}
    )


def forget_people(connection: sa.Connection, program: int) -> None:
    """Delete from the audit log of a program what may identify people: notes, and digests of requests.

    A name could be guessed from a digest without a secret. Keys stay, so that nothing is recorded twice.
    """
    mine = audit_log.c.program == program
    plain = sa.and_(mine, audit_log.c.asked != "", sa.not_(audit_log.c.asked.startswith(KEYED)))
    connection.execute(audit_log.update().where(plain).values(asked=FORGOTTEN))
    telling = sa.select(audit_log.c.number, audit_log.c.answer).where(mine, audit_log.c.answer.like('%"notes": ["%'))
    for row in connection.execute(telling).all():
        answer = _read_answer(row.answer) | {"notes": []}
        connection.execute(audit_log.update().where(audit_log.c.number == row.number).values(answer=json.dumps(answer)))


def mark_undone(connection: sa.Connection, entry: AuditRow) -> None:
    """Mark an entry, so that its request is not answered again, and delete its notes, which may name people."""
    values = {"asked": UNDONE, "answer": json.dumps(entry.answer | {"notes": []})}
    connection.execute(audit_log.update().where(audit_log.c.number == entry.number).values(values))


def select_audit_entries(program: int | None, before: int | None, limit: int) -> sa.Select[Any]:
    """The audit log of a program, or of all programs and the store itself; the newest first."""
    query = sa.select(audit_log, programs.c.name).join(programs, programs.c.id == audit_log.c.program, isouter=True)
    if program is not None:
        query = query.where(audit_log.c.program == program)
    if before is not None:
        query = query.where(audit_log.c.number < before)
    return query.order_by(audit_log.c.number.desc()).limit(limit)


def as_audit_entry(row: sa.Row[Any]) -> AuditRow:
    """An entry from a row of `select_audit_entries`."""
    return AuditRow(
        row.number, row.name, row.at, row.by, row.verb, row.round, _read_answer(row.answer), range(row.first, row.end)
    )


def _read_answer(text: str) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = json.loads(text)
    except (TypeError, ValueError) as error:
        raise StoreError(f"The audit log is damaged ({error}): use a backup.") from None
    return answer
