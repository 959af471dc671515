"""Webhooks of a program over HTTP: `program.webhooks`."""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from restive.api.webhooks import Delivery, EventType, NewWebhook, RemovedWebhook, ResentMessages, Webhook
from restive.client.calls import Awaiting, Blocking, Pages, Request, Steps, call
from restive.client.transport import AsyncTransport, Body, Transport


class WebhookCalls:
    """The webhooks of one program; for admins."""

    def __init__(self, transport: Transport | AsyncTransport, path: str) -> None:
        self._transport: Any = transport
        self._path = f"{path}/webhooks"

    @call
    def add(self, url: str, events: Sequence[EventType] | None = None) -> Steps[NewWebhook]:
        """Have messages sent to an address; the secret in the answer is not shown again."""
        body: dict[str, Any] = {"url": url, **({} if events is None else {"events": list(events)})}
        answer: NewWebhook = yield Request("POST", self._path, body=Body.of(body))
        return answer

    @call
    def change(
        self, id: int, url: str | None = None, events: Sequence[EventType] | None = None, enabled: bool | None = None
    ) -> Steps[Webhook]:
        """Change the address or the events of a webhook, disable or enable it."""
        body = {"url": url, "events": None if events is None else list(events), "enabled": enabled}
        answer: Webhook = yield Request("PATCH", f"{self._path}/{int(id)}", body=Body.of(body))
        return answer

    @call
    def test(self, id: int) -> Steps[Delivery]:
        """Have a test message sent now; its delivery."""
        answer: Delivery = yield Request("POST", f"{self._path}/{int(id)}/test")
        return answer

    @call
    def replace_secret(self, id: int, hours: int = 24) -> Steps[NewWebhook]:
        """Replace the secret; for so many hours messages are signed by both."""
        answer: NewWebhook = yield Request("POST", f"{self._path}/{int(id)}/secret", {"hours": hours})
        return answer

    @call
    def resend(self, id: int, message: str | None = None) -> Steps[int]:
        """Have all failed messages sent again, or the one with this id; returns how many."""
        answer: ResentMessages = yield Request("POST", f"{self._path}/{int(id)}/resend", {"message": message})
        return answer["messages"]

    @call
    def remove(self, id: int, dry_run: bool = False) -> Steps[RemovedWebhook]:
        """Remove a webhook with its secret and its messages."""
        path, query = f"{self._path}/{int(id)}", {"dry_run": dry_run}
        answer: RemovedWebhook = yield Request("DELETE", path, query)
        return answer


class Webhooks(WebhookCalls, Blocking):
    """The webhooks of one program; iterate over it to list them."""

    def __iter__(self) -> Iterator[Webhook]:
        return self._iterate(Pages[Webhook](self._path))


class AsyncWebhooks(WebhookCalls, Awaiting):
    """The webhooks of one program, whose calls are awaited; iterate with `async for` to list them."""

    def __aiter__(self) -> AsyncIterator[Webhook]:
        return self._iterate(Pages[Webhook](self._path))
