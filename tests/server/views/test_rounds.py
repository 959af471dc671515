"""Rounds in short and one by one."""

from pathlib import Path

import pytest

from restive.desk import Desk
from restive.desk.overview import look_at
from restive.server.views.rounds import look_into, say_lines
from server.views.browsing import Browser, Site, read_text


def test_rounds_have_the_numbers_of_the_status(viewer: Browser, played: Site) -> None:
    seen = look_at(played.desk.program("demo"))
    reported = viewer.get("/programs/demo/rounds.json").json()["rounds"]
    assert [row["round"] for row in reported] == [5, 4, 3, 2, 1]
    for row, line in zip(reported[::-1], seen.rounds, strict=True):
        assert (row["done"], row["advised"], row["failed"]) == (line.done, line.advised, line.failed)
        assert row["treated"]["mean"] == pytest.approx(line.reward_mean)
        assert row["control"]["mean"] == pytest.approx(line.control_mean)


def test_intervals_are_those_of_the_curve(played: Site) -> None:
    program = played.desk.program("demo")
    curve = look_at(program).curve
    assert curve is not None
    assert [row["lift"]["high"] for row in say_lines(program.rounds)] == pytest.approx(curve.lift.high.tolist())


def test_a_round_shows_what_was_done_and_what_came_of_it(viewer: Browser, played: Site) -> None:
    found = played.desk.program("demo").get_round(5)
    reported = viewer.get("/programs/demo/rounds/5.json").json()
    assert reported["round"]["waiting"] == found.missing == 10
    assert sum(row["done"] is True for row in reported["people"]) == int((found.done == 1).sum())
    assert {row["agent"] for row in reported["people"]} == set(played.desk.program("demo").advice(5).chosen)
    page = read_text(viewer.get("/programs/demo/rounds/5").text)
    assert "waits for 10" in page
    assert "awaited" in page


def test_who_was_acted_on_unasked_stands_below_the_list(tmp_path: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        program = desk.create("shops", states=["low", "high"], rewards=[0, 1], budget=1, control=0.0)
        program.decide([{"agent": agent, "state": "low"} for agent in ("ann", "ben")])
        program.learn([{"agent": agent, "done": True, "next_state": "high"} for agent in ("ann", "ben")])
        reported = look_into(program, 1, 1)
    assert [row["list"] for row in reported["people"]] == ["chosen", "unasked"]
    assert (reported["round"]["done"], reported["round"]["unasked"]) == (1, 1)
    assert reported["people"][1]["reward"] == 1.0


def test_rounds_that_are_open_or_cancelled_say_so(tmp_path: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        program = desk.create("shops", states=["low", "high"], rewards=[0, 1], budget=1, control=0.0)
        program.open([{"agent": "ann", "state": "low"}])
        open_ = look_into(program, 1, 1)
        program.cancel(1)
        cancelled = look_into(program, 1, 1)
    assert (open_["round"]["decided"], open_["people"], open_["policy"]) == (False, [], None)
    assert cancelled["round"]["cancelled"]
