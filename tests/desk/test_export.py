"""A program as files for analysis: everything is in them, and nothing that was erased."""

from pathlib import Path

import polars as pl
import pytest

from restive.desk import Desk, Program
from restive.desk.export import agents_table, export, rounds_table
from restive.errors import InputError


def make_program(desk: Desk, shadow: str | None = "wiql") -> Program:
    """Two rounds; the second is half reported, ann is erased, dee has left, eve is new."""
    program = desk.create(
        "one", states=["low", "high"], rewards=[0, 5], budget=2, control=0.0, seed=1, shadow=shadow, policy="egt"
    )
    program.decide({"ann": ("low", "north"), "ben": ("high", "south"), "cem": ("low", None), "dee": ("low", "north")})
    program.learn(
        [{"agent": name, "next_state": "high", "done": name == "cem"} for name in ("ann", "ben", "cem", "dee")]
    )
    program.leave(["dee"])
    program.decide({"ben": "low", "eve": "low"}, never=["ben"])
    program.learn([{"agent": "ben", "next_state": "low"}, {"agent": "cem", "done": "no"}], round=2)
    program.erase(["ann"])
    return program


def test_an_export_has_agents_rounds_and_a_file_for_each_round(tmp_path: Path) -> None:
    reported: list[tuple[int, int]] = []
    with Desk(tmp_path / "desk.db") as desk:
        program = make_program(desk)
        files = export(program, tmp_path / "out" / "deep", lambda done, total: reported.append((done, total)))
        found = program.get_round(2)
    assert [str(file.relative_to(tmp_path / "out" / "deep")) for file in files] == [
        "agents.parquet", "rounds.parquet", "records/round-00001.parquet", "records/round-00002.parquet",
    ]  # fmt: skip
    assert reported == [(1, 2), (2, 2)]
    agents = pl.read_parquet(files[0])
    assert agents["agent"].to_list() == [None, "ben", "cem", "dee", "eve"]
    assert agents["group"].to_list() == ["north", "south", None, "north", None]
    assert agents["active"].to_list() == [False, True, True, False, True]
    assert agents["reward_total"].to_list() == [5.0, 5.0, 5.0, 5.0, 0.0]
    rounds = pl.read_parquet(files[1])
    assert rounds.select("round", "present", "advised", "outcomes").rows() == [
        (1, 4, 2, 4), (2, int(found.number.size), 2, 1),
    ]  # fmt: skip
    records = pl.read_parquet(tmp_path / "out" / "deep" / "records" / "*.parquet")
    assert records.height == rounds["present"].sum()
    last = records.filter(round=2, agent="cem").row(0, named=True)
    assert (last["done"], last["reward"], last["next_state"]) == (False, None, None)
    ben = records.filter(round=2, agent="ben").row(0, named=True)
    assert (ben["state"], ben["advised"], ben["probability"], ben["exclusion"]) == ("low", False, 0.0, "never list")
    assert (ben["reward"], ben["next_state"]) == (0.0, "low")
    assert records.filter(round=1)["agent"].to_list() == ["(erased)", "ben", "cem", "dee"]
    assert records.filter(round=1)["done"].to_list() == [False, False, True, False]
    assert "shadow_probability" in records.columns


def test_probabilities_of_a_round_add_up_to_the_list(tmp_path: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        files = export(make_program(desk, shadow=None), tmp_path / "out")
    for file in files[2:]:
        records = pl.read_parquet(file)
        assert records["probability"].sum() == pytest.approx(records["advised"].sum())
        assert not (records["probability_error"] > 0).any()  # exact without noise
        assert "shadow_probability" not in records.columns


def test_a_second_export_replaces_the_first(tmp_path: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        program = make_program(desk)
        files = export(program, tmp_path / "out")
        before = [file.read_bytes() for file in files]
        assert [file.read_bytes() for file in export(program, tmp_path / "out")] == before


def test_records_of_an_export_of_something_else_are_gone(tmp_path: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        files = export(make_program(desk), tmp_path / "out")
        (tmp_path / "out" / "records" / "round-00007.parquet").write_bytes(files[-1].read_bytes())
        (tmp_path / "out" / "records" / "notes.txt").write_text("mine")
        other = desk.create("two", states=["low", "high"], rewards=[0, 5], budget=1, control=0.0)
        other.decide({"ann": "low"})
        files = export(other, tmp_path / "out")
    assert sorted(file.name for file in (tmp_path / "out" / "records").iterdir()) == [
        "notes.txt", "round-00001.parquet",
    ]  # fmt: skip
    assert pl.read_parquet(tmp_path / "out" / "records" / "*.parquet").height == 1


def test_rounds_are_dated_by_their_decision(tmp_path: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        program = make_program(desk)
        assert rounds_table(program)["at"].to_list() == [program.get_round(number).at for number in (1, 2)]
        assert rounds_table(program)["unlisted"].to_list() == [
            int((found.chosen < (found.done == 1)).sum()) for found in (program.get_round(1), program.get_round(2))
        ]  # fmt: skip


def test_a_program_without_a_round_is_exported_too(tmp_path: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        program = desk.create("one", template="loyalty")
        files = export(program, tmp_path / "out")
        assert agents_table(program).height == 0
    assert [pl.read_parquet(file).height for file in files] == [0, 0]


def test_an_export_does_not_go_where_a_file_is(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with Desk(tmp_path / "desk.db") as desk, pytest.raises(InputError, match="an export needs a folder"):
        export(make_program(desk), tmp_path / "out")
    assert (tmp_path / "out").read_text() == "mine"


def test_rounds_count_what_was_done_as_advised_and_say_which_were_cancelled(tmp_path: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        program = desk.create("one", states=["low", "high"], rewards=[0, 5], budget=2, control=0.0, seed=1)
        chosen = program.decide(dict.fromkeys(("ann", "ben", "cem", "dee"), "low")).chosen
        unlisted = next(name for name in ("ann", "ben", "cem", "dee") if name not in chosen)
        program.learn([{"agent": name, "done": name != chosen[0]} for name in (*chosen, unlisted)])
        program.decide({"ann": "high", "ben": "low"})
        program.cancel(2)
        table = rounds_table(program)
        files = export(program, tmp_path / "out")
    assert table.select("round", "advised", "done", "failed", "unlisted", "cancelled").rows() == [
        (1, 2, 1, 1, 1, False), (2, 2, 0, 0, 0, True),
    ]  # fmt: skip
    assert pl.read_parquet(files[1]).equals(table)
