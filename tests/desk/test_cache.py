"""A program in memory: what others do is seen, snapshots spare work and change nothing."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from desk.stories import call, know, make, record, write
from restive.desk import Desk, cache
from restive.desk.audit import RequestContext
from restive.desk.codec import pack_snapshot
from restive.desk.events import Head
from restive.desk.program import Program
from restive.desk.replay import digest, replay
from restive.desk.store import Event, Store, StoreError, Writer
from restive.policies.egt import Egt


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with Desk(tmp_path / "desk.db") as desk:
        yield desk


def kept(program: Program) -> int | None:
    """How many events the newest snapshot covers."""
    found = program.store.snapshot(program.id, cache.SLOT)
    return None if found is None else found[0]


class Reading:
    """Notes from which event on a store's log is read, and lets it be read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.firsts: list[int] = []
        plain = Store.events

        def noted(store: Store, program: int, first: int = 0, **rest: Any) -> Iterator[Event]:
            if not rest.keys() & {"kinds", "round"}:
                self.firsts.append(first)
            return plain(store, program, first, **rest)

        monkeypatch.setattr(Store, "events", noted)


def test_opening_reads_the_newest_snapshot_and_only_what_came_since(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, story = make(desk, policy="lagrange"), write(rounds=4)
    record(program, story[:2])
    program.cache.save(now=True)
    covered = program.store.length(program.id)
    assert kept(program) == covered
    record(program, story[2:], first=2)
    reading = Reading(monkeypatch)
    again = desk.program("one")
    assert know(again) == know(program)
    assert reading.firsts == [covered]
    assert digest(again.projection) == digest(program.projection)


def test_a_snapshot_is_made_after_so_many_rounds_or_rows(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "ROUNDS_APART", 3)
    program, covered = make(desk, policy="random"), []
    for number in range(7):
        program.decide({"a": number % 2, "b": 0})
        covered.append(kept(program))
    assert covered == [None, None, 5, 5, 5, 8, 8]
    monkeypatch.setattr(cache, "ROUNDS_APART", 1000)
    monkeypatch.setattr(cache, "ROWS_APART", 20)
    other = make(desk, "other", policy="random")
    other.decide(dict.fromkeys(call(9), 0))  # joined and decided: 18 rows
    assert kept(other) is None
    other.learn([{"agent": name, "next_state": 1} for name in call(3)])
    assert kept(other) == 4


def test_nobody_is_not_worth_a_snapshot(desk: Desk) -> None:
    program = make(desk)
    assert program.projection.agents.count == 0
    program.cache.save(now=True)
    assert kept(program) is None


def test_a_snapshot_that_cannot_be_written_changes_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "ROUNDS_APART", 1)

    def refuse(writer: Writer, slot: str, content: bytes) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(Writer, "put_snapshot", refuse)
    program = make(desk)
    program.decide({"a": 0, "b": 1})
    assert kept(program) is None
    assert len(desk.program("one").rounds) == 1


@pytest.mark.parametrize(
    "content", [b"", b"nonsense", pack_snapshot({"length": 3}, {}), pack_snapshot({}, {"a": np.arange(2)})]
)
def test_a_snapshot_that_cannot_be_read_is_ignored(desk: Desk, content: bytes) -> None:
    program = make(desk)
    record(program, write(rounds=2))
    with program.store.writing(program.id) as writer:
        writer.put_snapshot(cache.SLOT, content)
    again = desk.program("one")
    assert know(again) == know(program)
    assert replay(again).proven


def test_a_snapshot_of_another_version_of_the_policy_is_ignored(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    program = make(desk)
    record(program, write(rounds=2))
    program.cache.save(now=True)
    monkeypatch.setattr(Egt, "version", 99)
    reading = Reading(monkeypatch)
    again = desk.program("one")
    assert know(again) == know(program)
    assert reading.firsts == [0]


def test_a_correction_drops_the_snapshots_that_knew_the_wrong_record(desk: Desk) -> None:
    program, story, covered = make(desk, policy="lagrange"), write(rounds=3), []
    for number, (states, rows) in enumerate(story, 1):
        program.cache.save(now=True)
        covered.append(program.store.length(program.id))
        program.decide(states)
        program.learn(rows, round=number)
    program.cache.save(now=True)
    corrected = story[1].rows[0] | {"next_state": 1 - story[1].rows[0]["next_state"]}
    program.learn([corrected], round=2, correct=True)
    assert kept(program) == covered[1]
    before = know(program)
    assert know(desk.program("one")) == before
    program.cache.save(now=True)
    assert kept(program) == program.store.length(program.id)
    assert know(desk.program("one")) == before
    assert replay(program).proven


def test_what_another_process_did_is_seen(desk: Desk) -> None:
    one, story = make(desk, policy="lagrange"), write(rounds=3)
    two = desk.program("one")
    for number, (states, rows) in enumerate(story, 1):
        one.decide(states)
        assert two.get_round(number).missing == len(states)
        two.learn(rows, round=number)
        assert one.get_round(number).missing == len(states) - len(rows)
        flipped = rows[0] | {"done": not rows[0]["done"]}
        one.learn([flipped], round=number, correct=True)
        assert two.get_round(number).done[int(rows[0]["agent"][1:])] == flipped["done"]
        assert know(one) == know(two)
    assert digest(one.projection) == digest(two.projection) == digest(desk.program("one").projection)


def test_a_name_that_another_process_erased_is_known_no_more(desk: Desk) -> None:
    one = make(desk)
    one.decide({"a": 0, "b": 1, "c": 0})
    two = desk.program("one")
    two.erase(["a"])
    one.decide({"a": 0, "b": 1, "c": 0})
    assert one.get_round(2).number.tolist() == [1, 2, 3]
    assert one.names.call([0, 3]) == ["(erased)", "a"]


def test_no_more_events_are_folded_than_were_asked_for(desk: Desk) -> None:
    program, other = make(desk), desk.program("one")
    program.decide({"a": 0, "b": 1})
    assert other.projection.length == 3
    program.learn([{"agent": "a", "next_state": 1}])
    program.learn([{"agent": "b", "next_state": 1}])
    heads = [Head(program.id, event.number + 1, event.digest) for event in program.log()]
    assert other.cache.projection(heads[3]).length == 4
    assert desk.program("one").cache.projection(heads[1]).length == 2
    assert other.projection.length == 5


def test_what_failed_is_forgotten_here_too(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    program = make(desk)
    program.decide({"a": 0, "b": 1})
    before = know(program)
    plain = Store.writing

    def fail(store: Store, program_id: int, context: RequestContext, verb: str) -> AbstractContextManager[Writer]:
        found = plain(store, program_id, context, verb)
        monkeypatch.setattr(Writer, "finish", refuse)
        return found

    def refuse(writer: Writer) -> None:
        raise StoreError("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(Store, "writing", fail)
        with pytest.raises(StoreError, match="the disk is full"):
            program.decide({"a": 1, "b": 1, "c": 0})
    monkeypatch.undo()
    assert know(program) == before
    assert program.decide({"a": 1, "b": 1, "c": 0}).round == 2
    assert replay(program).proven


def test_a_dry_run_leaves_no_trace(desk: Desk) -> None:
    program, story = make(desk, policy="lagrange"), write(rounds=3)
    record(program, story[:2])
    before, length = know(program), program.store.length(program.id)
    first = program.decide(story[2].states, dry_run=True)
    program.learn([story[0].rows[0] | {"done": not story[0].rows[0]["done"]}], round=1, correct=True, dry_run=True)
    program.correct_states({"a00": 1 - story[0].states["a00"]}, round=1, dry_run=True)
    assert (program.store.length(program.id), know(program)) == (length, before)
    assert program.decide(story[2].states).table.equals(first.table)
