"""Request models of the API for administrators: roles and invitations of users, and webhooks."""

from typing import Annotated, Literal

from pydantic import Field

from restive.api.webhooks import EventType
from restive.desk.tokens import MAX_DAYS
from restive.desk.webhooks import EVENTS, MAX_ROTATION_HOURS, MAX_URL, ROTATION_HOURS
from restive.errors import InputError
from restive.server.requests import SHORT, Body, Query, make_example


class GrantBody(Body):
    """A role in a program."""

    program: str | None = Field(max_length=60, description="The name of a program; null: all programs.")
    role: Literal["viewer", "operator", "admin"]


class GrantsBody(Body):
    """The roles of a user."""

    model_config = make_example(grants=[{"program": None, "role": "operator"}])

    grants: Annotated[list[GrantBody], SHORT] = Field(min_length=1, description="At most one role for each program.")

    def as_mapping(self) -> dict[str | None, str]:
        """The roles by program."""
        found: dict[str | None, str] = {grant.program: grant.role for grant in self.grants}
        if len(found) < len(self.grants):
            raise InputError("A program is named twice; give one role for each program.", location="grants")
        return found


class InviteBody(GrantsBody):
    """A new user, who signs in by a link, or a system, which sends a token."""

    model_config = make_example(name="ann", grants=[{"program": None, "role": "operator"}])

    name: str = Field(
        min_length=1,
        max_length=60,
        pattern=r"^\w[\w.\-]*$",
        description="The person or system. Letters, digits, dots, dashes and underscores; the first is a letter or digit.",
    )
    days: int | None = Field(None, ge=1, le=MAX_DAYS, description="Days until access ends; null: until it is revoked.")


Events = Annotated[
    list[EventType],
    SHORT,
    Field(min_length=1, description="The events that the webhook is told of.", examples=[["round.decided"]]),
]
Address = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_URL,
        description="Where messages are sent, by HTTPS.",
        examples=["https://example.org/hook"],
    ),
]


class WebhookBody(Body):
    """A new webhook."""

    url: Address
    events: Events = Field(default_factory=lambda: list(EVENTS))


class ChangeWebhookBody(Body):
    """Changes of a webhook; what is left out stays."""

    url: Address | None = None
    events: Events | None = None
    enabled: bool | None = Field(default=None, description="Whether messages are sent.")


class Rotation(Query):
    """For how long the secret before also signs."""

    hours: int = Field(
        ROTATION_HOURS, ge=0, le=MAX_ROTATION_HOURS, description="For how long the secret before also signs messages."
    )


class Resend(Query):
    """Which messages are sent again."""

    message: str | None = Field(None, max_length=100, description="The id of one message; absent: all that failed.")
