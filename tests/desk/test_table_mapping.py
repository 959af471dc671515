"""How a program reads tables: headers, texts that mean states, cut points and phone numbers, confirmed once and remembered."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from restive.api.types import CutPoints as CutPointsSetting
from restive.desk.desk import Desk
from restive.desk.program import Program
from restive.desk.replay import replay
from restive.desk.table_mapping import (
    CutPoints,
    check_cut_points,
    check_values,
    days_before,
    look_like_phones,
    parse_cut_points,
    parse_mapping,
    spell_phones,
)
from restive.errors import Hint, InputError

DAYS: CutPointsSetting = {"column": "Days since order", "at": [30, 90], "more_is": "worse"}


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with Desk(tmp_path / "desk.db") as desk:
        yield desk


def make(desk: Desk, **settings: Any) -> Program:
    return desk.create(
        "calls", states=["lost", "late", "active"], rewards=[0, 1, 2], budget=1, control=0, policy="random", **settings
    )


def rows(*cells: tuple[object, ...], headers: tuple[str, ...] = ("Customer ID", "Stage")) -> list[dict[str, object]]:
    return [dict(zip(headers, each, strict=True)) for each in cells]


def test_an_unknown_header_is_refused_with_a_suggestion_and_accepted_once_it_is_confirmed(desk: Desk) -> None:
    program, table = make(desk), rows((1, "late"), (2, "active"))
    with pytest.raises(InputError) as refused:
        program.decide(table)
    assert refused.value.hint == Hint.COLUMNS
    assert "there is no column 'agent'; did you mean 'Customer ID'?" in refused.value.message
    assert "there is no column 'state'; did you mean 'Stage'?" in refused.value.message
    program.decide(table, columns={"agent": "customer id", "state": "STAGE"})
    assert program.config.columns == {"agent": "customer id", "state": "STAGE"}
    program.decide(rows((1, "lost"), (2, "active")))
    assert [event.kind for event in program.log()].count("changed") == 1
    assert program.projection.agents.state.tolist() == [0, 2]
    assert replay(program).proven


def test_a_dry_run_remembers_nothing(desk: Desk) -> None:
    program = make(desk)
    program.decide(rows((1, "late")), columns={"agent": "customer id", "state": "stage"}, dry_run=True)
    assert program.config.columns == {}


def test_the_files_of_the_desk_stay_readable_but_another_usual_name_is_not_taken_instead(desk: Desk) -> None:
    program = make(desk, columns={"agent": "customer", "state": "stage"})
    program.decide({"ann": "late"})
    with pytest.raises(InputError, match="there is no column 'customer'"):
        program.decide(rows(("ann", "late"), headers=("id", "stage")))


def test_outcomes_use_the_mapping_too(desk: Desk) -> None:
    program = make(desk, columns={"agent": "phone", "done": "called", "state": "stage"})
    program.decide(rows((1, "late"), headers=("phone", "stage")))
    counts = program.learn(rows((1, "✓", "active"), headers=("phone", "called", "stage")))
    assert (counts.new, counts.notes) == (1, [])


def test_texts_that_mean_a_state_are_remembered_and_come_before_its_number(desk: Desk) -> None:
    program = make(desk)
    table = [{"agent": "a", "state": " AKTIV "}, {"agent": "b", "state": "1"}, {"agent": "c", "state": "lost"}]
    program.decide(table, values={"aktiv": "Active"})
    program.decide(table, values={"1": "active"})
    assert program.config.values == {"aktiv": "active", "1": "active"}
    assert program.projection.agents.state.tolist() == [2, 2, 0]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"x": "gone"}, "the states are lost, late, active"),
        ({"lost": "late"}, "a state itself"),
        ({" ": "late"}, "empty"),
    ],
)
def test_a_text_can_only_mean_a_state(values: dict[str, str], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        check_values(values, ["lost", "late", "active"])


def test_states_follow_from_cut_points_of_a_number(desk: Desk) -> None:
    program = make(desk)
    table = rows(("a", "29,5"), ("b", "30"), ("c", "400"), ("d", None), headers=("agent", "days since order"))
    decided = program.decide(table, cut_points=DAYS)
    assert program.projection.agents.state.tolist() == [2, 1, 0, -1]
    said = "states by days since order: active below 30, late 30 to below 90, lost 90 or more"
    assert said in decided.notes
    with pytest.raises(InputError, match="row 1, column days since order: 'soon' is not a finite number"):
        program.decide(rows(("a", "soon"), headers=("agent", "days since order")))


def test_cut_points_of_dates_count_the_days_before_today(desk: Desk) -> None:
    program = make(desk, cut_points={**DAYS} | {"column": "last order"})
    today = datetime.now(UTC).date()
    dates = [(today - timedelta(days)).isoformat() for days in (2, 40, 300)]
    decided = program.decide(rows(*zip("abc", dates, strict=True), headers=("agent", "last order")))
    assert program.projection.agents.state.tolist() == [2, 1, 0]
    assert any("as days before today" in note for note in decided.notes)


@pytest.mark.parametrize(
    ("texts", "days"),
    [
        (["2026-11-17", "2026-11-08 09:30"], [1, 10]),
        (["17.11.2026", "8.11.2026"], [1, 10]),
        (["17/11/2026", "08/11/2026"], [1, 10]),
        (["11/17/2026", "11/08/2026"], [1, 10]),
        (["08/11/2026", "09/11/2026"], None),
        (["7", "8"], None),
    ],
)
def test_dates_are_read_where_day_and_month_cannot_be_confused(texts: list[str], days: list[float] | None) -> None:
    found = days_before(pl.Series(texts), date(2026, 11, 18))
    assert (None if found is None else found.to_list()) == days
    real = days_before(pl.Series([date(2026, 11, 17)]), date(2026, 11, 18))
    assert real is not None
    assert real.to_list() == [1.0]


@pytest.mark.parametrize(
    "wrong",
    [{**DAYS} | {"at": [30]}, {**DAYS} | {"at": [90, 30]}, {**DAYS} | {"at": "30"}, {**DAYS} | {"more_is": "good"}, {"at": [30, 90]},
     {**DAYS} | {"at": [30, float("nan")]}],
)  # fmt: skip
def test_cut_points_are_ascending_and_one_fewer_than_states(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        check_cut_points(wrong, ["lost", "late", "active"])


def test_cut_points_are_written_in_one_line() -> None:
    text = "days: since order: 30,90 more is better"
    assert parse_cut_points(text) == {"column": "days: since order", "at": [30.0, 90.0], "more_is": "better"}
    cut = check_cut_points(parse_cut_points(text), ["lost", "late", "active"])
    assert isinstance(cut, CutPoints)
    assert parse_cut_points(str(cut)) == parse_cut_points(text)
    assert parse_mapping(cut_points="none") == {"cut_points": None}
    with pytest.raises(InputError, match="write it like"):
        parse_cut_points("days: 30,90")


def test_phone_numbers_of_a_person_are_one_id_if_the_program_says_so(desk: Desk) -> None:
    program = make(desk)
    program.decide([{"agent": "+91 98200-12345", "state": 0}, {"agent": "ann", "state": 0}], phone_country=91)
    table = [{"agent": "098200 12345", "state": 1}, {"agent": "0091 98200 12345", "state": "late"}]
    decided = program.decide(table, must=["9820012345"])
    assert program.projection.agents.count == 2
    assert decided.chosen == ["+919820012345"]
    assert "rows that repeat another one, merged with it: 1" in decided.notes
    assert len(program.history("98200.12345")) == 2
    assert program.learn([{"agent": "919820012345", "done": "no answer"}]).new == 1
    assert program.leave(["(098200) 12345"]) == 1


def test_ids_that_do_not_look_like_phone_numbers_stay() -> None:
    odd = ["ann", "12", "A-0091 98200", None, "+4420", "1" * 18]
    assert spell_phones(pl.Series(odd), 91).to_list() == odd
    assert spell_phones(pl.Series(["98200 12345"]), None).to_list() == ["98200 12345"]


def test_the_spelling_of_ids_cannot_change_once_people_are_known_otherwise(desk: Desk) -> None:
    program = make(desk)
    program.decide({"98200 12345": 0})
    with pytest.raises(InputError, match="can only be set before they join"):
        program.change(phone_country=91)
    assert look_like_phones(pl.Series(["98200 12345", "+91 98200 12345"]))


def test_a_mapping_is_a_setting_that_can_be_changed(desk: Desk) -> None:
    program = make(desk)
    changed = program.change(columns={"agent": "phone"}, values={"1": "late"}, cut_points=DAYS, phone_country=91)
    assert changed.mapping == desk.program("calls").config.mapping
    assert changed.as_json()["cut_points"] == DAYS
    assert program.change(columns={}, cut_points=None).columns == {}
    for wrong in ({"agnt": "phone"}, {"agent": "x", "state": "x"}, {"agent": "x" * 300}):
        with pytest.raises(InputError):
            program.change(columns=wrong)


def test_a_column_can_be_left_unread(desk: Desk) -> None:
    program = make(desk)
    decided = program.decide([{"agent": "a", "state": 0, "group": "x"}], columns={"group": ""})
    assert program.projection.groups == []
    assert decided.notes[0] == "ignored columns: group"
