"""Deeds: who had what recorded, and when; one row for each transaction, written in it, so none is without its context.

A context may carry a key of the caller's choice. When the same key comes again with the same request, whatever became of
the first answer on its way, nothing is recorded a second time and `Repeated` brings what was answered then. With
another request the key is refused. Deeds are no part of the log: what a program knows does not depend on who said it.
"""

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa

from restive.desk.schema import audit_log, programs
from restive.errors import Conflict, InputError

MAX_KEY = 200
SEALED = "sealed:"  # begins a digest under a secret that the store does not have
FORGOTTEN = "forgotten"
# Built once: putting a statement together takes longer than carrying it out.
SAME_KEY = sa.select(audit_log.c.verb, audit_log.c.asked, audit_log.c.answer).where(
    audit_log.c.program == sa.bindparam("of"), audit_log.c.key == sa.bindparam("known")
)
ADD_DEED = audit_log.insert()


@dataclass(frozen=True)
class RequestContext:
    """Who asks for something to be recorded, and the key and digest by which asking again is known."""

    by: str = ""  # nobody in particular: the one by whom the store was opened
    key: str | None = None
    asked: str = ""

    def __post_init__(self) -> None:
        key = "x" if self.key is None else self.key
        if not (0 < len(key) <= MAX_KEY and key.isascii() and key.isprintable()):
            raise InputError(f"an idempotency key is {key[:40]!r}; it has 1 to {MAX_KEY} plain characters.")


NO_CONTEXT = RequestContext()


class Repeated(Exception):  # noqa: N818 - no error, but what was answered before
    """The context of this key was done before; nothing was recorded now."""

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__("this was recorded before")
        self.answer = answer


class KeyTaken(Conflict):
    """The key belongs to another request."""

    code = "key_reused"


class AuditRow(NamedTuple):
    """A context as it is reported; rounds count from 1."""

    number: int
    program: str | None
    at: str
    by: str
    verb: str
    round: int | None
    answer: dict[str, Any]


def refuse_repeated(connection: sa.Connection, program: int, context: RequestContext, verb: str) -> None:
    """End here if the context of this key was done before."""
    if context.key is None:
        return
    found = connection.execute(SAME_KEY, {"of": program, "known": context.key}).first()
    if found is None:
        return
    if found.asked == FORGOTTEN:
        raise KeyTaken(
            "the idempotency key was used before names were erased; take a new one. Nothing was recorded now."
        )
    if (found.verb, found.asked) != (verb, context.asked):
        raise KeyTaken("the idempotency key was used for another request; take a new one. Nothing was recorded now.")
    raise Repeated(json.loads(found.answer))


def record_audit_entry(
    connection: sa.Connection,
    program: int | None,
    at: str,
    context: RequestContext,
    verb: str,
    round: int | None = None,
    answer: dict[str, Any] | None = None,
) -> None:
    """Write who did what; `round` counts from 1."""
    row = {"program": program, "at": at, "by": context.by, "verb": verb, "round": round, "key": context.key}
    text = json.dumps(answer or {}, allow_nan=False)
    connection.execute(ADD_DEED, row | {"asked": context.asked, "answer": text})


def forget_people(connection: sa.Connection, program: int) -> None:
    """Take out of the audit_log of a program what may name somebody: remarks, and digests of requests.

    From a digest that is not sealed a name could be guessed. Keys stay, so that nothing is done twice.
    """
    mine = audit_log.c.program == program
    plain = sa.and_(mine, audit_log.c.asked != "", sa.not_(audit_log.c.asked.startswith(SEALED)))
    connection.execute(audit_log.update().where(plain).values(asked=FORGOTTEN))
    telling = sa.select(audit_log.c.number, audit_log.c.answer).where(mine, audit_log.c.answer.like('%"notes": ["%'))
    for row in connection.execute(telling).all():
        answer = json.loads(row.answer) | {"notes": []}
        connection.execute(audit_log.update().where(audit_log.c.number == row.number).values(answer=json.dumps(answer)))


def select_audit_entries(program: int | None, before: int | None, limit: int) -> sa.Select[Any]:
    """The audit_log of a program, or of all and of the store itself, the newest first."""
    query = sa.select(audit_log, programs.c.name).join(programs, programs.c.id == audit_log.c.program, isouter=True)
    if program is not None:
        query = query.where(audit_log.c.program == program)
    if before is not None:
        query = query.where(audit_log.c.number < before)
    return query.order_by(audit_log.c.number.desc()).limit(limit)


def as_audit_entry(row: sa.Row[Any]) -> AuditRow:
    """A row of `select_audit_entries` as it is reported."""
    return AuditRow(row.number, row.name, row.at, row.by, row.verb, row.round, json.loads(row.answer))
