"""A round as its events add it up."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from desk.stories import make, record, write
from restive.desk import Desk
from restive.desk.rounds import UNKNOWN, Round, gather, take_in
from restive.desk.store import Event
from restive.errors import InputError


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with Desk(tmp_path / "desk.db") as desk:
        yield desk


def event(kind: str, header: dict[str, object] | None = None, **columns: list[int]) -> Event:
    return Event(3, kind, 4, "now", header or {}, {name: np.array(column) for name, column in columns.items()}, {}, "")


def opened() -> Event:
    found = event("opened", {"budget": 1}, number=[2, 5, 9], state=[0, 1, 1])
    kept = np.array([False, True, False])
    return found._replace(columns={**found.columns, "carried_over": kept, "reported": np.array([True, False, False])})


def corrected_states() -> Event:
    found = event("corrected", {"what": "states"}, number=[5], state=[0])
    return found._replace(columns={**found.columns, "carried_over": np.array([False]), "reported": np.array([True])})


def outcomes(kind: str, number: list[int], done: list[int], reward: list[float], after: list[int]) -> Event:
    found = event(kind, {"what": "outcomes"}, number=number, after=after)
    return found._replace(columns={**found.columns, "done": np.array(done, bool), "reward": np.array(reward, float)})


def test_a_round_that_was_only_opened_knows_no_outcomes() -> None:
    found = gather([opened()])
    assert (found.round, found.at, found.header, found.decided) == (4, "now", {"budget": 1}, None)
    assert (found.number.tolist(), found.state.tolist()) == ([2, 5, 9], [0, 1, 1])
    assert found.carried_over.tolist() == [False, True, False]
    assert found.reported.tolist() == [True, False, False]
    assert found.done.tolist() == found.after.tolist() == found.reported_at.tolist() == [UNKNOWN] * 3
    assert np.isnan(found.reward).all()
    assert not found.chosen.any()
    assert found.missing == 3


def test_events_add_up_in_their_order() -> None:
    decided = event("decided", {"policy": "egt"}, number=[2, 5, 9], chosen=[1, 0, 0])
    decided = decided._replace(at="later", extra={"list": {"agent": np.array([2])}})
    found = gather(
        [
            opened(),
            decided,
            outcomes("outcomes", [5, 9], [0, 1], [np.nan, 2.5], [-1, 1]),
            outcomes("outcomes", [5], [0], [0.5], [0])._replace(number=6),
            outcomes("corrected", [9], [0], [1.5], [0])._replace(number=7),
            corrected_states(),
        ]
    )
    assert (found.decided, found.decided_at, found.list["agent"].tolist()) == ({"policy": "egt"}, "later", [2])
    assert found.chosen.tolist() == [1, 0, 0]
    assert found.done.tolist() == [-1, 0, 0]
    assert found.after.tolist() == [-1, 0, 0]
    assert found.reward[1:].tolist() == [0.5, 1.5]
    assert (found.state.tolist(), found.carried_over.tolist()) == ([0, 0, 1], [False, False, False])
    assert found.reported.tolist() == [True, True, False]
    assert found.reported_at.tolist() == [-1, 6, 3]  # a correction is no news of where somebody went
    assert found.missing == 1


def test_an_event_that_is_corrected_stays_as_it_was() -> None:
    first = opened()
    found = gather([first, corrected_states()])
    assert (found.carried_over.tolist(), found.reported.tolist()) == ([False] * 3, [True, True, False])
    assert (first.columns["carried_over"].tolist(), first.columns["reported"].tolist()) == (
        [False, True, False], [True, False, False],
    )  # fmt: skip
    assert first.columns["state"].tolist() == [0, 1, 1]


def test_a_correction_of_what_was_done_leaves_the_outcome() -> None:
    found = gather([opened(), outcomes("outcomes", [2], [1], [1.0], [1])])
    take_in(found, outcomes("corrected", [2], [0], [np.nan], [-1]))
    assert (found.done[0], found.reward[0], found.after[0]) == (0, 1.0, 1)


def test_agents_are_found_by_number_or_not_at_all() -> None:
    found = gather([opened()])
    places, there = found.find(np.array([9, 1, 2, 7, 99, -1]))
    assert there.tolist() == [True, False, True, False, False, False]
    assert places[there].tolist() == [2, 0]
    none = np.zeros(0, np.int64)
    empty = Round(0, "", {}, none, none, none > 0, none > 0, none, none.astype(float), none, none)
    assert not empty.find(np.array([0, 3]))[1].any()


def test_without_an_opened_round_there_is_none() -> None:
    with pytest.raises(InputError, match="there is no such round"):
        gather([])
    with pytest.raises(InputError, match="there is no such round"):
        gather([outcomes("outcomes", [2], [1], [1.0], [1])])


def test_a_round_at_hand_is_what_the_log_gathers(desk: Desk) -> None:
    program, story = make(desk), write(rounds=3)
    record(program, story)
    program.learn([story[2].rows[0] | {"done": not story[2].rows[0]["done"]}], round=3, correct=True)
    program.correct_states({"a01": 1 - story[2].states["a01"]}, round=3)
    mine, theirs = program.get_round(3), gather(program.store.events(program.id, round=3))
    assert mine is program.get_round(3)
    for name in ("number", "state", "carried_over", "reported", "done", "reward", "after", "reported_at", "chosen"):
        np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name), name)
    assert (mine.decided, mine.header, mine.decided_at) == (theirs.decided, theirs.header, theirs.decided_at)
    for number in (1, 2, 3):
        assert program.get_round(number).round == number
