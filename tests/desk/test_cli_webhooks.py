"""`restive desk webhook` as an administrator calls it: the secret alone on its line, and every wrong turn a sentence."""

import pytest

from desk.test_cli import Call, call, shops
from restive.desk import Desk
from restive.desk.outbox import claim, finish

__all__ = ["call", "shops"]
URL = "https://example.org/hook"


def test_the_life_of_a_webhook(shops: Call) -> None:
    assert shops("webhook", "list", "shops").out == "No webhooks yet.\n"
    made = shops("webhook", "add", "shops", URL)
    assert made.out.startswith("whsec_")
    assert made.err == "restive: this is the secret of webhook 1; store it now, it is not shown again.\n"
    shops("webhook", "test", "shops", "1")
    with Desk("desk.db") as desk:
        sent = claim(desk.store, 30.0)
        assert sent is not None
        assert sent.secrets == [made.out.removesuffix("\n")]
        finish(desk.store, sent, "404", None)
    listed = shops("webhook", "list", "shops")
    assert "ping: failed (404)" in " ".join(listed.out.split())
    assert sent.secrets[0] not in listed.out + shops("webhook", "list", "shops", "--json").out
    changed = shops("webhook", "secret", "shops", "1", "--hours", "1")
    assert changed.out.startswith("whsec_")
    assert changed.out != made.out
    assert shops("webhook", "resend", "shops", "1").out == "The number of messages that are sent again is 0.\n"
    assert "no failed message" in shops("webhook", "resend", "shops", "1", "--message", "msg_1").err
    assert "(disabled)" in shops("webhook", "change", "shops", "1", "--disable").out
    assert "enable it before" in shops("webhook", "test", "shops", "1").err
    assert "would be removed" in shops("webhook", "remove", "shops", "1", "--dry-run").out
    assert shops("webhook", "remove", "shops", "1").out.startswith("Webhook 1 is removed")
    assert shops("webhook", "list", "shops", "--json").data == {"webhooks": []}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("add", "shops", "http://example.org/hook"), "must begin with https://"),
        (("add", "shops", "https://ann:secret@example.org/hook"), "no user, password or fragment"),
        (("add", "shops", "https://example.org/#hook"), "no user, password or fragment"),
        (("add", "shops", "example.org/hook"), "is not an address such as"),
        (("add", "shops", "https://example.org:port/"), "is not an address such as"),
        (("add", "shops", f"https://example.org/{'x' * 2000}"), "at most 2000 ASCII characters"),
        (
            ("add", "shops", URL, "--event", "round.over"),
            "There is no event 'round.over'; the events are round.decided",
        ),
        (("change", "shops", "1"), "There is nothing to change"),
        (("change", "shops", "1", "--enable"), "The program has no webhook 1."),
        (("test", "shops", "1"), "The program has no webhook 1."),
        (("remove", "shops", "1"), "The program has no webhook 1."),
        (("secret", "shops", "1"), "The program has no webhook 1."),
        (("secret", "shops", "1", "--hours", "721"), "hours"),
    ],
)
def test_what_is_wrong_is_said(shops: Call, words: tuple[str, ...], sentence: str) -> None:
    refused = shops("webhook", *words)
    assert (refused.code, refused.out) == (2, "")
    assert sentence in " ".join(refused.err.split())
