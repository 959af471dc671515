"""Messages of webhooks: recorded with their events, in order, once; taken back by undo; leased to one server."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from restive.desk import Desk, Program
from restive.desk.database import deliveries
from restive.desk.outbox import (
    COMPLETE,
    DECIDED,
    MAX_ATTEMPTS,
    PENDING,
    Message,
    add_seconds,
    claim,
    find_delay,
    finish,
)
from restive.desk.replay import replay
from restive.desk.webhooks import add_ping, add_webhook, change_webhook, find_webhook
from restive.errors import InputError

URL = "https://example.org/hook"
LEASE = 30.0
PEOPLE = ("ann", "ben", "cem", "dot")


class Clock:
    """A clock that stands still until it is advanced."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 2, 9, 30, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def program(address: str, clock: Clock) -> Iterator[Program]:
    """A program with a webhook, over each kind of store."""
    with Desk(address, clock=clock) as desk:
        made = desk.create("shops", states=["low", "high"], rewards=[0, 1], policy="egt", budget=2, control=0, seed=3)
        add_webhook(made, URL)
        yield made


def tell(*people: str, state: str = "low") -> dict[str, str]:
    return dict.fromkeys(people or PEOPLE, state)


def outcomes(*people: str) -> list[dict[str, Any]]:
    return [{"agent": agent, "next_state": "high"} for agent in people]


def rows(program: Program) -> list[sa.Row[Any]]:
    return program.store.execute(sa.select(deliveries).order_by(deliveries.c.id))


def messages(program: Program) -> list[tuple[str, int]]:
    """Type and round of everything that is waiting to be sent."""
    return [(row.type, row.round) for row in rows(program) if row.status == PENDING]


def take(program: Program) -> Message:
    found = claim(program.store, LEASE)
    assert found is not None
    return found


def deliver(program: Program) -> Message:
    """Take the next message as delivered."""
    sent = take(program)
    finish(program.store, sent, "204", None)
    return sent


def test_a_decision_and_its_results_are_recorded_in_the_order_of_their_events(program: Program) -> None:
    program.decide(tell())
    program.decide(tell(state="high"))
    assert messages(program) == [(DECIDED, 1), (COMPLETE, 1), (DECIDED, 2)]
    decided, complete, _ = (json.loads(row.body) for row in rows(program))
    counts = {"people": 4, "listed": 2, "budget": 2}
    assert decided == {
        "type": DECIDED,
        "timestamp": "2026-11-02T09:30:00.000000+00:00",
        "data": {"program": "shops", "round": 1, "counts": counts},
    }
    assert complete["data"]["counts"] == {"people": 4, "outcomes": 4, "gone": 0, "missing": 0, "done": 2}
    assert not any(name in row.body for row in rows(program) for name in PEOPLE)


def test_what_is_not_recorded_sends_nothing(program: Program) -> None:
    program.decide(tell(), dry_run=True)
    with pytest.raises(InputError):
        program.decide({"ann": "no such state"})
    assert rows(program) == []


def test_results_are_complete_when_the_last_outcome_is_reported(program: Program) -> None:
    program.decide(tell())
    program.learn(outcomes("ann", "ben", "cem"))
    assert messages(program) == [(DECIDED, 1)]
    program.learn([{"agent": "dot", "done": True}])  # not an outcome
    assert messages(program) == [(DECIDED, 1)]
    program.learn(outcomes("dot"))
    assert messages(program) == [(DECIDED, 1), (COMPLETE, 1)]


def test_several_rounds_can_be_completed_by_one_table(program: Program) -> None:
    for _ in range(4):  # more rounds than a process keeps in memory
        program.decide(tell(), states_are_outcomes=False, again=True)
    program.learn([row | {"round": round_} for round_ in (1, 2, 3, 4) for row in outcomes(*PEOPLE)])
    assert messages(program)[4:] == [(COMPLETE, round_) for round_ in (1, 2, 3, 4)]


def test_a_round_is_complete_when_the_second_list_after_it_is_decided(program: Program) -> None:
    program.decide(tell())
    program.leave(["cem"])
    without = {agent: state for agent, state in tell(state="high").items() if agent not in ("cem", "dot")}
    program.decide(without)
    assert messages(program) == [(DECIDED, 1), (DECIDED, 2)]
    program.decide(without, again=True)
    sent = [(DECIDED, 1), (DECIDED, 2), (COMPLETE, 1), (COMPLETE, 2), (DECIDED, 3)]
    assert messages(program) == sent
    counts = [json.loads(row.body)["data"]["counts"] for row in rows(program) if row.type == COMPLETE]
    assert [(each["people"], each["outcomes"], each["gone"], each["missing"]) for each in counts] == [
        (4, 2, 1, 1), (2, 2, 0, 0),
    ]  # fmt: skip
    program.undo()
    assert messages(program) == sent[:2]
    program.decide(without, again=True)
    assert messages(program) == sent
    program.learn([row | {"round": 1} for row in outcomes("dot")])
    assert messages(program) == sent


@pytest.mark.parametrize("verb", ["leave", "erase"])
def test_results_are_complete_when_the_last_person_without_one_is_gone(program: Program, verb: str) -> None:
    program.decide(tell())
    program.learn(outcomes("ann", "ben"))
    getattr(program, verb)(["ann", "cem"])
    assert messages(program) == [(DECIDED, 1)]
    getattr(program, verb)(["dot"])
    assert messages(program) == [(DECIDED, 1), (COMPLETE, 1)]
    counts = json.loads(rows(program)[1].body)["data"]["counts"]
    assert (counts["people"], counts["outcomes"], counts["gone"]) == (4, 2, 2)


def test_people_who_return_and_leave_again_do_not_complete_a_round_twice(program: Program) -> None:
    program.decide(tell())
    program.learn(outcomes("ann", "ben", "cem"))
    program.leave(["dot"])
    program.decide(tell(), states_are_outcomes=False)
    program.leave(["dot"])
    program.learn(outcomes("dot"), round=1)
    assert messages(program) == [(DECIDED, 1), (COMPLETE, 1), (DECIDED, 2)]


def test_a_round_that_was_complete_before_the_webhook_was_added_is_not_announced_later(program: Program) -> None:
    change_webhook(program, 1, events=[DECIDED])
    program.decide(tell())
    program.learn(outcomes("ann", "ben", "cem"))
    program.leave(["dot"])
    change_webhook(program, 1, events=[DECIDED, COMPLETE])
    program.leave(["ann"])
    program.learn([{"agent": "ann", "next_state": "low"}], correct=True)
    assert messages(program) == [(DECIDED, 1)]


def test_corrections_and_repeated_reports_send_nothing(program: Program) -> None:
    program.decide(tell())
    program.learn(outcomes(*PEOPLE))
    for _ in range(2):
        program.learn([{"agent": "ann", "next_state": "low"}], correct=True)
    program.withdraw(["ben"], 1)
    program.learn(outcomes("ben"))
    assert messages(program) == [(DECIDED, 1), (COMPLETE, 1)]


def test_a_correction_may_come_with_the_last_outcome(program: Program) -> None:
    program.decide(tell())
    program.learn(outcomes("ann", "ben", "cem"))
    program.learn([{"agent": "ann", "next_state": "low"}, *outcomes("dot")], correct=True)
    assert messages(program) == [(DECIDED, 1), (COMPLETE, 1)]
    assert json.loads(rows(program)[1].body)["data"]["counts"]["outcomes"] == 4


def test_what_is_undone_before_it_was_sent_is_not_sent(program: Program) -> None:
    program.decide(tell())
    program.decide(tell(state="high"))
    program.undo()
    assert messages(program) == [(DECIDED, 1)]
    program.decide(tell(state="high"))
    assert messages(program) == [(DECIDED, 1), (COMPLETE, 1), (DECIDED, 2)]


def test_what_was_sent_and_undone_is_sent_again_with_another_id_when_it_happens_again(program: Program) -> None:
    program.decide(tell())
    program.learn(outcomes(*PEOPLE))
    sent = [deliver(program), deliver(program)]
    program.undo()
    assert messages(program) == []
    program.learn(outcomes(*PEOPLE))
    again = deliver(program)
    assert (again.type, again.message not in {each.message for each in sent}) == (COMPLETE, True)


def test_a_cancelled_round_is_not_announced_any_more(program: Program) -> None:
    program.decide(tell())
    program.cancel(1)
    assert messages(program) == []
    assert find_webhook(program, 1)["deliveries"][0]["status"] == "cancelled"


def test_the_log_of_a_program_with_a_webhook_replays(program: Program) -> None:
    program.decide(tell())
    program.decide(tell(state="high"))
    assert replay(program).proven


def test_a_message_is_leased_to_one_server_and_then_to_another(program: Program, clock: Clock) -> None:
    program.decide(tell())
    program.decide(tell(state="high"))
    first = take(program)
    assert claim(program.store, LEASE) is None  # neither this one nor those behind it
    clock.advance(LEASE)
    second = take(program)
    assert (second.message, second.attempt) == (first.message, 2)
    finish(program.store, first, "500", 1.0)  # too late: it belongs to the other one
    finish(program.store, second, "204", None)
    assert deliver(program).type == COMPLETE


def test_a_failed_message_holds_up_the_next_until_it_is_delivered_or_given_up(program: Program, clock: Clock) -> None:
    program.decide(tell())
    program.decide(tell(state="high"))
    finish(program.store, take(program), "503", 5.0)
    assert claim(program.store, LEASE) is None
    clock.advance(5)
    finish(program.store, take(program), "503", None)
    assert deliver(program).type == COMPLETE
    found = find_webhook(program, 1)
    assert (found["failed"], found["pending"], found["deliveries"][-1]["result"]) == (1, 1, "503")


def test_a_disabled_webhook_gets_what_was_waiting_when_it_is_enabled_again(program: Program) -> None:
    program.decide(tell())
    change_webhook(program, 1, enabled=False)
    program.decide(tell(state="high"))
    assert claim(program.store, LEASE) is None
    change_webhook(program, 1, enabled=True)
    assert deliver(program).type == DECIDED
    assert claim(program.store, LEASE) is None


def test_a_test_message_neither_waits_nor_holds_up_others(program: Program) -> None:
    program.decide(tell())
    finish(program.store, take(program), "503", 60.0)
    add_ping(program, 1)
    assert deliver(program).type == "ping"


def test_retries_take_about_a_day() -> None:
    delays = [find_delay(attempt, 5.0) for attempt in range(1, MAX_ATTEMPTS)]
    assert 0.8 * 86_400 < sum(delays) < 1.25 * 86_400
    assert 4 <= delays[0] <= 6
    assert max(delays) <= 1.2 * 4 * 3600
    assert len({find_delay(1, 5.0) for _ in range(20)}) > 1
    assert add_seconds("2026-11-02T09:30:00.000000+00:00", 1.5) == "2026-11-02T09:30:01.500000+00:00"


def test_a_deleted_program_takes_its_webhooks_along(tmp_path: Path) -> None:
    with Desk(tmp_path / "store.db") as desk:
        program = desk.create("shops", states=["low", "high"], rewards=[0, 1], policy="egt", budget=2, control=0)
        add_webhook(program, URL)
        program.decide(tell())
        desk.delete("shops", confirm="shops")
        assert claim(desk.store, LEASE) is None
