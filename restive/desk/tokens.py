"""Users of a server: access tokens with their roles, invitations, and browser sessions.

A token is a secret `rst_ID_RANDOM` that is shown once, when it is made; the store holds only its SHA-256, and that of a
session's cookie. 256 random bits need no slow hash. A token grants a role in some programs or in all of them, until it
expires or is revoked. Its name says for whom or for what it was made.

A person who is invited has a token without a secret, and an invitation `rsi_ID_RANDOM` that opens one session and
expires. A new invitation of the same person replaces the one before.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import sqlalchemy as sa

from restive.desk.audit import NO_CONTEXT, RequestContext, record_audit_entry
from restive.desk.config import NAME
from restive.desk.database import grants as roles
from restive.desk.database import invitations, programs, sessions, tokens
from restive.desk.store import Store
from restive.desk.writer import write_time
from restive.errors import Conflict, InputError, NotFound, check_whole

ROLES = ("viewer", "operator", "admin")  # each includes those before it
RESERVED = ("local", "library", "command")  # actors without a token
SECRET = re.compile(r"rst_([0-9]{1,18})_[A-Za-z0-9_-]{43}")
INVITATION = re.compile(r"rsi_[0-9]{1,18}_[A-Za-z0-9_-]{43}")
INVITATION_DAYS = 7
MAX_DAYS, MAX_NAME = 3650, 60
SESSION_DAYS, MAX_SESSIONS = 30.0, 20
NO_DIGEST = "0" * 64  # of a token without a secret; no text has this digest


@dataclass(frozen=True)
class Principal:
    """The caller, by a token or a session, with a role in each program by name (None: all programs)."""

    id: int | None
    name: str
    grants: Mapping[str | None, str]

    @property
    def signature(self) -> str:
        """The actor in the audit log; the number is unique, while a name can be used again after its token is revoked."""
        return self.name if self.id is None else f"{self.name} (token {self.id})"

    def role(self, program: str | None) -> str | None:
        """The highest role in a program; with None, over the whole store."""
        held = [self.grants[place] for place in (program, None) if place in self.grants]
        return max(held, key=ROLES.index, default=None)

    def may(self, role: str, program: str | None) -> bool:
        """Whether the principal has the role, or a higher one."""
        held = self.role(program)
        return held is not None and ROLES.index(held) >= ROLES.index(role)

    def sees(self, program: str) -> bool:
        """Whether the principal may know that the program exists."""
        return self.role(program) is not None


LOCAL = Principal(None, "local", {None: "admin"})  # the user of a local server without tokens


@dataclass(frozen=True)
class Grant:
    """A role in a program, or in all programs where `program` is None."""

    program: str | None
    role: str


@dataclass(frozen=True)
class Token:
    """A token without its secret; times are UTC."""

    id: int
    name: str
    grants: tuple[Grant, ...]
    made: str
    expires: str | None
    revoked: str | None
    has_secret: bool  # somebody who was invited has none
    invitation: str | None  # until when the invitation can be used
    sessions: int  # browsers that are signed in

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self) | {"grants": [asdict(grant) for grant in self.grants]}


class Invitation(NamedTuple):
    """The code of an invitation, which cannot be shown again, and when it expires."""

    name: str
    code: str
    expires: str


def make_token(
    store: Store,
    name: str,
    grants: Mapping[str | None, str],
    days: int | None = None,
    context: RequestContext = NO_CONTEXT,
) -> str:
    """Make a token and return its secret, which cannot be shown again; it expires after `days`."""
    row, held, now = _check_new(store, name, grants, days)
    with store.transact() as connection:
        number = _add_token(connection, row, held)
        secret = f"rst_{number}_{secrets.token_urlsafe(32)}"
        connection.execute(tokens.update().where(tokens.c.id == number).values(digest=_digest(secret)))
        answer = {"token": name, "id": number, "grants": _list_grants(grants), "expires": row["expires"]}
        record_audit_entry(connection, None, now, store.fill_actor(context), "token made", answer=answer)
    return secret


def invite(
    store: Store,
    name: str,
    grants: Mapping[str | None, str],
    days: int | None = None,
    context: RequestContext = NO_CONTEXT,
) -> Invitation:
    """Add a person who signs in by an invitation; access expires after `days`."""
    row, held, now = _check_new(store, name, grants, days)
    with store.transact() as connection:
        number = _add_token(connection, row, held)
        made = _add_invitation(connection, number, name, now)
        answer = {"token": name, "id": number, "grants": _list_grants(grants), "expires": row["expires"]}
        record_audit_entry(connection, None, now, store.fill_actor(context), "invited", answer=answer)
    return made


def invite_again(store: Store, name: str, context: RequestContext = NO_CONTEXT) -> Invitation:
    """A new invitation of somebody who can sign in, for another device or after signing out; the last one is void."""
    now = store.now()
    with store.transact() as connection:
        number = _find_valid(connection, name, now)
        made = _add_invitation(connection, number, name, now)
        answer = {"token": name, "id": number}
        record_audit_entry(connection, None, now, store.fill_actor(context), "invited", answer=answer)
    return made


def change_grants(
    store: Store, name: str, grants: Mapping[str | None, str], context: RequestContext = NO_CONTEXT
) -> None:
    """Replace the roles of a token, from its next request on."""
    held, now = _check_grants(store, grants), store.now()
    with store.transact() as connection:
        number = _find_valid(connection, name, now)
        connection.execute(roles.delete().where(roles.c.token == number))
        connection.execute(roles.insert(), [row | {"token": number} for row in held])
        answer = {"token": name, "id": number, "grants": _list_grants(grants)}
        record_audit_entry(connection, None, now, store.fill_actor(context), "roles changed", answer=answer)


def revoke_token(store: Store, name: str, context: RequestContext = NO_CONTEXT) -> None:
    """Revoke a token, and end its sessions and its invitation."""
    now = store.now()
    with store.transact() as connection:
        number = _find_valid(connection, name, now)
        connection.execute(tokens.update().where(tokens.c.id == number).values(revoked=now))
        for table in (sessions, invitations):
            connection.execute(table.delete().where(table.c.token == number))
        answer = {"token": name, "id": number}
        record_audit_entry(connection, None, now, store.fill_actor(context), "token revoked", answer=answer)


def list_tokens(store: Store, valid: bool = False) -> list[Token]:
    """All tokens that were ever made, the oldest first, or only the valid ones."""
    now = store.now()
    invited = sa.select(sa.func.max(invitations.c.expires)).where(
        invitations.c.token == tokens.c.id, invitations.c.expires > now
    )
    signed_in = sa.select(sa.func.count()).where(sessions.c.token == tokens.c.id, sessions.c.expires > now)
    query = _select_grants().add_columns(
        invited.scalar_subquery().label("invitation"), signed_in.scalar_subquery().label("sessions")
    )
    made: dict[int, Token] = {}
    for row in store.execute((query.where(_live(now)) if valid else query).order_by(tokens.c.id, programs.c.name)):
        before = made[row.id].grants if row.id in made else ()
        granted = (*before, Grant(row.program, row.role))
        times = (row.created, row.expires, row.revoked)
        made[row.id] = Token(row.id, row.token, granted, *times, row.digest != NO_DIGEST, row.invitation, row.sessions)
    return list(made.values())


def find_token(store: Store, name: str) -> Token:
    """The valid token of that name."""
    for each in list_tokens(store, valid=True):
        if each.name == name:
            return each
    raise _unknown(name)


def has_tokens(store: Store) -> bool:
    """Whether a token was ever made; from then on every caller needs one, even if all are revoked."""
    return bool(store.execute(ANY_TOKEN))


def find_principal(store: Store, secret: str) -> Principal | None:
    """The principal of a secret; None if there is no such valid token."""
    shaped = SECRET.fullmatch(secret)
    rows = store.execute(BY_NUMBER, {"number": int(shaped[1]), "now": store.now()}) if shaped else []
    # Also without such a token, so that the response time does not reveal it.
    fits = hmac.compare_digest(rows[0].digest if rows else NO_DIGEST, _digest(secret))
    return _as_principal(rows) if rows and fits else None


def find_named(store: Store, name: str) -> Principal | None:
    """The principal with that name, whom a proxy has authenticated; None if there is no such valid token."""
    return _as_principal(store.execute(_select_grants().where(tokens.c.name == name, _live(store.now()))))


def find_invited(store: Store, code: str) -> Principal | None:
    """The principal of an invitation; None if it is used, replaced or expired, or its token is over."""
    now = store.now()
    mine = sa.and_(invitations.c.digest == _digest(code), invitations.c.expires > now, _live(now))
    joined = _select_grants().join(invitations, invitations.c.token == tokens.c.id)
    return _as_principal(store.execute(joined.where(mine))) if INVITATION.fullmatch(code) else None


def open_session(store: Store, secret: str, days: float = SESSION_DAYS) -> str | None:
    """Sign in by a token or an invitation: the value of the cookie, or None for an invalid secret.

    An invitation is used up. The oldest of too many sessions ends.
    """
    invited = INVITATION.fullmatch(secret) is not None
    principal = find_invited(store, secret) if invited else find_principal(store, secret)
    if principal is None:
        return None
    now, cookie = store.now(), secrets.token_urlsafe(32)
    mine = sessions.c.token == principal.id
    kept = sa.select(sessions.c.digest).where(mine).order_by(sessions.c.expires.desc()).limit(MAX_SESSIONS - 1)
    row = {"digest": _digest(cookie), "token": principal.id, "expires": _add(now, timedelta(days=days))}
    with store.transact() as connection:
        if invited:
            used = connection.execute(invitations.delete().where(invitations.c.digest == _digest(secret)))
            if not used.rowcount:  # another browser was faster
                return None
            actor = RequestContext(by=principal.signature)
            record_audit_entry(connection, None, now, actor, "joined", answer={"token": principal.name})
        connection.execute(sessions.delete().where(sessions.c.expires <= now))
        connection.execute(invitations.delete().where(invitations.c.expires <= now))
        newest = connection.execute(kept).scalars().all()
        connection.execute(sessions.delete().where(mine, sessions.c.digest.not_in(newest)))
        connection.execute(sessions.insert().values(row))
    return cookie


def find_session(store: Store, cookie: str) -> Principal | None:
    """The principal of a session; None if the session or its token is over."""
    return _as_principal(store.execute(BY_SESSION, {"digest": _digest(cookie), "now": store.now()}))


def close_session(store: Store, cookie: str) -> None:
    """Sign out."""
    with store.transact() as connection:
        connection.execute(sessions.delete().where(sessions.c.digest == _digest(cookie)))


def check_token_name(name: str) -> str:
    """The name of a token, validated."""
    plain = name.replace(".", "").replace("-", "").replace("_", "")
    if not (0 < len(name) <= MAX_NAME and plain.isalnum() and name[0].isalnum()):
        raise InputError(f"The token's name is {name!r}; {NAME}.", location="name")
    if name in RESERVED:
        raise InputError(f"The token's name {name!r} is reserved.", location="name")
    return name


def check_role(role: str) -> str:
    """The role, validated."""
    if role not in ROLES:
        raise InputError(f"There is no role {role!r}; the roles are {', '.join(ROLES)}.", location="role")
    return role


def _check_new(
    store: Store, name: str, grants: Mapping[str | None, str], days: int | None
) -> tuple[dict[str, Any], list[dict[str, Any]], str]:
    """The row of a new token, the rows of its grants, and the time now."""
    check_token_name(name)
    held, now = _check_grants(store, grants), store.now()
    until = None if days is None else _add(now, timedelta(days=check_whole("days", days, 1, MAX_DAYS)))
    return {"name": name, "digest": NO_DIGEST, "created": now, "expires": until}, held, now


def _add_token(connection: sa.Connection, row: Mapping[str, Any], held: list[dict[str, Any]]) -> int:
    """Insert a token and its grants; its number."""
    _hold_names(connection)
    name = row["name"]
    if connection.execute(sa.select(tokens.c.id).where(tokens.c.name == name, _live(row["created"]))).first():
        raise Conflict(f"There is already a token {name!r}.")
    number = int(connection.execute(tokens.insert().values(row).returning(tokens.c.id)).scalar_one())
    connection.execute(roles.insert(), [grant | {"token": number} for grant in held])
    return number


def _add_invitation(connection: sa.Connection, number: int, name: str, now: str) -> Invitation:
    """Insert an invitation in place of an earlier one of the same token."""
    code = f"rsi_{number}_{secrets.token_urlsafe(32)}"
    until = _add(now, timedelta(days=INVITATION_DAYS))
    connection.execute(invitations.delete().where(invitations.c.token == number))
    connection.execute(invitations.insert().values(digest=_digest(code), token=number, expires=until))
    return Invitation(name, code, until)


def _find_valid(connection: sa.Connection, name: str, now: str) -> int:
    """The number of the valid token of that name, whose table is locked from now on."""
    _hold_names(connection)
    found = connection.execute(sa.select(tokens.c.id).where(tokens.c.name == name, _live(now))).scalar()
    if found is None:
        raise _unknown(name)
    return int(found)


def _unknown(name: str) -> NotFound:
    return NotFound(f"There is no valid token {name!r}.")


def _check_grants(store: Store, given: Mapping[str | None, str]) -> list[dict[str, Any]]:
    """The rows of the table of grants, without the token."""
    if not given:
        raise InputError("A token needs a role, in all programs or in some of them.", location="grants")
    try:
        numbers = {name: None if name is None else store.find(name).id for name in given}
    except NotFound as error:
        raise InputError(error.message, location="grants") from None
    return [{"program": numbers[name], "role": check_role(role)} for name, role in given.items()]


def _list_grants(given: Mapping[str | None, str]) -> list[dict[str, Any]]:
    return [{"program": program, "role": role} for program, role in given.items()]


def _select_grants() -> sa.Select[Any]:
    """A row for each grant of each token, with the program's name."""
    held = (tokens.c.id, tokens.c.name.label("token"), tokens.c.digest, tokens.c.created, tokens.c.expires)
    columns = (*held, tokens.c.revoked, programs.c.name.label("program"), roles.c.role)
    joined = tokens.join(roles, roles.c.token == tokens.c.id)
    named = joined.join(programs, programs.c.id == roles.c.program, isouter=True)
    # A missing program (after a partial restore) must not be taken for all programs.
    there = sa.or_(roles.c.program.is_(None), programs.c.id.is_not(None))
    return sa.select(*columns).select_from(named).where(there)


def _as_principal(rows: list[sa.Row[Any]]) -> Principal | None:
    return Principal(rows[0].id, rows[0].token, {row.program: row.role for row in rows}) if rows else None


def _live(now: str | sa.BindParameter[Any]) -> sa.ColumnElement[bool]:
    """Neither revoked nor expired; times are text of one format, so they can be compared."""
    return sa.and_(tokens.c.revoked.is_(None), sa.or_(tokens.c.expires.is_(None), tokens.c.expires > now))


def _add(now: str, later: timedelta) -> str:
    return write_time(lambda: datetime.fromisoformat(now) + later)


def _hold_names(connection: sa.Connection) -> None:
    """Lock the table of tokens until the transaction ends; SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("LOCK TABLE tokens IN SHARE ROW EXCLUSIVE MODE")


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


# Built once, for every request: building a statement takes longer than running it.
NOW = sa.bindparam("now", type_=sa.Text)
ANY_TOKEN = sa.select(tokens.c.id).limit(1)
BY_NUMBER = _select_grants().where(tokens.c.id == sa.bindparam("number"), _live(NOW))
BY_SESSION = (
    _select_grants()
    .join(sessions, sessions.c.token == tokens.c.id)
    .where(sessions.c.digest == sa.bindparam("digest"), sessions.c.expires > NOW, _live(NOW))
)
