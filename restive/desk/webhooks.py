"""Webhooks of a program: where a server sends messages about it. Add, list, change, test and remove them, replace their
secrets, and send failed messages again.

The secret of a webhook signs its messages. It is shown once, and stored as it is, because the server signs with it; it is
in no event, audit entry, export or log. The audit log names the host of an address only: its path may be a secret too.
"""

import base64
import ipaddress
import secrets
from collections.abc import Sequence
from typing import Any, cast, get_args
from urllib.parse import SplitResult, urlsplit

import sqlalchemy as sa

from restive.api.webhooks import Delivery, EventType, NewWebhook, Webhook
from restive.desk.audit import NO_CONTEXT, RequestContext
from restive.desk.database import deliveries, webhooks
from restive.desk.outbox import FAILED, PENDING, PING, SECRET_PREFIX, Message, add_seconds, find_secrets, make_delivery
from restive.desk.program import Program
from restive.desk.store import Store, Writer
from restive.errors import Conflict, InputError, NotFound, check_whole

EVENTS: tuple[EventType, ...] = get_args(EventType)
MAX_URL = 2000
MAX_WEBHOOKS = 10  # of a program
MAX_SHOWN = 10  # deliveries of a webhook
SECRET_BYTES = 32
ROTATION_HOURS, MAX_ROTATION_HOURS = 24, 24 * 30  # for which the secret before also signs


def add_webhook(
    program: Program, url: str, events: Sequence[str] = EVENTS, context: RequestContext = NO_CONTEXT
) -> NewWebhook:
    """Add a webhook; its secret cannot be shown again."""
    parts, wanted = check_url(url), check_events(events)
    secret = _make_secret()
    with program.store.writing(program.id, context, "webhook added") as writer:
        there = writer.execute(sa.select(webhooks.c.url).where(webhooks.c.program == program.id)).scalars().all()
        _check_new(there, url)
        if len(there) >= MAX_WEBHOOKS:
            raise Conflict(f"The program has {len(there)} webhooks; the maximum is {MAX_WEBHOOKS}.")
        row = {
            "url": url,
            "events": " ".join(wanted),
            "secret": secret,
            "enabled": True,
            "created": program.store.now(),
        }
        made = webhooks.insert().values(program=program.id, **row).returning(webhooks.c.id)
        number = int(writer.execute(made).scalar_one())
        answer = {"webhook": number, "host": parts.hostname, "events": list(wanted)}
        writer.record_audit_entry("webhook added", None, answer)
    return {"webhook": find_webhook(program, number), "secret": secret}


def change_webhook(
    program: Program,
    number: int,
    url: str | None = None,
    events: Sequence[str] | None = None,
    enabled: bool | None = None,
    context: RequestContext = NO_CONTEXT,
) -> Webhook:
    """Change the address or the events of a webhook, or disable or enable it; its secret stays.

    A disabled one gets no messages; those that are waiting are sent once it is enabled again.
    """
    news: dict[str, Any] = {} if enabled is None else {"enabled": enabled}
    answer: dict[str, Any] = {"webhook": number, **news}
    if url is not None:
        news["url"], answer["host"] = url, check_url(url).hostname
    if events is not None:
        wanted = check_events(events)
        news["events"], answer["events"] = " ".join(wanted), list(wanted)
    if not news:
        raise InputError("There is nothing to change; give url, events or enabled.")
    with program.store.writing(program.id, context, "webhook changed") as writer:
        _find(writer, number)
        others = sa.select(webhooks.c.url).where(webhooks.c.program == program.id, webhooks.c.id != number)
        _check_new(writer.execute(others).scalars().all(), url)
        writer.execute(webhooks.update().where(webhooks.c.id == number).values(news))
        writer.record_audit_entry("webhook changed", None, answer)
    return find_webhook(program, number)


def replace_secret(
    program: Program, number: int, hours: int = ROTATION_HOURS, context: RequestContext = NO_CONTEXT
) -> NewWebhook:
    """Replace the secret of a webhook; for some hours messages are signed by both, so that no receiver misses one."""
    check_whole("hours", hours, 0, MAX_ROTATION_HOURS)
    secret = _make_secret()
    with program.store.writing(program.id, context, "webhook secret replaced") as writer:
        row, now = _find(writer, number), program.store.now()
        before = {"previous_secret": row.secret, "previous_until": add_seconds(now, 3600 * hours)} if hours else {}
        news = {"secret": secret, "previous_secret": None, "previous_until": None} | before
        writer.execute(webhooks.update().where(webhooks.c.id == number).values(news))
        answer = {"webhook": number, "host": urlsplit(row.url).hostname, "hours": hours}
        writer.record_audit_entry("webhook secret replaced", None, answer)
    return {"webhook": find_webhook(program, number), "secret": secret}


def resend_messages(
    program: Program, number: int, message: str | None = None, context: RequestContext = NO_CONTEXT
) -> int:
    """Have messages that failed sent again, all of a webhook or the one with this id; returns how many.

    Those about undone requests and test messages are left out. They keep their ids, and their place before later ones.
    """
    failed = sa.and_(deliveries.c.webhook == number, deliveries.c.status == FAILED, deliveries.c.type != PING)
    with program.store.writing(program.id, context, "webhook messages resent") as writer:
        row, now = _find(writer, number), program.store.now()
        if not row.enabled:
            raise Conflict("The webhook is disabled; enable it before messages are sent again.")
        same = sa.true() if message is None else deliveries.c.message == message
        again = deliveries.update().where(failed, deliveries.c.undone.is_(False), same)
        count = int(writer.execute(again.values(status=PENDING, attempts=0, due=now)).rowcount)
        if message is not None and not count:
            raise NotFound("The webhook has no failed message with this id.", location="message")
        answer = {"webhook": number, "host": urlsplit(row.url).hostname, "messages": count}
        writer.record_audit_entry("webhook messages resent", None, answer)
    return count


def _make_secret() -> str:
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def remove_webhook(
    program: Program, number: int, dry_run: bool = False, context: RequestContext = NO_CONTEXT
) -> Webhook:
    """Remove a webhook with its secret and all its messages, also those that are waiting; returns what it was."""
    found = find_webhook(program, number)
    with program.store.writing(program.id, context, "webhook removed") as writer:
        row = _find(writer, number)
        writer.execute(deliveries.delete().where(deliveries.c.webhook == number))
        writer.execute(webhooks.delete().where(webhooks.c.id == number))
        answer = {"webhook": number, "host": urlsplit(row.url).hostname}
        writer.record_audit_entry("webhook removed", None, answer)
        if dry_run:
            writer.rollback()
    return found


def add_ping(
    program: Program, number: int, lease_seconds: float = 0.0, context: RequestContext = NO_CONTEXT
) -> Message:
    """Record a test message, which is sent once; with a lease the caller sends it, otherwise any server does."""
    store = program.store
    with store.writing(program.id, context, "webhook tested") as writer:
        row = _find(writer, number)
        if not row.enabled and not lease_seconds:
            raise Conflict("The webhook is disabled; enable it before you test it.")
        now = store.now()
        due = add_seconds(now, lease_seconds)
        made = make_delivery(program.id, number, PING, now, {"program": program.name}, due)
        if lease_seconds:
            made |= {"attempts": 1, "attempted": now}
        added = writer.execute(deliveries.insert().values(made).returning(deliveries.c.id)).scalar_one()
        writer.record_audit_entry("webhook tested", None, {"webhook": number, "host": urlsplit(row.url).hostname})
    keys = find_secrets(row, now)
    return Message(added, number, program.name, row.url, keys, made["message"], PING, made["body"], 1, due)


def list_webhooks(program: Program) -> list[Webhook]:
    """The webhooks of a program with their latest messages, the oldest webhook first."""
    store = program.store
    rows = store.execute(sa.select(webhooks).where(webhooks.c.program == program.id).order_by(webhooks.c.id))
    return [_describe(store, row) for row in rows]


def find_webhook(program: Program, number: int) -> Webhook:
    """The webhook of a program with that number."""
    for row in program.store.execute(sa.select(webhooks).where(_mine(program.id, number))):
        return _describe(program.store, row)
    raise _unknown(number)


def find_delivery(store: Store, number: int) -> Delivery:
    """A message by its number in the store."""
    rows = store.execute(sa.select(deliveries).where(deliveries.c.id == number))
    if not rows:
        raise NotFound("The webhook was removed.")
    return _describe_delivery(rows[0])


def check_url(url: str) -> SplitResult:
    """The address of a webhook, validated: HTTPS, or HTTP on this machine; without user, password and fragment."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or len(url) > MAX_URL or not url.isascii() or not url.isprintable() or " " in url:
        raise InputError(
            f"The url is not an address such as https://example.org/hook of at most {MAX_URL} ASCII characters.",
            location="url",
        )
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host)):
        raise InputError(
            "The url must begin with https://; http:// is only allowed for this machine, as in http://localhost:9000.",
            location="url",
        )
    if parts.username is not None or parts.password is not None or "#" in url:
        raise InputError("The url must have no user, password or fragment.", location="url")
    return parts


def is_loopback(host: str) -> bool:
    """Whether the name of a host, or its address, is that of this machine.

    >>> [is_loopback(host) for host in ("localhost", "127.0.0.1", "::1", "10.0.0.1", "example.org")]
    [True, True, True, False, False]
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def check_events(events: Sequence[str]) -> list[EventType]:
    """The events that a webhook is told of, validated, each once."""
    unknown = [event for event in events if event not in EVENTS]
    if unknown or not events:
        what = f"There is no event {unknown[0]!r}" if unknown else "A webhook needs an event"
        raise InputError(f"{what}; the events are {' and '.join(EVENTS)}.", location="events")
    return [event for event in EVENTS if event in events]


def _check_new(there: Sequence[str], url: str | None) -> None:
    if url in there:
        raise Conflict("The program already has a webhook with this url.", location="url")


def _mine(program: int, number: int) -> sa.ColumnElement[bool]:
    return sa.and_(webhooks.c.program == program, webhooks.c.id == number)


def _find(writer: Writer, number: int) -> sa.Row[Any]:
    row = writer.execute(sa.select(webhooks).where(_mine(writer.program, number))).first()
    if row is None:
        raise _unknown(number)
    return row


def _unknown(number: int) -> NotFound:
    return NotFound(f"The program has no webhook {number}.", location="webhook")


def _describe(store: Store, row: sa.Row[Any]) -> Webhook:
    mine = deliveries.c.webhook == row.id
    counted = sa.select(deliveries.c.status, sa.func.count().label("number")).where(mine).group_by(deliveries.c.status)
    counts = {each.status: int(each.number) for each in store.execute(counted)}
    latest = store.execute(sa.select(deliveries).where(mine).order_by(deliveries.c.id.desc()).limit(MAX_SHOWN))
    return {
        "id": row.id,
        "url": row.url,
        "events": cast("list[EventType]", row.events.split()),
        "enabled": bool(row.enabled),
        "created": row.created,
        "pending": counts.get(PENDING, 0),
        "failed": counts.get(FAILED, 0),
        "deliveries": [_describe_delivery(each) for each in latest],
    }


def _describe_delivery(row: sa.Row[Any]) -> Delivery:
    return {
        "message": row.message,
        "type": row.type,
        "round": row.round,
        "at": row.at,
        "status": row.status,
        "attempts": row.attempts,
        "attempted": row.attempted,
        "result": row.result,
        "next": row.due if row.status == PENDING else None,
    }
