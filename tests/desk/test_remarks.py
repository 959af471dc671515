"""Remarks: who, and how many, in the words of the program."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from restive.desk import Desk
from restive.desk.config import Words
from restive.desk.projection import Present
from restive.desk.remarks import count, refuse_alike, remark_on_groups, remark_on_round, say_names
from restive.errors import InputError

SHOPS = Words(person="shop", people="shops")


def test_people_are_counted_in_the_words_of_the_program() -> None:
    assert [count(number, SHOPS) for number in (0, 1, 2, 1234)] == ["0 shops", "1 shop", "2 shops", "1,234 shops"]
    assert count(1, SHOPS, "new ") == "1 new shop"


def test_nobody_is_no_remark_and_many_are_not_all_named() -> None:
    assert say_names("gone", [], SHOPS) == []
    (one,), (many,) = say_names("gone", ["ann"], SHOPS), say_names("gone", [f"n{n}" for n in range(5000)], SHOPS)
    assert one == "gone: 1 shop (ann)"
    assert many.startswith("gone: 5,000 shops (n0, n1, ")
    assert many.endswith(" more)")
    assert len(many) < 200


def test_new_ids_like_known_ones_are_counted_and_some_are_shown() -> None:
    refuse_alike({})
    with pytest.raises(InputError) as reported:
        refuse_alike({str(n): f"0{n}" for n in range(1, 1501)})
    assert "1,500" in str(reported.value)
    assert "(1 for 01, 2 for 02, 3 for 03)" in str(reported.value)
    assert "nothing was recorded" in str(reported.value)
    assert "(--new)" in str(reported.value)


def test_a_round_is_remarked_on_by_name(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"states": ["low", "high"], "rewards": [0, 1], "control": 0.0, "seed": 1, "horizon": 1}
    with Desk(tmp_path / "desk.db") as desk:
        program = desk.create("one", **settings, shares={"west": 0.5})
        program.decide({"ann": ("low", "north"), "ben": ("low", None), "cem": ("low", None), "dee": ("low", None)})
        program.leave(["dee"])
        there = Present(np.array([0]), np.array([1]), np.array([True]), np.array([False]))
        remarks = remark_on_round("one", program.projection, there, program.names)
        assert remark_on_groups(program.projection, ["south", "east"]) == ["a new group: south", "a new group: east"]
        other = desk.create("two", **settings)
        assert remark_on_groups(other.projection, ["south"]) == []
        other.decide(pl.DataFrame({"agent": ["ann"], "state": ["low"]}))
        assert (
            remark_on_groups(other.projection, ["south"]) == []
        )  # the first groups of all are nothing to wonder about
    assert remarks == [
        "with a state kept from an earlier round: 1 person",
        "left out, without a recent state: 2 people (ben, cem)",
        "nobody is in the group west, which has a share",
        "round 2 is beyond the 1 rounds that were planned",
        "round 1 has no outcomes yet; if it was a mistake: restive desk cancel one 1",
    ]
