"""Outcomes: tables of them against the record, and those that follow from the states of the next round."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from desk.stories import call, know, make, refuse
from restive.desk import AlreadyDecided, Desk
from restive.desk.audit import Repeated, RequestContext
from restive.desk.config import find_template
from restive.desk.demo import Population
from restive.desk.outcomes import read_outcome_table, sort_outcomes, split_rounds
from restive.desk.program import Program
from restive.desk.replay import digest, replay
from restive.desk.status import get_status
from restive.desk.table_columns import TableError
from restive.errors import Hint, InputError


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with Desk(tmp_path / "desk.db") as desk:
        yield desk


def outcomes(*rows: dict[str, Any]) -> pl.DataFrame:
    schema = {"agent": pl.String, "done": pl.Boolean, "reward": pl.Float64, "after": pl.Int16, "round": pl.Int64}
    made = pl.DataFrame([{name: row.get(name) for name in schema} for row in rows], schema=schema)
    return made.with_row_index("row", offset=2).with_columns(pl.col("row").cast(pl.Int64))


def play(program: Program, rounds: int) -> None:
    for number in range(rounds):
        program.decide({name: (number + n) % 2 for n, name in enumerate(call(3))})


def test_rows_go_to_the_round_that_they_name_or_else_to_the_usual_one(desk: Desk) -> None:
    program = make(desk)
    play(program, 3)
    program.learn([{"agent": "a00", "next_state": 0, "round": number} for number in (1, 2)])
    rows = outcomes({"agent": "a00", "round": 2}, {"agent": "a01"}, {"agent": "a02", "round": 1})
    found = split_rounds(rows, "file", program.cache, program.projection, None)
    assert {number: part["agent"].to_list() for number, part in found.items()} == {1: ["a01", "a02"], 2: ["a00"]}
    given = outcomes({"agent": "a00"}, {"agent": "a01", "round": 2})
    named = split_rounds(given, "file", program.cache, program.projection, 2)
    assert {number: part["agent"].to_list() for number, part in named.items()} == {2: ["a00", "a01"]}


def test_a_table_without_rounds_goes_to_the_oldest_round_that_waits_for_its_people(desk: Desk) -> None:
    program = make(desk)
    play(program, 3)
    rows = [{"agent": "a00", "next_state": 0}]
    assert [program.learn(rows).rounds for _ in range(3)] == [[1], [2], [3]]
    assert program.learn(rows).repeated == 1  # of the last round


def test_rounds_that_there_are_not_are_named_by_row(desk: Desk) -> None:
    program = make(desk)
    refuse(program, "no round is decided yet, so there are no outcomes", "learn", [{"agent": "a", "done": True}])
    play(program, 2)
    rows: list[dict[str, Any]] = [
        {"agent": "a00", "done": True, "round": 1},
        {"agent": "a01", "done": True, "round": 3},
        {"agent": "a02", "done": True, "round": 9},
    ]
    reported = refuse(program, "row 2, column round: 3: rounds go from 1 to 2", "learn", rows)
    assert "row 3, column round: 9" in reported
    refuse(program, "row 1, column round: 1: it must be 2", "learn", rows[:1], round=2)
    refuse(program, "round is 3; it must be a whole number from 1 to 2", "learn", rows[:1], round=3)


def test_the_same_person_twice_in_a_round_is_refused_however_it_is_said(desk: Desk) -> None:
    program = make(desk)
    play(program, 1)
    rows = [{"agent": "a00", "next_state": 1, "round": None}, {"agent": "a00", "next_state": 0, "round": 1}]
    refuse(program, "row 2, column agent: 'a00' appears twice for round 1; keep one", "learn", rows)
    refuse(program, "appears twice", "learn", [{"agent": "a00", "next_state": state} for state in (0, 1)])
    counts = program.learn([{"agent": "a00", "next_state": 1}] * 2, dry_run=True)
    assert (counts.new, counts.notes) == (1, ["rows that repeat another one, merged with it: 1"])


def test_unknown_people_and_people_who_took_no_part_are_all_named_at_once(desk: Desk) -> None:
    program = make(desk, keep=0)
    program.decide({"a": 0, "b": 0})
    program.decide({"b": 1})
    rows = [{"agent": name, "next_state": 0} for name in ("a", "x", "y")]
    reported = refuse(program, "'a' took no part in round 2", "learn", rows, round=2)
    assert "'x' is not in the program" in reported
    assert "'y' is not in the program" in reported
    reported = refuse(program, "'x' is not in the program", "learn", [{"agent": "b", "next_state": 0}, *rows], round=2)
    assert "'y' is not in the program" in reported
    assert "'a'" not in reported  # who would be ignored is no fault


def test_people_who_took_no_part_are_ignored_with_a_note_and_the_others_are_recorded(desk: Desk) -> None:
    program = make(desk, keep=0)
    program.decide({"a": 0, "b": 0, "c": 0})
    program.decide({"b": 1, "c": 1})
    rows = [{"agent": name, "done": name == "c", "next_state": n % 2} for n, name in enumerate("abc")]
    taken = program.learn(rows, round=2)
    assert (taken.new, taken.waiting) == (2, 0)
    assert taken.notes == ["ignored, not in the round: 1 person (a)"]
    found = program.get_round(2)
    assert (found.number.tolist(), found.done.tolist(), found.after.tolist()) == ([1, 2], [0, 1], [1, 0])
    assert program.learn(rows, round=2).repeated == 2
    refuse(program, "row 1, column agent: 'a' took no part in round 2", "learn", rows[:1], round=2)
    both = [{"agent": "a", "next_state": 1, "round": 1}, {"agent": "a", "next_state": 1, "round": 2}]
    refuse(program, "row 2, column agent: 'a' took no part in round 2", "learn", both)  # nobody of round 2 is left


def test_unknown_ids_that_look_like_known_ones_come_with_a_guess(desk: Desk) -> None:
    program = make(desk)
    program.decide({"007": 0, "Ann": 0, "ben": 1})
    rows = [{"agent": name, "next_state": 0} for name in ("7", "ANN", "zoe", "ben")]
    reported = refuse(
        program, r"row 1, column agent: '7' is not in the program \(did you mean '007'\?\)", "learn", rows
    )
    assert "'ANN' is not in the program (did you mean 'Ann'?)" in reported
    assert "'zoe' is not in the program" in reported
    assert reported.count("did you mean") == 2
    rows[3]["next_state"] = 9
    reported = refuse(
        program, r"'7' is not in the program \(did you mean '007'\?\)", "learn", rows
    )  # also with bad cells
    assert reported.count("did you mean") == 2


def test_unknown_people_are_reported_with_the_faults_of_cells_and_each_row_once(desk: Desk) -> None:
    program = make(desk)
    play(program, 1)
    frame = pl.DataFrame(
        {"Id": ["a00", " x ", "y", "", None, "a01", "a01", "y"], "next_state": ["0", "?", "1", "1", "1", "1", "0", "1"]}
    )
    with pytest.raises(TableError) as reported:
        read_outcome_table(frame, program.config, program.names)
    found = [(fault.row, fault.column) for fault in reported.value.faults]
    assert sorted(found) == [
        (2, "Id"), (2, "next_state"), (3, "Id"), (4, "Id"), (5, "Id"), (7, "Id"), (8, "Id"),
    ]  # fmt: skip
    assert reported.value.total == len(found)
    assert "'x' is not in the program" in str(reported.value)


def test_faults_of_a_table_without_people_are_reported_alone(desk: Desk) -> None:
    program = make(desk)
    play(program, 1)
    reported = refuse(program, "there is no column 'agent'", "learn", [{"who": "x", "next_state": "?"}])
    assert "not in the program" not in reported


def test_reported_rewards_need_a_next_state_and_a_sensible_size(desk: Desk) -> None:
    program = make(desk, rewards=None)
    play(program, 1)
    refuse(program, "row 1, column reward: a reward without a next state", "learn", [{"agent": "a00", "reward": 3.0}])
    for reward in (1e101, -1e200):
        rows = [{"agent": "a00", "next_state": 1, "reward": reward}]
        refuse(program, "row 1, column reward: .* is out of range; rewards go from -1e100 to 1e100", "learn", rows)
    program.learn([{"agent": "a00", "next_state": 1, "reward": -1e100}])
    program.cache.save(now=True)
    assert know(desk.program("one")) == know(program)


def sort(program: Program, *rows: dict[str, Any], correct: bool = False) -> Any:
    table, rewards = outcomes(*rows), program.config.rewards
    if rewards is not None:  # as in a validated table
        table = table.with_columns(reward=pl.Series(rewards, dtype=pl.Float64).gather(table["after"]))
    return sort_outcomes(table, "file", program.names, program.get_round(1), program.projection, correct)


def as_rows(reports: Any) -> list[tuple[int, bool, float, int, bool, bool, bool]]:
    columns = [column.tolist() for column in reports]
    return [tuple(row) for row in zip(*columns, strict=True)]


@pytest.fixture
def decided(desk: Desk) -> Program:
    """Four people, the first two advised; known of a00: all; of a01: not done; of a02: all; of a03: nothing."""
    program = make(desk, rewards=[0, 5])
    program.decide(dict.fromkeys(call(4), 0), must=call(2))
    program.learn(
        [
            {"agent": "a00", "done": True, "next_state": 1},
            {"agent": "a01", "done": False},
            {"agent": "a02", "done": True, "next_state": 0},
        ]
    )
    return program


def test_what_was_done_is_as_said_else_as_known_else_as_advised(decided: Program) -> None:
    assert decided.get_round(1).done.tolist() == [1, 0, 1, -1]
    found = sort(decided, {"agent": "a03", "after": 1}, {"agent": "a01", "after": 1})
    assert as_rows(found.new) == [(1, False, 5.0, 1, True, True, False), (3, False, 5.0, 1, False, False, True)]
    assert (found.corrected.number.size, found.repeated) == (0, 0)


def test_what_is_known_already_is_a_repetition(decided: Program) -> None:
    rows = ({"agent": "a00", "after": 1}, {"agent": "a00", "done": True}, {"agent": "a01", "done": False})
    for row in (*rows, {"agent": "a02", "done": True, "after": 0}):
        found = sort(decided, row)
        assert (found.new.number.size, found.corrected.number.size, found.repeated) == (0, 0, 1), row
    nothing = sort(decided, {"agent": "a03"})
    assert (nothing.new.number.size, nothing.corrected.number.size, nothing.repeated) == (0, 0, 0)


CLASHES: list[dict[str, Any]] = [
    {"agent": "a00", "after": 0},
    {"agent": "a00", "done": False},
    {"agent": "a01", "done": True},
    {"agent": "a01", "done": True, "after": 1},
    {"agent": "a02", "done": False, "after": 1},
]


@pytest.mark.parametrize("row", CLASHES)
def test_what_is_on_record_otherwise_is_refused_unless_it_is_a_correction(
    decided: Program, row: dict[str, Any]
) -> None:
    sentence = f"row 3, column agent: '{row['agent']}' already has another outcome in round 1"
    with pytest.raises(TableError, match=sentence) as refused:
        sort(decided, {"agent": "a03", "after": 1}, row)
    assert refused.value.hint == Hint.CORRECT
    found = sort(decided, {"agent": "a03", "after": 1}, row, correct=True)
    assert found.corrected.number.tolist() == [int(row["agent"][1:])]


def test_corrections_hold_the_whole_of_the_right_record(decided: Program) -> None:
    found = sort(decided, *CLASHES[1:2], *CLASHES[3:], correct=True)
    whole = as_rows(found.corrected)
    assert whole[0] == (0, False, 5.0, 1, True, True, False)  # the outcome as it was
    assert (whole[1][:2], whole[1][3]) == ((1, True), -1)  # no outcome was on record
    assert np.isnan(whole[1][2])
    assert whole[2] == (2, False, 5.0, 1, True, False, False)
    assert as_rows(found.new) == [(1, True, 5.0, 1, True, True, False)]  # and this one is new


def test_reported_rewards_are_part_of_the_record(desk: Desk) -> None:
    program = make(desk, rewards=None)
    program.decide({"a": 0, "b": 0})
    program.learn([{"agent": "a", "next_state": 1, "reward": 2.5}])
    row = {"agent": "a", "after": 1, "reward": 2.0}
    with pytest.raises(TableError, match="already has another outcome"):
        sort(program, row)
    assert as_rows(sort(program, row, correct=True).corrected)[0][2] == 2.0


FOUR = {"ann": "low", "ben": "high", "cem": "low", "dee": "low"}


def start(desk: Desk, name: str = "weekly", **settings: Any) -> Program:
    """A program with one table a week: states, which are also the outcomes of the week before."""
    usual: dict[str, Any] = {"states": ["low", "high"], "rewards": [0, 1], "budget": 2, "control": 0.0, "seed": 1}
    return desk.create(name, **usual | {"policy": "egt"} | settings)


def play_weeks(program: Program, weekly: bool) -> None:
    """Ten weeks of simulated people, everybody on the list acted on; outcomes come as states or in a table."""
    people = Population(find_template("pharmacy"), 60, seed=2)
    before: list[str] = []
    for _ in range(10):
        rows = people.report_states()
        if before and not weekly:
            program.learn(
                [{"agent": row["agent"], "next_state": row["state"]} for row in rows if row["agent"] in before]
            )
        recommendation = program.decide(rows)
        before = program.names.call(recommendation.found.number)
        people.advance(recommendation.chosen, failed_share=0.0)


def test_ten_weeks_of_states_alone_equal_those_with_tables_of_outcomes_bit_for_bit(tmp_path: Path) -> None:
    ends = []
    for name, weekly in (("weekly", True), ("explicit", False)):
        with Desk(tmp_path / f"{name}.db") as desk:
            desk.store.clock = lambda: datetime(2026, 3, 2, tzinfo=UTC)
            settings: dict[str, Any] = {"seed": 3, "shadow": "egt", "states_are_outcomes": weekly}
            program = desk.create("ten", template="pharmacy", **settings)
            play_weeks(program, weekly)
            status = get_status(program)
            assert replay(program).proven
            ends.append((digest(program.projection), know(program), {**status, "steps": None}))
    assert ends[0] == ends[1]
    found: Any = ends[0][2]
    assert found["lift"]["mean"] is not None
    assert found["shadow"]["rounds"] > 50
    assert found["caution"] == ""
    assert sum(row["outcomes"] for row in found["rounds"]) > 450


def test_states_are_outcomes_of_the_round_before_and_the_list_counts_as_done(desk: Desk) -> None:
    program = start(desk)
    first = program.decide(FOUR, must=["ann", "ben"])
    assert first.results is None
    second = program.decide({"ann": "high", "ben": "high", "cem": "low", "eve": "low"})
    assert second.results is not None
    assert second.results._asdict() | {"decided_at": "", "label": ""} == {
        "label": "", "round": 1, "decided_at": "", "recorded": 3, "present": 4, "as_planned": 2, "reported": 0, "unknown": 0,
    }  # fmt: skip
    found = program.get_round(1)
    assert (found.done.tolist(), found.after.tolist()) == ([1, 1, 0, -1], [1, 1, 0, -1])
    assert found.assumed.tolist() == [True, True, True, False]
    assert (program.rounds[0].done, program.rounds[0].outcomes, program.rounds[0].waiting) == (2, 3, 1)
    assert [event.kind for event in program.log()][-3:] == ["outcomes", "joined", "decided"]
    assert replay(program).proven


def test_what_was_reported_before_stays(desk: Desk) -> None:
    program = start(desk)
    program.decide(FOUR, must=["ann", "ben"])
    program.learn([{"agent": "ann", "done": False}, {"agent": "cem", "done": True, "next_state": "high"}])
    results = program.decide(FOUR).results
    assert results is not None
    assert (results.recorded, results.as_planned, results.reported, results.unknown) == (3, 1, 1, 0)
    found = program.get_round(1)
    assert (found.done.tolist(), found.after.tolist()) == ([0, 1, 1, 0], [0, 1, 1, 0])
    assert found.assumed.tolist() == [False, True, False, True]


def test_a_later_report_of_what_was_done_replaces_what_was_assumed(desk: Desk) -> None:
    program, explicit = start(desk), start(desk, "explicit")
    for each in (program, explicit):
        each.decide(FOUR, must=["ann", "ben"])
        if each is explicit:
            each.learn([{"agent": name, "done": name == "ben"} for name in FOUR])
        each.decide({**FOUR, "cem": "high"})
    late = program.learn(
        [{"agent": "ann", "done": False, "next_state": "low"}, {"agent": "ben", "done": True}], round=1
    )
    assert (late.new, late.corrected, late.repeated) == (2, 0, 0)
    assert (program.rounds[0].done, program.rounds[0].failed) == (1, 1)
    assert know(program) == know(explicit)
    with pytest.raises(TableError, match="'ann' already has another outcome") as refused:
        program.learn([{"agent": "ann", "done": True}], round=1)  # now it is known
    assert refused.value.hint == Hint.CORRECT
    assert program.learn([{"agent": "ben", "done": True, "next_state": "high"}], round=1).repeated == 1
    with pytest.raises(TableError, match="'cem' already has another outcome"):
        program.learn([{"agent": "cem", "next_state": "low"}], round=1)
    assert replay(program).proven


def test_a_check_says_what_the_states_would_complete_and_records_nothing(desk: Desk) -> None:
    program = start(desk)
    program.decide(FOUR, must=["ann", "ben"])
    before = know(program), program.store.length(program.id)
    checked = program.decide({"ann": "high", "cem": "low"}, dry_run=True)
    assert checked.remarks[0] == (
        f"also records the results of {program.rounds[0].mention} for 2 of 4 people; on its list: 1 as planned, 1 unknown"
    )
    assert (know(program), program.store.length(program.id)) == before


def test_states_are_not_outcomes_where_the_program_or_the_upload_says_so(desk: Desk) -> None:
    program = start(desk, states_are_outcomes=False)
    program.decide(FOUR)
    assert program.decide({**FOUR, "ann": "high"}).results is None
    assert program.decide(FOUR, states_are_outcomes=True).results is not None
    assert [line.outcomes for line in program.rounds] == [0, 4, 0]
    assert program.change(states_are_outcomes=True).states_are_outcomes
    assert program.decide({**FOUR, "ann": "high"}, states_are_outcomes=False).results is None
    assert [line.outcomes for line in program.rounds] == [0, 4, 0, 0]
    with pytest.raises(InputError, match="states_are_outcomes is 'no'; it must be true or false"):
        program.change(states_are_outcomes="no")


def test_reported_rewards_do_not_follow_from_states(desk: Desk) -> None:
    program = start(desk, rewards=None)
    program.decide(FOUR)
    second = program.decide({**FOUR, "ann": "high"})
    assert second.results is None
    first = program.rounds[0].mention
    why = f"the states are not recorded as outcomes of {first}, because rewards are reported with each outcome"
    assert why in second.notes
    assert program.rounds[0].outcomes == 0


def test_carried_over_states_and_cancelled_rounds_give_no_outcomes(desk: Desk) -> None:
    program = start(desk)
    program.decide(FOUR)
    assert program.decide(None, again=True).results is None
    program.cancel(2)
    results = program.decide({"ann": "high", "ben": None, "cem": "low"}).results
    assert results is not None
    assert (results.round, results.recorded) == (1, 2)  # ben and dee are carried over
    assert program.get_round(1).after.tolist() == [1, -1, 0, -1]
    assert program.rounds[1].outcomes == 0


def test_the_same_states_twice_are_refused_before_anything_is_recorded(desk: Desk) -> None:
    program = start(desk)
    program.decide(FOUR)
    before = know(program), program.store.length(program.id)
    with pytest.raises(AlreadyDecided):
        program.decide(FOUR)
    assert (know(program), program.store.length(program.id)) == before
    again = program.decide(FOUR, again=True).results
    assert again is not None
    assert again.recorded == 4


def test_a_repeated_request_records_outcomes_once(desk: Desk) -> None:
    program = start(desk)
    program.decide(FOUR)
    context = RequestContext(key="monday", asked="x")
    program.decide({**FOUR, "ann": "high"}, context=context)
    with pytest.raises(Repeated) as repeated:
        program.decide({**FOUR, "ann": "high"}, context=context)
    assert repeated.value.answer["results"]["recorded"] == 4
    shown = program.recommendation(2, results=repeated.value.answer["results"])
    assert shown.remarks[0].startswith("also records the results of round 1")
    assert program.rounds[0].outcomes == 4


def test_the_control_group_is_never_taken_as_acted_on_and_who_left_or_was_erased_has_no_outcome(desk: Desk) -> None:
    program = start(desk, control=0.4, budget=20)
    program.decide(dict.fromkeys(call(20), 0))
    program.leave(["a00"])
    program.erase(["a01"])
    program.decide(dict.fromkeys(call(20)[2:], 1))
    found, control = program.get_round(1), program.projection.agents.control
    assert not found.done[control[:20]][2:].any()
    assert found.after.tolist() == [-1, -1, *[1] * 18]
    assert program.rounds[0].waiting == 1
    assert replay(program).proven


def test_correcting_states_corrects_the_outcomes_that_were_taken_from_them(desk: Desk) -> None:
    program, right = start(desk), start(desk, "right")
    for each, typed in ((program, "low"), (right, "high")):
        each.decide(FOUR)
        each.decide({**FOUR, "ann": typed, "ben": "low"})
        each.learn([{"agent": "ben", "next_state": "high"}], round=1, correct=True)
        each.decide({**FOUR, "dee": "high"})
    assert program.correct_states({"ann": "high", "ben": "high"}, 2) == 2
    right.correct_states({"ben": "high"}, 2)
    assert program.get_round(1).after.tolist() == [1, 1, 0, 0]
    assert know(program) == know(right)
    assert replay(program).proven
