"""Webhooks of a program: what the API answers about them, and the messages that a server sends.

A message follows the Standard Webhooks specification (standardwebhooks.com): its body is JSON with `type`, `timestamp`
and `data`; the headers `webhook-id`, `webhook-timestamp` and `webhook-signature` identify and sign it.
"""

from typing import Literal

from restive.api.types import Answer, Result

EventType = Literal["round.decided", "results.complete"]
MessageType = Literal["round.decided", "results.complete", "ping"]
DeliveryStatus = Literal["pending", "delivered", "failed", "cancelled"]


class Delivery(Answer):
    """A message to a webhook."""

    message: str
    """The id of the message, its `webhook-id`."""
    type: MessageType
    round: int | None
    at: str
    """When what it is about was recorded."""
    status: DeliveryStatus
    """failed: all attempts failed. cancelled: what it is about was undone before it was sent."""
    attempts: int
    attempted: str | None
    """When it was last sent."""
    result: str | None
    """The result of the last attempt, such as `204` or `timeout`."""
    next: str | None
    """When it is sent next; null if it is not sent again."""


class Webhook(Answer):
    """An address to which a server sends messages about a program."""

    id: int
    url: str
    events: list[EventType]
    enabled: bool
    created: str
    pending: int
    """The number of messages that are waiting to be sent."""
    failed: int
    """The number of messages that could not be delivered."""
    deliveries: list[Delivery]
    """The latest messages, the newest first; at most 10."""


class NewWebhook(Answer):
    """A new webhook and the secret that signs its messages."""

    webhook: Webhook
    secret: str
    """`whsec_` and a key in base64; it is not shown again."""


class RemovedWebhook(Result):
    """The result of removing a webhook."""

    webhook: Webhook


class ResentMessages(Answer):
    """The messages that are sent again."""

    messages: int


class DecidedCounts(Answer):
    """The numbers of a decided round."""

    people: int
    """People who take part in the round."""
    listed: int
    """People on the list."""
    budget: int


class DecidedData(Answer):
    """The round that was decided."""

    program: str
    round: int
    counts: DecidedCounts


class RoundDecided(Answer):
    """A round was decided: its list is ready."""

    type: Literal["round.decided"]
    timestamp: str
    data: DecidedData


class CompleteCounts(Answer):
    """The numbers of a round with all its results."""

    people: int
    """People who took part in the round."""
    outcomes: int
    """People whose outcome is known."""
    gone: int
    """People without an outcome, who left the program or were erased."""
    missing: int
    """People without an outcome who did not leave: they were in neither of the two tables of states after the round."""
    done: int
    """People for whom the action was done, as reported or as planned."""


class CompleteData(Answer):
    """The round whose results are complete."""

    program: str
    round: int
    counts: CompleteCounts


class ResultsComplete(Answer):
    """Everybody in a round has an outcome or has left, or the second list after the round is decided."""

    type: Literal["results.complete"]
    timestamp: str
    data: CompleteData


class PingData(Answer):
    """The program whose webhook is tested."""

    program: str


class Ping(Answer):
    """A test message."""

    type: Literal["ping"]
    timestamp: str
    data: PingData
