"""Backups: copies of a store of either kind, made while others write, and moved between kinds."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from desk.postgres import Postgres
from restive.cli import app
from restive.desk import Desk
from restive.desk.backup import back_up
from restive.desk.database import metadata
from restive.desk.replay import replay
from restive.desk.store import Store
from restive.desk.tokens import find_principal, make_token
from restive.errors import Conflict

STATES = [{"agent": name, "state": place % 2} for place, name in enumerate(("ann", "ben", "cleo", "dev"))]


def fill(desk: Desk) -> None:
    program = desk.create("calls", states=["low", "high"], rewards=[0, 1], budget=1, display=["phone"])
    program.decide([{**row, "phone": "123"} for row in STATES])
    program.learn([{"agent": row["agent"], "next_state": 1} for row in STATES])


def read_all(store: Store) -> dict[str, list[sa.Row[tuple[object, ...]]]]:
    return {table.name: sorted(store.execute(sa.select(table)), key=repr) for table in metadata.sorted_tables}


def test_a_copy_has_every_row_replays_and_can_be_used(address: str, tmp_path: Path) -> None:
    with Desk(address) as desk, Desk(tmp_path / "copy.db") as copy:
        fill(desk)
        secret = make_token(desk.store, "ann", {None: "admin"})
        steps: list[tuple[int, int]] = []
        events = back_up(desk.store, copy.store, lambda done, total: steps.append((done, total)))
        assert events == {"calls": desk.program("calls").store.length(1)}
        assert steps[-1][0] == steps[-1][1] > 5
        assert read_all(copy.store) == read_all(desk.store)
        assert replay(copy.program("calls")).proven
        assert find_principal(copy.store, secret) is not None
        assert copy.program("calls").decide(STATES).chosen == desk.program("calls").decide(STATES).chosen


def test_a_sqlite_store_can_be_moved_to_postgresql(server: Postgres, tmp_path: Path) -> None:
    with Desk(tmp_path / "team.db") as desk, Desk(server.new_schema()) as moved:
        fill(desk)
        make_token(desk.store, "ann", {None: "admin"})
        back_up(desk.store, moved.store)
        assert read_all(moved.store) == read_all(desk.store)
        moved.create("visits", states=["low", "high"], rewards=[0, 1]).decide(
            STATES
        )  # new rows are numbered after the copied ones
        make_token(moved.store, "ben", {None: "viewer"})
        assert [row.id for row in moved.store.programs()] == [1, 2]


def test_a_copy_made_while_others_write_is_of_one_moment(address: str, tmp_path: Path) -> None:
    with Desk(address) as desk, Desk(tmp_path / "copy.db") as copy:
        fill(desk)
        before = read_all(desk.store)
        written: list[int] = []

        def write_once(done: int, total: int) -> None:
            if not written:
                written.append(desk.program("calls").decide(STATES).round)

        back_up(desk.store, copy.store, write_once)
        assert written == [2]
        assert read_all(copy.store) == before != read_all(desk.store)


def test_a_store_with_anything_in_it_is_not_overwritten(tmp_path: Path) -> None:
    with Desk(tmp_path / "team.db") as desk, Desk(tmp_path / "copy.db") as copy:
        fill(desk)
        make_token(copy.store, "ann", {None: "admin"})
        before = read_all(copy.store)
        with pytest.raises(Conflict, match="is not empty; a backup needs a new file or database"):
            back_up(desk.store, copy.store)
        assert read_all(copy.store) == before


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["desk", *arguments])
    return result.exit_code, result.output


def test_the_command_backs_up_and_verifies_and_names_a_damaged_program(tmp_path: Path) -> None:
    team, copy = str(tmp_path / "team.db"), str(tmp_path / "copy.db")
    with Desk(team) as desk:
        fill(desk)
    code, output = run("backup", copy, "--store", team)
    assert (code, "Copied 1 program with" in output) == (0, True)
    code, output = run("verify", "--store", copy, "--json")
    assert code == 0
    found = json.loads(output)["programs"]
    assert [(each["program"], each["error"]) for each in found] == [("calls", None)]
    with closing(sqlite3.connect(copy)) as damaged, damaged:
        damaged.execute("UPDATE events SET at = at || ' ' WHERE number = 1")
    code, output = run("verify", "--store", copy)
    assert code == 1
    assert "calls: Event 1 in the store" in output
