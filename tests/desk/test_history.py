"""The history of one person, as it is known now."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from restive.api.types import HistoryEntry
from restive.desk import Desk, Program
from restive.desk.history import find_history
from restive.errors import InputError


@pytest.fixture
def program(address: str) -> Iterator[Program]:
    with Desk(address) as desk:
        yield desk.create(
            "one", states=["low", "high"], rewards=[0, 5], budget=1, control=0.0, seed=1, cool_down=2, policy="egt"
        )


def without_time(rows: list[HistoryEntry]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "at"} for row in rows]


def test_a_history_has_a_row_for_each_round_with_corrections_in_their_places(program: Program) -> None:
    program.decide({"ann": "low", "ben": "low"}, must=["ann"])
    program.learn([{"agent": "ann", "next_state": "high"}, {"agent": "ben", "next_state": "low"}])
    program.decide({"ann": "high", "ben": "low"})
    program.learn([{"agent": "ann", "done": "yes"}])  # done, though it was not on the list
    first = {"round": 1, "state": "low", "chosen": True, "probability": 1.0, "done": True, "note": "must list"}
    second = {"round": 2, "state": "high", "chosen": False, "probability": 0.0, "done": True, "note": "cooling down"}
    assert without_time(find_history(program, "ann")) == [first | {"reward": 5.0, "next_state": "high"}, second]
    program.learn([{"agent": "ann", "done": "no", "next_state": "low"}], round=1, correct=True)
    program.correct_states({"ann": "low"}, 2)
    first |= {"done": False, "reward": 0.0, "next_state": "low", "note": "must list, corrected"}
    assert without_time(find_history(program, "ann")) == [
        first, second | {"state": "low", "note": "cooling down, corrected"},
    ]  # fmt: skip


def test_rounds_without_the_person_are_not_in_its_history(program: Program) -> None:
    program.decide({"ann": "low", "ben": "low"})
    program.leave(["ann"])
    program.decide({"ben": "low", "cem": "low"})
    assert [row["round"] for row in find_history(program, "ann")] == [1]
    assert [row["round"] for row in find_history(program, "ben")] == [1, 2]
    assert [row["round"] for row in find_history(program, "cem")] == [2]
    assert "done" not in find_history(program, "cem")[0]


def test_one_who_joined_without_a_state_has_an_empty_history(program: Program) -> None:
    program.decide({"ann": "low", "ben": None})
    assert find_history(program, "ben") == []


def test_somebody_unknown_or_erased_has_no_history(program: Program) -> None:
    program.decide({"ann": "low", "ben": "low"})
    program.erase(["ann"])
    for name in ("ann", "zoe", "(erased)", ""):
        with pytest.raises(
            InputError, match=f"{name}' is not in the program one".replace("(", r"\(").replace(")", r"\)")
        ):
            find_history(program, name)


def test_a_round_that_was_cancelled_is_called_so(tmp_path: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        program = desk.create("one", states=["low", "high"], rewards=[0, 1], control=0.0, budget=1, seed=1)
        program.decide({"ann": "low", "ben": "low"}, never=["ben"])
        program.cancel(1)
        program.decide({"ann": "low"})
        notes = {name: [row["note"] for row in find_history(program, name)] for name in ("ann", "ben")}
    assert notes == {"ann": ["cancelled", ""], "ben": ["never list, cancelled", ""]}
