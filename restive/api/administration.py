"""Answers of the HTTP API to administrators: users, invitations, and the end of a program."""

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


class ArchivedProgram(Result):
    """The result of archiving or restoring a program."""

    archived: bool


class DeletedProgram(Result):
    """The result of deleting a program."""

    events: int
    """Events of its log that were deleted."""
