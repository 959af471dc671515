"""The page of webhooks: the secret once, a test with its result, and what is refused."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from restive.desk.outbox import claim, finish
from restive.desk.webhooks import list_webhooks
from server.views.browsing import Site, open_site, read_text

PAGE = "/programs/coupons/webhooks"
URL = "https://no-such-host.invalid/hook"
SECRET = re.compile(r"whsec_[\w+/=]+")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with open_site(tmp_path) as opened:
        yield opened


def test_the_secret_is_shown_once(site: Site) -> None:
    browser = site.browser("admin")
    made = browser.post(PAGE, {"step": "add", "url": URL, "round.decided": "yes"})
    assert (made.status_code, made.headers["cache-control"]) == (200, "no-store")
    assert len(SECRET.findall(made.text)) == 1
    again = browser.get(PAGE).text
    assert SECRET.findall(again) == []
    assert URL in again
    assert "A round is decided." in read_text(again)


def test_a_webhook_is_tested_disabled_and_removed(site: Site) -> None:
    browser, program = site.browser("admin"), site.desk.program("coupons")
    browser.post(PAGE, {"step": "add", "url": URL, "results.complete": "yes"})
    for step, message in (
        ("test", "The test message was not delivered: unknown host."),
        ("disable", "Webhook 1 is disabled."),
        ("enable", "Webhook 1 is enabled."),
    ):
        assert browser.post(PAGE, {"step": step, "webhook": "1"}).status_code == 303
        assert message in read_text(browser.get(PAGE).text)
    assert "failed unknown host" in " ".join(read_text(browser.get(PAGE).text).split())
    assert list_webhooks(program)[0]["enabled"]
    assert browser.post(PAGE, {"step": "remove", "webhook": "1"}).status_code == 303
    assert list_webhooks(program) == []
    assert "Added webhook 1 to no-such-host.invalid: results.complete" in read_text(
        browser.get("/programs/coupons/audit").text
    )


def test_a_new_secret_is_shown_once_and_failed_messages_are_sent_again(site: Site) -> None:
    browser, program = site.browser("admin"), site.desk.program("coupons")
    first = SECRET.findall(browser.post(PAGE, {"step": "add", "url": URL, "round.decided": "yes"}).text)
    made = browser.post(PAGE, {"step": "secret", "webhook": "1"})
    assert "For 24 hours messages are signed by the secret before as well." in read_text(made.text)
    assert (len(SECRET.findall(made.text)), SECRET.findall(made.text) != first) == (1, True)
    assert "Send failed messages again" not in browser.get(PAGE).text
    program.decide({"ann": "low"}, again=True)
    sent = claim(site.desk.store, 30.0)
    assert sent is not None
    finish(site.desk.store, sent, "500", None)
    assert "Send failed messages again" in browser.get(PAGE).text
    assert browser.post(PAGE, {"step": "resend", "webhook": "1"}).status_code == 303
    assert "1 failed message is sent again." in read_text(browser.get(PAGE).text)
    assert list_webhooks(program)[0]["failed"] == 0


def test_what_is_refused_stays_in_the_form(site: Site) -> None:
    browser = site.browser("admin")
    refused = browser.post(PAGE, {"step": "add", "url": "https://192.168.0.1/hook", "round.decided": "yes"})
    assert refused.status_code == 422
    assert "is not a public address" in refused.text
    assert 'value="https://192.168.0.1/hook"' in refused.text
    assert browser.post(PAGE, {"step": "add", "url": URL}).status_code == 422  # no event
    assert browser.post(PAGE, {"step": "remove", "webhook": "7"}).status_code == 404
    assert browser.post(PAGE, {"step": "other"}).status_code == 400
