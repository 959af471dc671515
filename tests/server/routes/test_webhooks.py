"""Webhooks over HTTP: add, list, change, test and remove; what is refused, and what the audit log says."""

from collections.abc import Callable

from pydantic import TypeAdapter

from restive.api.types import Page
from restive.api.webhooks import (
    Delivery,
    NewWebhook,
    Ping,
    RemovedWebhook,
    ResentMessages,
    ResultsComplete,
    RoundDecided,
    Webhook,
)
from restive.desk.outbox import claim, finish
from restive.desk.webhooks import MAX_WEBHOOKS
from server.calling import Caller, as_rows, check

URL = "https://no-such-host.invalid/hook"


def test_the_life_of_a_webhook(principals: Callable[..., Caller]) -> None:
    admin = principals("admin", "shops")
    made = admin.post("webhooks", {"url": URL}, NewWebhook, 201)
    assert made["webhook"]["events"] == ["round.decided", "results.complete"]
    (listed,) = admin.get("webhooks", Page[Webhook])["items"]
    assert listed == made["webhook"]
    changed = check(
        admin.call("PATCH", "webhooks/1", json={"events": ["round.decided"], "enabled": False}), Webhook, 200
    )
    assert (changed["events"], changed["enabled"], changed["url"]) == (["round.decided"], False, URL)
    rotated = check(admin.call("POST", "webhooks/1/secret?hours=2"), NewWebhook, 200)
    assert rotated["secret"] != made["secret"]
    admin.refused("POST", "webhooks/1/resend", 409)  # it is disabled
    admin.call("PATCH", "webhooks/1", json={"enabled": True})
    assert check(admin.call("POST", "webhooks/1/resend"), ResentMessages, 200)["messages"] == 0
    admin.refused("POST", "webhooks/1/resend?message=msg_1", 404)
    sent = check(admin.call("POST", "webhooks/1/test"), Delivery, 200)
    assert (sent["type"], sent["status"], sent["result"], sent["next"]) == ("ping", "failed", "unknown host", None)
    assert check(admin.call("DELETE", "webhooks/1?dry_run=true"), RemovedWebhook, 200)["recorded"] is False
    assert check(admin.call("DELETE", "webhooks/1"), RemovedWebhook, 200)["recorded"] is True
    assert admin.get("webhooks", Page[Webhook])["items"] == []
    entries = admin.desk.store.audit_log(None, limit=7)
    verbs = ["removed", "tested", "messages resent", "changed", "secret replaced", "changed", "added"]
    assert [row.verb for row in entries] == [f"webhook {verb}" for verb in verbs]
    assert entries[-1].answer == {
        "webhook": 1, "host": "no-such-host.invalid", "events": ["round.decided", "results.complete"],
    }  # fmt: skip


def test_messages_are_of_their_types(caller: Caller) -> None:
    caller.post("webhooks", {"url": URL}, NewWebhook, 201)
    for _ in range(2):
        assert caller.call("POST", "rounds", json={"states": as_rows(), "again": True}).status_code == 201
    kinds = {"round.decided": RoundDecided, "results.complete": ResultsComplete, "ping": Ping}
    seen = []
    while sent := claim(caller.desk.store, 30.0):
        TypeAdapter(kinds[sent.type]).validate_json(sent.body, strict=True)
        finish(caller.desk.store, sent, "204", None)
        seen.append(sent.type)
    assert seen == ["round.decided", "results.complete", "round.decided"]
    described = caller.app.openapi()["webhooks"]
    assert set(described) == set(kinds)
    for kind, said in described.items():
        schema = said["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        assert schema.endswith(kinds[kind].__name__)
        assert {"webhook-id", "webhook-timestamp", "webhook-signature"} == {
            each["name"] for each in said["post"]["parameters"]
        }


def test_what_is_refused(caller: Caller) -> None:
    for url in (
        "https://localhost/x",
        "https://10.1.2.3/x",
        "http://example.org/x",
        "ftp://example.org",
        "x",
        "https://[",
    ):
        assert caller.refused("POST", "webhooks", 422, json={"url": url})["location"] == "url"
    for body in ({"url": URL, "events": []}, {"url": URL, "events": ["ping"]}, {"url": URL, "secret": "x"}, {}):
        caller.refused("POST", "webhooks", 422, json=body)
    caller.refused("PATCH", "webhooks/1", 422, json={})
    for method, path in (("PATCH", "webhooks/1"), ("DELETE", "webhooks/1"), ("POST", "webhooks/1/test")):
        caller.refused(method, path, 404, **({"json": {"enabled": True}} if method == "PATCH" else {}))
    caller.post("webhooks", {"url": URL}, NewWebhook, 201)
    assert "already" in caller.refused("POST", "webhooks", 409, json={"url": URL})["detail"]
    for place in range(MAX_WEBHOOKS - 1):
        caller.post("webhooks", {"url": f"{URL}/{place}"}, NewWebhook, 201)
    assert "the maximum is 10" in caller.refused("POST", "webhooks", 409, json={"url": f"{URL}/more"})["detail"]
    caller.refused("PATCH", "webhooks/2", 409, json={"url": URL})
    assert len(caller.get("webhooks", Page[Webhook])["items"]) == MAX_WEBHOOKS


def test_a_webhook_of_another_program_is_not_found(caller: Caller) -> None:
    caller.desk.create("calls", template="pharmacy")
    caller.post("webhooks", {"url": URL}, NewWebhook, 201)
    caller.refused("DELETE", "/api/v1/programs/calls/webhooks/1", 404)


def test_a_webhook_of_an_archived_program_can_be_removed(caller: Caller) -> None:
    caller.post("webhooks", {"url": URL}, NewWebhook, 201)
    caller.desk.program("shops").archive()
    caller.refused("POST", "webhooks", 409, json={"url": f"{URL}/2"})
    assert check(caller.call("DELETE", "webhooks/1"), RemovedWebhook, 200)["recorded"] is True
