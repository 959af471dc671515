"""A round and the history of one person, as their events add them up."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from desk.stories import make, record, write
from restive.api.types import HistoryEntry
from restive.desk import Desk, Program
from restive.desk.events import (
    Cancelled,
    Change,
    Corrected,
    Decided,
    DecisionInput,
    Event,
    Outcomes,
    Reported,
    States,
)
from restive.desk.rounds import UNKNOWN, Round, gather
from restive.errors import InputError


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with Desk(tmp_path / "desk.db") as desk:
        yield desk


def as_event(change: Change, number: int = 3) -> Event:
    return Event(number, change.kind, 4, "now", *change.record(), "")


def decided() -> Event:
    states = States(
        np.array([2, 5, 9]), np.array([0, 1, 1]), np.array([False, True, False]), np.array([True, False, False])
    )
    choice = {"chosen": np.array([True, False, False])}
    return as_event(Decided(DecisionInput(states, 1), {"policy": "egt"}, choice, {"agent": np.array([2])}))


def corrected_states() -> Event:
    return as_event(Corrected(States(np.array([5]), np.array([0]), np.array([False]), np.array([True]))))


def outcomes(number: list[int], done: list[int], reward: list[float], after: list[int]) -> Outcomes:
    given = np.array(number), np.array(done, bool), np.array(reward, float), np.array(after)
    return Outcomes(*given, given[1], given[1], np.zeros(len(number), bool))


def test_a_round_that_was_just_decided_knows_no_outcomes() -> None:
    (found,) = gather([decided()])
    assert (found.round, found.at, found.given.budget, found.decided.about) == (4, "now", 1, {"policy": "egt"})
    assert (found.number.tolist(), found.state.tolist()) == ([2, 5, 9], [0, 1, 1])
    assert found.carried_over.tolist() == [False, True, False]
    assert found.reported.tolist() == [True, False, False]
    assert found.done.tolist() == found.after.tolist() == found.reported_at.tolist() == [UNKNOWN] * 3
    assert np.isnan(found.reward).all()
    assert (found.chosen.tolist(), found.listed["agent"].tolist()) == ([True, False, False], [2])
    assert (found.missing, found.cancelled, found.corrected.tolist()) == (3, False, [False] * 3)


def test_events_add_up_in_their_order() -> None:
    (found,) = gather(
        [
            decided(),
            as_event(Reported(outcomes([5, 9], [0, 1], [np.nan, 2.5], [-1, 1]))),
            as_event(Reported(outcomes([5], [0], [0.5], [0])), 6),
            as_event(Corrected(outcomes([9], [0], [1.5], [0])), 7),
            corrected_states(),
            as_event(Cancelled()),
        ]
    )
    assert found.done.tolist() == [-1, 0, 0]
    assert found.after.tolist() == [-1, 0, 0]
    assert found.reward[1:].tolist() == [0.5, 1.5]
    assert (found.state.tolist(), found.carried_over.tolist()) == ([0, 0, 1], [False, False, False])
    assert found.reported.tolist() == [True, True, False]
    assert found.reported_at.tolist() == [-1, 6, 3]  # a correction does not report a next state for the first time
    assert found.corrected.tolist() == [False, True, True]
    assert (found.missing, found.cancelled) == (1, True)


def test_an_event_that_is_corrected_stays_as_it_was() -> None:
    first = decided()
    (found,) = gather([first, corrected_states()])
    assert (found.carried_over.tolist(), found.reported.tolist()) == ([False] * 3, [True, True, False])
    assert (first.columns["carried_over"].tolist(), first.columns["reported"].tolist()) == (
        [False, True, False], [True, False, False],
    )  # fmt: skip
    assert first.columns["state"].tolist() == found.given.states.state.tolist() == [0, 1, 1]


def test_a_correction_of_what_was_done_leaves_the_outcome() -> None:
    (found,) = gather([decided(), as_event(Reported(outcomes([2], [1], [1.0], [1])))])
    found.apply(as_event(Corrected(outcomes([2], [0], [np.nan], [-1]))))
    assert (found.done[0], found.reward[0], found.after[0]) == (0, 1.0, 1)


def test_agents_are_found_by_number_or_not_at_all() -> None:
    (found,) = gather([decided()])
    places, there = found.find(np.array([9, 1, 2, 7, 99, -1]))
    assert there.tolist() == [True, False, True, False, False, False]
    assert places[there].tolist() == [2, 0]
    none = np.zeros(0, np.int64)
    nobody = States(none, none, none > 0, none > 0)
    empty = Round.start(as_event(Decided(DecisionInput(nobody, 1), {}, {"chosen": none > 0}, {})))
    assert not empty.find(np.array([0, 3]))[1].any()


def test_a_round_at_hand_is_what_the_log_gathers(desk: Desk) -> None:
    program, story = make(desk), write(rounds=3)
    record(program, story)
    program.learn([story[2].rows[0] | {"done": not story[2].rows[0]["done"]}], round=3, correct=True)
    program.correct_states({"a01": 1 - story[2].states["a01"]}, round=3)
    mine, (theirs,) = program.get_round(3), gather(program.store.events(program.id, round=3))
    assert mine is program.get_round(3)
    for name in ("number", "state", "carried_over", "reported", "done", "reward", "after", "reported_at", "chosen"):
        np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name), name)
    assert (mine.decided.about, mine.at) == (theirs.decided.about, theirs.at)
    for number in (1, 2, 3):
        assert program.get_round(number).round == number


@pytest.fixture
def program(address: str) -> Iterator[Program]:
    with Desk(address, clock=lambda: datetime(2026, 3, 2, tzinfo=UTC)) as desk:
        yield desk.create(
            "one", states=["low", "high"], rewards=[0, 5], budget=1, control=0.0, seed=1, cool_down=2, policy="egt",
            states_are_outcomes=False, timezone="UTC",
        )  # fmt: skip


def without_time(rows: list[HistoryEntry]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "at"} for row in rows]


def test_a_history_has_a_row_for_each_round_with_corrections_in_their_places(program: Program) -> None:
    program.decide({"ann": "low", "ben": "low"}, must=["ann"])
    program.learn([{"agent": "ann", "next_state": "high"}, {"agent": "ben", "next_state": "low"}])
    program.decide({"ann": "high", "ben": "low"})
    program.learn([{"agent": "ann", "done": "yes"}], round=2)  # done, though it was not on the list
    named = {"label": "2 Mar 2026", "due": "2026-03-02"}
    first = {
        **named,
        "round": 1,
        "state": "low",
        "chosen": True,
        "probability": 1.0,
        "done": True,
        "note": "must list, as planned",
    }
    second = {
        **named,
        "round": 2,
        "state": "high",
        "chosen": False,
        "probability": 0.0,
        "done": True,
        "note": "cooling down",
    }
    assert without_time(program.history("ann")) == [first | {"reward": 5.0, "next_state": "high"}, second]
    program.learn([{"agent": "ann", "done": "no", "next_state": "low"}], round=1, correct=True)
    program.correct_states({"ann": "low"}, 2)
    first |= {"done": False, "reward": 0.0, "next_state": "low", "note": "must list, corrected"}
    assert without_time(program.history("ann")) == [
        first, second | {"state": "low", "note": "cooling down, corrected"},
    ]  # fmt: skip


def test_rounds_without_the_person_are_not_in_its_history(program: Program) -> None:
    program.decide({"ann": "low", "ben": "low"})
    program.leave(["ann"])
    program.decide({"ben": "low", "cem": "low"})
    assert [row["round"] for row in program.history("ann")] == [1]
    assert [row["round"] for row in program.history("ben")] == [1, 2]
    assert [row["round"] for row in program.history("cem")] == [2]
    assert "done" not in program.history("cem")[0]


def test_one_who_joined_without_a_state_has_an_empty_history(program: Program) -> None:
    program.decide({"ann": "low", "ben": None})
    assert program.history("ben") == []


def test_somebody_unknown_or_erased_has_no_history(program: Program) -> None:
    program.decide({"ann": "low", "ben": "low"})
    program.erase(["ann"])
    for name in ("ann", "zoe", "(erased)", ""):
        with pytest.raises(
            InputError, match=f"{name}' is not in the program one".replace("(", r"\(").replace(")", r"\)")
        ):
            program.history(name)


def test_a_round_that_was_cancelled_is_called_so(tmp_path: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        program = desk.create("one", states=["low", "high"], rewards=[0, 1], control=0.0, budget=1, seed=1)
        program.decide({"ann": "low", "ben": "low"}, never=["ben"])
        program.cancel(1)
        program.decide({"ann": "low", "ben": "low"})
        notes = {name: [row["note"] for row in program.history(name)] for name in ("ann", "ben")}
    assert notes == {"ann": ["cancelled", ""], "ben": ["never list, cancelled", ""]}
