"""Webhooks of a program over HTTP: `program.webhooks`."""

from collections.abc import Iterator, Sequence
from typing import Any

from restive.api.webhooks import Delivery, EventType, NewWebhook, RemovedWebhook, Webhook
from restive.client.transport import Body, Transport


class Webhooks:
    """The webhooks of one program; for admins."""

    def __init__(self, transport: Transport, path: str) -> None:
        self._transport, self._path = transport, f"{path}/webhooks"

    def __iter__(self) -> Iterator[Webhook]:
        return self._transport.get_pages(self._path)

    def add(self, url: str, events: Sequence[EventType] | None = None) -> NewWebhook:
        """Have messages sent to an address; the secret in the answer is not shown again."""
        body: dict[str, Any] = {"url": url, **({} if events is None else {"events": list(events)})}
        answer: NewWebhook = self._transport.send("POST", self._path, body=Body.of(body))
        return answer

    def change(
        self, id: int, url: str | None = None, events: Sequence[EventType] | None = None, enabled: bool | None = None
    ) -> Webhook:
        """Change the address or the events of a webhook, disable or enable it."""
        body = {"url": url, "events": None if events is None else list(events), "enabled": enabled}
        answer: Webhook = self._transport.send("PATCH", f"{self._path}/{int(id)}", body=Body.of(body))
        return answer

    def test(self, id: int) -> Delivery:
        """Have a test message sent now; its delivery."""
        answer: Delivery = self._transport.send("POST", f"{self._path}/{int(id)}/test")
        return answer

    def remove(self, id: int, dry_run: bool = False) -> RemovedWebhook:
        """Remove a webhook with its secret and its messages."""
        path, query = f"{self._path}/{int(id)}", {"dry_run": dry_run}
        answer: RemovedWebhook = self._transport.send("DELETE", path, query)
        return answer
