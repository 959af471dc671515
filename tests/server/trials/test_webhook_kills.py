"""A server killed between the commit of an event and its delivery: the next server delivers the message."""

import signal
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from restive.desk import Desk
from restive.desk.webhooks import add_webhook, find_webhook
from server.conftest import SHOPS
from server.receiving import run_receiver
from server.running import Command

ROWS = [{"agent": agent, "state": "low"} for agent in ("ann", "ben", "cem")]
# `restive serve` with short times: a message that the killed server had reserved is free again soon.
SERVE = """
import sys
from restive.desk import Desk
from restive.server.run import serve_desk
from restive.server.settings import Settings
times = dict(webhook_timeout_seconds=0.5, webhook_poll_seconds=float(sys.argv[2]), webhook_retry_seconds=0.05)
with Desk(sys.argv[1]) as desk:
    serve_desk(desk, Settings(port=0, webhook_networks=("127.0.0.1",), **times))
"""


def serve(store: Path, poll_seconds: float = 0.05) -> Command:
    return Command(str(store), str(poll_seconds), start=["-c", SERVE])


@pytest.mark.parametrize("when", ["before the attempt", "during the attempt"])
def test_a_message_of_a_killed_server_is_delivered_by_the_next(tmp_path: Path, when: str) -> None:
    store = tmp_path / "store.db"
    with Desk(store) as desk, run_receiver() as receiver:
        program = desk.create("shops", **SHOPS)
        receiver.secret = add_webhook(program, receiver.url)["secret"]
        with serve(store, 600.0 if when == "before the attempt" else 0.05) as first:
            address = first.address()

            def kill(_: object) -> int:
                """End the server while it waits for the answer to its first attempt, as a power cut would."""
                if len(receiver.attempts) == 0:
                    first.tell(signal.SIGKILL)
                    first._process.wait()
                return 204

            if when == "during the attempt":
                receiver.answer = kill
            with suppress(httpx.TransportError):  # the answer to the request may be lost as well
                httpx.post(f"{address}/api/v1/programs/shops/rounds", json={"states": ROWS}, timeout=120)
            if when == "before the attempt":
                first.tell(signal.SIGKILL)
            assert first.wait() == -signal.SIGKILL
        sent = 1 if when == "during the attempt" else 0
        receiver.wait(attempts=sent)
        assert len(receiver.attempts) == sent
        with serve(store) as second:
            second.address()
            receiver.wait(attempts=sent + 1)
            second.tell(signal.SIGTERM)
            assert second.wait() == 0
        assert {message["type"] for message in receiver.attempts} == {"round.decided"}
        assert len({message["id"] for message in receiver.attempts}) == 1  # at least once, recognised by its id
        assert find_webhook(program, 1)["deliveries"][0]["status"] == "delivered"
