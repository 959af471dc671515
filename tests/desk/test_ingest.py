"""Ingestion: who takes part, what is new, what is wrong, and that nothing of an invalid table is recorded."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from desk.stories import call, make, refuse
from restive.desk import Desk
from restive.desk.config import Words
from restive.desk.events import States
from restive.desk.ingest import (
    AlreadyDecided,
    check_similar_ids,
    describe_round,
    find_present,
    name_people,
    number_states,
)
from restive.desk.table_columns import TableError
from restive.errors import Hint, InputError


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with Desk(tmp_path / "desk.db") as desk:
        yield desk


def table(*rows: tuple[str, int | None, str | None]) -> pl.DataFrame:
    schema = {"agent": pl.String, "state": pl.Int16, "group": pl.String}
    return pl.DataFrame(list(rows), schema=schema, orient="row")


def test_newcomers_are_numbered_on_in_the_order_of_their_rows(desk: Desk) -> None:
    program = make(desk)
    program.decide({"b": (0, "north"), "a": (1, None)})
    rows = table(("d", 1, "south"), ("a", None, "north"), ("c", None, None), ("b", 0, "north"))
    found = number_states(rows, program.names, program.projection)
    assert found.new.to_list() == ["d", "c"]
    assert (found.new_group.tolist(), found.groups) == ([1, -1], ["south"])
    assert found.number.tolist() == [2, 1, 3, 0]
    assert found.state.tolist() == [1, -1, -1, 0]
    assert (found.moved.tolist(), found.moved_to.tolist()) == ([1], [0])


def test_those_who_move_are_in_the_order_of_their_numbers(desk: Desk) -> None:
    program = make(desk)
    program.decide(dict.fromkeys(call(4), (0, "north")))
    found = number_states(
        table(("a03", 0, "east"), ("a00", 0, "west"), ("a01", 0, "north")), program.names, program.projection
    )
    assert (found.moved.tolist(), found.moved_to.tolist(), found.groups) == ([0, 3], [2, 1], ["east", "west"])


def test_more_groups_than_can_be_reported_apart_are_refused(desk: Desk) -> None:
    program = make(desk, policy="random")
    program.decide({"a": 0})
    many = pl.DataFrame(
        {"agent": [f"x{n}" for n in range(32_769)], "state": 0, "group": [f"g{n}" for n in range(32_769)]}
    )
    refuse(program, "There would be 32769 groups; a program has at most 32768", "decide", many)
    program.decide(many[:-1])
    assert program.projection.agents.group[[1, 32_768]].tolist() == [0, 32_767]


@pytest.mark.parametrize("keep", [0, 1, 2])
def test_a_state_that_a_table_reported_is_kept_for_so_many_rounds(desk: Desk, keep: int) -> None:
    program = make(desk, policy="random", keep=keep)
    there = []
    program.decide({"a": 1, "b": 1})
    for round_ in range(2, 6):
        program.decide({"b": round_ % 2})
        found = program.get_round(round_)
        there.append(0 in found.number)
        assert found.carried_over.tolist() == [True] * there[-1] + [False]
        assert found.state.tolist() == [1] * there[-1] + [round_ % 2]
    assert there == [round_ - 1 <= keep for round_ in range(2, 6)]


def test_a_next_state_is_fresh_in_the_next_round_and_kept_from_there(desk: Desk) -> None:
    program = make(desk, policy="random", keep=1)
    program.decide({"a": 0, "b": 0})
    program.learn([{"agent": "a", "next_state": 1}])
    found = []
    for round_ in range(2, 5):
        program.decide({"b": round_ % 2})
        one = program.get_round(round_)
        found.append((one.number.tolist(), one.state.tolist(), one.carried_over.tolist()))
    assert found == [([0, 1], [1, 0], [False, False]), ([0, 1], [1, 1], [True, False]), ([1], [0], [False])]


def test_a_state_is_reported_only_where_a_table_of_the_round_says_it(desk: Desk) -> None:
    program = make(desk, policy="random", keep=2)
    program.decide({"a": 0, "b": 0, "c": 0})
    program.learn([{"agent": "a", "next_state": 1}])
    program.decide({"b": 0, "c": None, "d": 1})
    found = program.get_round(2)
    assert found.number.tolist() == [0, 1, 2, 3]
    assert found.reported.tolist() == [False, True, False, True]
    assert found.carried_over.tolist() == [False, False, True, False]
    program.decide()
    assert not program.get_round(3).reported.any()
    reported = [event.columns["reported"].tolist() for event in program.log() if event.kind == "decided"]
    assert reported == [[True] * 3, [False, True, False, True], [False] * 4]


def test_a_late_next_state_does_not_replace_a_newer_one(desk: Desk) -> None:
    program = make(desk, policy="random")
    program.decide({"a": 0, "b": 0})
    program.decide({"a": 0, "b": 1})
    program.learn([{"agent": "a", "next_state": 1}, {"agent": "b", "next_state": 0}], round=1)
    assert find_present(program.projection, None, 3).state.tolist() == [0, 1]
    program.learn([{"agent": "b", "next_state": 0}], round=2)
    found = find_present(program.projection, None, 3)
    assert (found.state.tolist(), found.carried_over.tolist()) == ([0, 0], [True, False])


def test_a_round_needs_somebody_with_a_state(desk: Desk) -> None:
    program = make(desk)
    refuse(program, "Nobody has a state in this round", "decide")
    refuse(program, "Nobody has a state in this round", "decide", {"a": None})


LISTS: list[tuple[dict[str, Any], str]] = [
    ({"must": ["a00"], "never": ["a00", "a01"]}, "a00: on the must list and on the never list"),
    ({"must": ["gone"]}, "gone: on the must list, but without a state in this round"),
    ({"must": ["a00", "a01", "a02"]}, "3 people are on the must list, but the budget is 2"),
    ({"must": ["nobody"]}, "nobody: on the must list, but not in the program"),
    ({"must": call(7), "never": call(7)}, "a00, a01, a02, a03, a04 and 2 more: on the must list and"),
]


@pytest.mark.parametrize(("lists", "sentence"), LISTS)
def test_lists_that_cannot_be_kept_are_refused(desk: Desk, lists: dict[str, Any], sentence: str) -> None:
    program = make(desk, keep=0)
    program.decide({"gone": 0})
    refuse(program, sentence, "decide", dict.fromkeys(call(7), 0), **lists)


def test_nobody_of_the_control_group_can_be_on_the_must_list(desk: Desk) -> None:
    program = make(desk, control=0.5)
    program.decide(dict.fromkeys(call(12), 0))
    names = program.names.call(np.flatnonzero(program.projection.agents.control))
    sentence = f"{names[0]}: on the must list, but in the control group, which is never treated"
    refuse(program, sentence, "decide", dict.fromkeys(call(12), 1), must=names[:1])


def test_the_never_list_may_name_unknown_people_and_the_same_person_twice(desk: Desk) -> None:
    program = make(desk)
    recommendation = program.decide(dict.fromkeys(call(4), 0), never=["a00", "a00", "x", "y"])
    assert "on the never list, but not in the program: 2 people (x, y)" in " ".join(recommendation.notes)
    assert "a00" not in recommendation.chosen
    assert program.decide(dict.fromkeys(call(4), 1), must=("a03", "a03")).chosen.count("a03") == 1


SHOPS = Words(person="shop", people="shops")


def test_nobody_gives_no_note_and_many_are_not_all_named() -> None:
    assert name_people("gone", [], SHOPS) == []
    (one,), (many,) = name_people("gone", ["ann"], SHOPS), name_people("gone", [f"n{n}" for n in range(5000)], SHOPS)
    assert one == "gone: 1 shop (ann)"
    assert many.startswith("gone: 5,000 shops (n0, n1, ")
    assert many.endswith(" more)")
    assert len(many) < 200


def test_new_ids_like_known_ones_are_counted_and_some_are_shown() -> None:
    check_similar_ids({})
    with pytest.raises(InputError) as reported:
        check_similar_ids({str(n): f"0{n}" for n in range(1, 1501)})
    assert "1,500" in str(reported.value)
    assert "(1 for 01, 2 for 02, 3 for 03, 4 for 04, 5 for 05)" in str(reported.value)
    assert "Nothing was recorded" in str(reported.value)
    assert reported.value.hint == Hint.NEW


def test_the_notes_of_a_round(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"states": ["low", "high"], "rewards": [0, 1], "control": 0.0, "seed": 1, "horizon": 1}
    with Desk(tmp_path / "desk.db", clock=lambda: datetime(2026, 3, 2, tzinfo=UTC)) as desk:
        program = desk.create("one", **settings, shares={"west": 0.5}, timezone="UTC")
        program.decide({"ann": ("low", "north"), "ben": ("low", None), "cem": ("low", None), "dee": ("low", None)})
        program.leave(["dee"])
        there = States(np.array([0]), np.array([1]), np.array([True]), np.array([False]))
        notes = describe_round(program.projection, there, program.names)
    assert notes == [
        "state carried over from an earlier round: 1 person",
        "left out, without a state in this round: 2 people (ben, cem)",
        "nobody is in the group west, which has a share",
        "round 2 is beyond the horizon of 1 rounds",
        "round 1 (2 Mar 2026) has no outcomes yet",
    ]


def test_groups_that_appear_after_the_first_ones_are_noted(tmp_path: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        program = desk.create("one", states=["low", "high"], control=0.0)
        program.decide({"ann": "low"})
        first = program.decide({"ann": ("low", "north")}, dry_run=True).notes
        program.decide({"ann": ("low", "north")})
        later = program.decide({"ann": ("low", "south"), "ben": ("low", "east")}).notes
    assert not any(note.startswith("new group") for note in first)  # the first groups need no note
    assert [note for note in later if note.startswith("new group")] == ["new group: south", "new group: east"]


@pytest.mark.parametrize("copied", ["ann\u200b", "\ufeffann", "an\u00adn", "\u202eann", "a\u200dnn", "ann\u2060"])
def test_an_invisible_character_does_not_make_a_second_person(desk: Desk, copied: str) -> None:
    program = desk.create("calls", states=["low", "high"], rewards=[0, 1], budget=1, control=0)
    program.decide({"ann": "low", "zo\u00eb": "high"})
    second = program.decide({copied: "high", "zoe\u0308": "high"}, again=True, must=[copied])
    assert "ids with invisible or decomposed characters, read without them: 2" in second.notes
    assert program.projection.agents.count == 2
    assert second.chosen == ["ann"]
    assert len(program.history(copied)) == 2
    counts = program.learn([{"agent": copied, "next_state": "low"}], round=2)
    assert counts.new == 1
    assert "ids with invisible or decomposed characters, read without them: 1" in counts.notes
    with pytest.raises(TableError, match="'ann' appears twice, also in row 1"):
        program.decide([{"agent": "ann", "state": "low"}, {"agent": copied, "state": "high"}])
    assert program.leave([copied]) == 1


def test_states_and_groups_are_normalized_like_ids(desk: Desk) -> None:
    program = desk.create("calls", states=["mu\u0308de", "wach\u200b"], budget=1, control=0, shares={"su\u0308d": 0.5})
    assert program.config.states == ("m\u00fcde", "wach")
    assert program.config.shares == {"s\u00fcd": 0.5}
    rows = [{"agent": "ann", "state": "m\u00fcde", "group": "s\u00fcd\u200b"}, {"agent": "ben", "state": "wa\u00adch"}]
    program.decide(rows)
    assert program.projection.groups == ["s\u00fcd"]
    for wrong in (["low", "x" * 201], ["low", "high\x1b[31m"], ["low", "\u200b"], ["low", "lo\u200bw"], ["low", 1]):
        with pytest.raises(InputError, match="different names, the worst first, each of 1 to 200 characters"):
            desk.create("other", states=wrong)


def test_the_table_of_last_week_is_recognised_although_calls_were_marked(desk: Desk) -> None:
    program = desk.create("weekly", states=["low", "high"], rewards=[0, 1], budget=3, control=0)
    states = {f"p{n}": ("low", "high")[n % 2] for n in range(30)}
    marked = program.decide(states).chosen[0]
    program.learn([{"agent": marked, "done": "yes", "next_state": "high"}])
    with pytest.raises(AlreadyDecided, match="All 30 states are those of round 1"):
        program.decide(states)
    assert len(program.rounds) == 1
    program.decide(states, again=True)
    program.decide(states | {"p0": "high"})
    few = desk.create("few", states=["low", "high"], rewards=[0, 1], budget=3, control=0)
    for _ in range(2):
        few.decide(dict(list(states.items())[:10]), again=False)
        few.learn([{"agent": "p1", "done": "no", "next_state": "high"}])
