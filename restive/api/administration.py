"""Answers of the HTTP API about administration: users, invitations, logs, and the end of a program."""

from typing import Any

from restive.api.types import Answer, Grant, Result


class User(Answer):
    """A person or system that can sign in or send a token."""

    id: int
    """The number of the token, as in the audit log."""
    name: str
    grants: list[Grant]
    made: str
    expires: str | None
    revoked: str | None
    has_secret: bool
    """Whether there is a token to send; a person who was invited has none and signs in by a link."""
    invitation: str | None
    """Until when the invitation can be used; null: there is none."""
    sessions: int
    """The number of browsers that are signed in."""


class Invitation(Answer):
    """A link that signs one browser in, once."""

    user: User
    link: str
    """The address to open; it is not shown again."""
    expires: str


class NewToken(Answer):
    """A token for a system."""

    user: User
    token: str
    """The secret to send as `Authorization: Bearer`; it is not shown again."""


class ArchivedProgram(Result):
    """The result of archiving or restoring a program."""

    archived: bool


class DeletedProgram(Result):
    """The result of deleting a program."""

    events: int
    """Events of its log that were deleted."""


class Event(Answer):
    """An event of a program's log without its columns; it refers to people by number, never by id."""

    number: int
    """From 0, without gaps."""
    kind: str
    round: int | None
    at: str
    header: dict[str, Any]
    digest: str
    """SHA-256 of the event and the digest of the event before it."""


class AuditEntry(Answer):
    """An entry of the audit log."""

    number: int
    program: str | None
    """Null: the entry is about the store itself, such as a new token."""
    at: str
    by: str
    verb: str
    round: int | None
    answer: dict[str, Any]
    """A summary of the answer to the request."""
