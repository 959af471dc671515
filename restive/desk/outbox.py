"""The outbox of webhooks: messages are written in the transaction of what they are about, and sent by a server later.

    record_messages    in the transaction of a verb, so that a message is recorded exactly if its event is
    claim, finish      by a server: lease the next message, send it, record the result

A message is about numbers only, never about people. `results.complete` is sent when everybody in a round has an outcome
or has left or, where states are outcomes, when the second list after it is decided: who was in neither table is
`missing`; once for each round, unless the request that completed it is undone. Corrections send nothing. What is undone
or cancelled before it was sent is not sent.

Messages of a webhook are sent one after the other, in the order of their events: the next one waits until the one before
is delivered or has failed. Several servers share the work: a message is leased to one of them for a time, after which
another may send it, because the first may have been killed. Receivers recognise a repetition by the id of the message.
"""

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa

from restive.api.webhooks import CompleteCounts, DecidedCounts
from restive.desk.database import deliveries, programs, webhooks
from restive.desk.events import (
    REVISIONS,
    Cancelled,
    Decided,
    Erased,
    Event,
    Left,
    Reported,
    Undone,
    standing,
)
from restive.desk.projection import Projection
from restive.desk.rounds import DONE, Round, gather
from restive.desk.store import Store, Writer
from restive.desk.writer import write_time

ROUNDS_TO_WAIT = 2  # for outcomes, where states are outcomes
DECIDED, COMPLETE, PING = "round.decided", "results.complete", "ping"
PENDING, DELIVERED, FAILED, CANCELLED = "pending", "delivered", "failed", "cancelled"
SECRET_PREFIX = "whsec_"
MAX_ATTEMPTS = 14  # with the delays below, over about a day
RETRY_FACTOR, MAX_DELAY_SECONDS, JITTER = 3, 4 * 3600.0, 0.2

HOOKS = sa.select(webhooks.c.id, webhooks.c.events).where(
    webhooks.c.program == sa.bindparam("of"), webhooks.c.enabled.is_(True)
)
EARLIER = deliveries.alias("earlier")
BLOCKED = sa.exists().where(
    EARLIER.c.webhook == deliveries.c.webhook,
    EARLIER.c.id < deliveries.c.id,
    EARLIER.c.status == PENDING,
    EARLIER.c.type != PING,
)
NEXT = (
    sa.select(
        *(deliveries, webhooks.c.url, webhooks.c.secret, webhooks.c.previous_secret, webhooks.c.previous_until),
        programs.c.name,
    )
    .join(webhooks, webhooks.c.id == deliveries.c.webhook)
    .join(programs, programs.c.id == deliveries.c.program)
    .where(
        deliveries.c.status == PENDING,
        deliveries.c.due <= sa.bindparam("now"),
        webhooks.c.enabled.is_(True),
        sa.or_(deliveries.c.type == PING, ~BLOCKED),
    )
    .order_by(deliveries.c.due, deliveries.c.id)
    .limit(1)
)


class Message(NamedTuple):
    """A message that this process may send until the lease ends."""

    id: int
    webhook: int
    program: str
    url: str
    secrets: list[str]  # that sign it: the secret, and the one before for a while
    message: str
    type: str
    body: str
    attempt: int
    lease: str


def record_messages(writer: Writer, projection: Projection, store: Store, name: str) -> None:
    """Record the messages about the events of a writer, for the webhooks of its program."""
    for event in writer.appended:
        _cancel_messages(writer, event)
    hooks = writer.execute(HOOKS, [{"of": writer.program}]).all() if _is_reported(writer.appended) else ()
    if not hooks:
        return
    wanted = {kind for hook in hooks for kind in hook.events.split()}
    for found in _find_completed(writer, projection, store) if COMPLETE in wanted else ():
        counts = _count_outcomes(found, projection)
        _add(writer, _not_informed(writer, hooks, found.round), COMPLETE, name, found.round, counts)
    for event in writer.appended:
        if event.kind == Decided.kind and event.round is not None:
            totals = projection.totals(event.round)
            decided: DecidedCounts = {"people": totals.present, "listed": totals.advised, "budget": totals.budget}
            _add(writer, _pick(hooks, DECIDED), DECIDED, name, event.round, decided)


def make_delivery(
    program: int, webhook: int, kind: str, at: str, data: Mapping[str, Any], due: str = "", event: int | None = None
) -> dict[str, Any]:
    """The row of a new message; the body is signed as it is stored."""
    return {
        "program": program,
        "webhook": webhook,
        "message": f"msg_{secrets.token_urlsafe(18)}",
        "type": kind,
        "round": data.get("round"),
        "event": event,
        "at": at,
        "body": json.dumps({"type": kind, "timestamp": at, "data": data}),
        "status": PENDING,
        "undone": False,
        "attempts": 0,
        "due": due or at,
    }


def _is_reported(appended: Iterable[Event]) -> bool:
    return any(event.kind in (Decided.kind, Reported.kind, Left.kind, Erased.kind) for event in appended)


def _pick(hooks: Iterable[sa.Row[Any]], kind: str) -> list[int]:
    return [hook.id for hook in hooks if kind in hook.events.split()]


def _not_informed(writer: Writer, hooks: Iterable[sa.Row[Any]], round_: int) -> list[int]:
    """The webhooks that were not told before that the results of a round are complete."""
    same = sa.and_(deliveries.c.type == COMPLETE, deliveries.c.round == round_, deliveries.c.undone.is_(False))
    told = sa.select(deliveries.c.webhook).where(deliveries.c.program == writer.program, same)
    return sorted(set(_pick(hooks, COMPLETE)) - set(writer.execute(told).scalars()))


def _add(
    writer: Writer, hooks: Iterable[int], kind: str, name: str, round_: int, counts: CompleteCounts | DecidedCounts
) -> None:
    data = {"program": name, "round": round_, "counts": counts}
    last = writer.appended[-1]
    rows = [make_delivery(writer.program, hook, kind, last.at, data, event=last.number) for hook in hooks]
    if rows:
        writer.execute(deliveries.insert(), rows)


def _cancel_messages(writer: Writer, event: Event) -> None:
    """Do not send what an event takes back; what was sent of an undone request can be sent again."""
    if event.kind not in (Undone.kind, Cancelled.kind):
        return
    mine = deliveries.c.program == writer.program
    if event.kind == Undone.kind:
        back = Undone.read(event)
        about = sa.and_(mine, deliveries.c.event >= back.first, deliveries.c.event < back.end)
        writer.execute(deliveries.update().where(about).values(undone=True))
    else:
        about = sa.and_(mine, deliveries.c.round == event.round, deliveries.c.type == DECIDED)
    writer.execute(deliveries.update().where(about, deliveries.c.status == PENDING).values(status=CANCELLED))


def _find_completed(writer: Writer, projection: Projection, store: Store) -> Iterator[Round]:
    """The rounds whose results the events of a writer have completed.

    Totals say which rounds to read: of the rounds that may be complete, usually none.
    """
    closed = _find_closed(writer, projection)
    revised = any(event.kind in REVISIONS for event in writer.appended)  # then the totals are those before
    gone = [event.columns["number"] for event in writer.appended if event.kind in (Left.kind, Erased.kind)]
    candidates = {event.round for event in writer.appended if event.kind == Reported.kind}
    for event in writer.appended:
        if event.kind == Erased.kind:
            candidates |= {round_ for round_, missing in Erased.read(event).missing.items() if missing}
    inactive = int((~projection.agents.active).sum())
    for totals in projection.rounds:
        if totals.round in closed and totals.outcomes and not totals.cancelled:
            yield _read_round(writer, projection, store, totals.round)
            continue
        candidate = totals.round in candidates or (gone and totals.waiting)
        if totals.cancelled or not candidate or (totals.waiting > inactive and not revised):
            continue
        found = _read_round(writer, projection, store, totals.round)
        missing = found.after < 0
        left = np.isin(found.number, np.concatenate(gone)) if gone else np.zeros(missing.size, np.bool_)
        changed = (found.reported_at >= writer.before) | (missing & left)
        if changed.any() and not (missing & projection.agents.active[found.number]).any():
            yield found


def _find_closed(writer: Writer, projection: Projection) -> set[int]:
    """The rounds that nobody waits for any more, because a table of states came in for each of the two rounds after."""
    if not projection.config.states_are_outcomes or projection.config.rewards is None:
        return set()
    decided = [event.round for event in writer.appended if event.kind == Decided.kind and event.round is not None]
    return {round_ - ROUNDS_TO_WAIT for round_ in decided}


def _read_round(writer: Writer, projection: Projection, store: Store, number: int) -> Round:
    """A round with the events that a writer adds to it."""
    stored = store.events(writer.program, end=writer.before, round=number)
    new = (event for event in writer.appended if event.round == number)
    (found,) = gather([*standing(stored, projection.undone), *new])
    return found


def _count_outcomes(found: Round, projection: Projection) -> CompleteCounts:
    missing = int(((found.after < 0) & projection.agents.active[found.number]).sum())
    return {
        "people": found.number.size,
        "outcomes": found.number.size - found.missing,
        "gone": found.missing - missing,
        "missing": missing,
        "done": int((found.done == DONE).sum()),
    }


def sign(secret: str, message: str, timestamp: int, body: str) -> str:
    """The header webhook-signature: HMAC-SHA256 of id.timestamp.body in base64, as Standard Webhooks define it.

    >>> sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, '{"test": 2432232314}')
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
    """
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    content = f"{message}.{timestamp}.{body}".encode()
    return "v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()


def find_secrets(row: sa.Row[Any], now: str) -> list[str]:
    """The secrets of a webhook that are in use: after a change, both for a while."""
    return [row.secret, *([row.previous_secret] if row.previous_secret and row.previous_until > now else [])]


def find_delay(attempt: int, first_seconds: float) -> float:
    """The delay after a failed attempt, from 1: exponential with jitter, so that receivers are not overrun."""
    delay = min(first_seconds * float(RETRY_FACTOR) ** (attempt - 1), MAX_DELAY_SECONDS)
    return delay * (1 - JITTER + 2 * JITTER * secrets.randbelow(1001) / 1000)


def claim(store: Store, lease_seconds: float) -> Message | None:
    """Lease the next message that is due, None if there is none."""
    while rows := store.execute(NEXT, {"now": store.now()}):
        row, lease = rows[0], add_seconds(store.now(), lease_seconds)
        with store.transact() as connection:
            same = sa.and_(deliveries.c.id == row.id, deliveries.c.due == row.due, deliveries.c.status == PENDING)
            news = {"due": lease, "attempts": row.attempts + 1, "attempted": store.now()}
            mine = connection.execute(deliveries.update().where(same).values(news)).rowcount
        if mine:  # otherwise another server was faster
            rest = row.message, row.type, row.body, row.attempts + 1, lease
            return Message(row.id, row.webhook, row.name, row.url, find_secrets(row, store.now()), *rest)
    return None


def finish(store: Store, sent: Message, result: str, delay: float | None, disable: bool = False) -> None:
    """Record the result of an attempt, unless the lease has ended and another server has the message.

    `delay` is the time in seconds until the next attempt; None: there is none, and a result 2xx means it was delivered.
    """
    news: dict[str, Any] = {"result": result}
    if delay is None:
        news["status"] = DELIVERED if is_success(result) else FAILED
    else:
        news["due"] = add_seconds(store.now(), delay)
    mine = sa.and_(deliveries.c.id == sent.id, deliveries.c.due == sent.lease, deliveries.c.status == PENDING)
    with store.transact() as connection:
        connection.execute(deliveries.update().where(mine).values(news))
        if disable:
            connection.execute(webhooks.update().where(webhooks.c.id == sent.webhook).values(enabled=False))


def is_success(result: str) -> bool:
    """Whether the result of an attempt is a status 2xx."""
    return len(result) == 3 and result.startswith("2")


def add_seconds(now: str, seconds: float) -> str:
    """A later time, as it is stored."""
    return write_time(lambda: datetime.fromisoformat(now) + timedelta(seconds=seconds))
