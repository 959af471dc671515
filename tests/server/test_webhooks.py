"""Webhooks over real sockets: signed, in order, again after a failure, and only to addresses that are allowed."""

import asyncio
import ipaddress
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from queue import Queue
from typing import Any

import httpx
import pytest

from restive.api.webhooks import Delivery
from restive.desk import Desk, Program
from restive.desk.webhooks import add_ping, add_webhook, change_webhook, find_webhook, replace_secret, resend_messages
from restive.errors import InputError
from restive.server.app import make_app
from restive.server.monitoring import Metrics
from restive.server.program_pool import Programs
from restive.server.settings import Settings
from restive.server.webhooks import Sender, check_reachable, is_allowed
from server.conftest import SHOPS
from server.receiving import LOOPBACK, Receiver, run_receiver
from server.running import run_server

FAST = Settings(
    open=True, log="none", webhook_networks=LOOPBACK, webhook_poll_seconds=0.02, webhook_retry_seconds=0.02,
    webhook_timeout_seconds=5.0,
)  # fmt: skip
STATES = dict.fromkeys(("ann", "ben", "cem"), "low")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with run_receiver() as receiver:
        yield receiver
        assert receiver.failures == []


@pytest.fixture
def program(desk: Desk, receiver: Receiver) -> Program:
    """A program whose webhook is the receiver."""
    program = desk.program("shops")
    receiver.secret = add_webhook(program, receiver.url)["secret"]
    return program


@contextmanager
def sending(desk: Desk, **changes: Any) -> Iterator[None]:
    """The task of a server that sends messages, while the block runs."""
    started: Queue[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]] = Queue()

    async def run() -> None:
        programs = Programs(desk)
        task = asyncio.create_task(Sender(programs, replace(FAST, **changes), Metrics()).run())
        started.put((asyncio.get_running_loop(), task))
        with suppress(asyncio.CancelledError):
            await task
        programs.close()

    thread = threading.Thread(target=asyncio.run, args=[run()])
    thread.start()
    loop, task = started.get()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()


def send_test(program: Program, desk: Desk, **changes: Any) -> Delivery:
    """Send a test message."""

    async def run() -> Delivery:
        programs = Programs(desk)
        sender = Sender(programs, replace(FAST, **changes), Metrics())
        sent = await sender.send(add_ping(program, 1, sender.lease_seconds))
        programs.close()
        return sent

    return asyncio.run(run())


def wait_for(program: Program, status: str, result: str) -> None:
    """Wait until the last message has this status and result."""
    end = time.monotonic() + 60
    while (found := find_webhook(program, 1)["deliveries"][0]) and (found["status"], found["result"]) != (
        status,
        result,
    ):
        assert time.monotonic() < end, found
        time.sleep(0.02)


def test_messages_of_a_server_arrive_signed_and_in_order(desk: Desk, program: Program, receiver: Receiver) -> None:
    app = make_app(desk, FAST)
    with run_server(app, FAST) as (host, port):
        api = f"http://{host}:{port}/api/v1/programs/shops"
        for state in ("low", "high", "low"):
            body = {"states": [{"agent": agent, "state": state} for agent in STATES]}
            assert httpx.post(f"{api}/rounds", json=body).status_code == 201
        receiver.wait(accepted=5)
        assert httpx.post(f"{api}/webhooks/1/test").json()["status"] == "delivered"
        metrics = httpx.get(f"http://{host}:{port}/metrics").text
        for path in ("/webhooks", "/events", "/audit", "/export.zip", ""):
            answer = httpx.get(api + path)
            assert answer.status_code == 200
            assert receiver.secret.encode() not in answer.content
        assert b"/hook" not in httpx.get(f"{api}/audit").content
    decided, complete = "round.decided", "results.complete"
    expected = [(decided, 1), (complete, 1), (decided, 2), (complete, 2), (decided, 3), ("ping", None)]
    assert receiver.kinds() == expected
    assert len({message["id"] for message in receiver.accepted}) == 6
    assert receiver.accepted[0]["data"]["counts"] == {"people": 3, "listed": 2, "budget": 2}
    assert 'restive_webhook_deliveries_total{outcome="delivered",type="round.decided"} 3.0' in metrics


def test_what_was_recorded_without_a_server_is_sent_by_the_next_one(
    desk: Desk, program: Program, receiver: Receiver
) -> None:
    program.decide(STATES)
    with sending(desk):
        receiver.wait(accepted=1)
    assert receiver.kinds() == [("round.decided", 1)]


def test_a_receiver_that_fails_gets_the_same_message_again_and_those_behind_it_wait(
    desk: Desk, program: Program, receiver: Receiver
) -> None:
    receiver.answer = lambda _: 503 if len(receiver.attempts) < 3 else 204
    program.decide(STATES)
    program.decide(STATES, again=True)
    with sending(desk):
        receiver.wait(accepted=3)
    assert len({message["id"] for message in receiver.attempts[:4]}) == 1
    assert receiver.kinds() == [("round.decided", 1), ("results.complete", 1), ("round.decided", 2)]
    assert find_webhook(program, 1)["deliveries"][-1]["attempts"] == 4


def test_a_message_that_fails_too_often_is_given_up_and_shown(
    desk: Desk, program: Program, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("restive.server.webhooks.MAX_ATTEMPTS", 2)
    receiver.answer = lambda _: 302  # a redirect is not followed
    program.decide(STATES)
    with sending(desk):
        receiver.wait(attempts=2)
        wait_for(program, "failed", "302")
    found = find_webhook(program, 1)
    assert (found["failed"], found["pending"], len(receiver.attempts)) == (1, 0, 2)


def test_a_failed_message_is_sent_again_with_its_id_when_asked_for(
    desk: Desk, program: Program, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("restive.server.webhooks.MAX_ATTEMPTS", 1)
    receiver.answer = lambda _: 500
    program.decide(STATES)
    with sending(desk):
        wait_for(program, "failed", "500")
        receiver.answer = lambda _: 204
        assert resend_messages(program, 1) == 1
        receiver.wait(accepted=1)
        wait_for(program, "delivered", "204")
    assert [message["id"] for message in receiver.attempts] == [receiver.accepted[0]["id"]] * 2
    assert resend_messages(program, 1) == 0


@pytest.mark.parametrize("hours", [0, 24])
def test_after_a_change_of_secret_both_sign_for_a_while(
    desk: Desk, program: Program, receiver: Receiver, hours: int
) -> None:
    before, after = receiver.secret, replace_secret(program, 1, hours)["secret"]
    assert before != after
    program.decide(STATES)
    with sending(desk):
        receiver.wait(accepted=1) if hours else wait_for(program, "pending", "401")
        receiver.secret = after
        receiver.wait(accepted=1)
    assert bool(receiver.failures) is (hours == 0)
    receiver.failures.clear()


def test_a_receiver_that_is_gone_is_disabled(desk: Desk, program: Program, receiver: Receiver) -> None:
    receiver.answer = lambda _: 410
    program.decide(STATES)
    with sending(desk):
        receiver.wait(attempts=1)
        wait_for(program, "failed", "410")
    found = find_webhook(program, 1)
    assert (found["enabled"], found["failed"]) == (False, 1)


def test_a_slow_receiver_is_not_waited_for(desk: Desk, program: Program, receiver: Receiver) -> None:
    def wait(_: dict[str, Any]) -> int:
        time.sleep(0.5)
        return 204

    receiver.answer = wait
    program.decide(STATES)
    with sending(desk, webhook_timeout_seconds=0.1, webhook_retry_seconds=60.0):
        wait_for(program, "pending", "timeout")
    receiver.wait(attempts=1)


@pytest.mark.parametrize(
    ("url", "networks", "result"),
    [
        ("https://localhost/hook", (), "address not allowed"),
        ("https://127.0.0.1/hook", (), "address not allowed"),
        ("https://[::ffff:169.254.169.254]/hook", LOOPBACK, "address not allowed"),
        ("https://no-such-host.invalid/hook", (), "unknown host"),
        ("http://localhost:1/hook", ("127.0.0.0/8", "::1"), "no connection"),
    ],
)
def test_a_test_message_says_why_it_was_not_delivered(
    desk: Desk, url: str, networks: tuple[str, ...], result: str
) -> None:
    program = desk.program("shops")
    add_webhook(program, url)
    sent = send_test(program, desk, webhook_networks=networks)
    assert (sent["status"], sent["result"], sent["attempts"]) == ("failed", result, 1)


def test_a_certificate_that_is_not_valid_is_refused(desk: Desk, receiver: Receiver) -> None:
    program = desk.program("shops")
    add_webhook(program, f"https://127.0.0.1:{receiver.port}/hook")
    sent = send_test(program, desk)  # the receiver speaks no TLS at all
    assert (sent["status"], sent["result"]) == ("failed", "invalid certificate")


def test_addresses_that_are_not_public_are_refused_unless_their_network_is_allowed() -> None:
    inner = ["10.0.0.1", "192.168.1.1", "169.254.169.254", "127.0.0.1", "::1", "fe80::1", "fd00::1", "100.64.0.1",
             "0.0.0.0", "224.0.0.1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::"]  # fmt: skip
    for text in inner:
        assert not is_allowed(ipaddress.ip_address(text), Settings()), text
    for text in ("9.9.9.9", "2620:fe::fe", "64:ff9b::909:909"):
        assert is_allowed(ipaddress.ip_address(text), Settings()), text
    assert is_allowed(ipaddress.ip_address("10.1.2.3"), Settings(webhook_networks=("10.0.0.0/8",)))
    for url in ("https://localhost/x", "https://10.0.0.1/x", "http://127.0.0.1:9/x", "https://[::1]/x"):
        with pytest.raises(InputError, match="--webhook-network"):
            check_reachable(url, Settings())
    check_reachable("https://example.org/x", Settings())


def test_neither_the_address_nor_the_secret_is_logged(
    desk: Desk, program: Program, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    program.decide(STATES)
    with caplog.at_level(logging.INFO), sending(desk):
        receiver.wait(accepted=1)
        wait_for(program, "delivered", "204")
    records = [record for record in caplog.records if record.message == "webhook"]
    assert [record.fields["outcome"] for record in records] == ["delivered"]  # type: ignore[attr-defined]
    said = str([vars(record) for record in caplog.records if record.name == "restive.server"])
    assert receiver.secret not in said
    assert "/hook" not in said


def test_two_servers_on_one_store_deliver_each_message_once(address: str, receiver: Receiver) -> None:
    with Desk(address) as one, Desk(address) as other:
        program = one.create("shops", **SHOPS)
        receiver.secret = add_webhook(program, receiver.url)["secret"]
        with sending(one), sending(other):
            for _ in range(10):
                program.decide(STATES, again=True)
            receiver.wait(accepted=19)
        assert find_webhook(program, 1)["pending"] == 0
    assert len(receiver.attempts) == len({message["id"] for message in receiver.attempts}) == 19
    rounds = [round_ for kind, round_ in receiver.kinds() if kind == "round.decided"]
    assert rounds == list(range(1, 11))


def test_a_changed_address_gets_what_is_waiting(desk: Desk, program: Program, receiver: Receiver) -> None:
    with run_receiver() as other:
        program.decide(STATES)
        other.secret = receiver.secret
        change_webhook(program, 1, url=other.url)
        with sending(desk):
            other.wait(accepted=1)
    assert receiver.attempts == []
