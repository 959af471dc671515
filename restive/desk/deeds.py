"""Deeds: who had what recorded, and when; one row for each transaction, written in it, so none is without its deed.

A deed may carry a key of the caller's choice. When the same key comes again with the same request, whatever became of
the first answer on its way, nothing is recorded a second time and `Repeated` brings what was answered then. With
another request the key is refused. Deeds are no part of the log: what a program knows does not depend on who said it.
"""

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa

from restive.desk.schema import deeds, programs
from restive.errors import Conflict, InputError

LONGEST_KEY = 200
SEALED = "sealed:"  # begins a digest under a secret that the store does not have
FORGOTTEN = "forgotten"
# Built once: putting a statement together takes longer than carrying it out.
SAME_KEY = sa.select(deeds.c.verb, deeds.c.asked, deeds.c.answer).where(
    deeds.c.program == sa.bindparam("of"), deeds.c.key == sa.bindparam("known")
)
ADD_DEED = deeds.insert()


@dataclass(frozen=True)
class Deed:
    """Who asks for something to be recorded, and the key and digest by which asking again is known."""

    by: str = ""  # nobody in particular: the one by whom the store was opened
    key: str | None = None
    asked: str = ""

    def __post_init__(self) -> None:
        key = "x" if self.key is None else self.key
        if not (0 < len(key) <= LONGEST_KEY and key.isascii() and key.isprintable()):
            raise InputError(f"an idempotency key is {key[:40]!r}; it has 1 to {LONGEST_KEY} plain characters.")


NOBODY = Deed()


class Repeated(Exception):  # noqa: N818 - no error, but what was answered before
    """The deed of this key was done before; nothing was recorded now."""

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__("this was recorded before")
        self.answer = answer


class KeyTaken(Conflict):
    """The key belongs to another request."""


class DeedRow(NamedTuple):
    """A deed as it is told; rounds count from 1."""

    number: int
    program: str | None
    at: str
    by: str
    verb: str
    round: int | None
    answer: dict[str, Any]


def refuse_repeated(connection: sa.Connection, program: int, deed: Deed, verb: str) -> None:
    """End here if the deed of this key was done before."""
    if deed.key is None:
        return
    found = connection.execute(SAME_KEY, {"of": program, "known": deed.key}).first()
    if found is None:
        return
    if found.asked == FORGOTTEN:
        raise KeyTaken(
            "the idempotency key was used before names were erased; take a new one. Nothing was recorded now."
        )
    if (found.verb, found.asked) != (verb, deed.asked):
        raise KeyTaken("the idempotency key was used for another request; take a new one. Nothing was recorded now.")
    raise Repeated(json.loads(found.answer))


def record_deed(
    connection: sa.Connection,
    program: int | None,
    at: str,
    deed: Deed,
    verb: str,
    round: int | None = None,
    answer: dict[str, Any] | None = None,
) -> None:
    """Write who did what; `round` counts from 1."""
    row = {"program": program, "at": at, "by": deed.by, "verb": verb, "round": round, "key": deed.key}
    text = json.dumps(answer or {}, allow_nan=False)
    connection.execute(ADD_DEED, row | {"asked": deed.asked, "answer": text})


def forget_people(connection: sa.Connection, program: int) -> None:
    """Take out of the deeds of a program what may name somebody: remarks, and digests of requests.

    From a digest that is not sealed a name could be guessed. Keys stay, so that nothing is done twice.
    """
    mine = deeds.c.program == program
    plain = sa.and_(mine, deeds.c.asked != "", sa.not_(deeds.c.asked.startswith(SEALED)))
    connection.execute(deeds.update().where(plain).values(asked=FORGOTTEN))
    telling = sa.select(deeds.c.number, deeds.c.answer).where(mine, deeds.c.answer.like('%"notes": ["%'))
    for row in connection.execute(telling).all():
        answer = json.loads(row.answer) | {"notes": []}
        connection.execute(deeds.update().where(deeds.c.number == row.number).values(answer=json.dumps(answer)))


def select_deeds(program: int | None, before: int | None, limit: int) -> sa.Select[Any]:
    """The deeds of a program, or of all and of the store itself, the newest first."""
    query = sa.select(deeds, programs.c.name).join(programs, programs.c.id == deeds.c.program, isouter=True)
    if program is not None:
        query = query.where(deeds.c.program == program)
    if before is not None:
        query = query.where(deeds.c.number < before)
    return query.order_by(deeds.c.number.desc()).limit(limit)


def as_deed(row: sa.Row[Any]) -> DeedRow:
    """A row of `select_deeds` as it is told."""
    return DeedRow(row.number, row.name, row.at, row.by, row.verb, row.round, json.loads(row.answer))
